"""A fitted model of either kind as curves along lines, whose values add up to the log-odds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from melc.arrays import Floats
from melc.model.units import is_additive

# Width of the difference from which a slope is computed, in units of the width of a curve's details.
_SHORT_STEP = 1e-6
# Places at which the curve of a decision is tabulated: so many, or on the support of narrow kernels more of them.
_TABULATED, _PER_BANDWIDTH, _MOST_TABULATED = 3000, 4, 30_000
# Places on either side as far as to the furthest row, if that is far away.
_FAR_AWAY = 300


@dataclass(frozen=True)
class Curve:
    """What a line adds to the log-odds at projections of any shape, its thresholds, and the width of its details."""

    at: Callable[[Floats], Floats]
    thresholds: Floats
    width: float
    ends: tuple[float, float]  # beyond which the curve changes slowly, if at all
    # Places and values, between which the curve is about linear, as far as to some projections.
    table: Callable[[Floats], tuple[Floats, Floats]]

    def slope(self, z: Floats) -> Floats:
        """Return the derivative of the curve at projections z, of the shape of z."""
        step = max(_SHORT_STEP * self.width, 4 * float(np.spacing(np.abs(z).max(initial=0.0))))
        return np.asarray((self.at(z + step) - self.at(z - step)) / (2 * step))


@dataclass(frozen=True)
class Curves:
    """The curves of a model: that of line l, along ``coef[l]``, adds to the column ``columns[l]`` of the log-odds.

    The log-odds have shape (n_rows, n_columns): of two classes one column, that of the second class; of more classes
    one for each of them.
    """

    coef: Floats
    curves: list[Curve]
    columns: NDArray[np.int64]
    intercept: Floats

    def adds(self, z: Floats) -> Floats:
        """Return what each line adds at projections z, of shape (n_rows, n_lines); the same shape."""
        return np.column_stack([curve.at(np.ascontiguousarray(z[:, k])) for k, curve in enumerate(self.curves)])

    def slopes(self, z: Floats) -> Floats:
        """Return the derivatives of the curves at projections z, of shape (n_rows, n_lines); the same shape."""
        return np.column_stack([curve.slope(np.ascontiguousarray(z[:, k])) for k, curve in enumerate(self.curves)])

    def summed(self, adds: Floats) -> Floats:
        """Return the log-odds, of shape (n_rows, n_columns), from what each line adds."""
        return adds @ self.membership + self.intercept

    @property
    def membership(self) -> Floats:
        """One where a line adds to a column, shape (n_lines, n_columns)."""
        return np.equal.outer(self.columns, np.arange(len(self.intercept))).astype(np.float64)


def curves_of(model: Any) -> Curves:
    """Return the curves of a fitted :class:`melc.MELC` or :class:`melc.AdditiveMELC`."""
    if is_additive(model):
        several = len(model.classes_) > 2
        columns = np.array([line.class_index if several else 0 for line in model.lines_])
        return Curves(model.coef_, [_of_line(line) for line in model.lines_], columns, model.intercept_)
    curves = [_of_decision(decision) for decision in model.decisions_]
    return Curves(model.coef_, curves, np.arange(len(curves)), np.zeros(len(curves)))


def _of_line(line: Any) -> Curve:
    ends = (float(line.knots[0]), float(line.knots[-1]))
    width = (ends[1] - ends[0]) or 1.0
    return Curve(line.at, line.thresholds, width, ends, lambda _: (line.knots, line.log_odds))


def _of_decision(decision: Any) -> Curve:
    width = min(density.bandwidth for density in decision.densities)
    supports = [density.support[[0, -1]] for density in decision.densities]
    low, high = float(np.min(supports)), float(np.max(supports))
    length = high - low + width

    def table(z: Floats) -> tuple[Floats, Floats]:
        wide = np.linspace(low - length, high + length, _TABULATED)
        fine = np.linspace(low, high, int(min(_PER_BANDWIDTH * (high - low) / width, _MOST_TABULATED)))
        furthest = max(low - z.min(), z.max() - high)
        outside = np.geomspace(length, 2 * furthest, _FAR_AWAY) if furthest > length else np.empty(0)
        places = [wide, fine, decision.thresholds, low - outside, high + outside]
        return (at := np.unique(np.concatenate(places))), decision.log_odds(at)

    return Curve(decision.log_odds, decision.thresholds, width, (low - length, high + length), table)


def dense_rows(model: Any, X: Any) -> Floats:
    """Return X, checked against the fitted model, as a dense array of double precision, shape (n_rows, n_features)."""
    rows = validate_data(model, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


def of_features(model: Any, attribute: str) -> Floats:
    """Return ``feature_mean_`` or ``feature_spread_`` of a model; an error if its file is too old to have it."""
    known = getattr(model, attribute, None)
    if known is None:
        raise ValueError(
            f"The model does not know {attribute} of its training rows, because it was written by an older release of "
            "melc. Fit it again."
        )
    return np.asarray(known, dtype=np.float64)
