"""The parts of texts about models: names, numbers, counts, and columns of a table under each other."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from melc.arrays import Floats
from melc.data.frames import Label
from melc.model.names import column_width, largest_first

# Classes whose rows in an interval are counted one by one.
_MOST_COUNTS = 4
_ALL_DIGITS = 17
# Rounding of thresholds, as a part of the distance of neighbouring ones.
_THRESHOLD_ROUNDING = 0.1


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


def level_text(level: Label | None) -> str:
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


def intervals_of(thresholds: Sequence[str]) -> list[str]:
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
    # Naming one more takes no more room than counting it with the others.
    shown = order if len(order) <= _MOST_COUNTS + 1 else order[:_MOST_COUNTS]
    parts = [f"{counts[k]:.6g}{of} {labels[k]}" for k in shown]
    hidden = order[len(shown) :]
    return ", ".join([*parts, f"{counts[hidden].sum():.6g} of {len(hidden)} other classes"] if len(hidden) else parts)


def aligned(columns: list[list[str]]) -> list[Sequence[str]]:
    """Return the rows of a table, each column filled up to its width."""
    widths = [column_width(column) for column in columns]
    return [[f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in zip(*columns, strict=True)]
