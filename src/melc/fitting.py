"""One projection from labelled rows: where to start, the search, and the densities along what it finds."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from melc.arrays import Floats
from melc.condensing import densities_along
from melc.density import Decision, decide
from melc.evaluation import VARIANCE_FLOOR
from melc.kernels import AS_THEY_ARE, is_floored, kernel_variances, shrunk_variances, total_variance
from melc.objective import Objective
from melc.optimize import Result, best_of
from melc.rows import Rows
from melc.scaling import far_centre, feature_scale, mean_and_deviation, whitening, within_covariance
from melc.search import Problem, search
from melc.shrinkage import Shrinkage, estimate_shrinkage
from melc.starts import starting_directions

# Rows that scales and starts are estimated from.
_SAMPLE_ROWS = 10_000

# Methods whose objective is smooth. The paper's own two jump.
_SMOOTH = ("moments", "exact")

# More features than this, and the covariance costs more than the steps that it saves.
_MOST_WHITENED_FEATURES = 200

# A class whose variance is a smaller part of its features' than this does not really vary: random directions leave all
# of it, real data a hundredth and more.
_CANCELLED = 1e-8

# Numbers next to each other that the narrowest kernel along a direction is wide.
_STEPS_PER_KERNEL = 8

# Squares of projections must be numbers.
_LARGEST_EXPONENT = 151
_LARGEST_SCALE = 10.0**_LARGEST_EXPONENT
# Less has no reciprocal. Features of the smallest scale come near it where a class hardly varies.
_LEAST_VARIANCE = 1e-305


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

    def problem(self, sample: Rows, scale: Floats, shrinkage: Shrinkage | None) -> Problem:
        def objective(rows: Rows, gamma: float, least_eps: float) -> Objective:
            eps = max(self.eps, least_eps) if self.method == "moments" else self.eps
            return Objective(rows, gamma=gamma, method=self.method, eps=eps, scale=scale, shrinkage=shrinkage)

        white = whitening(within_covariance(sample, scale)) if len(scale) <= _MOST_WHITENED_FEATURES else None
        return Problem(objective, self.gamma, self.solver, self.max_iter, self.tol, self.method in _SMOOTH, white)


@dataclass(frozen=True)
class Projection:
    """A direction of length one, the decision along it, and how it was found."""

    direction: Floats
    decision: Decision
    best: Result
    runs: list[Result]
    contributions: Floats  # of every feature to the projections: its weight times its spread
    variance_left: float  # of a class along the direction, as a part of what its features bring along; the smaller
    floored: bool

    @property
    def is_degenerate(self) -> bool:
        """Whether a class hardly varies along the direction, be it that its features cancel each other."""
        return self.floored or self.variance_left < _CANCELLED


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
    centre = far_centre(sample, scale)
    finished: list[Result] = []

    def projection(best: Result, runs: list[Result]) -> Projection:
        line = describe(rows, settings.gamma, shrinkage, log_prior_ratio, best.direction)
        contributions = np.abs(line.direction) * np.where(np.isfinite(scale), scale, 0.0)
        left = _variance_left(sample, line)
        return Projection(line.direction, line.decision, best, runs, contributions, left, line.floored)

    def heard(run: Result) -> bool:
        finished.append(run)
        return run_ended(run, lambda: projection(best_of(finished), finished))

    with contextlib.closing(rows.around(centre)) if centre is not None else contextlib.nullcontext(rows) as near:
        found = search(near, settings.problem(sample, scale, shrinkage), starts, rng, heard)
    return projection(*found)


@dataclass(frozen=True)
class Line:
    """The densities and thresholds along a direction, which is turned so that the second class lies higher."""

    direction: Floats
    decision: Decision
    variances: tuple[float, float]  # of the classes, shrunk
    floored: bool


def describe(rows: Rows, gamma: float, shrinkage: Shrinkage | None, log_prior_ratio: float, direction: Floats) -> Line:
    """What there is to see along a direction."""
    summary = rows.summarise(direction)
    spread = summary.spread
    shrunk = AS_THEY_ARE if shrinkage is None else shrinkage.along(direction)
    if _sign(direction, spread.mean_y - spread.mean_x, total_variance(spread)) < 0:
        direction, summary = -direction, summary.mirrored()
    # A kernel narrower than the steps between projections would lie between two of them.
    least = max(_LEAST_VARIANCE, (_STEPS_PER_KERNEL * float(np.spacing(summary.largest))) ** 2)
    first, second = (max(v, least) for v in kernel_variances(spread, shrunk, gamma, VARIANCE_FLOOR))
    decision = decide(densities_along(rows, direction, summary, (first, second)), log_prior_ratio)
    decision = replace(decision, counts=rows.count(direction, decision.thresholds))
    return Line(direction, decision, shrunk_variances(spread, shrunk), is_floored(spread, shrunk, VARIANCE_FLOOR))


def _variance_left(sample: Rows, line: Line) -> float:
    """The variance of a class over the sum of its features' own, each times its weight; the smaller of two classes."""
    weights, left = sample.all_weights(), []
    for c in (0, 1):
        members = sample.members(c)
        _, deviation = mean_and_deviation(sample.X[members], weights[members])
        size = float(np.linalg.norm(line.direction * deviation))
        left.append(line.variances[c] / size**2 if size**2 > 0 else 0.0)
    return min(left)


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
