"""The form in which a row is entered: a field for each column, and what the page needs to answer as the model does."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import projections
from melc.model.columns import Category, level_name
from melc.model.curve import Curve
from melc.model.line import Line, decides_alone, log_odds_of
from melc.model.places import level_text
from melc.report.storage import visible
from melc.report.subject import Subject, dense, few_rows

# Fields of a form. Columns without a field stay at a typical value.
MOST_FIELDS = 200
# Levels that can be chosen in a field.
MOST_CHOICES = 60
# Rows from which typical values and ranges are taken.
_ROWS_FOR_RANGES = 10_000
_MISSING = "(missing)"


@dataclass(frozen=True)
class Field:
    """A field of the form for a column: a number, a date (in days since 1970-01-01), or one of some choices.

    ``typical`` is the coded value at first (:mod:`melc.model.columns`). ``choices`` are names with coded values, None
    for a value that is missing or unknown. Numbers and dates are missing if they are left empty. ``low`` and ``high``
    are the bounds of a number or date, and ``whole`` says whether it changes in whole steps. ``spread`` is the standard
    deviation; another level of a category counts as one.
    """

    name: str
    kind: str
    feature: int
    typical: float
    low: float = 0.0
    high: float = 0.0
    spread: float = 1.0
    whole: bool = False
    choices: tuple[tuple[str, float | None], ...] = ()
    n_hidden: int = 0


def form_of(subject: Subject, n_rows: int) -> dict[str, Any]:
    """Return the fields of the form, those that matter most first, what it answers with, and example rows.

    There is a field for each of the columns that matter most. The examples are values of the fields, None for missing
    ones, in those of the first ``n_rows`` rows of the sample that the form can have.
    """
    model, sample = subject.model, subject.sample
    some = sample[:: math.ceil(len(sample) / min(_ROWS_FOR_RANGES, few_rows(subject.coded.shape[1])))]
    rows, order = dense(subject.coded[some]), np.argsort(-model.importances_, kind="stable")[:MOST_FIELDS]
    features = np.sort(order)
    fields = [_field(model, subject.names[j], int(j), rows[:, j]) for j in order]
    examples = [row[order].tolist() for row in dense(subject.coded[sample[:n_rows]])]
    return {
        "fields": [asdict(field) | {"feature": int(np.searchsorted(features, field.feature))} for field in fields],
        "answers": _answers(subject, features, _typical_values(model, rows)),
        "rows": [
            [None if np.isnan(value) else value for value in row]
            for row in examples
            if all(map(_can_be_entered, fields, row))
        ],
    }


def _can_be_entered(field: Field, value: float) -> bool:
    """Return whether the form has a coded value: all but those of levels that are not listed."""
    return not field.choices or (None if np.isnan(value) else value) in [code for _, code in field.choices]


def _typical_values(model: Any, rows: Floats) -> Floats:
    """Return typical coded values of all columns, shape (n_columns,): medians, and levels or ranks with most rows."""
    found = model.feature_mean_.astype(np.float64)
    known = ~np.isnan(rows).all(axis=0)
    found[known] = np.nanmedian(rows[:, known], axis=0)
    for j in (*model.columns_.categories, *model.columns_.ranks):
        found[j] = _typical(rows[:, j])
    return found


def _typical(codes: Floats) -> float:
    """Return the code of the level or rank with the most rows."""
    return float(np.argmax(np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=1)))


def _field(model: Any, name: str, j: int, values: Floats) -> Field:
    """Return the field of a column, by some of its coded values."""
    name, columns = visible(name), model.columns_
    if j in columns.categories:
        return _level_field(name, j, values, columns.categories[j])
    if j in columns.ranks:
        labels = [(visible(level_text(level_name(level))), float(k)) for k, level in enumerate(columns.ranks[j])]
        shown = (*labels, (_MISSING, None))
        return Field(name, "rank", j, _typical(values), spread=_spread(model, j), choices=shown)
    return _number_field(model, name, j, values, j in columns.dates)


def _level_field(name: str, j: int, values: Floats, category: Category) -> Field:
    """Return the field of a category: the levels with the most rows, and a missing value."""
    counts = np.bincount(values[~np.isnan(values)].astype(np.int64), minlength=category.n_levels)
    shown = np.sort(np.argsort(-counts, kind="stable")[:MOST_CHOICES])
    choices: list[tuple[str, float | None]]
    choices = [(visible(level_text(category.names[k])), float(k)) for k in shown]
    if None not in category.levels:
        choices.append((_MISSING, float(len(category.levels)) if category.others else None))
    hidden = category.n_levels - len(shown)
    return Field(name, "choice", j, float(np.argmax(counts)), choices=tuple(choices), n_hidden=hidden)


def _number_field(model: Any, name: str, j: int, values: Floats, is_date: bool) -> Field:
    """Return the field of a number or date.

    Its range is that of nearly all values, rounded: the outermost ones may be those of a single person.
    """
    known = values[~np.isnan(values)] if np.isnan(values).any() else values
    known = known if len(known) else model.feature_mean_[[j]]
    low, middle, high = (float(value) for value in np.quantile(known, [0.01, 0.5, 0.99], method="nearest"))
    if is_date:
        return Field(name, "date", j, middle, low, high, _spread(model, j), whole=True)
    if np.array_equal(known, np.rint(known)):
        return Field(name, "number", j, middle, low, high, _spread(model, j), whole=True)
    low, middle, high = (float(f"{value:.4g}") for value in (low, middle, high))
    return Field(name, "number", j, middle, low, high, _spread(model, j))


def _spread(model: Any, j: int) -> float:
    return float(model.feature_spread_[j])


def _answers(subject: Subject, features: NDArray[np.int64], typical: Floats) -> dict[str, Any]:
    """Return what the page needs to answer as the model does, for rows that are entered in the form.

    ``features`` are the columns of the form, ascending, and ``typical`` are typical coded values of all columns. The
    form gives the coded values of its columns, NaN where they are missing. ``columns`` says how these become
    quantities: by the scores of levels, and the place of a missing number. Columns without a field stay at typical
    values: what they add to the projection on a line is its ``rest``. A line that ``reads`` a column has its coded
    value as the projection. ``mean``, ``centre`` and ``there`` are the quantities, projections and values of
    curves at the mean of the training rows, with which :func:`melc.explain.explain` compares a row.
    """
    model, columns = subject.model, subject.model.columns_
    place = {int(j): i for i, j in enumerate(features)}
    others = np.setdiff1d(np.arange(model.n_features_in_), features)
    rest = model.directions_[:, others] @ columns.quantities(typical[None], model.feature_mean_)[0, others]
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
                "rest": float(typical[line.features[0]] if line.reads_codes else constant),
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
