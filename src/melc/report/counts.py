"""Rows counted: in bins along the only line, by how clear their decisions are, and in groups.

These counts are all that the page shows of the rows, however many there are.
"""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from melc.arrays import Floats
from melc.base import projections
from melc.explain.parts import all_log_odds
from melc.model.line import Line, decides_alone
from melc.model.places import level_text, scale_along, value_text
from melc.report.heldout import LEAST_PROBABILITY, HeldOut
from melc.report.storage import in_thousandths, scale_out, visible
from melc.report.subject import Subject, dense

# Bins of the line, of the margins of two classes, and of those of each of several.
_N_BINS, _N_BINS_OF_MARGINS, _N_BINS_OF_SEVERAL = 320, 240, 80
# Classes that are counted one by one along the line, and in the matrix of decisions: of more, those with the most rows.
_MOST_SIDES, _MOST_IN_MATRIX = 12, 30
# Standard deviation, in bins, of the kernel that smooths counts in pictures.
_SMOOTHING = 4.0
# A class is predicted where its margin is above zero, not at zero.
_JUST_ABOVE_ZERO = float(np.nextafter(0, 1))
# Columns whose groups are counted, and groups of a column; of more levels those with the most rows.
_MOST_COLUMNS, _MOST_GROUPS = 20, 8


def _sides_of(subject: Subject, most: int) -> list[int | None]:
    """Return the classes that are counted one by one, by their numbers, after None if others are counted together."""
    shown = subject.largest_classes(most)
    return [*shown] if len(shown) == len(subject.labels) else [None, *shown]


def _places_among(sides: list[int | None], codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the places among the sides of classes, given by their numbers; the same shape."""
    place = {code: i for i, code in enumerate(sides)}
    numbers = range(int(codes.max(initial=0)) + 1)
    return np.array([place.get(code, place.get(None, 0)) for code in numbers])[codes]


def is_one_line(model: Any) -> bool:
    """Return whether a model decides by thresholds on one line: it has no other, and all rows have a place on it."""
    return decides_alone(model) and not model.lines_[0].reads_codes


# Along the only line


def counted(subject: Subject) -> dict[str, Any]:
    """Return the only line with its edges, and the rows of all sides below, between and above them.

    The range of the bins is that of nearly all rows of the sample. The thresholds are among the edges, so that counts
    on either side of a threshold are exact.
    """
    model, line, sides = subject.model, subject.model.lines_[0], _sides_of(subject, _MOST_SIDES)
    edges = _edges_along(line.thresholds, projections(model, subject.coded[subject.sample])[:, 0], _N_BINS)
    totals, done, weights = np.zeros((len(sides), len(edges) + 1)), 0, subject.relative_weights
    for coded, codes in subject.blocks():
        bins = np.searchsorted(edges, projections(model, coded)[:, 0], side="right")  # an edge is in the bin above it
        cells = bins + totals.shape[1] * _places_among(sides, codes)
        totals += np.bincount(cells, weights[done : done + len(codes)], totals.size).reshape(totals.shape)
        done += len(codes)
    return {
        "sides": sides,
        "scale": scale_out(scale_along(model, line, subject.names)),
        "edges": edges,
        "counts": _whole_numbers(totals),
        "heights": in_thousandths(_heights(line, sides, edges, totals)),
        "log_odds": [values if values.any() else None for values in _log_odds(line, sides, edges)],  # None: all zero
        "thresholds": line.thresholds,
        "codes": _places_among(sides, line.codes).tolist(),
    }


def _whole_numbers(counts: NDArray[Any]) -> Any:
    """Return counts as nested lists of whole numbers; sums of weights with one decimal."""
    exact = np.rint(counts)
    return (exact.astype(np.int64) if np.array_equal(exact, counts) else counts.round(1)).tolist()


def _edges_along(thresholds: Floats, places: Floats, n_bins: int) -> Floats:
    """Return the edges of the bins, ascending: evenly spaced over nearly all rows, and the thresholds."""
    low, high = np.quantile(places, [0.002, 0.998])
    low, high = min(low, *thresholds, np.inf), max(high, *thresholds, -np.inf)
    margin = 0.08 * (high - low) or max(1.0, abs(low)) * 1e-6
    return np.unique(np.concatenate([np.linspace(low - margin, high + margin, n_bins + 1), thresholds]))


def _log_odds(line: Line, sides: list[int | None], z: Floats) -> Floats:
    """Return the log-odds of each side at places z, shape (n_sides, n): the highest is what the line says."""
    curves = np.stack([curve.at(z) for curve in line.decisive])
    curves = np.concatenate([np.zeros((1, len(z))), curves]) if len(curves) == 1 else curves
    others = [k for k in range(len(curves)) if k not in sides]
    return np.stack([curves[others].max(axis=0) if side is None else curves[side] for side in sides])


def _heights(line: Line, sides: list[int | None], edges: Floats, totals: Floats) -> Floats:
    """Return the densities of the sides at the edges, shape (n_sides, n_edges): those of the line.

    Those of several classes together are smoothed counts.
    """
    smooth = _smoothed_counts(edges, totals)
    return np.stack(
        [
            smoothed if side is None else np.interp(edges, line.places, line.densities[side], 0.0, 0.0)
            for side, smoothed in zip(sides, smooth, strict=True)
        ]
    )


def _smoothed_counts(edges: Floats, totals: Floats) -> Floats:
    """Return the densities of counted rows at the edges, shape (n_sides, n_edges)."""
    # Bins beside a threshold are narrow, so the counts are first spread over bins of the same width.
    even = np.linspace(edges[0], edges[-1], len(edges))
    below = np.array([np.interp(even, edges, each) for each in np.cumsum(totals, axis=1)[:, :-1]])
    shares = np.diff(below, axis=1) / np.maximum(totals.sum(axis=1, keepdims=True), 1) / (even[1] - even[0])
    smooth = gaussian_filter1d(shares, _SMOOTHING, mode="nearest")
    return np.array([np.interp(edges, (even[1:] + even[:-1]) / 2, each) for each in smooth])


# By decisions


def decisions_of(subject: Subject, found: HeldOut) -> dict[str, Any]:
    """Return the margins of the classes with the counted rows: of held-out predictions if there are any.

    The margin of a class is the logarithm of its probability less that of the most probable other class. A change of
    its prior or its cost adds a number to it, and decides between the class and that other one. So for each class the
    rows are counted by their margin, their true class, and the other class.
    """
    log_proba = _log_probabilities(subject, found)
    sides, two = _sides_of(subject, _MOST_IN_MATRIX), len(subject.labels) == 2
    axes = []
    for k in [1] if two else subject.shown_classes:
        others = np.delete(log_proba, k, axis=1)
        rival = np.argmax(others, axis=1)
        margin = log_proba[:, k] - others.max(axis=1)
        rival += rival >= k
        edges = _edges_along(np.array([_JUST_ABOVE_ZERO]), margin, _N_BINS_OF_MARGINS if two else _N_BINS_OF_SEVERAL)
        axes.append({"code": k, "edges": edges, **_counts(margin, edges, k, rival, sides, found)})
    return {
        "held_out": not found.reason,
        "sides": sides,
        "axes": axes,
        "priors": subject.priors,
        "mix": subject.mix,
    }


def _log_probabilities(subject: Subject, found: HeldOut) -> Floats:
    """Return the logarithms of the probabilities up to a constant for each row, shape (n_rows, n_classes)."""
    if not found.reason:
        return np.log(np.maximum(found.own.probabilities, LEAST_PROBABILITY))
    return all_log_odds(subject.model, subject.coded[subject.sample])


def _counts(
    margin: Floats, edges: Floats, k: int, rival: NDArray[np.int64], sides: list[int | None], found: HeldOut
) -> dict[str, Any]:
    """Return the weights of rows in cells of bin, true side and side of the other class, and densities of the class.

    Only cells with rows are listed, as flat quadruples (bin, true side, other side, weight).
    """
    bins, n = np.searchsorted(edges, margin, side="right"), len(sides)
    cells = (bins * n + _places_among(sides, found.codes)) * n + _places_among(sides, rival)
    kinds, numbers = np.unique(cells, return_inverse=True)
    weights = np.bincount(numbers, found.weights)
    listed = np.column_stack([kinds // n**2, kinds // n % n, kinds % n, weights])
    sides_of_class = found.codes != k, found.codes == k
    own = np.array([np.bincount(bins, found.weights * those, len(edges) + 1) for those in sides_of_class])
    return {"cells": _whole_numbers(listed.ravel()), "heights": in_thousandths(_smoothed_counts(edges, own))}


# In groups


def groups_of(subject: Subject, found: HeldOut) -> list[dict[str, Any]]:
    """Return, for columns that matter, groups of held-out rows: their numbers and those predicted correctly.

    Of two classes both numbers are given for each class, of more for all together.
    """
    if found.reason:
        return []
    order = np.argsort(-subject.model.importances_, kind="stable")[:_MOST_COLUMNS]
    right = found.weights * (found.own.codes == found.codes)
    n_classes = len(subject.labels)
    classes = found.codes if n_classes == 2 else np.zeros_like(found.codes)
    columns = []
    for j in order.tolist():
        names, groups = _grouped(subject, j)
        if len(names) < 2:
            continue
        kept = groups >= 0
        cells, size = (groups * 2 + classes)[kept], 2 * len(names)
        totals, correct = (
            np.bincount(cells, each[kept], size).reshape(-1, 2)[:, : 2 if n_classes == 2 else 1]
            for each in (found.weights, right)
        )
        rows = list(zip(names, _whole_numbers(totals), _whole_numbers(correct), strict=True))
        columns.append({"name": visible(subject.names[j]), "rows": rows})
    return columns


def _grouped(subject: Subject, j: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of groups of a column, and the group of each row of the sample; −1 for rare levels."""
    values = dense(subject.coded[subject.sample][:, [j]])[:, 0]
    columns = subject.model.columns_
    known, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if j in columns.categories or j in columns.ranks or len(known) <= _MOST_GROUPS // 2 + 1:
        kept = np.sort(known[np.argsort(-counts, kind="stable")[:_MOST_GROUPS]])
        names = [visible(level_text(value_text(columns, j, value))) for value in kept.tolist()]
        groups = np.array([{value: i for i, value in enumerate(kept.tolist())}.get(v, -1) for v in values.tolist()])
    else:
        cuts = np.unique(np.quantile(known.repeat(counts), [0.25, 0.5, 0.75], method="nearest"))
        texts = [value_text(columns, j, float(f"{cut:.4g}")) for cut in cuts.tolist()]
        between = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
        names, groups = [f"up to {texts[0]}", *between, f"above {texts[-1]}"], np.searchsorted(cuts, values)
    missing = np.isnan(values)
    if missing.any():
        groups[missing], names = len(names), [*names, "(unknown)" if j in columns.categories else "(missing)"]
    return names, groups
