"""Moments of the features: Σ w uʲ x over the rows of each bin, for each feature x.

The weight of a row in a gradient is a polynomial in u, whose coefficients are known only after all rows are binned.
With these moments the gradient is a product of coefficients and moments, and X need not be read a second time.
"""

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

from melc.kernels.flags import COMPILE


@intrinsic
def _add_multiple(typing_context, numbers, place, factor, vector):
    """Compute ``numbers[place : place + len(vector)] += factor · vector`` with vector instructions.

    The compiler does not vectorise a loop this short, and a scalar loop takes twice the time.
    """

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        lanes = ir.VectorType(ir.DoubleType(), len(vector))
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), lanes.as_pointer())
        factors, values = ir.Constant(lanes, ir.Undefined), ir.Constant(lanes, ir.Undefined)
        for j in range(len(vector)):
            lane = ir.IntType(32)(j)
            factors = builder.insert_element(factors, arguments[2], lane)
            values = builder.insert_element(values, builder.extract_value(arguments[3], j), lane)
        product = builder.fmul(factors, values, flags=("contract",))
        total = builder.fadd(builder.load(pointer, align=8), product, flags=("contract",))
        builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return types.void(numbers, types.uint64, types.float64, vector), generate


def _add_multiple_slowly(numbers, place, factor, vector):
    """Do the same as ``_add_multiple`` in plain Python, for NUMBA_DISABLE_JIT."""
    for j, value in enumerate(vector):
        numbers[int(place) + j] += factor * value


add_multiple = _add_multiple_slowly if config.DISABLE_JIT else _add_multiple


@njit(**COMPILE)
def _powers(weight, u):
    """Return the tuple of weight · uʲ for j < P − 1."""
    u2 = u * u
    u4 = u2 * u2
    low, high = (weight, weight * u, weight * u2, weight * (u2 * u), weight * u4), weight * (u4 * u)
    return (*low, high, high * u)


@njit(**COMPILE)
def add_features(X, centre, start, rows, local, weights, step, features):
    """Add Σ w uʲ (x − centre) over the rows from ``start`` on to ``features``, shape (n_bins, n_features, P − 1).

    X has shape (n_rows, n_features), ``centre`` (n_features,). The points are as in :mod:`melc.kernels.bins`. Rows in
    no bin are left out.
    """
    n_features, n_powers = np.uint64(X.shape[1]), np.uint64(features.shape[2])
    numbers = features.reshape(features.size)
    weight = weights[0]
    for position in range(len(rows)):
        i = np.uint64(position)
        if rows[i] < 0:
            continue
        if step == 1:
            weight = weights[i]
        powers = _powers(weight, local[i])
        row, place = np.uint64(start + position), np.uint64(rows[i]) * n_features * n_powers
        for k in range(n_features):
            add_multiple(numbers, place + k * n_powers, X[row, k] - centre[k], powers)
