"""Sums over pairs of moment bins: the steps of :mod:`melc.sums.moments` that take time.

The points of a bin are replaced by P charges at its Chebyshev nodes that have the same first P moments. Charges are
stored in tables of shape (P + 1, n_bins): one row for each node, and a last row with the mass of the bins. Potentials
are stored in tables of shape (P, n_bins). ``keys``, shape (n_bins,), are bin numbers in ascending order.

``blocks[o]`` and ``slopes[o]``, both of shape (n_offsets, P, P), hold the coupling of the nodes of two bins whose
numbers differ by least + o, and its derivative by V. ``errors[o]`` bounds the error of one pair of points in such bins.
"""

import math

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.pairs import exp_negative


@njit(**COMPILE)
def couple_nodes(least, differences, hermite, factor, log_factorial, width, variance, blocks, slopes, errors):
    """Write the couplings of nodes to ``blocks``, their derivatives by V to ``slopes``, and bounds to ``errors``.

    A coupling is g = exp(−(t² − nearest²)/2V), with t the distance of two nodes and ``nearest`` the least distance of
    points in bins ``least`` apart. Taking this exponent out avoids underflow; the sum has it added again.
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
