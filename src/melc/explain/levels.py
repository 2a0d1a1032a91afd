"""The nearest change of class of the rows of a table: other levels of categories, and changed numbers.

For each row all changes of one level are tried, then changes of a second level after the most promising of these. With
the levels of the most promising changes, the numbers are moved (:mod:`melc.explain.trials`), and the shortest of all
changes is taken. So a smaller one may exist. Numbers that may take certain values only are changed like levels.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import projections
from melc.explain.allowed import Allowed
from melc.explain.numbers import Aim, Moved
from melc.explain.trials import best_of, move_within
from melc.model.line import log_odds_of

# Changes of one level after which a second is tried, and changes of levels after which numbers are moved.
_FIRST_CHANGES, _MOVED = 3, 4


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
        self.model, self.goal = aim.model, aim.goal
        self.columns = aim.model.columns_
        self.columns_of_levels = [*dict.fromkeys([*self.columns.categories, *self.columns.ranks, *allowed.levels])]
        self.levels = allowed.choices(self.columns)

    def most_promising(self, rows: Floats) -> list[Floats]:
        """Return some changes of levels of all rows: those that lead farthest to another class."""
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
        return [self._picked(every, order)[0] for order in best]

    def _single_changes(self, rows: Floats, costs: Floats) -> list[tuple[Floats, Floats]]:
        """All rows with one level changed, for each free column and level, and the costs with it."""
        found = []
        for j, levels in self.levels.items():
            for level in levels:
                changed = rows.copy()
                is_number = j not in self.columns.categories and j not in self.columns.ranks
                changed[:, j] = np.where(is_number & np.isnan(rows[:, j]), np.nan, level)  # a missing number stays so
                found.append((changed, np.hypot(costs, self._steps(j, level, rows[:, j]))))
        return found

    def _steps(self, j: int, level: float, codes: Floats) -> Floats:
        """The lengths of changes of a column to a level, shape (n,)."""
        if j in self.columns.categories:
            return np.where(codes == level, 0.0, 1.0)
        # From a missing rank to any other is one step.
        return np.asarray(np.nan_to_num(np.abs(level - codes) / (self.model.feature_spread_[j] or 1.0), nan=1.0))

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
        return all_log_odds(self.model, codes)


def labels_of(model: Any, codes: Floats) -> NDArray[Any]:
    """Return the labels of coded rows."""
    return np.asarray(model.classes_[all_log_odds(model, codes).argmax(axis=1)])


def all_log_odds(model: Any, codes: Floats) -> Floats:
    """Return the log-odds of all classes, shape (n, n_classes); of two, those of the first are zero."""
    z = projections(model, codes)
    odds = np.column_stack([each.at(z) for each in log_odds_of(model)])
    return odds if odds.shape[1] > 1 else np.column_stack([np.zeros(len(odds)), odds])
