"""Rows counted in bins along the axes of the page: all that it shows of the rows, however many there are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.units import is_additive
from melc.report.subject import Subject, projections

# Bins of an axis, fewer if there are several axes, and axes on a page: of more classes, those with the most rows.
_N_BINS, _N_BINS_OF_SEVERAL, MOST_AXES = 320, 200, 8
# An additive model predicts its class where the log-odds are above zero, not at zero.
_JUST_ABOVE_ZERO = float(np.nextafter(0, 1))


@dataclass(frozen=True)
class Axis:
    """An axis: the class that it is about (None for both of two), its thresholds, and the code of each interval."""

    class_index: int | None
    thresholds: Floats
    codes: list[int]
    prior: float


def axes_of(subject: Subject) -> list[Axis]:
    """Return the axes of a model in the order of its columns of projections."""
    model, several = subject.model, len(subject.model.classes_) > 2
    if is_additive(model):
        above = np.array([_JUST_ABOVE_ZERO])
        return [Axis(k if several else None, above, [0, 1], _share(ratio)) for k, ratio in enumerate(model.intercept_)]
    return [
        Axis(k if several else None, d.thresholds, d.codes.tolist(), _share(d.log_prior_ratio))
        for k, d in enumerate(model.decisions_)
    ]


def _share(log_ratio: float) -> float:
    return float(1 / (1 + np.exp(-log_ratio)))


def shown_axes(subject: Subject) -> list[int]:
    """Return the axes that a page shows: all, or those of the classes with the most rows."""
    n_axes = len(axes_of(subject))
    if n_axes == 1:
        return [0]
    return sorted(np.argsort(-subject.class_counts, kind="stable")[:MOST_AXES].tolist())


def counted(subject: Subject, places: Floats) -> list[dict[str, Any]]:
    """Return the shown axes with their edges and the rows of both sides below, between and above them.

    ``places``, of shape (n, n_axes), are projections of some rows, from which the range of the bins is chosen. The
    thresholds are among the edges, so that counts on either side of a threshold at an edge are exact.
    """
    axes, shown = axes_of(subject), shown_axes(subject)
    n_bins = _N_BINS if len(shown) == 1 else _N_BINS_OF_SEVERAL
    edges = {k: _edges(axes[k].thresholds, places[:, k], n_bins) for k in shown}
    totals = {k: np.zeros((2, len(edges[k]) + 1), dtype=np.int64) for k in shown}
    for X, codes in subject.blocks():
        z = projections(subject.model, X)
        for k in shown:
            totals[k] += _histogram(z[:, k], _side(codes, axes[k]), edges[k])
    return [_axis_out(axes[k], k, edges[k], totals[k]) for k in shown]


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


def _axis_out(axis: Axis, k: int, edges: Floats, totals: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "line": k,
        "class_index": axis.class_index,
        "edges": edges,
        "counts": totals.tolist(),
        "thresholds": axis.thresholds,
        "codes": axis.codes,
        "prior": axis.prior,
    }
