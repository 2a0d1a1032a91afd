"""Quoting of names and values in SQL. Any character except NUL is allowed in them."""

from typing import Any

import numpy as np


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
