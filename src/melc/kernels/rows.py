"""The two products with X for the rows start … stop − 1: z = Xv and gradient += Xᵀw.

X has shape (n_rows, n_features), v and gradient (n_features,), z and w (stop − start,).

There is one pair of functions for each memory layout of X: ``rows`` (C-contiguous float64), ``columns``
(Fortran-contiguous; takes the transpose of X) and ``centred`` (any type and strides; blocks are converted to float64).
The last multiplies with X − centre, for features whose mean is so large compared with their spread that products with X
would lose digits.

BLAS gets blocks below the size at which it starts its own threads. The caller decides about threads, and the result is
the same to the last bit for any number of them.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

_BLAS_STAYS_SINGLE = 8192  # elements; OpenBLAS uses one thread below 9216
COLUMN_BLOCK = 1024
_SHORT = 64  # up to this many features, rows are taken in pairs


@njit(cache=True, nogil=True)
def blas_block_rows(n_features):
    """Return the number of rows that BLAS multiplies at once."""
    return max(8, _BLAS_STAYS_SINGLE // n_features)


@njit(**COMPILE)
def project_rows(X, v, start, stop, z):
    """Write z = Xv for C-contiguous float64 rows."""
    d, next_row = np.uint64(X.shape[1]), np.uint64(1)
    paired = start
    if X.shape[1] <= _SHORT:
        paired = stop - (stop - start) % 2
        for i in range(start, paired, 2):
            row, at = np.uint64(i), np.uint64(i - start)
            first, second = 0.0, 0.0
            for j in range(d):
                first += X[row, j] * v[j]
                second += X[row + next_row, j] * v[j]
            z[at], z[at + next_row] = first, second
    for i in range(paired, stop):
        row = np.uint64(i)
        total = 0.0
        for j in range(d):
            total += X[row, j] * v[j]
        z[np.uint64(i - start)] = total


@njit(**COMPILE)
def _centre(X, start, stop, centre, scratch):
    """Write X − centre for the rows start … stop − 1 to ``scratch``; a loop compiles faster than an assignment."""
    for i in range(start, stop):
        for j in range(X.shape[1]):
            scratch[i - start, j] = X[i, j] - centre[j]


@njit(**COMPILE)
def project_columns(XT, v, start, stop, z):
    """Write z = Xv from the transpose of X, shape (n_features, n_rows).

    Four columns are taken at a time, so that z is read and written less often.
    """
    fours = len(v) - len(v) % 4
    for a in range(start, stop, COLUMN_BLOCK):
        block = z[a - start : min(a + COLUMN_BLOCK, stop) - start]
        block[:] = 0.0
        for j in range(0, fours, 4):
            x0, x1, x2, x3 = XT[j, a:], XT[j + 1, a:], XT[j + 2, a:], XT[j + 3, a:]
            v0, v1, v2, v3 = v[j], v[j + 1], v[j + 2], v[j + 3]
            for i in range(len(block)):
                block[i] += (v0 * x0[i] + v1 * x1[i]) + (v2 * x2[i] + v3 * x3[i])
        for j in range(fours, len(v)):
            column = XT[j, a : a + len(block)]
            vj = v[j]
            for i in range(len(block)):
                block[i] += vj * column[i]


@njit(**COMPILE)
def pull_rows(X, w, start, stop, gradient):
    """Add Xᵀw to ``gradient``, for C-contiguous float64 rows."""
    d, next_row = np.uint64(X.shape[1]), np.uint64(1)
    paired = start
    if X.shape[1] <= _SHORT:
        paired = stop - (stop - start) % 2
        for i in range(start, paired, 2):
            row, place = np.uint64(i), np.uint64(i - start)
            first, second = w[place], w[place + next_row]
            for j in range(d):
                gradient[j] += first * X[row, j] + second * X[row + next_row, j]
    for i in range(paired, stop):
        row = np.uint64(i)
        weight = w[np.uint64(i - start)]
        for j in range(d):
            gradient[j] += weight * X[row, j]


@njit(**COMPILE)
def project_centred(X, centre, v, start, stop, z):
    """Write z = (X − centre) v, for rows of any type and strides."""
    size = blas_block_rows(X.shape[1])
    scratch = np.empty((size, X.shape[1]))
    for a in range(start, stop, size):
        b = min(a + size, stop)
        _centre(X, a, b, centre, scratch)
        np.dot(scratch[: b - a], v, z[a - start : b - start])


@njit(**COMPILE)
def pull_centred(X, centre, w, start, stop, gradient):
    """Add (X − centre)ᵀw to ``gradient``, for rows of any type and strides."""
    size = blas_block_rows(X.shape[1])
    scratch = np.empty((size, X.shape[1]))
    for a in range(start, stop, size):
        b = min(a + size, stop)
        _centre(X, a, b, centre, scratch)
        pulled = np.dot(w[a - start : b - start], scratch[: b - a])
        for j in range(len(pulled)):
            gradient[j] += pulled[j]


@njit(**COMPILE)
def pull_columns(XT, w, start, stop, gradient):
    """Add Xᵀw to ``gradient``, from the transpose of X, shape (n_features, n_rows).

    Four columns are taken at a time, so that w is read less often.
    """
    fours = len(gradient) - len(gradient) % 4
    for a in range(start, stop, COLUMN_BLOCK):
        weights = w[a - start : min(a + COLUMN_BLOCK, stop) - start]
        for j in range(0, fours, 4):
            x0, x1, x2, x3 = XT[j, a:], XT[j + 1, a:], XT[j + 2, a:], XT[j + 3, a:]
            zero = weights[0] * x0[0] * 0
            t0, t1, t2, t3 = zero, zero, zero, zero
            for i in range(len(weights)):
                weight = weights[i]
                t0 += x0[i] * weight
                t1 += x1[i] * weight
                t2 += x2[i] * weight
                t3 += x3[i] * weight
            gradient[j] += t0
            gradient[j + 1] += t1
            gradient[j + 2] += t2
            gradient[j + 3] += t3
        for j in range(fours, len(gradient)):
            column = XT[j, a : a + len(weights)]
            total = weights[0] * column[0] * 0
            for i in range(len(weights)):
                total += column[i] * weights[i]
            gradient[j] += total
