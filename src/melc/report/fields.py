"""The fields of the form in which a row is entered, one for each column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.columns import Category, level_name
from melc.model.places import level_text
from melc.report.storage import visible

# Fields of a form. Columns without a field stay at a typical value.
MOST_FIELDS = 200
# Levels that can be chosen in a field.
MOST_CHOICES = 60
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


def form_fields(model: Any, names: Sequence[str], rows: Floats) -> list[Field]:
    """Return a field for each of the columns that matter most, in the order of the columns.

    ``rows`` are some coded rows, from which typical values and ranges are taken.
    """
    chosen = np.sort(np.argsort(-model.importances_, kind="stable")[:MOST_FIELDS])
    return [_field(model, names[j], int(j), rows[:, j]) for j in chosen]


def typical_values(model: Any, rows: Floats) -> Floats:
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
    columns = model.columns_
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


def features_in(fields: Sequence[Field]) -> NDArray[np.int64]:
    """Return the columns that have a field, ascending."""
    return np.array(sorted(field.feature for field in fields), dtype=np.int64)


def by_importance(model: Any, fields: Sequence[Field]) -> list[Field]:
    """Return the fields, those whose columns matter most first."""
    return sorted(fields, key=lambda field: -float(model.importances_[field.feature]))


def can_be_entered(field: Field, value: float) -> bool:
    """Return whether the form has a coded value: all but those of levels that are not listed."""
    return not field.choices or (None if np.isnan(value) else value) in [code for _, code in field.choices]
