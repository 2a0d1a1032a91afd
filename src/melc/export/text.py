"""Export of a fitted model as text.

If the model has a single line, the text is a rule: the weights of the features and the class of every interval between
thresholds. Otherwise it has the lines, and what they add to the log-odds. With ``odds`` it also has the numbers from
which predictions are computed.
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
from melc.model.names import (
    by_contribution,
    column_width,
    feature_names_of,
    largest_first,
    minor_lines_sentence,
    terms_of,
)
from melc.model.units import fitted_model

# Features that are named in the sum of one line of several; of further ones their number is given.
_MOST_FEATURES_IN_SUM = 4
# Classes whose rows in an interval are counted one by one.
_MOST_COUNTS = 4
_FEW_DIGITS, _ALL_DIGITS = 3, 17
# Rounding of thresholds, as a part of the distance of neighbouring ones.
_THRESHOLD_ROUNDING = 0.1

# An interval is called uncertain if the curve is nowhere in it so many standard errors from zero.
_STANDARD_ERRORS = 2.0

_WEIGHTS = "z is the sum of weight × feature:"
_POINTS = "z and {} at the points of the curve, which is straight between them and constant beyond the outermost:"
_POINTS_OF_CURVES = (
    "z and what the line adds for each class at the points of its curves, which are straight between them and constant "
    "beyond the outermost:"
)
_TWO_CLASSES = "Where the log-odds are above 0, {} is predicted, elsewhere {}."
_SEVERAL_CLASSES = "The class with the largest log-odds is predicted, the first of equals."
_PROBABILITY = "The probability of {} is 1 / (1 + exp(-log-odds))."
_PROBABILITIES = "The probabilities are exp(log-odds) of each class, divided by their sum."
_UNCERTAIN = "uncertain: the curve is nowhere in the interval two standard errors from 0."


def export_text(model: Any, feature_names: Any = None, *, digits: int | None = None, odds: bool = False) -> str:
    """Return a fitted model as text.

    If the model has a single line, as always a :class:`melc.MELC` of two classes, the text is a rule: the weights of
    the features, whose weighted sum is the projection z, and the class of every interval of z. The features are in the
    order of their contribution, weight × standard deviation.

    If the model has several lines, as mostly an :class:`melc.AdditiveMELC`, and a :class:`melc.MELC` of more than two
    classes, the text has these lines, the most important first: what z is, and the class that the line speaks for in
    every interval of z. With two classes there is also the least and the most that the line adds to the log-odds in the
    interval, and "uncertain" where the curve is nowhere two standard errors from zero. Lines are numbered from 1, in
    the order of ``lines_``. Of minor lines (``other_features=True``), only the features are named, in the end.

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
    # With odds, the curves of more than two classes are written like those of several lines.
    rule = decides_alone(model) and (len(labels) == 2 or not odds)
    if digits is None and not odds and not rule:
        digits = _FEW_DIGITS
    style = _Style(names, labels, digits, odds)
    parts = _rule(model, style) if rule else _sum_of_lines(model, style)
    return "\n\n".join([*parts, *_closing(style, rule)])


@dataclass(frozen=True)
class _Style:
    """How the text is written: names of features and classes, digits, and whether with the numbers of the odds."""

    names: list[str]
    labels: list[str]
    digits: int | None
    odds: bool


def _closing(style: _Style, rule: bool) -> list[str]:
    """Return the paragraph that says how the class is decided; a rule needs none."""
    if rule and not style.odds:
        return []
    if len(style.labels) == 2:
        decided, probability = _TWO_CLASSES.format(*style.labels[::-1]), _PROBABILITY.format(style.labels[1])
    else:
        decided, probability = _SEVERAL_CLASSES, _PROBABILITIES
    return [f"{decided}\n{probability}" if style.odds else decided]


def _rule(model: Any, style: _Style) -> list[str]:
    """Return the only line of a model as a rule: weights, the largest contribution first, and intervals."""
    (line,) = model.lines_
    classes = [style.labels[code] for code in line.codes]
    lines = [_WEIGHTS, *_weight_rows(line, style, 2), "class by the interval of z, with the training rows in it:"]
    lines += _interval_rows(line, [classes], style)
    if style.odds:
        lines += _point_rows(line.decisive, _POINTS.format(f"the log-odds of {style.labels[1]}"), style)
    return ["\n".join(lines)]


def _sum_of_lines(model: Any, style: _Style) -> list[str]:
    """Return a heading and one block of text for each line, by descending importance, minor ones last."""
    formulas = log_odds_of(model)
    numbered = [(line, k, [each.curves[k] for each in formulas]) for k, line in enumerate(model.lines_)]
    numbered.sort(key=lambda each: (each[0].minor, -each[0].importance))
    shown = [each for each in numbered if style.odds or not each[0].minor]
    added = f"what {len(shown)} lines add" if len(shown) != 1 else "what 1 line adds"
    blocks = [_line_rows(line, k, curves, style) for line, k, curves in shown]
    parts = [_heading(formulas, added, style), *("\n".join(block) for block in blocks)]
    minor = "" if style.odds else minor_lines_sentence(model, style.names)
    uncertain = any(", uncertain" in row for block in blocks for row in block[1:])
    return parts + ([minor] if minor else []) + ([_UNCERTAIN] if uncertain else [])


def _heading(formulas: list[LogOdds], added: str, style: _Style) -> str:
    """Return what the log-odds are: of the second of two classes, or of each of more."""
    constants = [_number(formula.constant, style.digits) for formula in formulas]
    if len(constants) == 1:
        return f"Log-odds of {style.labels[1]} against {style.labels[0]}: {constants[0]} + {added}"
    rows = [f"  {'  '.join(row)}" for row in _aligned([style.labels, constants])]
    return "\n".join([f"Log-odds of each class: a constant + {added}. The constants:", *(row.rstrip() for row in rows)])


def _line_rows(line: Line, index: int, curves: list[Curve], style: _Style) -> list[str]:
    """Return the text of one line of several: what z is, and what the line says in each of its intervals."""
    heading = f"Line {index + 1}, importance {_number(line.importance, style.digits or _FEW_DIGITS)}: "
    columns = [[f"for {style.labels[code]}" for code in line.codes]]
    if len(curves) == 1:
        ranges = [f"adds {_number(a, style.digits)} to {_number(b, style.digits)}" for a, b in curves[0].ranges()]
        doubts = [", uncertain" if doubt else "" for doubt in _uncertain(line)]
        columns = [ranges, [text + doubt for text, doubt in zip(columns[0], doubts, strict=True)]]
    intervals = _interval_rows(line, columns, style)
    if not style.odds:
        terms = terms_of(line, dict(enumerate(style.names)), _MOST_FEATURES_IN_SUM, style.digits)
        return [f"{heading}z = {' '.join(terms)}", *intervals]
    what = _POINTS.format("what the line adds") if len(curves) == 1 else _POINTS_OF_CURVES
    return [f"{heading}{_WEIGHTS}", *_weight_rows(line, style, 4), *intervals, *_point_rows(curves, what, style)]


def _uncertain(line: Line) -> list[bool]:
    """Return for each interval of a line with one curve whether the curve is nowhere in it clearly away from zero."""
    if not line.errors:
        return [False] * len(line.codes)
    curve = line.decisive[0]
    clear = np.abs(curve.log_odds) > _STANDARD_ERRORS * line.errors[0]
    within = np.searchsorted(line.thresholds, curve.knots, side="right")
    return [not clear[within == i].any() for i in range(len(line.codes))]


def _weight_rows(line: Line, style: _Style, indent: int) -> list[str]:
    """Return the weights of the features that have one, the largest contribution first, one line of text each."""
    features = by_contribution(line)
    shown = [_number(line.direction[j], style.digits) for j in features]
    width = max(len(text) for text in shown)
    return [f"{'':{indent}}{text:>{width}}  {style.names[j]}" for text, j in zip(shown, features, strict=True)]


def _interval_rows(line: Line, columns: list[list[str]], style: _Style) -> list[str]:
    """Return one line of text per interval: its limits, the given columns, and the training rows in it."""
    thresholds = numbers_apart(line.thresholds, float(np.ptp(line.curves[0].knots)), style.digits)
    columns = [_intervals_of(thresholds), *columns]
    counts = [f"({_counts_of(row, style.labels)})" for row in line.counts]
    return [f"  {'   '.join(row)}  {count}" for row, count in zip(_aligned(columns), counts, strict=True)]


def _aligned(columns: list[list[str]]) -> list[Sequence[str]]:
    """Return the rows of a table, each column filled up to its width."""
    widths = [column_width(column) for column in columns]
    return [[f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)] for row in zip(*columns, strict=True)]


def _point_rows(curves: Sequence[Curve], what: str, style: _Style) -> list[str]:
    """Return the points of the curves of a line as a table; of several curves, with the classes in its first row."""
    columns = [numbers_apart(curves[0].knots, np.inf, style.digits)]
    columns += [[_number(each, style.digits) for each in curve.log_odds] for curve in curves]
    if len(curves) > 1:
        columns = [[name, *column] for name, column in zip(["z", *style.labels], columns, strict=True)]
    return [f"  {what}", *(f"    {'  '.join(row).rstrip()}" for row in _aligned(columns))]


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
    most = _THRESHOLD_ROUNDING * min([*np.diff(values), width])
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
    """Return the number (or total weight) of rows of each class, such as ``3 low, 25 high``.

    Of more than two classes, those without rows are left out, the most frequent come first, and of many the others are
    added up.
    """
    if len(labels) > 2 and not counts.any():
        return "no rows"
    # "25 1" would be two numbers.
    of = " of class" if any(label[:1].isdigit() or label[:1] in "-+." for label in labels) else ""
    order = np.arange(2) if len(labels) == 2 else largest_first(counts)
    # Naming one more takes no more room than counting it with the others.
    shown = order if len(order) <= _MOST_COUNTS + 1 else order[:_MOST_COUNTS]
    parts = [f"{counts[k]:.6g}{of} {labels[k]}" for k in shown]
    hidden = order[len(shown) :]
    return ", ".join([*parts, f"{counts[hidden].sum():.6g} of {len(hidden)} other classes"] if len(hidden) else parts)
