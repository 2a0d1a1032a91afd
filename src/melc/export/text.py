"""Export of a fitted model as text.

If the model has a single line, the text is a rule: the weights of the features and the class of every interval between
thresholds. Otherwise it has the lines, and what they add to the log-odds. With ``odds`` it also has the numbers from
which predictions are computed.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from melc.export.text_parts import (
    Place,
    Style,
    counts_of,
    heading_of_weights,
    level_names,
    names_in_sum,
    number_text,
    numbers_apart,
    padded_rows,
    places_of,
    points_sentences,
    quoted,
    quoted_level,
    weight_rows,
)
from melc.model.curve import Curve
from melc.model.index_card import index_card_of
from melc.model.line import Line, LogOdds, decides_alone, log_odds_of
from melc.model.names import feature_names_of, minor_lines_sentence, numbers_by_importance, terms_of
from melc.model.units import fitted_model

# Features that are named in the sum of one line of several; of further ones their number is given.
_MOST_FEATURES_IN_SUM = 4
_FEW_DIGITS = 3

_POINTS = "z and {} at the points of the curve, which is straight between them and constant beyond the outermost:"
_POINTS_OF_CURVES = (
    "z and what the line adds for each class at the points of its curves, which are straight between them and constant "
    "beyond the outermost:"
)
_LEVELS, _LEVELS_OF_CURVES = "{} at each level:", "what the line adds for each class at each level:"
_TWO_CLASSES = "Where the log-odds are above 0, {} is predicted, elsewhere {}."
_SEVERAL_CLASSES = "The class with the largest log-odds is predicted, the first of equals."
_PROBABILITY = "The probability of {} is 1 / (1 + exp(-log-odds))."
_PROBABILITIES = "The probabilities are exp(log-odds) of each class, divided by their sum."
_UNCERTAIN = "uncertain: the curve is nowhere in the interval two standard errors from 0."


def export_text(
    model: Any,
    feature_names: Any = None,
    *,
    style: Literal["rule", "card"] = "rule",
    digits: int | None = None,
    odds: bool = False,
) -> str:
    """Return a fitted model as text.

    If the model has a single line, such as a :class:`melc.MELC` of two classes, the text is a rule: the weights of the
    features, whose weighted sum is the projection z, and the class of every interval of z. The features are sorted by
    their contribution, weight × standard deviation.

    If the model has several lines, such as most :class:`melc.AdditiveMELC` models and a :class:`melc.MELC` of more than
    two classes, the text describes the lines, the most important first: the weighted sum z, and the class that the line
    favours in every interval of z. With two classes, it also shows the smallest and the largest value that the line
    adds to the log-odds in the interval, and "uncertain" if the curve is nowhere two standard errors away from zero.
    Lines are numbered from 1, in the order of ``lines_``. For minor lines (``other_features=True``), only the features
    are named, at the end.

    The line of a single category has a row for each level, and the line of a column with missing values has a row for
    these. Categories in sums have points for each level: weight × score. Thresholds of dates are dates, and those of
    ordered categories are levels. With ``digits``, or with several lines, only some of many levels are shown.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; for a search, the best estimator is
        used.
    feature_names : list of str, default=None
        Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
    style : {"rule", "card"}, default="rule"
        "card": an index card, for a model of two classes with ``whole_weights``: the score as a sum of whole multiples,
        the points of levels, and the class of every interval of scores, with the number of training rows of this class.
        Thresholds are rounded by up to 0.3 % of the range of the scores, so rows very close to a threshold may be
        classified differently than by the model. ``digits`` and ``odds`` are ignored.
    digits : int, default=None
        Significant digits of the numbers. Thresholds keep more digits where they would otherwise coincide. By default
        numbers are written in full, so that the printed rule predicts what the model predicts, up to the rounding of
        the sum; the text of several lines, which does not suffice for predictions without ``odds``, has three digits.
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
    >>> model = MELC(max_features=1, whole_weights=5, random_state=0).fit(X, y)
    >>> print(export_text(model, ["pulse", "noise"], style="card"))
    score = 1 × pulse
      below −0.96     ill    (56 of 58)
      −0.96 to 0.98   well   (195 of 195)
      0.98 or more    ill    (47 of 47)
    """
    model = fitted_model(model)
    names = [quoted(name) for name in feature_names_of(model, feature_names)]
    if style not in ("rule", "card"):
        raise ValueError(f'style={style!r} is not known; choose "rule" or "card".')
    if style == "card":
        return _card(model, names)
    labels = [quoted(str(label)) for label in model.classes_]
    # With odds, the curves of more than two classes are written like those of several lines.
    rule = decides_alone(model) and (len(labels) == 2 or not odds)
    if digits is None and not odds and not rule:
        digits = _FEW_DIGITS
    written = Style(names, labels, digits, odds)
    parts = _rule(model, written) if rule else _sum_of_lines(model, written)
    return "\n\n".join([*parts, *_closing(written, rule)])


def _card(model: Any, names: list[str]) -> str:
    """Return a model as an index card, in characters: the score, the classes by its intervals, and the points."""
    card = index_card_of(model, names, quoted, quoted_level)
    rows = padded_rows([[each.name for each in card.intervals], [each.label for each in card.intervals]])
    intervals = [f"  {'   '.join(row)}   {each.counts}" for row, each in zip(rows, card.intervals, strict=True)]
    points = [f"  {term.name}: {'; '.join(term.points_by_level)}" for term in card.terms if term.points]
    notes = [f"  {note}" for term in card.terms for note in term.notes]
    return "\n".join([card.formula, *intervals, *points, *notes])


def _closing(style: Style, rule: bool) -> list[str]:
    """Return the paragraph that says how the class is decided; a rule needs none."""
    if rule and not style.odds:
        return []
    if len(style.labels) == 2:
        decided, probability = _TWO_CLASSES.format(*style.labels[::-1]), _PROBABILITY.format(style.labels[1])
    else:
        decided, probability = _SEVERAL_CLASSES, _PROBABILITIES
    return [f"{decided}\n{probability}" if style.odds else decided]


def _rule(model: Any, style: Style) -> list[str]:
    """Return the only line of a model as a rule: weights, the largest contribution first, and intervals."""
    (line,) = model.lines_
    if line.levels:
        lines = [f"class by the level of {style.names[line.features[0]]}, with the training rows:"]
    else:
        lines = [heading_of_weights(model, line, style), *weight_rows(model, line, style, 2)]
        lines.append("class by the interval of z, with the training rows in it:")
    places = places_of(model, line, line.decisive, style)
    lines += _place_rows(places, [[_of_class(place, style) for place in places]], style)
    if style.odds:
        lines += _point_rows(model, line, line.decisive, f"the log-odds of {style.labels[1]}", style)
    return ["\n".join(lines)]


def _sum_of_lines(model: Any, style: Style) -> list[str]:
    """Return a heading and one block of text for each line, by descending importance, minor ones last."""
    formulas = log_odds_of(model)
    shown = [k for k in numbers_by_importance(model) if style.odds or not model.lines_[k - 1].minor]
    added = f"what {len(shown)} lines add" if len(shown) != 1 else "what 1 line adds"
    blocks = [_line_rows(model, k, [each.curves[k - 1] for each in formulas], style) for k in shown]
    parts = [_heading(formulas, added, style), *("\n".join(block) for block in blocks)]
    minor = "" if style.odds else minor_lines_sentence(model, style.names)
    uncertain = any(", uncertain" in row for block in blocks for row in block[1:])
    return parts + ([minor] if minor else []) + ([_UNCERTAIN] if uncertain else [])


def _heading(formulas: list[LogOdds], added: str, style: Style) -> str:
    """Return what the log-odds are: of the second of two classes, or of each of more."""
    constants = [number_text(formula.constant, style.digits) for formula in formulas]
    if len(constants) == 1:
        return f"Log-odds of {style.labels[1]} against {style.labels[0]}: {constants[0]} + {added}"
    rows = [f"  {'  '.join(row)}" for row in padded_rows([style.labels, constants])]
    return "\n".join([f"Log-odds of each class: a constant + {added}. The constants:", *(row.rstrip() for row in rows)])


def _line_rows(model: Any, number: int, curves: list[Curve], style: Style) -> list[str]:
    """Return the text of one line of several: what z is, and what the line says in each interval or at each level."""
    line = model.lines_[number - 1]
    heading = f"Line {number}, importance {number_text(line.importance, style.digits or _FEW_DIGITS)}: "
    places = places_of(model, line, curves, style)
    speaks = [f"for {_of_class(place, style)}" if place.code is not None else "" for place in places]
    columns = [[text + ", uncertain" * place.uncertain for text, place in zip(speaks, places, strict=True)]]
    if len(curves) == 1:
        columns.insert(0, [f"adds {_range(place, style)}" for place in places])
    rows = _place_rows(places, columns, style)
    points = _point_rows(model, line, curves, "what the line adds", style) if style.odds else []
    if line.levels:
        return [f"{heading}the level of {style.names[line.features[0]]}", *rows, *points]
    if style.odds:
        weights = weight_rows(model, line, style, 4)
        return [f"{heading}{heading_of_weights(model, line, style)}", *weights, *rows, *points]
    names = names_in_sum(model.columns_, style) if len(line.features) > 1 else dict(enumerate(style.names))
    terms = terms_of(line, names, _MOST_FEATURES_IN_SUM, style.digits)
    points = points_sentences(model, line, style, _MOST_FEATURES_IN_SUM + 1)
    return [f"{heading}z = {' '.join(terms)}", *rows, *points]


def _of_class(place: Place, style: Style) -> str:
    return "" if place.code is None else style.labels[place.code]


def _range(place: Place, style: Style) -> str:
    """Return what a line adds at a place: from the least to the most, or one number."""
    least, most = (number_text(value, style.digits) for value in (place.least, place.most))
    return f"{least} to {most}" if place.is_interval else least


def _place_rows(places: list[Place], columns: list[list[str]], style: Style) -> list[str]:
    """Return one line of text per interval or level: its name, the given columns, and the training rows in it."""
    counts = [f"({counts_of(place.counts, style.labels)})" for place in places]
    table = padded_rows([[place.name for place in places], *columns])
    return [f"  {'   '.join(row)}  {count}" for row, count in zip(table, counts, strict=True)]


def _point_rows(model: Any, line: Line, curves: Sequence[Curve], what: str, style: Style) -> list[str]:
    """Return the points of the curves of a line as a table; of several curves, with the classes in its first row.

    Of a category it has the levels, and what holds for any other level; of a column with missing values, what holds
    for these.
    """
    if line.levels:
        j = int(line.features[0])
        names, missing = level_names(model.columns_, j), "" if model.columns_.categories[j].others else "(any other)"
        what = _LEVELS.format(what) if len(curves) == 1 else _LEVELS_OF_CURVES
    else:
        names, missing = numbers_apart(curves[0].knots, np.inf, style.digits), "missing"
        what = _POINTS.format(what) if len(curves) == 1 else _POINTS_OF_CURVES
    values = [curve.log_odds.tolist() for curve in curves]
    if line.reads_codes and missing:
        names, values = [*names, missing], [[*each, curve.missing] for each, curve in zip(values, curves, strict=True)]
    columns = [names, *([number_text(value, style.digits) for value in each] for each in values)]
    if len(curves) > 1:
        head = "level" if line.levels else "z"
        columns = [[name, *column] for name, column in zip([head, *style.labels], columns, strict=True)]
    return [f"  {what}", *(f"    {'  '.join(row).rstrip()}" for row in padded_rows(columns))]
