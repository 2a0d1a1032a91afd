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
def project_and_bin(X, v, start, z, codes, weights, step, origin, inverse, low, count, offset, moments):
    """project_rows of the rows from ``start`` on, then bin_points, which has the next block fetched meanwhile."""
    numbers, size = X.reshape(X.size), _block_rows(X.shape[1])
    outside = 0
    for a in range(0, len(z), size):
        b = min(a + size, len(z))
        project_rows(X, v, start + a, start + b, z[a:b])
        outside += bin_points(
            z[a:b], codes[a:b], weights[a * step : b * step + 1 - step], step, origin, inverse, low, count, offset,
            moments, numbers, (start + b) * X.shape[1],
        )  # fmt: skip
    return outside


@njit(**COMPILE)
def weigh_and_pull(X, start, z, codes, weights, step, origin, inverse, low, count, offset, table, gradient):
    """weigh_points, then pull_rows of the rows from ``start`` on."""
    size = _block_rows(X.shape[1])
    w = np.empty(size)
    for a in range(0, len(z), size):
        b = min(a + size, len(z))
        weigh_points(
            z[a:b], codes[a:b], weights[a * step : b * step + 1 - step], step, origin, inverse, low, count, offset,
            table, w,
        )  # fmt: skip
        pull_rows(X, w, start + a, start + b, gradient)
