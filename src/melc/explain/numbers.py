"""The smallest change of the numbers of rows that changes their class, also to whole numbers.

Levels and missing values stay as they are.
"""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import projections
from melc.explain.allowed import Allowed
from melc.explain.search import ChangeSpace, RowsToChange, shortest_changes
from melc.model.columns import Columns
from melc.model.curve import Curve
from melc.model.line import Line, log_odds_of

# How far a change first goes beyond the threshold, in units of the rounding of the projection, and how often that is
# doubled where the row is still predicted as before. While rounding may decide, it is doubled until it is this part of
# the change.
_FIRST_STEP, _DOUBLINGS, _PART_UNTIL_CLEAR = 4.0, 40, 0.01
# How far rows go to whole numbers, in units of the change that need not be whole, and how these are rounded there.
_FARTHER = (1.0, np.floor), (1.0, np.rint), (1.0, np.ceil), (1.5, np.ceil), (2.0, np.ceil), (4.0, np.ceil)
# Whole numbers from one of which to the next is more than this many deviations are first left as they are.
_COARSE = 3.0
# How often each whole number is moved back by one.
_ROUNDS_BACK = 8


@dataclass(frozen=True)
class Aim:
    """What a change should lead to: the class ``goal`` of a model, by its number, or any other if that is None.

    ``predict`` returns the labels of coded rows.
    """

    model: Any
    predict: Callable[[Floats], NDArray[Any]]
    goal: int | None

    def reached(self, before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether labels after a change are as wanted, given those before; shape (n,)."""
        return np.asarray(after != before if self.goal is None else after == self.model.classes_[self.goal])


@dataclass(frozen=True)
class Moved:
    """Coded rows after a change, of shape (n, d), and their labels; others are as they were.

    ``found`` says whether a row has the class that is wanted, ``exact`` whether the changes are the smallest, and
    ``decided`` whether those not found are known not to exist. All three but ``exact`` have shape (n,).
    """

    rows: Floats
    labels: NDArray[Any]
    found: NDArray[np.bool_]
    exact: bool
    decided: NDArray[np.bool_]

    def copy(self) -> "Moved":
        """Return a copy whose arrays can be changed."""
        arrays = {name: getattr(self, name).copy() for name in ("rows", "labels", "found", "decided")}
        return replace(self, **arrays)


def move_numbers(aim: Aim, rows: Floats, allowed: Allowed) -> Moved:
    """Return coded rows with their numbers changed by as little as leads to the aim. Missing values stay missing."""
    patterns, group = np.unique(np.isnan(rows), axis=0, return_inverse=True)
    moved = Moved(rows.copy(), aim.predict(rows), np.zeros(len(rows), bool), True, np.ones(len(rows), bool))
    for k, missing in enumerate(patterns):
        some = np.flatnonzero(group.ravel() == k)
        part = _move_alike(aim, rows[some], allowed, missing)
        moved.rows[some], moved.labels[some] = part.rows, part.labels
        moved.found[some], moved.decided[some] = part.found, part.decided
        moved = replace(moved, exact=moved.exact and part.exact)
    return moved


def _move_alike(aim: Aim, rows: Floats, allowed: Allowed, missing: NDArray[np.bool_]) -> Moved:
    """Move rows in which the same values are missing."""
    known, allowed = _with_missing(aim.model, missing), allowed.without(missing)
    before = aim.predict(rows)
    waiting = np.ones(len(rows), dtype=bool) if aim.goal is None else before != aim.model.classes_[aim.goal]
    space = ChangeSpace(known, allowed.spread, bounded=allowed.bounded)
    steps, decided = np.zeros(rows.shape), np.ones(len(rows), dtype=bool)
    if waiting.any():
        z = finite_projections(aim.model, rows[waiting])
        codes = np.searchsorted(aim.model.classes_, before[waiting])
        to_change = RowsToChange(space, z, codes, *space.bounds(allowed, rows[waiting]), aim.goal)
        standardised, decided[waiting] = shortest_changes(to_change)
        steps[waiting] = standardised * allowed.spread
    changed, labels, found = _over_the_threshold(aim, rows, before, steps, allowed)
    decided &= found | ~steps.any(axis=1)  # a change that is lost to rounding proves nothing
    return Moved(changed, labels, found, space.n_dimensions <= 1, decided)


def _with_missing(model: Any, missing: NDArray[np.bool_]) -> Any:
    """Return a copy of the model in which lines that read missing values are constant.

    Lines of categories get a place for levels that are not known, after the others.
    """
    if not any(line.reads_codes for line in model.lines_):
        return model
    known = copy.copy(model)
    known.lines_ = [
        _plain(line, bool(missing[line.features[0]])) if line.reads_codes else line for line in model.lines_
    ]
    return known


def _plain(line: Line, missing: bool) -> Line:
    values = [0.0 if curve.missing is None else curve.missing for curve in line.curves]
    pairs = list(zip(line.curves, values, strict=True))
    if line.levels:
        size = len(line.levels)
        curves = [Curve(np.arange(size + 1.0), np.append(curve.log_odds, value)) for curve, value in pairs]
    elif missing:
        curves = [Curve(np.array([0.0, 1.0]), np.full(2, value)) for _, value in pairs]
    else:
        curves = [replace(curve, missing=None) for curve in line.curves]
    return replace(line, curves=tuple(curves), levels=())


def finite_projections(model: Any, rows: Floats) -> Floats:
    """The projections of coded rows, shape (n_rows, n_lines), with a number for missing values: see :func:`_plain`."""
    z = projections(model, rows)
    for k, line in enumerate(model.lines_):
        if line.reads_codes:
            z[:, k] = np.where(np.isnan(z[:, k]), float(len(line.levels)), z[:, k])
    return z


def _over_the_threshold(
    aim: Aim, rows: Floats, before: NDArray[Any], steps: Floats, allowed: Allowed
) -> tuple[Floats, NDArray[Any], NDArray[np.bool_]]:
    """Change the rows by ``steps`` to the threshold, and beyond it by as little as changes the prediction.

    While rounding may decide they go a little farther. Dates change to whole microseconds, as they are written. Return
    the changed rows, their labels, and whether a row has the class that is wanted. Others are left as they were.
    """
    changed, labels = rows.copy(), before.copy()
    found = aim.reached(before, before)
    trying = np.flatnonzero(~found & np.any(steps != 0, axis=1))
    rounding = _rounding(aim.model, rows, steps)
    for doubling in range(_DOUBLINGS):
        if not len(trying):
            break
        factors = 1 + _FIRST_STEP * 2.0**doubling * rounding[trying]
        beyond = rows[trying] + steps[trying] * factors[:, None]
        beyond = aim.model.columns_.with_whole_microseconds(beyond, steps[trying])
        beyond = allowed.within(beyond, rows[trying])
        after = aim.predict(beyond)
        reached = aim.reached(before[trying], after)
        clear = reached & _are_clear(aim.model, beyond)
        better = clear | (reached & ~found[trying])
        changed[trying[better]], labels[trying[better]] = beyond[better], after[better]
        found[trying[better]] = True
        trying = trying[~clear & (~found[trying] | (factors < 1 + _PART_UNTIL_CLEAR))]
    return changed, labels, found


def _are_clear(model: Any, rows: Floats) -> NDArray[np.bool_]:
    """Return whether rounding cannot change the predictions of coded rows, shape (n,).

    A projection is a sum whose order, and so its last digits, depend on how rows lie in memory.
    """
    z, directions = projections(model, rows), model.directions_.T
    rounding = np.finfo(np.float64).eps * len(directions) * (np.abs(np.nan_to_num(rows)) @ np.abs(directions))
    rounding[:, [line.reads_codes for line in model.lines_]] = 0.0
    formulas = log_odds_of(model)
    odds = np.column_stack([each.at(z) for each in formulas])
    changes = np.column_stack([_most_changed(each.curves, z, rounding) for each in formulas])
    if odds.shape[1] == 1:
        return np.asarray(np.abs(odds[:, 0]) > changes[:, 0])
    second, first = np.sort(odds, axis=1)[:, -2:].T
    return np.asarray(first - second > 2 * changes.max(axis=1))


def _most_changed(curves: list[Curve], z: Floats, steps: Floats) -> Floats:
    """Return how much a sum of curves may change if each projection changes by up to its step; all (n_rows, n_curves).

    The result has shape (n_rows,).
    """
    total = np.zeros(len(z))
    for curve, at, step in zip(curves, z.T, steps.T, strict=True):
        total += np.abs([curve.at(at - step) - curve.at(at), curve.at(at + step) - curve.at(at)]).max(axis=0)
    return total


def _rounding(model: Any, rows: Floats, steps: Floats) -> Floats:
    """The rounding error of the projections in units of the change of the projections by the steps, shape (n_rows,)."""
    directions = model.directions_.T
    size = (np.abs(np.nan_to_num(rows)) @ np.abs(directions)).max(axis=1)
    moved = np.abs(steps @ directions).max(axis=1)
    return np.asarray(np.finfo(np.float64).eps * (1 + size / np.where(moved > 0, moved, 1.0)))


# Lengths, and the best of several changes


def standardised_changes(columns: Columns, rows: Floats, changed: Floats, spread: Floats) -> Floats:
    """Return changes of coded rows in units of the spread; another level counts one, and a missing value that came."""
    changes = changed - rows
    found = np.divide(changes, spread, out=np.zeros_like(changes), where=spread > 0)
    found[np.isnan(rows) != np.isnan(changed)] = 1.0
    for j in columns.categories:
        found[:, j] = (changes[:, j] != 0) & ~(np.isnan(rows[:, j]) & np.isnan(changed[:, j]))
    return np.nan_to_num(found)


def best_of(
    aim: Aim, rows: Floats, trials: Iterable[Floats], move: Callable[[Floats], Moved], begun: Moved | None = None
) -> Moved:
    """Return the shortest changes of rows: to one of the trials or, where that does not do, to what it is moved to.

    ``begun`` are changes that were found before.
    """
    before = aim.predict(rows)
    if begun is None:
        begun = Moved(rows, before, aim.reached(before, before), False, np.ones(len(rows), dtype=bool))
    best = begun.copy()
    shortest = np.where(best.found, lengths_of(aim, rows, best.rows), np.inf)
    for trial in trials:
        labels, changed = aim.predict(trial), trial.copy()
        left = ~aim.reached(before, labels)
        if left.any():
            moved = move(trial[left])
            changed[left], labels[left] = moved.rows, moved.labels
        lengths = np.where(aim.reached(before, labels), lengths_of(aim, rows, changed), np.inf)
        better = lengths < shortest
        best.rows[better], best.labels[better], shortest[better] = changed[better], labels[better], lengths[better]
    best.found[:] = np.isfinite(shortest)
    return best


def lengths_of(aim: Aim, rows: Floats, changed: Floats) -> Floats:
    """Return the lengths of changes of coded rows, shape (n,)."""
    changes = standardised_changes(aim.model.columns_, rows, changed, aim.model.feature_spread_)
    return np.asarray(np.linalg.norm(changes, axis=1))


# Whole numbers


def move_within(aim: Aim, rows: Floats, allowed: Allowed) -> Moved:
    """Return coded rows with their numbers changed by as little as was found to lead to the aim, some to whole numbers.

    Without whole numbers these are the changes of :func:`move_numbers`. With them, the numbers in question are rounded,
    here and farther away, the others are moved from there, and whole numbers that went too far are moved back. Columns
    whose next whole number is many deviations away are first left as they are.
    """
    whole = allowed.whole & (allowed.spread > 0)
    moved = move_numbers(aim, rows, allowed)
    if not whole.any():
        return moved
    rest = allowed.without(whole)
    coarse = whole & (allowed.spread * _COARSE < 1)
    begun = move_within(aim, rows, allowed.without(coarse)) if coarse.any() else None
    trials = (_rounded(rows, moved.rows, factor, rounding, whole, allowed) for factor, rounding in _FARTHER)
    best = best_of(aim, rows, trials, lambda trial: move_numbers(aim, trial, rest), begun)
    _move_back(aim, rows, best, whole)
    # What no number reaches, no whole number reaches; the reverse does not hold.
    return replace(best, exact=False, decided=moved.decided & ~moved.found)


def _rounded(
    rows: Floats, moved: Floats, factor: float, rounding: np.ufunc, whole: NDArray[np.bool_], allowed: Allowed
) -> Floats:
    """Return the rows with whole numbers in some columns, where they were moved; ``ceil`` rounds away from the row."""
    changes = factor * (moved - rows)
    signs = np.sign(changes)
    rounded = signs * rounding(signs * (rows + changes))
    bounded = np.clip(rounded, allowed.low, allowed.high)
    return np.where(whole & (signs != 0) & np.isfinite(bounded), bounded, rows)


def _move_back(aim: Aim, rows: Floats, best: Moved, whole: NDArray[np.bool_]) -> None:
    """Move whole numbers back, to what they were or by one, where the class stays as wanted. ``best`` is changed."""
    before = aim.predict(rows)
    for round_ in range(_ROUNDS_BACK):
        any_moved = False
        for j in np.flatnonzero(whole):
            away = best.rows[:, j] - rows[:, j]
            steps = away if round_ == 0 else np.sign(away) * np.minimum(np.abs(away), 1.0)
            trial = best.rows.copy()
            # From one whole number to the next, or to what it was before.
            trial[:, j] -= np.where(np.isfinite(steps), steps, 0.0)
            labels = aim.predict(trial)
            moved = aim.reached(before, labels) & (steps != 0) & best.found
            best.rows[moved], best.labels[moved], any_moved = trial[moved], labels[moved], any_moved or moved.any()
        if not any_moved and round_:
            return
