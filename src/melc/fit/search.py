"""The general search from several starting directions: on all rows for small data, from coarse to fine for large data.

It serves what :mod:`melc.fit.grid_search` does not: sparse data, shrinkage, the paper's methods and solvers.

On large data each start runs on a small stratified sample, whose wide kernels make the objective smoother. The best few
directions continue on a larger sample, while the bandwidth goes to that of all rows (first above it, then below it,
then to it). These candidates are compared on all rows, and only the best is optimised there.
"""

from collections.abc import Callable

import numpy as np

from melc.arrays import Floats
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.problem import COARSE_EPS, COARSE_TOL, Problem
from melc.fit.run import Result
from melc.objective import Objective

_COARSE_ROWS = 5_000
_MIDDLE_ROWS = 40_000
# Up to this many rows, all starts run on all rows.
WORTH_SAMPLES = 20_000
# Bandwidths on the middle sample, relative to that of all rows, and the number of directions optimised with each. The
# second is narrower than the last, because optima with more thresholds are found there and stay optima afterwards.
_WIDTHS = ((1.4, 8), (0.7, 4), (1.0, 6))
# Two directions whose absolute cosine, in the optimiser's coordinates, is at least this count as one.
_SAME = 0.99


def search(
    rows: Rows,
    problem: Problem,
    starts: list[Floats],
    rng: np.random.RandomState,
    run_ended: Callable[[Result], bool] = lambda run: False,
) -> tuple[Result, list[Result]]:
    """Return the best run on all rows, and the runs from all starts (on samples, if the data are large).

    ``run_ended`` is called after each run and may stop the search by returning True.
    """
    if rows.n_rows > WORTH_SAMPLES:
        return _coarse_to_fine(rows, problem, starts, rng, run_ended)
    objective = problem.objective(rows, problem.gamma, 0.0)
    runs: list[Result] = []
    for start in starts:
        runs.append(problem.solve(objective, start))
        if run_ended(runs[-1]):
            break
    winner = problem.best_of(runs)
    best = problem.sharpen(objective, winner)
    return best, [best if run is winner else run for run in runs]


def _coarse_to_fine(
    rows: Rows,
    problem: Problem,
    starts: list[Floats],
    rng: np.random.RandomState,
    run_ended: Callable[[Result], bool],
) -> tuple[Result, list[Result]]:
    """Search on samples of increasing size, then on all rows. Return what :func:`search` returns.

    Each start has its own sample, so that one bad sample does not mislead all starts. It runs twice: with the bandwidth
    of the sample and with the narrower one of all rows. Each finds optima that the other misses.
    """
    runs, narrow = [], []
    for start in starts:
        sample = draw_sample(rows, _COARSE_ROWS, rng)
        runs.append(problem.solve(problem.objective(sample, problem.gamma, COARSE_EPS), start, COARSE_TOL))
        narrow.append(problem.solve(problem.roughly(sample, rows), start, COARSE_TOL).direction)
        if run_ended(runs[-1]):
            break
    directions = _through_widths(rows, problem, [run.direction for run in runs], narrow, rng)
    return _on_all_rows(rows, problem, directions), runs


def _through_widths(
    rows: Rows, problem: Problem, wide: list[Floats], narrow: list[Floats], rng: np.random.RandomState
) -> list[Floats]:
    """Return the best directions on a larger sample, optimised with each of the bandwidths in _WIDTHS in turn.

    ``wide`` are directions found with the bandwidth of the small samples. ``narrow`` are those found with that of all
    rows; they join at the last bandwidth.
    """
    middle = draw_sample(rows, _MIDDLE_ROWS, rng)
    directions = wide
    for width, survivors in _WIDTHS:
        objective = problem.roughly(middle, rows, width)
        candidates = directions + narrow if width == 1 else directions
        few = _distinct_best(objective, candidates)[:survivors]
        directions = [problem.solve(objective, direction, COARSE_TOL).direction for direction in few]
    return directions


def _on_all_rows(rows: Rows, problem: Problem, directions: list[Floats]) -> Result:
    """Return the run on all rows from the best of the directions, which are compared on all rows as well."""
    objective = problem.objective(rows, problem.gamma, 0.0)
    candidates = _distinct_best(objective, directions)
    winner = candidates[0 if problem.choose is None else problem.choose(candidates)]
    return problem.sharpen(objective, problem.solve(objective, winner))


def _distinct_best(objective: Objective, directions: list[Floats]) -> list[Floats]:
    """Return the directions by decreasing divergence, without those that are close to a better one."""
    candidates = [objective.searched_from(direction) for direction in directions]
    candidates.sort(key=lambda u: -objective.evaluate(u).divergence)
    kept: list[Floats] = []
    for u in candidates:
        if all(abs(u @ other) < _SAME for other in kept):
            kept.append(u)
    return [objective.direction_of(u) for u in kept]
