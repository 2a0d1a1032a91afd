"""Lines of the additive model: how much the densities along a direction improve the log-odds, and which pairs to try.

The rows have *masses*: what their class weight leaves unexplained by the lines so far. Along a direction with
projections z, both classes get a kernel density of the masses,

``f_c(t) = Σ_{i in c} mass_i N(t; z_i, h²)``,   ``h = factor · σ``,   ``σ² = ½ (σ₀² + σ₁²)``,

and the line adds ``g(t) = log (f₁(t) + b) − log (f₀(t) + b)`` to the log-odds. The constant b stands for a few
pseudo-rows of either class, spread over six σ; beyond the outermost rows, as many on either side, g is constant. The
variances leave out rows farther than eight σ from the middle of the classes, repeated with the smaller σ. The
densities are computed on a grid of cells, with masses divided linearly between the two nearest nodes. The grid of −z is
the mirror image of that of z, so that a direction and its opposite have the same likelihood.
"""

from math import cos, exp, pi, sin, sqrt

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE, inlined

# Width of a cell in bandwidths, reach of a kernel in bandwidths, and of the grid in standard deviations.
_CELL, _KERNEL_REACH, _GRID_REACH = 0.4, 5.0, 8.0
MOST_NODES = 1024
# The most times that σ is computed again without outliers beyond the grid, which may reveal others.
_MOST_TRIMMINGS = 20
# Least distance of nodes, as a fraction of the projections: less would be lost in rounding.
_LEAST_STEP = 4e-16
# Standard deviations over which pseudo-rows are spread.
PSEUDO_WIDTH = 6.0
# Rows of the table that holds a grid: densities of the classes, masses at the nodes, and the kernel.
_MASSES, _KERNEL, TABLE_ROWS = 2, 4, 5
# log 2, and the bits of √½ as a float.
_LOG_TWO, _ROOT_OF_HALF = 0.6931471805599453, 0x3FE6A09E667F3BCD
# Bins of the quick comparison of pairs, and the standard deviations that they cover.
_BINS, _BINNED = 24, 5.0


@inlined
def spread_within(z, codes, masses, middle, reach, mean):
    """Return σ of the rows no farther than ``reach`` from ``middle``, and write the means of the classes to ``mean``.

    It is NaN, and the means are as before, if a class has less than half of its mass there.
    """
    # A row has mass zero in the other class, and beyond the reach in both: sums that are addressed by a class, or
    # branches, would be several times slower.
    total, other_total, kept, other_kept, moment, other_moment = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(z)):
        mass, away = masses[i], z[i] - middle
        other, near = mass if codes[i] == 1 else 0.0, abs(away) <= reach
        total += mass - other
        other_total += other
        kept += mass - other if near else 0.0
        other_kept += other if near else 0.0
        moment += (mass - other) * away if near else 0.0
        other_moment += other * away if near else 0.0
    if kept < 0.5 * total or other_kept < 0.5 * other_total:
        return np.nan
    shift, other_shift, square, other_square = moment / kept, other_moment / other_kept, 0.0, 0.0
    for i in range(len(z)):
        mass, away = masses[i], z[i] - middle
        other, near = mass if codes[i] == 1 else 0.0, abs(away) <= reach
        square += (mass - other) * (away - shift) ** 2 if near else 0.0
        other_square += other * (away - other_shift) ** 2 if near else 0.0
    deviation = sqrt(0.5 * (square / kept + other_square / other_kept))
    if deviation > 0 or reach == np.inf:
        mean[0], mean[1] = middle + shift, middle + other_shift
    return deviation


@njit(**COMPILE)
def line_densities(z, codes, masses, factor, pseudo_mass, table):
    """Write the densities of the classes on a grid to the first two rows of ``table``, shape (5, MOST_NODES).

    Return the position of the first node, the distance of nodes and their number, the first and the last node of the
    curve, and σ. No more than ``pseudo_mass`` lies beyond the curve's ends on either side: so few rows tell too little.
    """
    low, high, total = z[0], z[0], 0.0
    for i in range(len(z)):
        low, high, total = min(low, z[i]), max(high, z[i]), total + masses[i]
    mean, middle, reach, deviation = np.empty(2), low, np.inf, 0.0
    for trimming in range(_MOST_TRIMMINGS + 1):
        trimmed = spread_within(z, codes, masses, middle, reach, mean)
        if trimming > 0 and not 1e-9 * deviation < trimmed < 0.99 * deviation:
            break
        deviation = trimmed
        middle = 0.5 * (mean[0] + mean[1])
        reach = _GRID_REACH * sqrt(deviation**2 + 0.25 * (mean[1] - mean[0]) ** 2)
        if low >= middle - reach and high <= middle + reach:
            break
    if not deviation > 1e-12 * (high - low):
        # Both classes hardly vary, except perhaps for a few outliers.
        deviation = max(1e-12 * (high - low), 1e-16 * max(abs(low), abs(high)), 1e-200)
    bandwidth = factor * deviation
    reach = _GRID_REACH * sqrt(deviation**2 + 0.25 * (mean[1] - mean[0]) ** 2)
    low = max(low, 0.5 * (mean[0] + mean[1]) - reach) - 0.01 * bandwidth
    high = min(high, 0.5 * (mean[0] + mean[1]) + reach) + 0.01 * bandwidth
    # Cells that end where the rows do; where only rounding makes them wider, there is as much room on either side.
    least_step = _LEAST_STEP * max(abs(low), abs(high))
    n_nodes = int(min((high - low) / max(_CELL * bandwidth, least_step), MOST_NODES - 2.0)) + 2
    step = max((high - low) / (n_nodes - 1), least_step)
    low -= 0.5 * ((n_nodes - 1) * step - (high - low))
    for r in range(_KERNEL):
        for k in range(n_nodes):
            table[r, k] = 0.0
    per_step = 1 / step
    for i in range(len(z)):
        place = min(max((z[i] - low) * per_step, 0.0), n_nodes - 1.0)
        k = min(int(place), n_nodes - 2)
        above = masses[i] * (place - k)
        table[_MASSES + codes[i], k] += masses[i] - above
        table[_MASSES + codes[i], k + 1] += above
    n_kernel = min(int(_KERNEL_REACH * bandwidth / step) + 2, n_nodes)
    for r in range(n_kernel):
        table[_KERNEL, r] = exp(-0.5 * (r * step / bandwidth) ** 2) / (sqrt(2 * pi) * bandwidth)
    for c in range(2):
        for r in range(n_kernel):
            for k in range(r, n_nodes):
                table[c, k] += table[_KERNEL, r] * table[_MASSES + c, k - r]
            for k in range(n_nodes - r if r > 0 else 0):
                table[c, k] += table[_KERNEL, r] * table[_MASSES + c, k + r]
    left, right = 0, n_nodes - 1
    outside = min(pseudo_mass, 0.25 * total)
    mass = table[_MASSES, left] + table[_MASSES + 1, left]
    while mass < outside:
        left += 1
        mass += table[_MASSES, left] + table[_MASSES + 1, left]
    mass = table[_MASSES, right] + table[_MASSES + 1, right]
    while mass < outside:
        right -= 1
        mass += table[_MASSES, right] + table[_MASSES + 1, right]
    if right <= left:
        left, right = max(right - 1, 0), min(left + 1, n_nodes - 1)
    return low, step, n_nodes, left, right, deviation


@njit(**COMPILE)
def line_evidence(z, codes, targets, masses, own, growth, odds, factor, pseudo_mass, table):
    """Return the likelihood ``Σ_i target_i log P(class_i)`` after adding the line with projections z, shape (n,).

    Every row is left out of its own density: ``own`` are the masses of single copies of the rows, and ``growth`` are
    the factors by which the rest of their class grows to its total. ``odds`` are those against the class of each row
    so far. All have shape (n,).
    """
    low, step, n_nodes, left, right, deviation = line_densities(z, codes, masses, factor, pseudo_mass, table)
    b, bandwidth, per_step = pseudo_mass / (PSEUDO_WIDTH * deviation), factor * deviation, 1 / step
    inverse = np.empty(len(z))  # 1 / P(class)
    for i in range(len(z)):
        rests = min(max((z[i] - low) * per_step, 0.0), n_nodes - 1.0)
        place = min(max(rests, left), right)
        k = min(int(place), right - 1)
        t = place - k
        c = codes[i]
        if place == rests:  # a mass divided between two nodes meets itself at the distance 0 and at that of one cell
            parted = 2 * t * (1 - t)
            itself = own[i] * ((1 - parted) * table[_KERNEL, 0] + parted * table[_KERNEL, 1])
        else:  # beyond the curve's ends, its kernel acts from a distance
            itself = own[i] * table[_KERNEL, 0] * exp(-0.5 * ((rests - place) * step / bandwidth) ** 2)
        mine = growth[i] * max(table[c, k] * (1 - t) + table[c, k + 1] * t - itself, 0.0)
        other = table[1 - c, k] * (1 - t) + table[1 - c, k + 1] * t
        inverse[i] = 1 + odds[i] * (other + b) / (mine + b)
    return -sum_logs(inverse, targets)


@njit(**COMPILE)
def sum_logs(x, weights):
    """Return ``Σ weight · log x`` of normal positive numbers, which are overwritten; five times as fast as ``log``.

    With x = 2ᵉ m and √½ ≤ m < √2, log m = 2 (u + u³/3 + u⁵/5 + …) with u = (m − 1) / (m + 1), |u| < 0.172.
    """
    bits, total = x.view(np.int64), 0.0
    for i in range(len(x)):
        exponent = (bits[i] - _ROOT_OF_HALF) >> 52
        bits[i] -= exponent << 52
        u = (x[i] - 1) / (x[i] + 1)
        v = u * u
        tail = v * (1 / 9 + v * (1 / 11 + v * (1 / 13 + v * (1 / 15 + v * (1 / 17 + v / 19)))))
        series = 1 + v * (1 / 3 + v * (1 / 5 + v * (1 / 7 + tail)))
        total += weights[i] * (exponent * _LOG_TWO + 2 * u * series)
    return total


@njit(**COMPILE)
def best_angle(
    x, y, correlation, ridge, codes, targets, masses, own, growth, odds, factor, pseudo_mass, n_angles, n_halvings
):
    """Return the best direction in the plane of two features: its penalised likelihood, and the weights of x and y.

    The features have variance one within the classes, and the given correlation there. Directions are parametrised by
    an angle in coordinates without correlation. First ``n_angles`` are tried, then the distance to the best is halved.
    ``ridge · ‖w‖²`` is subtracted, which keeps away from differences of features that are nearly the same.
    """
    table, z = np.empty((TABLE_ROWS, MOST_NODES)), np.empty(len(x))
    height = sqrt(max(1 - correlation**2, 1e-3))
    best, best_at = -np.inf, 0.0
    step = pi / n_angles
    middle, tried, halvings = 0.0, 0, 0
    while halvings <= n_halvings:
        # The angles 0, step, 2 step, … first; afterwards one on either side of the best so far.
        angle = tried * step if halvings == 0 else middle + (2 * tried - 1) * step
        weight_y = sin(angle) / height
        weight_x = cos(angle) - correlation * weight_y
        for i in range(len(x)):
            z[i] = weight_x * x[i] + weight_y * y[i]
        value = line_evidence(z, codes, targets, masses, own, growth, odds, factor, pseudo_mass, table)
        value -= ridge * (weight_x**2 + weight_y**2)
        if value > best:
            best, best_at = value, angle
        tried += 1
        if tried == (n_angles if halvings == 0 else 2):
            middle, tried, halvings, step = best_at, 0, halvings + 1, 0.5 * step
    weight_y = sin(best_at) / height
    return best, cos(best_at) - correlation * weight_y, weight_y


@njit(**COMPILE)
def pair_gains(X, features, residuals, curvatures, ridge, gains):
    """Write a quick estimate of what each pair of features can add to the likelihood to ``gains``, shape (m, m).

    X has shape (d, n) and holds scaled features; ``features``, shape (m,), are those to be paired. Along x + y and
    x − y the rows are binned, and a Newton step in every bin gives ``Σ_bins (Σ residuals)² / (ridge + Σ curvatures)``.
    The larger of the two counts.
    """
    n, sums, bins = len(residuals), np.empty((2, _BINS, 2)), np.empty((2, len(residuals)), np.int32)
    scale = _BINS / _BINNED / sqrt(2.0)
    for p in range(len(features)):
        for q in range(p + 1, len(features)):
            x, y = X[features[p]], X[features[q]]
            for i in range(n):  # a loop of its own, which is vectorised
                bins[0, i] = np.int32(min(max(scale * (x[i] + y[i]) + 0.5 * _BINS, 0.0), _BINS - 1.0))
                bins[1, i] = np.int32(min(max(scale * (x[i] - y[i]) + 0.5 * _BINS, 0.0), _BINS - 1.0))
            for k in range(_BINS):
                for sign in range(2):
                    sums[sign, k, 0], sums[sign, k, 1] = 0.0, ridge
            for i in range(n):
                j, k = bins[0, i], bins[1, i]
                # All four are read before one is written: otherwise each would wait for the one before.
                first, second = sums[0, j, 0] + residuals[i], sums[0, j, 1] + curvatures[i]
                third, fourth = sums[1, k, 0] + residuals[i], sums[1, k, 1] + curvatures[i]
                sums[0, j, 0], sums[0, j, 1], sums[1, k, 0], sums[1, k, 1] = first, second, third, fourth
            for sign in range(2):
                gain = 0.0
                for k in range(_BINS):
                    gain += sums[sign, k, 0] ** 2 / sums[sign, k, 1]
                gains[p, q] = gains[q, p] = max(gains[p, q], gain)


@njit(cache=True, nogil=True)
def evaluate_curve(z, knots, values, slopes, anchors, out):
    """Write ``values[i] + slopes[i] · (z − anchors[i])`` to ``out``, with i the number of knots at or below each z.

    z and ``out`` have shape (n,), ``knots`` shape (m,), the other arrays shape (m + 1,). The search halves the knots
    without branches, which would be mispredicted. Additions are not reordered: the sign of the sum must be exact.
    """
    m = len(knots)
    for k in range(len(z)):
        place, first, length = z[k], 0, m
        while length > 0:
            half = (length + 1) // 2
            reached = knots[first + half - 1] <= place
            first += half * reached
            length -= half
        out[k] = values[first] + slopes[first] * (place - anchors[first])
