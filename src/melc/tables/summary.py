"""Summary of a fitted model, as plain data and as text, with what cross-validation says of it."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from melc.arrays import Floats
from melc.export.text import numbers_apart
from melc.model.line import Line
from melc.model.names import (
    by_contribution,
    column_width,
    contributions_of,
    feature_names_of,
    found_for,
    numbers_by_importance,
)
from melc.model.places import missing_code, name_in_sum, scale_along

if TYPE_CHECKING:  # it takes time to import what it compares with
    from melc.tables.assess import Summary

# Lines in the text, and features of each and of the model.
_MOST_LINES, _MOST_FEATURES = 10, 8
# Levels of a category that a line names for each class.
_MOST_LEVELS = 8
# Letters in a row of text.
WIDTH = 100
# A space at which no text is broken.
_SOLID_SPACE = "\u00a0"
# Classes in the matrix and in the sentence.
_MOST_IN_MATRIX, _MOST_IN_SENTENCE = 8, 3
# Intervals with fewer training rows are remarked upon.
_FEW_ROWS = 5
# Another model is clearly better, or this one not worth its lines, from these differences of balanced accuracy on.
_CLEARLY, _HARDLY = 0.03, 0.01
_SMALLEST = float(np.finfo(float).tiny)

# What cross-validation says


@dataclass(frozen=True)
class Verdict:
    """Scores of a model on rows that it has not seen, in ``n_folds`` folds, and perhaps those of the other model.

    ``confusion`` has a row for each true class and a column for each predicted one.
    """

    classes: list[str]
    scores: "Summary"
    n_folds: int
    other: "Summary | None" = None

    @property
    def confusion(self) -> Floats:
        """Held-out rows of all folds, or their weights."""
        return self.scores.confusion

    @property
    def recalls(self) -> Floats:
        """The share of the rows of each class that is recognised; 0 if all weights of a class are."""
        return np.nan_to_num(shares(self.confusion, 1))

    @property
    def precisions(self) -> Floats:
        """The share of the rows predicted as each class that are of it; NaN if none is."""
        return shares(self.confusion, 0)

    @property
    def is_at_chance(self) -> bool:
        """Whether the balanced accuracy is within two standard errors of that of guessing."""
        recalls, totals, n = self.recalls, self.confusion.sum(axis=1), len(self.classes)
        error = np.sqrt(np.sum(recalls * (1 - recalls) / np.maximum(totals, _SMALLEST))) / n
        return bool(recalls.mean() <= 1 / n + 2 * error)

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "confusion": self.confusion.tolist(),
            "recall": dict(zip(self.classes, self.recalls.tolist(), strict=True)),
            "precision": {
                label: None if np.isnan(share) else float(share)
                for label, share in zip(self.classes, self.precisions, strict=True)
            },
        }

    def sentence(self) -> str:
        """Return in words how often the model is right on new rows."""
        order = np.argsort(self.recalls, kind="stable")
        shown = sorted(order[:_MOST_IN_SENTENCE]) if len(order) > _MOST_IN_SENTENCE else range(len(order))
        first, *others = [(self.classes[k], _of_100(self.recalls[k])) for k in shown]
        begin = f"Of 100 new rows of class {first[0]} it recognises about {first[1]}"
        more = "".join(f", of class {name} {hits}" for name, hits in others)
        worst = " (the classes that are recognised least)" if len(order) > len(shown) else ""
        return f"{begin}{more}{worst}; guessing would recognise {_of_100(1 / len(self.classes))}."

    def remarks(self, n_lines: int) -> list[str]:
        """Return what to distrust: a model at chance, or one that another is clearly better than."""
        found = []
        if self.is_at_chance:
            found.append(
                "It is no better than guessing on rows that it has not seen, however well it may fit those it has."
            )
        return found if self.other is None else [*found, *self._beside(self.other, n_lines)]

    def _beside(self, other: "Summary", n_lines: int) -> list[str]:
        """Return whether the other kind of model is better, or as good and easier to read."""
        own, others = self.scores.means[0], other.means[0]
        error = np.hypot(self.scores.spreads[0], other.spreads[0]) / np.sqrt(self.n_folds)
        scores = f"balanced accuracy {others:.3f} against {own:.3f}"
        if other.model == "MELC":
            is_enough = own - others < _HARDLY and n_lines > other.n_lines
            return [f"Without --lines, the model does as well and is easier to read: {scores}."] if is_enough else []
        if others - own <= max(_CLEARLY, 2 * error):
            return []
        cost = f"at the cost of about {other.n_lines:.0f} lines to read instead of {n_lines}"
        return [f"With --lines auto, the model is clearly better: {scores}, {cost}."]


def shares(confusion: Floats, axis: int) -> Floats:
    """Return the share of the right ones among the rows of each class (1), or of each prediction (0); NaN if none."""
    totals = confusion.sum(axis=axis)
    return np.divide(np.diag(confusion), totals, out=np.full(len(totals), np.nan), where=totals > 0)


def matrix_cells(classes: list[str], confusion: Floats, head: str) -> list[tuple[str, ...]]:
    """Return a confusion matrix with recall and precision as rows of cells; of many classes, without the counts."""
    recalls, precisions = shares(confusion, 1), shares(confusion, 0)
    if len(classes) > _MOST_IN_MATRIX:
        each = zip(classes, map(_share, recalls), map(_share, precisions), strict=True)
        return [(head, "recall", "precision"), *each]
    rows = [(head, *(f"predicted {name}" for name in classes), "recall")]
    for name, counts, recall in zip(classes, confusion, recalls, strict=True):
        rows.append((name, *(f"{count:g}" for count in counts), _share(recall)))
    return [*rows, ("precision", *map(_share, precisions), "")]


def few_rows_remarks(lines: list[dict[str, Any]]) -> list[str]:
    """Return a remark for each line with intervals that rest on few training rows; ``lines`` are of a summary."""
    found = []
    for line in lines:
        totals = np.sum(line["counts"], axis=1)
        if line["levels"] or line["minor"] or not (totals < _FEW_ROWS).any():
            continue
        k = int(np.argmin(totals))
        ends = ["", *line["shown_thresholds"], ""]
        below, above = ends[k], ends[k + 1]
        where = f"from {below} to {above}" if below and above else f"above {below}" if below else f"below {above}"
        rows = "row" if totals[k] == 1 else "rows"
        found.append(f"Along line {line['number']}, the interval {where} rests on {totals[k]:g} training {rows}.")
    return found


def _of_100(share: float) -> str:
    return f"{100 * share:.0f}"


def _share(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.3f}"


# The summary as data


def fit_summary(
    model: Any, class_counts: dict[Any, int], verdict: Verdict | None, remarks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a summary: rows, classes, accuracy, lines and features, the most important first, minor lines last.

    ``class_counts`` are the rows of each class, ``verdict`` the result of cross-validation, and ``remarks`` what else
    is to be said of the model.
    """
    names = feature_names_of(model)
    strongest = np.argsort(-model.importances_, kind="stable")[:_MOST_FEATURES]
    told = [_line(model, number, names) for number in numbers_by_importance(model)]
    return {
        "rows": sum(class_counts.values()),
        "features": int(model.n_features_in_),
        "classes": {str(label): count for label, count in class_counts.items()},
        **_held_out(verdict),
        "remarks": [*remarks, *([] if verdict is None else verdict.remarks(len(told))), *few_rows_remarks(told)],
        **_search(model),
        "intercepts": model.intercepts_.tolist(),
        "lines": told,
        "strongest_features": [{"feature": names[j], "importance": float(model.importances_[j])} for j in strongest],
    }


def _held_out(verdict: Verdict | None) -> dict[str, Any]:
    """Return the scores on held-out rows, and in words what they mean."""
    if verdict is None:
        return {"balanced_accuracy": None, "held_out": None}
    mean, spread = verdict.scores.means[0], verdict.scores.spreads[0]
    held_out = verdict.as_dict() | {"in_words": verdict.sentence()}
    return {"balanced_accuracy": {"mean": mean, "spread": spread, "folds": verdict.n_folds}, "held_out": held_out}


def _search(model: Any) -> dict[str, Any]:
    """Return the divergence and the gamma used, if the model was found by maximising the divergence."""
    if not hasattr(model, "divergence_"):
        return {}
    return {"divergence": np.atleast_1d(model.divergence_).tolist(), "gamma": float(model.gamma_)}


def _line(model: Any, number: int, names: list[str]) -> dict[str, Any]:
    """Return the summary of a line, given by its number from 1.

    The range is that of the training rows. In each interval between thresholds the line favours a class, and the
    rows of every class are counted. A line of a category has an entry for each level in place of intervals.
    """
    line, labels = model.lines_[number - 1], [str(label) for label in model.classes_]
    effects, code = contributions_of(model, line), missing_code(line)
    weights = [
        {
            "feature": names[j],
            "term": name_in_sum(model.columns_, int(j), names[j]) if len(line.features) > 1 else names[j],
            "weight": float(line.direction[j]),
            "effect": float(effects[j]),
        }
        for j in by_contribution(line)
    ]
    thresholds = [] if line.levels else line.thresholds.tolist()
    return {
        "number": number,
        "found_for": found_for(model, number - 1),
        "minor": line.minor,
        "importance": line.importance,
        "features": weights,
        "range": [float(line.curves[0].knots[0]), float(line.curves[0].knots[-1])],
        "levels": list(line.levels),
        "thresholds": thresholds,
        "shown_thresholds": _shown(model, line, names),
        "intervals": [labels[code] for code in (line.level_codes if line.levels else line.codes)],
        "counts": line.counts.tolist(),
        "missing": None if line.levels or code is None else labels[code],
    }


def _shown(model: Any, line: Line, names: list[str]) -> list[str]:
    """Return the thresholds of a line as text: those of dates as dates."""
    if line.levels:
        return []
    scale = scale_along(model, line, names)
    if scale.kind in ("date", "rank"):
        return [scale.text(threshold) for threshold in line.thresholds]
    knots = line.curves[0].knots
    return numbers_apart(line.thresholds, knots[-1] - knots[0], 4)


# The summary as text


def fit_text(summary: dict[str, Any], width: int = WIDTH) -> str:
    """Return the summary as text in rows of limited width. Importances are in units of the log-odds."""
    classes = ", ".join(f"{label} ({count})" for label, count in summary["classes"].items())
    features = f"{summary['features']} feature{'s' * (summary['features'] != 1)}"
    parts = [f"{summary['rows']} rows, {features}; classes: {classes}"]
    if summary["balanced_accuracy"]:
        score, held_out = summary["balanced_accuracy"], summary["held_out"]
        cells = matrix_cells(list(summary["classes"]), np.array(held_out["confusion"]), "held-out rows")
        accuracy = f"balanced accuracy {score['mean']:.3f} ± {score['spread']:.3f}"
        parts += [f"{accuracy} in {score['folds']}-fold cross-validation", aligned(cells)]
        parts.append(textwrap.fill(held_out["in_words"], width))
    parts += [textwrap.fill(f"! {remark}", width, subsequent_indent="  ") for remark in summary["remarks"]]
    main = [line for line in summary["lines"] if not line["minor"]]
    parts += [_text_of_line(line, width) for line in main[:_MOST_LINES]]
    if len(main) > _MOST_LINES:
        n_more = len(main) - _MOST_LINES
        parts.append(f"and {n_more} more line{'s'[: n_more > 1]}; melc explain prints them all")
    n_minor = len(summary["lines"]) - len(main)
    if n_minor:
        parts.append(f"and {n_minor} minor line{'s'[: n_minor > 1]}, each of one feature")
    strongest = [(each["feature"], f"{each['importance']:.3g}") for each in summary["strongest_features"]]
    parts += ["strongest features:", aligned([("feature", "importance"), *strongest])]
    if "divergence" in summary:
        divergences = ", ".join(f"{value:.4g}" for value in summary["divergence"])
        parts.append(f"divergence D = {divergences}; gamma = {summary['gamma']:.4g}")
    return "\n".join(parts)


def _text_of_line(line: dict[str, Any], width: int) -> str:
    """Return the name of a line, its strongest features with their weights, and its intervals or levels."""
    name = f"line {line['number']}" + (f" (found for {line['found_for']})" if line["found_for"] else "")
    head = f"{name}, importance {line['importance']:.3g}"
    if line["levels"]:
        return "\n".join([head, f"  {line['features'][0]['feature']}", *_text_of_levels(line, width)])
    features = [f"{each['weight']:+.3g} {each['term']}" for each in line["features"]]
    hidden = len(features) - _MOST_FEATURES
    more = [f"and {hidden} more"] if hidden > 0 else []
    first, *others = line["intervals"]
    intervals = [first, *(f"| {place} | {side}" for place, side in zip(line["shown_thresholds"], others, strict=True))]
    missing = [] if line["missing"] is None else [f"  where it is missing: {line['missing']}"]
    return "\n".join(
        [
            head,
            _wrapped("  z =", features[:_MOST_FEATURES] + more, width),
            _wrapped("  along z:", intervals, width),
            *missing,
        ]
    )


def _text_of_levels(line: dict[str, Any], width: int) -> list[str]:
    """Return the levels of a category by the class that they favour, those with most rows first."""
    order = np.argsort(-np.sum(line["counts"], axis=1), kind="stable")
    rows = []
    for label in dict.fromkeys(line["intervals"]):
        levels = [line["levels"][k] for k in order if line["intervals"][k] == label]
        hidden = len(levels) - _MOST_LEVELS
        shown = [f"{level}," for level in levels[:_MOST_LEVELS]]
        shown[-1] = shown[-1][:-1] + (f", and {hidden} more" if hidden > 0 else "")
        rows.append(_wrapped(f"    {label}:", shown, width))
    return rows


def _wrapped(begin: str, parts: list[str], width: int) -> str:
    """Return the parts after a beginning, in rows of limited width; no part is broken."""
    solid = " ".join([begin, *(part.replace(" ", _SOLID_SPACE) for part in parts)])
    rows = textwrap.wrap(solid, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(rows).replace(_SOLID_SPACE, " ")


def aligned(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Return rows of strings as aligned columns: the first flush left, the others flush right."""
    widths = [column_width(row[k] for row in rows) for k in range(len(rows[0]))]
    return "\n".join(indent + _aligned_row(row, widths) for row in rows)


def _aligned_row(row: Sequence[str], widths: list[int]) -> str:
    others = [f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
    return (row[0].ljust(widths[0]) + "".join(others)).rstrip()
