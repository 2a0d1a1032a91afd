"""Learning one projection from labelled rows: starting directions, search, and the densities along the result."""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

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
from melc.fit.condensing import densities_along
from melc.fit.coordinates import MOST_WHITENED_FEATURES, Coordinates
from melc.fit.density import LEAST_VARIANCE
from melc.fit.grid_search import MOST_FEATURES, search_on_grid
from melc.fit.problem import Problem
from melc.fit.run import BY_LIKELIHOOD, Result
from melc.fit.search import search
from melc.fit.selection import Judge
from melc.fit.shrinkage import estimate_shrinkage
from melc.fit.solvers import best_of
from melc.fit.tabulation import DensityRatio, curve_of, pictured, tabulate
from melc.kernels import AS_THEY_ARE, Shrunk, is_floored, shrunk_variances
from melc.model.line import Line
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
    """A direction of length one with the curve along it, and how it was found."""

    line: Line
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
    parts: list[tuple[int, Rows]],
    settings: Settings,
    intercepts: Floats,
    rng: np.random.RandomState,
    known: Floats | None,
    run_ended: Listener,
) -> list[Projection]:
    """Return one projection for each part: the index of a class, and rows with code 1 for that class.

    Parts are solved in parallel where that saves passes over the data. ``known``, of shape (n_parts, d), are directions
    to start from instead of new ones.
    """
    rngs = [rng]
    if len(parts) > 1:  # one for each part, so that the order in which they are solved does not matter
        rngs = [np.random.RandomState(seed) for seed in rng.randint(2**31 - 1, size=len(parts))]

    def learn(k: int) -> Projection:
        start = None if known is None else known[k]
        class_index, rows = parts[k]
        with contextlib.closing(rows):
            found = learn_projection(rows, settings, rngs[k], start, run_ended, float(intercepts[k]))
            return replace(found, line=replace(found.line, class_index=class_index))

    if len(parts) == 1 or parts[0][1].n_rows < _WORTH_TOGETHER or not parts[0][1].divisible:
        return [learn(k) for k in range(len(parts))]
    together = Together(len(parts))
    for _, rows in parts:
        rows.together = together
    return solve_together([functools.partial(learn, k) for k in range(len(parts))], together)


def learn_projection(
    rows: Rows,
    settings: Settings,
    rng: np.random.RandomState,
    known: Floats | None = None,
    run_ended: Listener = lambda run, projection: False,
    intercept: float = 0.0,
) -> Projection:
    """Return the best direction for two classes and the curve along it.

    The search starts from ``known``, of shape (d,), if it is given, otherwise from ``settings.n_init`` directions.
    ``intercept`` is the log ratio of the priors; it says where the decision changes.
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
        mean, spread = coordinates.mean, coordinates.finite_scale
        found = describe(rows, settings, shrinkage, best.direction, sample, spread, intercept)
        left = coordinates.variance_left(found.line.direction, found.variances)
        return Projection(found.line, best, runs, mean, spread, left, found.floored)

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
    """The line along a direction, and the variances of the classes along it, after shrinkage."""

    line: Line
    variances: tuple[float, float]
    floored: bool


def describe(
    rows: Rows,
    settings: Settings,
    shrinkage: Shrinkage | None,
    direction: Floats,
    sample: MemoryRows,
    spread: Floats,
    intercept: float,
) -> Described:
    """Return the line along a direction of shape (d,) or its opposite: the heaviest feature has a positive weight.

    ``sample`` are some of the rows, ``spread`` the standard deviations of the features.
    """
    if direction[np.argmax(np.abs(direction) * spread)] < 0:
        direction = -direction
    summary = rows.summarise(direction)
    shrunk = AS_THEY_ARE if shrinkage is None else shrinkage.along(direction)
    formula = density_ratio(rows, settings, shrunk, summary, direction, sample)
    line = _line(rows, formula, direction, spread, intercept)
    variances = shrunk_variances(summary.spread, shrunk)
    return Described(line, variances, is_floored(summary.spread, shrunk, VARIANCE_FLOOR))


def _line(rows: Rows, formula: DensityRatio, direction: Floats, spread: Floats, intercept: float) -> Line:
    """Return the line of a direction with the given densities; it is the only one of its class."""
    table = tabulate(formula)
    curve = curve_of(table, intercept)
    added = [curve.at(density.support) for density in formula.densities]
    weights = [0.5 * density.weights for density in formula.densities]
    mean = sum(float(w @ g) for w, g in zip(weights, added, strict=True))
    importance = sum(float(w @ np.abs(g - mean)) for w, g in zip(weights, added, strict=True))
    contributions = np.abs(direction) * spread
    places, densities = pictured(table)
    return Line(
        direction=direction,
        curve=curve,
        class_index=1,
        importance=importance,
        feature_importances=importance * contributions / contributions.sum(),
        counts=rows.count(direction, curve.plus(intercept).thresholds),
        places=places,
        densities=densities,
        offset=intercept,
    )


def density_ratio(
    rows: Rows, settings: Settings, shrunk: Shrunk, summary: Summary, direction: Floats, sample: MemoryRows
) -> DensityRatio:
    """Return the formula of the curve along a direction of shape (d,), of which the summary is known."""
    # The bandwidth must not be below the spacing of floats, or a kernel could fall between two neighbouring floats.
    least = max(LEAST_VARIANCE, (_STEPS_PER_KERNEL * float(np.spacing(summary.largest))) ** 2)
    variances = density_variances(settings.bandwidth, settings.gamma, summary.spread, shrunk, sample, direction)
    densities = densities_along(rows, direction, summary, (max(variances[0], least), max(variances[1], least)))
    return DensityRatio(densities, rows.total_weights)
