"""Numbers, names and intervals as text."""

import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from melc.arrays import Floats

# Rounding of thresholds, as a part of the distance of neighbouring ones.
_ROUNDING = 0.1
_ALL_DIGITS = 17


def intervals_of(thresholds: Sequence[str]) -> list[str]:
    """Return the intervals as text. A threshold belongs to the interval above it."""
    if not thresholds:
        return ["any z"]
    middle = [f"{a} <= z < {b}" for a, b in pairwise(thresholds)]
    return [f"z < {thresholds[0]}", *middle, f"{thresholds[-1]} <= z"]


def number(value: float, digits: int | None) -> str:
    """Return a number with so many significant digits, or in full."""
    return repr(float(value)) if digits is None else f"{value:.{digits}g}"


def numbers_apart(values: Floats, width: float, digits: int | None) -> list[str]:
    """Return ascending numbers with so many significant digits, or more if neighbours would come close by rounding.

    They are rounded by no more than a tenth of the smallest distance of neighbours, and of ``width``.
    """
    most = _ROUNDING * min([*np.diff(values), width])
    for more in range(_ALL_DIGITS if digits is None else digits, _ALL_DIGITS):
        written = [number(value, more) for value in values]
        if all(abs(float(text) - value) <= most for text, value in zip(written, values, strict=True)):
            return written
    return [number(value, None) for value in values]


def quoted(name: str) -> str:
    """Return the name, in quotes if it could be confused with other parts of the text."""
    calm = name.isprintable() and name == name.strip() and "  " not in name
    plain = name and calm and not set(name) & set('"()<>,')
    if plain:
        return name
    # JSON escapes only some of the characters that a terminal would obey, and no marks of direction.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(name, ensure_ascii=False))


def counts_of(counts: Floats, labels: Sequence[str]) -> str:
    """Return the number (or total weight) of rows of each class, such as ``3 low, 25 high``."""
    # "25 1" would be two numbers.
    of = " of class" if any(label[:1].isdigit() or label[:1] in "-+." for label in labels) else ""
    return ", ".join(f"{count:.6g}{of} {label}" for count, label in zip(counts, labels, strict=True))
