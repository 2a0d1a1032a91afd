"""The sum across classes that are far apart, from the points next to the gap between them (its rims).

Let d be the least distance of a point of one class to a point of the other. S is at least the term of the lightest pair
at distance d. The pairs that are farther apart than d + ``bounds.farther(d, V, exponents)`` therefore add up to less
than eps/100 of S, where ``exponents`` is log(100/eps · weight of all pairs / weight of the lightest pair). The sum is
taken over the points that remain, in narrow bins (:mod:`melc.sums.rims`). Their moments take little memory, whether the
points are all different or many are equal.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums import Side, bounds
from melc.sums.bins import BinLayout, Bins
from melc.sums.exact import nearest_distance, sum_across
from melc.sums.moments import BinnedSum, sum_bins_across
from melc.sums.rims import Rims

Chosen = tuple[NDArray[np.bool_], NDArray[np.bool_]]

# The narrow bins may use this fraction of eps.
_SHARE = 0.0625
# Significant bits of a projection, minus some for its position within a bin; and the least exponent of a bin width,
# for points at the origin.
_DIGITS, _LOWEST_EXPONENT = 50, -1000


def bins_at_rims(x: Bins, y: Bins, variance: float, exponents: float) -> tuple[Chosen, tuple[float, float]]:
    """Return masks, shape (n_bins,), of the bins of each class that may matter for the sum, and bounds on the gap."""
    first, second = _distances(*x.edges, *y.edges), _distances(*y.edges, *x.edges)
    least = float(first.min())
    most = least + x.width + y.width
    reach = most + bounds.farther(most, variance, exponents)
    return (first <= reach, second <= reach), (least, most)


def rims_of(
    layout: BinLayout,
    chosen: NDArray[np.bool_],
    extent: float,
    variance: float,
    gap: tuple[float, float],
    exponents: float,
    eps: float,
) -> Rims:
    """Return the chosen bins of the table, divided into bins that are narrow enough for a gap within its bounds.

    ``chosen``, of shape (n_bins,), marks rows of the table. ``extent`` is the largest distance of their points from the
    origin: bins cannot be narrower than the spacing of floats of that size.
    """
    least, most = gap
    reach = most + bounds.farther(most, variance, exponents)
    # Across r bandwidths the gradient is r times as steep, so the sum has to be r times as accurate.
    error = _SHARE * eps / max(1.0, reach / math.sqrt(variance))
    level = max(_LOWEST_EXPONENT, math.floor(math.log2(bounds.rim_bin_width(kernels.ORDER, variance, reach, error))))
    last = max(_LOWEST_EXPONENT, math.frexp(extent)[1] - _DIGITS) if extent > 0 else _LOWEST_EXPONENT
    width = 2.0 ** max(level, last)
    first, second = (round(math.log2(w / width)) for w in layout.widths)
    deep = bounds.farther(least, variance, exponents)
    # If bins of the two classes overlap, the other class may lie inside a bin, so no narrow bins may be left out.
    depth = math.ceil((max(deep, *layout.widths) if least == 0 else deep) / width) + 1
    wholly = np.concatenate([_in_whole_bins(layout, chosen, c, (first, second)[c]) for c in (0, 1)])
    return Rims(np.append(wholly, False), layout.origin, width, (first, second), depth, level < last)


def _in_whole_bins(layout: BinLayout, chosen: NDArray[np.bool_], c: int, level: int) -> NDArray[np.bool_]:
    """Return which bins of class c share a narrow bin with a chosen bin, shape (count_c,).

    If a class varies much less than the other, its ordinary bins may be narrower than the narrow ones.
    """
    mine = chosen[layout.offset[c] : layout.offset[c] + layout.count[c]]
    if level >= 0:
        return mine
    parents = (layout.low[c] + np.arange(layout.count[c])) >> -level
    return np.isin(parents, parents[mine])


def sum_at_rims(rims: Rims, x: Bins, y: Bins, variance: float, eps: float) -> BinnedSum:
    """Return the sum over the pairs of points at the rims. The pairs left out, at most eps/100, are in its error."""
    # If bins should be narrower than the spacing of floats, all points of a bin are practically equal.
    found = _sum_of_means(x, y, variance) if rims.finer_than_floats else sum_bins_across(x, y, variance, eps)
    return replace(found, error=found.error + eps / 100)


def _sum_of_means(x: Bins, y: Bins, variance: float) -> BinnedSum:
    """Return the sum over pairs of bins, with all points of a bin replaced by their mean."""
    sides = [Side((b.keys + 0.5 + 0.5 * b.moments[:, 1] / b.moments[:, 0]) * b.width, b.moments[:, 0]) for b in (x, y)]
    nearest = nearest_distance(sides[0].values, sides[1].values)
    found = sum_across(sides[0], sides[1], variance, nearest)
    assert found.dy is not None
    slope = -float(sides[0].values @ found.dx + sides[1].values @ found.dy) / (2 * variance)
    polynomials = tuple(np.zeros(b.moments.shape) for b in (x, y))
    for table, side, derivative in zip(polynomials, sides, (found.dx, found.dy), strict=True):
        table[:, 0] = derivative / side.weights
    return BinnedSum(found.log_value, slope, polynomials, 0.0, found.n_exponentials)


def _distances(low: Floats, high: Floats, other_low: Floats, other_high: Floats) -> Floats:
    """Return the least distance of each interval (low, high), shape (n,), to the other intervals; zero if they overlap.

    Both sets of intervals are in ascending order.
    """
    after = np.searchsorted(other_low, high)
    to_next = np.append(other_low, math.inf)[after] - high
    to_last = low - np.insert(other_high, 0, -math.inf)[after]
    return np.maximum(np.minimum(to_next, to_last), 0.0)
