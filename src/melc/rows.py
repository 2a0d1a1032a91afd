"""Where the rows are, and the two products with them that an evaluation needs.

Segments of rows are worked on by threads. Their number depends on the number of rows only, and their results are
added in their order, so that any number of threads gives the same bits.
"""

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc import kernels
from melc.arrays import Floats
from melc.together import Pass, Together

T = TypeVar("T")

_FEW_ROWS = 32_768
_SEGMENT_ROWS = 65_536
_MOST_SEGMENTS = 64
# Rows whose projections are binned while they are still in the cache.
_STRETCH = 131_072
# Numbers of X that stay in a core's cache while several problems read them.
_CACHED_NUMBERS = 32_768


@dataclass(frozen=True)
class Layout:
    """Bins along the line: one row of a table a bin, those of class 0 before those of class 1.

    Bin k of class c covers [origin + k·width_c, origin + (k + 1)·width_c); the table holds the bins ``low_c`` to
    ``low_c + count_c``. ``order`` is the number of moments that a bin keeps.
    """

    origin: float
    widths: tuple[float, float]
    low: tuple[int, int]
    count: tuple[int, int]
    order: int

    @property
    def n_bins(self) -> int:
        return self.count[0] + self.count[1]

    @property
    def offset(self) -> tuple[int, int]:
        return (0, self.count[0])

    def as_arguments(self) -> tuple[Any, ...]:
        """What the kernels take."""
        return (
            self.origin,
            1 / np.array(self.widths),
            np.array(self.low, dtype=np.float64),
            np.array(self.count, dtype=np.float64),
            np.array(self.offset, dtype=np.int64),
        )

    def order_tag(self) -> tuple[int, ...]:
        """The order as the length of a tuple, which a kernel knows when it is compiled."""
        return (0,) * self.order


@dataclass
class _Binning:
    """The moments of a segment's points, and how many found no bin."""

    moments: Floats
    outside: int = 0


@dataclass(frozen=True)
class Outside:
    """Points that the table of a layout does not reach: outliers. ``keys`` are their bins as floats."""

    rows: NDArray[np.int64]
    codes: NDArray[np.int8]
    keys: Floats
    local: Floats
    weights: Floats


class Rows:
    """Labelled rows in memory: features X (n, d), a class code 0 or 1 a row, and weights or None.

    X is used as it is: dense in any order and float type, read-only, memory-mapped, or sparse; never copied,
    and never split by class. All sums are accumulated in float64.

    With a ``centre``, every product is with X − centre, taken block by block, unless X is sparse.
    """

    def __init__(
        self,
        X: Any,
        codes: NDArray[np.int8],
        weights: Floats | None = None,
        n_threads: int = 1,
        centre: Floats | None = None,
    ) -> None:
        self.X = X
        self.centre = None if sparse.issparse(X) else centre
        self.codes = codes
        self.weights = weights
        self.n_threads = n_threads
        self._products = _products_with(X, self.centre)
        self.together: Together | None = None
        self.watched: Together | None = None  # a sample makes its passes alone, but ends with the others
        self._pool: ThreadPoolExecutor | None = None
        self._z = np.empty(0)
        self._members: dict[int, NDArray[np.int64]] = {}

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def all_weights(self) -> Floats:
        return np.ones(len(self.codes)) if self.weights is None else self.weights

    def weights_of(self, members: NDArray[np.int64]) -> Floats:
        return np.ones(len(members)) if self.weights is None else self.weights[members]

    def project(self, v: Floats) -> Floats:
        """z = Xv."""
        z = np.empty(self.n_rows)
        self._run(lambda: None, lambda _, start, stop: self._products.project(v, start, stop, z))
        return z

    def pull_back(self, w: Floats) -> Floats:
        """Xᵀw."""
        parts = self._run(
            lambda: np.zeros(self.n_features),
            lambda gradient, start, stop: self._products.pull(w[start:stop], start, stop, gradient),
        )
        return _add_up(parts)

    def bin(self, v: Floats, layout: Layout) -> tuple[Floats, Outside | None]:
        """Project on v and bin, in one pass over X; the projections stay here for what follows."""
        if len(self._z) != self.n_rows:  # once: fresh pages of memory would cost as much as filling them
            self._z = np.empty(self.n_rows)
        return self._bin(layout, v)

    def bin_again(self, layout: Layout) -> tuple[Floats, Outside | None]:
        """Bin the same projections by another layout, without a look at X."""
        return self._bin(layout, None)

    def _bin(self, layout: Layout, v: Floats | None) -> tuple[Floats, Outside | None]:
        arguments, order = layout.as_arguments(), layout.order_tag()
        weights, step = self.weights_and_step()

        def bin_stretch(part: _Binning, a: int, b: int) -> None:
            points = (self._z, self.codes, weights, step, a, b, *arguments, part.moments, order)
            if v is not None and self._products.rows is not None:
                part.outside += kernels.project_and_bin(self._products.rows, v, *points)
                return
            if v is not None:
                self._products.project(v, a, b, self._z)
            part.outside += kernels.bin_points(*points, self._z, b)

        parts = self._run(lambda: _Binning(np.zeros((layout.n_bins, layout.order))), bin_stretch)
        moments = _add_up(part.moments for part in parts)
        return moments, self._outside(layout) if any(part.outside for part in parts) else None

    def _outside(self, layout: Layout) -> Outside:
        """Look up the points that found no bin, by the same arithmetic as the kernel's."""
        inverse = 1 / np.array(layout.widths)
        t = (self._z - layout.origin) * inverse[self.codes]
        key = np.floor(t)
        local = key - np.array(layout.low)[self.codes]
        rows = np.flatnonzero((local < 0) | (local >= np.array(layout.count)[self.codes]))
        u = 2 * (t[rows] - key[rows]) - 1
        return Outside(rows, self.codes[rows], key[rows], u, self.weights_of(rows))

    def pull_back_binned(self, layout: Layout, table: Floats, extra: Floats | None) -> Floats:
        """Xᵀw with the weight of a row given by the polynomial of its bin, plus ``extra`` per row."""
        arguments, order = layout.as_arguments(), layout.order_tag()
        weights, step = self.weights_and_step()
        addition, extra_step = (np.zeros(1), 0) if extra is None else (extra, 1)

        def pull_stretch(gradient: Floats, a: int, b: int) -> None:
            points = (self._z, self.codes, weights, step, addition, extra_step, a, b, *arguments, table)
            if self._products.rows is not None:
                kernels.weigh_and_pull(self._products.rows, *points, gradient, order)
                return
            w = np.empty(b - a)
            kernels.weigh_points(*points, w, order)
            self._products.pull(w, a, b, gradient)

        return _add_up(self._run(lambda: np.zeros(self.n_features), pull_stretch))

    def points_in(self, layout: Layout, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Rows whose bin is chosen; ``chosen`` has an entry for every bin of the table."""
        local = np.floor((self._z - layout.origin) * (1 / np.array(layout.widths))[self.codes])
        local -= np.array(layout.low)[self.codes]
        count = np.array(layout.count)[self.codes]
        inside = (local >= 0) & (local < count)
        slots = np.where(inside, local, 0).astype(np.int64) + np.array(layout.offset)[self.codes]
        return np.flatnonzero(inside & chosen[slots])

    def projections(self, rows: NDArray[np.int64]) -> Floats:
        """Projections of some rows from the last binning."""
        return self._z[rows]

    def total_weight(self, code: int) -> float:
        members = self.members(code)
        return float(len(members) if self.weights is None else self.weights[members].sum())

    def lightest(self, code: int) -> float:
        """The smallest weight of a row of a class."""
        return 1.0 if self.weights is None else float(self.weights[self.codes == code].min())

    def spread_sample(self, code: int, size: int) -> tuple[Any, Floats]:
        """Up to ``size`` rows of a class, evenly spread over the data, and their weights."""
        members = self.members(code)
        chosen = members[np.linspace(0, len(members) - 1, min(size, len(members))).astype(int)]
        X = self.X[chosen] if self.centre is None else self.X[chosen] - self.centre
        return X, self.weights_of(chosen)

    def sample(self, size: int, rng: np.random.RandomState) -> "Rows":
        """Up to ``size`` rows in their order, or all of these rows if there are no more.

        Each class gives its share, and at least half of the rows it has or an eighth of the sample, so that
        a rare class is not lost.
        """
        if self.n_rows <= size:
            return self
        chosen = np.sort(np.concatenate([self._draw(c, size, rng) for c in (0, 1)]))
        weights = None if self.weights is None else self.weights[chosen]
        drawn = Rows(self.X[chosen], self.codes[chosen], weights, self.n_threads, self.centre)
        drawn.watched = self.together
        return drawn

    def _draw(self, code: int, size: int, rng: np.random.RandomState) -> NDArray[np.int64]:
        members = self.members(code)
        share = max(2, size * len(members) // self.n_rows, min(len(members) // 2, size // 8))
        if share > len(members) // 4:
            return rng.choice(members, size=share, replace=False)
        # Few of many: drawing with replacement and leaving out what came twice spares a permutation of all.
        return members[np.unique(rng.randint(len(members), size=share))]

    def members(self, code: int) -> NDArray[np.int64]:
        """Rows of a class."""
        if code not in self._members:
            self._members[code] = np.flatnonzero(self.codes == code)
        return self._members[code]

    def weights_and_step(self) -> tuple[Floats, int]:
        return (np.ones(1), 0) if self.weights is None else (self.weights, 1)

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
        n = min(_MOST_SEGMENTS, max(1, self.n_rows // _SEGMENT_ROWS))
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

    def around(self, centre: Floats) -> "Rows":
        """The same rows relative to a point."""
        moved = Rows(self.X, self.codes, self.weights, self.n_threads, centre)
        moved.together = self.together
        return moved

    def relabelled(self, codes: NDArray[np.int8]) -> "Rows":
        """The same rows with other classes."""
        return Rows(self.X, codes, self.weights, self.n_threads)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


@dataclass(frozen=True)
class _Products:
    """z[start:stop] = X[start:stop] v, and gradient += X[start:stop]ᵀ w."""

    project: Callable[[Floats, int, int, Floats], None]
    pull: Callable[[Floats, int, int, Floats], None]
    divisible: bool = True
    block_rows: int = 1  # rows that are multiplied at once
    rows: Any = None  # X where it is made for the kernels that do more than the products in a pass


def _products_with(X: Any, centre: Floats | None) -> _Products:
    """The kernels that read X as it lies in memory."""
    if sparse.issparse(X):
        return _sparse_products(X)
    X = np.asarray(X)  # a memory map by its plain name
    if centre is not None:
        return _Products(
            lambda v, a, b, z: kernels.project_centred(X, centre, v, a, b, z),
            lambda w, a, b, gradient: kernels.pull_centred(X, centre, w, a, b, gradient),
            block_rows=kernels.blas_block_rows(X.shape[1]),
        )
    if X.flags.c_contiguous and X.dtype == np.float64:
        return _Products(
            lambda v, a, b, z: kernels.project_rows(X, v, a, b, z),
            lambda w, a, b, gradient: kernels.pull_rows(X, w, a, b, gradient),
            block_rows=2,
            rows=X,
        )
    if X.flags.f_contiguous:
        return _Products(
            lambda v, a, b, z: kernels.project_columns(X.T, v, a, b, z),
            lambda w, a, b, gradient: kernels.pull_columns(X.T, w, a, b, gradient),
            block_rows=kernels.COLUMN_BLOCK,
        )
    return _Products(
        lambda v, a, b, z: kernels.project_mixed(X, v, a, b, z),
        lambda w, a, b, gradient: kernels.pull_mixed(X, w, a, b, gradient),
        block_rows=kernels.blas_block_rows(X.shape[1]),
    )


def _sparse_products(X: Any) -> _Products:
    """SciPy multiplies the whole matrix at once; slices of it would be copies."""

    def project(v: Floats, start: int, stop: int, z: Floats) -> None:
        z[:] = X @ v

    def pull(w: Floats, start: int, stop: int, gradient: Floats) -> None:
        gradient += X.T @ w

    return _Products(project, pull, divisible=False)


def _add_up(parts: Iterable[Floats]) -> Floats:
    """Sum in the given order."""
    first, *rest = parts
    total = first.copy()
    for part in rest:
        total += part
    return total
