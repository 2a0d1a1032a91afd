"""What a worker does with its partitions: checks and the calls of a round. Nothing here imports Dask."""

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d

from melc.arrays import Floats
from melc.data.hashing import DistinctRows, Selection
from melc.data.memory import MemoryRows
from melc.data.source import Ranks
from melc.kernels import ORDER
from melc.sums.bins import BinLayout
from melc.sums.rims import Rims, RimSlopes

# With more distinct labels than this in a partition, y cannot be class labels.
_MOST_LABELS = 10_000
# Rows that are compared with the first at once.
_COMPARED_AT_ONCE = 4096


@dataclass(frozen=True)
class Part:
    """A partition: features, labels (later replaced by class numbers), and weights or None."""

    X: Any
    y: NDArray[Any]
    weights: Floats | None


@dataclass(frozen=True)
class PartitionReport:
    """What is known about a partition before the first round."""

    labels: NDArray[Any]
    counts: NDArray[np.int64]  # number of rows of each label
    totals: Floats  # total weight of each label
    smallest: Floats  # smallest weight of each label
    first: Floats | None  # the first row; None if there are no rows
    varies: bool  # whether any feature varies
    is_sparse: bool


@dataclass(frozen=True)
class PartitionPlace:
    """The position of a partition: the number of rows before it, in total and of each class."""

    first_row: int
    counts_before: NDArray[np.int64]


@dataclass(frozen=True)
class Call:
    """A method of :class:`PartitionRows` and its arguments; if ``code`` is given, for that class against the rest."""

    method: str
    arguments: tuple[Any, ...]
    code: int | None
    centre: Floats | None

    def on(self, part: Part, place: PartitionPlace, n_threads: int) -> Any:
        """Make the call on a partition and return its result."""
        with contextlib.closing(PartitionRows(part, place, self.code, self.centre, n_threads)) as rows:
            return getattr(rows, self.method)(*self.arguments)


class PartitionRows(MemoryRows):
    """The rows of a partition, with their position among the rows of all partitions."""

    def __init__(
        self, part: Part, place: PartitionPlace, code: int | None, centre: Floats | None, n_threads: int
    ) -> None:
        codes = part.y if code is None else (part.y == code).view(np.int8)
        super().__init__(part.X, codes, part.weights, n_threads, centre, place.first_row, keep=False)
        before = place.counts_before
        self._before = before if code is None else np.array([before.sum() - before[code], before[code]])

    def take_by_ranks_among_all(self, ranks: Ranks) -> "Taken":
        """Return the rows of this partition whose rank in their class, counted over all partitions, is in ``ranks``."""
        mine = [
            wanted[slice(*np.searchsorted(wanted, (first, first + count)))] - first
            for wanted, first, count in zip(ranks, self._before, self.counts, strict=True)
        ]
        taken = self.take((mine[0], mine[1]))
        return Taken(taken.X, taken.codes, taken.weights)

    def table_of_weights(self, n_rows: int) -> Floats:
        """Return the weights of these rows by hash, in a table for all ``n_rows`` rows."""
        return self.hashes.table(n_rows)

    def select_here(self, selection: Selection) -> DistinctRows:
        """Return the distinct rows of this partition that may be drawn."""
        return self.hashes.select(self.codes, selection, self.first_row)

    def take_by_numbers(self, numbers: NDArray[np.int64]) -> "Taken":
        """Return the rows of this partition whose number, counted over all partitions, is in ``numbers``, ascending."""
        mine = numbers[slice(*np.searchsorted(numbers, (self.first_row, self.first_row + self.n_rows)))]
        chosen = mine - self.first_row
        return Taken(self.X[chosen], self.codes[chosen], None)


@dataclass
class Taken:
    """Selected rows of a partition, or of several partitions concatenated."""

    X: Any
    codes: NDArray[np.int8]
    weights: Floats | None

    def __iadd__(self, other: "Taken") -> "Taken":
        stack = sparse.vstack if sparse.issparse(self.X) else np.concatenate
        self.X = stack([self.X, other.X])
        self.codes = np.concatenate([self.codes, other.codes])
        if self.weights is not None and other.weights is not None:
            self.weights = np.concatenate([self.weights, other.weights])
        return self


# Sums of results by (level, number): see added.
Sums = dict[tuple[int, int], list[Any]]


def checked(number: int, X: Any, y: Any, weights: Any) -> Part:
    """Return the partition as arrays, without rows of weight zero. Errors name the partition and give a remedy."""
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
    return Part(features, labels, weights)


def _check_partition(number: int, given: Any, X: Any, y: NDArray[Any], weights: Floats | None) -> None:
    for name, other in (("y", y), ("sample_weight", weights)):
        if other is not None and len(other) != X.shape[0]:
            raise ValueError(
                f"Partition {number} has {X.shape[0]} rows in X and {len(other)} in {name}. Take both from the same "
                f"collection: X, {name} = df[features], df[column]"
            )
    if weights is not None and len(weights) and weights.min() < 0:
        raise ValueError(
            f"Partition {number} holds the weight {weights.min():g}. Weights must not be negative: "
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
            f"Partition {number} of X holds {dense[row, column]} (its row {row}, feature {feature}). Replace it by a "
            f"number: X = {line}; or remove such rows from X, y and sample_weight."
        )


def reported(number: int, part: Part) -> PartitionReport:
    """Return the report of a partition."""
    try:
        labels, index = np.unique(part.y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"Partition {number} of y mixes labels that cannot be ordered: {error}") from error
    if len(labels) > _MOST_LABELS:
        raise ValueError(
            f"Partition {number} of y holds {len(labels)} different labels: these are not classes. Bin them first, for "
            "example y = (y > threshold)"
        )
    counts = np.bincount(index, minlength=len(labels))
    totals: Floats = counts.astype(np.float64)
    smallest = np.ones(len(labels))
    if part.weights is not None:
        totals = np.bincount(index, part.weights, len(labels)).astype(np.float64)
        smallest = np.full(len(labels), np.inf)
        np.minimum.at(smallest, index, part.weights)
    if not len(part.y):
        return PartitionReport(labels, counts, totals, smallest, None, False, False)
    is_sparse = sparse.issparse(part.X)
    first = part.X[:1].toarray()[0] if is_sparse else part.X[0]
    return PartitionReport(labels, counts, totals, smallest, np.array(first), _varies(part.X, first), is_sparse)


def _varies(X: Any, first: Floats) -> bool:
    if sparse.issparse(X):
        return bool((X.max(axis=0).toarray() != X.min(axis=0).toarray()).any())
    return any(bool(np.any(X[a : a + _COMPARED_AT_ONCE] != first)) for a in range(0, X.shape[0], _COMPARED_AT_ONCE))


def numbered(classes: NDArray[Any], part: Part) -> Part:
    """Return the partition with class numbers in place of labels."""
    dtype = np.int8 if len(classes) < 128 else np.int32
    return Part(part.X, np.searchsorted(classes, part.y).astype(dtype), part.weights)


def work(
    numbers: Sequence[int],
    n: int,
    calls: Sequence[Call],
    places: Sequence[PartitionPlace],
    parts: Sequence[Part],
    n_threads: int,
) -> Sums:
    """Make the calls on some of n partitions. Return the results, with those of neighbouring partitions added up."""

    def make(place: PartitionPlace, part: Part) -> list[Any]:
        return [call.on(part, place, max(1, n_threads // len(parts))) for call in calls]

    if n_threads == 1 or len(parts) == 1:
        results = list(map(make, places, parts))
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            results = list(pool.map(make, places, parts))
    return added({(0, number): result for number, result in zip(numbers, results, strict=True)}, n)


def added(sums: Sums, n: int) -> Sums:
    """Add neighbours in pairs, then pairs of pairs and so on, where both are in ``sums``; return the remaining sums.

    Sum (l, i) is over the 2ˡ partitions from number 2ˡ i on. The pairs depend only on these numbers, so the order of
    additions is the same wherever they are made.
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


def warm_up(dtype: Any, n_features: int) -> None:
    """Compile the kernels that the rounds will call, or load them from the cache."""
    rows = MemoryRows(np.ones((8, n_features), dtype), np.arange(8, dtype=np.int8) % 2, keep=False)
    v = np.ones(n_features)
    layout = BinLayout(0.0, (1.0, 1.0), (0, 0), (n_features + 1,) * 2)
    rims = Rims(np.ones(layout.n_bins + 1, dtype=bool), 0.0, 0.5, (1, 1), 1, False)
    rows.bin(v, layout, with_features=True)
    found = rows.bin_at_rims(v, layout, rims)
    slopes = RimSlopes(rims, (found.keys[0], found.keys[1]), (found.moments[0], found.moments[1]))
    for some in (None, slopes):
        rows.pull_back_binned(v, layout, np.zeros((layout.n_bins, ORDER - 1)), None, some)
