"""The contents of a page as data. Each part has a limit of its own, so that pages stay small."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy import sparse

from melc.arrays import Floats
from melc.base import projections
from melc.model.curve import Curve
from melc.model.line import Line, decides_alone, log_odds_of
from melc.report.card import card_of
from melc.report.counts import counted, is_one_line
from melc.report.decisions import decisions_of, groups_of
from melc.report.features import feature_weights, line_pictures
from melc.report.fields import Field, by_importance, can_be_entered, features_in
from melc.report.heldout import held_out
from melc.report.path import path_of
from melc.report.scores import scores_of
from melc.report.stability import accuracy_on_new_rows, bootstrap_of, n_resamples_for, stability_of
from melc.report.storage import escaped, has_direction_marks, page_json, visible, with_arrays
from melc.report.subject import Subject
from melc.report.verdict import verdict_of

# Characters of the rule as text, and of the SQL query and the JSON document, which are left out if they are longer.
_LONGEST_RULE, _LONGEST_EXPORT = 12_000, 100_000
# Bytes of the numbers with which the form answers; it is left out if they take more.
_LARGEST_FORM = 500_000
# Classes with a name on the page; with more there is no form.
_MOST_CLASSES_ON_PAGE = 100
# Larger whole numbers are rounded by browsers.
_LARGEST_INTEGER = 2**53


def contents_of(
    subject: Subject,
    step: Callable[[str], None],
    *,
    n_resamples: int | None,
    cv: int | None,
    seed: int,
    n_jobs: int | None,
    rows: int,
) -> dict[str, Any]:
    """Return the data of the page."""
    step("counting rows")
    line = counted(subject) if is_one_line(subject.model) else None
    step("model card")
    card = card_of(subject)
    found = held_out(subject, cv, seed, step)
    accuracy = accuracy_on_new_rows(found)
    n = n_resamples_for(subject, n_resamples)
    step(f"{n} resamples")
    resamples = bootstrap_of(subject, n, accuracy, seed, n_jobs)
    step("writing the page")
    groups = groups_of(subject, found)
    return {
        "kind": type(subject.model).__name__,
        "n_lines": len(subject.model.lines_),
        "classes": _class_names(subject),
        "n_rows": subject.n_rows,
        "n_features": int(subject.model.n_features_in_),
        "n_sample": len(subject.sample),
        "weighted": subject.weights is not None,
        "verdict": verdict_of(subject, found, accuracy, resamples, groups),
        "decisions": decisions_of(subject, found),
        "groups": groups,
        "line": None if line is None else line | {"intervals": _threshold_intervals(resamples)},
        "weights": feature_weights(subject, resamples),
        "lines": line_pictures(subject, resamples),
        "scores": scores_of(subject, found),
        "path": path_of(subject, seed) if cv != 0 else None,
        "stability": stability_of(subject, resamples),
        "card": card,
        "rule": whole_lines(str(subject.export.to_text(digits=5))),
        **_form(subject, rows),
        **_exported("document", _document, subject.export),
        **_exported("sql", _sql, subject.export),
    }


def _form(subject: Subject, rows: int) -> dict[str, Any]:
    """Return the fields of the form with what it needs to answer, and example rows; nothing if that is too much."""
    nothing: dict[str, Any] = {"fields": [], "answers": None, "rows": []}
    if len(subject.labels) > _MOST_CLASSES_ON_PAGE:
        return nothing
    answers = answers_of(subject)
    if len(page_json(answers)) > _LARGEST_FORM:
        return nothing
    return {"fields": _fields_out(subject), "answers": answers, "rows": _example_rows(subject, rows)}


def _exported(name: str, made: Callable[[Any], Any], exported: Any) -> dict[str, Any]:
    """Return the model in another format, or why it is not on the page."""
    try:
        text = made(exported)
        if len(page_json(text)) <= _LONGEST_EXPORT:
            return {name: text, f"{name}_why": ""}
        why = f"It is too long for this page. {_ELSEWHERE[name]}"
    except ValueError as error:
        why = str(error)
    return {name: None, f"{name}_why": why}


def _class_names(subject: Subject) -> list[str]:
    """Return the names of the classes; of very many, only of those with the most rows."""
    shown = set(np.argsort(-subject.class_counts, kind="stable")[:_MOST_CLASSES_ON_PAGE].tolist())
    return [visible(label) if k in shown else "" for k, label in enumerate(subject.labels)]


def _threshold_intervals(resamples: Any) -> list[tuple[float, float]]:
    """Return the intervals of the thresholds of the only line; none if there are no resamples."""
    if resamples is None:
        return []
    return [(each.low, each.high) for each in resamples.thresholds[0] if np.isfinite(each.high - each.low)]


_ELSEWHERE = {
    "document": "melc.export.to_json(model) writes it; models of the command line are JSON files already.",
    "sql": "melc.export.to_sql(model), or melc explain --format sql on the command line, writes it.",
}


def _sql(exported: Any) -> str:
    """Return the query; refuse one that would not be shown as it is."""
    query = str(exported.to_sql())
    if has_direction_marks(query):
        raise ValueError("A name contains marks that reverse the direction of text. " + _ELSEWHERE["sql"])
    return query


def _document(exported: Any) -> Any:
    """Return the JSON document of the model; refuse one that a browser would change."""
    document = exported.to_document()
    if _has_large_integers(document):
        raise ValueError("It has whole numbers that browsers round. " + _ELSEWHERE["document"])
    return with_arrays(document)


def _has_large_integers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_large_integers(each) for each in value.values())
    if isinstance(value, list):
        return any(_has_large_integers(each) for each in value)
    return isinstance(value, int) and abs(value) > _LARGEST_INTEGER


def answers_of(subject: Subject) -> dict[str, Any]:
    """Return what the page needs to answer as the model does, for rows that are entered in the form.

    The form gives the coded values of its columns, NaN where they are missing. ``columns`` says how these become
    quantities: by the scores of levels, and the place of a missing number. Columns without a field stay at typical
    values: what they add to the projection on a line is its ``rest``. A line that ``reads`` a column has its coded
    value as the projection. ``mean``, ``centre`` and ``there`` are the quantities, projections and values of
    curves at the mean of the training rows, with which :func:`melc.explain.explain` compares a row.
    """
    model, features = subject.model, features_in(subject.fields)
    columns, place = model.columns_, {int(j): i for i, j in enumerate(features)}
    typical = columns.quantities(subject.typical[None], model.feature_mean_)[0]
    others = np.setdiff1d(np.arange(model.n_features_in_), features)
    rest = model.directions_[:, others] @ typical[others]
    scores = {j: category.scores for j, category in columns.categories.items()}
    return {
        "features": features.tolist(),
        "columns": [
            {
                "scores": scores.get(j),
                "place": float(columns.places.get(j, model.feature_mean_[j])),
                "mean": float(model.feature_mean_[j]),
            }
            for j in features.tolist()
        ],
        "lines": [
            {
                "weights": _form_weights(line, features),
                "rest": float(subject.typical[line.features[0]] if line.reads_codes else constant),
                "centre": float(line.direction @ model.feature_mean_),
                "reads": place.get(int(line.features[0])) if line.reads_codes else None,
                "thresholds": np.empty(0) if line.levels else line.thresholds,
                "codes": [] if line.levels else line.codes.tolist(),
            }
            for line, constant in zip(model.lines_, rest, strict=True)
        ],
        "log_odds": [
            {
                "constant": each.constant,
                "curves": [
                    {"knots": curve.knots, "log_odds": curve.log_odds, "missing": curve.missing}
                    | {"there": _there(model, k, code, curve)}
                    for k, curve in enumerate(each.curves)
                ],
            }
            for code, each in enumerate(log_odds_of(model))
        ],
    }


def _there(model: Any, k: int, code: int, curve: Curve) -> float:
    """Return what a curve adds at the mean of the training rows; the levels of a category add nothing on average."""
    line = model.lines_[k]
    if line.levels:
        return float(line.offsets[code]) if decides_alone(model) else 0.0
    mean = model.feature_mean_.copy()
    mean[list(model.columns_.categories)] = np.nan
    return float(curve.at(projections(model, mean[None])[:, k])[0])


def _form_weights(line: Line, features: Any) -> Floats:
    """Return how much the projection grows with each column of the form; levels have no direction."""
    return np.zeros(len(features)) if line.levels else line.direction[features]


def _fields_out(subject: Subject) -> list[dict[str, Any]]:
    """Return the fields of the form, those that matter most first, with places among the columns of the form."""
    place = {int(j): i for i, j in enumerate(features_in(subject.fields))}
    return [_field_out(field, place) for field in by_importance(subject.model, subject.fields)]


def _field_out(field: Field, place: dict[int, int]) -> dict[str, Any]:
    return asdict(field) | {"name": visible(field.name), "feature": place[field.feature]}


def _example_rows(subject: Subject, n: int) -> list[list[float | None]]:
    """Return values of the fields for the first rows of the sample that the form can have; None for missing ones."""
    coded = subject.coded[subject.sample[:n]]
    rows = coded.toarray() if sparse.issparse(coded) else np.asarray(coded)
    order = by_importance(subject.model, subject.fields)
    entered = [[float(row[field.feature]) for field in order] for row in rows]
    kept = [row for row in entered if all(map(can_be_entered, order, row))]
    return [[None if np.isnan(value) else value for value in row] for row in kept]


def whole_lines(text: str) -> str:
    """Return a text with its first lines, each of them whole: a formula that is cut would say something else."""
    lines: list[str] = []
    length = 0
    for line in text.splitlines():
        length += len(line) + 1
        if length > _LONGEST_RULE and lines:
            break
        lines.append(escaped(line))
    more = len(text.splitlines()) - len(lines)
    return "\n".join(lines + ([f"… and {more:,} more lines; melc.export.export_text(model) has all"] if more else []))
