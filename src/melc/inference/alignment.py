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
from melc.model.units import is_additive


@dataclass(frozen=True)
class Reference:
    """A line of the model: its direction, thresholds, and which class the interval above each threshold belongs to."""

    coef: Floats
    thresholds: Floats
    upper: NDArray[np.int8]
    projections: Floats  # of all rows
    length: float  # of the direction in units of the spread
    group: tuple[int, ...] | None  # of a line of an additive model, its class and features; else None


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
    lines: list[Reference]

    @classmethod
    def of(cls, model: Any, X: Any, weights: Floats) -> "Lines":
        """Return the lines of a fitted model."""
        spread = np.asarray(model.feature_spread_, dtype=np.float64)
        projections = project_on(X, model.coef_, 1)
        groups, sides = groups_of(model), sides_of(model)
        lines = [
            Reference(coef, *side, projections[:, k], _length(coef, spread), group)
            for k, (coef, side, group) in enumerate(zip(model.coef_, sides, groups, strict=True))
        ]
        return cls(X, weights / weights.sum(), spread, lines)

    def beside(self, model: Any) -> list[Aligned | None]:
        """Return the lines of a model of a resample beside these; None where it has no line of the same features.

        The directions of a :class:`melc.MELC` are those of its classes. A line of an additive model is beside the one
        of the same class and features whose projections are most alike.
        """
        projections = project_on(self.X, model.coef_, 1)
        groups, sides = groups_of(model), sides_of(model)
        found: list[Aligned | None] = []
        for k, line in enumerate(self.lines):
            candidates = [k] if line.group is None else [i for i, group in enumerate(groups) if group == line.group]
            every = [self._aligned(line, model.coef_[i], *sides[i], projections[:, i]) for i in candidates]
            found.append(max(every, key=lambda aligned: aligned.correlation, default=None))
        return found

    def _aligned(self, line: Reference, coef: Floats, thresholds: Floats, upper: Any, z: Floats) -> Aligned:
        mean, other = float(self.shares @ line.projections), float(self.shares @ z)
        first, second = line.projections - mean, z - other
        product = float(self.shares @ (first * second))
        size = np.sqrt(float(self.shares @ first**2) * float(self.shares @ second**2))
        sign = -1.0 if product < 0 else 1.0
        factor = sign * line.length / max(_length(coef, self.spread), 1e-300)
        moved = (thresholds - other) * factor + mean
        if sign < 0:
            moved, upper = moved[::-1], 1 - upper[::-1]
        return Aligned(coef * factor, _matched(line, moved, upper), min(1.0, abs(product) / size) if size > 0 else 0.0)


def _length(coef: Floats, spread: Floats) -> float:
    return float(np.linalg.norm(coef * spread))


def _matched(line: Reference, thresholds: Floats, upper: NDArray[np.int8]) -> Floats:
    """The threshold that matches each of the model's, shape (n_thresholds,); NaN where there is none.

    Two thresholds match if the same class lies above both and each is the nearest such threshold to the other.
    """
    matched = np.full(len(line.thresholds), np.nan)
    for side in (0, 1):
        mine, other = np.flatnonzero(line.upper == side), thresholds[upper == side]
        if len(mine) and len(other):
            apart = np.abs(line.thresholds[mine][:, None] - other)
            nearest = apart.argmin(axis=1)
            mutual = apart.argmin(axis=0)[nearest] == np.arange(len(mine))
            matched[mine[mutual]] = other[nearest[mutual]]
    return matched


def sides_of(model: Any) -> list[tuple[Floats, NDArray[np.int8]]]:
    """Return the thresholds of each line of a model and the class, 0 or 1, above each of them."""
    if is_additive(model):
        return [(line.thresholds, line.favours[1:].astype(np.int8)) for line in model.lines_]
    return [(decision.thresholds, decision.codes[1:]) for decision in model.decisions_]


def groups_of(model: Any) -> list[tuple[int, ...] | None]:
    """Return the class and the features of each line of an additive model; None for each direction of a MELC."""
    if is_additive(model):
        return [(line.class_index, *line.features.tolist()) for line in model.lines_]
    return [None] * len(model.coef_)


def divergences_of(model: Any, X: Any, codes: NDArray[np.int64], weights: Floats) -> Floats:
    """Return the divergence along each direction of a MELC; of an additive model, that of the log-odds of each class.

    Shape (1,) for two classes, (n_classes,) for more.
    """
    if not is_additive(model):
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
