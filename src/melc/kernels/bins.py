"""Moment bins: from points to the moments of their bins, sums over pairs of bins, and back to a weight for each point.

A layout (:class:`melc.sums.bins.BinLayout`) is passed as ``origin`` and pairs of numbers for the two classes c:
``inverse`` (one over the bin width), ``low`` (first bin), ``count`` (number of bins) and ``offset`` (first row of the
class in tables that hold both classes). A point z of class c lies in bin ``k = floor(t)``, t = (z − origin) ·
inverse[c], with the local coordinate u = 2 (t − k) − 1 in [−1, 1). The number P of moments is ORDER, a compile-time
constant.

:func:`locate` finds the table row and the local coordinate of every point; the other kernels take these as ``rows`` and
``local``, both of shape (n,). ``weights`` has shape (n,) with ``step`` 1, or shape (1,) with ``step`` 0 if all points
have the same weight.

For the sums, the points of a bin are replaced by P charges at its Chebyshev nodes that have the same first P moments.
Charges are stored in tables of shape (P + 1, n_bins): one row for each node, and last the total weights of the bins.
Potentials are stored in tables of shape (P, n_bins). ``keys``, shape (n_bins,), are bin numbers in ascending order.
``blocks[o]`` and ``slopes[o]``, both of shape (n_offsets, P, P), hold the coupling of the nodes of two bins whose
numbers differ by least + o, and its derivative by V. ``errors[o]`` bounds the error of one pair of points in such bins.

Indices that cannot be negative are unsigned: numba then leaves out the test for negative indices, and the loops run two
to five times faster.
"""

import math

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.pairs import exp_negative

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

    They are added one by one, so that the result does not depend on how points are divided into calls.
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


@njit(**COMPILE)
def couple_nodes(least, differences, hermite, factor, log_factorial, width, variance, blocks, slopes, errors):
    """Write the couplings of nodes to ``blocks``, their derivatives by V to ``slopes``, and bounds to ``errors``.

    A coupling is g = exp(−(t² − nearest²)/2V), with t the distance of two nodes and ``nearest`` the least distance of
    points in bins ``least`` apart. Taking this exponent out avoids underflow; it is added to the logarithm of the sum.
    The slope is g t²/2V²: the derivative of exp(−t²/2V), with the same exponent taken out afterwards.

    ``errors[o]`` is the bound of :func:`melc.sums.bounds.moment_bin_error` for one pair of points in bins ``least + o``
    apart, with the same exponent taken out. ``hermite``, shape (P + 1,), holds the coefficients of He⁺_P, constant
    first; ``factor`` is 2 (1 + Λ_P).
    """
    order = differences.shape[0]
    nearest = max(least - 1, 0)
    for o in range(len(blocks)):
        for a in range(order):
            for b in range(order):
                # Whole numbers of bins are subtracted first: across a wide gap, t and nearest agree in nearly all
                # digits.
                beyond = abs(least - nearest + o + differences[a, b]) * width
                t = nearest * width + beyond
                g = exp_negative(-beyond * (nearest * width + t) * (0.5 / variance))
                blocks[o, a, b] = g
                slopes[o, a, b] = g * t * t * (0.5 / (variance * variance))
    unit = width / math.sqrt(variance)
    log_nodes = order * math.log(unit / 4) - log_factorial
    for o in range(len(errors)):
        between = max(least + o - 1, 0)
        far = (least + o + 1) * unit
        polynomial = 0.0
        for j in range(order, -1, -1):
            polynomial = polynomial * far + hermite[j]
        # If the classes are far apart the squares agree in all digits, so whole numbers of bins are subtracted first.
        beyond = float(nearest - between) * (nearest + between) * (unit * unit)
        cramer = 0.5 * log_factorial + (beyond + (nearest * unit) * (nearest * unit)) / 4
        absolute = math.log(polynomial) + beyond / 2
        errors[o] = factor * math.exp(min(cramer, absolute) + log_nodes)


@njit(**COMPILE)
def couple_bins(upper, lower, least, blocks, slopes, errors, phi_upper, phi_lower):
    """Return (S, ∂S/∂V, error) over pairs of a bin in ``upper`` and a bin in ``lower`` at least ``least`` below it.

    ``upper`` and ``lower`` are charge tables of all bins, empty ones included. Each bin adds to the potential in the
    other, in ``phi_upper`` and ``phi_lower``. For offset o the sum is Σ_k q_{k+o}ᵀ G q_k = Σ_ab G_ab c_ab, with c_ab
    the correlation of row a of ``upper`` and row b of ``lower``. These long loops vectorise, and ∂S/∂V costs little
    more.
    """
    order = blocks.shape[1]
    value = 0.0
    slope = 0.0
    error = 0.0
    for block in range(min(len(blocks), upper.shape[1] - least)):
        o = least + block
        n = upper.shape[1] - o
        for a in range(order):
            u = upper[a, o:]
            phi_u = phi_upper[a, o:]
            for b in range(order):
                low = lower[b, :n]
                phi_l = phi_lower[b, :n]
                g = blocks[block, a, b]
                correlation = 0.0
                for k in range(n):
                    correlation += u[k] * low[k]
                    phi_u[k] += g * low[k]
                for k in range(n):
                    phi_l[k] += g * u[k]
                value += g * correlation
                slope += slopes[block, a, b] * correlation
        weight_u, weight_l = upper[order, o:], lower[order, :n]
        pairs = 0.0
        for k in range(n):
            pairs += weight_u[k] * weight_l[k]
        error += errors[block] * pairs
    return value, slope, error


@njit(**COMPILE)
def couple_occupied(keys_u, upper, keys_l, lower, least, blocks, slopes, errors, phi_upper, phi_lower):
    """Return the same as :func:`couple_bins`, from tables of the occupied bins only, with their numbers ``keys``.

    The arrays are indexed directly: making a view would cost more than the arithmetic of a pair.
    """
    order = np.uint64(blocks.shape[1])
    value = 0.0
    slope = 0.0
    error = 0.0
    start = 0
    for k in range(len(keys_u)):
        while start < len(keys_l) and keys_u[k] - keys_l[start] >= least + len(blocks):
            start += 1
        other = start
        while other < len(keys_l) and keys_u[k] - keys_l[other] >= least:
            o, i, j = np.uint64(keys_u[k] - keys_l[other] - least), np.uint64(k), np.uint64(other)
            for a in range(order):
                q = upper[a, i]
                along = 0.0
                slope_along = 0.0
                for b in range(order):
                    along += blocks[o, a, b] * lower[b, j]
                    slope_along += slopes[o, a, b] * lower[b, j]
                    phi_lower[b, j] += blocks[o, a, b] * q
                phi_upper[a, i] += along
                value += q * along
                slope += q * slope_along
            error += upper[order, i] * lower[order, j] * errors[o]
            other += 1
    return value, slope, error
