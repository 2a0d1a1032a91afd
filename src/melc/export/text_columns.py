"""Columns of a table in texts: weights of numbers, and points of the levels of categories."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.export.text_parts import Style, level_text, number_text
from melc.model.columns import Columns
from melc.model.line import Line
from melc.model.names import by_contribution

# Levels of a category whose points are shown; of further ones the number is given.
_MOST_LEVELS = 8
_FEATURES = "z is the sum of weight × feature"
_POINTS = ", where a category adds the points of its level"
_UNLISTED = ", and nothing if its level is not listed"


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
            cells += _points_of(columns, line, j, style, style.digits is None)
        else:
            cells.append(
                (number_text(line.direction[j], style.digits), style.names[j] + _note(columns, line, j, style))
            )
    width = max(len(text) for text, _ in cells)
    return [f"{'':{indent}}{text:>{width}}  {name}" for text, name in cells]


def _points_of(columns: Columns, line: Line, j: int, style: Style, in_full: bool) -> list[tuple[str, str]]:
    """Return the points of the levels of a category, which are weight × score, and their names; largest first."""
    levels, points = _sorted_points(columns, line, j)
    shown = _shown(len(points), in_full)
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
    if in_full or n <= _MOST_LEVELS + 1:
        return list(range(n))
    half = _MOST_LEVELS // 2
    return [*range(half), *range(n - half, n)]


def level_names(columns: Columns, j: int) -> list[str]:
    """Return the levels of a category as they are written."""
    category = columns.categories[j]
    return [level_text(level) for level in category.levels] + ["(others)"] * category.others


def _note(columns: Columns, line: Line, j: int, style: Style) -> str:
    """Return what has to be known of a column of numbers to multiply it with its weight."""
    notes = []
    if j in columns.dates:
        notes.append("in days since 1970-01-01")
    if j in columns.ranks:
        notes.append("by rank: " + ", ".join(f"{k} {level_text(level)}" for k, level in enumerate(columns.ranks[j])))
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
