"""Export of a fitted model as text.

If every class has a single line, the text is a rule: the weights of the features and the class of every interval
between thresholds. Otherwise it has the lines of each class, and what they add to the log-odds. With ``odds`` it also
has the numbers from which predictions are computed.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.curve import Curve
from melc.model.line import Line, LogOdds, decides_alone, log_odds_of
from melc.model.names import by_contribution, column_width, feature_names_of, terms_of
from melc.model.units import fitted_model

# Features that are named in the sum of one line of several; of further ones their number is given.
_MOST_NAMED = 4
_FEW_DIGITS, _ALL_DIGITS = 3, 17
# Rounding of thresholds, as a part of the distance of neighbouring ones.
_ROUNDING = 0.1

_WEIGHTS = "z is the sum of weight × feature:"
_POINTS = "z and {value} at the points of the curve, which is straight between them and constant beyond the outermost:"
_TWO_CLASSES = "Where the log-odds are above 0, {} is predicted, elsewhere {}."
_SEVERAL_CLASSES = "The class with the largest log-odds is predicted, the first of equals."
_SEVERAL_RULES = (
    "Where one rule alone names its class, that class is predicted. Where none or several do, the best odds decide: "
    "odds=True (--odds on the command line) adds the numbers to compute them."
)
_PROBABILITY = "The probability of {} is 1 / (1 + exp(-log-odds))."
_PROBABILITIES = "The probabilities are 1 / (1 + exp(-log-odds)) of each class, divided by their sum."


def export_text(model: Any, feature_names: Any = None, *, digits: int | None = None, odds: bool = False) -> str:
    """Return a fitted model as text.

    If every class has a single line, as always in a :class:`melc.MELC`, the text is a rule: the weights of the
    features, whose weighted sum is the projection z, and the class of every interval of z. The features are in the
    order of their contribution, weight × standard deviation. With more than two classes there is one rule per class
    against the rest. If exactly one rule gives its class, that class is predicted; otherwise the class with the best
    odds.

    If a class has several lines, as mostly in an :class:`melc.AdditiveMELC`, the text has the lines of each class, the
    most important first: what z is, and the least and the most that the line adds to the log-odds in every interval
    of z. Lines are numbered from 1, in the order of ``lines_``.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
        used.
    feature_names : list of str, default=None
        Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
    digits : int, default=None
        Significant digits of the numbers. Thresholds have more where these do not tell them apart. By default numbers
        are written in full, so that the printed rule predicts what the model predicts, up to the rounding of the sum;
        the text of several lines, from which predictions cannot be computed without ``odds``, then has three.
    odds : bool, default=False
        Whether to add all weights, all points of the curves, and the formulas. The text is then sufficient to compute
        every prediction and its probability.

    Returns
    -------
    text : str

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import export_text
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(np.abs(X[:, 0]) < 1, "well", "ill")
    >>> model = MELC(n_init=1, random_state=0).fit(X, y)
    >>> print(export_text(model, ["pulse", "noise"], digits=2))
    z is the sum of weight × feature:
         1  pulse
      0.01  noise
    class by the interval of z, with the training rows in it:
      z < -0.96           ill   (56 ill, 2 well)
      -0.96 <= z < 0.98   well  (0 ill, 195 well)
      0.98 <= z           ill   (47 ill, 0 well)
    """
    model = fitted_model(model)
    names = [_quoted(name) for name in feature_names_of(model, feature_names)]
    labels = [_quoted(str(label)) for label in model.classes_]
    rules = decides_alone(model)
    if digits is None and not odds and not rules:
        digits = _FEW_DIGITS
    style, parts = _Style(names, digits, odds), []
    for column, formula in enumerate(log_odds_of(model)):
        sides = _sides(labels, column)
        parts += _rule(model, formula, sides, style) if rules else _lines(model, formula, sides, style)
    return "\n\n".join([*parts, *_closing(labels, rules, odds)])


@dataclass(frozen=True)
class _Style:
    """How the text is written: the names of the features, the digits, and whether with the numbers of the odds."""

    names: list[str]
    digits: int | None
    odds: bool


def _sides(labels: list[str], column: int) -> list[str]:
    """Return the names of the others and of the class whose log-odds are in a column."""
    if len(labels) == 2:
        return labels
    return ["rest", '"rest"' if labels[column] == "rest" else labels[column]]


def _closing(labels: list[str], rules: bool, odds: bool) -> list[str]:
    """Return the paragraph that says how the class is decided; a rule of two classes needs none."""
    if rules and not odds:
        return [_SEVERAL_RULES] if len(labels) > 2 else []
    if len(labels) == 2:
        decided, probability = _TWO_CLASSES.format(*labels[::-1]), _PROBABILITY.format(labels[1])
    else:
        decided, probability = _SEVERAL_CLASSES, _PROBABILITIES
    return [f"{decided}\n{probability}" if odds else decided]


def _rule(model: Any, formula: LogOdds, sides: list[str], style: _Style) -> list[str]:
    """Return the rule of a class that has a single line: weights, the largest contribution first, and intervals."""
    line, curve = model.lines_[formula.lines[0]], formula.curves[0]
    heading = [f"Class {sides[1]} against the rest"] if len(model.classes_) > 2 else []
    lines = [*heading, _WEIGHTS, *_weights(line, style, 2)]
    lines.append("class by the interval of z, with the training rows in it:")
    classes = [sides[code] for code in curve.codes]
    lines += _intervals(line, curve, [classes], sides, style)
    return ["\n".join(lines + _points(curve, f"the log-odds of {sides[1]}", style))]


def _lines(model: Any, formula: LogOdds, sides: list[str], style: _Style) -> list[str]:
    """Return a heading and one block of text per line of a class, by descending importance."""
    numbered = [(model.lines_[k], k, curve) for k, curve in zip(formula.lines, formula.curves, strict=True)]
    numbered.sort(key=lambda each: -each[0].importance)
    against = "the rest" if len(model.classes_) > 2 else sides[0]
    added = f"what {len(numbered)} lines add" if len(numbered) > 1 else "what 1 line adds"
    heading = f"Log-odds of {sides[1]} against {against}: {_number(formula.constant, style.digits)} + {added}"
    return [heading, *("\n".join(_line(line, k, curve, sides, style)) for line, k, curve in numbered)]


def _line(line: Line, index: int, curve: Curve, sides: list[str], style: _Style) -> list[str]:
    """Return the text of one line of several: what z is, and what is added in each of its intervals."""
    heading = f"Line {index + 1}, importance {_number(line.importance, style.digits or _FEW_DIGITS)}: "
    ranges = [f"adds {_number(low, style.digits)} to {_number(high, style.digits)}" for low, high in curve.ranges()]
    classes = [f"for {sides[code]}" for code in curve.codes]
    intervals = _intervals(line, curve, [ranges, classes], sides, style)
    if not style.odds:
        terms = terms_of(line, dict(enumerate(style.names)), _MOST_NAMED, style.digits)
        return [f"{heading}z = {' '.join(terms)}", *intervals]
    weights = _weights(line, style, 4)
    return [f"{heading}{_WEIGHTS}", *weights, *intervals, *_points(curve, "what the line adds", style)]


def _weights(line: Line, style: _Style, indent: int) -> list[str]:
    """Return the weights of the features that have one, the largest contribution first, one line of text each."""
    features = by_contribution(line)
    shown = [_number(line.direction[j], style.digits) for j in features]
    width = max(len(text) for text in shown)
    return [f"{'':{indent}}{text:>{width}}  {style.names[j]}" for text, j in zip(shown, features, strict=True)]


def _intervals(line: Line, curve: Curve, columns: list[list[str]], sides: list[str], style: _Style) -> list[str]:
    """Return one line of text per interval: its limits, the given columns, and the training rows in it."""
    thresholds = numbers_apart(curve.thresholds, float(np.ptp(curve.knots)), style.digits)
    columns = [_intervals_of(thresholds), *columns]
    counts = [f"({_counts_of(row, sides)})" for row in line.counts]
    return [f"  {'   '.join(row)}  {count}" for row, count in zip(_aligned(columns), counts, strict=True)]


def _aligned(columns: list[list[str]]) -> list[Sequence[str]]:
    """Return the rows of a table, each column filled up to its width."""
    widths = [column_width(column) for column in columns]
    return [[f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in zip(*columns, strict=True)]


def _points(curve: Curve, value: str, style: _Style) -> list[str]:
    """Return the points of a curve, one line of text each, if they are asked for."""
    if not style.odds:
        return []
    knots = numbers_apart(curve.knots, np.inf, style.digits)
    values = [_number(each, style.digits) for each in curve.log_odds]
    points = [f"    {z}  {each}" for z, each in zip(knots, values, strict=True)]
    return [f"  {_POINTS.format(value=value)}", *points]


def _intervals_of(thresholds: Sequence[str]) -> list[str]:
    """Return the intervals as text. A threshold belongs to the interval above it."""
    if not thresholds:
        return ["any z"]
    middle = [f"{a} <= z < {b}" for a, b in pairwise(thresholds)]
    return [f"z < {thresholds[0]}", *middle, f"{thresholds[-1]} <= z"]


def _number(value: float, digits: int | None) -> str:
    """Return a number with so many significant digits, or in full."""
    return repr(float(value)) if digits is None else f"{value:.{digits}g}"


def numbers_apart(values: Floats, width: float, digits: int | None) -> list[str]:
    """Return ascending numbers with so many significant digits, or more if neighbours would come close by rounding.

    They are rounded by no more than a tenth of the smallest distance of neighbours, and of ``width``.
    """
    most = _ROUNDING * min([*np.diff(values), width])
    for more in range(_ALL_DIGITS if digits is None else digits, _ALL_DIGITS):
        written = [_number(value, more) for value in values]
        if all(abs(float(text) - value) <= most for text, value in zip(written, values, strict=True)):
            return written
    return [_number(value, None) for value in values]


def _quoted(name: str) -> str:
    """Return the name, in quotes if it could be confused with other parts of the text."""
    calm = name.isprintable() and name == name.strip() and "  " not in name
    plain = name and calm and not set(name) & set('"()<>,')
    if plain:
        return name
    # JSON escapes only some of the characters that a terminal would obey, and no marks of direction.
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(name, ensure_ascii=False))


def _counts_of(counts: Floats, labels: Sequence[str]) -> str:
    """Return the number (or total weight) of rows of each class, such as ``3 low, 25 high``."""
    # "25 1" would be two numbers.
    of = " of class" if any(label[:1].isdigit() or label[:1] in "-+." for label in labels) else ""
    return ", ".join(f"{count:.6g}{of} {label}" for count, label in zip(counts, labels, strict=True))
