"""Rows in Dask collections: the protocol of ``melc.rows.Rows`` in rounds over the partitions.

A round asks every partition for something that adds up: the moments of its points, its part of a gradient. A worker
keeps nothing between rounds but its partitions, and everything that it needs to know is sent by value, so that it may
die, or another join, at any time. What partitions return is added in pairs that depend on their numbers only: the
result is the same bits wherever they are.

This is the only file that imports dask.
"""

import contextlib
import copy
import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from melc.arrays import Floats
from melc.rows import Binned, Extra, Layout, Limits, Points, Ranks, Rows
from melc.summary import Summary

# Partitions are held in memory where they fill no more than this part of it.
_MEMORY_TO_FILL = 0.5
# Seconds until the workers are asked again who holds which partition.
_KNOWN_FOR = 1.0
# A partition with more labels than this holds no classes.
_MOST_LABELS = 10_000


@dataclass(frozen=True)
class _Part:
    """A partition: features, labels (later their numbers) and weights or None."""

    X: Any
    y: NDArray[Any]
    weights: Floats | None


@dataclass(frozen=True)
class _Report:
    """What is to be known of a partition before the first round."""

    labels: NDArray[Any]
    counts: NDArray[np.int64]  # rows of each label
    totals: Floats  # their weight
    lightest: Floats
    first: Floats | None  # the first row
    varies: bool


@dataclass(frozen=True)
class _Place:
    """Where a partition stands among all: how many rows there are before it, and how many of each class."""

    first_row: int
    counts_before: NDArray[np.int64]


@dataclass(frozen=True)
class _Call:
    """A method of Rows and its arguments, for class ``code`` against the rest if there are more than two."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    code: int | None
    centre: Floats | None

    def on(self, part: _Part, place: _Place, n_threads: int) -> Any:
        codes = part.y if self.code is None else (part.y == self.code).view(np.int8)
        rows = Rows(part.X, codes, part.weights, n_threads, self.centre, place.first_row, keep=False)
        with contextlib.closing(rows):
            if self.function is Rows.take:
                return _take(rows, place.counts_before, self.code, *self.arguments)
            return self.function(rows, *self.arguments)


@dataclass
class _Wish:
    """A call that waits for its round."""

    call: _Call
    results: Any = None


@dataclass
class _Taken:
    """Some rows of a partition, or of several one after the other."""

    X: Any
    codes: NDArray[np.int8]
    weights: Floats | None

    def __iadd__(self, other: "_Taken") -> "_Taken":
        stack = sparse.vstack if sparse.issparse(self.X) else np.concatenate
        self.X = stack([self.X, other.X])
        self.codes = np.concatenate([self.codes, other.codes])
        if self.weights is not None and other.weights is not None:
            self.weights = np.concatenate([self.weights, other.weights])
        return self


# Results of calls by level and number: see _added.
_Sums = dict[tuple[int, int], list[Any]]


# --------------------------------------------------------------------------------------------- what workers do


def _checked(number: int, X: Any, y: Any, weights: Any) -> _Part:
    """A partition as arrays; an error names the partition and the line that mends it."""
    try:
        features = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_samples=0
        )
        labels = check_array(column_or_1d(y), ensure_2d=False, dtype=None, ensure_min_samples=0, input_name="y")
        if weights is not None:
            weights = check_array(
                column_or_1d(weights), ensure_2d=False, dtype=np.float64, ensure_min_samples=0, input_name="weights"
            )
    except (TypeError, ValueError) as error:
        raise ValueError(f"Partition {number}: {error}") from error
    _check_partition(number, X, features, labels, weights)
    if weights is not None and not weights.all():
        kept = weights > 0
        features, labels, weights = features[kept], labels[kept], weights[kept]
    return _Part(features, labels, weights)


def _check_partition(number: int, given: Any, X: Any, y: NDArray[Any], weights: Floats | None) -> None:
    for name, other in (("y", y), ("sample_weight", weights)):
        if other is not None and len(other) != X.shape[0]:
            raise ValueError(
                f"Partition {number} has {X.shape[0]} rows in X and {len(other)} in {name}. Take both from the same "
                f"collection: X, {name} = df[features], df[column]"
            )
    if weights is not None and len(weights) and weights.min() < 0:
        raise ValueError(
            f"Partition {number} holds the weight {weights.min():g}. Weights count rows: "
            "sample_weight = sample_weight.clip(0)"
        )
    values = X.data if sparse.issparse(X) else X
    if not np.isfinite(np.sum(values, dtype=np.float64)) and not np.isfinite(values).all():
        dense = X.toarray() if sparse.issparse(X) else X
        row, column = np.argwhere(~np.isfinite(dense))[0]
        frame = hasattr(given, "columns")
        feature = repr(given.columns[column]) if frame else column
        line = "X.replace([np.inf, -np.inf], np.nan).fillna(0)" if frame else "da.where(da.isfinite(X), X, 0)"
        raise ValueError(
            f"Partition {number} of X holds {dense[row, column]} (its row {row}, feature {feature}). Put a number in "
            f"place: X = {line}; or leave such rows out, of X, y and sample_weight alike."
        )


def _reported(number: int, part: _Part) -> _Report:
    try:
        labels, index = np.unique(part.y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"Partition {number} of y mixes labels that cannot be ordered: {error}") from error
    if len(labels) > _MOST_LABELS:
        raise ValueError(
            f"Partition {number} of y holds {len(labels)} different labels: these are no classes. Bin them first, say "
            "y = (y > threshold)"
        )
    counts = np.bincount(index, minlength=len(labels))
    totals, lightest = counts.astype(np.float64), np.ones(len(labels))
    if part.weights is not None:
        totals = np.bincount(index, part.weights, len(labels))
        lightest = np.full(len(labels), np.inf)
        np.minimum.at(lightest, index, part.weights)
    if not len(part.y):
        return _Report(labels, counts, totals, lightest, None, False)
    first = part.X[:1].toarray()[0] if sparse.issparse(part.X) else part.X[0]
    return _Report(labels, counts, totals, lightest, np.array(first), _varies(part.X, first))


def _varies(X: Any, first: Floats) -> bool:
    if sparse.issparse(X):
        return bool((X.max(axis=0).toarray() != X.min(axis=0).toarray()).any())
    return any(bool(np.any(X[a : a + 4096] != first)) for a in range(0, X.shape[0], 4096))


def _numbered(classes: NDArray[Any], part: _Part) -> _Part:
    """The partition with numbers in place of labels."""
    dtype = np.int8 if len(classes) < 128 else np.int32
    return _Part(part.X, np.searchsorted(classes, part.y).astype(dtype), part.weights)


def _take(rows: Rows, before: NDArray[np.int64], code: int | None, ranks: Ranks) -> _Taken:
    """Rows of a partition by ranks among all, given how many rows of each class there are before it."""
    passed = before if code is None else (before.sum() - before[code], before[code])
    mine = [
        wanted[slice(*np.searchsorted(wanted, (first, first + count)))] - first
        for wanted, first, count in zip(ranks, passed, rows.counts, strict=True)
    ]
    taken = rows.take((mine[0], mine[1]))
    return _Taken(taken.X, taken.codes, taken.weights)


def _work(numbers: Sequence[int], n: int, calls: Sequence[_Call], places: Sequence[_Place], *parts: _Part) -> _Sums:
    """Make the calls on some of n partitions; results are added up as far as neighbours are here."""
    n_threads = _threads_here()

    def make(place: _Place, part: _Part) -> list[Any]:
        return [call.on(part, place, max(1, n_threads // len(parts))) for call in calls]

    if n_threads == 1 or len(parts) == 1:
        results = list(map(make, places, parts))
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            results = list(pool.map(make, places, parts))
    return _added({(0, number): result for number, result in zip(numbers, results, strict=True)}, n)


def _threads_here() -> int:
    """Those of the worker that this runs on."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # no worker, but a thread of Dask's own scheduler, which has others
        return 1


def _added(sums: _Sums, n: int) -> _Sums:
    """Add neighbours in pairs, then pairs of pairs, as far as they are here.

    Sum i of level l is that of the partitions from 2ˡ i on. Pairs are always the same, whoever adds them.
    """
    level = 0
    while n > 1:
        for i in range(0, n, 2):
            if (level, i) in sums and (i + 1 == n or (level, i + 1) in sums):
                both = sums.pop((level, i))
                for j, other in enumerate(sums.pop((level, i + 1), ())):
                    both[j] += other
                sums[level + 1, i // 2] = both
        level, n = level + 1, (n + 1) // 2
    return sums


def _warm_up(dtype: Any, n_features: int) -> None:
    """Compile, or load, what the rounds will call."""
    rows = Rows(np.ones((8, n_features), dtype), np.arange(8, dtype=np.int8) % 2, keep=False)
    v = np.ones(n_features)
    for order in (4, 6, 8):
        layout = Layout(0.0, (1.0, 1.0), (0, 0), (n_features + 1,) * 2, order)
        rows.pull_back_binned(v, layout, np.zeros((layout.n_bins, order - 1)), None)
        rows.bin(v, layout)


# ------------------------------------------------------------------------------------------ where partitions are


class _Partitions:
    """Partitions, wherever Dask keeps them, and rounds over them.

    With a client and room they are futures, and a round is one task a worker over those that it holds. The workers
    named are a wish: the scheduler may choose others, and computes anew what was lost. Otherwise a round is one task a
    partition, which is read again wherever there is no room to keep it.
    """

    def __init__(self, parts: list[Any], held: bool) -> None:
        self._client = _client()
        self._futures: list[Any] = []
        self._latest: list[Any] = []  # futures of the last round: let go after the next has been sent, not before
        self._groups: list[tuple[str, list[int]]] = []
        self._grouped_at = -math.inf
        self._parts = parts
        if held and self._client is not None:
            self._futures = self._client.compute(parts)
        elif held:
            self._parts = list(dask.persist(*parts))

    def __len__(self) -> int:
        return len(self._parts)

    def mapped(self, function: Callable[..., Any], held: bool) -> "_Partitions":
        return _Partitions([dask.delayed(function)(part) for part in self._futures or self._parts], held)

    def only(self, chosen: Iterable[int]) -> "_Partitions":
        """Some of the partitions."""
        self._parts = [self._parts[i] for i in chosen]
        self._futures = [self._futures[i] for i in chosen] if self._futures else []
        return self

    def compute(self, function: Callable[..., Any]) -> list[Any]:
        """function(number, partition) of every partition."""
        parts = self._futures or self._parts
        return list(dask.compute(*[dask.delayed(function)(i, part) for i, part in enumerate(parts)]))

    def round(self, calls: list[_Call], places: list[_Place]) -> list[Any]:
        """Make the calls on every partition; what they return is added up."""
        n = len(self)
        groups = self._grouped() if self._futures else [("", [i]) for i in range(n)]
        tasks = [functools.partial(_work, mine, n, calls, [places[i] for i in mine]) for _, mine in groups]
        if self._futures:
            results = self._sent(tasks, groups)
        else:
            parts = (self._parts[i] for _, (i,) in groups)
            later = [dask.delayed(task, pure=False)(part) for task, part in zip(tasks, parts, strict=True)]
            results = dask.compute(*later)
        sums: _Sums = {}
        for result in results:
            sums.update(result)
        (total,) = _added(sums, n).values()
        return total

    def _sent(self, tasks: list[Callable[..., _Sums]], groups: list[tuple[str, list[int]]]) -> list[_Sums]:
        """One task a worker; what it returns."""
        assert self._client is not None
        self._latest = futures = [
            self._client.submit(
                task, *(self._futures[i] for i in mine), workers=[worker], allow_other_workers=True, pure=False
            )
            for task, (worker, mine) in zip(tasks, groups, strict=True)
        ]
        try:
            return list(self._client.gather(futures))
        except BaseException:  # also somebody's Ctrl-C
            self._client.cancel(futures)
            raise

    def _grouped(self) -> list[tuple[str, list[int]]]:
        """Workers and the partitions that each shall work on: its own, as far as that is fair."""
        if time.monotonic() - self._grouped_at > _KNOWN_FOR:
            assert self._client is not None
            holders = self._client.who_has(self._futures)
            workers = self._client.nthreads()
            held_by = [holders.get(future.key, ()) for future in self._futures]
            self._groups = [(w, mine) for w, mine in share_out(held_by, workers).items() if mine]
            self._grouped_at = time.monotonic()
        return self._groups


def share_out(held_by: list[Sequence[str]], workers: dict[str, int]) -> dict[str, list[int]]:
    """Numbers of partitions for every worker, in proportion to its threads; whoever holds one has the first claim."""
    shares: dict[str, list[int]] = {worker: [] for worker in workers}
    threads = sum(workers.values())
    fair = {w: math.ceil(len(held_by) * n / threads) for w, n in workers.items()}
    left = []
    for i, holders in enumerate(held_by):
        willing = [w for w in holders if w in shares and len(shares[w]) < fair[w]]
        if willing:
            shares[min(willing, key=lambda w: len(shares[w]) / workers[w])].append(i)
        else:
            left.append(i)
    for i in left:
        shares[min(shares, key=lambda w: (len(shares[w]) + 1) / workers[w])].append(i)
    return {worker: sorted(mine) for worker, mine in shares.items()}


def _client() -> Any:
    """The active client, if there is one."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _fits(n_bytes: float) -> bool:
    """Whether partitions can be held in memory, with room to work in."""
    from distributed.system import MEMORY_LIMIT
    from psutil import virtual_memory

    client = _client()
    if client is None:
        return n_bytes <= _MEMORY_TO_FILL * min(MEMORY_LIMIT, virtual_memory().available)
    some = client.scheduler_info()["workers"].values()
    room = np.mean([worker["memory_limit"] or math.inf for worker in some]) * len(client.nthreads())
    return bool(n_bytes <= _MEMORY_TO_FILL * room)


# ---------------------------------------------------------------------------------------------------- the rows


class DaskRows(Rows):
    """Labelled rows in partitions. Only sums over them, and some rows by their ranks, ever reach this process."""

    def __init__(
        self,
        partitions: _Partitions,
        places: list[_Place],
        classes: "_Classes",
        n_features: int,
        code: int | None = None,
        centre: Floats | None = None,
    ) -> None:
        self._partitions, self._places, self._classes = partitions, places, classes
        self._n_features, self._code = n_features, code
        self.centre = centre
        self.n_threads = 1
        self.together = None
        self.counts = classes.counts_of(code)
        self.total_weights = classes.totals_of(code)
        self.lightest = classes.lightest_of(code)

    @property
    def n_features(self) -> int:
        return self._n_features

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @property
    def divisible(self) -> bool:
        return True

    def bin(self, v: Floats, layout: Layout) -> Binned:
        return self._round(Rows.bin, v, layout)

    def pull_back_binned(self, v: Floats, layout: Layout, table: Floats, extra: Extra | None) -> Floats:
        return self._round(Rows.pull_back_binned, v, layout, table, extra)

    def points_in(self, v: Floats, layout: Layout, chosen: NDArray[np.bool_]) -> Points:
        return self._round(Rows.points_in, v, layout, chosen)

    def points_of(self, v: Floats, code: int) -> Points:
        return self._round(Rows.points_of, v, code)

    def summarise(self, v: Floats) -> Summary:
        return self._round(Rows.summarise, v)

    def bin_between(self, v: Floats, layout: Layout, limits: Limits) -> Floats:
        return self._round(Rows.bin_between, v, layout, limits)

    def count(self, v: Floats, thresholds: Floats) -> Floats:
        return self._round(Rows.count, v, thresholds)

    def sample(self, size: int, rng: np.random.RandomState) -> Rows:
        if self.n_rows <= size:
            return self.take((np.arange(self.counts[0]), np.arange(self.counts[1])))
        return super().sample(size, rng)

    def take(self, ranks: Ranks) -> Rows:
        taken = self._round(Rows.take, ranks)
        return Rows(taken.X, taken.codes, taken.weights, self.n_threads, self.centre)

    def around(self, centre: Floats) -> "DaskRows":
        return self._with(self._code, centre)

    def against_rest(self, k: int) -> "DaskRows":
        return self._with(k, self.centre)

    def _with(self, code: int | None, centre: Floats | None) -> "DaskRows":
        other = DaskRows(self._partitions, self._places, self._classes, self._n_features, code, centre)
        other.together = self.together
        return other

    def close(self) -> None:
        """Nothing to close: partitions are let go with the last rows that know them."""

    def _round(self, function: Callable[..., Any], *arguments: Any) -> Any:
        wish = _Wish(_Call(function, arguments, self._code, self.centre))
        if self.together is not None:
            return self.together.run(wish, self._make)
        self._make([wish])
        return wish.results

    def _make(self, wishes: list[Any]) -> None:
        """One round for all wishes."""
        results = self._partitions.round([wish.call for wish in wishes], self._places)
        for wish, result in zip(wishes, results, strict=True):
            wish.results = result


@dataclass(frozen=True)
class _Classes:
    """Labels in ascending order; rows, weight and smallest weight of each."""

    labels: NDArray[Any]
    counts: NDArray[np.int64]
    totals: Floats
    lightest: Floats

    def counts_of(self, code: int | None) -> tuple[int, int]:
        return _rest_and_one(self.counts, code, np.sum, int)

    def totals_of(self, code: int | None) -> tuple[float, float]:
        return _rest_and_one(self.totals, code, np.sum, float)

    def lightest_of(self, code: int | None) -> tuple[float, float]:
        return _rest_and_one(self.lightest, code, np.min, float)


def _rest_and_one(values: NDArray[Any], code: int | None, over: Callable[..., Any], kind: type) -> Any:
    """Two values: those of two classes, or that of all but one class and of that class."""
    if code is None:
        return kind(values[0]), kind(values[1])
    return kind(over(np.delete(values, code))), kind(values[code])


def _classes_of(reports: list[_Report]) -> _Classes:
    labels = np.unique(np.concatenate([report.labels for report in reports]))
    counts, totals = np.zeros(len(labels), dtype=np.int64), np.zeros(len(labels))
    lightest = np.full(len(labels), np.inf)
    for report in reports:
        at = np.searchsorted(labels, report.labels)
        counts[at] += report.counts
        totals[at] += report.totals
        lightest[at] = np.minimum(lightest[at], report.lightest)
    return _Classes(labels, counts, totals, lightest)


# --------------------------------------------------------------------------------------------- from collections


@dataclass(frozen=True)
class Collected:
    """What a fit needs of collections: rows whose codes are numbers of classes, and what is known of the classes."""

    rows: DaskRows
    classes: NDArray[Any]
    counts: NDArray[np.int64]
    totals: Floats
    varies: bool  # whether any feature does


def collect(X: Any, y: Any, sample_weight: Any, few: Callable[[int, int], bool]) -> Collected | None:
    """Read the partitions once and hold them where there is room; None if they are ``few(n_rows, n_features)``."""
    _check_alike(X, y, sample_weight)
    n_features, client = _n_features(X), _client()
    warm_up = functools.partial(_warm_up, _dtype_of(X), n_features)
    warming = [] if client is None else [client.submit(warm_up, workers=[w], pure=False) for w in client.nthreads()]
    blocks = zip(*(_blocks(each) for each in (X, y, sample_weight)), strict=False)
    held = _fits(_bytes_of(X))
    checked = _Partitions([dask.delayed(_checked)(i, *each) for i, each in enumerate(blocks)], held)
    reports = checked.compute(_reported)
    del warming
    classes = _classes_of(reports)
    check_classification_targets(np.repeat(classes.labels, 3))  # more rows than labels, which is all that is known
    if few(int(classes.counts.sum()), n_features):
        return None
    filled = [i for i, report in enumerate(reports) if report.first is not None]
    partitions = checked.only(filled).mapped(functools.partial(_numbered, classes.labels), held)
    places, before = [], np.zeros(len(classes.labels), dtype=np.int64)
    for i in filled:
        places.append(_Place(int(before.sum()), before.copy()))
        before[np.searchsorted(classes.labels, reports[i].labels)] += reports[i].counts
    rows = DaskRows(partitions, places, classes, n_features)
    firsts = [reports[i].first for i in filled]
    varies = any(report.varies for report in reports) or any(np.any(first != firsts[0]) for first in firsts)
    return Collected(rows, classes.labels, classes.counts, classes.totals, varies)


def gather(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """The collections in memory."""
    X, y, sample_weight = dask.compute(X, y, sample_weight)
    return X, y, sample_weight


def _is_array(collection: Any) -> bool:
    return hasattr(collection, "rechunk")


def _is_frame(collection: Any) -> bool:
    return hasattr(collection, "map_partitions") and hasattr(collection, "divisions")


def _n_features(X: Any) -> int:
    return int(X.shape[1]) if _is_array(X) else len(X.columns)


def _dtype_of(X: Any) -> Any:
    dtypes = [X.dtype] if _is_array(X) else list(X.dtypes)
    return np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64


def _bytes_of(X: Any) -> float:
    """Of all features as numbers; those of a dataframe by the length of some of its partitions."""
    if _is_array(X):
        return float(X.nbytes)
    some = sorted({0, X.npartitions // 2, X.npartitions - 1})
    lengths = dask.compute(*[dask.delayed(len)(X.partitions[i]) for i in some])
    return float(np.mean(lengths)) * X.npartitions * _n_features(X) * np.dtype(_dtype_of(X)).itemsize


def _blocks(collection: Any) -> Iterable[Any]:
    if collection is None:
        return itertools.repeat(None)
    return list(np.ravel(collection.to_delayed()))


def _check_alike(X: Any, y: Any, sample_weight: Any) -> None:
    """Partitions of all collections must hold the same rows."""
    for name, each in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        if each is not None and not (_is_array(each) or _is_frame(each)):
            raise TypeError(
                f"{name} is a {type(each).__name__}, but X, y and sample_weight must all be Dask arrays, dataframes or "
                f"series where one of them is. {_in_dask(name, X, each)}"
            )
    if _is_array(X):
        check_chunks(X)
    elif not hasattr(X, "columns"):
        raise ValueError("X is a series; pass a dataframe: X = X.to_frame()")
    for name, each in (("y", y), ("sample_weight", sample_weight)):
        if each is not None:
            _check_same_partitions(X, name, each)


def _in_dask(name: str, X: Any, each: Any) -> str:
    if name == "X":
        return "Bring the others into memory: y = y.compute()"
    chunks = "X.chunks[0]" if _is_array(X) else "..."
    return f"Cut it like X: {name} = da.from_array({name}, chunks={chunks})"


def check_chunks(X: Any, known: bool = True) -> None:
    """An array of rows with all their features, and of known length where that is needed."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions, not 2. Make rows of it: X = X.reshape(-1, n_features)")
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X is cut into {X.numblocks[1]} chunks of columns, but a row is needed whole: X = X.rechunk({{1: -1}})"
        )
    if known and np.isnan(X.chunks[0]).any():
        raise ValueError("X has chunks of unknown size. Have them counted: X = X.compute_chunk_sizes()")


def _check_same_partitions(X: Any, name: str, other: Any) -> None:
    if _is_array(X) and _is_array(other):
        if np.isnan(other.chunks[0]).any():
            line = f"{name} = {name}.compute_chunk_sizes()"
            raise ValueError(f"{name} has chunks of unknown size. Have them counted: {line}")
        if X.shape[0] != other.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {other.shape[0]}.")
        if X.chunks[0] != other.chunks[0]:
            line = f"{name} = {name}.rechunk({{0: X.chunks[0]}})"
            raise ValueError(f"X and {name} are cut at different rows. Cut {name} like X: {line}")
    elif X.npartitions != other.npartitions:
        raise ValueError(
            f"X has {X.npartitions} partitions and {name} has {other.npartitions}. Take both from the same dataframe: "
            f"X, {name} = df[features], df[column]"
        )


# --------------------------------------------------------------------------------------------------- prediction


def lazily(model: Any, method: str, X: Any) -> Any:
    """A method of a fitted model on every partition, once somebody asks for it.

    Arrays give arrays. Dataframes give series, or dataframes where there are several columns, with their index.
    """
    model = copy.copy(model)
    model.n_jobs = 1  # partitions are what runs side by side
    if not _is_array(X):
        empty = _on_frame(X._meta, model, method)
        return X.map_partitions(_on_frame, model, method, meta=empty)
    check_chunks(X, known=False)
    vars(model).pop("feature_names_in_", None)  # blocks have no names, which has been told already
    meta = _on_block(np.empty((0, X.shape[1])), model, method)
    if meta.ndim == 1:
        return X.map_blocks(_on_block, model, method, drop_axis=1, dtype=meta.dtype, meta=meta)
    return X.map_blocks(_on_block, model, method, chunks=(X.chunks[0], (meta.shape[1],)), dtype=meta.dtype, meta=meta)


def _on_block(X: Any, model: Any, method: str) -> NDArray[Any]:
    some = X if X.shape[0] else np.zeros((1, X.shape[1]))  # an empty block has a result too: its type
    return np.asarray(getattr(model, method)(some))[: X.shape[0]]


def _on_frame(frame: Any, model: Any, method: str) -> Any:
    import pandas as pd

    some = frame if len(frame) else pd.DataFrame(np.zeros((1, len(frame.columns))), columns=frame.columns)
    values = np.asarray(getattr(model, method)(some))[: len(frame)]
    if values.ndim == 1:
        return pd.Series(values, index=frame.index)
    names = model.get_feature_names_out() if method == "transform" else model.classes_
    return pd.DataFrame(values, index=frame.index, columns=names)
