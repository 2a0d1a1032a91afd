"""Where the rows are, and the two products with them that an evaluation needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.sums.base import Floats


class Rows:
    """Labelled rows in memory: features X (n, d), a class code 0 or 1 a row, and weights or None.

    X is used as it is, never copied or split by class.
    """

    def __init__(self, X: Any, codes: NDArray[np.int8], weights: Floats | None = None) -> None:
        self.X = X
        self.codes = codes
        self.weights = weights

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def all_weights(self) -> Floats:
        return np.ones(len(self.codes)) if self.weights is None else self.weights

    def weights_of(self, members: NDArray[np.int64]) -> Floats:
        return np.ones(len(members)) if self.weights is None else self.weights[members]

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    def project(self, v: Floats) -> Floats:
        """z = Xv."""
        return np.asarray(self.X @ v, dtype=np.float64)

    def pull_back(self, w: Floats) -> Floats:
        """Xᵀw."""
        return np.asarray(self.X.T @ w, dtype=np.float64)

    def sample(self, size: int, rng: np.random.RandomState) -> "Rows":
        """Up to ``size`` rows as a dense float64 copy, in their order; all of them if there are no more.

        Each class gives its share, and at least half of the rows it has or an eighth of the sample, so that
        a rare class is not lost.
        """
        if self.n_rows <= size:
            chosen = np.arange(self.n_rows)
        else:
            chosen = np.sort(np.concatenate([self._draw(c, size, rng) for c in (0, 1)]))
        weights = None if self.weights is None else self.weights[chosen]
        return Rows(_dense(self.X[chosen]), self.codes[chosen], weights)

    def _draw(self, code: int, size: int, rng: np.random.RandomState) -> NDArray[np.int64]:
        members = np.flatnonzero(self.codes == code)
        share = max(size * len(members) // self.n_rows, min(len(members) // 2, size // 8))
        return rng.choice(members, size=max(2, share), replace=False)


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
