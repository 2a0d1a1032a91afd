"""Compiler options of the kernels, and whether they are compiled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

# Allows the compiler to fuse and reorder additions, which it needs to vectorise loops. It may not assume that there is
# no NaN or infinity, so isnan and isfinite still work.
FAST = frozenset({"contract", "reassoc", "nsz", "arcp"})

# Kernels release the GIL, so Python threads can run them in parallel. The machine code is cached on disk. A kernel that
# another one calls becomes part of it: otherwise the caller would use whichever copy was loaded first, its own or the
# one for calls from Python, and as those round differently, the first fit on a machine would differ from the next.
# Divisions by zero are not checked, and there is no entry for calls from C: less to compile.
COMPILE = {
    "cache": True,
    "nogil": True,
    "forceinline": True,
    "fastmath": set(FAST),
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}

# For functions that only kernels call: without an entry for calls from Python, and in the cache with their caller.
PART = {**COMPILE, "cache": False, "no_cpython_wrapper": True}


def inlined(kernel: Callable[..., Any]) -> Any:
    """Return a kernel for use in one place of another, as if it were written there.

    A function that is called is compiled by itself, and again in every kernel that calls it, which takes much longer.
    """
    return njit(inline="always")(getattr(kernel, "py_func", kernel))


def is_cached(kernel: Any) -> bool:
    """Return whether machine code of a kernel is on disk, or numba is disabled."""
    if not hasattr(kernel, "stats"):
        return True
    module = kernel.__module__.rpartition(".")[2]
    return any(Path(kernel.stats.cache_path).glob(f"{module}.{kernel.__name__}-*.nbi"))
