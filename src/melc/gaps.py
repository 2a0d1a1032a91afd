"""Classes that lie apart: which points next to the gap decide the sum across it, and that sum.

S is at least the lightest pair at the least distance n of any two, so the pairs that are farther than n by
``bounds.farther(n, V, exponents)`` add up to less than eps/100 of it, where exponents is the logarithm of 100/eps
times all pairs over the lightest. That leaves the rims of the gap; in narrow bins they are few numbers, be they points
of a continuous feature or a crowd at one place.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.layout import Layout
from melc.rim import RimBins, Rims
from melc.sketch import Cells, Sketch, last_digit, rim_level
from melc.sums import Side, bounds
from melc.sums.exact import sum_across as across_pairs
from melc.sums.moments import BinnedSum, Bins, merge, sum_across

Chosen = tuple[NDArray[np.bool_], NDArray[np.bool_]]

# Bandwidths that a sample must be apart to suggest a gap that ordinary bins cannot bridge.
_WORTH_GUESSING = 2.5
# The gap between all rows is guessed to be no narrower than this part of the gap between those of a sample.
_GUESSED_PART = 0.25
# The guessed variance is taken to be right up to this factor.
_GUESSED_VARIANCE = 1.25
# The variance from other bins is the same up to rounding, but rounding may decide between two powers of two.
_SAME_VARIANCE = 1.001


def bins_at_rims(x: Bins, y: Bins, variance: float, exponents: float) -> tuple[Chosen, tuple[float, float]]:
    """Bins of either class whose points may decide the sum; the least and the largest that the gap can be."""
    (low_x, high_x), (low_y, high_y) = (_edges(b.keys, b.width) for b in (x, y))
    first, second = _distances(low_x, high_x, low_y, high_y), _distances(low_y, high_y, low_x, high_x)
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
    """The chosen bins of the table, divided as finely as a gap between these two widths asks for.

    ``extent`` is the largest distance of their points from the origin: no bin can be narrower than its last digit.
    """
    least, most = gap
    reach = most + bounds.farther(most, variance, exponents)
    level = rim_level(layout.order, variance, reach, eps)
    last = last_digit(extent)
    width = 2.0 ** max(level, last)
    first, second = (round(math.log2(w / width)) for w in layout.widths)
    deep = bounds.farther(least, variance, exponents)
    # Where bins of the two classes overlap, nothing may be left out of them.
    depth = math.ceil((max(deep, *layout.widths) if least == 0 else deep) / width) + 1
    wholly = np.concatenate([_in_whole_bins(layout, chosen, c, (first, second)[c]) for c in (0, 1)])
    return Rims(np.append(wholly, False), layout.origin, width, (first, second), depth, level < last)


def _in_whole_bins(layout: Layout, chosen: NDArray[np.bool_], c: int, level: int) -> NDArray[np.bool_]:
    """Which bins of a class share a narrow one with a chosen one: of a class that varies little compared with the
    other, ordinary bins may be narrower still."""
    mine = chosen[layout.offset[c] : layout.offset[c] + layout.count[c]]
    if level >= 0:
        return mine
    parents = (layout.low[c] + np.arange(layout.count[c])) >> -level
    return np.isin(parents, parents[mine])


def guess_rims(layout: Layout, samples: list[Floats], variance: float, exponents: float, eps: float) -> Rims | None:
    """What the rims may turn out to be, judged by a sample of either class; None if it shows no gap.

    Rims that are guessed are binned with all else. All rows may leave less of a gap than the sample shows, so points
    that lie deeper, and narrower bins, are asked for than the sample itself would need.
    """
    x, y = (np.sort(z) - layout.origin for z in samples)
    nearest = float(kernels.nearest_distance(x, y))
    bandwidth = math.sqrt(variance)
    if not nearest > _WORTH_GUESSING * bandwidth:
        return None
    gap = max(_GUESSED_PART * nearest, _WORTH_GUESSING * bandwidth), nearest + sum(layout.widths)
    return _ample_rims(layout, [(x, x), (y, y)], variance, _GUESSED_VARIANCE, gap, exponents, eps)


def foresee_rims(layout: Layout, x: Bins, y: Bins, variance: float, exponents: float, eps: float) -> Rims:
    """The rims in another layout than the one that these bins are of, with something to spare."""
    _, (least, most) = bins_at_rims(x, y, variance, exponents)
    sides = [_edges(b.keys, b.width) for b in (x, y)]
    gap = least, most + sum(layout.widths)
    return _ample_rims(layout, sides, variance, _SAME_VARIANCE, gap, exponents, eps)


def _ample_rims(
    layout: Layout,
    sides: list[tuple[Floats, Floats]],
    variance: float,
    tolerance: float,
    gap: tuple[float, float],
    exponents: float,
    eps: float,
) -> Rims:
    """Rims around the gap between two sides (ends of intervals, from the origin), the variance known up to a factor."""
    deep = bounds.farther(gap[0], tolerance * variance, exponents)
    chosen, extent = np.zeros(layout.n_bins, dtype=bool), 0.0
    for c, other in enumerate(sides[::-1]):
        low, high = _edges(layout.low[c] + np.arange(layout.count[c]), layout.widths[c])
        mine = _distances(low, high, *other) <= gap[1] + deep
        chosen[layout.offset[c] : layout.offset[c] + layout.count[c]] = mine
        extent = max(extent, float(np.abs(low[mine]).max(initial=0.0)))
    rims = rims_of(layout, chosen, extent, variance / tolerance, gap, exponents, eps)
    # Deeper than may be needed: that costs a few numbers, and no pass.
    return replace(rims, depth=2 * math.ceil(deep / rims.width) + 4)


def refit(found: RimBins, guessed: Rims, rims: Rims, layout: Layout) -> RimBins:
    """What was binned at guessed rims as if it had been binned at these, which they cover.

    So a guess spares a pass, and has no say in the sum.
    """
    n_features = found.features[0].shape[1]
    refitted = RimBins(layout.order, n_features)
    for c in (0, 1):
        merged = merge(Bins(found.keys[c], found.moments[c], guessed.width), rims.width)
        keys = merged.bins.keys
        features = np.zeros((len(keys) * n_features, layout.order - 1))
        rows = (merged.parents[:, None] * n_features + np.arange(n_features)).ravel()  # of every bin and feature
        shifts = np.repeat(merged.shifts, n_features)
        before = found.features[c].reshape(len(rows), layout.order - 1)
        kernels.merge_moments(before, rows, merged.shrink, shifts, features)
        ordinary = keys >> rims.levels[c] if rims.levels[c] >= 0 else keys << -rims.levels[c]
        kept = rims.chosen[np.clip(ordinary - layout.low[c], 0, layout.count[c] - 1) + layout.offset[c]]
        refitted.keys[c] = keys[kept]
        refitted.moments[c] = merged.bins.moments[kept]
        refitted.features[c] = features.reshape(len(keys), n_features, layout.order - 1)[kept]
    refitted.crop(rims)
    return refitted


def rims_in(
    sketch: Sketch, layout: Layout, x: Bins, y: Bins, variance: float, exponents: float, eps: float
) -> tuple[Rims, RimBins]:
    """The rims of the gap between the two classes of a sketch, and the bins there.

    A sketch is fine enough for all that matters, wherever the gap is: see :mod:`melc.sketch`. Its ordinary bins are
    given as well: by these alone the gap may be wider, and the rims are as deep and as narrow as that asks for, as far
    as the sketch allows, so that the sum is the same as where the rows are looked up once more.
    """
    chosen, (_, most) = bins_at_rims(x, y, variance, exponents)
    wanted = rim_level(layout.order, variance, most + bounds.farther(most, variance, exponents), eps)
    distances, nearest = _distances_of_cells(*sketch.cells)
    matter = [each <= nearest + bounds.farther(nearest, variance, exponents) for each in distances]
    near = [cells[mine] for cells, mine in zip(sketch.cells, matter, strict=True)]
    last = last_digit(max(float(np.abs(cells.low).max()) for cells in near))
    level = max(wanted, last, *(int(cells.levels.max()) for cells in near))
    found, in_table = RimBins(layout.order), []
    first, second = (round(math.log2(width)) - level for width in layout.widths)
    levels = first, second
    for c, (cells, ordinary_bins) in enumerate(zip(sketch.cells, (x, y), strict=True)):
        parents = np.floor(cells.low / layout.widths[c])
        bins = cells.around(np.isin(parents, ordinary_bins.keys[chosen[c]]), level)
        found.keys[c], found.moments[c] = bins.keys, np.ascontiguousarray(bins.moments[:, : layout.order])
        ordinary = layout.low[c] + np.arange(layout.count[c])
        mates = (ordinary, bins.keys >> levels[c]) if levels[c] >= 0 else (ordinary >> -levels[c], bins.keys)
        in_table.append(np.isin(*mates))
    # Such a point may be in no bin of the table.
    rims = Rims(np.concatenate([*in_table, [True]]), layout.origin, 2.0**level, levels, 0, wanted < last)
    return rims, found


def _distances_of_cells(x: Cells, y: Cells) -> tuple[list[Floats], float]:
    """For every cell the least distance to any of the other class; the most that the nearest two points are apart."""
    distances, most = [], math.inf
    for mine, other in ((x, y), (y, x)):
        order = np.argsort(other.low)
        low, high = mine.low, mine.low + mine.widths
        other_low, other_high = other.low[order], (other.low + other.widths)[order]
        after = np.searchsorted(other_low, high)
        to_next = np.append(other_low, math.inf)[after] - high
        to_last = low - np.insert(np.maximum.accumulate(other_high), 0, -math.inf)[after]
        distances.append(np.maximum(np.minimum(to_next, to_last), 0.0))
        for neighbour in (after - 1, after):
            known = (neighbour >= 0) & (neighbour < len(order))
            theirs = neighbour[known]
            farthest = np.maximum(other_high[theirs] - low[known], high[known] - other_low[theirs])
            most = min(most, float(farthest.min(initial=math.inf)))
    return distances, most


def sum_at_rims(rims: Rims, x: Bins, y: Bins, variance: float, eps: float) -> BinnedSum:
    """The sum over the pairs of points at the rims, which is all but eps/100 of the whole."""
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


def _edges(keys: NDArray[np.int64], width: float) -> tuple[Floats, Floats]:
    """Where bins begin and end, from the origin."""
    low: Floats = keys.astype(np.float64) * width
    return low, low + width


def _distances(low: Floats, high: Floats, other_low: Floats, other_high: Floats) -> Floats:
    """For every interval the least distance to the others, all in ascending order."""
    after = np.searchsorted(other_low, high)
    to_next = np.append(other_low, math.inf)[after] - high
    to_last = low - np.insert(other_high, 0, -math.inf)[after]
    return np.maximum(np.minimum(to_next, to_last), 0.0)
