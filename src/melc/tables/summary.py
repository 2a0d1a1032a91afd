"""Summary of a fitted table model, as plain data and as text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.line import Line
from melc.model.names import by_contribution, column_width
from melc.model.units import is_additive
from melc.tables.model import TableModel
from melc.tables.problem import AnyProblem, mean_and_spread

_MOST_FEATURES = 8
# Lines of an additive model, and features named in each.
_MOST_LINES, _MOST_NAMED = 8, 3


def fit_summary(fitted: TableModel, problem: AnyProblem, accuracy: tuple[float, float, int] | None) -> dict[str, Any]:
    """Return a summary: rows, classes, accuracy, projections or lines, and the strongest features.

    ``accuracy`` is the mean, standard deviation and number of folds of the balanced accuracy, or None.
    """
    scores = None if accuracy is None else dict(zip(("mean", "spread", "folds"), accuracy, strict=True))
    return {
        "rows": sum(problem.class_counts.values()),
        "features": int(fitted.model.n_features_in_),
        "classes": {str(label): count for label, count in problem.class_counts.items()},
        "balanced_accuracy": scores,
        **(_lines(fitted) if is_additive(fitted.model) else _projections(fitted, problem)),
    }


def _projections(fitted: TableModel, problem: AnyProblem) -> dict[str, Any]:
    """Return the divergence, the gamma used and the projections of a ``MELC``."""
    _, spread = mean_and_spread(problem.encoded[1])
    return {
        "divergence": np.atleast_1d(fitted.model.divergence_).tolist(),
        "gamma": float(fitted.model.gamma_),
        "projections": [_projection(fitted, spread, k) for k in range(len(fitted.model.decisions_))],
    }


def _lines(fitted: TableModel) -> dict[str, Any]:
    """Return the lines of an additive model, the most important first, and its most important features."""
    model, names = fitted.model, fitted.encoding.feature_names
    strongest = np.argsort(-model.importances_, kind="stable")[:_MOST_FEATURES]
    lines = sorted(model.lines_, key=lambda line: -line.importance)
    return {
        "lines": [_line(line, model.classes_, names) for line in lines],
        "strongest_features": [{"feature": names[j], "importance": float(model.importances_[j])} for j in strongest],
    }


def _line(line: Line, classes: NDArray[Any], names: list[str]) -> dict[str, Any]:
    """Return the summary of one line."""
    return {
        "class": None if len(classes) == 2 else str(classes[line.class_index]),
        "importance": line.importance,
        "weights": {names[j]: float(line.coef[j]) for j in by_contribution(line)},
        "thresholds": line.thresholds.tolist(),
    }


def _projection(fitted: TableModel, spread: Floats, index: int) -> dict[str, Any]:
    """Return the summary of one projection."""
    model = fitted.model
    decision = model.decisions_[index]
    single = len(model.decisions_) == 1
    sides = [str(label) for label in model.classes_] if single else ["rest", str(model.classes_[index])]
    return {
        "class": None if single else sides[1],
        "thresholds": decision.thresholds.tolist(),
        "intervals": [sides[code] for code in decision.codes],
        "strongest_features": _strongest(model.coef_[index], spread, fitted.encoding.feature_names),
    }


def _strongest(weights: Floats, spread: Floats, names: list[str]) -> list[dict[str, Any]]:
    """Return the features with the largest |weight × standard deviation|; both arrays have shape (n_features,)."""
    effect = weights * spread
    order = np.argsort(-np.abs(effect), kind="stable")[:_MOST_FEATURES]
    return [{"feature": names[i], "weight": float(weights[i]), "effect": float(effect[i])} for i in order]


def fit_text(summary: dict[str, Any]) -> str:
    """Return the summary as text."""
    classes = ", ".join(f"{label} ({count})" for label, count in summary["classes"].items())
    lines = [f"{summary['rows']} rows, {summary['features']} features; classes: {classes}"]
    if "divergence" in summary:
        divergences = ", ".join(f"{value:.4g}" for value in summary["divergence"])
        lines.append(f"divergence D = {divergences}; gamma = {summary['gamma']:.4g}")
    if summary["balanced_accuracy"]:
        score = summary["balanced_accuracy"]
        lines.append(f"balanced accuracy {score['mean']:.3f} ± {score['spread']:.3f} ({score['folds']}-fold)")
    if "lines" in summary:
        return "\n".join([*lines, *_text_of_lines(summary)])
    for projection in summary["projections"]:
        lines += _projection_lines(projection)
    return "\n".join(lines)


def _text_of_lines(summary: dict[str, Any]) -> list[str]:
    """Return the most important lines and features of an additive model; importance is in units of the log-odds."""
    found, features = summary["lines"], summary["strongest_features"]
    shown = found[:_MOST_LINES]
    rows = [("line", "importance", "thresholds"), *(_row_of_line(line) for line in shown)]
    more = [f"  and {len(found) - len(shown)} more"] if len(found) > len(shown) else []
    importances = [("feature", "importance"), *((f["feature"], f"{f['importance']:.3g}") for f in features)]
    return [f"lines: {len(found)}", aligned(rows), *more, "strongest features:", aligned(importances)]


def _row_of_line(line: dict[str, Any]) -> tuple[str, str, str]:
    """Return the features of a line with their weights, its importance and its number of thresholds."""
    weights = list(line["weights"].items())
    named = [f"{weight:+.2g} {name}" for name, weight in weights[:_MOST_NAMED]]
    more = [f"and {len(weights) - _MOST_NAMED} more"] if len(weights) > _MOST_NAMED else []
    owner = "" if line["class"] is None else f"{line['class']}: "
    return owner + " ".join(named + more), f"{line['importance']:.3g}", str(len(line["thresholds"]))


def _projection_lines(projection: dict[str, Any]) -> list[str]:
    """Return the text of one projection: its intervals and strongest features."""
    title = "" if projection["class"] is None else f"{projection['class']} against the rest: "
    parts = [projection["intervals"][0]]
    for threshold, label in zip(projection["thresholds"], projection["intervals"][1:], strict=True):
        parts.append(f"| {threshold:.4g} | {label}")
    features = projection["strongest_features"]
    rows = [
        ("feature", "weight", "weight × std"),
        *((f["feature"], f"{f['weight']:.4g}", f"{f['effect']:.4g}") for f in features),
    ]
    return [f"{title}along z: {' '.join(parts)}", "strongest features:", aligned(rows)]


def aligned(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Return rows of strings as aligned columns: the first flush left, the others flush right."""
    widths = [column_width(row[k] for row in rows) for k in range(len(rows[0]))]
    return "\n".join(indent + _aligned_row(row, widths) for row in rows)


def _aligned_row(row: Sequence[str], widths: list[int]) -> str:
    others = [f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
    return (row[0].ljust(widths[0]) + "".join(others)).rstrip()
