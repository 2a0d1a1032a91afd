"""Sums over pairs of points on a line, and what prepares them."""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.formulas import (
    Spread,
    assemble_divergence,
    is_floored,
    kernel_variances,
    total_variance,
    variance_pull,
)

_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453
_INTEGER_BITS = 6755399441055744.0  # 1.5 · 2^52: adding it leaves an integer in the low bits of a float
_WITHOUT_END = 1 << 62
_LOWEST = -708.0  # exp of anything below is subnormal; the shift by 2^k would wrap around


@njit(inline="always")
def exp_negative(x):
    """exp(x) for x ≤ 0, relative error |x|·1e-16; branch-free, so that loops around it vectorise.

    libm's exp is a call per element and keeps a loop scalar. Here x = (k + f) ln 2 with k an integer,
    |f| ≤ 1/2; exp(f ln 2) is a Taylor polynomial of degree 11 (next term 6e-15) and 2^k is put
    together from bits.
    """
    t = max(x, _LOWEST) * _LOG2_E
    k = np.floor(t + 0.5)
    r = (t - k) * _LN_2
    p = 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = (np.float64(k + _INTEGER_BITS).view(np.int64) + np.int64(1023)) << np.int64(52)
    return p * np.int64(bits).view(np.float64)


@njit(**COMPILE)
def exponentials(x):
    """exp(x) element by element for x ≤ 0: the kernels' exponential, on its own for tests."""
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = exp_negative(x[i])
    return out


@njit(**COMPILE)
def add_cross_pairs(x, a, y, b, variance, nearest, reach, place, budget, dx, dy):
    """A stretch of cross_sum: from ``place`` on, until ``budget`` exponentials are spent.

    ``place`` holds the next x, and the window of y around it; it moves on. dy lacks its factor b_j/V yet.
    """
    scale = 0.5 / variance
    total = 0.0
    count = 0
    i, first, last = place[0], place[1], place[2]
    m = len(y)
    while i < len(x) and count < budget:
        xi = x[i]
        while first < m and xi - y[first] > reach:
            first += 1
        while last < m and y[last] - xi <= reach:
            last += 1
        # Slices start at zero, which spares the inner loop the wrap-around of negative indices.
        ys, bs, dys = y[first:last], b[first:last], dy[first:last]
        ai = a[i]
        value = 0.0
        slope = 0.0
        for j in range(len(ys)):
            t = xi - ys[j]
            far = abs(t)
            e = exp_negative(-(far - nearest) * (far + nearest) * scale)
            value += bs[j] * e
            slope += bs[j] * e * t
            dys[j] += ai * e * t
        total += ai * value
        dx[i] = -2.0 * scale * ai * slope
        count += last - first
        i += 1
    place[0], place[1], place[2] = i, first, last
    return total, count


@njit(**COMPILE)
def cross_sum(x, a, y, b, variance, nearest, reach, dx, dy):
    """Σ a_i b_j exp(−((x_i − y_j)² − nearest²) / 2V) over the pairs with |x_i − y_j| ≤ reach.

    Taking out the exponent of the nearest pair keeps the sum near one where it would underflow.
    The derivatives of the sum are written to dx and dy. Where ``reach`` is finite, x and y must be
    sorted; with an infinite reach every pair counts in any order. Returns the sum and its number of
    exponentials.
    """
    dy[:] = 0.0
    total, count = add_cross_pairs(
        x, a, y, b, variance, nearest, reach, np.zeros(3, np.int64), _WITHOUT_END, dx, dy
    )  # fmt: skip
    for j in range(len(y)):
        dy[j] *= b[j] / variance
    return total, count


@njit(**COMPILE)
def add_self_pairs(x, a, variance, reach, place, budget, dx):
    """A stretch of self_sum: as add_cross_pairs. Each unordered pair is computed once; dx lacks its factor 2a_i/V."""
    scale = 0.5 / variance
    twice = 0.0
    diagonal = 0.0
    count = 0
    i, first = place[0], place[1]
    while i < len(x) and count < budget:
        xi = x[i]
        while xi - x[first] > reach:
            first += 1
        xs, weights, dxs = x[first:i], a[first:i], dx[first:i]
        ai = a[i]
        value = 0.0
        slope = 0.0
        for j in range(len(xs)):
            t = xi - xs[j]
            e = exp_negative(-t * t * scale)
            value += weights[j] * e
            slope += weights[j] * e * t
            dxs[j] += ai * e * t
        twice += ai * value
        dx[i] -= slope
        diagonal += ai * ai
        count += i - first
        i += 1
    place[0], place[1] = i, first
    return 2.0 * twice + diagonal, count


@njit(**COMPILE)
def self_sum(x, a, variance, reach, dx):
    """Σ a_i a_j exp(−(x_i − x_j)² / 2V) over all ordered pairs within reach, i = j among them.

    Each unordered pair is computed once and counted twice; the diagonal needs no exponential.
    """
    dx[:] = 0.0
    total, count = add_self_pairs(x, a, variance, reach, np.zeros(2, np.int64), _WITHOUT_END, dx)
    for i in range(len(x)):
        dx[i] *= 2.0 * a[i] / variance
    return total, count


@njit(cache=True, nogil=True)
def nearest_distance(x, y):
    """Smallest |x_i − y_j| of two sorted arrays of points or of bin numbers, in one walk along both."""
    best = np.inf
    i = 0
    j = 0
    while i < len(x) and j < len(y):
        best = min(best, abs(x[i] - y[j]))
        if x[i] < y[j]:
            i += 1
        else:
            j += 1
    return best


@njit(cache=True, nogil=True)
def insertion_sort(values, order, budget):
    """Sort ``values`` in place and ``order`` with it; give up after ``budget`` moves.

    Linear in the number of moves, which is what makes it right for a nearly sorted array. Returns the
    moves made, or −1 when the budget ran out (both arrays are then a consistent, partly sorted pair).
    """
    moves = 0
    for i in range(1, len(values)):
        value = values[i]
        index = order[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            order[j] = order[j - 1]
            j -= 1
        values[j] = value
        order[j] = index
        moves += i - j
        if moves > budget:
            return -1
    return moves


@njit(cache=True, nogil=True)
def bin_means(x, a, origin, inverse_width, weights, means, members):
    """Weight and weighted mean of every occupied bin, and the bin of every point; returns the number of bins.

    Bin k holds the x with floor((x − origin) · inverse_width) = k; empty bins take no place in the result.
    """
    n = len(x)
    keys = np.empty(n, np.float64)  # floats: an outlier's bin number may exceed any integer
    for i in range(n):
        keys[i] = np.floor((x[i] - origin) * inverse_width)
    order = np.argsort(keys)
    weights[:] = 0.0
    means[:] = 0.0
    k = -1
    anchor = 0.0
    for r in range(n):
        i = order[r]
        if r == 0 or keys[i] != keys[order[r - 1]]:
            if k >= 0:
                means[k] = anchor + means[k] / weights[k]
            k += 1
            anchor = x[i]
        members[i] = k
        weights[k] += a[i]
        means[k] += a[i] * (x[i] - anchor)  # relative to a member: no cancellation far from zero
    means[k] = anchor + means[k] / weights[k]
    return k + 1


@njit(inline="always")
def _not_below(support, t):
    """The number of support points below t. NumPy's search would be compiled for all types that it knows."""
    low, high = 0, len(support)
    while low < high:
        middle = (low + high) // 2
        if support[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**COMPILE)
def log_density(t, support, weights, bandwidth, out):
    """log Σ_k w_k exp(−(t − s_k)²/2h²) for every t, h the bandwidth; support sorted, weights positive.

    Finite everywhere: the exponent of the nearest support point is taken out first, and points whose
    terms are below 1e-17 of that one are left out, be it the lightest of all.
    """
    n = len(support)
    lightest, heaviest = weights[0], weights[0]
    for k in range(n):
        lightest, heaviest = min(lightest, weights[k]), max(heaviest, weights[k])
    exponents = 40.0 + np.log(heaviest / lightest)
    scale = np.sqrt(0.5) / bandwidth  # applied before squares are taken, which could overflow
    for i in range(len(t)):
        ti = t[i]
        right = _not_below(support, ti)
        closest = min(right, n - 1)
        if right > 0 and (right == n or ti - support[right - 1] < support[right] - ti):
            closest = right - 1
        nearest = abs(ti - support[closest])
        reach = np.sqrt((nearest * scale) ** 2 + exponents) / scale
        # Far out, reach and nearest agree in every digit: the closest point is kept by name.
        first = min(closest, _not_below(support, ti - reach))
        last = max(closest + 1, _not_below(support, ti + reach))
        near, near_weights = support[first:last], weights[first:last]
        total = 0.0
        for k in range(len(near)):
            far = abs(ti - near[k])
            total += near_weights[k] * exp_negative(-((far - nearest) * scale) * ((far + nearest) * scale))
        out[i] = np.log(total) - (nearest * scale) ** 2


@njit(**COMPILE)
def count_not_above(z, thresholds, counts):
    """How many thresholds lie at or below each point: the number of its interval.

    Threshold by threshold over blocks of points: comparisons that vectorise, and no search that mispredicts.
    """
    for start in range(0, len(z), 1024):
        points = z[start : start + 1024]
        block = counts[start : start + 1024]
        block[:] = 0
        for t in thresholds:
            for i in range(len(points)):
                block[i] += points[i] >= t


@njit(**COMPILE)
def _split(z, codes, weights, step, code):
    """Points and weights of one class, and the rows that they come from."""
    n = 0
    for i in range(len(z)):
        n += codes[i] == code
    points, mass, rows = np.empty(n), np.empty(n), np.empty(n, np.int64)
    k = 0
    for i in range(len(z)):
        if codes[i] == code:
            points[k] = z[i]
            mass[k] = weights[i * step]
            rows[k] = i
            k += 1
    return points, mass, rows


@njit(**COMPILE)
def _moments_of(points, mass):
    """Total weight, weighted mean and variance, the points moved to their mean."""
    total = 0.0
    mean = 0.0
    for i in range(len(points)):
        total += mass[i]
        mean += mass[i] * points[i]
    mean /= total
    squares = 0.0
    for i in range(len(points)):
        points[i] -= mean
        squares += mass[i] * points[i] * points[i]
    return total, mean, squares / total


@njit(**COMPILE)
def _scaled_and_dotted(derivatives, total, points):
    """Divide derivatives by the sum that they belong to; returns Σ points · derivatives."""
    dot = 0.0
    for i in range(len(points)):
        derivatives[i] /= total
        dot += points[i] * derivatives[i]
    return dot


@njit(**COMPILE)
def _nearest_of_all(x, y):
    """Smallest |x_i − y_j| in any order. Sorting would be faster, and take longer to compile than all sums."""
    nearest = np.inf
    for i in range(len(x)):
        for j in range(len(y)):
            nearest = min(nearest, abs(x[i] - y[j]))
    return nearest


@njit(**COMPILE)
def _cross_in_logs(x, a, y, b, pairs, variance, dx, dy):
    """log of cross_sum over all pairs, ∂ log by the variance, derivatives of the logarithm, the exponentials spent."""
    total, count = cross_sum(x, a, y, b, variance, 0.0, np.inf, dx, dy)
    exponent = 0.0
    if not total > 1e-100 * pairs:
        # The classes are far apart: once more, with the exponent of the nearest pair taken out.
        nearest = _nearest_of_all(x, y)
        total, more = cross_sum(x, a, y, b, variance, nearest, np.inf, dx, dy)
        count += more
        exponent = -0.5 * nearest * nearest / variance
    slope = -(_scaled_and_dotted(dx, total, x) + _scaled_and_dotted(dy, total, y)) / (2 * variance)
    return exponent + np.log(total), slope, count


@njit(**COMPILE)
def exact_divergence(z, codes, weights, step, shrunk, gamma, floor, w):
    """D over all pairs from projections, with the gradient weight of every row in ``w``: one call, no detours.

    Formulas as in melc.objective, whose pieces do the same for the other methods. Returns D, the number of
    exponentials, whether a class variance was held up by the floor, and ∂D by what shrinkage adds to either variance.
    """
    x, a, rows_x = _split(z, codes, weights, step, 0)
    y, b, rows_y = _split(z, codes, weights, step, 1)
    weight_x, mean_x, variance_x = _moments_of(x, a)
    weight_y, mean_y, variance_y = _moments_of(y, b)
    spread = Spread(weight_x, weight_y, mean_x, mean_y, variance_x, variance_y)
    if total_variance(spread) == 0.0:  # all points coincide along v: so do the densities
        w[:] = 0.0
        return 0.0, 0, True, 0.0, 0.0
    vx, vy = kernel_variances(spread, shrunk, gamma, floor)
    dx, dy, cross_dx, cross_dy = np.empty(len(x)), np.empty(len(y)), np.empty(len(x)), np.empty(len(y))
    sum_x, count_x = self_sum(x, a, 2 * vx, np.inf, dx)
    sum_y, count_y = self_sum(y, b, 2 * vy, np.inf, dy)
    slope_x = -_scaled_and_dotted(dx, sum_x, x) / (4 * vx)
    slope_y = -_scaled_and_dotted(dy, sum_y, y) / (4 * vy)
    shift = mean_y - mean_x
    for i in range(len(y)):
        y[i] += shift  # both classes around the mean of the first
    log_cross, slope_xy, count = _cross_in_logs(x, a, y, b, weight_x * weight_y, vx + vy, cross_dx, cross_dy)
    divergence, by_vx, by_vy = assemble_divergence(
        np.log(sum_x), np.log(sum_y), log_cross, vx, vy, slope_x, slope_y, slope_xy
    )
    own_x, own_y, pooled, by_add_x, by_add_y = variance_pull(spread, shrunk, gamma, floor, by_vx, by_vy)
    centre = shift * weight_y / (weight_x + weight_y)
    for i in range(len(x)):
        w[rows_x[i]] = dx[i] - 2 * cross_dx[i] + a[i] * (own_x * x[i] + pooled * (x[i] - centre))
    for i in range(len(y)):
        w[rows_y[i]] = dy[i] - 2 * cross_dy[i] + b[i] * (own_y * (y[i] - shift) + pooled * (y[i] - centre))
    return divergence, count_x + count_y + count, is_floored(spread, shrunk, floor), by_add_x, by_add_y
