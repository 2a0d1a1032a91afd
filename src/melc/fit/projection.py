"""One projection from labelled rows: where to start, the search, and the densities along what it finds."""

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from melc._sklearn import one_blas_thread
from melc.arrays import Floats
from melc.data.passes import Together, solve_together
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.coordinates import Coordinates
from melc.fit.search import Problem, search
from melc.fit.shrinkage import estimate_shrinkage
from melc.fit.solvers import Result, best_of
from melc.kernels import AS_THEY_ARE, is_floored, kernel_variances, shrunk_variances, total_variance
from melc.model.condensing import densities_along
from melc.model.decision import Decision, decide
from melc.objective import Objective
from melc.objective.base import VARIANCE_FLOOR
from melc.objective.shrinkage import Shrinkage

# Rows that scales and starts are estimated from.
_SAMPLE_ROWS = 10_000

# Methods whose objective is smooth. The paper's own two jump.
_SMOOTH = ("moments", "exact")

# A class whose variance is a smaller part of its features' than this does not really vary: random directions leave all
# of it, real data a hundredth and more.
_CANCELLED = 1e-8

# Numbers next to each other that the narrowest kernel along a direction is wide.
_STEPS_PER_KERNEL = 8
# Less has no reciprocal. Features of the smallest scale come near it where a class hardly varies.
_LEAST_VARIANCE = 1e-305

# Rows from which several classes are worth solving side by side: fewer stay in the cache anyway.
_WORTH_TOGETHER = 100_000


@dataclass(frozen=True)
class Settings:
    """What a fit of one projection depends on, besides the rows: parameters of ``MELC`` with the same names."""

    gamma: float
    method: str
    eps: float
    solver: str
    n_init: int
    max_iter: int
    tol: float
    shrinkage: float | str | None = None

    def problem(self, coordinates: Coordinates, shrinkage: Shrinkage | None) -> Problem:
        """Return how objectives are made of rows, and how they are solved."""

        def objective(rows: Rows, gamma: float, least_eps: float) -> Objective:
            eps = max(self.eps, least_eps) if self.method == "moments" else self.eps
            scale = coordinates.scale
            return Objective(rows, gamma=gamma, method=self.method, eps=eps, scale=scale, shrinkage=shrinkage)

        smooth, white = self.method in _SMOOTH, coordinates.whitening()
        return Problem(objective, self.gamma, self.solver, self.max_iter, self.tol, smooth, white)


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
        """Whether a class hardly varies along the direction, perhaps because its features cancel each other."""
        return self.floored or self.variance_left < _CANCELLED


# Is called after every run, with a function that makes the projection of the best run so far. Returns True to stop.
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
    """Return a projection for every part: rows with two codes each, one part for every class if there are several.

    Parts are solved side by side where that saves passes over the data. ``known``, of shape (n_parts, d), are
    directions to go on from instead of new starts.
    """
    rngs = [rng]
    if len(parts) > 1:  # one each, so that the order in which they are solved does not matter
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
    """Return the best direction for two classes and the decision along it; from a known direction only, if given."""
    sample = draw_sample(rows, _SAMPLE_ROWS, rng)
    coordinates = Coordinates(sample, sample.n_rows == rows.n_rows)
    shrinkage = estimate_shrinkage(rows, settings.shrinkage, coordinates.scale)
    starts = [known] if known is not None else coordinates.starting_directions(settings.n_init, rng)
    centre = coordinates.far_centre
    finished: list[Result] = []

    def projection(best: Result, runs: list[Result]) -> Projection:
        line = describe(rows, settings.gamma, shrinkage, log_prior_ratio, best.direction)
        left = coordinates.variance_left(line.direction, line.variances)
        contributions = coordinates.contributions(line.direction)
        return Projection(line.direction, line.decision, best, runs, contributions, left, line.floored)

    def heard(run: Result) -> bool:
        finished.append(run)
        return run_ended(run, lambda: projection(best_of(finished), finished))

    with contextlib.closing(rows.around(centre)) if centre is not None else contextlib.nullcontext(rows) as near:
        found = search(near, settings.problem(coordinates, shrinkage), starts, rng, heard)
    return projection(*found)


@dataclass(frozen=True)
class Line:
    """The densities and thresholds along a direction, which is turned so that the second class lies higher."""

    direction: Floats
    decision: Decision
    variances: tuple[float, float]  # of the classes, shrunk
    floored: bool


def describe(rows: Rows, gamma: float, shrinkage: Shrinkage | None, log_prior_ratio: float, direction: Floats) -> Line:
    """Return the densities, thresholds and counts along a direction."""
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


def _sign(direction: Floats, difference: float, variance: float) -> float:
    """The factor that turns v so that the second class lies higher on average.

    Where the means agree, the one that makes the largest component of v positive.
    """
    if abs(difference) > 1e-9 * np.sqrt(variance):
        return float(np.sign(difference))
    return float(np.sign(direction[np.argmax(np.abs(direction))]))
