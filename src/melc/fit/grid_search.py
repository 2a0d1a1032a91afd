"""The fast search: all starts on a grid, the best polished with certified sums.

It is used for dense rows without shrinkage, if method and solver have a grid. L-BFGS moves along the unit sphere of
white coordinates, in which the classes are about round. Each ascent is one compiled call without Python's lock, so
that ascents run in parallel on threads; the results do not depend on the number of threads. Where the grid cannot be
accurate (classes that hardly overlap, heavy tails, a class that does not vary), the solver continues from there.

- Few features, few rows: every start sees all rows, or from 6,000 rows on a sample first.
- Few features, many rows: from coarse to fine, as described in :mod:`melc.fit.search`.
- Many features: samples mislead, and there are too many directions. The search runs inside a subspace of the directions
  in which the classes differ most by their means and covariances. The best directions there, and the discriminant,
  continue in all features.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from melc import kernels
from melc.arrays import Floats, unit
from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.coordinates import Coordinates, Whitening
from melc.fit.search import (
    COARSE_ROWS,
    LEAST_PROGRESS,
    MANY_ROWS,
    MIDDLE_ROWS,
    EndedRun,
    Problem,
    RunListener,
    Searcher,
    distinct_best,
    finish,
    search,
    through_widths,
    until_stopped,
)
from melc.fit.solvers import BY_GRADIENT, BY_PROGRESS, NO_BETTER_POINT, Result, limit_reached
from melc.kernels import ascent
from melc.objective import Objective
from melc.objective.grid import Ascent, GridRows

# Tolerances of ascents on the grid: of the gradient, relative to D, and of progress.
Accuracy = tuple[float, float]
_ROUGH: Accuracy = (3e-2, 1e-4)
# Not below the rounding of single precision, which would spoil the curvature estimates of L-BFGS.
_CLOSE: Accuracy = (3e-4, 1e-7)
# Sharpening reduces the gradient to this fraction of the tolerance, in at most this many steps.
_SHARPER, _SHARPENING_STEPS = 1e-3, 12
# With more features than this the search begins in a subspace; with more than this their covariance would be too large.
_MANY_FEATURES, MOST_GRID_FEATURES = 64, 2_000
# Up to this many rows, every start sees all of them; with more, a sample of this size first.
_ROWS_FOR_ALL_STARTS, _SAMPLE_FOR_STARTS = 6_000, 4_000
# With many features: the most rows, and the most numbers in them, of the sample that is searched in all features.
_MOST_WIDE_ROWS, _MOST_WIDE_NUMBERS = 100_000, 1 << 25
# Up to this many numbers, random directions in all features are used as starts as well.
_FEW_WIDE_NUMBERS = 2_000_000
# Rows that the search in a subspace sees, and the number of its directions that continue in all features.
_SUBSPACE_ROWS, _FROM_SUBSPACE = 8_000, 4
# The number of runs that continue from a sample, and the fraction of the best divergence that they must reach.
_CONTINUED, _WORTH_CONTINUING = 6, 0.6
# The size of X, in numbers, from which threads are worth starting.
_NUMBERS_WORTH_THREADS = 100_000

ALGORITHM = "L-BFGS along the unit sphere on a grid, the best run polished with certified sums"
_REASONS = {
    ascent.CONVERGED: BY_GRADIENT,
    ascent.SETTLED: BY_PROGRESS,
    ascent.STALLED: NO_BETTER_POINT,
}

Mapped = Callable[..., Iterable[Any]]  # the built-in map, or the map of a pool of threads


class GridSearcher(Searcher):
    """Makes runs on a grid over dense rows in memory. Points are in white coordinates, perhaps those of a subspace."""

    rows: MemoryRows

    def __init__(
        self, rows: MemoryRows, problem: Problem, white: Whitening, coarse: bool = False, mapped: Mapped = map
    ) -> None:
        super().__init__(rows, problem, coarse)
        self.white, self.mapped = white, mapped
        self.grid = self._grid()

    def _grid(self) -> GridRows:
        coordinates, white = self.problem.coordinates, self.white.matrix
        return GridRows(self.rows, lambda X: coordinates.scaled(X) @ white, white.shape[1])

    def scaled(self, point: Floats) -> Floats:
        return self.white.matrix @ point

    def point(self, direction: Floats) -> Floats:
        return unit(self.white.inverse @ (direction * self.problem.coordinates.finite_scale))

    def climb(self, start: Floats, gamma: float, before: Ascent | None = None, accuracy: Accuracy = _ROUGH) -> Ascent:
        """Return an ascent from a point, which begins with the curvature seen ``before``. Thread-safe."""
        climbing = Ascent(start, self.problem.settings.max_iter, before)
        self.grid.climb(climbing, gamma, *accuracy)
        return climbing

    def runs(
        self, starts: Sequence[Floats], gamma: float, known: Sequence[Ascent | None] | None = None
    ) -> Iterator[EndedRun]:
        """Yield the runs from some points. Ascents may run on threads; the solver does not."""
        before = known or [None] * len(starts)
        for climbing in self.mapped(lambda start, other: self.climb(start, gamma, other), starts, before):
            yield self.ended(climbing, gamma)

    def ended(self, climbing: Ascent, gamma: float) -> EndedRun:
        """Return the run of an ascent, continued by the solver if the grid handed over."""
        if climbing.status == ascent.HANDED_OVER:
            return self.solve(self.objective(gamma), self.direction(climbing.point))
        return EndedRun(climbing.point, self._result(climbing), climbing)

    def values(self, points: Sequence[Floats], gamma: float) -> list[float]:
        values = list(self.mapped(lambda p: self.grid.evaluate(p, gamma)[0], points))
        return super().values(points, gamma) if np.isnan(values).any() else values

    def polish(self, objective: Objective, found: EndedRun) -> Result:
        """Return the optimum near a run, by certified evaluations that begin with the curvature that the run has seen.

        Its iterations and evaluations include those of the run.
        """
        if found.ascent is None:
            return super().polish(objective, found)
        problem, runs = self.problem, [found]
        if self._sees_all(objective.rows):
            # Closer on the grid first: a certified evaluation costs ten times as much.
            closer = self.climb(found.point, problem.gamma, found.ascent, _CLOSE)
            runs.append(self.ended(closer, problem.gamma))
        last = runs[-1]
        if last.ascent is None:
            polished = super().polish(objective, runs.pop())
        else:
            polished = self._certified(objective, last.point, last.ascent)
        for run in reversed(runs):
            polished = _with_earlier_run(run.result, polished)
        return polished

    def _sees_all(self, rows: Rows) -> bool:
        """Return whether this searcher has all of some rows, not a sample: number and total weight agree."""
        mine, all_of_them = sum(self.rows.total_weights), sum(rows.total_weights)
        return self.rows.n_rows == rows.n_rows and math.isclose(mine, all_of_them)

    def _certified(self, objective: Objective, start: Floats, before: Ascent) -> Result:
        """Return the result of an ascent by certified evaluations, begun with the curvature seen ``before``."""
        settings, n_exponentials = self.problem.settings, objective.n_exponentials
        climbing = Ascent(start, settings.max_iter, before)
        while climbing.status == ascent.RUNNING:
            value, gradient = self._evaluate(objective, climbing.table[ascent.TRIAL])
            kernels.advance(value, gradient, climbing.state, settings.tol, LEAST_PROGRESS)
        if self.problem.needs_sharpening(objective.rows):
            self._sharpen(objective, climbing)
        return replace(self._result(climbing), n_exponentials=objective.n_exponentials - n_exponentials)

    def _evaluate(self, objective: Objective, point: Floats) -> tuple[float, Floats]:
        evaluation = objective.evaluate(self.scaled(point))
        return evaluation.divergence, self.white.matrix.T @ evaluation.gradient

    def _sharpen(self, objective: Objective, climbing: Ascent) -> None:
        """Make the end of an ascent more accurate, by quasi-Newton steps that look at the gradient only.

        The divergence itself changes by less than its rounding there. The gradient need not decrease with every step.
        """
        table, numbers, counts, curvatures, _ = climbing.state
        for _ in range(_SHARPENING_STEPS):
            small = np.max(np.abs(table[ascent.GRADIENT])) <= _SHARPER * self.problem.settings.tol
            if small or counts[ascent.STATUS] == ascent.LIMITED:
                return
            kernels.choose_direction(table, counts, curvatures)
            trial = table[ascent.TRIAL] = unit(climbing.point + table[ascent.DIRECTION])
            value, gradient = self._evaluate(objective, trial)
            gradient -= (gradient @ trial) * trial
            table[ascent.NEW] = gradient
            counts[ascent.EVALUATIONS] += 1
            if not np.linalg.norm(gradient) < 2 * np.linalg.norm(table[ascent.GRADIENT]):
                return
            kernels.keep_pair(table, counts, curvatures)
            table[ascent.POINT], table[ascent.GRADIENT] = trial, gradient
            numbers[ascent.VALUE] = value

    def _result(self, climbed: Ascent) -> Result:
        """Return an ascent as the result of a run."""
        return Result(
            direction=self.direction(climbed.point),
            divergence=climbed.value,
            norm=1.0,
            n_iter=climbed.n_iter,
            n_evaluations=climbed.n_evaluations,
            n_exponentials=0,
            converged=climbed.status in (ascent.CONVERGED, ascent.SETTLED),
            reason=_REASONS.get(climbed.status, limit_reached(self.problem.settings.max_iter)),
            history=tuple(climbed.history[: climbed.n_iter].tolist()),
            algorithm=ALGORITHM,
        )


class _WideSearcher(GridSearcher):
    """Makes all runs in lockstep, on rows that are not whitened: with many features that costs more than the search.

    Each step is two matrix products for all ascents together.
    """

    def _grid(self) -> GridRows:
        return GridRows(self.rows, self.problem.coordinates.scaled, self.rows.n_features)

    def climb(self, start: Floats, gamma: float, before: Ascent | None = None, accuracy: Accuracy = _ROUGH) -> Ascent:
        climbing = Ascent(start, self.problem.settings.max_iter, before)
        self.grid.climb_together([climbing], self.white.matrix, gamma, *accuracy)
        return climbing

    def runs(
        self, starts: Sequence[Floats], gamma: float, known: Sequence[Ascent | None] | None = None
    ) -> Iterator[EndedRun]:
        climbing = [Ascent(start, self.problem.settings.max_iter) for start in starts]
        self.grid.climb_together(climbing, self.white.matrix, gamma, *_ROUGH)
        for each in climbing:
            yield self.ended(each, gamma)


def _with_earlier_run(run: Result, polished: Result) -> Result:
    """Return a polished result with the iterations and evaluations of the run before it added."""
    n_iter = run.n_iter + polished.n_iter
    return replace(
        polished,
        n_iter=n_iter,
        n_evaluations=run.n_evaluations + polished.n_evaluations,
        history=(*(run.history + polished.history)[:-1], polished.divergence)[:n_iter],
    )


def search_on_grid(
    rows: Rows, problem: Problem, n_starts: int, rng: np.random.RandomState, run_ended: RunListener
) -> tuple[Result, list[Result]]:
    """Return the best direction, certified on all rows, and the run of every start."""
    if rows.n_rows <= MANY_ROWS:
        rows = rows.in_memory()
    task = _Task(rows, problem, n_starts, rng, run_ended)
    if rows.n_features > _MANY_FEATURES:
        return task.many_features()
    return task.many_rows() if rows.n_rows > MANY_ROWS else task.few_rows()


@dataclass(frozen=True)
class _Task:
    """The arguments of :func:`search_on_grid`, and a method for each size of the data."""

    rows: Rows
    problem: Problem
    n_starts: int
    rng: np.random.RandomState
    run_ended: RunListener

    def few_rows(self) -> tuple[Result, list[Result]]:
        problem, white = self.problem, self.problem.coordinates.white
        starts = _starts(problem.coordinates, white, self.n_starts, self.rng)
        rows = self.rows.in_memory()
        with threads(_threads_for(rows)) as mapped:
            every = GridSearcher(rows, problem, white, mapped=mapped)
            if rows.n_rows <= _ROWS_FOR_ALL_STARTS:
                runs = candidates = until_stopped(every.runs(starts, problem.gamma), self.run_ended)
            else:
                sample = GridSearcher(draw_sample(rows, _SAMPLE_FOR_STARTS, self.rng), problem, white, True, mapped)
                gamma = problem.gamma_for(sample.rows, rows)
                runs = until_stopped(sample.runs(starts, gamma), self.run_ended)
                some = distinct_best(runs, _WORTH_CONTINUING)[:_CONTINUED]
                known = [run.ascent for run in some]
                candidates = list(every.runs([run.point for run in some], problem.gamma, known))
        return finish(every, rows, candidates, runs, starts[: len(runs)])

    def many_rows(self) -> tuple[Result, list[Result]]:
        problem, white, rows, rng = self.problem, self.problem.coordinates.white, self.rows, self.rng
        sample = draw_sample(rows, MIDDLE_ROWS, rng)
        # Wide and narrow kernels find different optima, and from different starts more of them.
        starts, others = (_starts(problem.coordinates, white, self.n_starts, rng) for _ in range(2))
        seeds = rng.randint(2**31 - 1, size=self.n_starts)

        def climb(start: Floats, other: Floats, seed: int) -> tuple[GridSearcher, Ascent, float, Ascent]:
            drawn = draw_sample(sample, COARSE_ROWS, np.random.RandomState(seed))
            coarse = GridSearcher(drawn, problem, white, coarse=True)
            narrow = problem.gamma_for(drawn, rows)
            return coarse, coarse.climb(start, problem.gamma), narrow, coarse.climb(other, narrow)

        def on_samples() -> Iterator[tuple[EndedRun, EndedRun]]:
            for coarse, wide, gamma, narrow in mapped(climb, starts, others, seeds):
                yield coarse.ended(wide, problem.gamma), coarse.ended(narrow, gamma)

        with threads(_threads_for(sample)) as mapped:
            middle = GridSearcher(sample, problem, white, True, mapped)
            pairs = until_stopped(on_samples(), self.run_ended, lambda pair: pair[0].result)
            if sum(found.ascent is None for pair in pairs for found in pair) > len(pairs):
                # Heavy tails, where a sample of a sample misleads: the general search draws all samples from all rows.
                return search(rows, problem, [middle.direction(start) for start in starts[: len(pairs)]], rng)
            found = through_widths(middle, rows, pairs)
        return finish(middle, rows, found, [wide for wide, _ in pairs])

    def many_features(self) -> tuple[Result, list[Result]]:
        problem, coordinates, rows, rng = self.problem, self.problem.coordinates, self.rows, self.rng
        sample = draw_sample(rows, min(_MOST_WIDE_ROWS, _MOST_WIDE_NUMBERS // rows.n_features), rng)
        white, basis = coordinates.ridge_white, coordinates.signal_subspace()
        inside = Whitening(white.matrix @ basis, basis.T @ white.inverse)
        some = draw_sample(sample, _SUBSPACE_ROWS, rng)
        starts = [np.eye(basis.shape[1])[0], *rng.normal(size=(self.n_starts - 1, basis.shape[1]))]
        with threads(_threads_for(some)) as mapped:
            few = GridSearcher(some, problem, inside, True, mapped)
            runs = until_stopped(few.runs(starts, problem.gamma_for(some, rows)), self.run_ended)
        chosen = [basis @ run.point for run in distinct_best(runs, _WORTH_CONTINUING)[:_FROM_SUBSPACE]]
        every = _WideSearcher(sample, problem, white, coarse=True)
        if sample.n_rows * sample.n_features <= _FEW_WIDE_NUMBERS:
            others = _starts(coordinates, white, self.n_starts, rng)
        else:
            others = [white.inverse @ coordinates.discriminant()]
        found = list(every.runs([*chosen, *others], problem.gamma_for(sample, rows)))
        best = [max(found, key=lambda run: run.divergence)]
        return finish(every, rows, best if problem.judge is None else found, runs, others)


def _starts(coordinates: Coordinates, white: Whitening, n: int, rng: np.random.RandomState) -> list[Floats]:
    """Return the discriminant and random directions, in white coordinates."""
    return [white.inverse @ u for u in coordinates.starts(n, rng)]


def _threads_for(rows: MemoryRows) -> int:
    """Return the number of threads for a search on some rows."""
    return rows.n_threads if rows.n_rows * rows.n_features >= _NUMBERS_WORTH_THREADS else 1


@contextmanager
def threads(n_threads: int) -> Iterator[Mapped]:
    """Yield the map of a pool of threads, or the ordinary one for a single thread."""
    if n_threads == 1:
        yield map
        return
    pool = ThreadPoolExecutor(n_threads)

    def mapped(work: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        # Few at a time: thousands of tasks submitted at once would compete with the caller for Python's lock.
        waiting: deque[Future[Any]] = deque()
        for each in zip(*arguments, strict=True):
            waiting.append(pool.submit(work, *each))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    try:
        yield mapped
    finally:
        pool.shutdown(cancel_futures=True)
