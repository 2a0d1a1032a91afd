"""Points on a line in as few moment bins as any sum over all rows may turn out to need, judged by a part of the rows.

Where reading the rows again is dear, what a first pass brings home must do, whatever the pass itself will show of
widths and gaps. Two facts make that possible. A part of the rows knows the least that the variances of all can be:
squares around a mean only add up. And more rows can close a gap between points of a class, or move its edge outwards,
but never the other way. So every part bins as finely as it would have to if no other rows came to help, and where two
parts are added up, more is known and bins are joined.

How fine that is. Let V be the kernel variance of the sum across, and E the exponents beyond which a pair counts
nothing, so that with n the distance of the nearest pair only pairs within r = √(n² + 2VE) count. Bins of
``bounds.rim_bin_width(r)`` keep each of them.

- Where n is at most u = ½√(2VE), bins for r = √(u² + 2VE) will do, and are used everywhere.
- Where it is more, the other class stands in a gap of this one that is wider than 2u. A point as deep as δ behind the
  edge of a gap counts for pairs across n only if n δ + δ²/2 ≤ VE, so r ≤ VE/δ + δ/2: towards the edge bins get
  narrower in proportion to the depth, down to the last digit of a projection.
- Where classes overlap, single pairs need not be kept. Pairs in the same ordinary bin show the least that the sum can
  be, also of a part of the rows, and bins that change no pair by more than eps/8 of that (``bounds.sure_bin_width``)
  do for it. They are used where they are wider than those above, and no gap can matter then.

All bins are 2ˡ wide and begin at multiples of that, so they fit into one another.
"""

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.evaluation import VARIANCE_FLOOR
from melc.kernels import ORDERS
from melc.layout import Layout
from melc.rim import distinct, positions
from melc.sums import bounds
from melc.sums.moments import Bins

Whole = NDArray[np.int64]

# Narrow bins may cost this part of eps.
_SHARE = 0.0625
# Digits of a projection, in bits, less some for its place in a bin.
_DIGITS = 50
# The least level of a bin: of points at the origin there are no digits to go by.
_LOWEST = -1000
_AS_IT_IS = 1 << 20  # in place of a level: the bin need not be narrower
# Points that are kept as they are.
_FEW_POINTS = 1 << 16
# Levels that bins may be narrower than they need be, for sums to be the same as with bins that a sample suggests.
_MORE_LEVELS = 4
# Bins of a class in a table, and standard deviations that it reaches from the mean: other points are few.
_LONGEST_TABLE = 1 << 14
_MOST_DEVIATIONS = 8


def rim_levels(order: int, variance: float, reach: Floats, eps: float) -> Whole:
    """Levels of bins that keep pairs up to so far apart."""
    # A gradient across r bandwidths is r times as steep, and shall not be less exact.
    errors = _SHARE * eps / np.maximum(1.0, reach / math.sqrt(variance))
    widths = bounds.rim_bin_widths(order, variance, reach, errors)
    return np.maximum(np.floor(np.log2(widths)), _LOWEST).astype(np.int64)


def rim_level(order: int, variance: float, reach: float, eps: float) -> int:
    """The level of bins that keep pairs up to so far apart."""
    return int(rim_levels(order, variance, np.array([reach]), eps)[0])


def last_digit(extent: float) -> int:
    """The least level of bins that can be told from one another among points so far from the origin."""
    return max(_LOWEST, math.frexp(extent)[1] - _DIGITS) if extent > 0 else _LOWEST


@dataclass(frozen=True)
class Demand:
    """All that decides how fine bins must be along a direction, but for the points."""

    origin: float
    order: int  # of the bins, and so how wide they may be; a sketch has the moments of the highest
    guessed: tuple[float, float]  # widths: bins are as narrow, if that is not very narrow
    total_weights: tuple[float, float]  # of all rows, not of a part
    shrunk: kernels.Shrunk
    gamma: float
    eps: float
    exponents: float

    def variances(self, squares: tuple[float, float]) -> tuple[float, float]:
        """Kernel variances, at least, given the squares around the mean of either class in a part of the rows."""
        weight_x, weight_y = self.total_weights
        spread = kernels.Spread(weight_x, weight_y, 0.0, 0.0, squares[0] / weight_x, squares[1] / weight_y)
        x, y = kernels.kernel_variances(spread, self.shrunk, self.gamma, VARIANCE_FLOOR)
        return float(x), float(y)

    def fineness(self, squares: tuple[float, float]) -> "Fineness":
        x, y = self.variances(squares)
        return Fineness(self, x + y, (self._within(x, 0), self._within(y, 1)), self._ordinary(x + y))

    def _within(self, variance: float, c: int) -> int:
        level = self._ordinary(2 * variance) - 1  # one less: what is promised as a rule is then certain
        return min(level, max(round(math.log2(self.guessed[c])), level - _MORE_LEVELS))

    def _ordinary(self, variance: float) -> int:
        """The level of bins that should do for a sum that is not all tail."""
        if not variance > 0:
            return _LOWEST
        return math.floor(math.log2(bounds.moment_bin_width(self.order, variance, self.eps / 4)))


@dataclass(frozen=True)
class Fineness:
    """How wide bins may be where the kernel variance of the sum across is at least ``variance``.

    ``within`` is the level that sums within either class allow, ``ordinary`` the one for a sum across that is not all
    tail, and ``overlap`` the least that the sum across is known to be, over all pairs.
    """

    demand: Demand
    variance: float
    within: tuple[int, int]
    ordinary: int
    overlap: float = 0.0

    def elsewhere(self, c: int) -> int:
        """The level of bins of a class that are not near an edge."""
        return min(self.across, self.within[c])

    @functools.cached_property
    def across(self) -> int:
        """The level of bins for the sum across that are not near an edge."""
        if not self.variance > 0:
            return _LOWEST
        return self._bridged if self.is_bridged else self._for_any_pair

    @functools.cached_property
    def is_bridged(self) -> bool:
        """Whether so much overlaps that no gap can matter."""
        return self.variance > 0 and self._bridged >= self._for_any_pair

    @property
    def _for_any_pair(self) -> int:
        reach = math.sqrt(2.5 * self.variance * self.demand.exponents)
        return rim_level(self.demand.order, self.variance, reach, self.demand.eps)

    @property
    def _bridged(self) -> int:
        width = bounds.sure_bin_width(self.demand.order, self.variance, self.demand.eps / 8 * self.overlap)
        return min(self.ordinary, math.floor(math.log2(width))) if width > 0 else _LOWEST

    @property
    def gap(self) -> float:
        """Gaps between bins from which their edges count as such: those wider than 2u between points all are."""
        return max(0.0, math.sqrt(2 * self.variance * self.demand.exponents) - 2 * 2.0**self.across)

    @property
    def depth(self) -> float:
        """Behind an edge bins are narrower than elsewhere up to here."""
        if not self.variance > 0:  # everywhere as narrow as can be
            return 0.0
        exponents = self.demand.exponents
        return 2 * bounds.farther(math.sqrt(self.variance * exponents / 2), self.variance, exponents)

    def at_depth(self, depths: Floats) -> Whole:
        """Levels of bins that hold points so deep; a bin may begin half as deep."""
        half = depths / 2
        reach = self.variance * self.demand.exponents / half + half / 2
        return rim_levels(self.demand.order, self.variance, reach, self.demand.eps)

    def with_overlap(self, least: float, shared: float) -> "Fineness":
        """Knowing that so many pairs share an ordinary bin, or what is known to be the least."""
        if not self.variance > 0:
            return replace(self, overlap=least)
        weight_x, weight_y = self.demand.total_weights
        farthest = math.exp(-(2.0 ** (2 * self.ordinary)) / (2 * self.variance))
        return replace(self, overlap=max(least, shared / weight_x / weight_y * farthest))


@dataclass
class Cells:
    """Bins of one class that hold points: bin ``keys[i]`` of all that are ``2**levels[i]`` wide, and its moments.

    One may lie in another: each holds what was put into it.
    """

    levels: Whole
    keys: Whole
    moments: Floats

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def widths(self) -> Floats:
        return np.ldexp(1.0, self.levels)

    @property
    def low(self) -> Floats:
        """Where they begin, from the origin."""
        return np.ldexp(self.keys.astype(np.float64), self.levels)

    def __getitem__(self, chosen: NDArray[np.bool_]) -> "Cells":
        return Cells(self.levels[chosen], self.keys[chosen], self.moments[chosen])

    def __add__(self, other: "Cells") -> "Cells":
        """One after the other."""
        pairs = zip((self.levels, self.keys, self.moments), (other.levels, other.keys, other.moments), strict=True)
        return Cells(*(np.concatenate(pair) for pair in pairs))

    def raised(self, levels: Whole) -> "Cells":
        """Joined into bins of the given levels, one for every cell; in the order of levels and keys."""
        rise = levels - self.levels
        # As floats, which hold all digits of a number however many are shifted out.
        keys = np.floor(np.ldexp(self.keys.astype(np.float64), -rise)).astype(np.int64)
        shifts = 2 * np.ldexp(self.low - np.ldexp(keys.astype(np.float64), levels) + self.widths / 2, -levels) - 1
        order = np.lexsort((keys, levels))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(keys[order]) != 0) | (np.diff(levels[order]) != 0)
        rows = np.empty(len(order), dtype=np.int64)
        rows[order] = np.cumsum(new) - 1
        moments = np.zeros((int(new.sum()), self.moments.shape[1]))
        for step in np.unique(rise):
            mine = rise == step
            kernels.merge_moments(self.moments[mine], rows[mine], math.ldexp(1.0, -int(step)), shifts[mine], moments)
        return Cells(levels[order][new], keys[order][new], moments)

    def around(self, chosen: NDArray[np.bool_], level: int) -> "Cells":
        """Some of them joined into bins of one level, with all others that lie in the same bins; not wider ones."""
        narrow = self.levels <= level
        keys = np.floor(np.ldexp(self.low, -level))
        mine = narrow & np.isin(keys, keys[narrow & chosen])
        return self[mine].raised(np.full(int(mine.sum()), level))

    def spread(self) -> tuple[float, float, float]:
        """Weight of their points, mean from the origin and squares around it."""
        if not len(self):
            return 0.0, 0.0, 0.0
        half = self.widths / 2
        middle = self.low + half
        weights, first, second = self.moments[:, 0], self.moments[:, 1], self.moments[:, 2]
        # No BLAS here and below, whose threads might add in another order.
        total = float(np.sum(weights))
        mean = float(np.sum(middle * weights + half * first)) / total
        away = middle - mean  # around the mean, so that nothing cancels
        squares = np.sum(away * (away * weights + 2 * half * first) + half**2 * second)
        return total, mean, max(0.0, float(squares))


def _no_cells() -> Cells:
    return Cells(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty((0, ORDERS[-1])))


@dataclass(frozen=True)
class Unbinned:
    """Points as they are: projections, classes, and weights or None."""

    z: Floats
    codes: NDArray[np.int8]
    weights: Floats | None

    def __len__(self) -> int:
        return len(self.z)

    def __getitem__(self, chosen: NDArray[Any]) -> "Unbinned":
        return Unbinned(self.z[chosen], self.codes[chosen], None if self.weights is None else self.weights[chosen])

    def __add__(self, others: "Unbinned") -> "Unbinned":
        """One after the other."""
        if not len(self) or not len(others):
            return self if len(self) else others
        weights = None
        if self.weights is not None and others.weights is not None:
            weights = np.concatenate([self.weights, others.weights])
        return Unbinned(np.concatenate([self.z, others.z]), np.concatenate([self.codes, others.codes]), weights)

    def of(self, c: int, origin: float) -> tuple[Floats, Floats]:
        """Those of a class, from the origin on, and their weights."""
        mine = np.flatnonzero(self.codes == c)
        return self.z[mine] - origin, np.ones(len(mine)) if self.weights is None else self.weights[mine]

    def weights_and_step(self) -> tuple[Floats, int]:
        """As kernels take them."""
        return (np.ones(1), 0) if self.weights is None else (self.weights, 1)


_NO_POINTS = Unbinned(np.empty(0), np.empty(0, dtype=np.int8), None)


@dataclass
class Sketch:
    """Bins of either class, as fine as the points in them and nothing else would ask for.

    Few points are kept as they are: bins would be about as many.
    """

    demand: Demand
    points: Unbinned = _NO_POINTS
    cells: list[Cells] = field(default_factory=lambda: [_no_cells(), _no_cells()])
    overlap: float = 0.0

    @classmethod
    def of(cls, demand: Demand, z: Floats, codes: NDArray[np.int8], weights: Floats | None) -> "Sketch":
        """Of these points, which may change later on."""
        if len(z) > _FEW_POINTS:
            sketch = cls(demand, Unbinned(z, codes, weights))
            sketch.settle()
            return sketch
        return cls(demand, Unbinned(z.copy(), codes.astype(np.int8), None if weights is None else weights.copy()))

    def __iadd__(self, other: "Sketch") -> "Sketch":
        self.points += other.points
        self.cells = [mine + theirs for mine, theirs in zip(self.cells, other.cells, strict=True)]
        self.overlap = max(self.overlap, other.overlap)
        if any(map(len, self.cells)) or len(self.points) > _FEW_POINTS:
            self.settle()
        return self

    def settle(self) -> None:
        """Put all points into bins, and join the bins as far as they allow."""
        if len(self.points):
            self._bin_points()
        x, y = self.cells
        fineness = self.demand.fineness((x.spread()[2], y.spread()[2]))
        fineness = fineness.with_overlap(self.overlap, _shared_by(self.cells, fineness))
        self.overlap = fineness.overlap
        self.cells = [_joined(cells, c, fineness) for c, cells in enumerate(self.cells)]

    def _bin_points(self) -> None:
        measures, points = np.empty((2, 5)), self.points
        kernels.measure_classes(points.z, points.codes, *points.weights_and_step(), self.demand.origin, measures)
        fineness = self.demand.fineness((measures[0, 2], measures[1, 2]))
        fineness = fineness.with_overlap(self.overlap, _shared_by_points(points, measures, fineness))
        self.overlap, self.points = fineness.overlap, _NO_POINTS
        found = _binned(points, measures, fineness)
        self.cells = [mine + more for mine, more in zip(self.cells, found, strict=True)]

    def spread(self) -> kernels.Spread:
        """Weights, means and variances of all points, exact."""
        (weight_x, mean_x, squares_x), (weight_y, mean_y, squares_y) = (cells.spread() for cells in self.cells)
        origin = self.demand.origin
        return kernels.Spread(
            weight_x, weight_y, origin + mean_x, origin + mean_y, squares_x / weight_x, squares_y / weight_y
        )

    def bins(self, c: int, width: float, order: int) -> Bins:
        """Bins of a class, all of this width, or of the least that all can have."""
        level = max(round(math.log2(width)), int(self.cells[c].levels.max()))
        cells = self.cells[c].raised(np.full(len(self.cells[c]), level))
        return Bins(cells.keys, np.ascontiguousarray(cells.moments[:, :order]), 2.0**level)


def _shared_by(cells: list[Cells], fineness: Fineness) -> float:
    """Pairs of points of the two classes in the same ordinary bin."""
    if not fineness.variance > 0:
        return 0.0
    keys = [np.floor(mine.low * 2.0**-fineness.ordinary) for mine in cells]
    found, rows = np.unique(np.concatenate(keys), return_inverse=True)
    first, second = np.split(rows, [len(cells[0])])
    x, y = cells[0].moments[:, 0], cells[1].moments[:, 0]
    return float(np.sum(np.bincount(first, x, len(found)) * np.bincount(second, y, len(found))))


def _shared_by_points(points: Unbinned, measures: Floats, fineness: Fineness) -> float:
    """Pairs of points of the two classes in the same ordinary bin; most of them, if these bins are very many."""
    lowest, highest = measures[:, 3].max(), measures[:, 4].min()  # of the range that both are in
    if not fineness.variance > 0 or not lowest <= highest:
        return 0.0
    inverse = 2.0**-fineness.ordinary
    first, last = math.floor(lowest * inverse), math.floor(highest * inverse)
    masses = np.zeros((2, min(last - first + 1, _LONGEST_TABLE)))
    weights, origin = points.weights_and_step(), fineness.demand.origin
    kernels.add_masses(points.z, points.codes, *weights, origin, inverse, float(first), masses)
    return float(np.sum(masses[0] * masses[1]))


def _binned(points: Unbinned, measures: Floats, fineness: Fineness) -> list[Cells]:
    """Points in bins: those near an edge or far out to the last digit, whose bins will be joined at once."""
    layout = _table(measures, fineness)
    moments = np.zeros((layout.n_bins, layout.order))
    located = points.z, points.codes, *points.weights_and_step(), *layout.as_arguments()
    n_outside = kernels.bin_points(*located, moments, layout.order_tag(), points.z, len(points))
    tables = [_occupied(layout, moments, c) for c in (0, 1)]
    if n_outside == 0 and fineness.is_bridged:
        return tables
    slots = layout.slots(points.z, points.codes)
    outside = points[slots < 0]
    far = [_to_the_digit(outside, c, layout.origin) for c in (0, 1)]
    if fineness.is_bridged:
        return [table + more for table, more in zip(tables, far, strict=True)]
    found, finer = [], np.full(layout.n_bins + 1, _AS_IT_IS)
    for c, table in enumerate(tables):
        wanted = _levels_at(_depths(table + far[c], fineness)[: len(table)], c, fineness)
        shallow = wanted < table.levels
        finer[layout.offset[c] + table.keys[shallow] - layout.low[c]] = wanted[shallow]
        found.append(table[~shallow] + far[c])
    levels = finer[slots]
    for level in np.unique(levels[levels != _AS_IT_IS]):
        mine = points[levels == level]
        at_level = _to_the_digit if level == _LOWEST else functools.partial(_at_level, level=int(level))
        found = [each + at_level(mine, c, layout.origin) for c, each in enumerate(found)]
    return found


def _table(measures: Floats, fineness: Fineness) -> Layout:
    """Bins for most points of either class."""
    low, count, levels = [], [], []
    for c, (weight, mean, squares, least, largest) in enumerate(measures):
        level = fineness.elsewhere(c)
        if weight == 0:
            low.append(0)
            count.append(0)
            levels.append(level)
            continue
        most = _MOST_DEVIATIONS * math.sqrt(squares / weight)
        ends = max(least, mean - most), min(largest, mean + most)
        level = max(level, last_digit(max(map(abs, ends))))
        first, last, middle = (math.floor(x * 2.0**-level) for x in (*ends, mean))
        first, last = max(first, middle - _LONGEST_TABLE // 2), min(last, middle + _LONGEST_TABLE // 2)
        low.append(first)
        count.append(last - first + 1)
        levels.append(level)
    if abs(levels[0] - levels[1]) > _DIGITS:  # no arithmetic for both at once
        count = [0, 0]
    widths = 2.0 ** levels[0], 2.0 ** levels[1]
    return Layout(fineness.demand.origin, widths, (low[0], low[1]), (count[0], count[1]), ORDERS[-1])


def _occupied(layout: Layout, moments: Floats, c: int) -> Cells:
    """Bins of a class in a table that hold points."""
    mine = moments[layout.offset[c] : layout.offset[c] + layout.count[c]]
    rows = np.flatnonzero(mine[:, 0])
    level = round(math.log2(layout.widths[c]))
    return Cells(np.full(len(rows), level), layout.low[c] + rows, mine[rows])


def _to_the_digit(points: Unbinned, c: int, origin: float) -> Cells:
    """Points of a class, each in a bin of its last digit."""
    x, weights = points.of(c, origin)
    levels = np.where(x == 0, _LOWEST, np.maximum(np.frexp(x)[1] - _DIGITS, _LOWEST)).astype(np.int64)
    scaled = np.ldexp(x, -levels)
    floor = np.floor(scaled)
    moments = weights[:, None] * np.vander(2 * (scaled - floor) - 1, ORDERS[-1], increasing=True)
    return Cells(levels, floor.astype(np.int64), moments)


def _at_level(points: Unbinned, c: int, origin: float, level: int) -> Cells:
    """Points of a class in bins of one level."""
    x, weights = points.of(c, origin)
    level = max(level, last_digit(float(np.abs(x).max(initial=0.0))))
    scaled = x * 2.0**-level
    floor = np.floor(scaled)
    each = floor.astype(np.int64)
    keys = distinct(each)
    moments = np.zeros((len(keys), ORDERS[-1]))
    kernels.add_point_moments(2 * (scaled - floor) - 1, positions(keys, each), weights, moments)
    return Cells(np.full(len(keys), level), keys, moments)


def _joined(cells: Cells, c: int, fineness: Fineness) -> Cells:
    """Bins joined as far as their points allow."""
    if not len(cells):
        return cells
    if fineness.is_bridged:
        levels = np.full(len(cells), fineness.elsewhere(c))
    else:
        levels = _levels_at(_depths(cells, fineness), c, fineness)
    return cells.raised(np.maximum(levels, cells.levels))


def _levels_at(depths: Floats, c: int, fineness: Fineness) -> Whole:
    """Levels of bins of a class so deep behind an edge; the lowest for those at it."""
    levels = np.where(depths > 0, fineness.elsewhere(c), _LOWEST)
    near = np.flatnonzero((depths > 0) & (depths < fineness.depth))
    # In steps, so that there are few to work out; and rounded down, for shallower asks for more.
    steps, inverse = np.unique(np.floor(4 * np.log2(depths[near])), return_inverse=True)
    if len(steps):
        levels[near] = np.minimum(fineness.at_depth(np.exp2(steps / 4))[inverse], fineness.elsewhere(c))
    return levels


def _depths(cells: Cells, fineness: Fineness) -> Floats:
    """How deep cells lie, at least, behind the next edge of a gap between them; zero at an edge."""
    if not len(cells):
        return np.empty(0)
    low = cells.low
    order = np.argsort(low)
    low, high = low[order], (low + cells.widths)[order]
    starts = np.flatnonzero(np.append(True, low[1:] - np.maximum.accumulate(high)[:-1] > fineness.gap))
    lengths = np.diff(starts, append=len(low))
    # The first point of a crowd lies before the first end of a bin, and the last behind the last beginning.
    first, last = np.minimum.reduceat(high, starts), low[starts + lengths - 1]
    depths = np.empty(len(low))
    depths[order] = np.minimum(low - np.repeat(first, lengths), np.repeat(last, lengths) - high)
    return np.maximum(depths, 0.0)
