"""A line: a direction, and the curves that it adds to the log-odds. A model is a list of lines, and intercepts."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.curve import Curve, leading

# Largest whole-number weight. Larger ones would be as hard to use by hand as real numbers.
LARGEST_WHOLE_WEIGHT = 100
# Weights are whole if they differ from whole numbers by less than this, which is more than rounding.
_WHOLE = 1e-6


@dataclass(frozen=True)
class Line:
    """A direction v of length one and curves g: the line adds ``g(x·v)`` to the log-odds of a row x.

    With two classes there is one curve, for the second: where it is positive, the line favours the second class,
    elsewhere for the first. With more, each class has a curve, and the line favours the class of the highest curve.
    ``offsets``, of shape (n_curves,), are the intercepts if this is the only line of the model: its thresholds are then
    where the decision changes. Otherwise they are zero.

    ``counts``, of shape (n_thresholds + 1, n_classes), is the weight of the training rows of each class in each
    interval between thresholds. ``importance`` is the mean absolute deviation of what the line adds, over the training
    rows, all classes counting equally; ``feature_importances``, of shape (d,), divide it in proportion to weight times
    spread. ``places``, of shape (p,), and ``densities``, of shape (n_classes, p), are the class densities along the
    line, for pictures. ``errors`` holds the standard errors of each curve at its knots, or is empty if there are none.
    A ``minor`` line is for a feature without another line of its own: see ``AdditiveMELC(other_features=True)``.

    A line of a single category has no values between levels: its knots are the numbers of the levels (see
    :class:`melc.model.columns.Category`), which ``levels`` names. ``counts`` and ``densities``, which are the shares of
    the levels in each class, then have an entry for each level. A line of a column with missing values has the weight
    of the rows where it is missing in ``missing_counts``, of shape (n_classes,).

    If the weights are whole numbers of features in handy units (see ``MELC(whole_weights=…)``), ``units``, of shape
    (d,), are these units; otherwise it is empty. The whole numbers are :attr:`whole_weights`.
    """

    direction: Floats
    curves: tuple[Curve, ...]
    importance: float
    feature_importances: Floats = field(repr=False)
    counts: Floats = field(repr=False)
    places: Floats = field(repr=False)
    densities: Floats = field(repr=False)
    offsets: Floats = field(repr=False)
    errors: tuple[Floats, ...] = field(default=(), repr=False)
    minor: bool = False
    levels: tuple[str, ...] = ()
    missing_counts: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    units: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    @property
    def reads_codes(self) -> bool:
        """Whether the line reads the codes of a single column: levels of a category, or NaN for a missing number.

        Other lines read quantities (see :mod:`melc.model.columns`).
        """
        return bool(self.levels) or self.curves[0].missing is not None

    @property
    def features(self) -> NDArray[np.int64]:
        """Indices of the features with a weight, ascending; shape (n,)."""
        return np.flatnonzero(self.direction)

    @cached_property
    def whole_weights(self) -> NDArray[np.int64] | None:
        """The weights of the features in their units, shape (d,), or None if they are not whole numbers."""
        return whole_proportions(self.direction * self.units) if len(self.units) else None

    @cached_property
    def decisive(self) -> tuple[Curve, ...]:
        """The curves plus the offsets: their sign, or the highest of them, decides which class the line favours."""
        return tuple(curve.plus(offset) for curve, offset in zip(self.curves, self.offsets.tolist(), strict=True))

    @property
    def level_codes(self) -> NDArray[np.int64]:
        """The number of the class that each level of a category favours, shape (n_levels,)."""
        values = np.stack([curve.log_odds for curve in self.decisive])
        return (values[0] > 0).astype(np.int64) if len(values) == 1 else np.argmax(values, axis=0)

    @property
    def thresholds(self) -> Floats:
        """The projections at which the line favours another class, ascending; shape (n_thresholds,)."""
        return self._intervals[0]

    @property
    def codes(self) -> NDArray[np.int64]:
        """The number of the class that the line favours in each interval; shape (n_thresholds + 1,)."""
        return self._intervals[1]

    @cached_property
    def _intervals(self) -> tuple[Floats, NDArray[np.int64]]:
        if len(self.curves) == 1:
            return self.decisive[0].thresholds, self.decisive[0].codes.astype(np.int64)
        return leading(self.decisive)


def whole_proportions(weights: Floats) -> NDArray[np.int64] | None:
    """Return the smallest whole numbers in the proportions of weights, shape (d,), or None if they exceed 100."""
    parts = weights / np.abs(weights).max()
    multiples = np.outer(np.arange(1, LARGEST_WHOLE_WEIGHT + 1), parts)
    whole = np.abs(multiples - np.rint(multiples)).max(axis=1) < _WHOLE
    return np.rint(multiples[np.argmax(whole)]).astype(np.int64) if whole.any() else None


@dataclass(frozen=True)
class LogOdds:
    """The log-odds of a class: ``constant + Σ curve(z)``, with one curve for each line of the model.

    If the model has a single line, the intercept is part of the curve, so that the curve's sign decides, and the
    constant is zero.
    """

    constant: float
    curves: list[Curve]

    def at(self, z: Floats) -> Floats:
        """Return the log-odds of rows with projections z on all lines of the model, shape (n_rows, n_lines)."""
        total = np.zeros(len(z))
        for k, curve in enumerate(self.curves):
            total += curve.at(z[:, k])
        return total + self.constant


def log_odds_of(model: Any) -> list[LogOdds]:
    """Return the log-odds of a fitted model as formulas: of the second of two classes, or of each of more classes."""
    if decides_alone(model):
        return [LogOdds(0.0, [curve]) for curve in model.lines_[0].decisive]
    return [
        LogOdds(intercept, [line.curves[k] for line in model.lines_])
        for k, intercept in enumerate(model.intercepts_.tolist())
    ]


def decides_alone(model: Any) -> bool:
    """Return whether the model has a single line, whose thresholds are then where the decision changes."""
    return len(model.lines_) == 1
