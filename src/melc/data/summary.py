"""What the densities along a direction need of the points of a class, gathered with nothing kept of most of them."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.kernels import Spread

# Points kept as they are at either end of a condensed class: they alone decide far outside the data.
KEPT_AT_EACH_END = 32
# Of this many points, the lowest of so many are sorted.
_MANY, _ENOUGH = 1024, 64


@dataclass(frozen=True)
class Atoms:
    """Different points in ascending order, and the weight at each."""

    points: Floats = field(default_factory=lambda: np.empty(0))
    weights: Floats = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, chosen: slice | NDArray[np.bool_]) -> "Atoms":
        """Some of them, copied: a view of a few would keep all in memory."""
        return Atoms(self.points[chosen].copy(), self.weights[chosen].copy())

    def __add__(self, other: "Atoms") -> "Atoms":
        return joined(np.concatenate([self.points, other.points]), np.concatenate([self.weights, other.weights]))

    def mirrored(self) -> "Atoms":
        return Atoms(-self.points[::-1], self.weights[::-1])


def joined(points: Floats, weights: Floats) -> Atoms:
    """Points in ascending order, equal ones joined."""
    support, inverse = np.unique(points, return_inverse=True)
    return Atoms(support, np.bincount(inverse, weights=weights).astype(np.float64))


@dataclass(frozen=True)
class Ends:
    """The outermost points of a class: one more than are kept at either end."""

    lowest: Atoms = field(default_factory=Atoms)
    highest: Atoms = field(default_factory=Atoms)

    def with_points(self, points: Floats, weights: Floats) -> "Ends":
        """With more points; the same bits whether they come at once or one by one."""
        return Ends(
            _lowest(self.lowest, points, weights),
            _lowest(self.highest.mirrored(), -points, weights).mirrored(),
        )


def _lowest(atoms: Atoms, points: Floats, weights: Floats) -> Atoms:
    """The lowest of atoms and points. Most points are put aside first, for sorting them would take longest."""
    if len(atoms) > KEPT_AT_EACH_END:
        low = points <= atoms.points[-1]
    elif len(points) > _MANY:
        low = points <= np.partition(points, _ENOUGH)[_ENOUGH]
    else:
        low = np.ones(len(points), dtype=bool)
    found = _with(atoms, points[low], weights[low])
    if len(found) <= KEPT_AT_EACH_END and not low.all():  # of those that are enough as a rule, many are equal
        found = _with(atoms, points, weights)
    return found[: KEPT_AT_EACH_END + 1]


def _with(atoms: Atoms, points: Floats, weights: Floats) -> Atoms:
    if not len(points):
        return atoms
    return joined(np.concatenate([atoms.points, points]), np.concatenate([atoms.weights, weights]))


@dataclass(frozen=True)
class ClassSummary:
    """Weight, mean and sum of squares around it, and the outermost points."""

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


class Gathered:
    """What becomes a summary: weight, mean and squares of either class in a row each, and their ends."""

    def __init__(self) -> None:
        self.spread = np.zeros((2, 3))
        self.ends = [Ends(), Ends()]

    def summary(self) -> Summary:
        first, second = (
            ClassSummary(weight, mean, squares, ends.lowest, ends.highest)
            for (weight, mean, squares), ends in zip(self.spread.tolist(), self.ends, strict=True)
        )
        return Summary((first, second))
