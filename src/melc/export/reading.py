"""Read JSON from untrusted sources and check every value.

A :class:`Reader` holds a value of a JSON document and its place in the document. A value that is not as expected raises
a ``ValueError`` with the place, what was expected and what was found. Nothing in a document is executed.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from melc.arrays import Floats


def parse(text: str | bytes, what: str, *, max_bytes: int) -> "Reader":
    """Return a :class:`Reader` of a JSON text; raise ``ValueError`` for NaN, infinities, repeated keys or a long text.

    ``what`` is the name of the document in error messages.
    """
    if not isinstance(text, (str, bytes)):
        raise ValueError(f"Not a {what}: expected text or bytes, found {type(text).__name__}.")
    if len(text) > max_bytes:
        raise ValueError(f"Not a {what}: its {len(text)} bytes exceed the limit of {max_bytes}.")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except RecursionError:
        raise ValueError(f"Not a {what}: its parts are nested too deeply.") from None
    except ValueError as error:  # bad syntax or encoding, NaN, or a repeated key
        raise ValueError(f"Not a {what}, or a damaged one: {error}.") from None
    return Reader(value, what)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it contains {name}, which is not a finite number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return found


class Reader:
    """A JSON value and its place in the document. Each method checks the type of the value and returns it.

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
        """Raise ``ValueError`` with the place, what was expected and the value found."""
        found = repr(self.value)
        shown = found if len(found) <= 60 else found[:57] + "..."
        raise ValueError(f"{self.place}: expected {wanted}, found {shown}.")

    def fields(self, required: Iterable[str], optional: Iterable[str] = ()) -> dict[str, "Reader"]:
        """Return the values of an object by key; a missing or unknown key is an error."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        missing = [key for key in required if key not in self.value]
        if missing:
            raise ValueError(f"{self.place}: the key {missing[0]!r} is missing.")
        unknown = sorted(set(self.value) - set(required) - set(optional))
        if unknown:
            raise ValueError(f"{self.place}: the key {unknown[0]!r:.60} is not known.")
        return {key: Reader(value, f"{self.place}.{key}") for key, value in self.value.items()}

    def entries(self) -> dict[str, "Reader"]:
        """Return the values of an object by key; any keys are allowed."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        return {key: Reader(value, f"{self.place}[{key!r}]") for key, value in self.value.items()}

    def items(self, length: int | None = None) -> list["Reader"]:
        """Return the items of a list, which must have ``length`` items if given."""
        if not isinstance(self.value, list):
            self.fail("a list")
        if length is not None and len(self.value) != length:
            raise ValueError(f"{self.place}: expected {length} items, found {len(self.value)}.")
        return [Reader(value, f"{self.place}[{k}]") for k, value in enumerate(self.value)]

    def number(self, *, negative: bool = True) -> float:
        """Return a finite number, which may be ``negative`` or not."""
        # A JSON number may be an integer that is too large for a float, or be written as 1e999.
        plain = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not plain or not abs(self.value) <= sys.float_info.max:
            self.fail("a finite number")
        if self.value < 0 and not negative:
            self.fail("a number that is not negative")
        return float(self.value)

    def integer(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            self.fail(f"an integer from {low} to {high}")
        return int(self.value)

    def boolean(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return bool(self.value)

    def text(self) -> str:
        """Return a string."""
        if not isinstance(self.value, str):
            self.fail("a string")
        return str(self.value)

    def label(self) -> str | int | float | bool | None:
        """Return a level of a category: a string, a finite number, true, false or null."""
        value = self.value
        if value is None or isinstance(value, (bool, str)):
            return value
        if not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
            self.fail("a string, a finite number, true, false or null")
        return value

    def choice(self, *allowed: str) -> str:
        """Return one of the allowed strings."""
        if self.value not in allowed or not isinstance(self.value, str):
            self.fail(" or ".join(repr(name) for name in allowed))
        return str(self.value)

    def optional(self) -> "Reader | None":
        """Return None if the value is null, else this reader."""
        return None if self.value is None else self

    def numbers(self, length: int | None = None, *, negative: bool = True) -> Floats:
        """Return a list of finite numbers, which may be ``negative`` or not, as an array of shape (length,)."""
        return np.array([item.number(negative=negative) for item in self.items(length)], dtype=np.float64)

    def ascending(self) -> Floats:
        """Return a list of one or more strictly ascending numbers as an array."""
        values = self.numbers()
        if len(values) == 0 or np.any(values[1:] <= values[:-1]):  # differences could overflow
            self.fail("one or more ascending numbers")
        return values
