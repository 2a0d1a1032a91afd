"""Decisions on new rows: how priors and costs change them, and in which groups of rows they are wrong."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.places import level_text, value_text
from melc.report.counts import Sides, classes_with_most_rows, edges_along, smoothed_counts, whole_numbers
from melc.report.heldout import LEAST_PROBABILITY, HeldOut
from melc.report.storage import in_thousandths, visible
from melc.report.subject import Subject, log_odds_at

# Bins of the margins of two classes, and of each of several.
_N_BINS, _N_BINS_OF_SEVERAL = 240, 80
# Classes with a row in the matrix: of more, those with the most rows.
_MOST_IN_MATRIX = 30
# A class is predicted where its margin is above zero, not at zero.
_JUST_ABOVE_ZERO = float(np.nextafter(0, 1))
# Columns whose groups are counted, and groups of a column; of more levels those with the most rows.
_MOST_COLUMNS, _MOST_GROUPS = 20, 8


def decisions_of(subject: Subject, found: HeldOut) -> dict[str, Any]:
    """Return the margins of the classes with the counted rows: of held-out predictions if there are any.

    The margin of a class is the logarithm of its probability less that of the most probable other class. A change of
    its prior or its cost adds a number to it, and decides between the class and that other one. So for each class the
    rows are counted by their margin, their true class, and the other class.
    """
    log_proba = _log_probabilities(subject, found)
    sides, two = Sides.of(subject, _MOST_IN_MATRIX), len(subject.labels) == 2
    axes = []
    for k in [1] if two else classes_with_most_rows(subject):
        others = np.delete(log_proba, k, axis=1)
        rival = np.argmax(others, axis=1)
        margin = log_proba[:, k] - others.max(axis=1)
        rival += rival >= k
        edges = edges_along(np.array([_JUST_ABOVE_ZERO]), margin, _N_BINS if two else _N_BINS_OF_SEVERAL)
        axes.append({"code": k, "edges": edges, **_counts(margin, edges, k, rival, sides, found)})
    return {
        "held_out": not found.reason,
        "sides": list(sides.codes),
        "axes": axes,
        "priors": subject.priors,
        "mix": subject.mix,
    }


def _log_probabilities(subject: Subject, found: HeldOut) -> Floats:
    """Return the logarithms of the probabilities up to a constant for each row, shape (n_rows, n_classes)."""
    if not found.reason:
        return np.log(np.maximum(found.own.probabilities, LEAST_PROBABILITY))
    odds = log_odds_at(subject.model, subject.coded[subject.sample])
    return odds if odds.shape[1] > 1 else np.column_stack([np.zeros(len(odds)), odds])


def _counts(
    margin: Floats, edges: Floats, k: int, rival: NDArray[np.int64], sides: Sides, found: HeldOut
) -> dict[str, Any]:
    """Return the weights of rows in cells of bin, true side and side of the other class, and densities of the class.

    Only cells with rows are listed, as flat quadruples (bin, true side, other side, weight).
    """
    bins, n = np.searchsorted(edges, margin, side="right"), len(sides.codes)
    cells = (bins * n + sides.places(found.codes)) * n + sides.places(rival)
    kinds, numbers = np.unique(cells, return_inverse=True)
    weights = np.bincount(numbers, found.weights)
    listed = np.column_stack([kinds // n**2, kinds // n % n, kinds % n, weights])
    own = np.array([np.bincount(bins, found.weights * mine, len(edges) + 1) for mine in _own_or_not(found.codes, k)])
    return {"cells": whole_numbers(listed.ravel()), "heights": in_thousandths(smoothed_counts(edges, own))}


def _own_or_not(codes: NDArray[np.int64], k: int) -> list[NDArray[np.bool_]]:
    return [codes != k, codes == k]


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
        rows = list(zip(names, whole_numbers(totals), whole_numbers(correct), strict=True))
        columns.append({"name": visible(subject.names[j]), "rows": rows})
    return columns


def _grouped(subject: Subject, j: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of groups of a column, and the group of each row of the sample; −1 for rare levels."""
    column = subject.coded[subject.sample][:, [j]]
    values = np.asarray(column.toarray() if hasattr(column, "toarray") else column, dtype=np.float64)[:, 0]
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
