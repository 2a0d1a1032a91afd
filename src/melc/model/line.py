"""A line: a direction, and the curve that it adds to the log-odds. A fitted model is a list of lines and intercepts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.curve import Curve


@dataclass(frozen=True)
class Line:
    """A direction v of length one and a curve g: the line adds ``g(x·v)`` to the log-odds of a row x.

    Where the curve is positive, the line speaks for the class ``class_index`` (of two classes, the second), where it is
    negative, for the others. If it is the only line of its class, ``offset`` is the intercept of the class, and the
    thresholds are those of the curve plus the intercept: there the decision changes. Otherwise ``offset`` is zero.

    ``counts``, of shape (n_thresholds + 1, 2), is the weight of the training rows of the others, and of the class, in
    each interval. ``importance`` is the mean absolute deviation of what the line adds, over the training rows, both
    classes counting equally; ``feature_importances``, of shape (d,), divide it in proportion to weight times spread.
    ``places``, of shape (p,), and ``densities``, of shape (2, p), are the class densities along the line, for pictures.
    """

    direction: Floats
    curve: Curve
    class_index: int
    importance: float
    feature_importances: Floats = field(repr=False)
    counts: Floats = field(repr=False)
    places: Floats = field(repr=False)
    densities: Floats = field(repr=False)
    offset: float = 0.0

    @property
    def features(self) -> NDArray[np.int64]:
        """Indices of the features with a weight, ascending; shape (n,)."""
        return np.flatnonzero(self.direction)

    @property
    def decisive(self) -> Curve:
        """The curve plus the offset: its sign is what the line says."""
        return self.curve.plus(self.offset)

    @property
    def thresholds(self) -> Floats:
        """The projections at which the line changes sides, ascending; shape (n_thresholds,)."""
        return self.decisive.thresholds

    @property
    def codes(self) -> NDArray[np.int8]:
        """One for each interval between thresholds in which the line speaks for its class, else zero."""
        return self.decisive.codes


@dataclass(frozen=True)
class LogOdds:
    """The log-odds of a class: ``constant + Σ curve(z)`` over its lines.

    ``lines``, of shape (n,), are the numbers of the lines in the model, and ``curves`` their curves. If the class has a
    single line, the intercept is part of the curve, so that the curve's sign decides, and the constant is zero.
    """

    constant: float
    lines: NDArray[np.int64]
    curves: list[Curve]

    def at(self, z: Floats) -> Floats:
        """Return the log-odds of rows with projections z on all lines of the model, shape (n_rows, n_lines)."""
        total = np.zeros(len(z))
        for k, curve in zip(self.lines, self.curves, strict=True):
            total += curve.at(z[:, k])
        return total + self.constant


def log_odds_of(model: Any) -> list[LogOdds]:
    """Return the log-odds of a fitted model as formulas: of two classes, those of the second; of more, of each."""
    several = len(model.classes_) > 2
    found = []
    for column, intercept in enumerate(model.intercepts_.tolist()):
        numbers = np.array([k for k, line in enumerate(model.lines_) if line.class_index == column or not several])
        lines = [model.lines_[k] for k in numbers]
        alone = len(lines) == 1
        curves = [line.decisive if alone else line.curve for line in lines]
        found.append(LogOdds(0.0 if alone else intercept, numbers, curves))
    return found


def decides_alone(model: Any) -> bool:
    """Return whether every class has a single line, whose thresholds are then where the decision changes."""
    return len(model.lines_) == len(model.intercepts_)


def sides_of(model: Any, line: Line) -> tuple[str, str]:
    """Return the names of the two sides of a line: both classes, or the rest and the class of the line."""
    labels: Sequence[str] = [str(label) for label in model.classes_]
    return (labels[0], labels[1]) if len(labels) == 2 else ("rest", labels[line.class_index])
