"""The contents of a page as data. Each part has a limit of its own, so that pages stay small."""

from collections.abc import Callable
from typing import Any

import numpy as np

from melc.export.document import to_document
from melc.export.sql import to_sql
from melc.export.text import export_text
from melc.model.line import decides_alone
from melc.report.card import card_of
from melc.report.counts import counted, decisions_of, groups_of, is_one_line
from melc.report.features import feature_weights, line_pictures
from melc.report.form import form_of
from melc.report.heldout import held_out, path_of, scores_of
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
        "rule": _whole_lines(_rule(subject)),
        **_form(subject, rows),
        **_exported("document", _document, subject),
        **_exported("sql", _sql, subject),
    }


def _form(subject: Subject, rows: int) -> dict[str, Any]:
    """Return the fields of the form with what it needs to answer, and example rows; nothing if that is too much."""
    if len(subject.labels) <= _MOST_CLASSES_ON_PAGE:
        form = form_of(subject, rows)
        if len(page_json(form["answers"])) <= _LARGEST_FORM:
            return form
    return {"fields": [], "answers": None, "rows": []}


def _exported(name: str, written: Callable[[Subject], Any], subject: Subject) -> dict[str, Any]:
    """Return the model in another format, or why it is not on the page."""
    try:
        text = written(subject)
        if len(page_json(text)) <= _LONGEST_EXPORT:
            return {name: text, f"{name}_why": ""}
        why = f"It is too long for this page. {_ELSEWHERE[name]}"
    except ValueError as error:
        why = str(error)
    return {name: None, f"{name}_why": why}


def _class_names(subject: Subject) -> list[str]:
    """Return the names of the classes; of very many, only of those with the most rows."""
    shown = set(subject.largest_classes(_MOST_CLASSES_ON_PAGE))
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


def _rule(subject: Subject) -> str:
    """Return the rule as text; if the weights are whole numbers, as an index card before that."""
    model, names = subject.named, subject.names
    rule = export_text(model, names, digits=5)
    has_card = decides_alone(model) and len(subject.labels) == 2 and len(model.lines_[0].units)
    return f"{export_text(model, names, style='card')}\n\n{rule}" if has_card else rule


def _sql(subject: Subject) -> str:
    """Return the query; refuse one that would not be shown as it is."""
    query = to_sql(subject.named, feature_names=subject.names)
    if has_direction_marks(query):
        raise ValueError("A name contains marks that reverse the direction of text. " + _ELSEWHERE["sql"])
    return query


def _document(subject: Subject) -> Any:
    """Return the JSON document of the model; refuse one that a browser would change."""
    document = to_document(subject.named)
    if _has_large_integers(document):
        raise ValueError("It has whole numbers that browsers round. " + _ELSEWHERE["document"])
    return with_arrays(document)


def _has_large_integers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_large_integers(each) for each in value.values())
    if isinstance(value, list):
        return any(_has_large_integers(each) for each in value)
    return isinstance(value, int) and abs(value) > _LARGEST_INTEGER


def _whole_lines(text: str) -> str:
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
