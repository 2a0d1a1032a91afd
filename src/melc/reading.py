"""Plain data from strangers, read with every expectation checked.

A :class:`Reader` holds a value out of a JSON file and its place in it. Whatever is not as expected is one
``ValueError`` that names the place, what was wanted and what was found. Nothing in a file is ever executed.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from melc.arrays import Floats


def parse(text: str | bytes, what: str, *, max_bytes: int) -> "Reader":
    """JSON text as a :class:`Reader`; NaN, infinities, doubled keys and oversize are refused."""
    if not isinstance(text, (str, bytes)):
        raise ValueError(f"This is no {what}: expected text, found {type(text).__name__}.")
    if len(text) > max_bytes:
        raise ValueError(f"This is no {what}: {len(text)} bytes are more than the limit of {max_bytes}.")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except RecursionError:
        raise ValueError(f"This is no {what}: its parts are nested too deeply.") from None
    except ValueError as error:  # syntax, encoding, or one of the refusals above
        raise ValueError(f"This is no {what}, or it is damaged: {error}.") from None
    return Reader(value, what)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, which is no finite number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return found


class Reader:
    """A value and its place, to be read as what it should be.

    Examples
    --------
    >>> reader = Reader({"gamma": "wide"}, "model")
    >>> reader.fields(["gamma"])["gamma"].number()
    Traceback (most recent call last):
    ...
    ValueError: model.gamma: expected a finite number, found 'wide'.
    """

    def __init__(self, value: Any, place: str) -> None:
        self.value, self.place = value, place

    def fail(self, wanted: str) -> NoReturn:
        found = repr(self.value)
        shown = found if len(found) <= 60 else found[:57] + "..."
        raise ValueError(f"{self.place}: expected {wanted}, found {shown}.")

    def fields(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, "Reader"]:
        """The parts of an object, by name."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        missing = [key for key in required if key not in self.value]
        if missing:
            raise ValueError(f"{self.place}: the key {missing[0]!r} is missing.")
        unknown = sorted(set(self.value) - set(required) - set(optional))
        if unknown:
            raise ValueError(f"{self.place}: the key {unknown[0]!r} is not known.")
        return {key: Reader(value, f"{self.place}.{key}") for key, value in self.value.items()}

    def entries(self) -> dict[str, "Reader"]:
        """The parts of an object whose keys are free."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        return {key: Reader(value, f"{self.place}[{key!r}]") for key, value in self.value.items()}

    def items(self, length: int | None = None) -> list["Reader"]:
        if not isinstance(self.value, list):
            self.fail("a list")
        if length is not None and len(self.value) != length:
            raise ValueError(f"{self.place}: expected {length} items, found {len(self.value)}.")
        return [Reader(value, f"{self.place}[{k}]") for k, value in enumerate(self.value)]

    def number(self) -> float:
        # A JSON number may be an integer beyond all floats, or written as 1e999.
        plain = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not plain or not abs(self.value) <= sys.float_info.max:
            self.fail("a finite number")
        return float(self.value)

    def positive(self) -> float:
        value = self.number()
        if value <= 0:
            self.fail("a positive number")
        return value

    def integer(self, low: int, high: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            self.fail(f"a whole number from {low} to {high}")
        return int(self.value)

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return bool(self.value)

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("a text")
        return str(self.value)

    def choice(self, *allowed: str) -> str:
        if self.value not in allowed or not isinstance(self.value, str):
            self.fail(" or ".join(repr(name) for name in allowed))
        return str(self.value)

    def optional(self) -> "Reader | None":
        return None if self.value is None else self

    def texts(self, length: int | None = None) -> list[str]:
        return [item.text() for item in self.items(length)]

    def numbers(self, length: int | None = None) -> Floats:
        return np.array([item.number() for item in self.items(length)], dtype=np.float64)

    def ascending(self, length: int | None = None) -> Floats:
        """Numbers of which each is larger than the one before."""
        values = self.numbers(length)
        if np.any(np.diff(values) <= 0):
            raise ValueError(f"{self.place}: expected ascending numbers.")
        return values
