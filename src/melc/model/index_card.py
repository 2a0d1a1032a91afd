"""The rule of a model as an index card: whole weights, points of levels, and thresholds, for use with a pencil."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.frames import Label
from melc.model.columns import Columns, level_name
from melc.model.line import Line
from melc.model.names import by_contribution
from melc.model.places import date_text

# Thresholds are rounded by at most this fraction of the range of scores, and this of the distance of two thresholds.
_ROUNDING, _ROUNDING_BETWEEN = 0.003, 0.1
_MOST_DECIMALS = 15
# Ratios whose relative difference from a whole number is below this, which is more than rounding, are whole.
_WHOLE = 1e-9

LabelText = Callable[[str], str]
LevelText = Callable[[Label | None], str]


@dataclass(frozen=True)
class ScoreInterval:
    """An interval of scores: its ends as texts (empty if it has none), the class, and the training rows in it.

    ``code`` is the number of the class, ``right`` the weight of its rows in the interval, ``total`` that of all rows.
    """

    low: str
    high: str
    code: int
    label: str
    right: float
    total: float

    @property
    def name(self) -> str:
        """The interval in words. A score at a threshold belongs to the interval above it."""
        if self.low and self.high:
            return f"{self.low} to {self.high}"
        return f"{self.low} or more" if self.low else f"below {self.high}" if self.high else "any score"

    @property
    def counts(self) -> str:
        """How many training rows of the interval are of its class, as text."""
        return f"({_plain_number(self.right)} of {_plain_number(self.total)})"


@dataclass(frozen=True)
class Term:
    """A summand of the score, as text: ``times`` a ``value``, or the ``points`` of a category.

    ``points`` are numbers of points, the largest first, and the levels that get them; empty if the value is a number.
    ``notes`` say what else has to be known about the value.
    """

    times: int
    value: str
    points: list[tuple[str, list[str]]]
    notes: list[str]

    @property
    def points_by_level(self) -> list[str]:
        """The points in words."""
        return [f"{text} for {', '.join(levels)}" for text, levels in self.points]

    @property
    def name(self) -> str:
        """The term by itself."""
        return f"points of {self.value}" if self.points else f"{self.times} × {self.value}".replace("-", "−", 1)

    @property
    def summand(self) -> str:
        """The term in a sum, with its sign."""
        return f"− {self.name.removeprefix('−')}" if self.times < 0 and not self.points else f"+ {self.name}"


@dataclass(frozen=True)
class IndexCard:
    """The parts of a card: the terms of the score, the largest contribution first, and the intervals of scores."""

    terms: list[Term]
    intervals: list[ScoreInterval]

    @property
    def formula(self) -> str:
        """The score as a sum."""
        first, *others = self.terms
        return " ".join([f"score = {first.name}", *(term.summand for term in others)])


def index_card_of(
    model: Any, names: Sequence[str], label_of: LabelText = str, level_of: LevelText = level_name
) -> IndexCard:
    """Return the card of a fitted model whose only line has whole weights.

    ``names`` are the features' names as they are to be written; ``label_of`` and ``level_of`` write labels and levels.
    """
    line, weights = _whole_weights(model)
    columns = model.columns_
    features = by_contribution(line)
    tables = {j: _levels_and_points(columns, j, weights[j] / line.units[j], level_of) for j in features}
    # The lowest level of a category gets zero points, so that points are never negative.
    fewest = {j: min(points for points, _ in table) for j, table in tables.items() if table}
    terms = []
    for j in features:
        times, unit = _simplest(int(weights[j]), float(line.units[j]))
        value = names[j] if j in fewest else _value_name(model, j, names[j], unit)
        points = _grouped([(points - fewest[j], name) for points, name in tables[j]])
        terms.append(Term(times, value, points, _notes(columns, j, names[j], line.units[j], level_of)))
    return IndexCard(terms, _intervals(model, line, weights, -sum(fewest.values()), label_of))


def _whole_weights(model: Any) -> tuple[Line, NDArray[np.int64]]:
    """Return the only line, and its whole weights, (d,), with the sign that makes most weights of numbers positive."""
    n_classes, line = len(model.classes_), model.lines_[0]
    if n_classes > 2:
        raise ValueError(
            f"A card is for two classes, and the model has {n_classes}: {model.classes_.tolist()[:5]}. Fit one class "
            "against the others, for example MELC(max_features=5, whole_weights=5).fit(X, y == label)."
        )
    weights = line.whole_weights
    if len(model.lines_) > 1 or weights is None:
        raise ValueError(
            "A card needs a single line with whole-number weights, which this model does not have. Fit "
            "MELC(max_features=5, whole_weights=5)."
        )
    signs = [int(np.sign(weights[j])) for j in line.features if j not in model.columns_.categories]
    return line, -weights if sum(signs) < 0 else weights


def _levels_and_points(columns: Columns, j: int, weight: float, level_of: LevelText) -> list[tuple[float, str]]:
    """Return the points of each level of a category or ranks, and its name; nothing for numbers."""
    if j in columns.categories:
        category = columns.categories[j]
        names, scores = [*map(level_of, category.levels), "(any other)"], category.scores.tolist()
        scores = scores if category.others else [*scores, 0.0]
        return [(weight * score, name) for score, name in zip(scores, names, strict=True)]
    return [(weight * rank, level_of(label)) for rank, label in enumerate(columns.ranks.get(j, ()))]


def _grouped(levels: list[tuple[float, str]]) -> list[tuple[str, list[str]]]:
    """Return the distinct numbers of points as texts, largest first, and the levels that get them."""
    ordered = sorted(levels, key=lambda each: -each[0])
    return [(f"{points:.3g}", [name for _, name in group]) for points, group in groupby(ordered, lambda each: each[0])]


def _simplest(weight: int, unit: float) -> tuple[int, float]:
    """Return a whole multiple and a unit in the same ratio: 2 × x/20 is x/10, and 3 × x/0.2 is 15 × x."""
    multiple, divisor = weight / unit, unit / abs(weight)
    if unit < 1 and abs(multiple - round(multiple)) < _WHOLE * abs(multiple):
        return round(multiple), 1.0
    leading = divisor / 10.0 ** np.floor(np.log10(divisor) + _WHOLE)
    is_handy = divisor > 1 - _WHOLE and np.abs(leading - [1, 2, 5]).min() < _WHOLE
    return (1 if weight > 0 else -1, divisor) if is_handy else (weight, unit)


def _value_name(model: Any, j: int, name: str, unit: float) -> str:
    """Return a value divided by its unit, as text. The larger the value is compared with the unit, the more digits."""
    value = f"days of {name}" if j in model.columns_.dates else name
    width = unit**2 / max(unit, abs(float(model.feature_mean_[j])))
    return value if unit == 1 else f"{value}/{_rounded(np.array([unit]), width)[0]}"


def _plain_number(value: float) -> str:
    """Return a number with up to six digits or, if it is large, without decimals."""
    return f"{value:.0f}" if 1e5 <= value < 1e15 else f"{value:.6g}"


def _notes(columns: Columns, j: int, name: str, unit: float, level_of: LevelText) -> list[str]:
    """Return from when days of a date are counted, and which value to take for a missing one, precise to its unit."""
    notes = []
    if j in columns.dates:
        notes.append(f"days of {name}: since {date_text(0)}")
    if j in columns.places:
        place = columns.places[j]
        shown = date_text(place) if j in columns.dates else _rounded(np.array([place]), unit)[0]
        if j in columns.ranks:
            shown = level_of(columns.ranks[j][int(place)])
        notes.append(f"{name} missing: take {shown}")
    return notes


def _intervals(
    model: Any, line: Line, weights: NDArray[np.int64], offset: float, label_of: LabelText
) -> list[ScoreInterval]:
    j = int(line.features[0])
    per_place = float(weights[j] / line.units[j] / line.direction[j])  # score = offset + per_place × place on the line
    thresholds, codes, counts = line.thresholds * per_place + offset, line.codes, line.counts
    if per_place < 0:
        thresholds, codes, counts = thresholds[::-1], codes[::-1], counts[::-1]
    ends = _rounded(thresholds, abs(per_place) * float(np.ptp(line.curves[0].knots)))
    return [
        ScoreInterval(low, high, code, label_of(str(model.classes_[code])), float(rows[code]), float(rows.sum()))
        for low, high, code, rows in zip(["", *ends], [*ends, ""], codes.tolist(), counts, strict=True)
    ]


def _rounded(thresholds: Floats, width: float) -> list[str]:
    """Return numbers as texts, with so many decimals that rounding is small compared with ``width``."""
    most = min([_ROUNDING * width, *(_ROUNDING_BETWEEN * np.diff(thresholds))])
    for decimals in range(-_MOST_DECIMALS, _MOST_DECIMALS):
        if np.all(np.abs(np.round(thresholds, decimals) - thresholds) <= most):
            shown = [f"{value:.{max(decimals, 0)}f}" for value in np.round(thresholds, decimals) + 0.0]
            return [text.replace("-", "−") for text in shown]
    return [repr(value) for value in thresholds.tolist()]
