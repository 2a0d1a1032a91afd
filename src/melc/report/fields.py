"""The fields of the form in which a row is entered, and how they become features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats

# Fields of a form. Features without a field stay at a typical value.
MOST_FIELDS = 200
# Categories that can be chosen in a field.
MOST_CHOICES = 60


@dataclass(frozen=True)
class Field:
    """A field of the form: a number, a date (in days since 1970-01-01), or one of some categories.

    ``features`` are the features that the field determines: one for a number or date. Of a category, that of each of
    ``categories`` is 1 for it and 0 for the others; −1 stands for none. ``typical`` is the value at first, a number or
    the place of a category, and ``fill`` the value of a field that is left empty, if there is one.
    """

    name: str
    kind: str
    features: tuple[int, ...]
    typical: float
    low: float = 0.0
    high: float = 0.0
    spread: float = 0.0
    categories: tuple[str, ...] = ()
    n_hidden: int = 0
    fill: float | None = None


def form_fields(model: Any, names: Sequence[str], rows: Floats) -> list[Field]:
    """Return a field for each of the features that matter most, in the order of the features.

    ``rows`` are some rows, from which typical values and ranges are taken.
    """
    chosen = np.sort(np.argsort(-model.importances_, kind="stable")[:MOST_FIELDS])
    return [number_field(model, names[j], int(j), rows[:, j]) for j in chosen]


def number_field(
    model: Any, name: str, feature: int, values: Floats, *, is_date: bool = False, fill: float | None = None
) -> Field:
    """Return the field of a feature that is a number, by some of its values.

    Its range is that of nearly all values, rounded: the outermost ones may be those of a single person.
    """
    low, middle, high = (float(value) for value in np.quantile(values, [0.01, 0.5, 0.99], method="nearest"))
    spread = float(model.feature_spread_[feature])
    if is_date:
        return Field(name, "date", (feature,), middle, low, high, spread, fill=fill)
    low, middle, high = (float(f"{value:.4g}") for value in (low, middle, high))
    return Field(name, "number", (feature,), middle, low, high, spread, fill=fill)


def features_in(fields: Sequence[Field]) -> NDArray[np.int64]:
    """Return the features that the fields determine, ascending."""
    return np.array(sorted({j for field in fields for j in field.features if j >= 0}), dtype=np.int64)


def by_importance(model: Any, fields: Sequence[Field]) -> list[Field]:
    """Return the fields, those whose features matter most first."""
    weight = model.importances_
    return sorted(fields, key=lambda field: -max((float(weight[j]) for j in field.features if j >= 0), default=0.0))


def value_of(field: Field, row: Floats) -> float:
    """Return the value of a field in a row of features: a number, or the place of a category."""
    if field.kind != "category":
        return float(row[field.features[0]])
    return float(next((i for i, j in enumerate(field.features) if j >= 0 and row[j] == 1), field.features.index(-1)))
