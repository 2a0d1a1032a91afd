"""Moment bins: points to moments, polynomials to a weight per point.

A layout is passed as arrays over the two classes c: ``inverse`` (one over the bin width), ``low`` (first bin),
``count`` (number of bins) and ``offset`` (first row of the class in tables that hold both classes). A point z
of class c lies in bin ``floor((z − origin) · inverse[c])`` with local coordinate u ∈ [−1, 1). The
number P of moments is ORDER, a constant for the compiler.

Indices are unsigned where they cannot be negative: numba then spares the test for counting from the end,
and loops run two to five times faster.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.prefetch import prefetch

# Moments that a bin keeps: the zeroth up to the seventh.
ORDER = 8

# Points that are located, then worked on, while rows and coordinates are in the nearest cache.
LOCATED = 512
_CACHE_LINE = np.uint64(8)  # numbers

_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(i) for i in range(8))


@njit(inline="always")
def _add_moments(moments, row, weight, u):
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
def _polynomial(c, row, u):
    """Value at u of the polynomial of degree P − 2 in a row of c, by Horner's rule."""
    y = (c[row, _6] * u + c[row, _5]) * u + c[row, _4]
    return (((y * u + c[row, _3]) * u + c[row, _2]) * u + c[row, _1]) * u + c[row, _0]


@njit(**COMPILE)
def locate(z, codes, origin, inverse, low, count, offset, rows, local):
    """Row of the table (−1: none) and local coordinate of every point: straight-line code, which vectorises."""
    # The class picks its entry by arithmetic, a + c (b − a): a choice or a look-up would keep the loop scalar.
    # Exact, since widths are powers of two less than 2^52 apart, and the rest are whole numbers.
    inverse_0, inverse_more = inverse[0], inverse[1] - inverse[0]
    low_0, low_more = low[0], low[1] - low[0]
    count_0, count_more = count[0], count[1] - count[0]
    offset_0, offset_more = float(offset[0]), float(offset[1] - offset[0])
    for i in range(len(z)):
        c = float(codes[i])
        t = (z[i] - origin) * (inverse_0 + c * inverse_more)
        floor = np.floor(t)
        # Compared as floats: the bin of an outlier need not fit an integer.
        bin_number = floor - (low_0 + c * low_more)
        inside = (bin_number >= 0.0) & (bin_number < count_0 + c * count_more)
        rows[i] = np.int32(offset_0 + c * offset_more + bin_number) if inside else np.int32(-1)
        local[i] = 2.0 * (t - floor) - 1.0


@njit(**COMPILE)
def bin_points(z, codes, weights, step, origin, inverse, low, count, offset, moments, ahead, place):
    """Add the moments of points to their bins; returns how many lie in no bin of the layout.

    ``step`` is 1 where every point has a weight and 0 where ``weights`` holds one for all. Adding keeps the core busy
    and the memory idle, so every point has a few numbers fetched, from ``ahead[place]`` on, that are wanted next.
    """
    place = np.uint64(place)
    rows, local = np.empty(LOCATED, np.int32), np.empty(LOCATED)
    outside = 0
    for first in range(0, len(z), LOCATED):
        last = min(first + LOCATED, len(z))
        locate(z[first:last], codes[first:last], origin, inverse, low, count, offset, rows, local)
        weight = weights[0]
        for position in range(last - first):
            i = np.uint64(position)
            prefetch(ahead, place)
            place += _CACHE_LINE
            if rows[i] < 0:
                outside += 1
                continue
            if step == 1:
                weight = weights[np.uint64(first + position)]
            _add_moments(moments, np.uint64(rows[i]), weight, local[i])
    return outside


@njit(**COMPILE)
def weigh_points(z, codes, weights, step, origin, inverse, low, count, offset, table, w):
    """The gradient weight of points: their bin's polynomial times their own weight; none for points in no bin."""
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
                own = weight * _polynomial(table, np.uint64(rows[i]), local[i])
            w[np.uint64(first + position)] = own


@njit(**COMPILE)
def add_point_moments(u, rows, weights, moments):
    """Moments of points whose bins have been looked up already."""
    for i in range(len(u)):
        power = weights[i]
        for j in range(moments.shape[1]):
            moments[rows[i], j] += power
            power *= u[i]


@njit(**COMPILE)
def merge_moments(moments, parents, shrink, shifts, merged):
    """Moments in wider bins: u of a bin becomes shrink·u + shift in its parent. Exact, by the binomial theorem."""
    order = moments.shape[1]
    powers = np.empty(order)
    for k in range(len(moments)):
        # (a u + b)^j, expanded: row j of Pascal's triangle, built as we go.
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
    """Polynomials of wide bins in the coordinates of the bins inside: the transpose of merging moments."""
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
    """Weighted mean and variance, least and largest value."""
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
    """Weight, mean and sum of squares around it with more points (Welford): a row of ``spread`` for either class.

    Point by point and with plain arithmetic: the same bits wherever a stretch ends.
    """
    for i in range(len(z)):
        c = codes[i]
        weight = weights[i * step]
        away = z[i] - spread[c, 1]
        spread[c, 0] += weight
        spread[c, 1] += away * (weight / spread[c, 0])
        spread[c, 2] += weight * away * (z[i] - spread[c, 1])
