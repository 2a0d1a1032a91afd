"""The divergence by moment bins of points that lie in memory, certified, in one compiled call."""

import math

import numpy as np
from numba import njit

from melc.kernels.bins import ORDER, add_moments, polynomial
from melc.kernels.couplings import blocks_within, couple_bins, couple_nodes, pair_errors, put_charges, read_slopes
from melc.kernels.flags import COMPILE
from melc.kernels.formulas import Spread, assemble_divergence, is_floored, kernel_variances, variance_pull

# Bins that the points may spread over: more are rather looked up, and left to the general way.
_MOST_BINS = 512

NOT_CERTIFIED = (np.nan, np.inf, 0, False, 0.0, 0.0)


@njit(**COMPILE)
def _measure(z, codes, weights, step):
    """Weight, mean and variance of the points of both classes, and the least and largest point of all."""
    totals, means, squares = np.zeros(2), np.zeros(2), np.zeros(2)
    low, high = z[0], z[0]
    for i in range(len(z)):
        weight = weights[i * step]
        totals[codes[i]] += weight
        means[codes[i]] += weight * z[i]
        low, high = min(low, z[i]), max(high, z[i])
    for c in range(2):
        means[c] /= totals[c]
    for i in range(len(z)):
        away = z[i] - means[codes[i]]
        squares[codes[i]] += weights[i * step] * away * away
    return Spread(totals[0], totals[1], means[0], means[1], squares[0] / totals[0], squares[1] / totals[1]), low, high


# The turns in which tables of bins are coupled: upper and lower class, the potentials that they add to, and the sum.
# Pairs of one class are met once and count twice; those of two classes are met with either of them above.
_TURNS = ((0, 0, 0, 0, 0), (1, 1, 1, 1, 1), (0, 1, 2, 3, 2), (1, 0, 3, 2, 2))


@njit(**COMPILE)
def _sums(moments, n_bins, width, variances, eps, constants):
    """Sum exp(−(x − y)²/2V) over the pairs within class x, within class y, and across, for tables of all bins.

    ``moments``, of shape (2 n_bins, P), has the bins of class x first. Returns S, ∂S/∂V and the error of S for the
    three sums, the number of exponentials, and the polynomials of ∂(log S_xx + log S_yy − 2 log S_xy)/∂z, shape
    (2 n_bins, P). Each step stands in one place within a loop: what is called from several places is compiled for each.
    """
    lagrange, differences, hermite, factor, log_factorial = constants
    columns = np.arange(n_bins)
    charges, phi = np.zeros((2, ORDER + 1, n_bins)), np.zeros((4, ORDER, n_bins))
    values, slopes, errors = np.zeros(3), np.zeros(3), np.zeros(3)
    totals = np.zeros(2)
    for c in range(2):
        put_charges(columns, moments[c * n_bins : (c + 1) * n_bins], lagrange, charges[c])
        for k in range(n_bins):
            totals[c] += moments[c * n_bins + k, 0]
    count = 0
    blocks, block_slopes, pair_bounds = np.empty((0, ORDER, ORDER)), np.empty((0, ORDER, ORDER)), np.empty(0)
    for turn in range(4):
        upper, lower, above, below, k = _TURNS[turn]
        variance = variances[k]
        if turn < 3:  # the last turn has the couplings of the one before
            exponents = math.log(100.0 * n_bins / eps) + (math.log(n_bins) if k == 2 else 0.0)
            n = min(blocks_within(0, width, variance, exponents), n_bins)
            blocks, block_slopes, pair_bounds = np.empty((n, ORDER, ORDER)), np.empty((n, ORDER, ORDER)), np.empty(n)
            couple_nodes(0, differences, width, variance, blocks, block_slopes)
            pair_errors(0, hermite, factor, log_factorial, width, math.sqrt(variance), pair_bounds)
            for a in range(ORDER):  # bins at the same place meet twice, or count once
                for b in range(ORDER):
                    blocks[0, a, b] *= 0.5
                    block_slopes[0, a, b] *= 0.5
            pair_bounds[0] *= 0.5
            count += n * ORDER**2
            left_out = (n - 1) * width
            if n < n_bins:
                errors[k] += totals[upper] * totals[lower] * math.exp(-left_out * left_out / (2 * variance))
        value, slope, error = couple_bins(
            charges[upper], charges[lower], 0, blocks, block_slopes, pair_bounds, phi[above], phi[below]
        )
        times = 2 if k < 2 else 1
        values[k] += times * value
        slopes[k] += times * slope
        errors[k] += times * error
    polynomials, some = np.zeros((2 * n_bins, ORDER)), np.empty((n_bins, ORDER))
    for part in range(4):
        k, begin = min(part, 2), (part % 2) * n_bins
        if not values[k] * width > 0:  # the sum underflowed: nothing is certified
            continue
        read_slopes(columns, phi[part], lagrange, (4 if k < 2 else -4) / (width * values[k]), some)
        for i in range(n_bins):
            for j in range(ORDER):
                polynomials[begin + i, j] += some[i, j]
    return values, slopes, errors, count, polynomials


@njit(**COMPILE)
def _add_variance_slopes(polynomials, origin, low, width, own, mean, pooled, centre):
    """What the kernel variances add to the weight of a point: own (z − mean) + pooled (z − centre)."""
    for k in range(len(polynomials)):
        middle = origin + (low + k + 0.5) * width
        polynomials[k, 0] += own * (middle - mean) + pooled * (middle - centre)
        polynomials[k, 1] += (own + pooled) * width / 2


@njit(**COMPILE)
def certified_divergence(
    z, codes, weights, step, origin, shrunk, gamma, floor, eps, bin_per_bandwidth, lagrange, differences, hermite,
    factor, log_factorial, w,
):  # fmt: skip
    """D of points z with class codes, and the weight w of every point in its gradient, ∇D = Xᵀw.

    Bins begin at ``origin`` and have one width for all three sums: ``bin_per_bandwidth`` times the least bandwidth,
    rounded down to a power of two. Returns D, its certified error, the number of exponentials, whether a class does not
    vary, and ∂D by what shrinkage adds to either class variance. The error is infinite where this does not work: if the
    classes lie apart, or the points spread over too many bins.
    """
    spread, least, largest = _measure(z, codes, weights, step)
    vx, vy = kernel_variances(spread, shrunk, gamma, floor)
    if not min(vx, vy) > 0:
        return NOT_CERTIFIED
    width = 2.0 ** math.floor(math.log2(bin_per_bandwidth * math.sqrt(2 * min(vx, vy))))
    low = np.floor((least - origin) / width)  # as floats: numbers of bins far out need not fit an integer
    span = np.floor((largest - origin) / width) - low + 1
    if not span <= _MOST_BINS or not abs(low) < 2.0**40:
        return NOT_CERTIFIED
    n_bins = int(span)
    bins, local = np.empty(len(z), np.int64), np.empty(len(z))
    moments = np.zeros((2 * n_bins, ORDER))
    for i in range(len(z)):
        t = (z[i] - origin) * (1 / width)
        bin_number = np.floor(t)
        bins[i] = int(bin_number - low) + codes[i] * n_bins
        local[i] = 2 * (t - bin_number) - 1
    weight = weights[0]
    for position in range(len(z)):
        i = np.uint64(position)
        if step == 1:
            weight = weights[i]
        add_moments(moments, np.uint64(bins[i]), weight, local[i])
    constants = lagrange, differences, hermite, factor, log_factorial
    values, slopes, errors, count, polynomials = _sums(
        moments, n_bins, width, (2 * vx, 2 * vy, vx + vy), eps, constants
    )
    error = 0.0
    for k in range(3):
        if not errors[k] < values[k]:
            return NOT_CERTIFIED
        error -= (2 if k == 2 else 1) * math.log1p(-errors[k] / values[k])
    divergence, by_vx, by_vy = assemble_divergence(
        math.log(values[0]), math.log(values[1]), math.log(values[2]), vx, vy,
        slopes[0] / values[0], slopes[1] / values[1], slopes[2] / values[2],
    )  # fmt: skip
    own_x, own_y, pooled, by_add_x, by_add_y = variance_pull(spread, shrunk, gamma, floor, by_vx, by_vy)
    share = spread.weight_y / (spread.weight_x + spread.weight_y)
    centre = spread.mean_x + share * (spread.mean_y - spread.mean_x)
    _add_variance_slopes(polynomials[:n_bins], origin, low, width, own_x, spread.mean_x, pooled, centre)
    _add_variance_slopes(polynomials[n_bins:], origin, low, width, own_y, spread.mean_y, pooled, centre)
    for position in range(len(z)):
        i = np.uint64(position)
        if step == 1:
            weight = weights[i]
        w[i] = weight * polynomial(polynomials, np.uint64(bins[i]), local[i])
    return divergence, error, count, is_floored(spread, shrunk, floor), by_add_x, by_add_y
