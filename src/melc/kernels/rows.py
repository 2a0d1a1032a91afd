"""The two products with X for a stretch of rows: z = Xv and Xᵀw.

Three forms, for the three ways in which features lie in memory: ``rows`` (float64, row after row, read in that order),
``mixed`` (any other type or stride: blocks are converted on the way), ``columns`` (column after column; takes Xᵀ).
A fourth, ``centred``, takes rows relative to a point, for features whose offset would cost the digits of their spread.

Where BLAS multiplies, it gets blocks below the size at which it would start threads of its own: threads belong to the
caller, and the result is the same bits whatever their number.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

_BLAS_STAYS_SINGLE = 8192  # elements; OpenBLAS uses one thread below 9216
COLUMN_BLOCK = 1024
_SHORT = 64  # features up to which rows are taken in pairs


@njit(cache=True, nogil=True)
def blas_block_rows(n_features):
    """Rows that BLAS gets at once."""
    return max(8, _BLAS_STAYS_SINGLE // n_features)


@njit(**COMPILE)
def project_rows(X, v, start, stop, z):
    """z_{i − start} = X_i v for the rows start … stop."""
    numbers, d = X.reshape(X.size), np.uint64(X.shape[1])
    paired = start
    if X.shape[1] <= _SHORT:
        paired = stop - (stop - start) % 2
        for i in range(start, paired, 2):
            row, at = np.uint64(i), np.uint64(i - start)
            first, second = 0.0, 0.0
            for j in range(d):
                first += numbers[row * d + j] * v[j]
                second += numbers[row * d + d + j] * v[j]
            z[at], z[at + np.uint64(1)] = first, second
    for i in range(paired, stop):
        row = np.uint64(i)
        total = 0.0
        for j in range(d):
            total += numbers[row * d + j] * v[j]
        z[np.uint64(i - start)] = total


@njit(**COMPILE)
def _convert(X, start, stop, scratch):
    """Element by element: for arrays, numba would compile the words of errors about their shapes."""
    for i in range(start, stop):
        for j in range(X.shape[1]):
            scratch[i - start, j] = X[i, j]


@njit(**COMPILE)
def _centre(X, start, stop, centre, scratch):
    for i in range(start, stop):
        for j in range(X.shape[1]):
            scratch[i - start, j] = X[i, j] - centre[j]


@njit(**COMPILE)
def project_mixed(X, v, start, stop, z):
    size = blas_block_rows(X.shape[1])
    scratch = np.empty((size, X.shape[1]))
    for a in range(start, stop, size):
        b = min(a + size, stop)
        _convert(X, a, b, scratch)
        np.dot(scratch[: b - a], v, z[a - start : b - start])


@njit(**COMPILE)
def project_columns(XT, v, start, stop, z):
    for a in range(start, stop, COLUMN_BLOCK):
        block = z[a - start : min(a + COLUMN_BLOCK, stop) - start]
        block[:] = 0.0
        for j in range(len(v)):
            column = XT[j, a : a + len(block)]
            vj = v[j]
            for i in range(len(block)):
                block[i] += vj * column[i]


@njit(**COMPILE)
def pull_rows(X, w, start, stop, gradient):
    """Adds Σ w_{i − start} X_i over the rows start … stop to ``gradient``."""
    numbers, d = X.reshape(X.size), np.uint64(X.shape[1])
    paired = start
    if X.shape[1] <= _SHORT:
        paired = stop - (stop - start) % 2
        for i in range(start, paired, 2):
            row, place = np.uint64(i), np.uint64(i - start)
            first, second = w[place], w[place + np.uint64(1)]
            for j in range(d):
                gradient[j] += first * numbers[row * d + j] + second * numbers[row * d + d + j]
    for i in range(paired, stop):
        row = np.uint64(i)
        weight = w[np.uint64(i - start)]
        for j in range(d):
            gradient[j] += weight * numbers[row * d + j]


@njit(**COMPILE)
def pull_mixed(X, w, start, stop, gradient):
    size = blas_block_rows(X.shape[1])
    scratch = np.empty((size, X.shape[1]))
    for a in range(start, stop, size):
        b = min(a + size, stop)
        _convert(X, a, b, scratch)
        pulled = np.dot(w[a - start : b - start], scratch[: b - a])
        for j in range(len(pulled)):
            gradient[j] += pulled[j]


@njit(**COMPILE)
def project_centred(X, centre, v, start, stop, z):
    size = blas_block_rows(X.shape[1])
    scratch = np.empty((size, X.shape[1]))
    for a in range(start, stop, size):
        b = min(a + size, stop)
        _centre(X, a, b, centre, scratch)
        np.dot(scratch[: b - a], v, z[a - start : b - start])


@njit(**COMPILE)
def pull_centred(X, centre, w, start, stop, gradient):
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
    for a in range(start, stop, COLUMN_BLOCK):
        weights = w[a - start : min(a + COLUMN_BLOCK, stop) - start]
        for j in range(len(gradient)):
            column = XT[j, a : a + len(weights)]
            total = 0.0
            for i in range(len(weights)):
                total += column[i] * weights[i]
            gradient[j] += total
