"""Classes that lie apart: which points next to the gap decide the sum across it, and that sum.

S is at least the lightest pair at the least distance n of any two points, so the pairs that are farther than n by
``bounds.farther(n, V, exponents)`` add up to less than eps/100 of it, where ``exponents`` is the logarithm of 100/eps
times all pairs over the lightest. What is left are the rims of the gap. In narrow bins they are few numbers, be they
points of a continuous feature or many at one place.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums import Side, bounds
from melc.sums.bins import Bins, Layout
from melc.sums.exact import sum_across as across_pairs
from melc.sums.moments import BinnedSum, sum_across
from melc.sums.rims import Rims

Chosen = tuple[NDArray[np.bool_], NDArray[np.bool_]]

# Narrow bins may cost this part of eps.
_SHARE = 0.0625
# Digits of a projection, in bits, less some for its place in a bin; and the least exponent, for points at the origin.
_DIGITS, _LOWEST = 50, -1000


def bins_at_rims(x: Bins, y: Bins, variance: float, exponents: float) -> tuple[Chosen, tuple[float, float]]:
    """Return which bins of either class hold points that may decide the sum, and between what the gap must be."""
    first, second = _distances(*x.edges, *y.edges), _distances(*y.edges, *x.edges)
    least = float(first.min())
    most = least + x.width + y.width
    reach = most + bounds.farther(most, variance, exponents)
    return (first <= reach, second <= reach), (least, most)


def rims_of(
    layout: Layout,
    chosen: NDArray[np.bool_],
    extent: float,
    variance: float,
    gap: tuple[float, float],
    exponents: float,
    eps: float,
) -> Rims:
    """Return the chosen bins of the table, divided as finely as a gap between these two widths asks for.

    ``extent`` is the largest distance of their points from the origin: no bin can be narrower than its last digit.
    """
    least, most = gap
    reach = most + bounds.farther(most, variance, exponents)
    # A gradient across r bandwidths is r times as steep, and shall not be less exact.
    error = _SHARE * eps / max(1.0, reach / math.sqrt(variance))
    level = max(_LOWEST, math.floor(math.log2(bounds.rim_bin_width(kernels.ORDER, variance, reach, error))))
    last = max(_LOWEST, math.frexp(extent)[1] - _DIGITS) if extent > 0 else _LOWEST
    width = 2.0 ** max(level, last)
    first, second = (round(math.log2(w / width)) for w in layout.widths)
    deep = bounds.farther(least, variance, exponents)
    # Where bins of the two classes overlap, nothing may be left out of them.
    depth = math.ceil((max(deep, *layout.widths) if least == 0 else deep) / width) + 1
    wholly = np.concatenate([_in_whole_bins(layout, chosen, c, (first, second)[c]) for c in (0, 1)])
    return Rims(np.append(wholly, False), layout.origin, width, (first, second), depth, level < last)


def _in_whole_bins(layout: Layout, chosen: NDArray[np.bool_], c: int, level: int) -> NDArray[np.bool_]:
    """Which bins of a class share a narrow one with a chosen one.

    Where a class varies little compared with the other, its ordinary bins may be narrower than the narrow ones.
    """
    mine = chosen[layout.offset[c] : layout.offset[c] + layout.count[c]]
    if level >= 0:
        return mine
    parents = (layout.low[c] + np.arange(layout.count[c])) >> -level
    return np.isin(parents, parents[mine])


def sum_at_rims(rims: Rims, x: Bins, y: Bins, variance: float, eps: float) -> BinnedSum:
    """Return the sum over the pairs of points at the rims, which is all but eps/100 of the whole."""
    # Where the gap is so wide that the last digit of a projection is too wide a bin, what a bin holds is one point.
    found = _sum_of_means(x, y, variance) if rims.to_the_digit else sum_across(x, y, variance, eps)
    return replace(found, error=found.error + eps / 100)


def _sum_of_means(x: Bins, y: Bins, variance: float) -> BinnedSum:
    """The sum with all points of a bin at their mean."""
    sides = [Side((b.keys + 0.5 + 0.5 * b.moments[:, 1] / b.moments[:, 0]) * b.width, b.moments[:, 0]) for b in (x, y)]
    nearest = kernels.nearest_distance(sides[0].values, sides[1].values)
    found = across_pairs(sides[0], sides[1], variance, nearest)
    assert found.dy is not None
    slope = -float(sides[0].values @ found.dx + sides[1].values @ found.dy) / (2 * variance)
    polynomials = tuple(np.zeros(b.moments.shape) for b in (x, y))
    for table, side, derivative in zip(polynomials, sides, (found.dx, found.dy), strict=True):
        table[:, 0] = derivative / side.weights
    return BinnedSum(found.log_value, slope, polynomials, 0.0, found.n_exponentials)


def _distances(low: Floats, high: Floats, other_low: Floats, other_high: Floats) -> Floats:
    """For every interval the least distance to the others, all in ascending order."""
    after = np.searchsorted(other_low, high)
    to_next = np.append(other_low, math.inf)[after] - high
    to_last = low - np.insert(other_high, 0, -math.inf)[after]
    return np.maximum(np.minimum(to_next, to_last), 0.0)
