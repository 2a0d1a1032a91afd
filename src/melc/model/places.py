"""What the places on a line mean, and how they are written: sums, numbers, dates, ranks, or levels of a category."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from melc.model.columns import Columns, level_name
from melc.model.line import Line

_FIRST_DAY = datetime.date(1970, 1, 1)
# Days of dates that can be written: the years 1 to 9999.
DAYS = (datetime.date.min - _FIRST_DAY).days, (datetime.date.max - _FIRST_DAY).days


@dataclass(frozen=True)
class Scale:
    """What a place z on a line means.

    A line of several columns has sums. A line of one column has numbers, dates or ranks, which are ``sign × z``, or
    levels of a category. ``name`` is the name of the only column, ``labels`` are the names of the ranks or levels.
    """

    kind: Literal["sum", "number", "date", "rank", "level"]
    name: str = ""
    sign: int = 1
    labels: tuple[str, ...] = ()

    def text(self, threshold: float) -> str:
        """Return a threshold as text; for ranks, the first rank above it."""
        if self.kind == "date":
            return date_text(self.sign * threshold)
        if self.kind == "rank" and self.sign > 0:
            return f"from {self.labels[int(np.clip(np.ceil(threshold), 0, len(self.labels) - 1))]}"
        return f"{threshold:.4g}"


def scale_along(model: Any, line: Line, names: Sequence[str]) -> Scale:
    """Return what the places on a line of a model mean; ``names`` are the names of all columns."""
    if len(line.features) != 1:
        return Scale("sum")
    j = int(line.features[0])
    if line.levels:
        return Scale("level", names[j], 1, tuple(map(level_text, line.levels)))
    return scale_of_column(model.columns_, j, names[j], int(np.sign(line.direction[j])))


def scale_of_column(columns: Columns, j: int, name: str = "", sign: int = 1) -> Scale:
    """Return the scale of a column that is not a category: numbers, dates or ranks."""
    if j in columns.ranks:
        return Scale("rank", name, sign, tuple(level_text(level_name(level)) for level in columns.ranks[j]))
    return Scale("date" if j in columns.dates else "number", name, sign)


def missing_code(line: Line) -> int | None:
    """Return the number of the class that a line favours where its column is missing, or its level unknown.

    None if the line has no value for that.
    """
    values = [curve.missing for curve in line.decisive if curve.missing is not None]
    if not values:
        return None
    return int(values[0] > 0) if len(values) == 1 else int(np.argmax(values))


def name_in_sum(columns: Columns, j: int, name: str) -> str:
    """Return the name of a column in a weighted sum, in which a category is represented by its score."""
    return f"score of {name}" if j in columns.categories else name


def value_text(columns: Columns, j: int, code: float) -> str:
    """Return the coded value of a column as text: a number, a date, a rank or a level."""
    if j in columns.categories:
        category = columns.categories[j]
        return "(unknown)" if np.isnan(code) else level_text(category.names[int(code)])
    if np.isnan(code):
        return "(missing)"
    if j in columns.ranks and code == np.floor(code) and 0 <= code < len(columns.ranks[j]):
        return level_text(level_name(columns.ranks[j][int(code)]))
    return date_text(code) if j in columns.dates else f"{code:.6g}"


def level_text(name: str) -> str:
    """Return the name of a level for a picture or a page, where an empty text would not be seen."""
    return name or '""'


def date_text(days: float, with_time: bool = False) -> str:
    """Return a number of days since 1970 as a date, or with the time of day."""
    known = float(np.clip(days, *DAYS))
    if with_time:
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(days=known)).isoformat(" ", "seconds")
    return (_FIRST_DAY + datetime.timedelta(days=int(np.floor(known)))).isoformat()
