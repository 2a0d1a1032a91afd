"""The columns of a table in SQL: numbers and dates with their missing values, levels of categories, ranks."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from melc.data.frames import Label
from melc.export.sql_parts import literal

# NULL, NaN (which PostgreSQL and DuckDB put above all numbers) and the infinities are not between these.
_LARGEST = float(np.finfo(np.float64).max)
# Larger numbers count as the first of these. Smaller ones than the second, or whose product with a weight is smaller,
# count as zero: where a sum or a product leaves the range of floats, PostgreSQL stops with an error, and one such row
# would be the end of the query.
_HUGE, _TINY = 1e300, 1e-300
_NULL = "NULL"
# From 0000-03-01, where years begin if leap days are to be their last days, to 1970-01-01; and a day that is not over.
_DAYS_BEFORE_1970 = 719_468 + 1


def quantity(model: Any, j: int, x: str) -> str:
    """Return what a line of several columns reads of column j, never NULL; ``x`` is the column as an expression."""
    columns = model.columns_
    if j in columns.categories:
        category = columns.categories[j]
        scores = [literal(score) for score in category.scores]
        unknown = scores[-1] if category.others else literal(0.0)
        return _of_levels(x, category.levels, scores, unknown)
    return _number(model, j, x, literal(columns.places.get(j, model.feature_mean_[j])))


def code(model: Any, j: int, x: str) -> str:
    """Return what a line of column j alone reads: a level's number or a number; NULL if unknown or missing."""
    columns = model.columns_
    if j in columns.categories:
        category = columns.categories[j]
        numbers = [literal(float(k)) for k in range(category.n_levels)]
        return _of_levels(x, category.levels, numbers, numbers[-1] if category.others else _NULL)
    return _number(model, j, x, _NULL)


def _number(model: Any, j: int, x: str, missing: str) -> str:
    """Return the number, the days or the rank in column j as a float, or ``missing``."""
    columns = model.columns_
    if j in columns.ranks:
        ranks = [literal(float(k)) for k in range(len(columns.ranks[j]))]
        return _of_levels(x, columns.ranks[j], ranks, missing)
    if j in columns.dates:
        return _as_float(days_since_1970(x) if missing == _NULL else f"COALESCE({days_since_1970(x)}, {missing})")
    weights = np.abs([line.direction[j] for line in model.lines_ if line.direction[j]])
    return _as_float(f"CASE {_moderate(x, _TINY / weights.min())} ELSE {missing} END")


def _moderate(x: str, tiny_below: float) -> str:
    """Return the cases of a number: tiny, usual, huge, and huge below zero.

    The usual one is a float already. In PostgreSQL all cases would otherwise have the type of a column of single
    precision, in which the huge ones overflow.
    """
    huge, tiny, largest = literal(_HUGE), literal(tiny_below), literal(_LARGEST)
    return (
        f"WHEN {x} BETWEEN -{tiny} AND {tiny} THEN 0e0 WHEN {x} BETWEEN -{huge} AND {huge} THEN {_as_float(x)} "
        f"WHEN {x} BETWEEN {huge} AND {largest} THEN {huge} WHEN {x} BETWEEN -{largest} AND -{huge} THEN -{huge}"
    )


def _of_levels(x: str, levels: Sequence[Label | None], results: Sequence[str], unknown: str) -> str:
    """Return the result of the level of a row; ``unknown`` if it has none of the levels, of which None is missing."""
    by_level = dict(zip(levels, results, strict=False))
    missing = by_level.pop(None, unknown)
    compared, keys = _comparable(x, list(by_level))
    whens = " ".join(f"WHEN {key} THEN {result}" for key, result in zip(keys, by_level.values(), strict=True))
    found = f"CASE {compared} {whens} ELSE {unknown} END" if whens else unknown
    if missing != unknown:
        is_there = _is_number(_as_float(x)) if _are_numbers(by_level) else f"{x} IS NOT NULL"
        found = f"CASE WHEN {is_there} THEN {found} ELSE {missing} END"
    return _as_float(found)


def _comparable(x: str, levels: list[Label | None]) -> tuple[str, list[str]]:
    """Return a column and levels so that a database can compare them: as truth values, as numbers or as texts."""
    if all(isinstance(level, bool) for level in levels):
        return x, [literal(level) for level in levels]
    as_numbers = _are_numbers(levels)
    keys = [literal(float(level) if as_numbers and level is not None else str(level)) for level in levels]
    if len(set(keys)) < len(keys):
        twice = next(level for level, key in zip(levels, keys, strict=True) if keys.count(key) > 1)
        raise ValueError(
            f"The level {twice!r} of the column {x.removeprefix('r.')} cannot be told from another one in SQL; rename "
            "it before the fit."
        )
    # In SQLite, a joined text is compared by its characters, whatever the collation of the column.
    return _as_float(x) if as_numbers else f"CAST({x} AS TEXT) || ''", keys


def _are_numbers(levels: Iterable[Label | None]) -> bool:
    """Return whether levels are numbers, not all of them truth values."""
    kinds = {type(level) for level in levels}
    return bool(kinds) and kinds != {bool} and not any(issubclass(kind, str) for kind in kinds)


def _is_number(x: str) -> str:
    return f"{x} BETWEEN {literal(-_LARGEST)} AND {literal(_LARGEST)}"


def _as_float(x: str) -> str:
    return f"CAST({x} AS DOUBLE PRECISION)"


def days_since_1970(x: str) -> str:
    """Return the days from 1970-01-01 to a date or a time of the years 1 to 9999, NULL if it is none.

    The databases have no function for it in common. But all of them write a date as ``2020-02-29``, and a time as
    ``2020-02-29 12:30:00.5``; years before 1 with "BC" at the end. If PostgreSQL is set to write dates in another
    style, the query stops: a number is asked of a text that says what to do. Years are counted from March, so that a
    leap day is the last day of its year; the days before month w, in months from March, are then ⌊(153 w + 2) / 5⌋.
    Whole numbers are divided only where nothing remains, because DuckDB divides them as floats. LIMIT as in
    ``melc.export.sql``.
    """
    text = f"SELECT CAST({x} AS TEXT) AS t LIMIT 1"
    # A date alone is filled up with the time at its beginning.
    filled = "d.t || SUBSTR('0000-00-00 00:00:00', LENGTH(d.t) + 1)"
    is_date = "SUBSTR(d.t, 5, 1) = '-' AND SUBSTR(d.t, 8, 1) = '-' AND d.t NOT LIKE '%BC%'"
    other_style = "SUBSTR(CAST(CURRENT_DATE AS TEXT), 5, 1) <> '-'"
    stop = "CAST(CAST('Run this query after SET datestyle = ISO, not with dates such as ' || d.t AS INTEGER) AS TEXT)"
    date = f"SELECT CASE WHEN {is_date} THEN {filled} WHEN {other_style} THEN {stop} END AS t"
    month = _part("e.t", 6, 2)
    fraction = "CASE WHEN SUBSTR(e.t, 20, 1) = '.' THEN CAST(SUBSTR(e.t, 20, 7) AS DOUBLE PRECISION) ELSE 0 END"
    numbers = (
        f"SELECT {_part('e.t', 1, 4)} - CASE WHEN {month} < 3 THEN 1 ELSE 0 END AS y, "
        f"153 * (({month} + 9) % 12) + 2 AS w, {_part('e.t', 9, 2)} AS d, "
        f"3600 * {_part('e.t', 12, 2)} + 60 * {_part('e.t', 15, 2)} + {_part('e.t', 18, 2)} + {fraction} AS s"
    )
    days = (
        "365 * f.y + (f.y - f.y % 4) / 4 - (f.y - f.y % 100) / 100 + (f.y - f.y % 400) / 400 + (f.w - f.w % 5) / 5 "
        f"+ f.d - {_DAYS_BEFORE_1970} + {_as_float('f.s')} / 86400e0"
    )
    return f"(SELECT {days} FROM ({numbers} FROM ({date} FROM ({text}) AS d LIMIT 1) AS e LIMIT 1) AS f)"


def _part(text: str, start: int, length: int) -> str:
    return f"CAST(SUBSTR({text}, {start}, {length}) AS INTEGER)"
