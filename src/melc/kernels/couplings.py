"""Sums over pairs of moment bins: :func:`sum_bins` computes a whole sum, the other functions are its steps.

The points of a bin are replaced by P charges at its Chebyshev nodes that have the same first P moments. Charges are
stored in tables of shape (P + 1, n_bins): one row for each node, and a last row with the mass of the bins. Potentials
are stored in tables of shape (P, n_bins). ``keys``, shape (n_bins,), are bin numbers in ascending order.

``blocks[o]`` and ``slopes[o]``, both of shape (n_offsets, P, P), hold the coupling of the nodes of two bins whose
numbers differ by least + o, and its derivative by V. ``errors[o]`` bounds the error of one pair of points in such bins.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.pairs import exp_negative, nearest_distance


@njit(**COMPILE)
def put_charges(columns, moments, lagrange, table):
    """Write the charges Q_k = A M_k of bin k, and below them its mass, to column ``columns[k]`` of ``table``.

    M_k is row k of ``moments``, shape (n_bins, P), and A is ``lagrange``, shape (P, P).
    """
    order = moments.shape[1]
    for k in range(len(columns)):
        column = columns[k]
        for a in range(order):
            charge = 0.0
            for j in range(order):
                charge += lagrange[a, j] * moments[k, j]
            table[a, column] = charge
        table[order, column] = moments[k, 0]


@njit(**COMPILE)
def couple_nodes(least, differences, width, variance, blocks, slopes):
    """Write the couplings of nodes to ``blocks`` and their derivatives by V to ``slopes``.

    A coupling is g = exp(−(t² − nearest²)/2V), with t the distance of two nodes and ``nearest`` the least distance of
    points in bins ``least`` apart. Taking this exponent out avoids underflow; :func:`sum_bins` returns it separately.
    The slope is g t²/2V²: the derivative of exp(−t²/2V), with the same exponent taken out afterwards.
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


@njit(**COMPILE)
def pair_errors(least, hermite, factor, log_factorial, width, sigma, errors):
    """Write the bounds of :func:`melc.sums.bounds.moment_bin_error` for one pair of points to ``errors``.

    ``errors[o]`` is for points in bins ``least + o`` apart. ``hermite``, shape (P + 1,), holds the coefficients of
    He⁺_P, constant first; ``factor`` is 2 (1 + Λ_P); ``sigma`` is √V. All errors are multiplied by exp(d²/2V), with d
    the least distance of points in bins ``least`` apart.
    """
    order = len(hermite) - 1
    log_nodes = order * np.log(width / (4 * sigma)) - log_factorial
    nearest, unit = max(least - 1, 0), width / sigma
    for o in range(len(errors)):
        between = max(least + o - 1, 0)
        far = (least + o + 1) * unit
        polynomial = 0.0
        for j in range(order, -1, -1):
            polynomial = polynomial * far + hermite[j]
        # If the classes are far apart the squares agree in all digits, so whole numbers of bins are subtracted first.
        beyond = float(nearest - between) * (nearest + between) * (unit * unit)
        cramer = 0.5 * log_factorial + (beyond + (nearest * unit) * (nearest * unit)) / 4
        absolute = np.log(polynomial) + beyond / 2
        errors[o] = factor * np.exp(min(cramer, absolute) + log_nodes)


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
        mass_u, mass_l = upper[order, o:], lower[order, :n]
        pairs = 0.0
        for k in range(n):
            pairs += mass_u[k] * mass_l[k]
        error += errors[block] * pairs
    return value, slope, error


@njit(**COMPILE)
def couple_occupied(keys_u, upper, keys_l, lower, least, blocks, slopes, errors, phi_upper, phi_lower):
    """Return the same as :func:`couple_bins`, from tables of the occupied bins only, with their numbers ``keys``.

    All indices are plain and unsigned: making a view would cost more than the arithmetic of a pair.
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


@njit(**COMPILE)
def read_slopes(columns, potential, lagrange, factor, polynomials):
    """Write the derivative of the potential within each bin, as a polynomial in u, to ``polynomials``, shape (n, P).

    The potential is the polynomial through its values at the nodes. Its derivative is multiplied by ``factor``; it has
    degree P − 2, so the last column is zero.
    """
    order = polynomials.shape[1]
    for k in range(len(columns)):
        column = columns[k]
        for j in range(1, order):
            c = 0.0
            for a in range(order):
                c += potential[a, column] * lagrange[a, j]
            polynomials[k, j - 1] = c * j * factor
        polynomials[k, order - 1] = 0.0


@njit(**COMPILE)
def sum_bins(
    keys_x, moments_x, keys_y, moments_y, within, width, variance, exponents, lagrange, differences, hermite, factor,
    log_factorial,
):  # fmt: skip
    """Sum exp(−(x − y)²/2V) over all pairs of points in two sets of bins, or over all pairs ``within`` one set.

    Pairs of bins whose Gaussian is e^exponents times smaller than that of the nearest pair are left out and counted in
    the error. ``lagrange`` and ``differences``, both of shape (P, P), describe the nodes; ``hermite``, ``factor`` and
    ``log_factorial`` are the constants of :func:`melc.sums.bounds.moment_bin_error`.

    Returns S, ∂S/∂V, the error of S, the exponent e taken out of all three (the sum itself is S·exp(−e)), the
    polynomials of ∂ log S/∂z in u for both sets (zero for the second ``within`` one set), and the number of
    exponentials.
    """
    order = moments_x.shape[1]
    least = 0 if within else int(nearest_distance(keys_x, keys_y))
    first = min(keys_x[0], keys_y[0])
    span = max(keys_x[-1], keys_y[-1]) - first + 1
    n_blocks = min(blocks_within(0 if within else least + 1, width, variance, exponents), span - least)
    # Long loops over all bins are faster than short ones over the occupied bins, unless few bins are occupied.
    whole = span <= 4 * min(len(keys_x), len(keys_y)) + 16
    columns_x, columns_y = _columns(keys_x, first, whole), _columns(keys_y, first, whole)
    charges_x, charges_y = np.zeros((order + 1, span if whole else len(keys_x))), np.zeros((0, 0))
    put_charges(columns_x, moments_x, lagrange, charges_x)
    phi_x, phi_y = np.zeros((order, charges_x.shape[1])), np.zeros((0, 0))
    if within:
        charges_y, phi_y = charges_x, phi_x
    else:
        charges_y = np.zeros((order + 1, span if whole else len(keys_y)))
        put_charges(columns_y, moments_y, lagrange, charges_y)
        phi_y = np.zeros((order, charges_y.shape[1]))
    blocks, slopes = np.empty((n_blocks, order, order)), np.empty((n_blocks, order, order))
    couple_nodes(least, differences, width, variance, blocks, slopes)
    errors = np.empty(n_blocks)
    pair_errors(least, hermite, factor, log_factorial, width, np.sqrt(variance), errors)
    if within:  # each pair of different bins counts twice, a bin with itself once; the sum is doubled below
        for a in range(order):  # loops: expressions of arrays take numba far longer to compile
            for b in range(order):
                blocks[0, a, b] *= 0.5
                slopes[0, a, b] *= 0.5
        errors[0] *= 0.5
    value, slope, error = _couple(
        whole, keys_x, charges_x, keys_y, charges_y, least, blocks, slopes, errors, phi_x, phi_y
    )
    if within:
        value, slope, error = 2 * value, 2 * slope, 2 * error
    else:
        level = 1 if least == 0 else 0  # pairs of bins with the same number have been counted already
        more = _couple(
            whole, keys_y, charges_y, keys_x, charges_x, least + level, blocks[level:], slopes[level:], errors[level:],
            phi_y, phi_x,
        )  # fmt: skip
        value, slope, error = value + more[0], slope + more[1], error + more[2]
    polynomials_x, polynomials_y = np.zeros(moments_x.shape), np.zeros(moments_y.shape)
    nearest = max(least - 1, 0) * width
    if not value * width > 0:  # the sum underflowed: it is unknown, with an infinite error
        return 0.0, 0.0, np.inf, 0.0, polynomials_x, polynomials_y, n_blocks * order * order
    if n_blocks < span - least:
        left_out = (least + n_blocks - 1) * width
        error += (
            _mass(moments_x) * _mass(moments_y) * np.exp((nearest - left_out) * (nearest + left_out) / (2 * variance))
        )
    read_slopes(columns_x, phi_x, lagrange, (4 if within else 2) / (width * value), polynomials_x)
    if not within:
        read_slopes(columns_y, phi_y, lagrange, 2 / (width * value), polynomials_y)
    exponent = nearest * nearest / (2 * variance)
    return value, slope, error, exponent, polynomials_x, polynomials_y, n_blocks * order * order


@njit(**COMPILE)
def _columns(keys, first, whole):
    """Return the columns of bins in a table of all bins, or in one of the occupied bins only."""
    columns = np.arange(len(keys))
    if whole:
        for k in range(len(keys)):
            columns[k] = keys[k] - first
    return columns


@njit(**COMPILE)
def _mass(moments):
    total = 0.0
    for k in range(len(moments)):
        total += moments[k, 0]
    return total


@njit(**COMPILE)
def blocks_within(distance, width, variance, exponents):
    """Return the number of offsets, counted from ``distance`` bins, until the Gaussian is e^exponents times smaller."""
    near, more = distance * width, 2 * variance * exponents
    beyond = more / (near + np.sqrt(near * near + more))  # √(near² + more) − near, without cancellation
    return int(np.ceil(beyond / width)) + (3 if distance > 0 else 2)


@njit(**COMPILE)
def _couple(whole, keys_u, upper, keys_l, lower, least, blocks, slopes, errors, phi_upper, phi_lower):
    """Return :func:`couple_bins` if the tables are ``whole`` (hold all bins), else :func:`couple_occupied`."""
    if whole:
        return couple_bins(upper, lower, least, blocks, slopes, errors, phi_upper, phi_lower)
    return couple_occupied(keys_u, upper, keys_l, lower, least, blocks, slopes, errors, phi_upper, phi_lower)
