"""The parts of SQL queries: quoted names and values, sums, and curves."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from melc.model.curve import Curve, Pieces


def column(name: str) -> str:
    """Return a reference to a column of the table ``r``.

    Without the table name, SQLite would read an unknown quoted column name as a string; with it, SQLite reports an
    error.
    """
    return f"r.{identifier(name)}"


def identifier(name: str) -> str:
    """Return a quoted identifier."""
    _refuse_nul(name)
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a number, boolean or string as an SQL literal.

    Floats have an exponent: without one, DuckDB reads them as decimal numbers, whose products with whole numbers are
    rounded differently.
    """
    if isinstance(value, np.generic):  # repr of a NumPy number is not a number in SQL
        value = value.item()
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        if not np.isfinite(value):
            raise ValueError(f"{value!r} cannot be written in SQL; only finite numbers can.")
        written = repr(value)
        return written if isinstance(value, int) or "e" in written else f"{written}e0"
    text = str(value)
    _refuse_nul(text)
    return "'" + text.replace("'", "''") + "'"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"{text!r} contains a NUL character, which SQL does not allow; rename it.")


def weighted_sum(features: list[str], weights: Iterable[float]) -> str:
    """Return the expression of Σ_j weight_j feature_j.

    Features are made floats first: products of integers or decimals would be rounded differently.
    """
    return sum_of([f"CAST({x} AS DOUBLE PRECISION) * {literal(w)}" for x, w in zip(features, weights, strict=True)])


def sum_of(terms: list[str]) -> str:
    """Return the sum of the terms, split into halves again and again.

    SQLite refuses a chain of more than 1000 terms, and this order has smaller rounding errors.
    """
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    halves = (terms[:middle], terms[middle:])
    return "(" + " + ".join(half[0] if len(half) == 1 else sum_of(half) for half in halves) + ")"


def curve_at(z: str, curve: Curve) -> str:
    """Return the value of a curve at z, NULL if z is NULL.

    It is a tree of CASE expressions that halves the pieces, so that a row takes about eight comparisons for two hundred
    knots. A table of knots, joined by intervals, took seventy times as long in SQLite, which has no index on it.
    """
    tree = _tree(z, curve, curve.pieces, 0, len(curve.knots) + 1)
    return f"CASE WHEN {z} IS NULL THEN NULL ELSE {tree} END"


def _tree(z: str, curve: Curve, pieces: Pieces, start: int, stop: int) -> str:
    """Return the curve on the pieces from ``start`` to before ``stop``."""
    if stop - start == 1:
        value, slope, anchor = pieces.values[start], pieces.slopes[start], pieces.anchors[start]
        return literal(value) if slope == 0 else f"{literal(value)} + {literal(slope)} * ({z} - {literal(anchor)})"
    middle = (start + stop) // 2
    below, above = _tree(z, curve, pieces, start, middle), _tree(z, curve, pieces, middle, stop)
    return f"CASE WHEN {z} < {literal(curve.knots[middle - 1])} THEN {below} ELSE {above} END"


def check_names(names: list[str], added: list[str]) -> None:
    """Raise ``ValueError`` if two features, or a feature and an added column, have the same name; SQL ignores case."""
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        twice = next(name for name in names if folded.count(name.casefold()) > 1)
        raise ValueError(f"The feature name {twice!r} occurs twice (SQL ignores case); rename one of them.")
    seen: set[str] = set()
    for name in added:
        if name.casefold() in folded:
            raise ValueError(
                f"The added column {name!r} is also a feature; choose another name with prediction=, projection= or "
                "log_odds=."
            )
        if name.casefold() in seen:
            raise ValueError(f"Two of the added columns are both named {name!r}; choose different names.")
        seen.add(name.casefold())
