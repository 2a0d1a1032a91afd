"""Summary of a fitted table model, as plain data and as text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.tables.model import TableModel
from melc.tables.problem import AnyProblem, mean_and_spread

_MOST_FEATURES = 8


def fit_summary(fitted: TableModel, problem: AnyProblem, accuracy: tuple[float, float, int] | None) -> dict[str, Any]:
    """Return a summary: rows, classes, divergence, accuracy, thresholds and the strongest features.

    ``accuracy`` is the mean, standard deviation and number of folds of the balanced accuracy, or None.
    """
    model = fitted.model
    _, spread = mean_and_spread(problem.encoded[1])
    return {
        "rows": sum(problem.class_counts.values()),
        "features": int(model.n_features_in_),
        "classes": {str(label): count for label, count in problem.class_counts.items()},
        "divergence": np.atleast_1d(model.divergence_).tolist(),
        "balanced_accuracy": None
        if accuracy is None
        else {"mean": accuracy[0], "spread": accuracy[1], "folds": accuracy[2]},
        "projections": [_projection(fitted, spread, k) for k in range(len(model.decisions_))],
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
    lines.append("divergence D = " + ", ".join(f"{value:.4g}" for value in summary["divergence"]))
    if summary["balanced_accuracy"]:
        score = summary["balanced_accuracy"]
        lines.append(f"balanced accuracy {score['mean']:.3f} ± {score['spread']:.3f} ({score['folds']}-fold)")
    for projection in summary["projections"]:
        lines += _projection_lines(projection)
    return "\n".join(lines)


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
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(indent + _aligned_row(row, widths) for row in rows)


def _aligned_row(row: Sequence[str], widths: list[int]) -> str:
    others = [f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
    return (row[0].ljust(widths[0]) + "".join(others)).rstrip()
