"""Moment bins: from points to the moments of their bins, and from the polynomials of bins to a weight for each point.

A layout (:class:`melc.sums.bins.Layout`) is passed as ``origin`` and arrays of shape (2,) over the two classes c:
``inverse`` (one over the bin width), ``low`` (first bin), ``count`` (number of bins) and ``offset`` (first row of the
class in tables that hold both classes). A point z of class c lies in bin ``k = floor(t)``, t = (z − origin) ·
inverse[c], with the local coordinate u = 2 (t − k) − 1 in [−1, 1). The number P of moments is ORDER, a compile-time
constant.

Points are passed as ``z`` and ``codes``, both of shape (n,). ``weights`` has shape (n,) with ``step`` 1, or shape (1,)
with ``step`` 0 if all points have the same weight.

Indices that cannot be negative are unsigned: numba then leaves out the test for negative indices, and the loops run two
to five times faster.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

# Number of moments of a bin: the zeroth up to the seventh.
ORDER = 8

# Points are located in blocks of this size, so that their rows and coordinates stay in the first-level cache.
LOCATED = 512

_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(i) for i in range(8))


@njit(inline="always")
def add_moments(moments, row, weight, u):
    """Add weight · uʲ to ``moments[row, j]`` for j < P."""
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


@njit(inline="always")
def polynomial(c, row, u):
    """Return Σ_j c[row, j] uʲ over j < P − 1, by Horner's rule."""
    y = (c[row, _6] * u + c[row, _5]) * u + c[row, _4]
    return (((y * u + c[row, _3]) * u + c[row, _2]) * u + c[row, _1]) * u + c[row, _0]


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
def bin_points(z, codes, weights, step, origin, inverse, low, count, offset, moments):
    """Add the moments of the points to ``moments``, shape (n_bins, P). Return the number of points in no bin."""
    rows, local = np.empty(LOCATED, np.int32), np.empty(LOCATED)
    outside = 0
    for first in range(0, len(z), LOCATED):
        last = min(first + LOCATED, len(z))
        locate(z[first:last], codes[first:last], origin, inverse, low, count, offset, rows, local)
        weight = weights[0]
        for position in range(last - first):
            i = np.uint64(position)
            if rows[i] < 0:
                outside += 1
                continue
            if step == 1:
                weight = weights[np.uint64(first + position)]
            add_moments(moments, np.uint64(rows[i]), weight, local[i])
    return outside


@njit(**COMPILE)
def weigh_points(z, codes, weights, step, origin, inverse, low, count, offset, table, w):
    """Write the gradient weight of each point to ``w``, shape (n,): weight · p(u), and zero for points in no bin.

    p is the polynomial of the point's bin, a row of ``table``, shape (n_bins, P − 1).
    """
    rows, local = np.empty(LOCATED, np.int32), np.empty(LOCATED)
    for first in range(0, len(z), LOCATED):
        last = min(first + LOCATED, len(z))
        locate(z[first:last], codes[first:last], origin, inverse, low, count, offset, rows, local)
        weight = weights[0]
        for position in range(last - first):
            i = np.uint64(position)
            own = 0.0
            if rows[i] >= 0:
                if step == 1:
                    weight = weights[np.uint64(first + position)]
                own = weight * polynomial(table, np.uint64(rows[i]), local[i])
            w[np.uint64(first + position)] = own


@njit(**COMPILE)
def add_point_moments(u, rows, weights, moments):
    """Add the moments of points with known local coordinates ``u`` and table ``rows``, all arrays of shape (n,)."""
    for i in range(len(u)):
        power = weights[i]
        for j in range(moments.shape[1]):
            moments[rows[i], j] += power
            power *= u[i]


@njit(**COMPILE)
def merge_moments(moments, parents, shrink, shifts, merged):
    """Add the moments of bins, shape (n, P), to those of their wider parents, ``merged`` of shape (n_parents, P).

    The coordinate u of bin k is ``shrink · u + shifts[k]`` in bin ``parents[k]``. The result is exact, by the binomial
    theorem.
    """
    order = moments.shape[1]
    powers = np.empty(order)
    for k in range(len(moments)):
        # powers holds the coefficients of (shrink · u + shift)^j, updated from j to j + 1.
        powers[:] = 0.0
        powers[0] = 1.0
        for j in range(order):
            total = 0.0
            for i in range(j + 1):
                total += powers[i] * moments[k, i]
            merged[parents[k], j] += total
            for i in range(min(j + 1, order - 1), 0, -1):
                powers[i] = shifts[k] * powers[i] + shrink * powers[i - 1]
            powers[0] *= shifts[k]


@njit(**COMPILE)
def split_polynomials(parent_coefficients, parents, shrink, shifts, coefficients):
    """Add the polynomials of parent bins, in the coordinates of the bins inside, to ``coefficients``, shape (n, P).

    This is the transpose of :func:`merge_moments`, with the same ``parents``, ``shrink`` and ``shifts``.
    """
    order = coefficients.shape[1]
    powers = np.empty(order)
    for k in range(len(coefficients)):
        powers[:] = 0.0
        powers[0] = 1.0
        for j in range(order):
            c = parent_coefficients[parents[k], j]
            for i in range(j + 1):
                coefficients[k, i] += powers[i] * c
            for i in range(min(j + 1, order - 1), 0, -1):
                powers[i] = shifts[k] * powers[i] + shrink * powers[i - 1]
            powers[0] *= shifts[k]


@njit(**COMPILE)
def sample_spread(z, weights):
    """Return the weighted mean, the weighted variance, the minimum and the maximum of z, shape (n,)."""
    total = 0.0
    mean = 0.0
    low, high = z[0], z[0]
    for i in range(len(z)):
        total += weights[i]
        mean += weights[i] * z[i]
        low, high = min(low, z[i]), max(high, z[i])
    mean /= total
    variance = 0.0
    for i in range(len(z)):
        variance += weights[i] * (z[i] - mean) ** 2
    return mean, variance / total, low, high


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
