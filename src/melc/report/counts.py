"""Rows counted in bins along the axes of the page: all that it shows of the rows, however many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from melc.arrays import Floats
from melc.base import projections
from melc.inference.alignment import log_odds_of_classes
from melc.model.line import Line, decides_alone
from melc.model.places import Scale, scale_along
from melc.report.storage import in_thousandths, scale_out
from melc.report.subject import Subject, log_odds_at

# Bins of an axis, fewer if there are several axes, and axes on a page: of more classes, those with the most rows.
_N_BINS, _N_BINS_OF_SEVERAL, MOST_AXES = 320, 200, 8
# Classes that are counted one by one along a line: of more, those with the most rows.
_MOST_SIDES = 12
# Standard deviation, in bins, of the kernel that smooths counts in pictures.
_SMOOTHING = 4.0
# A class is predicted where its log-odds are above zero, not at zero.
_JUST_ABOVE_ZERO = float(np.nextafter(0, 1))


@dataclass(frozen=True)
class Axis:
    """An axis along which rows are counted: the only line of a model, or the log-odds of a class.

    If the model has several lines, or its line reads levels or missing values, the axis has the log-odds
    ``log p / (1 − p)`` of the second of two classes, or of one of more, which are above zero where it has more than
    half of the probability. ``sides`` are the numbers of the classes whose rows are counted, with None for all other
    classes together.
    """

    sides: Sequence[int | None]
    line: Line | None = None

    @property
    def thresholds(self) -> Floats:
        """The places at which the decision changes, shape (n_thresholds,)."""
        return np.array([_JUST_ABOVE_ZERO]) if self.line is None else self.line.thresholds

    @property
    def codes(self) -> list[int]:
        """The place among the sides of the class of each interval between thresholds."""
        return [0, 1] if self.line is None else self.side_of(self.line.codes).tolist()

    def side_of(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places among the sides of classes, given by their numbers; the same shape."""
        place = {code: i for i, code in enumerate(self.sides)}
        numbers = np.arange(int(codes.max()) + 1)
        return np.array([place.get(code, place.get(None, 0)) for code in numbers.tolist()])[codes]

    def log_odds(self, z: Floats) -> Floats:
        """Return the log-odds of each side at places z, shape (n_sides, n): the highest is what the axis says."""
        if self.line is None:
            return np.stack([np.zeros_like(z), z])
        curves = np.stack([curve.at(z) for curve in self.line.decisive])
        curves = np.concatenate([np.zeros((1, len(z))), curves]) if len(curves) == 1 else curves
        others = [k for k in range(len(curves)) if k not in self.sides]
        return np.stack([curves[others].max(axis=0) if side is None else curves[side] for side in self.sides])


def is_one_line(model: Any) -> bool:
    """Return whether a model decides by thresholds on one line: it has no other, and all rows have a place on it."""
    return decides_alone(model) and not model.lines_[0].reads_codes


def axes_of(model: Any, class_counts: NDArray[np.int64]) -> list[Axis]:
    """Return the axes of a model: its line, or the log-odds of the second of two classes, or of each of more."""
    n_classes = len(model.classes_)
    if is_one_line(model):
        return [Axis(_sides(class_counts), model.lines_[0])]
    return [Axis([0, 1])] if n_classes == 2 else [Axis([None, k]) for k in range(n_classes)]


def _sides(class_counts: NDArray[np.int64]) -> list[int | None]:
    """Return the classes that are counted one by one, and None for the others, if there are too many."""
    shown = sorted(np.argsort(-class_counts, kind="stable")[:_MOST_SIDES].tolist())
    return shown if len(shown) == len(class_counts) else [None, *shown]


def on_axes(model: Any, coded: Any) -> Floats:
    """Return the places of coded rows on the axes, shape (n_rows, n_axes)."""
    return projections(model, coded) if is_one_line(model) else log_odds_of_classes(log_odds_at(model, coded))


def classes_with_most_rows(subject: Subject) -> list[int]:
    """Return the numbers of the classes that a page shows one by one: all, or those with the most rows."""
    return sorted(np.argsort(-subject.class_counts, kind="stable")[:MOST_AXES].tolist())


def counted(subject: Subject) -> list[dict[str, Any]]:
    """Return the shown axes with their edges and the rows of all sides below, between and above them.

    The range of the bins is that of nearly all rows of the sample. The thresholds are among the edges, so that counts
    on either side of a threshold are exact.
    """
    axes = axes_of(subject.model, subject.class_counts)
    shown = [0] if len(axes) == 1 else classes_with_most_rows(subject)
    places = on_axes(subject.model, subject.coded[subject.sample])  # (n, n_axes)
    n_bins = _N_BINS if len(shown) == 1 else _N_BINS_OF_SEVERAL
    edges = {k: _edges(axes[k].thresholds, places[:, k], n_bins) for k in shown}
    totals = {k: np.zeros((len(axes[k].sides), len(edges[k]) + 1), dtype=np.int64) for k in shown}
    for coded, codes in subject.blocks():
        z = on_axes(subject.model, coded)
        for k in shown:
            totals[k] += _histogram(z[:, k], axes[k].side_of(codes), edges[k], len(axes[k].sides))
    return [_axis_out(subject, axes[k], edges[k], totals[k]) for k in shown]


def _edges(thresholds: Floats, places: Floats, n_bins: int) -> Floats:
    """Return the edges of the bins, ascending: evenly spaced over nearly all rows, and the thresholds."""
    low, high = np.quantile(places, [0.002, 0.998])
    low, high = min(low, *thresholds, np.inf), max(high, *thresholds, -np.inf)
    margin = 0.08 * (high - low) or max(1.0, abs(low)) * 1e-6
    return np.unique(np.concatenate([np.linspace(low - margin, high + margin, n_bins + 1), thresholds]))


def _histogram(z: Floats, side: NDArray[np.int64], edges: Floats, n_sides: int) -> NDArray[np.int64]:
    """Return the rows of each side in each bin, shape (n_sides, n_edges + 1). An edge belongs to the bin above it."""
    bins = np.searchsorted(edges, z, side="right")
    n = len(edges) + 1
    return np.bincount(bins + n * side, minlength=n_sides * n).reshape(n_sides, n)


def _axis_out(subject: Subject, axis: Axis, edges: Floats, totals: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "sides": list(axis.sides),
        "on_line": axis.line is not None,
        "scale": scale_out(scale_along(subject.model, axis.line, subject.names) if axis.line else Scale("sum")),
        "edges": edges,
        "counts": totals.tolist(),
        "heights": in_thousandths(_heights(axis, edges, totals)),
        "log_odds": [values if values.any() else None for values in axis.log_odds(edges)],  # None where all are zero
        "thresholds": axis.thresholds,
        "codes": axis.codes,
        "priors": _priors_of_sides(subject.priors, axis.sides),
    }


def _priors_of_sides(priors: Floats, sides: Sequence[int | None]) -> list[float]:
    named = [side for side in sides if side is not None]
    return [float(1 - priors[named].sum() if side is None else priors[side]) for side in sides]


def _heights(axis: Axis, edges: Floats, totals: NDArray[np.int64]) -> Floats:
    """Return the densities of the sides at the edges, shape (n_sides, n_edges): those of the line, or smoothed counts.

    Those of several classes together are smoothed counts in any case.
    """
    smooth = _smoothed_counts(edges, totals)
    if axis.line is None:
        return smooth
    line = axis.line
    return np.stack(
        [
            smoothed if side is None else np.interp(edges, line.places, line.densities[side], 0.0, 0.0)
            for side, smoothed in zip(axis.sides, smooth, strict=True)
        ]
    )


def _smoothed_counts(edges: Floats, totals: NDArray[np.int64]) -> Floats:
    """Return the densities of counted rows at the edges, shape (n_sides, n_edges)."""
    # Bins beside a threshold are narrow, so the counts are first spread over bins of the same width.
    even = np.linspace(edges[0], edges[-1], len(edges))
    below = np.array([np.interp(even, edges, each) for each in np.cumsum(totals, axis=1)[:, :-1]])
    shares = np.diff(below, axis=1) / np.maximum(totals.sum(axis=1, keepdims=True), 1) / (even[1] - even[0])
    smooth = gaussian_filter1d(shares, _SMOOTHING, mode="nearest")
    return np.array([np.interp(edges, (even[1:] + even[:-1]) / 2, each) for each in smooth])
