"""One projection from labelled rows: where to start, the search, and the densities along what it finds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from melc.arrays import Floats
from melc.density import Decision, decide, estimate_density
from melc.evaluation import VARIANCE_FLOOR
from melc.kernels import is_floored, kernel_variances, total_variance
from melc.objective import Objective
from melc.optimize import Result
from melc.pairwise import spread_of
from melc.rows import Rows
from melc.search import Problem, search
from melc.starts import feature_scale, starting_directions

# Rows that scales and starts are estimated from.
_SAMPLE_ROWS = 10_000

# Methods whose objective is smooth and free of scale. The paper's own two jump, and their ε is tied to the units of the
# data: they search in those units.
_SMOOTH = ("moments", "exact")


@dataclass(frozen=True)
class Settings:
    """What a fit of one projection depends on, besides the rows."""

    gamma: float
    method: str
    eps: float
    solver: str
    n_init: int
    max_iter: int
    tol: float

    def problem(self, scale: Floats) -> Problem:
        smooth = self.method in _SMOOTH

        def objective(rows: Rows, gamma: float, least_eps: float) -> Objective:
            eps = max(self.eps, least_eps) if self.method == "moments" else self.eps
            return Objective(rows, gamma=gamma, method=self.method, eps=eps, scale=scale if smooth else None)

        return Problem(objective, self.gamma, self.solver, self.max_iter, self.tol, smooth)


@dataclass(frozen=True)
class Projection:
    """A direction of length one, the decision along it, and how it was found."""

    direction: Floats
    decision: Decision
    best: Result
    runs: list[Result]
    floored: bool


def learn_projection(
    rows: Rows,
    settings: Settings,
    log_prior_ratio: float,
    rng: np.random.RandomState,
    known: Floats | None = None,
    run_ended: Callable[[Result], bool] = lambda run: False,
) -> Projection:
    """The best direction for two classes; from a known one only, if there is one."""
    sample = rows.sample(_SAMPLE_ROWS, rng)
    scale = feature_scale(sample)
    starts = [known] if known is not None else starting_directions(sample, settings.n_init, scale, rng)
    best, runs = search(rows, settings.problem(scale), starts, rng, run_ended)
    return describe(rows, settings, log_prior_ratio, best, runs)


def describe(rows: Rows, settings: Settings, log_prior_ratio: float, best: Result, runs: list[Result]) -> Projection:
    """The densities and thresholds along the direction of a run."""
    z = rows.project(best.direction)
    members = [rows.members(c) for c in (0, 1)]
    weights = [rows.weights_of(m) for m in members]
    spread = spread_of([z[m] for m in members], weights)
    sign = _sign(best.direction, spread.mean_y - spread.mean_x, total_variance(spread))
    points = [sign * z[m] for m in members]
    variances = kernel_variances(spread, settings.gamma, VARIANCE_FLOOR)
    first, second = (estimate_density(points[c], weights[c], variances[c]) for c in (0, 1))
    decision = decide((first, second), log_prior_ratio).counted(points, weights)
    return Projection(sign * best.direction, decision, best, runs, is_floored(spread, VARIANCE_FLOOR))


def _sign(direction: Floats, difference: float, variance: float) -> float:
    """Turns v so that the second class lies higher on average; where the means agree, so that the largest
    component of v is positive."""
    if abs(difference) > 1e-9 * np.sqrt(variance):
        return float(np.sign(difference))
    return float(np.sign(direction[np.argmax(np.abs(direction))]))
