"""Names and values in SQL, quoted whatever they contain."""

from typing import Any

import numpy as np


def column(name: str) -> str:
    """A column by its quoted name.

    SQLite takes a quoted name that it does not know for a text; with the table's name before it, it is an error,
    as it should be.
    """
    return f"r.{identifier(name)}"


def identifier(name: str) -> str:
    _refuse_nul(name)
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        if not np.isfinite(value):
            raise ValueError(f"{value!r} has no literal in SQL.")
        return repr(value)
    text = str(value)
    _refuse_nul(text)
    return "'" + text.replace("'", "''") + "'"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL character, which SQL cannot hold; rename it.")
