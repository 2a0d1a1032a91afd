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

from melc.kernels.flags import PART, inlined

# The most cells of a grid; heavy tails would need more.
MOST_CELLS = 2048
# Overlaps of the classes, S_xy / (W_x W_y), and the width of cells from each of them on, in bandwidths.
_OVERLAPS, _CELLS = np.array([2e-2, 1e-3, 1e-4, 0.0]), np.array([0.5, 0.3, 0.2, 0.1])
# With less overlap than this, the sum across consists of tails only, which a grid does not represent.
_LEAST_OVERLAP = 1e-7
# Pairs whose Gaussian is below exp(−exponents) are left out; the second number is for little overlap.
_EXPONENTS, _MORE_EXPONENTS = 18.0, 30.0

_0, _1, _2, _3 = (np.uint64(i) for i in range(4))


@inlined
def _measure(z, n_x, weights, totals, factors, means, variances):
    """Write the means and twice the kernel variances of both classes; return the least and the largest point."""
    for c in range(2):
        first, second = 0.0, 0.0
        for position in range(c * n_x, len(z) if c == 1 else n_x):
            i = np.uint64(position)
            p, weight = float(z[i]), float(weights[i])
            first += weight * p
            second += weight * p * p
        mean = first / totals[c]
        means[c], variances[c] = mean, 2 * factors[c] * (second / totals[c] - mean * mean)
    low, high = z[0], z[0]
    for i in range(len(z)):
        low, high = min(low, z[i]), max(high, z[i])
    return float(low), float(high)


@inlined
def _deposit(z, weights, n_x, n_cells, low, inverse, cells, local, moments):
    """Write the cell and coordinate of every point, and add up the moments of the cells, class x first."""
    for i in range(len(z)):
        t = (z[i] - low) * inverse
        cell = np.int32(t)
        cells[i] = cell
        local[i] = t - cell
    for position in range(n_x, len(z)):
        cells[np.uint64(position)] += n_cells
    for position in range(len(z)):
        i = np.uint64(position)
        cell, u, weight = np.uint64(cells[i]), float(local[i]), float(weights[i])
        wu, u2 = weight * u, u * u
        moments[cell, _0] += weight
        moments[cell, _1] += wu
        moments[cell, _2] += weight * u2
        moments[cell, _3] += wu * u2


@inlined
def _couple_nodes(variance, h, exponents, most, couplings, slopes):
    """Write K(oh) and ∂K/∂V for all offsets o that matter, halved at o = 0, which is met twice; return their number."""
    n = min(int(math.sqrt(2 * variance * exponents) / h) + 2, most)
    inner = variance - 2 * h * h / 3
    quartic = h * h * h * h / (360 * inner * inner)
    factor = math.sqrt(variance / inner)
    for o in range(n):
        x = o * h * o * h / inner
        gauss = factor * math.exp(-0.5 * x)
        hermite = x * x - 6 * x + 3
        value = gauss * (1 + quartic * hermite)
        slope = 0.5 * value * (1 / variance - 1 / inner + x / inner)
        couplings[o] = value
        slopes[o] = slope - gauss * quartic * (2 * hermite + (2 * x - 6) * x) / inner
    couplings[0] *= 0.5
    slopes[0] *= 0.5
    return n


@inlined
def _couple(upper, lower, couplings, slopes, n, above, below):
    """Return S and ∂S/∂V over the pairs of a node and another at or below it, and add to the potentials in both."""
    value, slope = 0.0, 0.0
    for o in range(n):
        m = len(upper) - o
        up, low, higher, deeper = upper[o:], lower[:m], above[o:], below[:m]
        g, correlation = couplings[o], 0.0
        for i in range(m):
            correlation += up[i] * low[i]
            higher[i] += g * low[i]
        for i in range(m):
            deeper[i] += g * up[i]
        value += g * correlation
        slope += slopes[o] * correlation
    return value, slope


@inlined
def _charge(moments, n_cells, charges):
    """Add up the charges at the nodes of both classes, from the moments of their cells."""
    for c in range(2):
        of_class, q = moments[c * n_cells :], charges[c]
        for k in range(n_cells):
            m0, m1, m2, m3 = of_class[k, 0], of_class[k, 1], of_class[k, 2], of_class[k, 3]
            q[k] += (m0 - 3 * m1 + 3 * m2 - m3) / 6
            q[k + 1] += (4 * m0 - 6 * m2 + 3 * m3) / 6
            q[k + 2] += (m0 + 3 * m1 + 3 * m2 - 3 * m3) / 6
            q[k + 3] += m3 / 6


@inlined
def _weigh(z, weights, n_x, n_cells, cells, local, potentials, within, across, own, means, table, w):
    """Write the weights of points in the gradient: the slope of the cell's cubic, and what the class variance adds.

    The potential of class c is ``within[c]`` times that of its own charges minus ``across`` times that of the others.
    """
    for c in range(2):
        q, other, factor = potentials[c], potentials[2 + c], within[c]
        for k in range(n_cells + 3):
            q[k] = factor * q[k] - across * other[k]
        of_class = table[c * n_cells :]
        for k in range(n_cells):
            of_class[k, 0] = 0.5 * (q[k + 2] - q[k])
            of_class[k, 1] = q[k] - 2 * q[k + 1] + q[k + 2]
            of_class[k, 2] = 0.5 * (q[k + 3] - q[k]) - 1.5 * (q[k + 2] - q[k + 1])
        slope, mean = own[c], means[c]
        for position in range(c * n_x, len(z) if c == 1 else n_x):
            i = np.uint64(position)
            cell, u = np.uint64(cells[i]), float(local[i])
            value = (table[cell, _2] * u + table[cell, _1]) * u + table[cell, _0]
            w[i] = float(weights[i]) * (value + slope * (float(z[i]) - mean))


def workspace(n_rows, dtype):
    """Return the arrays that :func:`divergence_on_grid` works in."""
    cells, local = np.empty(n_rows, np.int32), np.empty(n_rows, dtype)
    return cells, local, np.empty((2 * MOST_CELLS, 4)), np.empty((8, MOST_CELLS + 3)), np.empty((5, 3))


@njit(**PART)
def divergence_on_grid(z, n_x, weights, totals, factors, cells, local, moments, lines, numbers, w):
    """Return D of two classes on the line, and write the weight w of every point in its gradient, ∇D = Xᵀw.

    The first ``n_x`` points are those of class x. ``totals`` are the sums of weights of the classes, ``factors`` their
    kernel variances over their variances. D is NaN where a grid is not accurate: for classes that hardly overlap, a
    class that does not vary, or too many cells.
    """
    # Within x, within y, and across: the variance of a sum's Gaussian, the sum S, and ∂S/∂V.
    variances, values, slopes, means, own = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    charges, potentials, couplings, by_variance = lines[:2], lines[2:6], lines[6], lines[7]
    low, high = _measure(z, n_x, weights, totals, factors, means, variances)
    vx, vy = variances[0], variances[1]
    variances[2] = 0.5 * (vx + vy)
    # Cells are made finer until they are fine enough for the overlap, or there is no value.
    fineness, needed, n_cells, n_couplings, h = -1, 0, 0, 0, math.nan
    has_value = 0 < vx < math.inf and 0 < vy < math.inf
    while has_value and fineness < needed:
        fineness = needed
        h = _CELLS[fineness] * math.sqrt(min(vx, vy))
        has_value = (high - low) / h + 3 < MOST_CELLS
        if not has_value:
            break
        n_cells = int((high - low) / h + 3)
        for k in range(2 * n_cells):
            for j in range(4):
                moments[k, j] = 0.0
        for r in range(6):
            for k in range(n_cells + 3):
                lines[r, k] = 0.0
        _deposit(z, weights, n_x, n_cells, z.dtype.type(low - 0.5 * h), z.dtype.type(1 / h), cells, local, moments)
        _charge(moments, n_cells, charges)
        for k in range(3):
            values[k] = slopes[k] = 0.0
        # Pairs across the classes come first, with either class above: they tell how fine the cells must be. Pairs
        # within a class are met once and count twice.
        for turn in range(4):
            upper, across = turn % 2, turn < 2
            lower, k, others = (1 - upper, 2, 2) if across else (upper, upper, 0)
            if turn != 1:  # turn 1 uses the couplings of turn 0
                exponents = _EXPONENTS if fineness < 2 else _MORE_EXPONENTS
                n_couplings = _couple_nodes(variances[k], h, exponents, n_cells + 3, couplings, by_variance)
            value, slope = _couple(
                charges[upper, : n_cells + 3], charges[lower], couplings, by_variance, n_couplings,
                potentials[others + upper], potentials[others + lower],
            )  # fmt: skip
            values[k] += value
            slopes[k] += slope
            if turn == 1:
                overlap = values[2] / (totals[0] * totals[1])
                has_value = overlap > _LEAST_OVERLAP
                while overlap < _OVERLAPS[needed]:
                    needed += 1
                if needed > fineness or not has_value:
                    break
    if not has_value:
        return math.nan
    for c in range(2):
        slope = 2 * slopes[c] / values[c] - 1 / variances[c] - 2 * slopes[2] / values[2] + 1 / variances[2]
        own[c] = 2 * factors[c] * slope / totals[c]
        values[c] *= 2
        slopes[c] = 2 / (values[c] * h)  # from here on, derivatives of D by the potential
    across = 2 / (values[2] * h)
    _weigh(z, weights, n_x, n_cells, cells, local, potentials, slopes, across, own, means, moments, w)
    return math.log(values[0] * values[1] / (values[2] * values[2])) + math.log(variances[2] / math.sqrt(vx * vy))
