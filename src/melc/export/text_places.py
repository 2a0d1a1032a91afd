"""The places on a line in texts: intervals of numbers, dates or ranks, levels of a category, and missing values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.frames import Label
from melc.export.text_columns import level_names
from melc.export.text_parts import Style, intervals_of, level_text, numbers_apart
from melc.model.curve import Curve
from melc.model.line import Line
from melc.model.places import DAYS, date_text, missing_code

# A place is called uncertain if the curve is nowhere in it so many standard errors from zero.
_STANDARD_ERRORS = 2.0
# Levels that are written one by one, unless numbers are written in full.
_MOST_LEVELS = 12


@dataclass(frozen=True)
class Place:
    """An interval of a line, a level, several levels, or missing values, and what the line says there.

    ``least`` and ``most`` are what the first curve adds, ``code`` is the number of the class that the line speaks for,
    or None if it speaks for several, and ``counts`` are the training rows of each class, shape (n_classes,).
    """

    name: str
    least: float
    most: float
    code: int | None
    counts: Floats
    is_interval: bool = False
    uncertain: bool = False


def places_of(model: Any, line: Line, curves: Sequence[Curve], style: Style) -> list[Place]:
    """Return the places on a line with the given curves, which may contain the intercepts or not."""
    if line.levels:
        return _levels(model, line, curves[0], style)
    names, ranges = intervals_of(_thresholds(model, line, style)), curves[0].ranges()
    if len(curves) > 1:  # their ranges are not shown
        ranges = [(0.0, 0.0)] * len(names)
    doubts = _uncertain_intervals(line)
    found = [
        Place(names[i], *ranges[i], int(line.codes[i]), line.counts[i], is_interval=True, uncertain=doubts[i])
        for i in range(len(names))
    ]
    if line.reads_codes:
        value = curves[0].missing or 0.0
        found.append(Place("missing", value, value, missing_code(line), line.missing_counts))
    return found


def _levels(model: Any, line: Line, curve: Curve, style: Style) -> list[Place]:
    """Return the levels of a category, those first for which the line adds most; of many, those with most rows."""
    names, values = level_names(model.columns_, int(line.features[0])), curve.log_odds
    codes, doubts = line.level_codes, _uncertain_knots(line)
    order = np.argsort(-values, kind="stable")
    shown = order
    if style.digits is not None and len(order) > _MOST_LEVELS + 1:
        frequent = np.argsort(-line.counts.sum(axis=1), kind="stable")[:_MOST_LEVELS]
        shown = order[np.isin(order, frequent)]
    found = [
        Place(names[k], values[k], values[k], int(codes[k]), line.counts[k], uncertain=bool(doubts[k])) for k in shown
    ]
    hidden = order[~np.isin(order, shown)]
    if len(hidden):
        code = int(codes[hidden[0]]) if len(set(codes[hidden])) == 1 else None
        total = line.counts[hidden].sum(axis=0)
        name = f"({len(hidden)} other levels)"  # without parentheses, a level could have this name
        found.append(Place(name, values[hidden].min(), values[hidden].max(), code, total, is_interval=True))
    return found


def _uncertain_knots(line: Line) -> NDArray[np.bool_]:
    """Return for each knot of a line with one curve whether the curve is not clearly away from zero; else nowhere."""
    if not line.errors or len(line.curves) > 1:
        return np.zeros(len(line.curves[0].knots), dtype=bool)
    return np.asarray(np.abs(line.decisive[0].log_odds) <= _STANDARD_ERRORS * line.errors[0])


def _uncertain_intervals(line: Line) -> list[bool]:
    """Return for each interval whether the curve is nowhere in it clearly away from zero."""
    if not line.errors or len(line.curves) > 1:
        return [False] * len(line.codes)
    clear, curve = ~_uncertain_knots(line), line.decisive[0]
    within = np.searchsorted(line.thresholds, curve.knots, side="right")
    return [not clear[within == i].any() for i in range(len(line.codes))]


def _thresholds(model: Any, line: Line, style: Style) -> list[str]:
    """Return the thresholds of a line; those of a date alone as dates, and those of ranks alone as ranks."""
    features = line.features.tolist()
    if len(features) == 1 and line.direction[features[0]] == 1:
        (j,) = features
        if j in model.columns_.dates:
            found = _dates(line.thresholds)
        else:
            found = _ranks(line.thresholds, model.columns_.ranks.get(j, ()))
        if len(set(found)) == len(line.thresholds):
            return found
    return numbers_apart(line.thresholds, float(np.ptp(line.curves[0].knots)), style.digits)


def _dates(days: Floats) -> list[str]:
    """Return the first date at or after each threshold; the times, if some dates are equal; nothing if far away."""
    if np.any((days < DAYS[0]) | (days > DAYS[1])):
        return []
    dates = [date_text(day) for day in np.ceil(days)]
    return dates if len(set(dates)) == len(dates) else [date_text(day, with_time=True) for day in days]


def _ranks(thresholds: Floats, labels: Sequence[Label]) -> list[str]:
    """Return the first rank at or above each threshold; nothing if there is none."""
    first = np.ceil(thresholds)
    if not len(labels) or np.any((first < 0) | (first >= len(labels))):
        return []
    return [level_text(labels[int(k)]) for k in first]
