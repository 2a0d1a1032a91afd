"""What is maximised and how, and the search from several starts: on all rows, or for large data from coarse to fine.

On large data each start runs on a small stratified sample, with the wide kernels of the sample and with the narrow ones
of all rows: each finds optima that the other misses. The best few directions continue on a larger sample, with
bandwidths above, below and at last equal to the one of all rows. Only the best direction is optimised on all rows.

Here the runs are made by the solver that the user chose, with certified sums throughout. Where the objective has a
grid, :mod:`melc.fit.grid_search` makes them, which is faster.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from melc.arrays import Floats, unit
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.coordinates import MOST_WHITENED_FEATURES, Coordinates
from melc.fit.evidence import Judge
from melc.fit.solvers import LONG_RUN, SCIPY_PROGRESS, SOLVERS, Result, best_run, maximise, sharpen
from melc.fit.validation import MOST_SORTED_NUMBERS
from melc.objective import Objective
from melc.objective.base import Shrinkage
from melc.objective.grid import Ascent
from melc.sums import SUMS

# Optima differ from sample to sample, so neither the search on a sample nor its sums need high accuracy.
_COARSE_TOL, _COARSE_EPS = 1e-2, 1e-3
# Smallest relative change of a smooth objective that counts as progress, a little more than its rounding.
LEAST_PROGRESS = 1e-11
# With more features than this, making a result more accurate would take too many steps.
_MOST_SHARPENED_FEATURES = 200

# Beyond this many rows, starts run on samples.
MANY_ROWS = 20_000
# Rows of the sample of each start, and of the larger one on which the best directions continue.
COARSE_ROWS, MIDDLE_ROWS = 5_000, 40_000
# Bandwidths on the larger sample, relative to that of all rows, and the number of directions optimised with each. The
# second is narrower than the last, because optima with more thresholds are found there and stay optima afterwards.
_WIDTHS = ((1.4, 8), (0.7, 4), (1.0, 6))
# Two directions whose absolute cosine, in the coordinates of the search, is at least this count as one.
_SAME_DIRECTION = 0.99
# The number of runs that are optimised on all rows, and the fraction of the best divergence that they must reach.
_POLISHED, _WORTH_POLISHING = 3, 0.97
# Called after each run; returns whether to stop.
RunListener = Callable[[Result], bool]


@dataclass(frozen=True)
class Settings:
    """The settings of a fit: parameters of :class:`melc.MELC` with the same names."""

    gamma: float = 1.0
    method: str = "moments"
    eps: float = 1e-6
    solver: str = "lbfgs"
    n_init: int = 10
    max_iter: int = 200
    tol: float = 1e-5
    shrinkage: float | str | None = None
    selection: str = "divergence"
    bandwidth: float | str = "silverman"
    max_features: int | None = None
    whole_weights: int | None = None

    @property
    def has_grid(self) -> bool:
        """Whether the starts may be searched on a grid: both the method and the solver must allow it."""
        return SUMS[self.method].has_grid and SOLVERS[self.solver].has_grid


@dataclass(frozen=True)
class Problem:
    """A search problem: how to make an objective from rows, and how to maximise it.

    With a ``judge``, the best direction is the one that it chooses; otherwise the one of the highest divergence.
    """

    settings: Settings
    coordinates: Coordinates
    shrinkage: Shrinkage | None = None
    judge: Judge | None = None

    @property
    def gamma(self) -> float:
        return self.settings.gamma

    @property
    def smooth(self) -> bool:
        """Whether the objective is smooth. Objectives with jumps have no useful curvature."""
        return SUMS[self.settings.method].smooth

    def objective(self, rows: Rows, gamma: float | None = None, coarse: bool = False) -> Objective:
        """Return the objective of some rows, with another ``gamma`` or with ``coarse`` sums if asked for.

        Sums are made coarser only if their error bound does not depend on the scale of the data.
        """
        settings = self.settings
        coarse = coarse and SUMS[settings.method].scale_free
        return Objective(
            rows,
            gamma=self.gamma if gamma is None else gamma,
            method=settings.method,
            eps=max(settings.eps, _COARSE_EPS) if coarse else settings.eps,
            scale=self.coordinates.scale,
            shrinkage=self.shrinkage,
        )

    def gamma_for(self, sample: Rows, rows: Rows) -> float:
        """Return the gamma with which the kernels of a sample are as wide as those of all rows."""
        return self.gamma * (sum(sample.total_weights) / sum(rows.total_weights)) ** 0.2

    def solve(self, objective: Objective, start: Floats, coarse: bool = False) -> Result:
        """Maximise the objective from one start, to the tolerance of the problem or, if ``coarse``, to a larger one.

        Unless ``coarse``, a smooth objective is maximised until the gradient is small enough: when its value hardly
        changes any more, the direction can still change by 1e-5.
        """
        settings, few_features = self.settings, len(self.coordinates.scale) <= MOST_WHITENED_FEATURES
        return maximise(
            objective,
            start,
            solver=settings.solver,
            max_iter=settings.max_iter,
            tol=max(_COARSE_TOL, settings.tol) if coarse else settings.tol,
            progress=LEAST_PROGRESS if self.smooth and not coarse else SCIPY_PROGRESS,
            curvature=self.coordinates.white.matrix if few_features else None,
        )

    def sharpen(self, objective: Objective, best: Result) -> Result:
        """Return the best run made more accurate by :func:`melc.fit.solvers.sharpen`, if the objective is smooth."""
        if not self.smooth:
            return best
        shortest = 0 if self.needs_sharpening(objective.rows) else LONG_RUN
        return sharpen(objective, best, shortest)

    def needs_sharpening(self, rows: Rows) -> bool:
        """Return whether runs on the same data may end at slightly different directions.

        A run ends anywhere within its tolerance. Small data are brought into one order and memory layout, and give the
        same bits. Larger data may come in another order, as a sparse matrix or from a cluster, and then results differ
        by 1e-6. With very many features the steps that prevent this cost too much.
        """
        return rows.n_rows * rows.n_features > MOST_SORTED_NUMBERS and rows.n_features <= _MOST_SHARPENED_FEATURES


@dataclass(frozen=True)
class EndedRun:
    """A run: the point where it ended, of length one, its result, and the ascent if it was made on a grid."""

    point: Floats
    result: Result
    ascent: Ascent | None = None

    @property
    def divergence(self) -> float:
        return self.result.divergence


class Searcher:
    """Makes runs on some rows. Points are vectors of length one in its coordinates: here, of the scaled features.

    If the rows are a sample (``coarse``), they need no high accuracy: the optimum of all rows is elsewhere anyway.
    """

    def __init__(self, rows: Rows, problem: Problem, coarse: bool = False) -> None:
        self.rows, self.problem, self.coarse = rows, problem, coarse

    def scaled(self, point: Floats) -> Floats:
        """Return the weights of the scaled features at a point, shape (n_features,)."""
        return point

    def point(self, direction: Floats) -> Floats:
        """Return the point of a direction in the units of the features."""
        return unit(direction * self.problem.coordinates.finite_scale)

    def direction(self, point: Floats) -> Floats:
        """Return the direction of length one, in the units of the features, at a point."""
        return self.problem.coordinates.direction_of(self.scaled(point))

    def objective(self, gamma: float) -> Objective:
        """Return the objective of the rows, with kernels of the given gamma."""
        return self.problem.objective(self.rows, gamma, self.coarse)

    def solve(self, objective: Objective, start: Floats) -> EndedRun:
        """Return the run of the solver from a direction, to a low accuracy."""
        result = self.problem.solve(objective, start, coarse=True)
        return EndedRun(self.point(result.direction), result)

    def runs(self, starts: Sequence[Floats], gamma: float) -> Iterator[EndedRun]:
        """Yield the runs from some points."""
        objective = self.objective(gamma)
        for start in starts:
            yield self.solve(objective, self.direction(start))

    def values(self, points: Sequence[Floats], gamma: float) -> list[float]:
        """Return the divergence at some points."""
        objective = self.objective(gamma)
        return [objective.evaluate(self.scaled(point)).divergence for point in points]

    def polish(self, objective: Objective, found: EndedRun) -> Result:
        """Return the optimum near the end of a run, of an objective of all rows and to full accuracy."""
        return self.problem.sharpen(objective, self.problem.solve(objective, found.result.direction))


def search(
    rows: Rows,
    problem: Problem,
    starts: list[Floats],
    rng: np.random.RandomState,
    run_ended: RunListener = lambda run: False,
) -> tuple[Result, list[Result]]:
    """Return the best run on all rows, and the runs from all starts (on samples, if the data are large).

    ``run_ended`` is called after each run and may stop the search by returning True.
    """
    if rows.n_rows > MANY_ROWS:
        return _coarse_to_fine(rows, problem, starts, rng, run_ended)
    objective = problem.objective(rows)
    runs = until_stopped((problem.solve(objective, start) for start in starts), run_ended, lambda run: run)
    winner = best_run(runs) if problem.judge is None else runs[problem.judge.best([run.direction for run in runs])]
    best = problem.sharpen(objective, winner)
    return best, [best if run is winner else run for run in runs]


def _coarse_to_fine(
    rows: Rows, problem: Problem, starts: list[Floats], rng: np.random.RandomState, run_ended: RunListener
) -> tuple[Result, list[Result]]:
    """Return what :func:`search` returns. Each start has its own sample, so that a bad one does not mislead all."""

    def on_samples() -> Iterator[tuple[EndedRun, EndedRun]]:
        for start in starts:
            sample = Searcher(draw_sample(rows, COARSE_ROWS, rng), problem, coarse=True)
            gammas = problem.gamma, problem.gamma_for(sample.rows, rows)
            wide, narrow = (sample.solve(sample.objective(gamma), start) for gamma in gammas)
            yield wide, narrow

    pairs = until_stopped(on_samples(), run_ended, lambda pair: pair[0].result)
    middle = Searcher(draw_sample(rows, MIDDLE_ROWS, rng), problem, coarse=True)
    return finish(middle, rows, through_widths(middle, rows, pairs), [wide for wide, _ in pairs])


def through_widths(middle: Searcher, rows: Rows, pairs: Sequence[tuple[EndedRun, EndedRun]]) -> list[EndedRun]:
    """Return the best runs on the larger sample, made with each of the bandwidths in _WIDTHS in turn.

    ``pairs`` are two runs on each small sample, with the bandwidth of the sample and with the bandwidth of all
    ``rows``. The latter join at the last bandwidth.
    """
    gamma = middle.problem.gamma_for(middle.rows, rows)
    points = [wide.point for wide, _ in pairs]
    for width, survivors in _WIDTHS:
        if width == 1:
            points += [narrow.point for _, narrow in pairs]
        few = _without_near_copies(points, middle.values(points, width * gamma))[:survivors]
        found = list(middle.runs(few, width * gamma))
        points = [run.point for run in found]
    return found


def finish(
    searcher: Searcher,
    rows: Rows,
    candidates: Sequence[EndedRun],
    runs: Sequence[EndedRun],
    starts: Sequence[Floats] = (),
) -> tuple[Result, list[Result]]:
    """Return the best candidate, optimised on all rows, and the results of the runs with the best in its place.

    The result is no lower than any of the ``starts``, which are points.
    """
    problem = searcher.problem
    objective = problem.objective(rows)

    def certified(run: EndedRun) -> float:
        return objective.evaluate(searcher.scaled(run.point)).divergence

    if problem.judge is not None:
        distinct = distinct_best(candidates)
        few = [distinct[problem.judge.best([searcher.direction(run.point) for run in distinct])]]
    elif rows.n_rows > MANY_ROWS:  # candidates come from a sample, and their order may differ on all rows
        few = [max(distinct_best(candidates), key=certified)]
    else:
        few = distinct_best(candidates, _WORTH_POLISHING)[:_POLISHED]
    polished = [searcher.polish(objective, each) for each in few]
    best = best_run(polished)
    winner = few[[each is best for each in polished].index(True)]
    if problem.judge is None and not best.converged:
        best = no_lower_than(starts, best, objective, searcher)
    results = [best if run is winner else run.result for run in runs]
    if candidates is runs and problem.judge is None:  # an error of the grid may make another run seem to be higher
        for k, run in enumerate(runs):
            if run is not winner and run.divergence >= best.divergence:
                results[k] = replace(run.result, divergence=min(certified(run), best.divergence))
    return best, results


def no_lower_than(starts: Sequence[Floats], best: Result, objective: Objective, searcher: Searcher) -> Result:
    """Return the best run, or a start if the run ended below it.

    The first steps follow the grid, whose error is about 1e-5: a run that is stopped early may end that much lower.
    """
    for start in map(unit, starts):
        begun = objective.evaluate(searcher.scaled(start)).divergence
        if begun > best.divergence:
            history = (*best.history[:-1], begun)[: best.n_iter]
            best = replace(best, direction=searcher.direction(start), divergence=begun, history=history)
    return best


def distinct_best(runs: Sequence[EndedRun], least: float = 0.0) -> list[EndedRun]:
    """Return runs by decreasing divergence, without those that are close to a better one.

    Except for the best, they reach at least ``least`` times its divergence.
    """
    chosen = _without_near_copies(runs, [run.divergence for run in runs], lambda run: run.point)
    return [run for run in chosen if run is chosen[0] or run.divergence >= least * chosen[0].divergence]


def _without_near_copies(items: Sequence[Any], values: list[float], point: Callable = lambda item: item) -> list[Any]:
    """Return the items by decreasing value, without those whose points are close to a better one."""
    kept: list[Any] = []
    for k in np.argsort(-np.array(values), kind="stable"):
        if all(abs(float(point(items[k]) @ point(other))) < _SAME_DIRECTION for other in kept):
            kept.append(items[k])
    return kept


def until_stopped(runs: Iterable[Any], run_ended: RunListener, result: Callable = lambda run: run.result) -> list[Any]:
    """Return all runs in order, or those up to the one after which ``run_ended`` asks to stop."""
    found = []
    for run in runs:
        found.append(run)
        if run_ended(result(run)):
            break
    return found
