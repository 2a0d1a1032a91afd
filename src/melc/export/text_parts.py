"""The parts of texts about models: names and numbers, weights and points of levels, and the places on a line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.frames import Label
from melc.model.columns import Columns
from melc.model.curve import Curve
from melc.model.line import Line
from melc.model.names import by_contribution, column_width, largest_first, n_named
from melc.model.places import DAYS, date_text, missing_code

# Classes whose rows in an interval are counted one by one.
_MOST_COUNTS = 4
_ALL_DIGITS = 17
# Rounding of thresholds, as a part of the distance of neighbouring ones.
_THRESHOLD_ROUNDING = 0.1
# Levels of a category in a sum whose points are shown, and levels of a line that are written one by one, unless numbers
# are written in full; of further ones the number is given.
_MOST_POINTS, _MOST_LEVELS = 8, 12
# A place is called uncertain if the curve is nowhere in it so many standard errors from zero.
_STANDARD_ERRORS = 2.0

_FEATURES = "z is the sum of weight × feature"
_POINTS = ", where a category adds the points of its level"
_UNLISTED = ", and nothing if its level is not listed"


@dataclass(frozen=True)
class Style:
    """How the text is written: names of features and classes, digits, and whether with the numbers of the odds."""

    names: list[str]
    labels: list[str]
    digits: int | None
    odds: bool


def quoted(name: str) -> str:
    """Return the name, in quotes if it could be confused with other parts of the text."""
    calm = name.isprintable() and name == name.strip() and "  " not in name
    plain = name and calm and not set(name) & set('"()<>,;')
    if plain:
        return name
    # JSON escapes only some of the characters that a terminal would obey, and no marks of direction.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(name, ensure_ascii=False))


def quoted_level(level: Label | None) -> str:
    """Return a level of a category; a level that is called "(missing)" has quotes, other than a missing value."""
    return "(missing)" if level is None else quoted(str(level))


def number_text(value: float, digits: int | None) -> str:
    """Return a number with so many significant digits, or in full."""
    return repr(float(value)) if digits is None else f"{value:.{digits}g}"


def numbers_apart(values: Floats, width: float, digits: int | None) -> list[str]:
    """Return ascending numbers with so many significant digits, or more if neighbours would come close by rounding.

    They are rounded by no more than a tenth of the smallest distance of neighbours, and of ``width``.
    """
    most = _THRESHOLD_ROUNDING * min([*np.diff(values), width])
    for more in range(_ALL_DIGITS if digits is None else digits, _ALL_DIGITS):
        written = [number_text(value, more) for value in values]
        if all(abs(float(text) - value) <= most for text, value in zip(written, values, strict=True)):
            return written
    return [number_text(value, None) for value in values]


def interval_names(thresholds: Sequence[str]) -> list[str]:
    """Return the intervals as text. A threshold belongs to the interval above it."""
    if not thresholds:
        return ["any z"]
    middle = [f"{a} <= z < {b}" for a, b in pairwise(thresholds)]
    return [f"z < {thresholds[0]}", *middle, f"{thresholds[-1]} <= z"]


def counts_of(counts: Floats, labels: Sequence[str]) -> str:
    """Return the number (or total weight) of rows of each class, such as ``3 low, 25 high``.

    Of more than two classes, those without rows are left out, the most frequent come first, and of many the others are
    added up.
    """
    if len(labels) > 2 and not counts.any():
        return "no rows"
    # "25 1" would be two numbers.
    of = " of class" if any(label[:1].isdigit() or label[:1] in "-+." for label in labels) else ""
    order = np.arange(2) if len(labels) == 2 else largest_first(counts)
    shown = order[: n_named(len(order), _MOST_COUNTS)]
    parts = [f"{counts[k]:.6g}{of} {labels[k]}" for k in shown]
    hidden = order[len(shown) :]
    return ", ".join([*parts, f"{counts[hidden].sum():.6g} of {len(hidden)} other classes"] if len(hidden) else parts)


def padded_rows(columns: list[list[str]]) -> list[Sequence[str]]:
    """Return the rows of a table, each column filled up to its width."""
    widths = [column_width(column) for column in columns]
    return [[f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in zip(*columns, strict=True)]


# ------------------------------------------------------------------------------ weights of numbers and points of levels


def heading_of_weights(model: Any, line: Line, style: Style) -> str:
    """Return the heading of :func:`weight_rows`."""
    categories = [model.columns_.categories[j] for j in line.features if j in model.columns_.categories]
    if not categories:
        return f"{_FEATURES}:"
    # All levels have points if rare ones are together one level.
    unlisted = any(not category.others for category in categories) and style.digits is None
    return f"{_FEATURES}{_POINTS}{_UNLISTED if unlisted else ''}:"


def weight_rows(model: Any, line: Line, style: Style, indent: int) -> list[str]:
    """Return the weights of the features and the points of levels, the largest contribution first."""
    columns: Columns = model.columns_
    cells: list[tuple[str, str]] = []
    for j in by_contribution(line):
        if j in columns.categories:
            cells += _points_of(columns, line, j, style)
        else:
            cells.append(
                (number_text(line.direction[j], style.digits), style.names[j] + _note(columns, line, j, style))
            )
    width = max(len(text) for text, _ in cells)
    return [f"{'':{indent}}{text:>{width}}  {name}" for text, name in cells]


def _points_of(columns: Columns, line: Line, j: int, style: Style) -> list[tuple[str, str]]:
    """Return the points of the levels of a category, which are weight × score, and their names; largest first."""
    levels, points = _sorted_points(columns, line, j)
    shown = _shown(len(points), in_full=style.digits is None)
    found = [(number_text(points[k], style.digits), f"{style.names[j]} = {levels[k]}") for k in shown]
    hidden = np.delete(points, shown)
    if len(hidden):
        most = f"{number_text(hidden[-1], style.digits)} to {number_text(hidden[0], style.digits)}"
        found.append(("", f"{len(hidden)} other levels of {style.names[j]}: {most}"))
    return found


def _sorted_points(columns: Columns, line: Line, j: int) -> tuple[list[str], Floats]:
    category = columns.categories[j]
    names, points = level_names(columns, j), line.direction[j] * category.scores
    order = np.argsort(-points, kind="stable")
    return [names[k] for k in order], points[order]


def _shown(n: int, in_full: bool) -> list[int]:
    """Return the places of the first and the last levels, which tell most; of few levels all."""
    if in_full or n_named(n, _MOST_POINTS) == n:
        return list(range(n))
    half = _MOST_POINTS // 2
    return [*range(half), *range(n - half, n)]


def level_names(columns: Columns, j: int) -> list[str]:
    """Return the levels of a category as they are written."""
    category = columns.categories[j]
    return [quoted_level(level) for level in category.levels] + ["(others)"] * category.others


def _note(columns: Columns, line: Line, j: int, style: Style) -> str:
    """Return what has to be known of a column of numbers to multiply it with its weight."""
    notes = []
    if j in columns.dates:
        notes.append("in days since 1970-01-01")
    if j in columns.ranks:
        notes.append("by rank: " + ", ".join(f"{k} {quoted_level(level)}" for k, level in enumerate(columns.ranks[j])))
    if j in columns.places and not line.reads_codes:
        digits = None if j in columns.dates else style.digits  # rounded days would be other dates
        notes.append(f"{number_text(columns.places[j], digits)} if missing")
    return f" ({'; '.join(notes)})" if notes else ""


def names_in_sum(columns: Columns, style: Style) -> dict[int, str]:
    """Return the names of the features in the sum of a line of several."""
    kinds = {**dict.fromkeys(columns.ranks, "rank of "), **dict.fromkeys(columns.dates, "days of ")}
    kinds |= dict.fromkeys(columns.categories, "score of ")
    return {j: kinds.get(j, "") + name for j, name in enumerate(style.names)}


def points_sentences(model: Any, line: Line, style: Style, most: int) -> list[str]:
    """Return what the terms of the categories are among the first ``most`` terms of a line: points of levels."""
    sentences = []
    for j in by_contribution(line)[:most]:
        if j not in model.columns_.categories:
            continue
        levels, points = _sorted_points(model.columns_, line, j)
        shown = _shown(len(points), in_full=False)
        parts = [f"{number_text(points[k], style.digits)} for {levels[k]}" for k in shown]
        if len(shown) < len(points):
            parts.insert(len(shown) // 2, f"{len(points) - len(shown)} other levels")
        term = f"{number_text(line.direction[j], style.digits)} {names_in_sum(model.columns_, style)[j]}"
        sentences.append(f"  {term} = {', '.join(parts)}")
    return sentences


# ----------------------------------------------------------------------------------------------------- places on a line


@dataclass(frozen=True)
class Place:
    """An interval of a line, a level, several levels, or missing values, and what the line says there.

    ``least`` and ``most`` are what the first curve adds, ``code`` is the number of the class that the line favours,
    or None if it favours several, and ``counts`` are the training rows of each class, shape (n_classes,).
    """

    name: str
    least: float
    most: float
    code: int | None
    counts: Floats
    is_interval: bool = False
    uncertain: bool = False


def places_of(model: Any, line: Line, curves: Sequence[Curve], style: Style) -> list[Place]:
    """Return the places on a line with the given curves, which may contain the intercepts or not."""
    if line.levels:
        return _levels(model, line, curves[0], style)
    names, ranges = interval_names(_thresholds(model, line, style)), curves[0].ranges()
    if len(curves) > 1:  # their ranges are not shown
        ranges = [(0.0, 0.0)] * len(names)
    doubts = _uncertain_intervals(line)
    found = [
        Place(names[i], *ranges[i], int(line.codes[i]), line.counts[i], is_interval=True, uncertain=doubts[i])
        for i in range(len(names))
    ]
    if line.reads_codes:
        value = curves[0].missing or 0.0
        found.append(Place("missing", value, value, missing_code(line), line.missing_counts))
    return found


def _levels(model: Any, line: Line, curve: Curve, style: Style) -> list[Place]:
    """Return the levels of a category, those first for which the line adds most; of many, those with most rows."""
    names, values = level_names(model.columns_, int(line.features[0])), curve.log_odds
    codes, doubts = line.level_codes, _uncertain_knots(line)
    order = np.argsort(-values, kind="stable")
    n_shown = len(order) if style.digits is None else n_named(len(order), _MOST_LEVELS)
    shown = order[np.isin(order, np.argsort(-line.counts.sum(axis=1), kind="stable")[:n_shown])]
    found = [
        Place(names[k], values[k], values[k], int(codes[k]), line.counts[k], uncertain=bool(doubts[k])) for k in shown
    ]
    hidden = order[~np.isin(order, shown)]
    if len(hidden):
        code = int(codes[hidden[0]]) if len(set(codes[hidden])) == 1 else None
        total = line.counts[hidden].sum(axis=0)
        name = f"({len(hidden)} other levels)"  # without parentheses, a level could have this name
        found.append(Place(name, values[hidden].min(), values[hidden].max(), code, total, is_interval=True))
    return found


def _uncertain_knots(line: Line) -> NDArray[np.bool_]:
    """Return for each knot of a line with one curve whether the curve is not clearly away from zero; else nowhere."""
    if not line.errors or len(line.curves) > 1:
        return np.zeros(len(line.curves[0].knots), dtype=bool)
    return np.asarray(np.abs(line.decisive[0].log_odds) <= _STANDARD_ERRORS * line.errors[0])


def _uncertain_intervals(line: Line) -> list[bool]:
    """Return for each interval whether the curve is nowhere in it clearly away from zero."""
    if not line.errors or len(line.curves) > 1:
        return [False] * len(line.codes)
    clear, curve = ~_uncertain_knots(line), line.decisive[0]
    within = np.searchsorted(line.thresholds, curve.knots, side="right")
    return [not clear[within == i].any() for i in range(len(line.codes))]


def _thresholds(model: Any, line: Line, style: Style) -> list[str]:
    """Return the thresholds of a line; those of a date alone as dates, and those of ranks alone as ranks."""
    features = line.features.tolist()
    if len(features) == 1 and line.direction[features[0]] == 1:
        (j,) = features
        if j in model.columns_.dates:
            found = _dates(line.thresholds)
        else:
            found = _ranks(line.thresholds, model.columns_.ranks.get(j, ()))
        if len(set(found)) == len(line.thresholds):
            return found
    return numbers_apart(line.thresholds, float(np.ptp(line.curves[0].knots)), style.digits)


def _dates(days: Floats) -> list[str]:
    """Return the first date at or after each threshold; the times, if some dates are equal; nothing if far away."""
    if np.any((days < DAYS[0]) | (days > DAYS[1])):
        return []
    dates = [date_text(day) for day in np.ceil(days)]
    return dates if len(set(dates)) == len(dates) else [date_text(day, with_time=True) for day in days]


def _ranks(thresholds: Floats, labels: Sequence[Label]) -> list[str]:
    """Return the first rank at or above each threshold; nothing if there is none."""
    first = np.ceil(thresholds)
    if not len(labels) or np.any((first < 0) | (first >= len(labels))):
        return []
    return [quoted_level(labels[int(k)]) for k in first]
