"""Rows as points on a line: single points, their moments in bins, and the spread and outermost points of each class.

These are the results of passes over the rows along a direction.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.sums.rims import spread_out

# Points at each end of a condensed class that are stored unchanged, because the density far outside depends on them.
KEPT_AT_EACH_END = 32


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


class Spread(NamedTuple):
    """Total weight, mean and variance of the projections of each class, x and y."""

    weight_x: float
    weight_y: float
    mean_x: float
    mean_y: float
    variance_x: float
    variance_y: float


@dataclass(frozen=True)
class Atoms:
    """Distinct points in ascending order and their weights, both of shape (n,)."""

    points: Floats = field(default_factory=lambda: np.empty(0))
    weights: Floats = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, chosen: slice | NDArray[np.bool_]) -> "Atoms":
        """Return some of them, as copies: a view would keep all of them in memory."""
        return Atoms(self.points[chosen].copy(), self.weights[chosen].copy())

    def __add__(self, other: "Atoms") -> "Atoms":
        return atoms_of(np.concatenate([self.points, other.points]), np.concatenate([self.weights, other.weights]))

    def mirrored(self) -> "Atoms":
        return Atoms(-self.points[::-1], self.weights[::-1])


def atoms_of(points: Floats, weights: Floats) -> Atoms:
    """Return the distinct points in ascending order, with the total weight at each."""
    support, inverse = np.unique(points, return_inverse=True)
    return Atoms(support, np.bincount(inverse, weights=weights).astype(np.float64))


def _lowest(atoms: Atoms, points: Floats, weights: Floats) -> Atoms:
    """Return the lowest of atoms and points."""
    if len(atoms) > KEPT_AT_EACH_END:  # most points are excluded before the sort, which takes the longest
        low = points <= atoms.points[-1]
        points, weights = points[low], weights[low]
    return (atoms + Atoms(points, weights))[: KEPT_AT_EACH_END + 1]


@dataclass(frozen=True)
class ClassSummary:
    """Weight, mean, sum of squared deviations from the mean, and outermost points of one class."""

    weight: float
    mean: float
    squares: float
    lowest: Atoms
    highest: Atoms

    def __add__(self, other: "ClassSummary") -> "ClassSummary":
        total = self.weight + other.weight
        if total == 0:
            return self
        move = other.mean - self.mean
        return ClassSummary(
            total,
            self.mean + move * (other.weight / total),
            self.squares + other.squares + move**2 * (self.weight / total) * other.weight,
            (self.lowest + other.lowest)[: KEPT_AT_EACH_END + 1],
            (self.highest + other.highest)[-KEPT_AT_EACH_END - 1 :],
        )

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest point."""
        return float(self.lowest.points[0]), float(self.highest.points[-1])

    @property
    def limits(self) -> tuple[float, float]:
        """The closed interval of the points that are not in ``ends``; (inf, −inf), an empty one, if there are none."""
        if len(self.lowest) <= KEPT_AT_EACH_END:
            return np.inf, -np.inf
        low = float(self.lowest.points[-1])
        return low, max(low, float(self.highest.points[0]))

    @property
    def ends(self) -> Atoms:
        """The outermost points, which are stored unchanged."""
        low, high = self.limits
        below, above = self.lowest.points < low, self.highest.points > max(low, high)
        return self.lowest[below] + self.highest[above]


@dataclass(frozen=True)
class ClassSummaries:
    """The summaries of both classes."""

    classes: tuple[ClassSummary, ClassSummary]

    def __add__(self, other: "ClassSummaries") -> "ClassSummaries":
        return ClassSummaries((self.classes[0] + other.classes[0], self.classes[1] + other.classes[1]))

    @property
    def spread(self) -> Spread:
        x, y = self.classes
        return Spread(x.weight, y.weight, x.mean, y.mean, x.squares / x.weight, y.squares / y.weight)

    @property
    def largest(self) -> float:
        """The largest absolute value of a point."""
        return float(max(np.abs(each.range).max() for each in self.classes))


class Gathered:
    """Accumulates a summary: ``spread``, of shape (2, 3), holds the weight, mean and sum of squares of each class.

    ``lowest`` and ``highest`` are the outermost points of each class: ``KEPT_AT_EACH_END`` at each end, and one more,
    where the other points begin.
    """

    def __init__(self) -> None:
        self.spread = np.zeros((2, 3))
        self.lowest, self.highest = [Atoms(), Atoms()], [Atoms(), Atoms()]

    def add_to_ends(self, code: int, points: Floats, weights: Floats) -> None:
        """Add points of a class to its ends. The result does not depend on how they are divided into calls."""
        self.lowest[code] = _lowest(self.lowest[code], points, weights)
        self.highest[code] = _lowest(self.highest[code].mirrored(), -points, weights).mirrored()

    def summary(self) -> ClassSummaries:
        first, second = (
            ClassSummary(weight, mean, squares, lowest, highest)
            for (weight, mean, squares), lowest, highest in zip(
                self.spread.tolist(), self.lowest, self.highest, strict=True
            )
        )
        return ClassSummaries((first, second))
