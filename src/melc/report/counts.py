"""Rows counted in bins along the only line of a model: all that the page shows of them, however many there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from melc.arrays import Floats
from melc.base import projections
from melc.model.line import Line, decides_alone
from melc.model.places import scale_along
from melc.report.storage import in_thousandths, scale_out
from melc.report.subject import Subject

# Bins of the line, and classes that a page shows one by one in axes and figures: of more, those with the most rows.
_N_BINS, MOST_AXES = 320, 8
# Classes that are counted one by one along the line: of more, those with the most rows.
_MOST_SIDES = 12
# Standard deviation, in bins, of the kernel that smooths counts in pictures.
_SMOOTHING = 4.0


@dataclass(frozen=True)
class Sides:
    """The classes that are counted one by one, by their numbers, with None for all others together."""

    codes: Sequence[int | None]

    @classmethod
    def of(cls, subject: Subject, most: int) -> "Sides":
        """Return all classes, or of more than ``most`` those with the most rows."""
        counts = subject.class_counts
        shown = sorted(np.argsort(-counts, kind="stable")[:most].tolist())
        return cls(shown if len(shown) == len(counts) else [None, *shown])

    def places(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the places among the sides of classes, given by their numbers; the same shape."""
        place = {code: i for i, code in enumerate(self.codes)}
        numbers = np.arange(int(codes.max(initial=0)) + 1)
        return np.array([place.get(code, place.get(None, 0)) for code in numbers.tolist()])[codes]


def is_one_line(model: Any) -> bool:
    """Return whether a model decides by thresholds on one line: it has no other, and all rows have a place on it."""
    return decides_alone(model) and not model.lines_[0].reads_codes


def classes_with_most_rows(subject: Subject) -> list[int]:
    """Return the numbers of the classes that a page shows one by one: all, or those with the most rows."""
    return sorted(np.argsort(-subject.class_counts, kind="stable")[:MOST_AXES].tolist())


def counted(subject: Subject) -> dict[str, Any]:
    """Return the only line with its edges, and the rows of all sides below, between and above them.

    The range of the bins is that of nearly all rows of the sample. The thresholds are among the edges, so that counts
    on either side of a threshold are exact.
    """
    model, line, sides = subject.model, subject.model.lines_[0], Sides.of(subject, _MOST_SIDES)
    edges = edges_along(line.thresholds, projections(model, subject.coded[subject.sample])[:, 0], _N_BINS)
    totals, done, weights = np.zeros((len(sides.codes), len(edges) + 1)), 0, subject.counting(slice(None))
    for coded, codes in subject.blocks():
        bins = np.searchsorted(edges, projections(model, coded)[:, 0], side="right")  # an edge is in the bin above it
        cells = bins + totals.shape[1] * sides.places(codes)
        totals += np.bincount(cells, weights[done : done + len(codes)], totals.size).reshape(totals.shape)
        done += len(codes)
    return {
        "sides": list(sides.codes),
        "scale": scale_out(scale_along(model, line, subject.names)),
        "edges": edges,
        "counts": whole_numbers(totals),
        "heights": in_thousandths(_heights(line, sides, edges, totals)),
        "log_odds": [values if values.any() else None for values in _log_odds(line, sides, edges)],  # None: all zero
        "thresholds": line.thresholds,
        "codes": sides.places(line.codes).tolist(),
    }


def whole_numbers(counts: NDArray[Any]) -> Any:
    """Return counts as nested lists of whole numbers; sums of weights with one decimal."""
    exact = np.rint(counts)
    return (exact.astype(np.int64) if np.array_equal(exact, counts) else counts.round(1)).tolist()


def edges_along(thresholds: Floats, places: Floats, n_bins: int) -> Floats:
    """Return the edges of the bins, ascending: evenly spaced over nearly all rows, and the thresholds."""
    low, high = np.quantile(places, [0.002, 0.998])
    low, high = min(low, *thresholds, np.inf), max(high, *thresholds, -np.inf)
    margin = 0.08 * (high - low) or max(1.0, abs(low)) * 1e-6
    return np.unique(np.concatenate([np.linspace(low - margin, high + margin, n_bins + 1), thresholds]))


def _log_odds(line: Line, sides: Sides, z: Floats) -> Floats:
    """Return the log-odds of each side at places z, shape (n_sides, n): the highest is what the line says."""
    curves = np.stack([curve.at(z) for curve in line.decisive])
    curves = np.concatenate([np.zeros((1, len(z))), curves]) if len(curves) == 1 else curves
    others = [k for k in range(len(curves)) if k not in sides.codes]
    return np.stack([curves[others].max(axis=0) if side is None else curves[side] for side in sides.codes])


def _heights(line: Line, sides: Sides, edges: Floats, totals: Floats) -> Floats:
    """Return the densities of the sides at the edges, shape (n_sides, n_edges): those of the line.

    Those of several classes together are smoothed counts.
    """
    smooth = smoothed_counts(edges, totals)
    return np.stack(
        [
            smoothed if side is None else np.interp(edges, line.places, line.densities[side], 0.0, 0.0)
            for side, smoothed in zip(sides.codes, smooth, strict=True)
        ]
    )


def smoothed_counts(edges: Floats, totals: Floats) -> Floats:
    """Return the densities of counted rows at the edges, shape (n_sides, n_edges)."""
    # Bins beside a threshold are narrow, so the counts are first spread over bins of the same width.
    even = np.linspace(edges[0], edges[-1], len(edges))
    below = np.array([np.interp(even, edges, each) for each in np.cumsum(totals, axis=1)[:, :-1]])
    shares = np.diff(below, axis=1) / np.maximum(totals.sum(axis=1, keepdims=True), 1) / (even[1] - even[0])
    smooth = gaussian_filter1d(shares, _SMOOTHING, mode="nearest")
    return np.array([np.interp(edges, (even[1:] + even[:-1]) / 2, each) for each in smooth])
