"""Moment bins: points to moments, moments to sums, sums to a weight per point.

A layout is passed as arrays over the two classes c: ``inverse`` (one over the bin width), ``low`` (first bin),
``count`` (number of bins) and ``offset`` (first row of the class in tables that hold both classes). A point z
of class c lies in bin ``floor((z − origin) · inverse[c])`` with local coordinate u ∈ [−1, 1). The order P,
the number of moments, is the length of the tuple ``order``: a constant for the compiler, which unrolls by it.

Indices are unsigned where they cannot be negative: numba then spares the test for counting from the end,
and loops run two to five times faster.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.pairs import exp_negative
from melc.kernels.prefetch import prefetch

# Points that are located, then worked on, while rows and coordinates are in the nearest cache.
_LOCATED = 512
_CACHE_LINE = np.uint64(8)  # numbers

# Constants of NumPy's types: what they are passed to is compiled once for them and for variables.
_NO_BINS_APART, _BOTH = np.int64(0), np.bool_(True)

_0, _1, _2, _3, _4, _5, _6, _7 = (np.uint64(i) for i in range(8))


@njit(inline="always")
def _add_moments(moments, row, weight, u, order):
    u2 = u * u
    u3 = u2 * u
    moments[row, _0] += weight
    moments[row, _1] += weight * u
    moments[row, _2] += weight * u2
    moments[row, _3] += weight * u3
    if len(order) > 4:
        u4 = u2 * u2
        moments[row, _4] += weight * u4
        moments[row, _5] += weight * (u4 * u)
        if len(order) > 6:
            moments[row, _6] += weight * (u4 * u2)
            moments[row, _7] += weight * (u4 * u3)


@njit(inline="always")
def _polynomial(c, row, u, order):
    """Value at u of the polynomial of degree P − 2 in a row of c, by Horner's rule."""
    if len(order) == 8:
        y = ((c[row, _6] * u + c[row, _5]) * u + c[row, _4]) * u + c[row, _3]
        return ((y * u + c[row, _2]) * u + c[row, _1]) * u + c[row, _0]
    if len(order) == 6:
        return (((c[row, _4] * u + c[row, _3]) * u + c[row, _2]) * u + c[row, _1]) * u + c[row, _0]
    return (c[row, _2] * u + c[row, _1]) * u + c[row, _0]


@njit(**COMPILE)
def _locate(z, codes, origin, inverse, low, count, offset, rows, local):
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
def bin_points(z, codes, weights, step, origin, inverse, low, count, offset, moments, order, ahead, place):
    """Add the moments of points to their bins; returns how many lie in no bin of the layout.

    ``step`` is 1 where every point has a weight and 0 where ``weights`` holds one for all. Adding keeps the core busy
    and the memory idle, so every point has a few numbers fetched, from ``ahead[place]`` on, that are wanted next.
    """
    place = np.uint64(place)
    rows, local = np.empty(_LOCATED, np.int32), np.empty(_LOCATED)
    outside = 0
    for first in range(0, len(z), _LOCATED):
        last = min(first + _LOCATED, len(z))
        _locate(z[first:last], codes[first:last], origin, inverse, low, count, offset, rows, local)
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
            _add_moments(moments, np.uint64(rows[i]), weight, local[i], order)
    return outside


@njit(**COMPILE)
def weigh_points(z, codes, weights, step, origin, inverse, low, count, offset, table, w, order):
    """The gradient weight of points: their bin's polynomial times their own weight; none for points in no bin."""
    rows, local = np.empty(_LOCATED, np.int32), np.empty(_LOCATED)
    for first in range(0, len(z), _LOCATED):
        last = min(first + _LOCATED, len(z))
        _locate(z[first:last], codes[first:last], origin, inverse, low, count, offset, rows, local)
        weight = weights[0]
        for position in range(last - first):
            i = np.uint64(position)
            own = 0.0
            if rows[i] >= 0:
                if step == 1:
                    weight = weights[np.uint64(first + position)]
                own = weight * _polynomial(table, np.uint64(rows[i]), local[i], order)
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
def _charges(moments, lagrange):
    """Charges at the nodes with the moments of a bin's points: Q_k = A M_k."""
    charges = np.zeros(moments.shape)
    for k in range(moments.shape[0]):
        for a in range(moments.shape[1]):
            for j in range(moments.shape[1]):
                charges[k, a] += lagrange[a, j] * moments[k, j]
    return charges


@njit(**COMPILE)
def _blocks(least, n_blocks, differences, width, variance, nearest):
    """Coupling of the nodes of two bins for every offset, and its derivative by V.

    exp(−(t² − nearest²)/2V), but ∂/∂V of exp(−t²/2V): what has been taken out is put back at the end.
    """
    order = differences.shape[0]
    blocks = np.empty((n_blocks, order, order))
    slopes = np.empty((n_blocks, order, order))
    for o in range(n_blocks):
        for a in range(order):
            for b in range(order):
                t = abs(least + o + differences[a, b]) * width
                g = exp_negative((nearest - t) * (nearest + t) * (0.5 / variance))
                blocks[o, a, b] = g
                slopes[o, a, b] = g * t * t * (0.5 / variance**2)
    return blocks, slopes


@njit(**COMPILE)
def pair_errors(least, n_blocks, hermite, width, variance):
    """Largest error of one pair of points in bins ``least``, ``least + 1``, … apart: see melc.sums.bounds.

    ``hermite`` holds the coefficients of He⁺_P, from the constant up. The errors are multiplied by exp(d²/2V), d the
    least distance of points in the first of these pairs of bins.
    """
    order = len(hermite) - 1
    sigma = np.sqrt(variance)
    angles = 0.0
    log_factorial = 0.0
    for k in range(1, order + 1):
        angles += 1.0 / np.tan((2 * k - 1) * np.pi / (4 * order))
        log_factorial += np.log(float(k))
    log_nodes = order * np.log(width / (4 * sigma)) - log_factorial
    errors = np.empty(n_blocks)
    nearest = max(least - 1, 0)
    for o in range(n_blocks):
        between = max(least + o - 1, 0)
        far = (least + o + 1) * (width / sigma)
        polynomial = 0.0
        for j in range(order, -1, -1):
            polynomial = polynomial * far + hermite[j]
        # Of classes far apart the squares agree in every digit: whole numbers of bins are compared before.
        beyond = float(nearest - between) * (nearest + between) * (width / sigma) ** 2
        cramer = 0.5 * log_factorial + (beyond + (nearest * (width / sigma)) ** 2) / 4
        absolute = np.log(polynomial) + beyond / 2
        exponent = min(cramer, absolute) + log_nodes
        errors[o] = 2 * (1 + angles / order) * np.exp(exponent)
    return errors


@njit(**COMPILE)
def _slopes_of_potential(potential, lagrange, factor, polynomials):
    """d/du of the polynomial through the potential at the nodes, times ``factor``; the last column stays zero."""
    order = potential.shape[1]
    for k in range(potential.shape[0]):
        for j in range(1, order):
            c = 0.0
            for a in range(order):
                c += potential[k, a] * lagrange[a, j]
            polynomials[k, j - 1] = c * j * factor
        polynomials[k, order - 1] = 0.0


@njit(**COMPILE)
def _couple(blocks, slopes, offset, charges_x, k, charges_y, other, phi_x, phi_y, both):
    """q_k G q_l and q_k (∂G/∂V) q_l of two bins; each adds to the potential in the other.

    Plain unsigned indices throughout: a view of a row would cost more than the row's arithmetic.
    """
    order = charges_x.shape[1]
    value = 0.0
    derivative = 0.0
    o, i, j = np.uint64(offset), np.uint64(k), np.uint64(other)
    for row in range(order):
        a = np.uint64(row)
        q = charges_x[i, a]
        along = 0.0
        slope_along = 0.0
        for column in range(order):
            b = np.uint64(column)
            along += blocks[o, a, b] * charges_y[j, b]
            slope_along += slopes[o, a, b] * charges_y[j, b]
        phi_x[i, a] += along
        value += q * along
        derivative += q * slope_along
    if both:
        for row in range(order):
            a = np.uint64(row)
            q = charges_x[i, a]
            for column in range(order):
                b = np.uint64(column)
                phi_y[j, b] += blocks[o, a, b] * q
    return value, derivative


@njit(**COMPILE)
def _couple_rows(upper, lower, o, blocks, slopes, b0, phi_upper, phi_lower, both):
    """As _couple, for all pairs of bins o apart at once: charges node by node, one column a bin, empty ones too.

    Σ_k q_k G q_{k−o} = Σ_ab G_ab c_ab with c_ab the correlation of two rows: long loops that vectorise, and ∂/∂V for
    next to nothing.
    """
    order = upper.shape[0]
    value = 0.0
    derivative = 0.0
    n = upper.shape[1] - o
    for a in range(order):
        u = upper[a, o:]
        phi_u = phi_upper[a, o:]
        for b in range(order):
            low = lower[b, :n]
            g = blocks[b0, a, b]
            correlation = 0.0
            for k in range(n):
                correlation += u[k] * low[k]
                phi_u[k] += g * low[k]
            value += g * correlation
            derivative += slopes[b0, a, b] * correlation
            if both:
                phi_l = phi_lower[b, :n]
                for k in range(n):
                    phi_l[k] += g * u[k]
    return value, derivative


@njit(**COMPILE)
def _correlation(upper, lower, o):
    """Σ_k upper_{k+o} lower_k."""
    total = 0.0
    for k in range(len(lower) - o):
        total += upper[k + o] * lower[k]
    return total


@njit(**COMPILE)
def _total(mass):
    total = 0.0
    for k in range(len(mass)):
        total += mass[k, 0]
    return total


@njit(**COMPILE)
def _spread_out(keys, values, first, n_bins):
    """Occupied bins as columns of a table with all bins."""
    table = np.zeros((values.shape[1], n_bins))
    for k in range(len(keys)):
        for j in range(values.shape[1]):
            table[j, keys[k] - first] = values[k, j]
    return table


@njit(**COMPILE)
def _gather(keys, table, first, values):
    for k in range(len(keys)):
        for j in range(values.shape[1]):
            values[k, j] = table[j, keys[k] - first]


@njit(**COMPILE)
def _mostly_occupied(occupied, n_bins):
    """Whether long loops over all bins beat short ones over the occupied."""
    return n_bins <= 4 * occupied + 16


@njit(**COMPILE)
def _potentials_within(keys, charges, mass, blocks, slopes, errors, potential):
    """(S, ∂S/∂V, error) of the pairs of bins less than len(blocks) apart, and the potential at the nodes."""
    n_blocks = len(blocks)
    n_bins = keys[-1] - keys[0] + 1
    total = 0.0
    slope = 0.0
    error = 0.0
    if _mostly_occupied(len(keys), n_bins):
        table = _spread_out(keys, charges, keys[0], n_bins)
        masses = _spread_out(keys, mass, keys[0], n_bins)[0]
        phi = np.zeros(table.shape)
        for o in range(n_blocks):
            factor = 1.0 if o == 0 else 2.0
            value, derivative = _couple_rows(table, table, o, blocks, slopes, o, phi, phi, o > 0)
            total += factor * value
            slope += factor * derivative
            error += factor * errors[o] * _correlation(masses, masses, o)
        _gather(keys, phi, keys[0], potential)
        return total, slope, error
    for k in range(len(keys)):
        other = k
        while other >= 0 and keys[k] - keys[other] < n_blocks:
            o = keys[k] - keys[other]
            factor = 1.0 if other == k else 2.0
            value, derivative = _couple(blocks, slopes, o, charges, k, charges, other, potential, potential, other != k)
            total += factor * value
            slope += factor * derivative
            error += factor * mass[k, 0] * mass[other, 0] * errors[o]
            other -= 1
    return total, slope, error


@njit(**COMPILE)
def sum_within(keys, moments, lagrange, differences, hermite, width, variance, n_blocks, polynomials):
    """(S, ∂S/∂V, error of S) over all pairs of points of one class in its bins.

    Bins ``n_blocks`` and more apart are left out. ``polynomials`` receives ∂ log S/∂z in every bin.
    """
    charges = _charges(moments, lagrange)
    blocks, slopes = _blocks(_NO_BINS_APART, n_blocks, differences, width, variance, 0.0)
    errors = pair_errors(_NO_BINS_APART, n_blocks, hermite, width, variance)
    potential = np.zeros(moments.shape)
    mass = moments[:, :1].copy()
    total, slope, error = _potentials_within(keys, charges, mass, blocks, slopes, errors, potential)
    if keys[-1] - keys[0] >= n_blocks:
        left_out = (n_blocks - 1) * width
        error += _total(mass) ** 2 * np.exp(-left_out * left_out / (2 * variance))
    _slopes_of_potential(potential, lagrange, 4.0 / (width * total), polynomials)
    return total, slope, error


@njit(**COMPILE)
def _potentials_across(
    keys_x, charges_x, mass_x, keys_y, charges_y, mass_y, blocks, slopes, errors, least, phi_x, phi_y
):  # fmt: skip
    """As _potentials_within, for the pairs of two classes; ``blocks[o]`` serves bins least + o apart."""
    first = min(keys_x[0], keys_y[0])
    n_bins = max(keys_x[-1], keys_y[-1]) - first + 1
    reach = least + len(blocks)
    total = 0.0
    slope = 0.0
    error = 0.0
    if _mostly_occupied(min(len(keys_x), len(keys_y)), n_bins):
        x, y = _spread_out(keys_x, charges_x, first, n_bins), _spread_out(keys_y, charges_y, first, n_bins)
        nx, ny = _spread_out(keys_x, mass_x, first, n_bins)[0], _spread_out(keys_y, mass_y, first, n_bins)[0]
        table_x, table_y = np.zeros(x.shape), np.zeros(y.shape)
        for o in range(least, min(reach, n_bins)):
            value, derivative = _couple_rows(x, y, o, blocks, slopes, o - least, table_x, table_y, _BOTH)
            total += value
            slope += derivative
            error += errors[o - least] * _correlation(nx, ny, o)
            if o > 0:  # y above x: the same block with the roles exchanged
                value, derivative = _couple_rows(y, x, o, blocks, slopes, o - least, table_y, table_x, _BOTH)
                total += value
                slope += derivative
                error += errors[o - least] * _correlation(ny, nx, o)
        _gather(keys_x, table_x, first, phi_x)
        _gather(keys_y, table_y, first, phi_y)
        return total, slope, error
    start = 0
    for k in range(len(keys_x)):
        while start < len(keys_y) and keys_x[k] - keys_y[start] >= reach:
            start += 1
        other = start
        while other < len(keys_y) and keys_y[other] - keys_x[k] < reach:
            o = abs(keys_x[k] - keys_y[other]) - least
            if keys_x[k] >= keys_y[other]:
                value, derivative = _couple(blocks, slopes, o, charges_x, k, charges_y, other, phi_x, phi_y, _BOTH)
            else:
                value, derivative = _couple(blocks, slopes, o, charges_y, other, charges_x, k, phi_y, phi_x, _BOTH)
            total += value
            slope += derivative
            error += mass_x[k, 0] * mass_y[other, 0] * errors[o]
            other += 1
    return total, slope, error


@njit(**COMPILE)
def sum_across(
    keys_x, moments_x, keys_y, moments_y, lagrange, differences, hermite, width, variance, least, n_blocks,
    polynomials_x, polynomials_y,
):  # fmt: skip
    """As sum_within, over the pairs of two classes whose nearest bins are ``least`` apart.

    S and its error are multiplied by exp(nearest²/2V), nearest = max(least − 1, 0) · width.
    """
    nearest = max(least - 1, 0) * width
    blocks, slopes = _blocks(least, n_blocks, differences, width, variance, nearest)
    errors = pair_errors(least, n_blocks, hermite, width, variance)
    phi_x, phi_y = np.zeros(moments_x.shape), np.zeros(moments_y.shape)
    mass_x, mass_y = moments_x[:, :1].copy(), moments_y[:, :1].copy()
    total, slope, error = _potentials_across(
        keys_x, _charges(moments_x, lagrange), mass_x, keys_y, _charges(moments_y, lagrange), mass_y,
        blocks, slopes, errors, least, phi_x, phi_y,
    )  # fmt: skip
    if not total * width > 0.0:  # all of it about the smallest number: nothing can be said
        polynomials_x[:] = 0.0
        polynomials_y[:] = 0.0
        return 0.0, 0.0, np.inf
    left_out = (least + n_blocks - 1) * width
    exponent = (nearest - left_out) * (nearest + left_out) / (2 * variance)
    error += _total(mass_x) * _total(mass_y) * np.exp(exponent)
    _slopes_of_potential(phi_x, lagrange, 2.0 / (width * total), polynomials_x)
    _slopes_of_potential(phi_y, lagrange, 2.0 / (width * total), polynomials_y)
    return total, slope, error


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
