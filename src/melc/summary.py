"""What the densities along a direction need of the points of a class, gathered with nothing kept of most of them."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.kernels import Spread

# Points kept as they are at either end of a condensed class: they alone decide far outside the data.
KEPT_AT_EACH_END = 32


@dataclass(frozen=True)
class Atoms:
    """Different points in ascending order, and the weight at each."""

    points: Floats = field(default_factory=lambda: np.empty(0))
    weights: Floats = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, chosen: slice | NDArray[np.bool_]) -> "Atoms":
        return Atoms(self.points[chosen], self.weights[chosen])

    def __add__(self, other: "Atoms") -> "Atoms":
        return joined(np.concatenate([self.points, other.points]), np.concatenate([self.weights, other.weights]))

    def mirrored(self) -> "Atoms":
        return Atoms(-self.points[::-1], self.weights[::-1])


def joined(points: Floats, weights: Floats) -> Atoms:
    """Points in ascending order, equal ones joined."""
    support, inverse = np.unique(points, return_inverse=True)
    return Atoms(support, np.bincount(inverse, weights=weights).astype(np.float64))


@dataclass(frozen=True)
class ClassSummary:
    """Weight, mean and sum of squares around it, and the outermost points: one more than are kept at either end."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    lowest: Atoms = field(default_factory=Atoms)
    highest: Atoms = field(default_factory=Atoms)

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

    def with_points(self, points: Floats, weights: Floats) -> "ClassSummary":
        """With more points. No product of BLAS, whose sums would depend on its threads."""
        if not len(points):
            return self
        weight = float(weights.sum())
        mean = float(np.sum(weights * points)) / weight
        low = points <= self.lowest.points[-1] if len(self.lowest) > KEPT_AT_EACH_END else slice(None)
        high = points >= self.highest.points[0] if len(self.highest) > KEPT_AT_EACH_END else slice(None)
        ends = (joined(points[chosen], weights[chosen]) for chosen in (low, high))
        return self + ClassSummary(weight, mean, float(np.sum(weights * (points - mean) ** 2)), *ends)

    def mirrored(self) -> "ClassSummary":
        """Of the points times −1."""
        return replace(self, mean=-self.mean, lowest=self.highest.mirrored(), highest=self.lowest.mirrored())

    @property
    def limits(self) -> tuple[float, float]:
        """Between which points are not kept as they are, both included; an empty interval if all are."""
        if len(self.lowest) <= KEPT_AT_EACH_END:
            return np.inf, -np.inf
        low = float(self.lowest.points[-1])
        return low, max(low, float(self.highest.points[0]))

    @property
    def ends(self) -> Atoms:
        """The points that are kept as they are."""
        low, high = self.limits
        below, above = self.lowest.points < low, self.highest.points > max(low, high)
        return self.lowest[below] + self.highest[above]


@dataclass(frozen=True)
class Summary:
    """Of both classes."""

    classes: tuple[ClassSummary, ClassSummary]

    def __add__(self, other: "Summary") -> "Summary":
        return Summary((self.classes[0] + other.classes[0], self.classes[1] + other.classes[1]))

    def mirrored(self) -> "Summary":
        return Summary((self.classes[0].mirrored(), self.classes[1].mirrored()))

    @property
    def spread(self) -> Spread:
        x, y = self.classes
        return Spread(x.weight, y.weight, x.mean, y.mean, x.squares / x.weight, y.squares / y.weight)

    @property
    def largest(self) -> float:
        """The size of the outermost point."""
        return float(max(np.abs([each.lowest.points[0], each.highest.points[-1]]).max() for each in self.classes))
