"""Some rows as points on a line, or by their ranks, and what sums over points are made of."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.rim import RimBins, spread_out

# Ranks of rows among those of their class, ascending, for either class.
Ranks = tuple[NDArray[np.int64], NDArray[np.int64]]

# The least and the largest point of interest, for either class.
Limits = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Points:
    """Some rows as points on the line: their numbers in ascending order, classes, projections and weights.

    Their features are there if they were asked for and are few.
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
        """One after the other."""
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


NO_POINTS = Points(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int8), np.empty(0), np.empty(0))


@dataclass
class Binned:
    """The moments of all points in bins, and the points in none: outliers.

    With the moments of the features, one row of ``features[bin]`` each, the rows need not be read again for a gradient.
    Points at the rims of a gap are in narrow bins as well, where these were asked for.
    """

    moments: Floats
    outside: Points = NO_POINTS
    features: Floats | None = None
    at_rims: RimBins | None = None

    def __iadd__(self, other: "Binned") -> "Binned":
        self.moments += other.moments
        if self.features is None or other.features is None:
            self.features = None
        else:
            self.features += other.features
        if len(other.outside):
            self.outside += other.outside
        if self.at_rims is not None and other.at_rims is not None:
            self.at_rims += other.at_rims
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        """What travels between processes: a table is wider than its points, so the rows that hold any."""
        occupied = np.flatnonzero(self.moments.any(axis=1)).astype(np.int32)
        outside = self.outside if len(self.outside) else None
        features = None if self.features is None else self.features[occupied]
        return len(self.moments), occupied, self.moments[occupied], outside, features, self.at_rims

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        n_bins, occupied, moments, outside, features, self.at_rims = state
        self.moments = spread_out(moments, occupied, n_bins)
        self.outside = NO_POINTS if outside is None else outside
        self.features = None if features is None else spread_out(features, occupied, n_bins)


@dataclass(frozen=True)
class Extra:
    """What some rows add to their weight in a gradient; their features where these are known."""

    rows: NDArray[np.int64]
    weights: Floats
    features: Floats | None = None

    def within(self, first_row: int, n_rows: int) -> tuple[NDArray[np.int64], Floats]:
        """Those of n rows, counted from the first of them; needs numbers of rows in ascending order."""
        chosen = slice(*np.searchsorted(self.rows, (first_row, first_row + n_rows)))
        return self.rows[chosen] - first_row, self.weights[chosen]


def draw_ranks(counts: tuple[int, int], size: int, rng: np.random.RandomState) -> Ranks:
    """A random sample of two classes: for every class its share, and not too little of a rare one."""
    first, second = (_draw(count, sum(counts), size, rng) for count in counts)
    return first, second


def _draw(count: int, n_rows: int, size: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    share = min(count, max(2, size * count // n_rows, min(count // 2, size // 8)))
    if share > count // 4:
        return np.sort(rng.choice(count, size=share, replace=False))
    # Few of many: drawing with replacement and leaving out what came twice spares a permutation of all.
    return np.unique(rng.randint(count, size=share))


def spread_ranks(counts: tuple[int, int], size: int) -> Ranks:
    """Up to ``size`` ranks in each class, evenly spread."""
    first, second = (np.linspace(0, n - 1, min(size, n)).astype(np.int64) for n in counts)
    return first, second
