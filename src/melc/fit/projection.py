"""Learning one projection from labelled rows: starting directions, search, and the densities along the result."""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from melc._sklearn import one_blas_thread
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.passes import Together, solve_together
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.data.summary import Summary
from melc.fit.bandwidth import density_variances
from melc.fit.coordinates import MOST_WHITENED_FEATURES, Coordinates
from melc.fit.grid_search import MOST_FEATURES, search_on_grid
from melc.fit.problem import Problem
from melc.fit.run import BY_LIKELIHOOD, Result
from melc.fit.search import search
from melc.fit.selection import Judge
from melc.fit.shrinkage import estimate_shrinkage
from melc.fit.solvers import best_of
from melc.kernels import AS_THEY_ARE, Shrunk, is_floored, shrunk_variances, total_variance
from melc.model.condensing import densities_along
from melc.model.decision import Decision, decide
from melc.model.density import LEAST_VARIANCE, Density
from melc.objective import Objective
from melc.objective.base import VARIANCE_FLOOR
from melc.objective.shrinkage import Shrinkage
from melc.sums import SUMS

# Number of rows from which scales and starting directions are estimated.
_SAMPLE_ROWS = 10_000

# If Coordinates.variance_left is below this, the features of a class cancel each other and the class hardly varies. It
# is about one for random directions, and a hundredth or more for directions found on real data.
_CANCELLED = 1e-8

# Minimum bandwidth of a density, in units of the spacing of floats at the outermost projection.
_STEPS_PER_KERNEL = 8

# Largest bandwidth: its square is still a float.
_WIDEST = 1e153

# From this many rows on, several classes are solved in parallel, which saves passes. Fewer rows stay in the cache.
_WORTH_TOGETHER = 100_000


@dataclass(frozen=True)
class Settings:
    """The settings of a fit: parameters of :class:`melc.MELC` with the same names."""

    gamma: float
    method: str
    eps: float
    solver: str
    n_init: int
    max_iter: int
    tol: float
    shrinkage: float | str | None = None
    selection: str = "divergence"
    bandwidth: float | str = "silverman"

    @property
    def suits_a_grid(self) -> bool:
        """Whether starts may be searched on a grid. The paper's methods and solvers are taken at their word."""
        return self.method == "moments" and self.solver == "lbfgs"

    def problem(self, coordinates: Coordinates, shrinkage: Shrinkage | None, judge: Judge | None = None) -> Problem:
        """Return the search problem with these settings."""

        def objective(rows: Rows, gamma: float, least_eps: float) -> Objective:
            eps = max(self.eps, least_eps) if self.method == "moments" else self.eps
            scale = coordinates.scale
            return Objective(rows, gamma=gamma, method=self.method, eps=eps, scale=scale, shrinkage=shrinkage)

        def whitening() -> Floats | None:
            return coordinates.white.matrix if len(coordinates.scale) <= MOST_WHITENED_FEATURES else None

        smooth = SUMS[self.method].smooth
        choose = None if judge is None else judge.best
        return Problem(objective, self.gamma, self.solver, self.max_iter, self.tol, smooth, whitening, choose)


@dataclass(frozen=True)
class Projection:
    """A direction of length one, the decision along it, and how it was found."""

    direction: Floats
    decision: Decision
    best: Result
    runs: list[Result]
    mean: Floats  # weighted means of the features
    spread: Floats  # standard deviations of the features, zero for those that are constant
    variance_left: float  # see Coordinates.variance_left
    floored: bool  # whether the variance of a class along the direction is below the floor

    @property
    def is_degenerate(self) -> bool:
        """Whether a class hardly varies along the direction, for example because its features cancel each other."""
        return self.floored or self.variance_left < _CANCELLED


# Called after each run, with a function that returns the projection of the best run so far. Returns True to stop.
Listener = Callable[[Result, Callable[[], Projection]], bool]


@one_blas_thread
def learn_projections(
    parts: list[Rows],
    settings: Settings,
    log_prior_ratios: list[float],
    rng: np.random.RandomState,
    known: Floats | None,
    run_ended: Listener,
) -> list[Projection]:
    """Return one projection for each part. Each part has codes 0 and 1; with several classes, one part for each class.

    Parts are solved in parallel where that saves passes over the data. ``known``, of shape (n_parts, d), are directions
    to start from instead of new ones.
    """
    rngs = [rng]
    if len(parts) > 1:  # one for each part, so that the order in which they are solved does not matter
        rngs = [np.random.RandomState(seed) for seed in rng.randint(2**31 - 1, size=len(parts))]

    def learn(k: int) -> Projection:
        start = None if known is None else known[k]
        with contextlib.closing(parts[k]):
            return learn_projection(parts[k], settings, log_prior_ratios[k], rngs[k], start, run_ended)

    if len(parts) == 1 or parts[0].n_rows < _WORTH_TOGETHER or not parts[0].divisible:
        return [learn(k) for k in range(len(parts))]
    together = Together(len(parts))
    for part in parts:
        part.together = together
    return solve_together([functools.partial(learn, k) for k in range(len(parts))], together)


def learn_projection(
    rows: Rows,
    settings: Settings,
    log_prior_ratio: float,
    rng: np.random.RandomState,
    known: Floats | None = None,
    run_ended: Listener = lambda run, projection: False,
) -> Projection:
    """Return the best direction for two classes and the decision along it.

    The search starts from ``known``, of shape (d,), if it is given, otherwise from ``settings.n_init`` directions.
    """
    sample = draw_sample(rows, _SAMPLE_ROWS, rng)
    coordinates = Coordinates(sample, sample.n_rows == rows.n_rows)
    _check_width(settings, coordinates)
    shrinkage = estimate_shrinkage(rows, settings.shrinkage, coordinates.scale)
    # With shrinkage the divergence chooses: it then knows how wide the kernels will be, and the likelihood does not.
    by_likelihood = settings.selection == "likelihood" and shrinkage is None
    judge = Judge(coordinates, settings.gamma) if by_likelihood else None
    finished: list[Result] = []

    def projection(best: Result, runs: list[Result]) -> Projection:
        found = describe(rows, settings, shrinkage, log_prior_ratio, best.direction, sample)
        left = coordinates.variance_left(found.direction, found.variances)
        mean, spread = coordinates.mean, coordinates.finite_scale
        return Projection(found.direction, found.decision, best, runs, mean, spread, left, found.floored)

    def heard(run: Result) -> bool:
        finished.append(run)
        return run_ended(run, lambda: projection(best_of(finished), finished))

    return projection(*search_directions(rows, settings, coordinates, shrinkage, rng, known, heard, judge))


def _check_width(settings: Settings, coordinates: Coordinates) -> None:
    """Raise an error if the square of a bandwidth may be beyond the range of floats."""
    fixed = 0.0 if isinstance(settings.bandwidth, str) else float(settings.bandwidth)
    largest = max(float(np.linalg.norm(coordinates.finite_scale)), fixed)
    if settings.gamma * largest > _WIDEST:
        raise ValueError(
            f"gamma={settings.gamma:g} times a width of {largest:.3g} is beyond the range of floating-point numbers "
            "when it is squared. Use a smaller gamma or bandwidth, or divide the features by their standard deviations."
        )


def search_directions(
    rows: Rows,
    settings: Settings,
    coordinates: Coordinates,
    shrinkage: Shrinkage | None,
    rng: np.random.RandomState,
    known: Floats | None = None,
    run_ended: Callable[[Result], bool] = lambda run: False,
    judge: Judge | None = None,
) -> tuple[Result, list[Result]]:
    """Return the best run, and the runs from all starts: on a grid where that is possible, else the general way.

    With a ``judge`` the best is what it chooses, which may also be a linear direction.
    """
    centre, sample = coordinates.far_centre, coordinates.sample
    with contextlib.closing(rows.around(centre)) if centre is not None else contextlib.nullcontext(rows) as near:
        problem = settings.problem(coordinates, shrinkage, judge)
        dense = not sparse.issparse(sample.X) and sample.n_features <= MOST_FEATURES
        if known is None and shrinkage is None and settings.suits_a_grid and dense:
            best, runs = search_on_grid(near, problem, coordinates, settings.n_init, rng, run_ended)
        else:
            starts = [known] if known is not None else coordinates.starting_directions(settings.n_init, rng)
            best, runs = search(near, problem, starts, rng, run_ended)
        return best if judge is None else _or_linear(best, judge, near, problem), runs


def _or_linear(best: Result, judge: Judge, rows: Rows, problem: Problem) -> Result:
    """The best run, or a linear direction if the judge prefers it, with its divergence."""
    directions = [best.direction, *judge.linear_directions()]
    chosen = judge.best(directions)
    if chosen == 0:
        return best
    objective = problem.objective(rows, problem.gamma, 0.0)
    evaluation = objective.evaluate(objective.searched_from(directions[chosen]))
    return Result(
        direction=directions[chosen],
        divergence=evaluation.divergence,
        norm=1.0,
        n_iter=0,
        n_evaluations=1,
        n_exponentials=evaluation.n_exponentials,
        converged=True,
        reason=BY_LIKELIHOOD,
        history=(),
    )


@dataclass(frozen=True)
class Described:
    """The decision along a direction, whose sign is such that the mean of the second class is the higher one."""

    direction: Floats
    decision: Decision
    variances: tuple[float, float]  # of the classes, after shrinkage
    floored: bool


def describe(
    rows: Rows,
    settings: Settings,
    shrinkage: Shrinkage | None,
    log_prior_ratio: float,
    direction: Floats,
    sample: MemoryRows,
) -> Described:
    """Return the densities, thresholds and counts along a direction of shape (d,). ``sample`` are some of the rows."""
    summary = rows.summarise(direction)
    spread = summary.spread
    shrunk = AS_THEY_ARE if shrinkage is None else shrinkage.along(direction)
    if _sign(direction, spread.mean_y - spread.mean_x, total_variance(spread)) < 0:
        direction, summary = -direction, summary.mirrored()
    decision = decide(class_densities(rows, settings, shrunk, summary, direction, sample), log_prior_ratio)
    decision = decision.with_counts(rows.count(direction, decision.thresholds))
    return Described(direction, decision, shrunk_variances(spread, shrunk), is_floored(spread, shrunk, VARIANCE_FLOOR))


def class_densities(
    rows: Rows, settings: Settings, shrunk: Shrunk, summary: Summary, direction: Floats, sample: MemoryRows
) -> tuple[Density, Density]:
    """Return the densities of both classes along a direction of shape (d,), of which the summary is known."""
    # The bandwidth must not be below the spacing of floats, or a kernel could fall between two neighbouring floats.
    least = max(LEAST_VARIANCE, (_STEPS_PER_KERNEL * float(np.spacing(summary.largest))) ** 2)
    variances = density_variances(settings.bandwidth, settings.gamma, summary.spread, shrunk, sample, direction)
    return densities_along(rows, direction, summary, (max(variances[0], least), max(variances[1], least)))


def _sign(direction: Floats, difference: float, variance: float) -> float:
    """Return the sign for v that makes the mean of the second class the higher one.

    If the means are equal, return the sign that makes the largest component of v positive.
    """
    if abs(difference) > 1e-9 * np.sqrt(variance):
        return float(np.sign(difference))
    return float(np.sign(direction[np.argmax(np.abs(direction))]))
