"""Prefetching: loading memory into the cache before it is needed."""

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic


@intrinsic
def _prefetch(typing_context, array, index):
    """Start to load the cache line of ``array[index]``. This is only a hint: an index beyond the end is harmless."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte_pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], hint)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte_pointer)
        builder.call(function, [address, number(0), number(3), number(1)])  # to read, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


def _nothing(array, index):
    """Do nothing: used in place of ``_prefetch`` with NUMBA_DISABLE_JIT."""


prefetch = _nothing if config.DISABLE_JIT else _prefetch
