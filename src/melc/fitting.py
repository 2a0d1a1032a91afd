"""One projection from labelled rows: where to start, the search, and the densities along what it finds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from melc.arrays import Floats
from melc.density import Decision, decide, estimate_density
from melc.evaluation import VARIANCE_FLOOR
from melc.kernels import AS_THEY_ARE, is_floored, kernel_variances, total_variance
from melc.objective import Objective
from melc.optimize import Result, best_of
from melc.pairwise import spread_of
from melc.rows import Rows
from melc.scaling import feature_scale
from melc.search import Problem, search
from melc.shrinkage import Shrinkage, estimate_shrinkage
from melc.starts import starting_directions

# Rows that scales and starts are estimated from.
_SAMPLE_ROWS = 10_000

# Methods whose objective is smooth. The paper's own two jump.
_SMOOTH = ("moments", "exact")

# Squares of projections must be numbers.
_LARGEST_EXPONENT = 151
_LARGEST_SCALE = 10.0**_LARGEST_EXPONENT


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
    shrinkage: float | str | None = None

    def problem(self, scale: Floats, shrinkage: Shrinkage | None) -> Problem:
        def objective(rows: Rows, gamma: float, least_eps: float) -> Objective:
            eps = max(self.eps, least_eps) if self.method == "moments" else self.eps
            return Objective(rows, gamma=gamma, method=self.method, eps=eps, scale=scale, shrinkage=shrinkage)

        return Problem(objective, self.gamma, self.solver, self.max_iter, self.tol, self.method in _SMOOTH)


@dataclass(frozen=True)
class Projection:
    """A direction of length one, the decision along it, and how it was found."""

    direction: Floats
    decision: Decision
    best: Result
    runs: list[Result]
    floored: bool
    contributions: Floats  # of every feature to the projections: its weight times its spread


# Hears of every run, and gets a function that makes the projection of the best run so far; may ask for no more runs by
# returning True.
Listener = Callable[[Result, Callable[[], Projection]], bool]


def learn_projection(
    rows: Rows,
    settings: Settings,
    log_prior_ratio: float,
    rng: np.random.RandomState,
    known: Floats | None = None,
    run_ended: Listener = lambda run, projection: False,
) -> Projection:
    """The best direction for two classes; from a known one only, if there is one."""
    sample = rows.sample(_SAMPLE_ROWS, rng)
    scale = feature_scale(sample, sample.n_rows == rows.n_rows)
    _check_scale(scale)
    shrinkage = estimate_shrinkage(rows, settings.shrinkage, scale)
    starts = [known] if known is not None else starting_directions(sample, settings.n_init, scale, rng)
    finished: list[Result] = []

    def projection(best: Result, runs: list[Result]) -> Projection:
        decision, direction, floored = describe(rows, settings.gamma, shrinkage, log_prior_ratio, best.direction)
        contributions = np.abs(direction) * np.where(np.isfinite(scale), scale, 0.0)
        return Projection(direction, decision, best, runs, floored, contributions)

    def heard(run: Result) -> bool:
        finished.append(run)
        return run_ended(run, lambda: projection(best_of(finished), finished))

    return projection(*search(rows, settings.problem(scale, shrinkage), starts, rng, heard))


def describe(
    rows: Rows, gamma: float, shrinkage: Shrinkage | None, log_prior_ratio: float, direction: Floats
) -> tuple[Decision, Floats, bool]:
    """The densities and thresholds along a direction, that direction turned so that the second class lies higher, and
    whether a class does not vary along it."""
    z = rows.project(direction)
    members = [rows.members(c) for c in (0, 1)]
    weights = [rows.weights_of(m) for m in members]
    spread = spread_of([z[m] for m in members], weights)
    shrunk = AS_THEY_ARE if shrinkage is None else shrinkage.along(direction)
    sign = _sign(direction, spread.mean_y - spread.mean_x, total_variance(spread))
    points = [sign * z[m] for m in members]
    variances = kernel_variances(spread, shrunk, gamma, VARIANCE_FLOOR)
    first, second = (estimate_density(points[c], weights[c], variances[c]) for c in (0, 1))
    decision = decide((first, second), log_prior_ratio).counted(points, weights)
    return decision, sign * direction, is_floored(spread, shrunk, VARIANCE_FLOOR)


def _check_scale(scale: Floats) -> None:
    finite = scale[np.isfinite(scale)]
    if not len(finite):
        raise ValueError(
            "No feature varies by more than the rounding of its values, so no direction tells the classes apart. "
            "Subtract a common offset from the features before they are stored."
        )
    if finite.min() < 1 / _LARGEST_SCALE or finite.max() > _LARGEST_SCALE:
        j = int(np.argmax(np.where(np.isfinite(scale), np.abs(np.log(scale)), 0)))
        raise ValueError(
            f"Feature {j} has a standard deviation of {scale[j]:.3g}; beyond 1e{_LARGEST_EXPONENT} and below "
            f"1e-{_LARGEST_EXPONENT} its square is no number. Choose other units for it."
        )


def _sign(direction: Floats, difference: float, variance: float) -> float:
    """Turns v so that the second class lies higher on average; where the means agree, so that the largest
    component of v is positive."""
    if abs(difference) > 1e-9 * np.sqrt(variance):
        return float(np.sign(difference))
    return float(np.sign(direction[np.argmax(np.abs(direction))]))
