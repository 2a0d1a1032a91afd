"""The formats of ``melc explain``: one line for each."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True)
class Wanted:
    """What the user asks for besides the format."""

    digits: int
    odds: bool
    table: str


def _onnx(fitted: Any, wanted: Wanted) -> bytes:
    from melc.export.onnx_graph import to_onnx

    return bytes(to_onnx(fitted.model).SerializeToString())


# Functions of a :class:`melc.tables.model.TableModel` that return the model as text, or as bytes.
FORMATS: dict[str, Callable[[Any, Wanted], str | bytes]] = {
    "text": lambda fitted, wanted: str(fitted.to_text(digits=wanted.digits, odds=wanted.odds)),
    "json": lambda fitted, wanted: str(fitted.to_json(indent=2)),
    "sql": lambda fitted, wanted: str(fitted.to_sql(wanted.table)),
    "onnx": _onnx,
}

RuleFormat = StrEnum("RuleFormat", list(FORMATS))  # type: ignore[misc]  # members are known when it runs
AS_TEXT = RuleFormat("text")
