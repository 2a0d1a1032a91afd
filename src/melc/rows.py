"""Where the rows are, and the two products with them that an evaluation needs.

Segments of rows are worked on by threads. Their number depends on the number of rows only, and their results are
added in their order, so that any number of threads gives the same bits.
"""

import copy
import functools
import itertools
import operator
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc import kernels
from melc.arrays import Floats
from melc.layout import Layout
from melc.points import Binned, Extra, Limits, Points, Ranks, draw_ranks, spread_ranks
from melc.products import products_with
from melc.rim import RimBins, Rims, Slopes
from melc.sketch import Demand, Sketch
from melc.summary import Gathered, Summary
from melc.together import Pass, Together

T = TypeVar("T")

# Takes something on, with the projections of a stretch of rows and its two ends.
Step = Callable[[T, Floats, int, int], None]

_FEW_ROWS = 32_768
_SEGMENT_ROWS = 65_536
_MOST_SEGMENTS = 64
# Rows whose projections are binned while they are still in the cache.
_STRETCH = 131_072
# Numbers of X that stay in a core's cache while several problems read them.
_CACHED_NUMBERS = 32_768
# Rows whose projections are kept between the two passes of an evaluation: 256 MB of them.
_MOST_KEPT = 1 << 25

# Numbers of X that are handed out from a stretch, for rows that count by themselves.
_FEW_NUMBERS = 8192

# Rows that are copied to be multiplied.
_TAKEN_AT_ONCE = 4096

_ONE = np.ones(1)


class Rows:
    """Labelled rows in memory: features X (n, d), a class code 0 or 1 a row, and weights or None.

    X is used as it is: dense in any order and float type, read-only, memory-mapped, or sparse; never copied,
    and never split by class. All sums are accumulated in float64.

    With a ``centre``, every product is with X − centre, taken block by block, unless X is sparse.

    What is asked for along a direction v is asked for with v: projections are kept only to save time, and not where
    there are very many. Rows may be a part of more, and then have their numbers there, from ``first_row`` on.
    """

    def __init__(
        self,
        X: Any,
        codes: NDArray[np.int8],
        weights: Floats | None = None,
        n_threads: int = 1,
        centre: Floats | None = None,
        first_row: int = 0,
        keep: bool = True,
    ) -> None:
        self.X = X
        self.centre = None if sparse.issparse(X) else centre
        self.codes = codes
        self.weights = weights
        self.n_threads = n_threads
        self.first_row = first_row
        self._products = products_with(X, self.centre)
        self.together: Together | None = None
        self.watched: Together | None = None  # a sample makes its passes alone, but ends with the others
        self._pool: ThreadPoolExecutor | None = None
        self._keep = keep and self.n_rows <= _MOST_KEPT
        self._most_segments = _MOST_SEGMENTS
        self._v, self._z = np.empty(0), np.empty(0)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def divisible(self) -> bool:
        """Whether a pass can go stretch by stretch."""
        return self._products.divisible

    def members(self, code: int) -> NDArray[np.int64]:
        """Rows of a class; eight bytes each, so rather of a sample."""
        return np.flatnonzero(self.codes == code)

    def all_weights(self) -> Floats:
        return np.ones(len(self.codes)) if self.weights is None else self.weights

    def project(self, v: Floats) -> Floats:
        """z = Xv."""
        z = np.empty(self.n_rows)
        self._run(lambda: None, lambda _, start, stop: self._products.project(v, start, stop, z[start:stop]))
        return z

    def pull_back(self, w: Floats) -> Floats:
        """Xᵀw."""
        parts = self._run(
            lambda: np.zeros(self.n_features),
            lambda gradient, start, stop: self._products.pull(w[start:stop], start, stop, gradient),
        )
        return _add_up(parts)

    def bin(
        self,
        v: Floats,
        layout: Layout,
        with_features: bool = False,
        rims: Rims | None = None,
        at_any_cost: bool = False,
    ) -> Binned:
        """Project on v and bin, in one pass over X.

        If asked, the features as well, unless X is sparse, and once more in narrow bins the points at some rims.
        Features of points in no bin come along if these are few, or at any cost.
        """
        arguments, order = layout.as_arguments(), layout.order_tag()
        with_features = with_features and not sparse.issparse(self.X)
        most = (sys.maxsize if at_any_cost else _FEW_NUMBERS) if with_features else 0
        add_features = self._adding_features(layout) if with_features else None

        def begin() -> Binned:
            features = None if add_features is None else np.zeros((layout.n_bins, self.n_features, layout.order - 1))
            at_rims = None if rims is None else self._no_points_at(rims, layout)
            return Binned(np.zeros((layout.n_bins, layout.order)), features=features, at_rims=at_rims)

        def note(part: Binned, z: Floats, a: int, b: int, n_outside: int) -> None:
            if n_outside:
                outside = layout.slots(z, self.codes[a:b]) < 0
                part.outside += self._points(np.flatnonzero(outside), z, a, most)
            if add_features is not None:
                add_features(part, z, a, b)
            if rims is not None and part.at_rims is not None:
                self._add_at_rims(part.at_rims, layout, rims, z, a, b)

        def bin_stretch(part: Binned, z: Floats, a: int, b: int) -> None:
            points = (z, self.codes[a:b], *self.weights_and_step(a, b), *arguments, part.moments, order)
            note(part, z, a, b, kernels.bin_points(*points, z, len(z)))

        def project_and_bin(part: Binned, z: Floats, a: int, b: int) -> None:
            points = (z, self.codes[a:b], *self.weights_and_step(a, b), *arguments, part.moments, order)
            note(part, z, a, b, kernels.project_and_bin(self._products.rows, v, a, *points))

        fused = None if self._products.rows is None else project_and_bin
        # One table of features may be large enough.
        rows = self._in_one_segment() if with_features and at_any_cost else self
        return _add_up(rows._along(v, begin, bin_stretch, fused))

    def sketch(self, v: Floats, demand: Demand) -> Sketch:
        """Project on v and bin so finely that no further pass is needed, whatever this one shows."""

        def add(found: list[Sketch], z: Floats, a: int, b: int) -> None:
            weights = None if self.weights is None else self.weights[a:b]
            found.append(Sketch.of(demand, z, self.codes[a:b], weights))

        parts: list[list[Sketch]] = self._along(v, list, add)
        return _add_up(itertools.chain.from_iterable(parts))

    @property
    def sketches(self) -> bool:
        """Whether the first pass of an evaluation has to bring bins that do in any case."""
        return False

    @property
    def remembers(self) -> bool:
        """Whether another pass along the same direction costs little, for projections are kept."""
        return self._keep

    def spares_a_pass(self, layout: Layout, again: bool = False) -> bool:
        """Whether binning the features as well is worth while: it makes the pass dearer, and spares another.

        More so when rows have to be binned ``again``.
        """
        return False

    def _adding_features(self, layout: Layout) -> Step[Binned]:
        """A step that adds the moments of the features."""
        X, centre = np.asarray(self.X), np.zeros(self.n_features) if self.centre is None else self.centre
        arguments, order = layout.as_arguments(), layout.order_tag()

        def add(part: Binned, z: Floats, a: int, b: int) -> None:
            points = (z, self.codes[a:b], *self.weights_and_step(a, b), *arguments, part.features, order)
            kernels.add_features(X, centre, a, *points)

        return add

    def bin_at_rims(self, v: Floats, layout: Layout, rims: Rims) -> RimBins:
        """The points at some rims in narrow bins."""
        return _add_up(
            self._along(
                v,
                lambda: self._no_points_at(rims, layout),
                lambda found, z, a, b: self._add_at_rims(found, layout, rims, z, a, b),
            )
        )

    def _no_points_at(self, rims: Rims, layout: Layout) -> RimBins:
        with_features = rims.with_features and not sparse.issparse(self.X)
        return RimBins(layout.order, self.n_features if with_features else 0)

    def _add_at_rims(self, found: RimBins, layout: Layout, rims: Rims, z: Floats, a: int, b: int) -> None:
        chosen = layout.among(rims.chosen, z, self.codes[a:b])
        size = _TAKEN_AT_ONCE if found.has_features else max(1, len(chosen))
        for first in range(0, len(chosen), size):
            some = chosen[first : first + size]
            rows = a + some
            weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
            features = np.asarray(self._features_of(rows), dtype=np.float64) if found.has_features else None
            found.add(rims, z[some], self.codes[rows], weights, features)

    def pull_back_binned(
        self, v: Floats, layout: Layout, table: Floats, extra: Extra | None, slopes: Sequence[Slopes] = ()
    ) -> Floats:
        """Xᵀw with the weight of a row given by the polynomial of its bin, plus what it has ``extra`` or by others."""
        arguments, order = layout.as_arguments(), layout.order_tag()

        def pull_stretch(gradient: Floats, z: Floats, a: int, b: int) -> None:
            points = (z, self.codes[a:b], *self.weights_and_step(a, b), *arguments, table)
            if self._products.rows is not None and not slopes:
                kernels.weigh_and_pull(self._products.rows, a, *points, gradient, order)
                return
            w = _scratch.of_length("w", b - a)
            kernels.weigh_points(*points, w, order)
            for each in slopes:
                self._add_slopes(each, layout, z, a, b, w)
            self._products.pull(w, a, b, gradient)

        gradient = _add_up(self._along(v, lambda: np.zeros(self.n_features), pull_stretch))
        return gradient if extra is None else gradient + self._pull_some(extra)

    def _add_slopes(self, slopes: Slopes, layout: Layout, z: Floats, a: int, b: int, w: Floats) -> None:
        """Add what some points have there to the weights of a stretch."""
        codes = self.codes[a:b]
        chosen = layout.among(slopes.chosen, z, codes)
        if not len(chosen):
            return
        values = slopes.at(z[chosen], codes[chosen])
        w[chosen] += values if self.weights is None else values * self.weights[a:b][chosen]

    def _pull_some(self, extra: Extra) -> Floats:
        """Xᵀw of some rows, as far as they are here."""
        gradient = np.zeros(self.n_features)
        numbers, weights = extra.within(self.first_row, self.n_rows)
        for a in range(0, len(numbers), _TAKEN_AT_ONCE):
            some = slice(a, a + _TAKEN_AT_ONCE)
            gradient += self._features_of(numbers[some]).T @ weights[some]
        return gradient

    def points_of(self, v: Floats, code: int) -> Points:
        """All points of a class."""

        def choose(found: list[Points], z: Floats, a: int, b: int) -> None:
            found.append(self._points(np.flatnonzero(self.codes[a:b] == code), z, a))

        parts: list[list[Points]] = self._along(v, list, choose)
        return _add_up(itertools.chain.from_iterable(parts))

    def summarise(self, v: Floats) -> Summary:
        """Spread and outermost points of both classes along v."""

        def add(found: Gathered, z: Floats, a: int, b: int) -> None:
            codes = self.codes[a:b]
            kernels.add_spread(z, codes, *self.weights_and_step(a, b), found.spread)
            for c in (0, 1):
                chosen = np.flatnonzero(codes == c)
                weights = np.ones(len(chosen)) if self.weights is None else self.weights[a:b][chosen]
                found.ends[c] = found.ends[c].with_points(z[chosen], weights)

        return _add_up(found.summary() for found in self._along(v, Gathered, add))

    def bin_between(self, v: Floats, layout: Layout, limits: Limits) -> Floats:
        """Moments in bins of the points between the limits of their class, both included."""
        arguments, order = layout.as_arguments(), layout.order_tag()
        low, high = np.array(limits).T

        def bin_stretch(moments: Floats, z: Floats, a: int, b: int) -> None:
            codes = self.codes[a:b]
            inner = np.where((z >= low[codes]) & (z <= high[codes]), z, np.inf)
            weights, step = self.weights_and_step(a, b)
            kernels.bin_points(inner, codes, weights, step, *arguments, moments, order, inner, len(inner))

        return _add_up(self._along(v, lambda: np.zeros((layout.n_bins, layout.order)), bin_stretch))

    def count(self, v: Floats, thresholds: Floats) -> Floats:
        """Weight of either class in every interval between thresholds, one row an interval."""
        shape = len(thresholds) + 1, 2

        def count_stretch(counts: Floats, z: Floats, a: int, b: int) -> None:
            interval = np.empty(b - a, dtype=np.int64)
            kernels.count_not_above(z, thresholds, interval)
            weights = None if self.weights is None else self.weights[a:b]
            counts += np.bincount(2 * interval + self.codes[a:b], weights, counts.size).reshape(shape)

        return _add_up(self._along(v, lambda: np.zeros(shape), count_stretch))

    def _points(self, chosen: NDArray[np.int64], z: Floats, a: int, most: int = 0) -> Points:
        """Some points of the stretch that begins with row a, with their features if these are at most so many."""
        rows = a + chosen
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        features = self._features_of(rows) if len(rows) * self.n_features <= most else None
        return Points(self.first_row + rows, self.codes[rows], z[chosen], weights, features)

    def _features_of(self, rows: NDArray[np.int64]) -> Any:
        """Features of some rows, less the centre."""
        X = self.X[rows]
        return X if self.centre is None else X - self.centre

    @functools.cached_property
    def counts(self) -> tuple[int, int]:
        """Rows of either class."""
        second = int(np.count_nonzero(self.codes))
        return self.n_rows - second, second

    @functools.cached_property
    def total_weights(self) -> tuple[float, float]:
        """Weight of either class."""
        if self.weights is None:
            return float(self.counts[0]), float(self.counts[1])
        first, second = (sum(float(w.sum()) for w in self._weights_by_block(c)) for c in (0, 1))
        return first, second

    @functools.cached_property
    def lightest(self) -> tuple[float, float]:
        """The smallest weight of a row of either class."""
        if self.weights is None:
            return 1.0, 1.0
        first, second = (min(float(w.min(initial=np.inf)) for w in self._weights_by_block(c)) for c in (0, 1))
        return first, second

    def _weights_by_block(self, code: int) -> Iterator[Floats]:
        assert self.weights is not None
        for block in self._blocks():
            yield self.weights[block][self.codes[block] == code]

    def _blocks(self) -> Iterator[slice]:
        """All rows in parts, between which what is solved together can be broken off."""
        for a in range(0, self.n_rows, _SEGMENT_ROWS):
            if self.together is not None:
                self.together.check()
            yield slice(a, a + _SEGMENT_ROWS)

    def sample(self, size: int, rng: np.random.RandomState) -> "Rows":
        """Up to ``size`` rows in their order, or all of these rows if there are no more.

        Each class gives its share, and at least half of the rows it has or an eighth of the sample, so that
        a rare class is not lost.
        """
        return self if self.n_rows <= size else self.take(draw_ranks(self.counts, size, rng))

    def spread_samples(self, size: int) -> list[tuple[Any, Floats]]:
        """Up to ``size`` rows of each class, evenly spread over the data and relative to the centre; their weights."""
        sample = self.take(spread_ranks(self.counts, size))
        X, weights = sample.X if sample.centre is None else sample.X - sample.centre, sample.all_weights()
        members = [np.flatnonzero(sample.codes == c) for c in (0, 1)]
        return [(X[m], weights[m]) for m in members]

    def take(self, ranks: Ranks) -> "Rows":
        """Rows by their ranks in their classes, in ascending order."""
        chosen = np.sort(np.concatenate([self._numbers(c, ranks[c]) for c in (0, 1)]))
        weights = None if self.weights is None else self.weights[chosen]
        drawn = Rows(self.X[chosen], self.codes[chosen], weights, self.n_threads, self.centre)
        drawn.watched = self.together
        return drawn

    def _numbers(self, code: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of a class by ascending ranks. By blocks: a list of all members would weigh eight times the codes."""
        found, passed = [np.empty(0, dtype=np.int64)], 0
        for block in self._blocks():
            members = np.flatnonzero(self.codes[block] == code)
            chosen = slice(*np.searchsorted(ranks, (passed, passed + len(members))))
            found.append(block.start + members[ranks[chosen] - passed])
            passed += len(members)
        return np.concatenate(found)

    def weights_and_step(self, start: int = 0, stop: int | None = None) -> tuple[Floats, int]:
        """Weights of a stretch of rows, and the step from one to the next: none where all are one."""
        return (_ONE, 0) if self.weights is None else (self.weights[start:stop], 1)

    def _along(self, v: Floats, begin: Callable[[], T], step: Step[T], fused: Step[T] | None = None) -> list[T]:
        """A pass over the projections on v; those of the pass before if it had the same v.

        ``fused`` projects and takes the step at once, where somebody has made that faster than one after the other.
        """
        known = np.array_equal(v, self._v)
        if self._keep and not known:
            self._v = np.empty(0)
            if len(self._z) != self.n_rows:  # once: fresh pages of memory would cost as much as filling them
                self._z = np.empty(self.n_rows)

        def project_and_step(something: T, a: int, b: int) -> None:
            z = self._z[a:b] if self._keep else _scratch.of_length("z", b - a)
            if known or fused is None:
                if not known:
                    self._products.project(v, a, b, z)
                step(something, z, a, b)
            else:
                fused(something, z, a, b)

        parts = self._run(begin, project_and_step)
        if self._keep:
            self._v = v.copy()
        return parts

    def _run(self, begin: Callable[[], T], step: Callable[[T, int, int], None]) -> list[T]:
        """A pass over the rows: every segment begins something and takes steps with it, stretch by stretch."""
        if self.watched is not None:
            self.watched.check()
        if self.together is None and self.n_rows <= _FEW_ROWS:  # small data have no time for more
            something = begin()
            step(something, 0, self.n_rows)
            return [something]
        wish = Pass(begin, step)
        if self.together is not None:
            return self.together.run(wish, self._make)
        self._make([wish])
        assert wish.results is not None
        return wish.results

    def _make(self, passes: list[Pass]) -> None:
        """Make several passes at once; results in the order of the segments."""

        def work(start: int, stop: int) -> list[Any]:
            begun = [each.begin() for each in passes]
            for a, b in self._stretches(start, stop, len(passes)):
                if self.together is not None:
                    self.together.check()
                for each, something in zip(passes, begun, strict=True):
                    each.step(something, a, b)
            return begun

        results = self._map(work)
        for i, each in enumerate(passes):
            each.results = [begun[i] for begun in results]

    def _map(self, work: Callable[[int, int], T]) -> list[T]:
        edges = self._segments()
        if len(edges) == 2 or self.n_threads == 1:
            return [work(a, b) for a, b in itertools.pairwise(edges)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        return list(self._pool.map(work, edges[:-1], edges[1:]))

    def _segments(self) -> list[int]:
        if not self._products.divisible:
            return [0, self.n_rows]
        n = min(self._most_segments, max(1, self.n_rows // _SEGMENT_ROWS))
        return [self.n_rows * i // n for i in range(n + 1)]

    def _stretches(self, start: int, stop: int, n_passes: int) -> list[tuple[int, int]]:
        """One pass keeps its projections in the cache; several also want to find the rows there.

        Several take the stretches of one in parts that are whole blocks of the products: sums are then added in the
        same order either way, to the same bits.
        """
        if not self._products.divisible:
            return [(start, stop)]
        whole = [(a, min(a + _STRETCH, stop)) for a in range(start, stop, _STRETCH)]
        if n_passes == 1:
            return whole
        block = self._products.block_rows
        size = block * max(1, _CACHED_NUMBERS // self.n_features // block)
        return [(c, min(c + size, b)) for a, b in whole for c in range(a, b, size)]

    def _in_one_segment(self) -> "Rows":
        """The same rows for one thread."""
        undivided = copy.copy(self)
        undivided._most_segments = 1
        undivided._keep, undivided._v = False, np.empty(0)  # what is kept is the other's
        return undivided

    def around(self, centre: Floats) -> "Rows":
        """The same rows relative to a point."""
        moved = Rows(self.X, self.codes, self.weights, self.n_threads, centre)
        moved.together = self.together
        return moved

    def against_rest(self, k: int) -> "Rows":
        """The same rows, where codes are the numbers of several classes: class k against all others."""
        return Rows(self.X, (self.codes == k).view(np.int8), self.weights, self.n_threads)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


class _Scratch(threading.local):
    """Arrays that a thread uses for one stretch after the other.

    Fresh pages of memory cost as much as filling them, and workers of Dask give all that is freed back at once.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}

    def of_length(self, name: str, n: int) -> Floats:
        if n > _STRETCH:
            return np.empty(n)
        if name not in self._arrays:
            self._arrays[name] = np.empty(_STRETCH)
        return self._arrays[name][:n]


_scratch = _Scratch()


def _add_up(parts: Iterable[T]) -> T:
    """Sum in the given order, into the first."""
    return functools.reduce(operator.iadd, parts)
