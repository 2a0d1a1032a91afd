"""From many starts to one direction: everything on small data, coarse to fine on large.

On large data all starts run on a small stratified sample, whose kernels are wide and smooth the landscape. The best
few go on with a larger sample, where the kernels narrow to the width of the whole (and below, and back). Only the
winner sees all rows, and it takes the curvature along: the Hessian on a sample, by differences of the gradient, turns
the last search into a few Newton-like steps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from melc.arrays import Floats
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.solvers import SCIPY_PROGRESS, Result, best_of, maximise, sharpen
from melc.objective import Objective

_COARSE_ROWS = 5_000
_MIDDLE_ROWS = 40_000
_CURVATURE_ROWS = 100_000
# Fewer rows than this, and all starts may as well see all of them; or a Hessian costs more than it saves.
WORTH_SAMPLES = 20_000
_WORTH_CURVATURE = 160_000
# Kernel widths on the middle sample, in those of all rows, and how many directions go through each. Narrower than
# in the end in between: optima that show more thresholds have their basins there, and keep them afterwards.
_WIDTHS = ((1.4, 8), (0.7, 4), (1.0, 6))
# Directions closer than this (cosine, in the optimiser's coordinates) count as one.
_SAME = 0.99
# A sample's optimum moves with the next sample anyway: neither its search nor its sums need be exact.
_COARSE_TOL = 1e-2
_COARSE_EPS = 1e-3
# Relative change of a smooth objective that is still progress: a little more than its rounding.
_LEAST_PROGRESS = 1e-11
# More features than this, and the Hessian costs more than the steps that it saves.
_MOST_CURVATURE_FEATURES = 200
_DIFFERENCE = 1e-4
# Curvature below this fraction of the largest is rounding, or a ridge along which a long step would leave the model.
_LEAST_CURVATURE = 1e-4


@dataclass(frozen=True)
class Problem:
    """How an objective is made of rows, ``objective(rows, gamma, least_eps)``, and how it is to be solved."""

    objective: Callable[[Rows, float, float], Objective]
    gamma: float
    solver: str
    max_iter: int
    tol: float
    smooth: bool  # whether curvature means anything: not for objectives that jump
    whitening: Floats | None = None  # coordinates to search in where no better ones are known

    def solve(
        self, objective: Objective, start: Floats, tol: float | None = None, curvature: Floats | None = None
    ) -> Result:
        """Solve from one start; to the end, unless a larger ``tol`` will do.

        To the end means until the gradient says so: a smooth objective that hardly changes any more can still turn its
        direction by 1e-5.
        """
        to_the_end = tol is None and self.smooth
        return maximise(
            objective,
            start,
            solver=self.solver,
            max_iter=self.max_iter,
            tol=self.tol if tol is None else max(tol, self.tol),
            progress=_LEAST_PROGRESS if to_the_end else SCIPY_PROGRESS,
            curvature=self.whitening if curvature is None else curvature,
        )

    def sharpen(self, objective: Objective, best: Result) -> Result:
        """The best run of all, to some more digits where that makes sense."""
        return sharpen(objective, best) if self.smooth else best

    def roughly(self, sample: Rows, n_rows: int, width: float = 1.0) -> Objective:
        """The objective of a sample, with kernels ``width`` times as wide as those of ``n_rows`` rows."""
        return self.objective(sample, width * self.gamma * (sample.n_rows / n_rows) ** 0.2, _COARSE_EPS)


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
    if rows.n_rows > WORTH_SAMPLES:
        return _coarse_to_fine(rows, problem, starts, rng, run_ended)
    objective = problem.objective(rows, problem.gamma, 0.0)
    runs: list[Result] = []
    for start in starts:
        runs.append(problem.solve(objective, start))
        if run_ended(runs[-1]):
            break
    winner = best_of(runs)
    best = problem.sharpen(objective, winner)
    return best, [best if run is winner else run for run in runs]


def _coarse_to_fine(
    rows: Rows,
    problem: Problem,
    starts: list[Floats],
    rng: np.random.RandomState,
    run_ended: Callable[[Result], bool],
) -> tuple[Result, list[Result]]:
    """Every start on a sample of its own, so that no bad draw misleads them all; then through larger samples.

    A start runs twice: with the wide kernels of the sample, and with the narrow ones of the whole. Either finds
    optima that the other misses.
    """
    runs, narrow = [], []
    for start in starts:
        sample = draw_sample(rows, _COARSE_ROWS, rng)
        runs.append(problem.solve(problem.objective(sample, problem.gamma, _COARSE_EPS), start, _COARSE_TOL))
        narrow.append(problem.solve(problem.roughly(sample, rows.n_rows), start, _COARSE_TOL).direction)
        if run_ended(runs[-1]):
            break
    directions = _through_widths(rows, problem, [run.direction for run in runs], narrow, rng)
    return _on_all_rows(rows, problem, directions, rng), runs


def _through_widths(
    rows: Rows, problem: Problem, wide: list[Floats], narrow: list[Floats], rng: np.random.RandomState
) -> list[Floats]:
    """The best directions on a larger sample, while its kernels narrow to the width of the whole."""
    middle = draw_sample(rows, _MIDDLE_ROWS, rng)
    directions = wide
    for width, survivors in _WIDTHS:
        objective = problem.roughly(middle, rows.n_rows, width)
        candidates = directions + narrow if width == 1 else directions
        few = _distinct_best(objective, candidates)[:survivors]
        directions = [problem.solve(objective, direction, _COARSE_TOL).direction for direction in few]
    return directions


def _on_all_rows(rows: Rows, problem: Problem, directions: list[Floats], rng: np.random.RandomState) -> Result:
    """The best direction by all rows (samples are too close to call), polished on them."""
    objective = problem.objective(rows, problem.gamma, 0.0)
    winner = _distinct_best(objective, directions)[0]
    curvature = None
    if problem.smooth and rows.n_rows > _WORTH_CURVATURE and rows.n_features <= _MOST_CURVATURE_FEATURES:
        curvature = curvature_at(problem.roughly(draw_sample(rows, _CURVATURE_ROWS, rng), rows.n_rows), winner)
    return problem.sharpen(objective, problem.solve(objective, winner, curvature=curvature))


def _distinct_best(objective: Objective, directions: list[Floats]) -> list[Floats]:
    """Directions by falling divergence, no two alike."""
    candidates = [objective.searched_from(direction) for direction in directions]
    candidates.sort(key=lambda u: -objective.evaluate(u).divergence)
    kept: list[Floats] = []
    for u in candidates:
        if all(abs(u @ other) < _SAME for other in kept):
            kept.append(u)
    return [objective.direction_of(u) for u in kept]


def curvature_at(objective: Objective, direction: Floats) -> Floats:
    """A matrix R with R Rᵀ ≈ (−Hessian)⁻¹ of the penalised objective: in p, u = u₀ + R p, its curvature is one.

    Differences of the gradient give the Hessian; where the objective is not concave, its curvature counts by size.
    """
    u = objective.searched_from(direction)
    gradient = objective.penalise(u, objective.evaluate(u))[1]
    hessian = np.empty((len(u), len(u)))
    for j in range(len(u)):
        moved = u.copy()
        moved[j] += _DIFFERENCE
        hessian[j] = (objective.penalise(moved, objective.evaluate(moved))[1] - gradient) / _DIFFERENCE
    values, vectors = np.linalg.eigh(-0.5 * (hessian + hessian.T))
    values = np.maximum(np.abs(values), _LEAST_CURVATURE * np.abs(values).max())
    return np.asarray(vectors / np.sqrt(values))
