"""The contents of a page as data: what every page has, and as much of the rest as there is room for."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy import sparse

from melc.arrays import Floats
from melc.model.line import Line, log_odds_of
from melc.report.card import card_of
from melc.report.counts import counted, is_one_line
from melc.report.features import feature_weights, line_pictures
from melc.report.fields import Field, by_importance, can_be_entered, features_in
from melc.report.scores import scores_of
from melc.report.stability import bootstrap_of, n_resamples_for, stability_of
from melc.report.storage import escaped, has_direction_marks, page_json, visible, with_arrays
from melc.report.subject import Subject

# Lines of the rule as text, and the longest of them.
_MOST_LINES_OF_TEXT, _LONGEST_LINE = 240, 200
# Characters of the rule on a page with little room, and bytes for the reasons why parts are left out.
_SHORT_RULE, _FOR_REASONS = 4000, 2000
# Classes with a name on the page; with more there is no form.
_MOST_CLASSES_ON_PAGE = 100
# Larger whole numbers are rounded by browsers.
_LARGEST_INTEGER = 2**53


def contents_of(
    subject: Subject,
    most_bytes: int,
    step: Callable[[str], None],
    *,
    n_resamples: int | None,
    cv: int,
    seed: int,
    n_jobs: int | None,
    rows: int,
) -> dict[str, Any]:
    """Return the data of the page, which take at most ``most_bytes`` as JSON."""
    step("counting rows")
    axes = counted(subject)
    step("model card")
    card = card_of(subject)
    n = n_resamples_for(subject, n_resamples)
    step(f"{n} resamples")
    resamples = bootstrap_of(subject, n, seed, n_jobs)
    axes = [axis | {"intervals": _threshold_intervals(resamples) if axis["on_line"] else []} for axis in axes]
    weights, rule = feature_weights(subject, resamples), _shortened(str(subject.export.to_text(digits=5)))
    stability, scores = stability_of(subject, resamples), scores_of(subject, cv, seed, step)
    step("writing the page")
    data: dict[str, Any] = {
        "kind": type(subject.model).__name__,
        "alone": is_one_line(subject.model),
        "n_lines": len(subject.model.lines_),
        "classes": _class_names(subject),
        "n_rows": subject.n_rows,
        "n_features": int(subject.model.n_features_in_),
        "n_sample": len(subject.sample),
        "axes": axes[:1],
        "weights": weights | {"figures": weights["figures"][:1]},
        "lines": [],
        "stability": stability,
        "card": card,
        "rule": rule if len(rule) <= _SHORT_RULE else f"{rule[:_SHORT_RULE]}…",
        "scores": scores | {"curves": []},
        "left_out": [],
    }
    # Very long names could make some of these too large.
    further: dict[str, dict[str, Any]] = {
        "log-odds of further classes": {"axes": axes},
        "weights of further lines": {"weights": weights},
        "lines with their curves": {"lines": line_pictures(subject, resamples)},
        "ROC and precision-recall curves": {"scores": scores},
        "most of the rule": {"rule": rule},
    }
    return _with_what_fits(data, further, subject, most_bytes - _FOR_REASONS, rows)


def _with_what_fits(
    data: dict[str, Any], further: dict[str, dict[str, Any]], subject: Subject, most_bytes: int, rows: int
) -> dict[str, Any]:
    """Return the data with further parts, a form, the JSON document, the SQL query and example rows.

    They are added in this order, each if there is room for it after those before.
    """
    data |= {"fields": [], "rows": [], "answers": None}

    def added(part: dict[str, Any]) -> bool:
        fits = len(page_json(data | part)) <= most_bytes
        data.update(part if fits else {})
        return fits

    data["left_out"] = [name for name, part in further.items() if not added(part)]
    if len(subject.labels) <= _MOST_CLASSES_ON_PAGE:
        added({"fields": _fields_out(subject), "answers": answers_of(subject)})
    for name, made in {"document": _document, "sql": _sql}.items():
        data |= {name: None, f"{name}_why": ""}
        try:
            if not added({name: made(subject.export)}):
                data[f"{name}_why"] = f"There is no room for it on this page. {_ELSEWHERE[name]}"
        except ValueError as error:
            data[f"{name}_why"] = str(error)
    if rows and data["answers"]:
        added({"rows": _example_rows(subject, rows)})
    return data


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
    value as the projection.
    """
    model, features = subject.model, features_in(subject.fields)
    columns, place = model.columns_, {int(j): i for i, j in enumerate(features)}
    typical = columns.quantities(subject.typical[None], model.feature_mean_)[0]
    others = np.setdiff1d(np.arange(model.n_features_in_), features)
    rest = model.directions_[:, others] @ typical[others]
    return {
        "features": features.tolist(),
        "columns": [
            {"scores": columns.categories[j].scores, "place": 0.0}
            if j in columns.categories
            else {"scores": None, "place": float(columns.places.get(j, model.feature_mean_[j]))}
            for j in features.tolist()
        ],
        "lines": [
            {
                "weights": _form_weights(line, features),
                "rest": float(subject.typical[line.features[0]] if line.reads_codes else constant),
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
                    for curve in each.curves
                ],
            }
            for each in log_odds_of(model)
        ],
    }


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


def _shortened(text: str) -> str:
    """Return a text with its first lines, none of them very long."""
    lines = [escaped(line[:_LONGEST_LINE]) + "…" * (len(line) > _LONGEST_LINE) for line in text.splitlines()]
    more = len(lines) - _MOST_LINES_OF_TEXT
    return "\n".join(lines[:_MOST_LINES_OF_TEXT] + ([f"… and {more} more lines"] if more > 0 else []))
