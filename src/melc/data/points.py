"""Projected points, the moments of points in bins, and additional gradient weights of single rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.sums.rims import spread_out


@dataclass(frozen=True)
class Points:
    """Some rows as points on the line.

    ``rows`` (row numbers, ascending), ``codes``, ``z`` (projections) and ``weights`` have shape (n,). ``features``, of
    shape (n, n_features), is None unless the features were asked for and are few.
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
        """Return both concatenated."""
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
    """The moments of points in bins, and the points that lie in no bin (outliers).

    ``moments``, of shape (n_bins, P), are Σ w uʲ over the points of each bin. ``features``, of shape
    (n_bins, n_features, P − 1), are the sums Σ w uʲ x over the same points, or None. With them, the gradient needs no
    second pass over the rows.
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
        """Return the occupied rows of the tables only: most bins are empty, and workers send this to each other."""
        occupied = np.flatnonzero(self.moments.any(axis=1)).astype(np.int32)
        features = None if self.features is None else self.features[occupied]
        return len(self.moments), occupied, self.moments[occupied], self.outside, features

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        n_bins, occupied, moments, self.outside, features = state
        self.moments = spread_out(moments, occupied, n_bins)
        self.features = None if features is None else spread_out(features, occupied, n_bins)


@dataclass(frozen=True)
class Extra:
    """Gradient weights of single rows, in addition to those from the bins.

    ``rows`` (row numbers) and ``weights`` have shape (n,), ``features`` shape (n, n_features), or is None if unknown.
    """

    rows: NDArray[np.int64]
    weights: Floats
    features: Floats | None = None

    def within(self, first_row: int, n_rows: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the row numbers, relative to ``first_row``, and weights of those within ``n_rows`` rows from there on.

        ``rows`` must be in ascending order.
        """
        chosen = slice(*np.searchsorted(self.rows, (first_row, first_row + n_rows)))
        return self.rows[chosen] - first_row, self.weights[chosen]
