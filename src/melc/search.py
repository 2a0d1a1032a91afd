"""From many starts to one direction: everything on small data, coarse to fine on large.

On large data every start runs on a small stratified sample, with the kernel width that all rows will have (a wider
kernel would smooth away optima that the whole data show); the best few go on with a larger sample; and only the winner
sees all rows. It takes the curvature along: the Hessian on a sample, by differences of the gradient, turns the last
search into a few Newton-like steps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from melc.objective import Objective
from melc.optimize import Result, best_of, maximise
from melc.rows import Rows
from melc.sums.base import Floats

_COARSE_ROWS = 5_000
_MIDDLE_ROWS = 40_000
_CURVATURE_ROWS = 100_000
# Above this many rows a stage is worth its place before the next larger one.
_WORTH_A_STAGE = 4
_SURVIVORS = 4
# Directions closer than this (cosine, in the optimiser's coordinates) count as one.
_SAME = 0.999
# A coarse stage need not be exact: its optimum moves with the next sample anyway.
_COARSE_TOL = 1e-3
# More features than this, and the Hessian costs more than the steps that it saves.
_MOST_CURVATURE_FEATURES = 200
_DIFFERENCE = 1e-4
# Curvature below this fraction of the largest is rounding, or a ridge along which a long step would leave the model.
_LEAST_CURVATURE = 1e-4


@dataclass(frozen=True)
class Problem:
    """How an objective is made of rows: ``objective(rows, gamma)``, and how it is to be solved."""

    objective: Callable[[Rows, float], Objective]
    gamma: float
    solver: str
    max_iter: int
    tol: float
    smooth: bool  # whether curvature means anything: not for objectives that jump

    def solve(
        self, objective: Objective, start: Floats, tol: float | None = None, curvature: Floats | None = None
    ) -> Result:
        tolerance = self.tol if tol is None else max(tol, self.tol)
        return maximise(
            objective, start, solver=self.solver, max_iter=self.max_iter, tol=tolerance, curvature=curvature
        )

    def at_full_width(self, sample: Rows, n_rows: int) -> Objective:
        """The objective of a sample with the kernel width that all rows will have."""
        return self.objective(sample, self.gamma * (sample.n_rows / n_rows) ** 0.2)


def search(
    rows: Rows,
    problem: Problem,
    starts: list[Floats],
    rng: np.random.RandomState,
    run_ended: Callable[[Result], bool] = lambda run: False,
) -> tuple[Result, list[Result]]:
    """The best direction, and the run of every start (on samples, where there are any).

    ``run_ended`` hears of every run, and may ask for no more of them by returning True.
    """
    coarse = rows.n_rows > _WORTH_A_STAGE * _COARSE_ROWS
    runs: list[Result] = []
    first_rows = rows.sample(_COARSE_ROWS, rng) if coarse else rows
    objective = problem.at_full_width(first_rows, rows.n_rows)
    for start in starts:
        runs.append(problem.solve(objective, start, _COARSE_TOL if coarse else None))
        if run_ended(runs[-1]):
            break
    return (_through_samples(rows, problem, runs, rng) if coarse else best_of(runs)), runs


def _through_samples(rows: Rows, problem: Problem, runs: list[Result], rng: np.random.RandomState) -> Result:
    """The best few on a larger sample, then the best one on all rows; or the few on all, if that is not much more."""
    directions = [run.direction for run in runs]
    objective = problem.objective(rows, problem.gamma)
    if rows.n_rows <= _WORTH_A_STAGE * _MIDDLE_ROWS:
        few = _distinct_best(objective, directions)[:_SURVIVORS]
        return best_of([problem.solve(objective, direction) for direction in few])
    middle = problem.at_full_width(rows.sample(_MIDDLE_ROWS, rng), rows.n_rows)
    few = _distinct_best(middle, directions)[:_SURVIVORS]
    directions = [problem.solve(middle, direction, _COARSE_TOL).direction for direction in few]
    winner = _distinct_best(objective, directions)[0]  # judged by all rows: samples are too close to call
    curvature = None
    if problem.smooth and rows.n_features <= _MOST_CURVATURE_FEATURES:
        sample = problem.at_full_width(rows.sample(_CURVATURE_ROWS, rng), rows.n_rows)
        curvature = curvature_at(sample, winner)
    return problem.solve(objective, winner, curvature=curvature)


def _distinct_best(objective: Objective, directions: list[Floats]) -> list[Floats]:
    """Directions by falling divergence, no two alike."""
    candidates = [direction * objective.scale for direction in directions]
    candidates = [u / np.linalg.norm(u) for u in candidates]
    candidates.sort(key=lambda u: -objective.evaluate(u).divergence)
    kept: list[Floats] = []
    for u in candidates:
        if all(abs(u @ other) < _SAME for other in kept):
            kept.append(u)
    return [u / objective.scale for u in kept]


def curvature_at(objective: Objective, direction: Floats) -> Floats:
    """A matrix R with R Rᵀ ≈ (−Hessian)⁻¹ of the penalised objective: in p, u = u₀ + R p, its curvature is one.

    Differences of the gradient give the Hessian; where the objective is not concave, its curvature counts by size.
    """
    u = direction * objective.scale
    u /= np.linalg.norm(u)
    gradient = objective.penalise(u, objective.evaluate(u))[1]
    hessian = np.empty((len(u), len(u)))
    for j in range(len(u)):
        moved = u.copy()
        moved[j] += _DIFFERENCE
        hessian[j] = (objective.penalise(moved, objective.evaluate(moved))[1] - gradient) / _DIFFERENCE
    values, vectors = np.linalg.eigh(-0.5 * (hessian + hessian.T))
    values = np.maximum(np.abs(values), _LEAST_CURVATURE * np.abs(values).max())
    return np.asarray(vectors / np.sqrt(values))
