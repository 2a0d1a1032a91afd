"""The two passes of an evaluation over float64 rows that lie one after the other, block by block.

Products and points of a block follow each other while both are in the cache.
"""

import numpy as np
from numba import njit

from melc.kernels.bins import bin_points, weigh_points
from melc.kernels.flags import COMPILE
from melc.kernels.rows import project_rows, pull_rows

_CACHED = 16_384  # numbers of X in a block


@njit(**COMPILE)
def _block_rows(n_features):
    """An even number, as products want it."""
    return 2 * max(1, _CACHED // n_features // 2)


@njit(**COMPILE)
def project_and_bin(
    X, v, z, codes, weights, step, start, stop, origin, inverse, low, count, offset, moments, order
):  # fmt: skip
    """project_rows, then bin_points, which has the next block fetched meanwhile."""
    numbers, size = X.reshape(X.size), _block_rows(X.shape[1])
    outside = 0
    for a in range(start, stop, size):
        b = min(a + size, stop)
        project_rows(X, v, a, b, z)
        outside += bin_points(
            z, codes, weights, step, a, b, origin, inverse, low, count, offset, moments, order,
            numbers, b * X.shape[1],
        )  # fmt: skip
    return outside


@njit(**COMPILE)
def weigh_and_pull(
    X, z, codes, weights, step, extra, extra_step, start, stop, origin, inverse, low, count, offset, table, gradient,
    order,
):  # fmt: skip
    """weigh_points, then pull_rows."""
    size = _block_rows(X.shape[1])
    w = np.empty(size)
    for a in range(start, stop, size):
        b = min(a + size, stop)
        weigh_points(
            z, codes, weights, step, extra, extra_step, a, b, origin, inverse, low, count, offset, table, w, order
        )  # fmt: skip
        pull_rows(X, w, a, b, gradient)
