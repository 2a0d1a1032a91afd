"""Sums over all pairs of points on a line, and the sorting and binning that some of them need.

``x`` and ``a``, shape (n,), are the points and weights of one class, ``y`` and ``b``, shape (m,), those of the other.
``variance`` is V in exp(−(x − y)²/2V). Derivatives are written to ``dx`` and ``dy``, of the same shapes.
"""

import math

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

_LOG2_E = 1.4426950408889634
_LN_2 = 0.6931471805599453
_INTEGER_BITS = 6755399441055744.0  # 1.5 · 2^52: adding it to a whole number puts that number in the low bits
_LOWEST = -708.0  # below, exp is subnormal and the exponent bits of 2^k would wrap around


@njit(inline="always")
def exp_negative(x):
    """Return exp(x) for x ≤ 0, with a relative error of about |x|·1e-16.

    There are no branches, so loops around it vectorise; libm's exp would be a call for each element. The method:
    x = (k + f) ln 2 with k an integer and |f| ≤ 1/2, exp(f ln 2) by a Taylor polynomial of degree 11 (next term 6e-15),
    and 2^k by setting the exponent bits.
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
def add_cross_pairs(x, a, y, b, variance, nearest, reach, place, budget, dx, dy):
    """Add up Σ a_i b_j exp(−((x_i − y_j)² − nearest²)/2V) over the pairs with |x_i − y_j| ≤ reach, or a part of it.

    Taking out the exponent of the nearest pair keeps the sum from underflow. If ``reach`` is finite, x and y must be
    sorted. The sum continues at ``place`` until ``budget`` exponentials are spent. ``place``, shape (3,), holds the
    index of the next x and the first and last index of the window of y around it; it is updated. The derivatives of the
    sum are written to ``dx`` and ``dy``. ``dy`` must start at zero and lacks the factor b_j/V. Returns the sum of this
    part and its number of exponentials.
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
        # Slices are indexed from zero, so numba leaves out the test for negative indices in the inner loop.
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
def add_self_pairs(x, a, variance, reach, place, budget, dx):
    """Add up Σ a_i a_j exp(−(x_i − x_j)²/2V) over the ordered pairs with |x_i − x_j| ≤ reach, or a part of it.

    Pairs with i = j are included and need no exponential; each unordered pair is computed once and counted twice. If
    ``reach`` is finite, x must be sorted. The sum continues at ``place`` until ``budget`` exponentials are spent.
    ``place``, shape (2,), holds the index of the next x and the first index of the window below it; it is updated. The
    derivatives are written to ``dx``, which must start at zero and lacks the factor 2a_i/V. Returns the sum of this
    part and its number of exponentials.
    """
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


@njit(cache=True, nogil=True)
def insertion_sort(values, order, budget):
    """Sort ``values`` in place and apply the same moves to ``order``; both have shape (n,).

    The time is linear in n plus the number of moves, so this suits nearly sorted arrays. Returns the number of moves,
    or −1 if it exceeded ``budget``; the arrays are then partly sorted, but still belong together.
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
    """Write the weight and mean of each occupied bin, and the bin of each point. Return the number of occupied bins.

    A bin holds the points with the same floor((x − origin) · inverse_width). ``weights``, ``means`` and ``members``
    have shape (n,); the first two are filled up to the number of occupied bins.
    """
    n = len(x)
    keys = np.empty(n, np.float64)  # floats: the bin number of an outlier may be too large for an integer
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
        means[k] += a[i] * (x[i] - anchor)  # relative to a point of the bin, which avoids cancellation far from zero
    means[k] = anchor + means[k] / weights[k]
    return k + 1


@njit(**COMPILE)
def log_density(t, support, weights, bandwidth, out):
    """Write log Σ_k w_k exp(−(t − s_k)²/2h²) for each t, shape (n,), to ``out``; h is the bandwidth.

    ``support`` (s) must be sorted and ``weights`` (w) positive. The result is finite everywhere, because the exponent
    of the nearest support point is taken out first. Points whose terms are below 1e-17 of that point's term are left
    out; the limit allows for the nearest point having the smallest weight.
    """
    n = len(support)
    lightest, heaviest = weights[0], weights[0]
    for k in range(n):
        lightest, heaviest = min(lightest, weights[k]), max(heaviest, weights[k])
    exponents = 40.0 + math.log(heaviest / lightest)
    scale = math.sqrt(0.5) / bandwidth  # applied before squaring, which could overflow
    for i in range(len(t)):
        ti = t[i]
        place, nearest, reach, closest, first, last = ti, 0.0, 0.0, 0, 0, 0
        for search in range(3):  # where t is, and where the points within reach begin and end
            low, high = 0, n
            while low < high:
                middle = (low + high) // 2
                if support[middle] < place:
                    low = middle + 1
                else:
                    high = middle
            if search == 0:
                closest = min(low, n - 1)
                if low > 0 and (low == n or ti - support[low - 1] < support[low] - ti):
                    closest = low - 1
                nearest = abs(ti - support[closest])
                reach = math.sqrt((nearest * scale) * (nearest * scale) + exponents) / scale
                place = ti - reach
            elif search == 1:
                # Far from the support, reach and nearest agree in all digits, so the closest point is always included.
                first = min(closest, low)
                place = ti + reach
            else:
                last = max(closest + 1, low)
        near, near_weights = support[first:last], weights[first:last]
        total = 0.0
        for k in range(len(near)):
            far = abs(ti - near[k])
            total += near_weights[k] * exp_negative(-((far - nearest) * scale) * ((far + nearest) * scale))
        out[i] = math.log(total) - (nearest * scale) * (nearest * scale)
