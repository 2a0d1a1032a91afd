"""Rows in Dask collections: :class:`melc.data.source.Rows` implemented by rounds over the partitions."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from melc.arrays import Floats
from melc.data.dask.checks import check_alike, dtype_of, is_array, n_features_of
from melc.data.dask.partitions import Partitions, active_client, checked_at, fits_in_memory, side_by_side
from melc.data.dask.shared import Request, SharedRounds
from melc.data.dask.worker import Call, PartitionPlace, PartitionReport, numbered, reported, warm_up
from melc.data.hashing import DistinctRows, Selection
from melc.data.hats import CurveRequest, CurveSums
from melc.data.memory import MemoryRows, sampled
from melc.data.points import Binned, ClassSummaries, Extra, Points
from melc.data.source import Collected, Limits, Ranks
from melc.kernels import ORDER
from melc.sums.bins import BinLayout
from melc.sums.rims import RimBins, Rims, RimSlopes

# Up to this many bytes of features are moved once, so that neighbouring partitions are on the same worker. Each round
# then has less to send.
_LITTLE_TO_MOVE = 1 << 28
# Moments of the features save a round. They are computed if their table has at most this many elements, which fit in
# the cache of a core, and the tables of all partitions together at most this many. (If no worker holds neighbouring
# partitions, all of these tables are sent.)
_MOST_TO_ADD = 1 << 16
_MOST_TO_SEND = 1 << 20
# Number of threads for samples, which are small.
_SAMPLE_THREADS = 1


class DaskRows:
    """Labelled rows in partitions of Dask collections. A pass is a round over the partitions.

    The methods are described in :class:`melc.data.source.Rows`. This process receives only sums over rows, points that
    are asked for, and samples of rows.
    """

    distributed: ClassVar[bool] = True

    def __init__(
        self,
        partitions: Partitions,
        places: list[PartitionPlace],
        classes: "_Classes",
        n_features: int,
        is_sparse: bool,
        code: int | None = None,
        centre: Floats | None = None,
    ) -> None:
        self.n_features, self.centre = n_features, centre
        self.rounds: SharedRounds | None = None  # shared by several problems on the same partitions
        self._partitions, self._places, self._classes = partitions, places, classes
        self._is_sparse, self._code = is_sparse, code
        self._weight_table: Floats | None = None

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @property
    def canonical(self) -> bool:
        return False

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        return _rest_and_one(self._classes.counts, self._code, np.sum, int)

    @functools.cached_property
    def total_weights(self) -> tuple[float, ...]:
        return _rest_and_one(self._classes.totals, self._code, np.sum, float)

    @functools.cached_property
    def smallest_weights(self) -> tuple[float, ...]:
        return _rest_and_one(self._classes.smallest_weights, self._code, np.min, float)

    def bin(self, v: Floats, layout: BinLayout) -> Binned:
        """Return the moments of the projections, and those of the features where they save more than they cost."""
        numbers = layout.n_bins * (ORDER - 1) * self.n_features
        problems = 1 if self._code is None else len(self._classes.labels)
        # The choice depends on the chunks only, so that equal chunks give the same bits wherever they are.
        few = numbers <= _MOST_TO_ADD and len(self._partitions) * problems * numbers <= _MOST_TO_SEND
        return self._round("bin", v, layout, few and not self._is_sparse)

    def bin_at_rims(self, v: Floats, layout: BinLayout, rims: Rims) -> RimBins:
        return self._round("bin_at_rims", v, layout, rims)

    def pull_back_binned(
        self, v: Floats, layout: BinLayout, table: Floats, extra: Extra | None, slopes: RimSlopes | None = None
    ) -> Floats:
        return self._round("pull_back_binned", v, layout, table, extra, slopes)

    def points_of(self, v: Floats, code: int) -> Points:
        return self._round("points_of", v, code)

    def summarise(self, v: Floats) -> ClassSummaries:
        return self._round("summarise", v)

    def bin_between(self, v: Floats, layout: BinLayout, limits: Limits) -> Floats:
        return self._round("bin_between", v, layout, limits)

    def count(self, v: Floats, thresholds: Floats, n_classes: int = 2) -> Floats:
        return self._round("count", v, thresholds, n_classes)

    def sum_curves(self, directions: Floats, request: CurveRequest) -> CurveSums:
        return self._round("sum_curves", directions, request)

    def take(self, ranks: Ranks) -> MemoryRows:
        taken = self._round("take_by_ranks_among_all", ranks)
        return MemoryRows(taken.X, taken.codes, taken.weights, _SAMPLE_THREADS, self.centre)

    def select(self, seed: int, limits: Floats) -> DistinctRows:
        # Not a cached property: until Python 3.12 all instances share its lock, and classes that wait for each other's
        # rounds would never continue.
        if self._weight_table is None:
            self._weight_table = self._round("table_of_weights", self.n_rows)
        return self._round("select_here", Selection(seed, self._weight_table, limits))

    def take_sample(self, numbers: NDArray[np.int64], weights: Floats) -> MemoryRows:
        order = np.argsort(numbers)
        taken = self._round("take_by_numbers", numbers[order])
        places = np.argsort(order)
        return sampled(taken.X[places], taken.codes[places], weights, _SAMPLE_THREADS, self.centre)

    def in_memory(self) -> MemoryRows:
        return self.take((np.arange(self.counts[0]), np.arange(self.counts[1])))

    def around(self, centre: Floats) -> "DaskRows":
        return self._with(self._code, centre)

    def against_rest(self, k: int) -> "DaskRows":
        return self._with(k, self.centre)

    def _with(self, code: int | None, centre: Floats | None) -> "DaskRows":
        other = DaskRows(self._partitions, self._places, self._classes, self.n_features, self._is_sparse, code, centre)
        other.rounds = self.rounds
        return other

    def close(self) -> None:
        """Do nothing: partitions are released with the last object that refers to them."""

    def _round(self, method: str, *arguments: Any) -> Any:
        """Call a method on the rows of each partition, and return the sum of the results."""
        request = Request(Call(method, arguments, self._code, self.centre))
        if self.rounds is None:
            self._make_round([request])
        else:
            self.rounds.run(request, self._make_round)
        return request.result

    def _make_round(self, requests: list[Request]) -> None:
        """Make one round for all requests and set their results."""
        results = self._partitions.round([each.call for each in requests], self._places)
        for each, result in zip(requests, results, strict=True):
            each.result, each.done = result, True


@dataclass(frozen=True)
class _Classes:
    """The labels in ascending order, and the number of rows, total weight and smallest weight of each; shape (n,)."""

    labels: NDArray[Any]
    counts: NDArray[np.int64]
    totals: Floats
    smallest_weights: Floats


def _rest_and_one(values: NDArray[Any], code: int | None, over: Callable[..., Any], kind: type) -> Any:
    """Return the values of both classes or, with a ``code``, of all other classes together and of class ``code``.

    ``over`` combines the values of the other classes: their sum, or their minimum.
    """
    if code is None:
        return tuple(map(kind, values))
    return kind(over(np.delete(values, code))), kind(values[code])


def _classes_of(reports: list[PartitionReport]) -> _Classes:
    labels = np.unique(np.concatenate([report.labels for report in reports]))
    counts, totals = np.zeros(len(labels), dtype=np.int64), np.zeros(len(labels))
    smallest = np.full(len(labels), np.inf)
    for report in reports:
        at = np.searchsorted(labels, report.labels)
        counts[at] += report.counts
        totals[at] += report.totals
        smallest[at] = np.minimum(smallest[at], report.smallest)
    return _Classes(labels, counts, totals, smallest)


# --------------------------------------------------------------------------------------------- from collections


def collect_partitions(X: Any, y: Any, sample_weight: Any, few: Callable[[int, int], bool]) -> Collected | None:
    """Return the rows of collections, checked and held in memory if there is room for them.

    Return None if ``few(n_rows, n_features)`` says that the data are better fitted in this process.
    """
    check_alike(X, y, sample_weight)
    n_features, client = n_features_of(X), active_client()
    warming_up = functools.partial(warm_up, dtype_of(X), n_features)
    warming = [] if client is None else [client.submit(warming_up, workers=[w], pure=False) for w in client.nthreads()]
    n_bytes = _bytes_of(X)
    held = fits_in_memory(n_bytes)
    blocks = _delayed_partitions(X, y, sample_weight)
    wishes: list[str] = []
    if client is not None and n_bytes <= _LITTLE_TO_MOVE:
        wishes = side_by_side(len(blocks), client.nthreads())
    raw = Partitions([checked_at(wishes[i : i + 1], i, each) for i, each in enumerate(blocks)], held)
    reports = raw.compute(reported)
    del warming
    classes = _classes_of(reports)
    check_classification_targets(np.repeat(classes.labels, 3))  # repeated, since it warns if each label is unique
    if few(int(classes.counts.sum()), n_features):
        return None
    filled = [i for i, report in enumerate(reports) if report.first is not None]
    partitions = raw.only(filled).mapped(functools.partial(numbered, classes.labels), held)
    places, before = [], np.zeros(len(classes.labels), dtype=np.int64)
    for i in filled:
        places.append(PartitionPlace(int(before.sum()), before.copy()))
        before[np.searchsorted(classes.labels, reports[i].labels)] += reports[i].counts
    rows = DaskRows(partitions, places, classes, n_features, any(report.is_sparse for report in reports))
    firsts = [reports[i].first for i in filled]
    varies = any(report.varies for report in reports) or any(np.any(first != firsts[0]) for first in firsts)
    return Collected(rows, classes.labels, classes.counts, classes.totals, varies)


def _bytes_of(X: Any) -> float:
    """Return the size of all features in bytes; for a dataframe, estimated from the lengths of some partitions."""
    if is_array(X):
        return float(X.nbytes)
    some = sorted({0, X.npartitions // 2, X.npartitions - 1})
    lengths = dask.compute(*[dask.delayed(len)(X.partitions[i]) for i in some])
    return float(np.mean(lengths)) * X.npartitions * n_features_of(X) * np.dtype(dtype_of(X)).itemsize


def _delayed_partitions(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, ...]]:
    """Return, for each partition, a tuple of its delayed features, labels and, if there are any, weights.

    For dataframes the tuple has a single delayed object, which computes all of them together. Otherwise Dask would read
    a file once for each of them, and would merge the partitions of those that have few columns.
    """
    given = [each for each in (X, y, sample_weight) if each is not None]
    if not any(is_array(each) for each in given):
        together = X.map_partitions(_tuple, *given[1:], align_dataframes=False, meta=(None, object))
        return [(each,) for each in together.to_delayed()]
    parts = [np.ravel(each.to_delayed(optimize_graph=is_array(each))) for each in given]
    return list(zip(*parts, strict=True))


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts
