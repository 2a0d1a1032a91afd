"""Changes of rows that are tried: whole numbers, and what is best of several."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.explain.allowed import Allowed
from melc.explain.numbers import Aim, Moved, move_numbers
from melc.model.columns import Columns

# How far rows go to whole numbers, in units of the change that need not be whole, and how these are rounded there.
_FARTHER = (1.0, np.floor), (1.0, np.rint), (1.0, np.ceil), (1.5, np.ceil), (2.0, np.ceil), (4.0, np.ceil)
# How often each whole number is moved back by one.
_ROUNDS_BACK = 8


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
    best = replace(begun, rows=begun.rows.copy(), labels=begun.labels.copy(), found=begun.found.copy())
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


def move_within(aim: Aim, rows: Floats, allowed: Allowed) -> Moved:
    """Return coded rows with their numbers changed by as little as was found to lead to the aim, some to whole numbers.

    Without whole numbers these are the changes of :func:`move_numbers`. With them, the numbers in question are rounded,
    here and farther away, the others are moved from there, and whole numbers that went too far are moved back.
    """
    whole = allowed.whole & (allowed.spread > 0)
    moved = move_numbers(aim, rows, allowed)
    if not whole.any():
        return moved
    rest = allowed.without(whole)
    trials = (_rounded(rows, moved.rows, factor, rounding, whole, allowed) for factor, rounding in _FARTHER)
    best = best_of(aim, rows, trials, lambda trial: move_numbers(aim, trial, rest))
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
