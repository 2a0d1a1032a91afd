"""Rows counted in bins along the axes of the page: all that it shows of the rows, however many there are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.special import expit

from melc.arrays import Floats
from melc.base import checked_projections
from melc.model.line import Line, decides_alone, log_odds_of
from melc.report.storage import in_thousandths
from melc.report.subject import Subject

# Bins of an axis, fewer if there are several axes, and axes on a page: of more classes, those with the most rows.
_N_BINS, _N_BINS_OF_SEVERAL, MOST_AXES = 320, 200, 8
# Standard deviation, in bins, of the kernel that smooths counts in pictures.
_SMOOTHING = 4.0
# A class is predicted where its log-odds are above zero, not at zero.
_JUST_ABOVE_ZERO = float(np.nextafter(0, 1))


@dataclass(frozen=True)
class Axis:
    """What a page shows of the second of two classes, or of one of more against the rest.

    That is the projection on the line of the class, if it has only one, the ``number``-th of the model. Otherwise it is
    the sum of what its lines say, the log-odds. ``class_index`` is None for two classes.
    """

    class_index: int | None
    prior: float
    number: int | None
    line: Line | None

    @property
    def thresholds(self) -> Floats:
        """The places at which the decision changes, shape (n_thresholds,)."""
        return np.array([_JUST_ABOVE_ZERO]) if self.line is None else self.line.thresholds

    @property
    def codes(self) -> list[int]:
        """One for each interval between thresholds that speaks for the class, else zero."""
        return [0, 1] if self.line is None else self.line.codes.tolist()

    def log_odds(self, z: Floats) -> Floats:
        """Return the log-odds at places z, of the shape of z."""
        return z if self.line is None else self.line.decisive.at(z)


def axes_of(model: Any) -> list[Axis]:
    """Return the axes of a model in the order of its classes."""
    several, alone = len(model.classes_) > 2, decides_alone(model)
    axes = []
    for k, odds in enumerate(log_odds_of(model)):
        number = int(odds.lines[0]) if alone else None
        line = None if number is None else model.lines_[number]
        axes.append(Axis(k if several else None, float(expit(model.intercepts_[k])), number, line))
    return axes


def on_axes(model: Any, X: Any) -> Floats:
    """Return the places of rows on the axes, shape (n_rows, n_axes)."""
    if decides_alone(model):
        return checked_projections(model, X)[:, np.array([odds.lines[0] for odds in log_odds_of(model)])]
    return np.asarray(model.decision_function(X).reshape(X.shape[0], -1))


def shown_axes(subject: Subject) -> list[int]:
    """Return the axes that a page shows: all, or those of the classes with the most rows."""
    if len(subject.labels) == 2:
        return [0]
    return sorted(np.argsort(-subject.class_counts, kind="stable")[:MOST_AXES].tolist())


def counted(subject: Subject) -> list[dict[str, Any]]:
    """Return the shown axes with their edges and the rows of both sides below, between and above them.

    The range of the bins is that of nearly all rows of the sample. The thresholds are among the edges, so that counts
    on either side of a threshold are exact.
    """
    axes, shown = axes_of(subject.model), shown_axes(subject)
    places = on_axes(subject.model, subject.sampled()[0])  # (n, n_axes)
    n_bins = _N_BINS if len(shown) == 1 else _N_BINS_OF_SEVERAL
    edges = {k: _edges(axes[k].thresholds, places[:, k], n_bins) for k in shown}
    totals = {k: np.zeros((2, len(edges[k]) + 1), dtype=np.int64) for k in shown}
    for X, codes in subject.blocks():
        z = on_axes(subject.model, X)
        for k in shown:
            totals[k] += _histogram(z[:, k], _side(codes, axes[k]), edges[k])
    return [_axis_out(axes[k], edges[k], totals[k]) for k in shown]


def _edges(thresholds: Floats, places: Floats, n_bins: int) -> Floats:
    """Return the edges of the bins, ascending: evenly spaced over nearly all rows, and the thresholds."""
    low, high = np.quantile(places, [0.002, 0.998])
    low, high = min(low, *thresholds, np.inf), max(high, *thresholds, -np.inf)
    margin = 0.08 * (high - low) or max(1.0, abs(low)) * 1e-6
    return np.unique(np.concatenate([np.linspace(low - margin, high + margin, n_bins + 1), thresholds]))


def _side(codes: NDArray[Any], axis: Axis) -> NDArray[Any]:
    """Return 1 for rows of the second class, or of the class that the axis is about, and 0 for the others."""
    return codes if axis.class_index is None else (codes == axis.class_index).astype(codes.dtype)


def _histogram(z: Floats, side: NDArray[Any], edges: Floats) -> NDArray[np.int64]:
    """Return the rows of both sides in each bin, shape (2, n_edges + 1). An edge belongs to the bin above it."""
    bins = np.searchsorted(edges, z, side="right")
    n = len(edges) + 1
    return np.bincount(bins + n * side, minlength=2 * n).reshape(2, n)


def _axis_out(axis: Axis, edges: Floats, totals: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "class_index": axis.class_index,
        "number": axis.number,
        "edges": edges,
        "counts": totals.tolist(),
        "heights": in_thousandths(_heights(axis, edges, totals)),
        "log_odds": axis.log_odds(edges),
        "thresholds": axis.thresholds,
        "codes": axis.codes,
        "prior": axis.prior,
    }


def _heights(axis: Axis, edges: Floats, totals: NDArray[np.int64]) -> Floats:
    """Return the densities of both sides at the edges, shape (2, n_edges): those of the line, or smoothed counts."""
    if axis.line is not None:
        return np.array([np.interp(edges, axis.line.places, each, 0.0, 0.0) for each in axis.line.densities])
    # Bins beside a threshold are narrow, so the counts are first spread over bins of the same width.
    even = np.linspace(edges[0], edges[-1], len(edges))
    below = np.array([np.interp(even, edges, each) for each in np.cumsum(totals, axis=1)[:, :-1]])
    shares = np.diff(below, axis=1) / np.maximum(totals.sum(axis=1, keepdims=True), 1)
    smooth = gaussian_filter1d(shares, _SMOOTHING, mode="nearest")
    return np.array([np.interp(edges, (even[1:] + even[:-1]) / 2, each) for each in smooth])
