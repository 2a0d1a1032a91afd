"""The two passes of an evaluation over C-contiguous float64 rows, block by block.

Each block is small enough to stay in the cache between its product with v or w and the work on its points. The points
and the layout are passed as in :mod:`melc.kernels.bins`.
"""

import numpy as np
from numba import njit

from melc.kernels.bins import bin_points, weigh_points
from melc.kernels.flags import COMPILE
from melc.kernels.rows import project_rows, pull_rows

_CACHED = 16_384  # elements of X in a block


@njit(**COMPILE)
def _block_rows(n_features):
    """Return the number of rows in a block; even, because project_rows and pull_rows take rows in pairs."""
    return 2 * max(1, _CACHED // n_features // 2)


@njit(**COMPILE)
def project_and_bin(X, v, start, z, codes, weights, step, origin, inverse, low, count, offset, moments):
    """Project the rows from ``start`` on, write z, shape (n,), and add the moments. Return the number in no bin.

    :func:`bin_points` prefetches the next block of X meanwhile.
    """
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
    """Add Σ w_i X_i over the rows from ``start`` on to ``gradient``, shape (n_features,), with w from weigh_points."""
    size = _block_rows(X.shape[1])
    w = np.empty(size)
    for a in range(0, len(z), size):
        b = min(a + size, len(z))
        weigh_points(
            z[a:b], codes[a:b], weights[a * step : b * step + 1 - step], step, origin, inverse, low, count, offset,
            table, w,
        )  # fmt: skip
        pull_rows(X, w, start + a, start + b, gradient)
