"""Moment bins: from points to the moments of their bins, and from the polynomials of bins to a weight for each point.

A layout (:class:`melc.sums.bins.BinLayout`) is passed as ``origin`` and pairs of numbers for the two classes c:
``inverse`` (one over the bin width), ``low`` (first bin), ``count`` (number of bins) and ``offset`` (first row of the
class in tables that hold both classes). A point z of class c lies in bin ``k = floor(t)``, t = (z − origin) ·
inverse[c], with the local coordinate u = 2 (t − k) − 1 in [−1, 1). The number P of moments is ORDER, a compile-time
constant.

:func:`locate` finds the table row and the local coordinate of every point; the other kernels take these as ``rows`` and
``local``, both of shape (n,). ``weights`` has shape (n,) with ``step`` 1, or shape (1,) with ``step`` 0 if all points
have the same weight.

Indices that cannot be negative are unsigned: numba then leaves out the test for negative indices, and the loops run two
to five times faster.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

# Number of moments of a bin: the zeroth up to the seventh.
ORDER = 8

_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(i) for i in range(8))


@njit(**COMPILE)
def locate(z, codes, origin, inverse, low, count, offset, rows, local):
    """Write the table row of each point to ``rows`` (−1 if it lies in no bin) and its local coordinate to ``local``."""
    # The entry of a class is computed as a + c (b − a), because a branch or a look-up would prevent vectorisation.
    # This is exact: widths are powers of two less than 2^52 apart, and the other entries are whole numbers.
    inverse_0, inverse_more = inverse[0], inverse[1] - inverse[0]
    low_0, low_more = low[0], low[1] - low[0]
    count_0, count_more = count[0], count[1] - count[0]
    offset_0, offset_more = float(offset[0]), float(offset[1] - offset[0])
    for i in range(len(z)):
        c = float(codes[i])
        t = (z[i] - origin) * (inverse_0 + c * inverse_more)
        floor = np.floor(t)
        # Compared as floats: the bin number of an outlier may be too large for an integer.
        bin_number = floor - (low_0 + c * low_more)
        inside = (bin_number >= 0.0) & (bin_number < count_0 + c * count_more)
        rows[i] = np.int32(offset_0 + c * offset_more + bin_number) if inside else np.int32(-1)
        local[i] = 2.0 * (t - floor) - 1.0


@njit(**COMPILE)
def bin_points(rows, local, weights, step, moments):
    """Add w uʲ of each point to ``moments[row, j]``, shape (n_bins, P). Return the number of points in no bin."""
    outside = 0
    weight = weights[0]
    for position in range(len(rows)):
        i = np.uint64(position)
        if rows[i] < 0:
            outside += 1
            continue
        if step == 1:
            weight = weights[i]
        row, u = np.uint64(rows[i]), local[i]
        u2 = u * u
        u3 = u2 * u
        u4 = u2 * u2
        moments[row, _0] += weight
        moments[row, _1] += weight * u
        moments[row, _2] += weight * u2
        moments[row, _3] += weight * u3
        moments[row, _4] += weight * u4
        moments[row, _5] += weight * (u4 * u)
        moments[row, _6] += weight * (u4 * u2)
        moments[row, _7] += weight * (u4 * u3)
    return outside


@njit(**COMPILE)
def weigh_points(rows, local, weights, step, table, w):
    """Write the gradient weight of each point to ``w``, shape (n,): weight · p(u), and zero for points in no bin.

    p is the polynomial of the point's bin, a row of ``table``, shape (n_bins, P − 1).
    """
    weight = weights[0]
    for position in range(len(rows)):
        i = np.uint64(position)
        own = 0.0
        if rows[i] >= 0:
            if step == 1:
                weight = weights[i]
            row, u = np.uint64(rows[i]), local[i]
            y = (table[row, _6] * u + table[row, _5]) * u + table[row, _4]
            y = ((y * u + table[row, _3]) * u + table[row, _2]) * u + table[row, _1]
            own = weight * (y * u + table[row, _0])
        w[i] = own


def add_point_moments(u, rows, weights, moments):
    """Add the moments of a few points with local coordinates ``u`` in table ``rows``, all arrays of shape (n,).

    One by one, so that the bits do not depend on how points are divided into calls.
    """
    power = weights
    for j in range(moments.shape[1]):
        np.add.at(moments[:, j], rows, power)
        power = power * u


@njit(**COMPILE)
def map_bins(factor, matrices, which, source, sources, target, targets):
    """Add ``factor · matrices[which[k]] @ source[sources[k]]`` to ``target[targets[k]]``, for all k, in this order.

    The matrices have shape (m, p, q), the tables ``source`` and ``target`` one row for each bin, of length q and p.
    """
    for k in range(len(which)):
        matrix, given, found = which[k], sources[k], targets[k]
        for a in range(target.shape[1]):
            total = 0.0
            for j in range(source.shape[1]):
                total += matrices[matrix, a, j] * source[given, j]
            target[found, a] += factor * total


@njit(**COMPILE)
def measure_classes(z, codes, weights, step, spread):
    """Write the weight, the mean, the variance, the smallest and the largest point of each class to ``spread``.

    It has shape (2, 5) and must be zero before, with infinities as the smallest and the largest point.
    """
    for i in range(len(z)):
        c, weight = codes[i], weights[i * step]
        spread[c, 0] += weight
        spread[c, 1] += weight * z[i]
        spread[c, 3] = min(spread[c, 3], z[i])
        spread[c, 4] = max(spread[c, 4], z[i])
    for c in range(2):
        spread[c, 1] /= spread[c, 0]
    for i in range(len(z)):
        c = codes[i]
        away = z[i] - spread[c, 1]
        spread[c, 2] += weights[i * step] * away * away
    for c in range(2):
        spread[c, 2] /= spread[c, 0]


@njit(cache=True, nogil=True)
def add_spread(z, codes, weights, step, spread):
    """Update ``spread`` with more points, by Welford's method.

    ``spread``, shape (2, 3), holds the weight, the mean and the sum of squares around it for each class. Points are
    added one by one and without fast-math, so the result does not depend on how the points are divided into calls.
    """
    for i in range(len(z)):
        c = codes[i]
        weight = weights[i * step]
        away = z[i] - spread[c, 1]
        spread[c, 0] += weight
        spread[c, 1] += away * (weight / spread[c, 0])
        spread[c, 2] += weight * away * (z[i] - spread[c, 1])
