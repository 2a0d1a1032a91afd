"""Rows in memory, and the passes over them that an evaluation needs."""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc import kernels
from melc.arrays import Floats
from melc.data.hashing import DistinctRows, RowHashes, Selection, weights_and_step
from melc.data.hats import CurveRequest, CurveSums
from melc.data.points import Binned, ClassSummaries, Extra, Gathered, Points
from melc.data.products import SEGMENT_ROWS, Passes, T, add_up
from melc.data.source import Limits, Ranks
from melc.sums.bins import BinLayout
from melc.sums.rims import RimBins, Rims, RimSlopes

# step(accumulator, z, start, stop) adds the rows start … stop − 1, whose projections are z, to an accumulator.
Step = Callable[[T, Floats, int, int], None]

# Projections are kept between the passes of an evaluation for up to this many rows (256 MB).
_MAX_PROJECTIONS_KEPT = 1 << 25
# Points that lie in no bin are returned with their features if these are at most this many numbers for a stretch: then
# the gradient needs no second pass over the rows.
_OUTLIER_NUMBERS = 8192
# Rows that are projected on all lines at once, when curves are fitted.
_CURVE_ROWS = 4096
# Selected rows are copied and multiplied in blocks of this many.
_TAKEN_ROWS = 4096


class MemoryRows:
    """Labelled rows in memory.

    X has shape (n, d), ``codes`` (0 or 1) shape (n,), and ``weights`` shape (n,) or is None for weights of one.

    X may be dense in any order and float type, read-only, memory-mapped, or sparse. It is never copied as a whole and
    never split by class. All sums are accumulated in float64. With a ``centre``, of shape (d,), all products are with
    X − centre, which is formed block by block; a sparse X is not centred.

    The methods are described in :class:`melc.data.source.Rows`. In addition there are the plain products ``project``
    and ``pull_back``. If ``keep``, the projections of the last pass are kept for the next pass along the same
    direction, unless there are too many. If the rows are a part of a larger data set, ``first_row`` is the number of
    the first. ``hashes`` are computed when needed if None.
    """

    distributed: ClassVar[bool] = False

    def __init__(
        self,
        X: Any,
        codes: NDArray[np.int8],
        weights: Floats | None = None,
        n_threads: int = 1,
        centre: Floats | None = None,
        first_row: int = 0,
        keep: bool = True,
        hashes: RowHashes | None = None,
    ) -> None:
        self.X = X
        self.n_rows, self.n_features = (int(n) for n in X.shape)
        self.centre = None if sparse.issparse(X) else centre
        self.codes = codes
        self.weights = weights
        self.first_row = first_row
        self._hashes = hashes
        self._passes = Passes(X, self.centre, n_threads)
        self._keep = keep and self.n_rows <= _MAX_PROJECTIONS_KEPT
        self._v, self._z = np.empty(0), np.empty(0)

    @property
    def hashes(self) -> RowHashes:
        if self._hashes is None:
            self._hashes = RowHashes(self.X, self.weights)
        return self._hashes

    @property
    def n_threads(self) -> int:
        return self._passes.n_threads

    @property
    def canonical(self) -> bool:
        return self.hashes.canonical

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        n_classes = max(2, 1 + int(self.codes.max(initial=0)))
        found = [np.bincount(self.codes[block], minlength=n_classes) for block in self._passes.blocks()]
        return tuple(np.sum(found, axis=0).tolist())

    @functools.cached_property
    def total_weights(self) -> tuple[float, ...]:
        if self.weights is None:
            return tuple(map(float, self.counts))
        return tuple(sum(float(w.sum()) for w in self._weights_by_block(c)) for c in range(len(self.counts)))

    @functools.cached_property
    def smallest_weights(self) -> tuple[float, ...]:
        if self.weights is None:
            return (1.0,) * len(self.counts)
        return tuple(
            min(float(w.min(initial=np.inf)) for w in self._weights_by_block(c)) for c in range(len(self.counts))
        )

    def _weights_by_block(self, code: int) -> Iterator[Floats]:
        assert self.weights is not None
        for block in self._passes.blocks():
            yield self.weights[block][self.codes[block] == code]

    # ------------------------------------------------------------------------------------------ all rows at once

    def members(self, code: int) -> NDArray[np.int64]:
        """Return the numbers of the rows of a class, shape (n_class,). They take eight bytes each."""
        return np.flatnonzero(self.codes == code)

    def all_weights(self) -> Floats:
        """Return the weights, of shape (n,)."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    def _weights_of(self, rows: NDArray[np.int64]) -> Floats:
        """Return the weights of some rows, by their numbers."""
        return np.ones(len(rows)) if self.weights is None else self.weights[rows]

    def weights_and_step(self, start: int = 0, stop: int | None = None) -> tuple[Floats, int]:
        """Return the weights of the rows from start to stop and their step, as arguments for the kernels."""
        return weights_and_step(self.weights, slice(start, stop))

    def project(self, v: Floats) -> Floats:
        """Return z = Xv, of shape (n,)."""
        z, project = np.empty(self.n_rows), self._passes.project
        if self.n_rows <= SEGMENT_ROWS:
            project(v, 0, self.n_rows, z)
        else:
            self._passes.run(lambda: None, lambda _, start, stop: project(v, start, stop, z[start:stop]))
        return z

    def pull_back(self, w: Floats) -> Floats:
        """Return Xᵀw, of shape (d,)."""
        gradient, pull = np.zeros(self.n_features), self._passes.pull
        if self.n_rows <= SEGMENT_ROWS:
            pull(w, 0, self.n_rows, gradient)
            return gradient
        return add_up(
            self._passes.run(
                lambda: np.zeros(self.n_features),
                lambda gradient, start, stop: pull(w[start:stop], start, stop, gradient),
            )
        )

    # ------------------------------------------------------------------------------------------- into bins and back

    def bin(self, v: Floats, layout: BinLayout, with_features: bool = False) -> Binned:
        """Return the moments of the projections on v in the bins of a layout, in one pass.

        The moments of the features are included if ``with_features`` is set and X is dense.
        """
        n_features = self.n_features if with_features and not sparse.issparse(self.X) else 0

        def begin() -> Binned:
            features = np.zeros((layout.n_bins, n_features, kernels.ORDER - 1)) if n_features else None
            return Binned(np.zeros((layout.n_bins, kernels.ORDER)), features=features)

        def bin_stretch(part: Binned, z: Floats, a: int, b: int) -> None:
            located = self._located(layout, z, a, b)
            if kernels.bin_points(*located, part.moments):  # some points lie in no bin
                outside = np.flatnonzero(located[0] < 0)
                found = self._points(outside, z, a, 0 if part.features is None else _OUTLIER_NUMBERS)
                part.outside = found if part.outside is None else part.outside + found
            if part.features is not None:
                centre = np.zeros(self.n_features) if self.centre is None else self.centre
                kernels.add_features(np.asarray(self.X), centre, a, *located, part.features)

        return add_up(self._pass_along(v, begin, bin_stretch))

    def _located(self, layout: BinLayout, z: Floats, a: int, b: int) -> tuple[Any, ...]:
        """Return the bins of the points a … b − 1 and their weights, as arguments for the kernels."""
        return (*layout.located(z, self.codes[a:b]), *self.weights_and_step(a, b))

    def bin_at_rims(self, v: Floats, layout: BinLayout, rims: Rims) -> RimBins:
        def add(found: RimBins, z: Floats, a: int, b: int) -> None:
            chosen = layout.among(rims.chosen, z, self.codes[a:b])
            found.add(rims, z[chosen], self.codes[a + chosen], self._weights_of(a + chosen))

        return add_up(self._pass_along(v, RimBins, add))

    def pull_back_binned(
        self, v: Floats, layout: BinLayout, table: Floats, extra: Extra | None, slopes: RimSlopes | None = None
    ) -> Floats:
        def pull_stretch(gradient: Floats, z: Floats, a: int, b: int) -> None:
            w = np.empty(b - a)
            kernels.weigh_points(*self._located(layout, z, a, b), table, w)
            if slopes is not None:
                self._add_slopes(slopes, layout, z, a, b, w)
            self._passes.pull(w, a, b, gradient)

        gradient = add_up(self._pass_along(v, lambda: np.zeros(self.n_features), pull_stretch))
        return gradient if extra is None else gradient + self._pull_some(extra)

    def _add_slopes(self, slopes: RimSlopes, layout: BinLayout, z: Floats, a: int, b: int, w: Floats) -> None:
        """Add the gradient weights of points at the rims to ``w``, shape (b − a,)."""
        codes = self.codes[a:b]
        chosen = layout.among(slopes.rims.chosen, z, codes)
        values = slopes.at(z[chosen], codes[chosen])
        w[chosen] += values if self.weights is None else values * self.weights[a:b][chosen]

    def _pull_some(self, extra: Extra) -> Floats:
        """Return Xᵀw, shape (d,), over those rows of ``extra`` that are in this part of the data."""
        gradient = np.zeros(self.n_features)
        numbers, weights = extra.within(self.first_row, self.n_rows)
        for a in range(0, len(numbers), _TAKEN_ROWS):
            some = slice(a, a + _TAKEN_ROWS)
            gradient += self._features_of(numbers[some]).T @ weights[some]
        return gradient

    # ------------------------------------------------------------------------------------- for densities and counts

    def summarise(self, v: Floats) -> ClassSummaries:
        def add(found: Gathered, z: Floats, a: int, b: int) -> None:
            codes = self.codes[a:b]
            kernels.add_spread(z, codes, *self.weights_and_step(a, b), found.spread)
            for c in (0, 1):
                chosen = np.flatnonzero(codes == c)
                found.add_to_ends(c, z[chosen], self._weights_of(a + chosen))

        return add_up(found.summary() for found in self._pass_along(v, Gathered, add))

    def bin_between(self, v: Floats, layout: BinLayout, limits: Limits) -> Floats:
        low, high = np.array(limits).T

        def bin_stretch(moments: Floats, z: Floats, a: int, b: int) -> None:
            codes = self.codes[a:b]
            inner = np.where((z >= low[codes]) & (z <= high[codes]), z, np.inf)
            kernels.bin_points(*self._located(layout, inner, a, b), moments)

        return add_up(self._pass_along(v, lambda: np.zeros((layout.n_bins, kernels.ORDER)), bin_stretch))

    def points_of(self, v: Floats, code: int) -> Points:
        def choose(found: list[Points], z: Floats, a: int, b: int) -> None:
            found.append(self._points(np.flatnonzero(self.codes[a:b] == code), z, a))

        parts: list[list[Points]] = self._pass_along(v, list, choose)
        return add_up(itertools.chain.from_iterable(parts))

    def count(self, v: Floats, thresholds: Floats, n_classes: int = 2) -> Floats:
        shape = len(thresholds) + 1, n_classes

        def count_stretch(counts: Floats, z: Floats, a: int, b: int) -> None:
            interval = np.searchsorted(thresholds, z, side="right")
            weights = None if self.weights is None else self.weights[a:b]
            counts += np.bincount(n_classes * interval + self.codes[a:b], weights, counts.size).reshape(shape)

        return add_up(self._pass_along(v, lambda: np.zeros(shape), count_stretch))

    def sum_curves(self, directions: Floats, request: CurveRequest) -> CurveSums:
        along = (self.X @ directions.T).T if sparse.issparse(self.X) else None  # multiplied as a whole

        def add_stretch(sums: CurveSums, a: int, b: int) -> None:
            for start in range(a, b, _CURVE_ROWS):
                stop = min(start + _CURVE_ROWS, b)
                z = np.empty((len(directions), stop - start))
                if along is None:
                    for v, out in zip(directions, z, strict=True):
                        self._passes.project(v, start, stop, out)
                else:
                    z[:] = along[:, start:stop]
                entries = request.basis.entries(z)
                sums.add(entries, self.codes[start:stop], self.weights_and_step(start, stop), request)

        return add_up(self._passes.run(request.zeros, add_stretch))

    def _points(self, chosen: NDArray[np.int64], z: Floats, a: int, most: int = 0) -> Points:
        """Return the chosen points of the stretch that begins with row a.

        Their features are included if they have at most ``most`` elements.
        """
        rows = a + chosen
        features = self._features_of(rows) if len(rows) * self.n_features <= most else None
        return Points(self.first_row + rows, self.codes[rows], z[chosen], self._weights_of(rows), features)

    def _features_of(self, rows: NDArray[np.int64]) -> Any:
        """Return the features of some rows, shape (n_rows, d), minus the centre if there is one."""
        X = self.X[rows]
        return X if self.centre is None else X - self.centre

    # ------------------------------------------------------------------------------------------ some rows, other rows

    def take(self, ranks: Ranks) -> "MemoryRows":
        chosen = np.sort(np.concatenate([self._numbers(c, ranks[c]) for c in (0, 1)]))
        weights = None if self.weights is None else self.weights[chosen]
        X = self.X[chosen]
        known = None if self.hashes.known is None else self.hashes.known[chosen]
        hashes = RowHashes(X, weights, self.hashes.distinct, self.hashes.canonical, known)
        return MemoryRows(X, self.codes[chosen], weights, self.n_threads, self.centre, hashes=hashes)

    def select(self, seed: int, limits: Floats) -> DistinctRows:
        table = np.empty(0) if self.hashes.distinct else self.hashes.table(self.n_rows)
        return self.hashes.select(self.codes, Selection(seed, table, limits), self.first_row)

    def take_sample(self, numbers: NDArray[np.int64], weights: Floats) -> "MemoryRows":
        chosen = numbers - self.first_row
        return sampled(self.X[chosen], self.codes[chosen], weights, self.n_threads, self.centre)

    def _numbers(self, code: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the rows of a class with the given ascending ranks.

        The rows are searched in blocks, because a list of all rows of the class would take eight times the memory of
        the codes.
        """
        found, passed = [np.empty(0, dtype=np.int64)], 0
        for block in self._passes.blocks():
            members = np.flatnonzero(self.codes[block] == code)
            chosen = slice(*np.searchsorted(ranks, (passed, passed + len(members))))
            found.append(block.start + members[ranks[chosen] - passed])
            passed += len(members)
        return np.concatenate(found)

    def in_memory(self) -> "MemoryRows":
        return self

    def around(self, centre: Floats) -> "MemoryRows":
        return self._with(self.codes, centre)

    def against_rest(self, k: int) -> "MemoryRows":
        return self._with((self.codes == k).view(np.int8), self.centre)

    def first_columns(self, n: int) -> "MemoryRows":
        """Return the rows with the first n columns only, or self if that is all of them."""
        if n == self.n_features:
            return self
        X = np.ascontiguousarray(self.X[:, :n])
        hashes = RowHashes(X, self.weights, self.hashes.distinct, self.hashes.canonical, self.hashes.known)
        return MemoryRows(X, self.codes, self.weights, self.n_threads, hashes=hashes)

    def _with(self, codes: NDArray[np.int8], centre: Floats | None) -> "MemoryRows":
        known = self.first_row, self._keep, self.hashes
        return MemoryRows(self.X, codes, self.weights, self.n_threads, centre, *known)

    def close(self) -> None:
        self._passes.close()

    # ------------------------------------------------------------------------------------------- passes along v

    def _pass_along(self, v: Floats, begin: Callable[[], T], step: Step[T]) -> list[T]:
        """Make a pass with the projections on v. Return the accumulators of the segments.

        If the last pass had the same v, its projections are used again.
        """
        known = np.array_equal(v, self._v)
        if self._keep and not known:
            self._v = np.empty(0)
            if len(self._z) != self.n_rows:  # allocated once: new memory pages cost as much as filling them
                self._z = np.empty(self.n_rows)

        def project_and_step(accumulator: T, a: int, b: int) -> None:
            z = self._z[a:b] if self._keep else np.empty(b - a)
            if not known:
                self._passes.project(v, a, b, z)
            step(accumulator, z, a, b)

        parts = self._passes.run(begin, project_and_step)
        if self._keep:
            self._v = v.copy()
        return parts


def sampled(X: Any, codes: NDArray[np.int8], weights: Floats, n_threads: int, centre: Floats | None) -> MemoryRows:
    """Return drawn rows, which are distinct and in canonical order."""
    weighted = None if np.all(weights == 1) else weights
    hashes = RowHashes(X, weighted, canonical=True)
    return MemoryRows(X, codes, weighted, n_threads, centre, hashes=hashes)
