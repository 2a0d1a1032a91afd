"""The names and contributions of features in outputs and warnings."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.line import Line

# A pattern for names of columns and other values in a message, as repr writes them; an apostrophe begins none.
QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
# Characters to which a column of names is filled up; longer names stand out.
_WIDEST = 60


def feature_names_of(model: Any, given: Any = None) -> list[str]:
    """Return the names ``given``, else the feature names seen in fit, else x0, x1, …"""
    n_features = model.n_features_in_
    if given is None:
        default = [f"x{i}" for i in range(n_features)]
        return [str(name) for name in getattr(model, "feature_names_in_", default)]
    if len(given) != n_features:
        raise ValueError(
            f"feature_names has {len(given)} names, but the model has {n_features} features: pass one name for each."
        )
    return [str(name) for name in given]


def class_index_of(classes: NDArray[Any], label: Any, argument: str) -> int:
    """Return the place of a label among the classes; raise ``ValueError`` with the name of the argument if none."""
    known = classes.tolist()
    if label not in known:
        raise ValueError(f"{argument}={label!r} is not a class of the model; choose one of {known}.")
    return int(known.index(label))


def column_width(texts: Iterable[str]) -> int:
    """Return the width of a column of texts that begin with names: the longest, within reason.

    A single name of a thousand characters does not move the numbers beside all others out of sight.
    """
    return min(_WIDEST, max(len(text) for text in texts))


def contributions_of(model: Any, line: Line) -> Floats:
    """Return weight × standard deviation of each feature in a line, shape (n_features,)."""
    return np.asarray(line.direction * model.feature_spread_, dtype=np.float64)


def largest_first(values: Floats) -> NDArray[np.int64]:
    """Return the indices of the numbers other than zero, of shape (n,), those of largest absolute value first."""
    order = np.argsort(-np.abs(values), kind="stable")
    return order[values[order] != 0]


def by_contribution(line: Line) -> list[int]:
    """Return the features of a line, those that contribute most first."""
    order = np.argsort(-line.feature_importances[line.features], kind="stable")
    return [int(j) for j in line.features[order]]


def terms_of(line: Line, names: Mapping[int, str], most: int, digits: int | None) -> list[str]:
    """Return the terms of the sum z, largest contribution first, such as ``["0.8 height", "- 0.6 age", "+ 3 more"]``.

    About ``most`` features are named. ``names`` are their names by index, ``digits`` the significant digits of the
    weights.
    """
    features = by_contribution(line)
    # Naming one more takes no more room than saying that there is one more.
    shown = features if len(features) <= most + 1 else features[:most]
    terms = []
    for j in shown:
        weight = abs(float(line.direction[j]))
        written = repr(weight) if digits is None else f"{weight:.{digits}g}"
        terms.append(f"{'-' if line.direction[j] < 0 else '+'} {written} {names[j]}")
    terms[0] = terms[0].removeprefix("+ ") if terms[0].startswith("+") else f"-{terms[0].removeprefix('- ')}"
    hidden = len(features) - len(shown)
    return [*terms, f"+ {hidden} more"] if hidden else terms
