"""The parts of SQL queries: quoted names and values, sums, and the pieces of curves."""

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from melc.export.files import encodable
from melc.model.curve import Curve

# Most rows of a VALUES clause. Of a table made of 30,000 in one, SQLite makes no index.
_ROWS_OF_VALUES = 1_000
# Bytes of a name in PostgreSQL; of longer ones it drops the rest.
_LONGEST_NAME = 63


def column(name: str) -> str:
    """Return a reference to a column of the table ``r``.

    Without the table name, SQLite would read an unknown quoted column name as a string; with it, SQLite reports an
    error.
    """
    return f"r.{identifier(name)}"


def identifier(name: str) -> str:
    """Return a quoted identifier."""
    if not name:
        raise ValueError("A column has no name, which SQL does not allow; pass names as feature_names=.")
    _check_text(name)
    return '"' + name.replace('"', '""') + '"'


def table_name(table: str | tuple[str, str]) -> str:
    """Return the name of a table, which may be a pair of the names of a schema and a table."""
    names = table if isinstance(table, (tuple, list)) and len(table) == 2 else (table,)
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"table={table!r:.200} should be a name, or a pair of a schema and a name.")
    return ".".join(identifier(name) for name in names)


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
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{value} is beyond the whole numbers of SQL, which have 64 bits; use strings as labels.")
        written = repr(value)
        return written if isinstance(value, int) or "e" in written else f"{written}e0"
    text = str(value)
    _check_text(text)
    return "'" + text.replace("'", "''") + "'"


def _check_text(text: str) -> None:
    encodable(text, "SQL")
    if "\0" in text:
        raise ValueError(f"{text!r} contains a NUL character, which SQL does not allow; rename it.")


def weighted_sum(features: list[str], weights: Iterable[float]) -> str:
    """Return the expression of Σ_j weight_j feature_j.

    Features are floats: products of integers or decimals would be rounded differently.
    """
    return sum_of([f"{x} * {literal(w)}" for x, w in zip(features, weights, strict=True)])


def sum_of(terms: list[str]) -> str:
    """Return the sum of the terms, split into halves again and again.

    SQLite refuses a chain of more than 1000 terms, and this order has smaller rounding errors.
    """
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    halves = (terms[:middle], terms[middle:])
    return "(" + " + ".join(half[0] if len(half) == 1 else sum_of(half) for half in halves) + ")"


def first_that_holds(conditions: list[str], results: list[str]) -> str:
    """Return the result of the first condition that holds, or the last result if none does, as CASE expressions.

    There is one more result than conditions. If a condition holds, those after it must hold, too: so they can be split
    again and again. A row then takes about nine comparisons for two hundred conditions.
    """
    if len(results) == 1:
        return results[0]
    # Halves would take as many comparisons, but twice the depth, and SQLite's parser would take 2¹⁵ results at most.
    bounds = np.unique(np.linspace(0, len(results), 5).astype(int)).tolist()
    *parts, last = (first_that_holds(conditions[a : b - 1], results[a:b]) for a, b in itertools.pairwise(bounds))
    branches = [f"WHEN {conditions[b - 1]} THEN {part}" for b, part in zip(bounds[1:], parts, strict=False)]
    return f"CASE {' '.join(branches)} ELSE {last} END"


def piece_number(curves: list[Curve], line: str, z: str) -> str:
    """Return the number of the piece that z lies in, in the order of :func:`table_of_pieces`.

    ``curves`` has one of each line, ``line`` and ``z`` are names. If z is NULL, it is the line's piece for missing
    values; lines that have none have −1, the number of no piece (a CASE of NULL alone would be a text).
    """
    starts = np.cumsum([0] + [len(curve.knots) + 1 for curve in curves]).tolist()
    below = [f"{line} < {k}" for k in range(1, len(curves))]
    of_lines, of_missing, n_pieces = [], [], starts[-1]
    for start, curve in zip(starts, curves, strict=False):
        numbers = [str(start + i) for i in range(len(curve.knots) + 1)]
        of_lines.append(first_that_holds([f"{z} < {literal(knot)}" for knot in curve.knots], numbers))
        of_missing.append("-1" if curve.missing is None else str(n_pieces))
        n_pieces += curve.missing is not None
    missing = first_that_holds(below, of_missing) if n_pieces > starts[-1] else "-1"
    return f"CASE WHEN {z} IS NULL THEN {missing} ELSE {first_that_holds(below, of_lines)} END"


def table_of_pieces(lines: list[list[Curve]]) -> str:
    """Return the pieces of all lines, one line after the other, as a table: a union of VALUES clauses.

    ``lines`` has the curves of each line, which have the same knots. A row is the number of the piece, its anchor, and
    the value at the anchor and the slope of each curve. The anchor is that of the first curve; of the outermost pieces,
    which are constant, it is NULL, because zero times infinity is no number. After all these, each line that has values
    for missing ones has a piece for them.
    """
    rows: list[list[str]] = []
    for curves in lines:
        anchors, n = curves[0].pieces.anchors, len(curves[0].knots)
        values = np.stack([curve.log_odds[np.searchsorted(curve.knots, anchors)] for curve in curves], axis=1)
        slopes = np.stack([curve.pieces.slopes for curve in curves], axis=1)
        for i in range(n + 1):
            anchor = literal(anchors[i]) if 0 < i < n else "NULL"
            numbers = [literal(number) for pair in zip(values[i], slopes[i], strict=True) for number in pair]
            rows.append([str(len(rows)), anchor, *numbers])
    for curves in lines:
        if curves[0].missing is not None:
            numbers = [number for curve in curves for number in (literal(curve.missing), literal(0.0))]
            rows.append([str(len(rows)), "NULL", *numbers])
    parts = [_values(rows[start : start + _ROWS_OF_VALUES]) for start in range(0, len(rows), _ROWS_OF_VALUES)]
    return parts[0] if len(parts) == 1 else "\nUNION ALL ".join(f"SELECT * FROM ({part}) AS v" for part in parts)


def _values(rows: list[list[str]]) -> str:
    """Return a VALUES clause. PostgreSQL would take numbers for decimals; those of the first row decide the type."""
    first, others = rows[0], rows[1:]
    cast = [first[0], *(f"CAST({number} AS DOUBLE PRECISION)" for number in first[1:])]
    return "VALUES\n" + ",\n".join(f"  ({', '.join(row)})" for row in (cast, *others))


def check_added(arguments: dict[str, Any]) -> None:
    """Raise ``ValueError`` unless each argument is a text, the name of an added column."""
    for argument, name in arguments.items():
        if not (isinstance(name, str) and name):
            raise ValueError(f"{argument}={name!r:.200} should be the name of a column that the query adds.")


def check_no_clash(names: list[str], added: list[str]) -> None:
    """Raise ``ValueError`` if two features, or a feature and an added column, have the same name in a database."""
    folded = [_as_compared(name) for name in names]
    if len(set(folded)) < len(folded):
        same = [name for name, each in zip(names, folded, strict=True) if folded.count(each) > 1]
        if len({_without_case(name) for name in same}) < len(same):
            raise ValueError(
                f"The feature name {same[0]!r} occurs twice (SQL ignores the case of a to z); rename one of them."
            )
        raise ValueError(
            f"Two feature names begin with the same {_LONGEST_NAME} bytes, and PostgreSQL reads no more of a name: "
            f"{same[0]!r:.200}. Rename the columns, and pass their names as feature_names=."
        )
    seen: set[str] = set()
    for name in added:
        if _as_compared(name) in folded:
            raise ValueError(
                f"The added column {name!r} is also a feature; choose another name with prediction=, projection= or "
                "log_odds=."
            )
        if _as_compared(name) in seen:
            raise ValueError(f"Two of the added columns are both named {name!r}; choose different names.")
        seen.add(_as_compared(name))


def _as_compared(name: str) -> str:
    """Return a name as databases compare it: they ignore the case of a to z, and PostgreSQL what follows 63 bytes."""
    return _without_case(name)[:_LONGEST_NAME].decode(errors="ignore")


def _without_case(name: str) -> bytes:
    return name.encode(errors="replace").lower()  # of bytes, only ASCII letters have a case
