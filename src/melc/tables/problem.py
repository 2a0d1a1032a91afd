"""Classification problems in tables: rows in memory, and rows in a memory-mapped file."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from melc.arrays import Floats
from melc.tables.encoding import Encoding, learn_encoding

_BLOCK_ROWS = 65_536


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
    def encoded(self) -> tuple[Encoding, Floats]:
        """The encoding of the columns, and the features, shape (n_rows, n_features)."""
        encoding = learn_encoding(self.table, self.columns, impute=self.impute)
        return encoding, encoding.encode(self.table).X

    def fold(self, train: NDArray[np.int64], test: NDArray[np.int64]) -> tuple[Encoding, Floats, Floats]:
        """Return the features of the training and test rows, in the encoding learned from the training rows."""
        kinds, _ = self.encoded
        encoding = learn_encoding(self.table.take(train), self.columns, impute=self.impute, kinds_of=kinds)
        X_train, X_test = (encoding.encode(self.table.take(part)).X for part in (train, test))
        return encoding, X_train, X_test


@dataclass(frozen=True)
class StoredProblem:
    """A classification problem whose features, shape (n_rows, n_features), are already encoded: in a mapped file."""

    encoding: Encoding
    X: Floats
    labels: NDArray[Any]
    weights: Floats | None = None

    @property
    def encoded(self) -> tuple[Encoding, Floats]:
        """The encoding of the columns, and the features."""
        return self.encoding, self.X

    def fold(self, train: NDArray[np.int64], test: NDArray[np.int64]) -> tuple[Encoding, Floats, Floats]:
        """Return the features of the training and test rows, in the encoding learned from all rows."""
        return self.encoding, self.X[train], self.X[test]

    def sample(self, n_rows: int, seed: int) -> "StoredProblem":
        """Return a random sample of the rows, with the same shares of the classes."""
        _, chosen = train_test_split(
            np.arange(len(self.labels)), test_size=n_rows, stratify=self.labels, random_state=seed
        )
        chosen.sort()
        weights = None if self.weights is None else self.weights[chosen]
        return StoredProblem(self.encoding, self.X[chosen], self.labels[chosen], weights)


AnyProblem = Problem | StoredProblem


def mean_and_spread(X: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the features, both of shape (n_features,), block by block."""
    mean = X.mean(axis=0)
    squares = sum(np.square(X[a : a + _BLOCK_ROWS] - mean).sum(axis=0) for a in range(0, len(X), _BLOCK_ROWS))
    return mean, np.sqrt(squares / len(X))
