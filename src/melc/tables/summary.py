"""Summary of a fitted table model, as plain data and as text."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from melc.export.text import numbers_apart
from melc.model.names import by_contribution, column_width, contributions_of, found_for
from melc.tables.model import TableModel
from melc.tables.problem import AnyProblem

# Lines in the text, and features of each and of the model.
_MOST_LINES, _MOST_FEATURES = 10, 8
_WIDTH = 100
# A space at which no text is broken.
_SOLID_SPACE = "\u00a0"


def fit_summary(fitted: TableModel, problem: AnyProblem, accuracy: tuple[float, float, int] | None) -> dict[str, Any]:
    """Return a summary: rows, classes, accuracy, lines and features, the most important first, minor lines last.

    ``accuracy`` is the mean, standard deviation and number of folds of the balanced accuracy, or None.
    """
    model, names = fitted.model, fitted.encoding.feature_names
    scores = None if accuracy is None else dict(zip(("mean", "spread", "folds"), accuracy, strict=True))
    lines = sorted(range(len(model.lines_)), key=lambda k: (model.lines_[k].minor, -model.lines_[k].importance))
    strongest = np.argsort(-model.importances_, kind="stable")[:_MOST_FEATURES]
    return {
        "rows": sum(problem.class_counts.values()),
        "features": int(model.n_features_in_),
        "classes": {str(label): count for label, count in problem.class_counts.items()},
        "balanced_accuracy": scores,
        **_search(model),
        "intercepts": model.intercepts_.tolist(),
        "lines": [_line(model, k, names) for k in lines],
        "strongest_features": [{"feature": names[j], "importance": float(model.importances_[j])} for j in strongest],
    }


def _search(model: Any) -> dict[str, Any]:
    """Return the divergence and the gamma used, if the model was found by maximising the divergence."""
    if not hasattr(model, "divergence_"):
        return {}
    return {"divergence": np.atleast_1d(model.divergence_).tolist(), "gamma": float(model.gamma_)}


def _line(model: Any, k: int, names: list[str]) -> dict[str, Any]:
    """Return the summary of the k-th line.

    The range is that of the training rows. In each interval between thresholds the line speaks for a class, and the
    rows of every class are counted.
    """
    line, labels = model.lines_[k], [str(label) for label in model.classes_]
    effects = contributions_of(model, line)
    weights = [(names[j], float(line.direction[j]), float(effects[j])) for j in by_contribution(line)]
    return {
        "number": k + 1,
        "found_for": found_for(model, k),
        "minor": line.minor,
        "importance": line.importance,
        "features": [{"feature": name, "weight": weight, "effect": effect} for name, weight, effect in weights],
        "range": [float(line.curves[0].knots[0]), float(line.curves[0].knots[-1])],
        "thresholds": line.thresholds.tolist(),
        "intervals": [labels[code] for code in line.codes],
        "counts": line.counts.tolist(),
    }


def fit_text(summary: dict[str, Any]) -> str:
    """Return the summary as text. Importances are in units of the log-odds."""
    classes = ", ".join(f"{label} ({count})" for label, count in summary["classes"].items())
    parts = [f"{summary['rows']} rows, {summary['features']} features; classes: {classes}"]
    if "divergence" in summary:
        divergences = ", ".join(f"{value:.4g}" for value in summary["divergence"])
        parts.append(f"divergence D = {divergences}; gamma = {summary['gamma']:.4g}")
    if summary["balanced_accuracy"]:
        score = summary["balanced_accuracy"]
        parts.append(f"balanced accuracy {score['mean']:.3f} ± {score['spread']:.3f} ({score['folds']}-fold)")
    main = [line for line in summary["lines"] if not line["minor"]]
    parts += [_text_of_line(line) for line in main[:_MOST_LINES]]
    if len(main) > _MOST_LINES:
        parts.append(f"and {len(main) - _MOST_LINES} more lines; melc explain prints them all")
    n_minor = len(summary["lines"]) - len(main)
    if n_minor:
        parts.append(f"and {n_minor} minor line{'s'[: n_minor > 1]}, each of one feature")
    features = [(each["feature"], f"{each['importance']:.3g}") for each in summary["strongest_features"]]
    return "\n".join([*parts, "strongest features:", aligned([("feature", "importance"), *features])])


def _text_of_line(line: dict[str, Any]) -> str:
    """Return the name of a line, its strongest features with their weights, and its intervals."""
    features = [f"{each['weight']:+.3g} {each['feature']}" for each in line["features"]]
    hidden = len(features) - _MOST_FEATURES
    more = [f"and {hidden} more"] if hidden > 0 else []
    thresholds = numbers_apart(line["thresholds"], line["range"][1] - line["range"][0], 4)
    first, *others = line["intervals"]
    intervals = [first, *(f"| {place} | {side}" for place, side in zip(thresholds, others, strict=True))]
    name = f"line {line['number']}" + (f" (found for {line['found_for']})" if line["found_for"] else "")
    return "\n".join(
        [
            f"{name}, importance {line['importance']:.3g}",
            _wrapped("  z =", features[:_MOST_FEATURES] + more),
            _wrapped("  along z:", intervals),
        ]
    )


def _wrapped(begin: str, parts: list[str]) -> str:
    """Return the parts after a beginning, in rows of limited width; no part is broken."""
    solid = " ".join([begin, *(part.replace(" ", _SOLID_SPACE) for part in parts)])
    rows = textwrap.wrap(solid, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(rows).replace(_SOLID_SPACE, " ")


def aligned(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Return rows of strings as aligned columns: the first flush left, the others flush right."""
    widths = [column_width(row[k] for row in rows) for k in range(len(rows[0]))]
    return "\n".join(indent + _aligned_row(row, widths) for row in rows)


def _aligned_row(row: Sequence[str], widths: list[int]) -> str:
    others = [f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
    return (row[0].ljust(widths[0]) + "".join(others)).rstrip()
