"""Sums over pairs of moment bins.

Charges and potentials stand in tables: a row for every node, a column for every bin, and below the charges a row with
the mass of the bins. Every function is called on its own: what calls another is compiled with all of it once more.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.pairs import exp_negative


@njit(**COMPILE)
def put_charges(columns, moments, lagrange, table):
    """Charges at the nodes with the moments of a bin's points, Q_k = A M_k, in the bin's column; below, its mass."""
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
    """Coupling of the nodes of two bins for every offset from ``least`` on, and its derivative by V.

    exp(−(t² − nearest²)/2V), nearest the least distance of points in the first of these pairs of bins; but ∂/∂V of
    exp(−t²/2V): what has been taken out is put back at the end.
    """
    order = differences.shape[0]
    nearest = max(least - 1, 0)
    for o in range(len(blocks)):
        for a in range(order):
            for b in range(order):
                # Whole numbers are subtracted first: across a wide gap t and nearest agree in nearly every digit.
                beyond = abs(least - nearest + o + differences[a, b]) * width
                t = nearest * width + beyond
                g = exp_negative(-beyond * (nearest * width + t) * (0.5 / variance))
                blocks[o, a, b] = g
                slopes[o, a, b] = g * t * t * (0.5 / variance**2)


@njit(**COMPILE)
def pair_errors(least, hermite, factor, log_factorial, width, sigma, errors):
    """Largest error of one pair of points in bins ``least``, ``least + 1``, … apart: see melc.sums.bounds.

    ``hermite`` holds the coefficients of He⁺_P, from the constant up; ``factor`` is 2 (1 + Λ_P). The errors are
    multiplied by exp(d²/2V), d the least distance of points in the first of these pairs of bins.
    """
    order = len(hermite) - 1
    log_nodes = order * np.log(width / (4 * sigma)) - log_factorial
    nearest = max(least - 1, 0)
    for o in range(len(errors)):
        between = max(least + o - 1, 0)
        far = (least + o + 1) * (width / sigma)
        polynomial = 0.0
        for j in range(order, -1, -1):
            polynomial = polynomial * far + hermite[j]
        # Of classes far apart the squares agree in every digit: whole numbers of bins are compared before.
        beyond = float(nearest - between) * (nearest + between) * (width / sigma) ** 2
        cramer = 0.5 * log_factorial + (beyond + (nearest * (width / sigma)) ** 2) / 4
        absolute = np.log(polynomial) + beyond / 2
        errors[o] = factor * np.exp(min(cramer, absolute) + log_nodes)


@njit(**COMPILE)
def couple_bins(upper, lower, least, blocks, slopes, errors, phi_upper, phi_lower):
    """(S, ∂S/∂V, error) of the pairs of a bin in ``upper`` and one ``least`` or more below it in ``lower``.

    Tables of all bins, empty ones too. Each bin adds to the potential in the other. Σ_k q_{k+o} G q_k = Σ_ab G_ab c_ab
    with c_ab the correlation of two rows: long loops that vectorise, and ∂/∂V for next to nothing.
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
    """As couple_bins, for tables of occupied bins alone, whose numbers are given.

    Plain unsigned indices throughout: a view would cost more than the arithmetic of a pair.
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
    """d/du of the polynomial through the potential at the nodes, times ``factor``; the last column stays zero."""
    order = polynomials.shape[1]
    for k in range(len(columns)):
        column = columns[k]
        for j in range(1, order):
            c = 0.0
            for a in range(order):
                c += potential[a, column] * lagrange[a, j]
            polynomials[k, j - 1] = c * j * factor
        polynomials[k, order - 1] = 0.0
