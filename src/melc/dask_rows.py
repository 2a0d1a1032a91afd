"""Rows in Dask collections: the protocol of ``melc.rows.Rows`` in rounds over the partitions.

A round asks every partition for something that adds up: the moments of its points, its part of a gradient. A worker
keeps nothing between rounds but its partitions, and everything that it needs to know is sent by value, so that it may
die, or another join, at any time. What partitions return is added in pairs that depend on their numbers only: the
result is the same bits wherever they are.

This is the only file that imports dask.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import dask
import dask.array
import dask.dataframe
import numpy as np
import psutil
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
class _Call:
    """A method of Rows and its arguments, for class ``code`` against the rest if there are more than two."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    code: int | None
    centre: Floats | None

    def on(self, part: _Part, first_row: int, n_threads: int) -> Any:
        codes = part.y if self.code is None else (part.y == self.code).view(np.int8)
        rows = Rows(part.X, codes, part.weights, n_threads, self.centre, first_row, keep=False)
        try:
            return self.function(rows, *self.arguments)
        finally:
            rows.close()


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


def _take(rows: Rows, before: tuple[int, int], ranks: Ranks) -> _Taken:
    """The rows of a partition that has ``before`` rows of either class before it, by ranks among all."""
    mine = []
    for passed, count, wanted in zip(before, rows.counts, ranks, strict=True):
        mine.append(wanted[slice(*np.searchsorted(wanted, (passed, passed + count)))] - passed)
    taken = rows.take((mine[0], mine[1]))
    return _Taken(taken.X, taken.codes, taken.weights)


def _work(numbers: Sequence[int], calls: Sequence[Sequence[_Call]], first_rows: Sequence[int], n: int, *parts: _Part) -> Any:
    """Make the calls on some of n partitions; results are added up as far as neighbours are here."""
    n_threads = _threads_here()

    def make(mine: Sequence[_Call], first_row: int, part: _Part) -> list[Any]:
        return [call.on(part, first_row, max(1, n_threads // len(parts))) for call in mine]

    if n_threads == 1 or len(parts) == 1:
        results = list(map(make, calls, first_rows, parts))
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            results = list(pool.map(make, calls, first_rows, parts))
    return _added({(0, number): result for number, result in zip(numbers, results, strict=True)}, n)


def _threads_here() -> int:
    """Those of the worker that this runs on."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # no worker, but a thread of Dask's own scheduler, which has others
        return 1


def _added(sums: dict[tuple[int, int], list[Any]], n: int) -> dict[tuple[int, int], list[Any]]:
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

    def round(self, calls: list[list[_Call]], first_rows: list[int]) -> list[Any]:
        """Make the calls of every partition; what they return is added up."""
        work = functools.partial(_work, n=len(self)) if False else _work
        n = len(self)
        if self._futures:
            groups = [members for _, members in self._grouped()]
        else:
            groups = [[i] for i in range(n)]
        arguments = [(g, [calls[i] for i in g], [first_rows[i] for i in g], n) for g in groups]
        sums: dict[tuple[int, int], list[Any]] = {}
        for part in self._sent(work, arguments) if self._futures else self._computed(arguments):
            sums.update(part)
        (total,) = _added(sums, n).values()
        return total

    def _computed(self, arguments: list[Any]) -> Iterable[Any]:
        tasks = [
            dask.delayed(functools.partial(_work, *each), pure=False)(self._parts[each[0][0]]) for each in arguments
        ]
        return dask.compute(*tasks)

    def _sent(self, work: Callable[..., Any], arguments: list[Any]) -> Iterable[Any]:
        assert self._client is not None
        futures = [
            self._client.submit(
                *(work, *each, *(self._futures[i] for i in each[0])),
                workers=[worker],
                allow_other_workers=True,
                pure=False,
            )
            for each, (worker, _) in zip(arguments, self._groups, strict=True)
        ]
        self._latest = futures
        try:
            return self._client.gather(futures)
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
    client = _client()
    if client is None:
        room = psutil.virtual_memory().available
    else:
        limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
        room = sum(limit or math.inf for limit in limits)
    return n_bytes <= _MEMORY_TO_FILL * room
