"""Changes in steps: other levels of categories, numbers that may take certain values only, and whole numbers.

:func:`move_table` tries all changes of one level of a row, then changes of a second level after the most promising of
these. With the levels of the most promising changes, the numbers are moved (:mod:`melc.explain.numbers`), and the
shortest of all changes is taken. So a smaller one may exist.

:func:`try_combinations` tries all combinations near a row, where they are few enough, in the order of their lengths: up
to the length of a change that is known, or as far as there are not too many. So the first that leads to the aim is the
smallest change. Where other numbers may change as well, these are moved after each combination that does not suffice.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.explain.allowed import Allowed
from melc.explain.numbers import Aim, Moved, best_of, finite_projections, lengths_of, move_numbers, move_within
from melc.explain.parts import all_log_odds
from melc.explain.search import rivals

# Changes of one level after which a second is tried, and changes of levels after which numbers are moved.
_FIRST_CHANGES, _MOVED = 3, 4
# The most combinations of a row: if nothing else changes, if the others change in one dimension, if they are searched.
_MOST_ALONE, _MOST_EXACT, _MOST_SEARCHED = 30_000, 2_000, 64
# Combinations that are tried at once.
_CHUNK = 512
# Where there are too many combinations of levels, those up to the first length are tried; while these are too many, it
# becomes the second part of itself.
_FARTHEST, _PART = 64.0, 0.8


def move_table(aim: Aim, rows: Floats, allowed: Allowed) -> Moved:
    """Return coded rows changed by as little as was found to lead to the aim."""
    levels = _LevelChanges(aim, allowed)
    numbers = allowed.without(np.isin(np.arange(rows.shape[1]), levels.columns_of_levels))
    first = move_within(aim, rows, numbers)
    best = best_of(aim, rows, levels.most_promising(rows), lambda trial: move_within(aim, trial, numbers), first)
    # Of levels only some are tried here.
    return replace(best, exact=first.exact and not levels.levels, decided=best.decided & (not levels.levels))


class _LevelChanges:
    """Changes of levels of the rows of a table, or of numbers to certain values, and what they lead to."""

    def __init__(self, aim: Aim, allowed: Allowed) -> None:
        self.aim, self.columns = aim, aim.model.columns_
        self.columns_of_levels = [*dict.fromkeys([*self.columns.categories, *self.columns.ranks, *allowed.levels])]
        self.levels = allowed.choices(self.columns)

    def most_promising(self, rows: Floats) -> list[Floats]:
        """Return some changes of levels of all rows: those that lead farthest to another class."""
        own = all_log_odds(self.aim.model, rows).argmax(axis=1)
        singles = self._single_changes(rows)
        if not singles:
            return []
        first = np.argsort(-self._leads(singles, own), axis=0, kind="stable")[:_FIRST_CHANGES]
        every = singles + [pair for order in first for pair in self._single_changes(_picked(singles, order))]
        # A change that suffices by itself is taken for its length; others for how far they lead.
        leads, lengths = self._leads(every, own), np.stack([lengths_of(self.aim, rows, each) for each in every])
        best = np.argsort(-np.where(leads > 0, 1e6 - lengths, leads), axis=0, kind="stable")[:_MOVED]
        return [_picked(every, order) for order in best]

    def _single_changes(self, rows: Floats) -> list[Floats]:
        """All rows with one level changed, for each free column and level."""
        found = []
        for j, levels in self.levels.items():
            is_number = j not in self.columns.categories and j not in self.columns.ranks
            for level in levels:
                changed = rows.copy()
                changed[:, j] = np.where(is_number & np.isnan(rows[:, j]), np.nan, level)  # a missing number stays so
                found.append(changed)
        return found

    def _leads(self, changes: list[Floats], own: NDArray[np.int64]) -> Floats:
        """By how much the best wanted class is ahead of the others after each change, shape (n_changes, n)."""
        odds = (all_log_odds(self.aim.model, changed) for changed in changes)
        return np.stack([rivals(each, own, self.aim.goal)[0] for each in odds])


def _picked(changes: list[Floats], order: NDArray[np.int64]) -> Floats:
    """Row i of the change ``order[i]``."""
    return np.stack([changes[k][i] for i, k in enumerate(order)])


# All combinations


def try_combinations(aim: Aim, rows: Floats, allowed: Allowed, begun: Moved) -> Moved:
    """Return the shortest of the changes found before and of those to combinations of whole numbers and levels."""
    near = _Combinations(aim, allowed)
    if not near.columns:
        return begun
    found, exact = begun.copy(), True
    shortest = np.where(begun.found, lengths_of(aim, rows, begun.rows), np.inf)
    before = aim.predict(rows)
    for i in np.flatnonzero(shortest > 0):
        row = near.bounded_at(rows[i])
        radius = row.largest_radius(rows[i], shortest[i])
        better = row.shortest_change(rows[i], before[i], radius)
        if better is not None:
            found.rows[i], found.labels[i], shortest[i], found.found[i] = *better, True
        # All that is shorter was tried; where nothing was found, all there is.
        exact &= near.exact and radius >= shortest[i]
        found.decided[i] |= near.exact and radius == np.inf
    return replace(found, exact=exact)


class _Combinations:
    """The combinations of what may change in steps. ``columns`` are those that do, ``rest`` is what else may change."""

    def __init__(self, aim: Aim, allowed: Allowed) -> None:
        self.aim, self.allowed, self.spread = aim, allowed, aim.model.feature_spread_
        self.categories, self.ranks = aim.model.columns_.categories, aim.model.columns_.ranks
        self.levels = allowed.choices(aim.model.columns_)
        whole = np.flatnonzero(allowed.whole & (allowed.spread > 0)).tolist()
        self.columns = [*dict.fromkeys([*self.levels, *whole])]
        self.rest = allowed.without(np.isin(np.arange(len(self.spread)), self.columns))
        n_rest = int(np.count_nonzero(self.rest.spread))
        self.exact = n_rest <= 1 or len(aim.model.lines_) == 1
        self.alone = n_rest == 0
        self.most = _MOST_ALONE if self.alone else _MOST_EXACT if self.exact else _MOST_SEARCHED

    def bounded_at(self, row: Floats) -> "_Combinations":
        """Return the same with bounds for a whole number that alone may change: it goes as far as the curves do."""
        if not self.alone or len(self.columns) > 1 or self.columns[0] in self.levels:
            return self
        (j,), model, low, high = self.columns, self.aim.model, self.allowed.low.copy(), self.allowed.high.copy()
        ends = [
            row[j] + (curve.knots[[0, -1]] - z) / line.direction[j]
            for line, z in zip(model.lines_, finite_projections(model, row[None])[0], strict=True)
            if line.direction[j] != 0
            for curve in line.curves
        ]
        low[j], high[j] = max(low[j], np.floor(np.min(ends)) - 1), min(high[j], np.ceil(np.max(ends)) + 1)
        found = copy.copy(self)
        found.allowed = replace(self.allowed, low=low, high=high)
        return found

    def largest_radius(self, row: Floats, length: float) -> float:
        """Return the length up to which combinations are tried: if possible, that of a change that is known."""
        if not self._too_many(row, length):
            return length
        # Farther away than this, every whole number has too many values, or as many as its bounds allow.
        spreads = [self.spread[j] for j in self.columns if j not in self.levels]
        length = min(length, self.most / min(spreads) if spreads else _FARTHEST)
        while self._too_many(row, length):
            length *= _PART
        return length

    def _too_many(self, row: Floats, radius: float) -> bool:
        return bool(np.prod([self._number(j, row[j], radius) for j in self.columns]) > self.most)

    def shortest_change(self, row: Floats, before: Any, radius: float) -> tuple[Floats, Any, float] | None:
        """Return the shortest change of a row within a radius, its label and its length, or None."""
        best = None
        for trial, lengths in self._in_order(row, radius):
            if lengths[0] >= radius:
                break
            moved = self._moved(trial, np.full(len(trial), before))
            within = np.where(moved.found, lengths_of(self.aim, np.tile(row, (len(trial), 1)), moved.rows), np.inf)
            first = int(within.argmin())
            if within[first] < radius:
                radius = float(within[first])
                best = moved.rows[first], moved.labels[first], radius
        return best

    def _moved(self, trial: Floats, before: Any) -> Moved:
        """Return combinations, and where one does not suffice, what the other numbers are moved to after it."""
        labels = self.aim.predict(trial)
        moved = Moved(trial, labels, self.aim.reached(before, labels), self.exact, np.ones(len(trial), dtype=bool))
        left = np.flatnonzero(~moved.found)
        if len(left) and not self.alone:
            numbers = move_numbers(self.aim, trial[left], self.rest)
            moved.rows[left], moved.labels[left] = numbers.rows, numbers.labels
            moved.found[left] = self.aim.reached(before[left], numbers.labels)
        return moved

    def _in_order(self, row: Floats, radius: float) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of combinations shorter than a radius and their lengths, the shortest first."""
        values = [self._values(j, row[j], radius) for j in self.columns]
        squares = np.zeros(1)
        for _, steps in values:
            squares = np.add.outer(squares, steps**2)
        lengths = np.sqrt(squares.ravel())
        order = np.argsort(lengths, kind="stable")[: np.count_nonzero(lengths < radius)]
        for start in range(0, len(order), _CHUNK):
            some = order[start : start + _CHUNK]
            places = np.unravel_index(some, [len(each) for each, _ in values])
            trial = np.tile(row, (len(some), 1))
            for j, (each, _), place in zip(self.columns, values, places, strict=True):
                trial[:, j] = each[place]
            yield trial, lengths[some]

    def _number(self, j: int, x: float, radius: float) -> float:
        """Return how many values a column may have after a change up to a radius; it may be infinite."""
        if j in self.levels or np.isnan(x):
            return float(len(self._values(j, x, radius)[0]))
        low, high = self._range(j, x, radius)
        return max(np.floor(high) - np.ceil(low) + 1, 0.0) + (x != np.round(x))

    def _values(self, j: int, x: float, radius: float) -> tuple[Floats, Floats]:
        """Return the values that a column may have after a change up to a radius, and how long these changes are."""
        if j in self.levels:
            values = np.array(self.levels[j])
            if np.isnan(x) and j not in self.categories and j not in self.ranks:
                values = values[:0]  # a missing number stays missing
            values = values[values != x]
        elif np.isnan(x):
            values = np.zeros(0)
        else:
            low, high = self._range(j, x, radius)
            values = np.arange(np.ceil(low), np.floor(high) + 1)
            values = values[values != x]
        steps = np.ones(len(values)) if j in self.categories else np.abs(values - x) / (self.spread[j] or 1.0)
        steps = np.where(np.isnan(steps), 1.0, steps)  # from a missing rank to any other is one step
        near = steps < radius
        return np.append(x, values[near]), np.append(0.0, steps[near])

    def _range(self, j: int, x: float, radius: float) -> tuple[float, float]:
        """Return the least and the largest value of a whole number after a change up to a radius."""
        reach = radius * self.spread[j]
        low, high = self.allowed.low[j], self.allowed.high[j]
        return max(min(low, x), x - reach), min(max(high, x), x + reach)
