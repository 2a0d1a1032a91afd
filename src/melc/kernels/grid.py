"""The divergence on a uniform grid along the line: smooth in v, not certified, for the search alone.

Cells of width h, the same for both classes. The moments m₀ … m₃ of the coordinates u ∈ [0, 1) of a cell's points become
charges at nodes by the cubic B-spline: the points of cell k give to the nodes k … k + 3

    (m₀ − 3m₁ + 3m₂ − m₃)/6,   (4m₀ − 6m₂ + 3m₃)/6,   (m₀ + 3m₁ + 3m₂ − 3m₃)/6,   m₃/6.

Nodes o cells apart are coupled by K(oh) with spline ∗ K ∗ spline = exp(−t²/2V) + O(h⁶). A spline has variance h²/3 and
fourth cumulant −h⁴/30, so with V′ = V − 2h²/3

    K(t) = √(V/V′) exp(−t²/2V′) (1 + h⁴/(360 V′²) He₄(t/√V′)).

The sum S = q·(K ∗ q′) is twice continuously differentiable in the points. Within a cell the potential K ∗ q′ is a cubic
in u, whose slope is the weight of a point in the gradient.
"""

import math

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

GRID = {**COMPILE, "error_model": "numpy"}

# Cells that a grid may have; more are asked for by heavy tails.
MOST_CELLS = 2048
# Points that are summed before the sum is carried in double precision.
_BLOCK = 1024
# Shares of pairs that overlap, S_xy / (W_x W_y), and the cells that each needs, in bandwidths.
_OVERLAPS = (2e-2, 1e-3, 1e-4)
_CELLS = (0.5, 0.3, 0.2, 0.1)
# With less overlap than this the sum across is all tail, and a grid does not keep it.
_LEAST_OVERLAP = 1e-7
# Pairs whose Gaussian is e^exponents times smaller than one are left out: with little overlap, fewer of them.
_EXPONENTS, _MORE_EXPONENTS = 18.0, 30.0

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))


@njit(**GRID)
def _measure(z, weights, step):
    """Σ w z, Σ w z², least and largest point."""
    first, second = 0.0, 0.0
    low, high = z[0], z[0]
    for start in range(0, len(z), _BLOCK):
        block = z[start : start + _BLOCK]
        one, two = z[0] * 0, z[0] * 0
        if step == 1:
            some = weights[start : start + _BLOCK]
            for i in range(len(block)):
                one += some[i] * block[i]
                two += some[i] * block[i] * block[i]
        else:
            for i in range(len(block)):
                one += block[i]
                two += block[i] * block[i]
        for i in range(len(block)):
            low, high = min(low, block[i]), max(high, block[i])
        first += one
        second += two
    return first, second, low, high


@njit(**GRID)
def _deposit(z, weights, step, low, inverse, cells, local, moments):
    """Cell and coordinate of every point, and the moments of the cells."""
    for i in range(len(z)):
        t = (z[i] - low) * inverse
        cell = np.int32(t)
        cells[i] = cell
        local[i] = t - cell
    weight = 1.0
    for position in range(len(z)):
        i = np.uint64(position)
        cell, u = np.uint64(cells[i]), float(local[i])
        if step == 1:
            weight = float(weights[i])
        wu, u2 = weight * u, u * u
        moments[cell, _0] += weight
        moments[cell, _1] += wu
        moments[cell, _2] += weight * u2
        moments[cell, _3] += wu * u2


@njit(**GRID)
def _charge(moments, n_cells, charges):
    for k in range(n_cells + 3):
        charges[k] = 0.0
    for k in range(n_cells):
        m0, m1, m2, m3 = moments[k, 0], moments[k, 1], moments[k, 2], moments[k, 3]
        charges[k] += (m0 - 3 * m1 + 3 * m2 - m3) / 6
        charges[k + 1] += (4 * m0 - 6 * m2 + 3 * m3) / 6
        charges[k + 2] += (m0 + 3 * m1 + 3 * m2 - 3 * m3) / 6
        charges[k + 3] += m3 / 6


@njit(**GRID)
def _couple_nodes(variance, h, exponents, n_nodes, couplings, slopes):
    """K(oh) and ∂K/∂V for all offsets o that count; returns their number."""
    n = min(int(math.sqrt(2 * variance * exponents) / h) + 2, n_nodes)
    inner = variance - 2 * h * h / 3
    quartic = h**4 / (360 * inner * inner)
    factor = math.sqrt(variance / inner)
    for o in range(n):
        x = (o * h) ** 2 / inner
        gauss = factor * math.exp(-0.5 * x)
        hermite = x * x - 6 * x + 3
        value = gauss * (1 + quartic * hermite)
        couplings[o] = value
        slopes[o] = 0.5 * value * (1 / variance - 1 / inner + x / inner)
        slopes[o] -= gauss * quartic * (2 * hermite + (2 * x - 6) * x) / inner
    return n


@njit(**GRID)
def _convolve(charges, n_nodes, couplings, n_couplings, potential):
    for k in range(n_nodes):
        potential[k] = couplings[0] * charges[k]
    for o in range(1, n_couplings):
        g, n = couplings[o], n_nodes - o
        low, high = charges[:n], charges[o:n_nodes]
        below, above = potential[:n], potential[o:n_nodes]
        for i in range(n):
            below[i] += g * high[i]
        for i in range(n):
            above[i] += g * low[i]


@njit(**GRID)
def _dot(a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@njit(**GRID)
def _add_slopes(potential, n_cells, factor, table):
    """Add ``factor`` times the derivative by u of every cell's cubic: three coefficients a cell."""
    for k in range(n_cells):
        a, b, c, d = potential[k], potential[k + 1], potential[k + 2], potential[k + 3]
        table[k, 0] += factor * (c - a) / 2
        table[k, 1] += factor * (a - 2 * b + c)
        table[k, 2] += factor * (d - 3 * c + 3 * b - a) / 2


@njit(**GRID)
def _sum_within(charges, n_cells, variance, h, exponents, couplings, slopes, potential, table):
    """log S and ∂ log S/∂V over the pairs of one class, whose slopes are added to the table."""
    n_nodes = n_cells + 3
    n = _couple_nodes(variance, h, exponents, n_nodes, couplings, slopes)
    _convolve(charges, n_nodes, slopes, n, potential)
    by_variance = _dot(charges, potential, n_nodes)
    _convolve(charges, n_nodes, couplings, n, potential)
    total = _dot(charges, potential, n_nodes)
    _add_slopes(potential, n_cells, 2 / (total * h), table)
    return math.log(total), by_variance / total


@njit(**GRID)
def _weigh(cells, local, weights, step, table, slope, mean, z, w):
    """The weights of points in a gradient: their cell's polynomial, and what their class variance adds."""
    weight = 1.0
    for position in range(len(z)):
        i = np.uint64(position)
        cell, u = np.uint64(cells[i]), float(local[i])
        if step == 1:
            weight = float(weights[i])
        value = (table[cell, _2] * u + table[cell, _1]) * u + table[cell, _0]
        w[i] = weight * (value + slope * (float(z[i]) - mean))


@njit(**GRID)
def grid_divergence(z, n_x, weights, step, totals, factors, coarsest, w):
    """D of two classes on the line, and the weight w of every point in its gradient, ∇D = Xᵀw.

    The first ``n_x`` points are those of class x. ``weights`` count where ``step`` is 1; ``totals`` are the sums of
    weights of the classes, ``factors`` their kernel variances over their variances. ``coarsest`` is the width of the
    cells in bandwidths where classes overlap much. Returns NaN where a grid does not do: classes that hardly overlap, a
    class that does not vary, or too many cells.
    """
    x, y = z[:n_x], z[n_x:]
    weights_x, weights_y = (weights[:n_x], weights[n_x:]) if step == 1 else (weights, weights)
    first_x, second_x, low_x, high_x = _measure(x, weights_x, step)
    first_y, second_y, low_y, high_y = _measure(y, weights_y, step)
    mean_x, mean_y = first_x / totals[0], first_y / totals[1]
    vx = factors[0] * (second_x / totals[0] - mean_x * mean_x)
    vy = factors[1] * (second_y / totals[1] - mean_y * mean_y)
    if not (0 < vx < np.inf and 0 < vy < np.inf):
        return np.nan
    across = vx + vy
    low, high = float(min(low_x, low_y)), float(max(high_x, high_y))
    cells, local = np.empty(len(z), np.int32), np.empty(len(z), z.dtype)
    fineness = 0
    while _CELLS[fineness] > coarsest:
        fineness += 1
    while True:
        h = min(_CELLS[fineness], coarsest) * math.sqrt(2 * min(vx, vy))
        n_cells = (high - low) / h + 3
        if not n_cells < MOST_CELLS:
            return np.nan
        n_cells = int(n_cells)
        n_nodes = n_cells + 3
        moments_x, moments_y = np.zeros((n_cells, 4)), np.zeros((n_cells, 4))
        begin, inverse = z.dtype.type(low - 0.5 * h), z.dtype.type(1 / h)
        _deposit(x, weights_x, step, begin, inverse, cells[:n_x], local[:n_x], moments_x)
        _deposit(y, weights_y, step, begin, inverse, cells[n_x:], local[n_x:], moments_y)
        charges_x, charges_y, potential = np.empty(n_nodes), np.empty(n_nodes), np.empty(n_nodes)
        _charge(moments_x, n_cells, charges_x)
        _charge(moments_y, n_cells, charges_y)
        couplings, slopes = np.empty(n_nodes), np.empty(n_nodes)
        exponents = _EXPONENTS if fineness < 2 else _MORE_EXPONENTS
        n = _couple_nodes(across, h, exponents, n_nodes, couplings, slopes)
        _convolve(charges_y, n_nodes, couplings, n, potential)
        total = _dot(charges_x, potential, n_nodes)
        overlap = total / (totals[0] * totals[1])
        if not overlap > _LEAST_OVERLAP:
            return np.nan
        needed = 0
        while needed < len(_OVERLAPS) and overlap < _OVERLAPS[needed]:
            needed += 1
        if needed <= fineness:
            break
        fineness = needed
    table_x, table_y = np.zeros((n_cells, 3)), np.zeros((n_cells, 3))
    _add_slopes(potential, n_cells, -2 / (total * h), table_x)
    _convolve(charges_y, n_nodes, slopes, n, potential)
    slope_xy = _dot(charges_x, potential, n_nodes) / total
    _convolve(charges_x, n_nodes, couplings, n, potential)
    _add_slopes(potential, n_cells, -2 / (total * h), table_y)
    log_xx, slope_xx = _sum_within(charges_x, n_cells, 2 * vx, h, exponents, couplings, slopes, potential, table_x)
    log_yy, slope_yy = _sum_within(charges_y, n_cells, 2 * vy, h, exponents, couplings, slopes, potential, table_y)
    divergence = log_xx + log_yy - 2 * math.log(total) + math.log(across) - 0.5 * math.log(4 * vx * vy)
    shared = 1 / across - 2 * slope_xy
    own_x = 2 * factors[0] * (2 * slope_xx - 0.5 / vx + shared) / totals[0]
    own_y = 2 * factors[1] * (2 * slope_yy - 0.5 / vy + shared) / totals[1]
    _weigh(cells[:n_x], local[:n_x], weights_x, step, table_x, own_x, mean_x, x, w[:n_x])
    _weigh(cells[n_x:], local[n_x:], weights_y, step, table_y, own_y, mean_y, y, w[n_x:])
    return divergence
