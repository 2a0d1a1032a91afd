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
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from melc.arrays import Floats
from melc.chunks import check_alike, dtype_of, is_array, n_features_of
from melc.layout import Layout
from melc.partition import Call, Part, Place, Report, Sums, added, checked, numbered, reported, warm_up, work
from melc.points import Binned, Extra, Limits, Points, Ranks
from melc.rim import RimBins, Rims, Slopes
from melc.rows import Rows
from melc.sketch import Demand, Sketch
from melc.summary import Summary
from melc.together import Pass

# Partitions are held in memory where they fill no more than this part of it.
_MEMORY_TO_FILL = 0.5
# Bytes of features that may be moved once so that neighbours lie together, and all rounds have less to send.
_LITTLE_TO_MOVE = 1 << 28
# Numbers that a table of binned features may have to save a round: as many as the cache of a core holds; and those of
# all partitions together, which are sent where no worker has neighbours to add up.
_MOST_TO_ADD = 1 << 16
_MOST_TO_SEND = 1 << 20
# Features that are binned, in as many bins as it takes, where another round would be the third.
_FEW_FEATURES = 32
# Seconds until the workers are asked again who holds which partition, and results are let go.
_KNOWN_FOR = 1.0


class _Wish(Pass):
    """A call that waits for its round."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.results: Any = None


def _work(
    numbers: Sequence[int], n: int, calls: Sequence[Call], places: Sequence[Place], parts: Sequence[Part]
) -> Sums:
    """One task of a round, with the threads of the worker that it runs on."""
    return work(numbers, n, calls, places, parts, _threads_here())


def _call(task: Callable[..., Sums], parts: Sequence[Part]) -> Sums:
    return task(parts)


def _checked(number: int, *given: Any) -> Part:
    """A partition of features, labels and perhaps weights, be they in a tuple."""
    X, y, *weights = given[0] if len(given) == 1 else given
    return checked(number, X, y, weights[0] if weights else None)


def _checked_at(workers: list[str], number: int, given: tuple[Any, ...]) -> Any:
    """A partition, checked there if all goes well: the scheduler may choose another worker."""
    if not workers:
        return dask.delayed(_checked)(number, *given)
    with dask.annotate(workers=workers, allow_other_workers=True):
        return dask.delayed(_checked)(number, *given)


def _threads_here() -> int:
    """Those of the worker that this runs on."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # no worker, but a thread of Dask's own scheduler, which has others
        return 1


class _Partitions:
    """Partitions, wherever Dask keeps them, and rounds over them.

    With a client and room they are futures, and a round is one task a worker over those that it holds. The workers
    named are a wish: the scheduler may choose others, and computes anew what was lost. Otherwise a round is one task a
    partition, which is read again wherever there is no room to keep it.
    """

    def __init__(self, parts: list[Any], held: bool) -> None:
        self._client = _client()
        self._futures: list[Any] = []
        self._done: list[Any] = []  # futures of past rounds: a message to let them go would keep the next round waiting
        self._groups: list[tuple[str, list[int]]] = []
        self._in_place = False  # whether every worker holds the partitions of its group
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

    def round(self, calls: list[Call], places: list[Place]) -> list[Any]:
        """Make the calls on every partition; what they return is added up."""
        n = len(self)
        groups = self._grouped() if self._futures else [("", [i]) for i in range(n)]
        tasks = [functools.partial(_work, mine, n, calls, [places[i] for i in mine]) for _, mine in groups]
        if self._futures:
            results = self._sent(tasks, groups)
        else:
            parts = (self._parts[i] for _, (i,) in groups)
            later = [dask.delayed(task, pure=False)([part]) for task, part in zip(tasks, parts, strict=True)]
            results = dask.compute(*later)
        sums: Sums = {}
        for result in results:
            sums.update(result)
        (total,) = added(sums, n).values()
        return total

    def _sent(self, tasks: Sequence[Callable[..., Sums]], groups: list[tuple[str, list[int]]]) -> list[Sums]:
        """One task a worker; what it returns."""
        assert self._client is not None
        parts = [[self._futures[i] for i in mine] for _, mine in groups]
        if self._in_place:  # a task goes to its partitions unasked, and one message takes all
            futures = self._client.map(_call, tasks, parts, pure=False)
        else:
            options = {"allow_other_workers": True, "pure": False}
            futures = [
                self._client.submit(_call, task, mine, workers=[worker], **options)
                for task, mine, (worker, _) in zip(tasks, parts, groups, strict=True)
            ]
        self._done += futures
        try:
            return list(self._client.gather(futures))
        except BaseException:  # also somebody's Ctrl-C
            self._client.cancel(futures)
            raise

    def _grouped(self) -> list[tuple[str, list[int]]]:
        """Workers and the partitions that each shall work on: its own, as far as that is fair."""
        if time.monotonic() - self._grouped_at > _KNOWN_FOR:
            assert self._client is not None
            _wait(self._futures)  # what is being made has no holder yet, and would be sent anywhere
            holders = self._client.who_has(self._futures)
            workers = self._client.nthreads()
            held_by = [holders.get(future.key, ()) for future in self._futures]
            self._groups = [(w, mine) for w, mine in share_out(held_by, workers).items() if mine]
            self._in_place = all(w in held_by[i] for w, mine in self._groups for i in mine)
            self._done.clear()
            self._grouped_at = time.monotonic()
        return self._groups


def _wait(futures: list[Any]) -> None:
    from distributed import wait

    wait(futures)


def side_by_side(n: int, workers: dict[str, int]) -> list[str]:
    """A worker for each of n partitions, in proportion to its threads, and neighbours with the same: it can then add
    up what they return. Empty if there are no workers yet."""
    shares = np.cumsum([0, *workers.values()]) * n // max(1, sum(workers.values()))
    return [worker for worker, count in zip(workers, np.diff(shares), strict=True) for _ in range(count)]


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
    if not some:  # workers will come when there is work
        return True
    room = np.mean([worker["memory_limit"] or math.inf for worker in some]) * len(client.nthreads())
    return bool(n_bytes <= _MEMORY_TO_FILL * room)


# ---------------------------------------------------------------------------------------------------- the rows


class DaskRows(Rows):
    """Labelled rows in partitions. Only sums over them, and some rows by their ranks, ever reach this process."""

    def __init__(
        self,
        partitions: _Partitions,
        places: list[Place],
        classes: "_Classes",
        n_features: int,
        is_sparse: bool,
        code: int | None = None,
        centre: Floats | None = None,
    ) -> None:
        self._partitions, self._places, self._classes = partitions, places, classes
        self._n_features, self._is_sparse, self._code = n_features, is_sparse, code
        self.centre = centre
        self.n_threads = 1
        self.together = None

    @property
    def n_features(self) -> int:
        return self._n_features

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @property
    def divisible(self) -> bool:
        return True

    @functools.cached_property
    def counts(self) -> tuple[int, int]:
        return _rest_and_one(self._classes.counts, self._code, np.sum, int)

    @functools.cached_property
    def total_weights(self) -> tuple[float, float]:
        return _rest_and_one(self._classes.totals, self._code, np.sum, float)

    @functools.cached_property
    def lightest(self) -> tuple[float, float]:
        return _rest_and_one(self._classes.lightest, self._code, np.min, float)

    def bin(
        self,
        v: Floats,
        layout: Layout,
        with_features: bool = False,
        rims: Rims | None = None,
        at_any_cost: bool = False,
    ) -> Binned:
        return self._round(Rows.bin, v, layout, with_features, rims, at_any_cost)

    def sketch(self, v: Floats, demand: Demand) -> Sketch:
        return self._round(Rows.sketch, v, demand)

    def bin_at_rims(self, v: Floats, layout: Layout, rims: Rims) -> RimBins:
        return self._round(Rows.bin_at_rims, v, layout, rims)

    @property
    def sketches(self) -> bool:
        """An evaluation shall be two rounds. Of few features the second, too, can bring all that is needed."""
        return self._is_sparse or self.n_features > _FEW_FEATURES

    @property
    def remembers(self) -> bool:
        """Another pass is another round."""
        return False

    def spares_a_pass(self, layout: Layout, again: bool = False) -> bool:
        """Another round costs more than numbers to send, as long as these are few.

        Nothing counts but the chunks, so that the same ones give the same bits wherever they are.
        """
        numbers = layout.n_bins * (layout.order - 1) * self.n_features
        problems = 1 if self._code is None else len(self._classes.labels)
        if self.sketches or again:
            return not self.sketches
        return numbers <= _MOST_TO_ADD and len(self._partitions) * problems * numbers <= _MOST_TO_SEND

    def pull_back_binned(
        self, v: Floats, layout: Layout, table: Floats, extra: Extra | None, slopes: Sequence[Slopes] = ()
    ) -> Floats:
        return self._round(Rows.pull_back_binned, v, layout, table, extra, slopes)

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
        rows = Rows(taken.X, taken.codes, taken.weights, self.n_threads, self.centre)
        rows.watched = self.together
        return rows

    def around(self, centre: Floats) -> "DaskRows":
        return self._with(self._code, centre)

    def against_rest(self, k: int) -> "DaskRows":
        return self._with(k, self.centre)

    def _with(self, code: int | None, centre: Floats | None) -> "DaskRows":
        other = DaskRows(self._partitions, self._places, self._classes, self._n_features, self._is_sparse, code, centre)
        other.together = self.together
        return other

    def close(self) -> None:
        """Nothing to close: partitions are let go with the last rows that know them."""

    def _round(self, function: Callable[..., Any], *arguments: Any) -> Any:
        wish = _Wish(Call(function, arguments, self._code, self.centre))
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


def _rest_and_one(values: NDArray[Any], code: int | None, over: Callable[..., Any], kind: type) -> Any:
    """Two values: those of two classes, or that of all but one class and of that class."""
    if code is None:
        return kind(values[0]), kind(values[1])
    return kind(over(np.delete(values, code))), kind(values[code])


def _classes_of(reports: list[Report]) -> _Classes:
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
    check_alike(X, y, sample_weight)
    n_features, client = n_features_of(X), _client()
    warming_up = functools.partial(warm_up, dtype_of(X), n_features)
    warming = [] if client is None else [client.submit(warming_up, workers=[w], pure=False) for w in client.nthreads()]
    n_bytes = _bytes_of(X)
    held = _fits(n_bytes)
    blocks = _blocks(X, y, sample_weight)
    wishes: list[str] = []
    if client is not None and n_bytes <= _LITTLE_TO_MOVE:
        wishes = side_by_side(len(blocks), client.nthreads())
    raw = _Partitions([_checked_at(wishes[i : i + 1], i, each) for i, each in enumerate(blocks)], held)
    reports = raw.compute(reported)
    del warming
    classes = _classes_of(reports)
    check_classification_targets(np.repeat(classes.labels, 3))  # more rows than labels, which is all that is known
    if few(int(classes.counts.sum()), n_features):
        return None
    filled = [i for i, report in enumerate(reports) if report.first is not None]
    partitions = raw.only(filled).mapped(functools.partial(numbered, classes.labels), held)
    places, before = [], np.zeros(len(classes.labels), dtype=np.int64)
    for i in filled:
        places.append(Place(int(before.sum()), before.copy()))
        before[np.searchsorted(classes.labels, reports[i].labels)] += reports[i].counts
    rows = DaskRows(partitions, places, classes, n_features, any(report.is_sparse for report in reports))
    firsts = [reports[i].first for i in filled]
    varies = any(report.varies for report in reports) or any(np.any(first != firsts[0]) for first in firsts)
    return Collected(rows, classes.labels, classes.counts, classes.totals, varies)


def gather(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """The collections in memory."""
    X, y, sample_weight = dask.compute(X, y, sample_weight)
    return X, y, sample_weight


def _bytes_of(X: Any) -> float:
    """Of all features as numbers; those of a dataframe by the length of some of its partitions."""
    if is_array(X):
        return float(X.nbytes)
    some = sorted({0, X.npartitions // 2, X.npartitions - 1})
    lengths = dask.compute(*[dask.delayed(len)(X.partitions[i]) for i in some])
    return float(np.mean(lengths)) * X.npartitions * n_features_of(X) * np.dtype(dtype_of(X)).itemsize


def _blocks(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """Features, labels and weights (or None) of every partition, each as one thing or by itself.

    Dataframes are taken together: each by itself, Dask would read a file once for each, and join partitions of those
    that have few columns.
    """
    given = [each for each in (X, y, sample_weight) if each is not None]
    if not any(is_array(each) for each in given):
        together = X.map_partitions(_tuple, *given[1:], align_dataframes=False, meta=(None, object))
        return [(each,) for each in together.to_delayed()]
    parts = [np.ravel(each.to_delayed(optimize_graph=is_array(each))) for each in given]
    return list(zip(*parts, strict=True))


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts
