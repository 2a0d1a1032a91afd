"""Classification problems in tables: rows in memory, and rows in a memory-mapped file."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.tables.encoding import Encoding, learn_encoding
from melc.tables.read import rows_in_block


@dataclass(frozen=True)
class Problem:
    """A classification problem: a table, the columns to use as features, and the label of every row.

    ``labels`` and ``weights`` have shape (n_rows,). With ``impute`` missing values are filled.
    """

    table: Any
    columns: list[str]
    labels: NDArray[Any]
    weights: Floats | None = None
    impute: bool = False

    @functools.cached_property
    def encoding(self) -> Encoding:
        """The encoding of the columns."""
        return learn_encoding(self.table, self.columns, impute=self.impute)

    @functools.cached_property
    def encoded(self) -> tuple[Encoding, Floats]:
        """The encoding of the columns, and the features, shape (n_rows, n_features)."""
        return self.encoding, self.encoding.encode(self.table).X

    @functools.cached_property
    def class_counts(self) -> dict[Any, int]:
        """The number of rows of each class."""
        labels, counts = np.unique(self.labels, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def fold(self, train: NDArray[np.int64], test: NDArray[np.int64]) -> tuple[Encoding, Floats, Floats]:
        """Return the features of the training and test rows, in the encoding learned from the training rows."""
        kinds, _ = self.encoded
        encoding = learn_encoding(self.table.take(train), self.columns, impute=self.impute, kinds_of=kinds)
        X_train, X_test = (encoding.encode(self.table.take(part)).X for part in (train, test))
        return encoding, X_train, X_test


@dataclass(frozen=True)
class StoredProblem:
    """A classification problem whose features, shape (n_rows, n_features), are already encoded: in a mapped file.

    ``classes`` are the labels, and ``codes``, shape (n_rows,), the place of each row's label among them.
    """

    encoding: Encoding
    X: Floats
    classes: NDArray[Any]
    codes: NDArray[Any]
    weights: Floats | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """The label of every row, which may take more memory than is available: use ``codes`` where possible."""
        return self.classes[self.codes]

    @functools.cached_property
    def class_counts(self) -> dict[Any, int]:
        """The number of rows of each class."""
        return dict(zip(self.classes.tolist(), np.bincount(self.codes).tolist(), strict=True))

    @property
    def encoded(self) -> tuple[Encoding, Floats]:
        """The encoding of the columns, and the features."""
        return self.encoding, self.X

    def fold(self, train: NDArray[np.int64], test: NDArray[np.int64]) -> tuple[Encoding, Floats, Floats]:
        """Return the features of the training and test rows, in the encoding learned from all rows."""
        return self.encoding, self.X[train], self.X[test]

    def sample(self, n_rows: int, seed: int) -> "StoredProblem":
        """Return a random sample of about ``n_rows`` rows, with the same shares of the classes."""
        rng = np.random.default_rng(seed)
        share = min(1.0, n_rows / len(self.codes))
        chosen = np.concatenate([_some(np.flatnonzero(self.codes == k), share, rng) for k in range(len(self.classes))])
        chosen.sort()
        weights = None if self.weights is None else self.weights[chosen]
        return StoredProblem(self.encoding, self.X[chosen], self.classes, self.codes[chosen], weights)


def _some(rows: NDArray[np.int64], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a random share of some rows; of few rows, at least five, or all."""
    return rng.choice(rows, min(len(rows), max(5, round(share * len(rows)))), replace=False, shuffle=False)


AnyProblem = Problem | StoredProblem


def blocks_of(X: Floats) -> Iterator[Floats]:
    """Yield the rows of X in blocks of bounded size."""
    size = rows_in_block(X.shape[1])
    for start in range(0, len(X), size):
        yield X[start : start + size]


def largest_of(X: Floats) -> Floats:
    """Return the largest absolute value of each feature, shape (n_features,), block by block."""
    return np.max([np.maximum(block.max(axis=0), -block.min(axis=0)) for block in blocks_of(X)], axis=0)


def mean_and_spread(X: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the features, both of shape (n_features,), block by block."""
    unit = np.ldexp(0.5, np.frexp(largest_of(X))[1])  # so that no square overflows; dividing by a power of two is exact
    mean = sum((block / unit).sum(axis=0) for block in blocks_of(X)) / len(X)
    squares = sum(np.square(block / unit - mean).sum(axis=0) for block in blocks_of(X))
    return unit * mean, unit * np.sqrt(squares / len(X))
