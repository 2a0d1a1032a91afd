"""The data of a page as JSON that may stand in a script element, with its arrays of numbers in few bytes."""

import base64
import json
import re
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.places import Scale

# Shorter lists of numbers are written as such.
_FEW = 12
_LONGEST_NAME = 80
# Characters that reverse the direction of the text after them, and others that are not shown as they are: control
# characters, separators of lines, and halves of characters.
_MARKS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_DIRECTION_MARKS, _HIDDEN = (
    re.compile(f"[{_MARKS}]"),
    re.compile(f"[{_MARKS}\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"),
)


def page_json(data: Any) -> str:
    """Return data with NumPy arrays as JSON; equal arrays are stored once.

    The arrays are in the key ``arrays``, as base64 of little-endian doubles; in their places in the key ``data`` there
    is ``{"$": i}``. On pages of usual models that takes 15 to 35 % fewer bytes than decimal numbers.
    """
    places: dict[str, int] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, np.ndarray):
            stored = base64.b64encode(np.asarray(value, dtype="<f8").tobytes()).decode()
            return {"$": places.setdefault(stored, len(places))}
        if isinstance(value, (list, tuple)):
            return [plain(each) for each in value]
        return value.item() if isinstance(value, np.generic) else value

    text = json.dumps({"data": plain(data), "arrays": list(places)}, separators=(",", ":"), allow_nan=False)
    # Within a script element only these could end it, or begin a comment.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def with_arrays(value: Any) -> Any:
    """Return plain data with the long lists of floats as arrays."""
    if isinstance(value, dict):
        return {key: with_arrays(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) > _FEW and all(type(each) is float for each in value):
        return np.array(value)
    return [with_arrays(each) for each in value]


def in_thousandths(heights: Floats) -> list[list[int]]:
    """Return heights, of shape (n_rows, n), as whole numbers: thousandths of the highest."""
    thousandths: list[list[int]] = np.rint(1000 * heights / max(heights.max(), 1e-300)).astype(int).tolist()
    return thousandths


def scale_out(scale: Scale) -> dict[str, Any]:
    """Return what the places on a line mean, for the ticks of an axis."""
    return {"kind": scale.kind, "sign": scale.sign, "labels": [visible(label) for label in scale.labels]}


def has_direction_marks(text: str) -> bool:
    """Return whether a text has characters that show parts of it in another order than they are."""
    return _DIRECTION_MARKS.search(text) is not None


def visible(name: str) -> str:
    """Return a name as it can be shown: control characters and marks of direction escaped, and not too long.

    Examples
    --------
    >>> visible("dose\\n\\u202emg")
    'dose\\\\n\\\\u202emg'
    """
    if len(name) <= _LONGEST_NAME:
        return escaped(name)
    return f"{escaped(name[:_LONGEST_NAME])[: _LONGEST_NAME - 30]}…{escaped(name[-20:])}"


def escaped(text: str) -> str:
    """Return a text with control characters and marks of direction escaped."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
