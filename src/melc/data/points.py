"""Some rows as points on a line, and what sums over points are made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.sums.rims import spread_out


@dataclass(frozen=True)
class Points:
    """Some rows as points on the line: their numbers in ascending order, classes, projections and weights.

    Their features, of shape (n_points, n_features), are there if they were asked for and are few.
    """

    rows: NDArray[np.int64]
    codes: NDArray[np.int8]
    z: Floats
    weights: Floats
    features: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Any) -> "Points":
        features = None if self.features is None else self.features[chosen]
        return Points(self.rows[chosen], self.codes[chosen], self.z[chosen], self.weights[chosen], features)

    def __add__(self, others: "Points") -> "Points":
        """Return both, one after the other."""
        if not len(self) or not len(others):
            return self if len(self) else others
        known = self.features is not None and others.features is not None
        return Points(
            np.concatenate([self.rows, others.rows]),
            np.concatenate([self.codes, others.codes]),
            np.concatenate([self.z, others.z]),
            np.concatenate([self.weights, others.weights]),
            np.concatenate([self.features, others.features]) if known else None,
        )


@dataclass
class Binned:
    """The moments of all points in bins, and the points that lie in no bin (outliers).

    ``moments``, of shape (n_bins, P), are Σ w uʲ over the points of a bin. With ``features``, of shape
    (n_bins, n_features, P − 1), the sums Σ w uʲ x over the same points, the rows need not be read again for a gradient.
    """

    moments: Floats
    outside: Points | None = None
    features: Floats | None = None

    def __iadd__(self, other: "Binned") -> "Binned":
        self.moments += other.moments
        if self.features is None or other.features is None:
            self.features = None
        else:
            self.features += other.features
        if other.outside is not None:
            self.outside = other.outside if self.outside is None else self.outside + other.outside
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        """What travels between processes: a table is wider than its points, so only the rows that hold any."""
        occupied = np.flatnonzero(self.moments.any(axis=1)).astype(np.int32)
        features = None if self.features is None else self.features[occupied]
        return len(self.moments), occupied, self.moments[occupied], self.outside, features

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        n_bins, occupied, moments, self.outside, features = state
        self.moments = spread_out(moments, occupied, n_bins)
        self.features = None if features is None else spread_out(features, occupied, n_bins)


@dataclass(frozen=True)
class Extra:
    """What some rows add to their weight in a gradient; their features where these are known."""

    rows: NDArray[np.int64]
    weights: Floats
    features: Floats | None = None

    def within(self, first_row: int, n_rows: int) -> tuple[NDArray[np.int64], Floats]:
        """Return those among n rows, counted from the first of them; needs row numbers in ascending order."""
        chosen = slice(*np.searchsorted(self.rows, (first_row, first_row + n_rows)))
        return self.rows[chosen] - first_row, self.weights[chosen]
