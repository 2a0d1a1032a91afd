"""The names and contributions of features in outputs and warnings."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.line import Line

# A pattern for quoted names and values in a message, as repr writes them; an apostrophe within a word is no quote.
QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
# The width, in characters, to which a column of names is padded at most; longer names stick out.
_WIDEST_COLUMN = 60
# Features of minor lines that a sentence names.
_MINOR_NAMED = 12


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
    """Return the index of a label among the classes; raise ``ValueError``, naming the argument, if it is unknown.

    Dates may also be given as Python writes them or as text.
    """
    are_dates = classes.dtype.kind == "M"
    known = list(classes) if are_dates else classes.tolist()  # which makes integers of some dates
    found = [k for k, each in enumerate(known) if each == label]
    if not found and are_dates:
        known = np.datetime_as_string(classes, unit="auto").tolist()
        with suppress(TypeError, ValueError):
            found = np.flatnonzero(classes == np.datetime64(label)).tolist()
    if not found:
        raise ValueError(f"{argument}={label!r} is not a class of the model; choose one of {known}.")
    return int(found[0])


def column_width(texts: Iterable[str]) -> int:
    """Return the width of a column of texts that begin with names: the longest, within reason.

    A single name of a thousand characters must not move the numbers beside all other names out of sight.
    """
    return min(_WIDEST_COLUMN, max(len(text) for text in texts))


def contributions_of(model: Any, line: Line) -> Floats:
    """Return weight × standard deviation of each feature in a line, shape (n_features,)."""
    return np.asarray(line.direction * model.feature_spread_, dtype=np.float64)


def found_for(model: Any, k: int) -> str | None:
    """Return the name of the class that the k-th direction was found for, or None if it was found for all classes.

    A ``MELC`` with more than two classes, which alone has ``coef_``, has a direction for each class.
    """
    return str(model.classes_[k]) if len(model.classes_) > 2 and hasattr(model, "coef_") else None


def line_name(model: Any, k: int) -> str:
    """Return the number of the k-th line from 1, and the class that it was found for, if it was found for one."""
    label = found_for(model, k)
    return f"line {k + 1}" + ("" if label is None else f" (found for {label})")


def largest_first(values: Floats) -> NDArray[np.int64]:
    """Return the indices of the nonzero numbers, by decreasing absolute value; shape (n_nonzero,)."""
    order = np.argsort(-np.abs(values), kind="stable")
    return order[values[order] != 0]


def n_named(n: int, most: int) -> int:
    """Return how many of n things are named: ``most``, or all, if only one is left; to count it takes as much room."""
    return n if n <= most + 1 else most


def numbers_by_importance(model: Any) -> list[int]:
    """Return the numbers of the lines from 1, the most important first, and minor ones after all others."""
    lines = model.lines_
    return [k + 1 for k in sorted(range(len(lines)), key=lambda k: (lines[k].minor, -lines[k].importance))]


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
    shown = features[: n_named(len(features), most)]
    terms = []
    for j in shown:
        weight = abs(float(line.direction[j]))
        written = repr(weight) if digits is None else f"{weight:.{digits}g}"
        terms.append(f"{'-' if line.direction[j] < 0 else '+'} {written} {names[j]}")
    terms[0] = terms[0].removeprefix("+ ") if terms[0].startswith("+") else f"-{terms[0].removeprefix('- ')}"
    hidden = len(features) - len(shown)
    return [*terms, f"+ {hidden} more"] if hidden else terms


def minor_lines_sentence(model: Any, names: Sequence[str]) -> str:
    """Return a sentence about the minor lines, the most important first, or nothing if there are none.

    ``names`` are the names of all features as they are to be written.
    """
    lines = [model.lines_[k - 1] for k in numbers_by_importance(model)]
    features = list(dict.fromkeys(j for line in lines if line.minor for j in by_contribution(line)))
    if not features:
        return ""
    shown = features[: n_named(len(features), _MINOR_NAMED)]
    written = ", ".join([*(names[j] for j in shown), *(["…"] if len(shown) < len(features) else [])])
    return f"and small curves of {len(features)} other feature{'s' if len(features) > 1 else ''}: {written}"
