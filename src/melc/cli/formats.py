"""The formats of ``melc explain``, one line for each; and rows of a table in words."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True)
class Details:
    """What the user asks for besides the format."""

    digits: int
    odds: bool
    table: str


def _onnx(fitted: Any, details: Details) -> bytes:
    from melc.export.onnx_graph import to_onnx

    return bytes(to_onnx(fitted.model).SerializeToString())


# Functions of a :class:`melc.tables.model.TableModel` that return the model as text, or as bytes.
FORMATS: dict[str, Callable[[Any, Details], str | bytes]] = {
    "text": lambda fitted, details: str(fitted.to_text(digits=details.digits, odds=details.odds)),
    "json": lambda fitted, details: str(fitted.to_json(indent=2)),
    "sql": lambda fitted, details: str(fitted.to_sql(details.table, odds=details.odds)),
    "onnx": _onnx,
}

RuleFormat = StrEnum("RuleFormat", list(FORMATS))  # type: ignore[misc]  # members are known when it runs
AS_TEXT = RuleFormat("text")


def explained(fitted: Any, source: Any, rows: int, format: RuleFormat) -> str:
    """Return the explanations of the first rows of a table as text."""
    from melc.tables.rows import explained_rows

    if format != AS_TEXT:
        raise ValueError(f"Rows are explained as text: leave out --format {format.value} or the table {source.name!r}.")
    return explained_rows(fitted, source, rows)
