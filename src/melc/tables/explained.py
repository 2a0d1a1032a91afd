"""Explanations of the first rows of a file as text, and the SQL query of a model."""

from collections.abc import Sequence
from typing import Any

from melc.explain import explain, nearest_change
from melc.export.sql import to_sql
from melc.model.names import feature_names_of
from melc.tables.frames import contents_of, kinds_of, rows_for
from melc.tables.read import first_rows
from melc.tables.source import Source


def explained_rows(model: Any, source: Source, n: int, most: int = 10) -> str:
    """Return, as text, the parts of the features in the first n rows of a file, and the nearest change of each."""
    contents = contents_of(model)
    frame = rows_for(model, first_rows(source, kinds_of(contents, source), n), contents, source)
    parts, change = explain(model, frame), nearest_change(model, frame)
    return "\n\n".join(
        f"row {i + 1}: {parts.summary(i, most=most)}\nnearest change: {change.summary(i, most=most)}"
        for i in range(len(frame))
    )


def sql_of(model: Any, table: str, *, odds: bool = False) -> str:
    """Return the query of :func:`melc.export.to_sql`.

    An added column whose name a column of the table has already, such as ``prediction``, ends with an underscore.
    """
    taken = feature_names_of(model)
    added = {name: _unused(name, taken) for name in ("prediction", "projection", "log_odds")}
    return to_sql(model, table, odds=odds, **added)


def _unused(name: str, taken: Sequence[str]) -> str:
    """Return the name, with underscores at its end until it differs from those taken, also if a number follows."""
    while any(other.casefold().rstrip("0123456789") == name for other in taken):  # SQL ignores case
        name += "_"
    return name
