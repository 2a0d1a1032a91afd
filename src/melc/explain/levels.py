"""The nearest change of class of the rows of a table: other levels of categories, and changed numbers.

For each row all changes of one level are tried, then changes of a second level after the most promising of these. With
the levels of the most promising changes, the numbers are moved (:mod:`melc.explain.numbers`), and the shortest of all
changes is taken. So a smaller one may exist.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import projections
from melc.explain.numbers import Moved, move_numbers
from melc.model.columns import Columns
from melc.model.line import log_odds_of

# Changes of one level after which a second is tried, and changes of levels after which numbers are moved.
_FIRST_CHANGES, _MOVED = 3, 4


def move_table(model: Any, rows: Floats, may_change: NDArray[np.bool_], goal: int | None) -> Moved:
    """Return coded rows changed by as little as was found to change their class, or to lead to the class ``goal``."""
    columns, spread = model.columns_, model.feature_spread_
    numbers = [j not in columns.categories and j not in columns.ranks for j in range(rows.shape[1])]
    moving = np.where(may_change & numbers, spread, 0.0)
    levels = _LevelChanges(model, may_change, goal)
    found, distances = None, np.full(len(rows), np.inf)
    for trial, costs in [(rows, np.zeros(len(rows))), *levels.most_promising(rows)]:
        moved = move_numbers(model, levels.predict, trial, moving, goal)
        # Levels alone may do: then the class is another one before numbers are moved.
        done = levels.reached(rows, trial)
        moved.rows[done], moved.labels[done], moved.found[done] = trial[done], levels.predict(trial)[done], True
        right = levels.reached(rows, moved.rows)
        lengths = standardised_changes(columns, np.nan_to_num(moved.rows - trial), moving)
        total = np.where(right, np.hypot(np.linalg.norm(lengths, axis=1), costs), np.inf)
        if found is None:
            found, distances = moved, total
            continue
        better = total < distances
        distances = np.where(better, total, distances)
        found.rows[better], found.labels[better], found.found[better] = moved.rows[better], moved.labels[better], True
    assert found is not None
    return Moved(found.rows, found.labels, found.found, False, found.decided)


def standardised_changes(columns: Columns, changes: Floats, spread: Floats) -> Floats:
    """Return changes of coded rows in units of the spread; another level of a category counts one."""
    found = np.divide(changes, spread, out=np.zeros_like(changes), where=spread > 0)
    for j in columns.categories:
        found[:, j] = changes[:, j] != 0
    return found


class _LevelChanges:
    """Changes of levels of the rows of a table, and what they lead to."""

    def __init__(self, model: Any, may_change: NDArray[np.bool_], goal: int | None) -> None:
        self.model, self.goal, self.columns = model, goal, model.columns_
        self.free = [j for j in (*self.columns.categories, *self.columns.ranks) if may_change[j]]
        self.formulas = log_odds_of(model)

    def predict(self, codes: Floats) -> NDArray[Any]:
        """Return the labels of coded rows."""
        return np.asarray(self.model.classes_[self._odds(codes).argmax(axis=1)])

    def reached(self, before: Floats, after: Floats) -> NDArray[np.bool_]:
        """Return whether rows have another class after a change, or the class to reach."""
        labels = self.predict(after)
        return np.asarray(
            labels != self.predict(before) if self.goal is None else labels == self.model.classes_[self.goal]
        )

    def most_promising(self, rows: Floats) -> list[tuple[Floats, Floats]]:
        """Return some changes of levels of all rows, and their costs: those that lead farthest to another class."""
        own = self._odds(rows).argmax(axis=1)
        singles = self._single_changes(rows, np.zeros(len(rows)))
        if not singles:
            return []
        leads = np.stack([self._leads(changed, own) for changed, _ in singles])
        first = np.argsort(-leads, axis=0, kind="stable")[:_FIRST_CHANGES]
        pairs = []
        for order in first:
            begun, costs = self._picked(singles, order)
            pairs += self._single_changes(begun, costs)
        every = singles + pairs
        # A change that suffices by itself is taken for its cost; others for how far they lead.
        leads = np.stack([self._leads(changed, own) for changed, _ in every])
        costs = np.stack([cost for _, cost in every])
        promising = np.where(leads > 0, 1e6 - costs, leads)
        best = np.argsort(-promising, axis=0, kind="stable")[:_MOVED]
        return [self._picked(every, order) for order in best]

    def _single_changes(self, rows: Floats, costs: Floats) -> list[tuple[Floats, Floats]]:
        """All rows with one level changed, for each free column and level, and the costs with it."""
        found = []
        for j in self.free:
            for level in self._levels(j):
                changed = rows.copy()
                changed[:, j] = level
                found.append((changed, np.hypot(costs, self._steps(j, level, rows[:, j]))))
        return found

    def _steps(self, j: int, level: float, codes: Floats) -> Floats:
        """The lengths of changes of a column to a level, shape (n,)."""
        if j in self.columns.categories:
            return np.where(codes == level, 0.0, 1.0)
        # From a missing rank to any other is one step.
        return np.asarray(np.nan_to_num(np.abs(level - codes) / (self.model.feature_spread_[j] or 1.0), nan=1.0))

    def _levels(self, j: int) -> list[float]:
        """The levels that a column may change to: those of the training rows, without missing and others."""
        if j in self.columns.ranks:
            return [float(k) for k in range(len(self.columns.ranks[j]))]
        return [float(k) for k, level in enumerate(self.columns.categories[j].levels) if level is not None]

    @staticmethod
    def _picked(changes: list[tuple[Floats, Floats]], order: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Row i of the change ``order[i]``."""
        rows = np.stack([changes[k][0][i] for i, k in enumerate(order)])
        return rows, np.array([changes[k][1][i] for i, k in enumerate(order)])

    def _leads(self, codes: Floats, own: NDArray[np.int64]) -> Floats:
        """By how much the best wanted class is ahead of the others, shape (n,)."""
        odds, classes = self._odds(codes), np.arange(len(self.model.classes_))
        wanted = own[:, None] != classes if self.goal is None else np.broadcast_to(classes == self.goal, odds.shape)
        best, rest = (np.where(wanted == side, odds, -np.inf).max(axis=1) for side in (True, False))
        return np.asarray(best - rest)

    def _odds(self, codes: Floats) -> Floats:
        """The log-odds of all classes, shape (n, n_classes); of two, those of the first are zero."""
        z = projections(self.model, codes)
        odds = np.column_stack([each.at(z) for each in self.formulas])
        return odds if odds.shape[1] > 1 else np.column_stack([np.zeros(len(odds)), odds])
