"""The divergence by moment bins of points that lie in memory, certified, in one compiled call."""

import math

import numpy as np
from numba import njit

from melc.kernels.bins import ORDER, add_moments, polynomial
from melc.kernels.couplings import sum_bins
from melc.kernels.flags import COMPILE
from melc.kernels.formulas import Spread, assemble_divergence, is_floored, kernel_variances, variance_pull

# Bins that the points may spread over: more are rather looked up, and left to the general way.
_MOST_BINS = 4096

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
    keys, x, y = np.arange(n_bins), moments[:n_bins], moments[n_bins:]
    exponents = math.log(100.0 * n_bins / eps)
    s_xx = sum_bins(
        keys, x, keys, x, True, width, 2 * vx, exponents, lagrange, differences, hermite, factor, log_factorial
    )
    s_yy = sum_bins(
        keys, y, keys, y, True, width, 2 * vy, exponents, lagrange, differences, hermite, factor, log_factorial
    )
    exponents += math.log(n_bins)
    s_xy = sum_bins(
        keys, x, keys, y, False, width, vx + vy, exponents, lagrange, differences, hermite, factor, log_factorial
    )
    if not (s_xx[2] < s_xx[0] and s_yy[2] < s_yy[0] and s_xy[2] < s_xy[0]):
        return NOT_CERTIFIED
    error = -math.log1p(-s_xx[2] / s_xx[0]) - math.log1p(-s_yy[2] / s_yy[0]) - 2 * math.log1p(-s_xy[2] / s_xy[0])
    divergence, by_vx, by_vy = assemble_divergence(
        math.log(s_xx[0]), math.log(s_yy[0]), math.log(s_xy[0]), vx, vy,
        s_xx[1] / s_xx[0], s_yy[1] / s_yy[0], s_xy[1] / s_xy[0],
    )  # fmt: skip
    own_x, own_y, pooled, by_add_x, by_add_y = variance_pull(spread, shrunk, gamma, floor, by_vx, by_vy)
    polynomials = np.empty((2 * n_bins, ORDER))
    for k in range(n_bins):
        for j in range(ORDER):
            polynomials[k, j] = s_xx[4][k, j] - 2 * s_xy[4][k, j]
            polynomials[n_bins + k, j] = s_yy[4][k, j] - 2 * s_xy[5][k, j]
    share = spread.weight_y / (spread.weight_x + spread.weight_y)
    centre = spread.mean_x + share * (spread.mean_y - spread.mean_x)
    _add_variance_slopes(polynomials[:n_bins], origin, low, width, own_x, spread.mean_x, pooled, centre)
    _add_variance_slopes(polynomials[n_bins:], origin, low, width, own_y, spread.mean_y, pooled, centre)
    for position in range(len(z)):
        i = np.uint64(position)
        if step == 1:
            weight = weights[i]
        w[i] = weight * polynomial(polynomials, np.uint64(bins[i]), local[i])
    count = s_xx[6] + s_yy[6] + s_xy[6]
    return divergence, error, count, is_floored(spread, shrunk, floor), by_add_x, by_add_y
