"""The lines of a resample beside those of the model: the same sign, length and origin, and thresholds matched.

The length of a direction and the origin of its line are conventions. A direction of length one, in the units of the
features, changes all of its weights when a feature of small spread gets a slightly different weight. So directions are
compared at the same length in units of the standard deviations of the features, and places on the lines from the mean
of the rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.products import project_on
from melc.divergence import cauchy_schwarz_divergence
from melc.model.line import Line, decides_alone


@dataclass(frozen=True)
class Reference:
    """A line of the model: its thresholds, which side the interval above each of them is on, and its length."""

    thresholds: Floats
    upper: NDArray[np.int8]
    projections: Floats  # of all rows
    length: float  # of the direction in units of the spread
    group: tuple[int, ...]


@dataclass(frozen=True)
class Aligned:
    """A line of a resample with the sign, length and origin of the model's line.

    ``thresholds``, of shape (n_thresholds,), are those that match the model's, NaN where there is none.
    ``correlation`` is that of the projections of all rows along both lines, at least zero.
    """

    coef: Floats
    thresholds: Floats
    correlation: float


@dataclass(frozen=True)
class Lines:
    """The lines of a model, and what they are compared by: all rows, their weights, and the spread of the features."""

    X: Any
    shares: Floats  # of the rows in the total weight
    spread: Floats
    alone: bool  # whether each class has a single line
    lines: list[Reference]

    @classmethod
    def of(cls, model: Any, X: Any, weights: Floats) -> "Lines":
        """Return the lines of a fitted model."""
        spread, alone, projections = model.feature_spread_, decides_alone(model), project_on(X, model.directions_, 1)
        lines = [
            Reference(line.thresholds, line.codes[1:], z, _length(line, spread), _group(line, alone))
            for line, z in zip(model.lines_, projections.T, strict=True)
        ]
        return cls(X, weights / weights.sum(), spread, alone, lines)

    def aligned(self, model: Any) -> list[Aligned | None]:
        """Return, for each of these lines, the like line of a model of a resample, aligned; None where it has none.

        That is the line of the same class whose projections are most alike; if classes have several lines, it must have
        the same features as well.
        """
        projections = project_on(self.X, model.directions_, 1)
        candidates = [(_group(line, self.alone), line, z) for line, z in zip(model.lines_, projections.T, strict=True)]
        found: list[Aligned | None] = []
        for mine in self.lines:
            every = [self._aligned(mine, line, z) for group, line, z in candidates if group == mine.group]
            found.append(max(every, key=lambda aligned: aligned.correlation, default=None))
        return found

    def _aligned(self, mine: Reference, line: Line, z: Floats) -> Aligned:
        mean, other = float(self.shares @ mine.projections), float(self.shares @ z)
        first, second = mine.projections - mean, z - other
        product = float(self.shares @ (first * second))
        size = np.sqrt(float(self.shares @ first**2) * float(self.shares @ second**2))
        factor = np.copysign(mine.length, product) / max(_length(line, self.spread), 1e-300)
        thresholds, upper = (line.thresholds - other) * factor + mean, line.codes[1:]
        if factor < 0:
            thresholds, upper = thresholds[::-1], 1 - upper[::-1]
        correlation = min(1.0, abs(product) / size) if size > 0 else 0.0
        return Aligned(line.direction * factor, _matched(mine, thresholds, upper), correlation)


def _length(line: Line, spread: Floats) -> float:
    return float(np.linalg.norm(line.direction * spread))


def _group(line: Line, alone: bool) -> tuple[int, ...]:
    """What lines have in common that may be the same: the class, and if it has several lines, the features."""
    return (line.class_index,) if alone else (line.class_index, *line.features.tolist())


def _matched(mine: Reference, thresholds: Floats, upper: NDArray[np.int8]) -> Floats:
    """The threshold that matches each of the model's, shape (n_thresholds,); NaN where there is none.

    Two thresholds match if the same class lies above both and each is the nearest such threshold to the other.
    """
    matched = np.full(len(mine.thresholds), np.nan)
    for side in (0, 1):
        index, other = np.flatnonzero(mine.upper == side), thresholds[upper == side]
        if len(index) and len(other):
            apart = np.abs(mine.thresholds[index][:, None] - other)
            nearest = apart.argmin(axis=1)
            mutual = apart.argmin(axis=0)[nearest] == np.arange(len(index))
            matched[index[mutual]] = other[nearest[mutual]]
    return matched


def divergences_of(model: Any, X: Any, codes: NDArray[np.int64], weights: Floats) -> Floats:
    """Return the divergence of each class against the rest, shape (1,) for two classes, (n_classes,) for more.

    It is that along the directions, if these were chosen for it and the model knows it. The number of lines is no
    criterion: it may be another one in the next resample. Otherwise it is the divergence of the log-odds.
    """
    if hasattr(model, "divergence_"):
        return np.atleast_1d(np.asarray(model.divergence_, dtype=np.float64))
    log_odds = model.decision_function(X).reshape(len(codes), -1)
    classes = [1] if log_odds.shape[1] == 1 else range(log_odds.shape[1])
    drawn = weights > 0
    every = zip(classes, log_odds[drawn].T, strict=True)
    return np.array([_divergence(z, codes[drawn] == c, weights[drawn]) for c, z in every])


def _divergence(z: Floats, members: NDArray[np.bool_], weights: Floats) -> float:
    """The divergence of numbers, of shape (n,), of members of a class and others; zero if all numbers are the same."""
    if np.ptp(z) == 0:
        return 0.0
    return cauchy_schwarz_divergence(z[:, None], members, [1.0], method="moments", sample_weight=weights)
