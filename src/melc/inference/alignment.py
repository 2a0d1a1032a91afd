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
from scipy.special import logsumexp

from melc.arrays import Floats
from melc.base import projections
from melc.data.frames import rows_of
from melc.divergence import cauchy_schwarz_divergence
from melc.fit.intake import coded_rows
from melc.model.line import Line, decides_alone
from melc.model.names import found_for


@dataclass(frozen=True)
class Reference:
    """A line of the model: its thresholds, the classes of the intervals between them, and its length."""

    thresholds: Floats
    codes: NDArray[np.int64]
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
    alone: bool  # whether there is a single line
    lines: list[Reference]

    @classmethod
    def of(cls, model: Any, X: Any, weights: Floats) -> "Lines":
        """Return the lines of a fitted model."""
        spread, alone = model.feature_spread_, decides_alone(model)
        lines = [
            Reference(*_thresholds_of(line), z, _length(line, spread), group)
            for line, group, z in zip(model.lines_, _groups(model, alone), _places_of(model, X).T, strict=True)
        ]
        return cls(X, weights / weights.sum(), spread, alone, lines)

    def aligned(self, model: Any) -> list[Aligned | None]:
        """Return, for each of these lines, the like line of a model of a resample, aligned; None where it has none.

        That is the line found for the same class, if each was found for a class. Otherwise it is the one whose
        projections are most alike, among those of the same features if there are several lines.
        """
        candidates = list(zip(_groups(model, self.alone), model.lines_, _places_of(model, self.X).T, strict=True))
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
        thresholds, codes = _thresholds_of(line)
        thresholds = (thresholds - other) * factor + mean
        if factor < 0:
            thresholds, codes = thresholds[::-1], codes[::-1]
        correlation = min(1.0, abs(product) / size) if size > 0 else 0.0
        return Aligned(line.direction * factor, _matched(mine, thresholds, codes), correlation)


def _places_of(model: Any, X: Any) -> Floats:
    """The projections of rows on the lines of a model, shape (n_rows, n_lines).

    A line of a category has what it adds to the log-odds: numbers of levels are those of one model only.
    """
    codes = coded_rows(model, X)
    z = projections(model, codes)
    for k, line in enumerate(model.lines_):
        if line.levels:
            z[:, k] = line.curves[0].at(z[:, k])
        elif line.reads_codes:
            place = model.columns_.places[int(line.features[0])]
            z[:, k] = np.where(np.isnan(z[:, k]), place, z[:, k])
    return z


def _thresholds_of(line: Line) -> tuple[Floats, NDArray[np.int64]]:
    """The thresholds of a line and the classes between them; levels of a category have none."""
    return (np.empty(0), np.zeros(1, dtype=np.int64)) if line.levels else (line.thresholds, line.codes)


def _length(line: Line, spread: Floats) -> float:
    return float(np.linalg.norm(line.direction * spread))


def _groups(model: Any, alone: bool) -> list[tuple[int, ...]]:
    """What lines of two models have in common if they may be the same: the class that they were found for, or features.

    A line that is alone may have any features.
    """
    if alone:
        return [()] * len(model.lines_)
    if found_for(model, 0) is not None:
        return [(k,) for k in range(len(model.lines_))]
    return [tuple(line.features.tolist()) for line in model.lines_]


def _matched(mine: Reference, thresholds: Floats, codes: NDArray[np.int64]) -> Floats:
    """The threshold that matches each of the model's, shape (n_thresholds,); NaN where there is none.

    Two thresholds match if both are between the same classes, in the same order, and each is the nearest such threshold
    to the other.
    """
    matched = np.full(len(mine.thresholds), np.nan)
    own, others = (np.stack([each[:-1], each[1:]], axis=1) for each in (mine.codes, codes))
    for change in np.unique(own, axis=0):
        index, other = np.flatnonzero((own == change).all(axis=1)), thresholds[(others == change).all(axis=1)]
        if len(index) and len(other):
            apart = np.abs(mine.thresholds[index][:, None] - other)
            nearest = apart.argmin(axis=1)
            mutual = apart.argmin(axis=0)[nearest] == np.arange(len(index))
            matched[index[mutual]] = other[nearest[mutual]]
    return matched


def divergences_of(model: Any, X: Any, codes: NDArray[np.int64], weights: Floats) -> Floats:
    """Return the divergence of each class from the others, shape (1,) for two classes, (n_classes,) for more.

    It is that along the directions, if these were chosen for it and the model knows it. The number of lines is no
    criterion: it may be another one in the next resample. Otherwise it is the divergence of the log-odds
    ``log p / (1 − p)`` of the class.
    """
    if hasattr(model, "divergence_"):
        return np.atleast_1d(np.asarray(model.divergence_, dtype=np.float64))
    drawn = np.flatnonzero(weights)
    scores = model.decision_function(rows_of(X, drawn)).reshape(len(drawn), -1)
    classes = [1] if scores.shape[1] == 1 else range(scores.shape[1])
    every = zip(classes, log_odds_of_classes(scores).T, strict=True)
    return np.array([_divergence_of_numbers(z, codes[drawn] == c, weights[drawn]) for c, z in every])


def log_odds_of_classes(scores: Floats) -> Floats:
    """Return ``log p / (1 − p)`` of the probability p of each class, shape (n_rows, n_classes).

    ``scores`` are those of which the probabilities are the softmax. A single column, that of the second of two classes,
    is returned as it is.
    """
    if scores.shape[1] == 1:
        return scores
    others = [np.delete(scores, k, axis=1) for k in range(scores.shape[1])]
    return scores - np.column_stack([logsumexp(each, axis=1) for each in others])


def _divergence_of_numbers(z: Floats, members: NDArray[np.bool_], weights: Floats) -> float:
    """The divergence of numbers, of shape (n,), of members of a class and others; zero if all numbers are the same."""
    if np.ptp(z) == 0:
        return 0.0
    return cauchy_schwarz_divergence(z[:, None], members, [1.0], method="moments", sample_weight=weights)
