"""The fast search: all starts on a grid, the best polished with a certificate.

For dense rows with smooth sums (method "moments", solver "lbfgs", no shrinkage). Ascents run along the unit sphere of
white coordinates, each in one compiled call without Python's lock, so that they run side by side on threads; what they
find does not depend on the number of threads. Where the grid has to hand over (classes that hardly overlap, heavy
tails, a class that does not vary) the general solver goes on from there.

- Few features, few rows: every start sees all rows, or from 6,000 rows on a sample first.
- Few features, many rows: every start on a small sample of its own, with the wide kernels of the sample and with the
  narrow ones of all rows; the best go on with a larger sample while its kernels narrow. Only the winner sees all rows.
- Many features: samples mislead, and all directions are too many. The search runs inside a subspace of the directions
  in which the classes differ most by their means and covariances; the best of it, and the discriminant, go on in all
  features.
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
from melc.fit.coordinates import Coordinates
from melc.fit.problem import COARSE_EPS, COARSE_TOL, Problem
from melc.fit.run import BY_GRADIENT, BY_PROGRESS, STALLED, Result, limit_reached
from melc.fit.search import search
from melc.fit.solvers import best_of
from melc.kernels import ascent
from melc.objective import Objective
from melc.objective.grid import Ascent, GridRows, Whitening

# Tolerances of ascents on the grid: of the gradient, relative to D, and of progress.
Accuracy = tuple[float, float]
_ROUGH: Accuracy = (3e-2, 1e-4)
# No closer than single precision tells: noise would spoil what is known of the curvature.
_CLOSE: Accuracy = (3e-4, 1e-7)
# Relative change of D that is still progress when polishing: a little more than its rounding.
_LEAST_PROGRESS = 1e-11
# What is to be left of the tolerance after sharpening, and the steps that this may take.
_SHARPER, _SHARPENING_STEPS = 1e-3, 12
# Directions whose cosine in white coordinates is larger count as one.
_SAME = 0.99
# More features than this are many; and more than this are too many for covariances of them all.
_MANY_FEATURES, MOST_FEATURES = 64, 2_000
# Up to so many rows every start sees all of them; beyond, a sample first; and beyond the last, never all.
_ALL_STARTS, _SAMPLE, _MANY_ROWS = 6_000, 4_000, 20_000
# Rows of the two samples where rows are many.
_COARSE_ROWS, _MIDDLE_ROWS = 5_000, 40_000
# Kernel widths on the larger sample, in those of all rows, and how many directions go through each. Narrower than in
# the end in between: optima that show more thresholds have their basins there, and keep them afterwards.
_WIDTHS = ((1.4, 8), (0.7, 4), (1.0, 6))
# Rows, and numbers, that are searched in all features where these are many.
_MOST_WIDE_ROWS, _MOST_WIDE_NUMBERS = 100_000, 1 << 25
# Up to so many numbers random directions in all features are worth searching from as well.
_FEW_WIDE_NUMBERS = 2_000_000
# Rows that the search inside a subspace sees, and the number of its directions that go on in all features.
_SUBSPACE_ROWS, _FROM_SUBSPACE = 8_000, 4
# Runs that go on from a sample, and that are polished; and the parts of the best divergence that they must reach.
_GO_ON, _WORTH_GOING_ON = 6, 0.6
_POLISHED, _WORTH_POLISHING = 3, 0.97
# Numbers of X from which threads are worth starting.
_WORTH_THREADS = 100_000

_REASONS = {
    ascent.CONVERGED: BY_GRADIENT,
    ascent.SETTLED: BY_PROGRESS,
    ascent.STALLED: STALLED,
}

Listener = Callable[[Result], bool]
Mapped = Callable[..., Iterable[Any]]  # map, or that of a pool of threads


@dataclass(frozen=True)
class Found:
    """A run: where it ended, in white coordinates, and the ascent that led there (None if the grid handed over).

    ``point`` has length one.
    """

    point: Floats
    result: Result
    ascent: Ascent | None

    @property
    def divergence(self) -> float:
        return self.result.divergence


class Searcher:
    """Runs on some rows in memory, from points in white coordinates (perhaps those of a subspace)."""

    def __init__(
        self, rows: MemoryRows, problem: Problem, coordinates: Coordinates, white: Whitening, coarse: bool = False
    ) -> None:
        """Take rows, of which a sample needs no high accuracy (``coarse``): its optimum is not that of all rows."""
        self.rows, self.problem, self.coordinates, self.white = rows, problem, coordinates, white
        self.coarse = coarse
        self.grid = GridRows(rows, lambda X: coordinates.scaled(X) @ white.matrix, white.matrix.shape[1])

    def direction(self, p: Floats) -> Floats:
        """Return the direction of length one, in the units of the features, at white coordinates p."""
        return self.coordinates.direction_of(self.white.matrix @ p)

    def point(self, direction: Floats) -> Floats:
        """Return the white coordinates of a direction."""
        return self.white.inverse @ (direction * self.coordinates.finite_scale)

    def sees_all(self, rows: Rows) -> bool:
        """Whether the rows of this search are all of some rows, with their weights."""
        mine, all_of_them = sum(self.rows.total_weights), sum(rows.total_weights)
        return self.rows.n_rows == rows.n_rows and math.isclose(mine, all_of_them)

    def climb(self, start: Floats, gamma: float, before: Ascent | None = None, accuracy: Accuracy = _ROUGH) -> Ascent:
        """Return an ascent on the grid from white coordinates, with kernels of the given gamma. Safe in threads."""
        climbing = Ascent(start, self.problem.max_iter, before)
        self.grid.climb(climbing, gamma, *accuracy)
        return climbing

    def runs(
        self, mapped: Mapped, starts: Sequence[Floats], gamma: float, known: Sequence[Ascent | None] = ()
    ) -> Iterator[Found]:
        """Yield what the ascents from some starts find. They may run on threads; the general way does not."""
        before = known or [None] * len(starts)
        for climbing in mapped(lambda start, other: self.climb(start, gamma, other), starts, before):
            self.rows.check_going_on()
            yield self.ended(climbing, gamma)

    def ended(self, climbing: Ascent, gamma: float) -> Found:
        """Return what an ascent found, by the general way from where the grid handed over."""
        if climbing.status != ascent.HANDED_OVER:
            return Found(climbing.point, self.result(climbing), climbing)
        result = self.problem.solve(self._objective(gamma), self.direction(climbing.point), COARSE_TOL)
        return Found(unit(self.point(result.direction)), result, None)

    def values(self, mapped: Mapped, points: Sequence[Floats], gamma: float) -> list[float]:
        """Return D at some white coordinates of length one, by the general way where a grid does not do."""
        values = list(mapped(lambda p: self.grid.evaluate(p, gamma)[0], points))
        if np.isnan(values).any():
            objective = self._objective(gamma)
            return [objective.evaluate(self.white.matrix @ p).divergence for p in points]
        return values

    def _objective(self, gamma: float) -> Objective:
        return self.problem.objective(self.rows, gamma, COARSE_EPS if self.coarse else 0.0)

    def result(self, climbed: Ascent) -> Result:
        """Return an ascent as the result of a run."""
        return Result(
            direction=self.direction(climbed.point),
            divergence=climbed.value,
            norm=1.0,
            n_iter=climbed.n_iter,
            n_evaluations=climbed.n_evaluations,
            n_exponentials=0,
            converged=climbed.status in (ascent.CONVERGED, ascent.SETTLED),
            reason=_REASONS.get(climbed.status, limit_reached(self.problem.max_iter)),
            history=tuple(climbed.history[: climbed.n_iter].tolist()),
        )


def search_on_grid(
    rows: Rows,
    problem: Problem,
    coordinates: Coordinates,
    n_starts: int,
    rng: np.random.RandomState,
    run_ended: Listener,
) -> tuple[Result, list[Result]]:
    """Return the best direction, certified on all rows, and the run of every start."""
    if rows.n_rows <= _MANY_ROWS:
        rows = rows.in_memory()
    if rows.n_features > _MANY_FEATURES:
        return _many_features(rows, problem, coordinates, n_starts, rng, run_ended)
    if rows.n_rows > _MANY_ROWS:
        return _many_rows(rows, problem, coordinates, n_starts, rng, run_ended)
    white = coordinates.white
    starts = _starts(coordinates, white, n_starts, rng)
    every = Searcher(rows.in_memory(), problem, coordinates, white)
    with _threads(every.rows) as mapped:
        if rows.n_rows <= _ALL_STARTS:
            runs = candidates = _heard(every.runs(mapped, starts, problem.gamma), run_ended)
        else:
            sample = Searcher(draw_sample(rows, _SAMPLE, rng), problem, coordinates, white, coarse=True)
            gamma = problem.gamma_for(sample.rows, rows)
            runs = _heard(sample.runs(mapped, starts, gamma), run_ended)
            some = distinct_best(runs, _WORTH_GOING_ON)[:_GO_ON]
            known = [run.ascent for run in some]
            candidates = list(every.runs(mapped, [run.point for run in some], problem.gamma, known))
    return _polished(every, rows, candidates, runs, starts[: len(runs)])


def _starts(coordinates: Coordinates, white: Whitening, n: int, rng: np.random.RandomState) -> list[Floats]:
    """The discriminant and random directions, in white coordinates."""
    return [white.inverse @ u for u in coordinates.starts(n, rng)]


def _many_rows(
    rows: Rows,
    problem: Problem,
    coordinates: Coordinates,
    n_starts: int,
    rng: np.random.RandomState,
    run_ended: Listener,
) -> tuple[Result, list[Result]]:
    middle = Searcher(draw_sample(rows, _MIDDLE_ROWS, rng), problem, coordinates, coordinates.white, coarse=True)
    # Wide and narrow kernels find different optima, and from different starts more of them.
    starts, others = (_starts(coordinates, coordinates.white, n_starts, rng) for _ in range(2))
    seeds = rng.randint(2**31 - 1, size=n_starts)
    gamma = problem.gamma_for(middle.rows, rows)

    def coarse(start: Floats, other: Floats, seed: int) -> tuple[Searcher, Ascent, float, Ascent]:
        drawn = draw_sample(middle.rows, _COARSE_ROWS, np.random.RandomState(seed))
        sample = Searcher(drawn, problem, coordinates, coordinates.white, coarse=True)
        narrow = problem.gamma_for(drawn, rows)
        return sample, sample.climb(start, problem.gamma), narrow, sample.climb(other, narrow)

    def both() -> Iterator[tuple[Found, Found]]:
        for sample, wide, gamma, narrow in mapped(coarse, starts, others, seeds):
            middle.rows.check_going_on()
            yield sample.ended(wide, problem.gamma), sample.ended(narrow, gamma)

    with _threads(middle.rows) as mapped:
        pairs = _heard(both(), run_ended, lambda pair: pair[0].result)
        if sum(found.ascent is None for pair in pairs for found in pair) > len(pairs):
            # Heavy tails, where a sample of a sample misleads: the general search draws all samples from all rows.
            return search(rows, problem, [middle.direction(start) for start in starts[: len(pairs)]], rng)
        points = [wide.point for wide, _ in pairs]
        for width, survivors in _WIDTHS:
            candidates = points + [narrow.point for _, narrow in pairs] if width == 1 else points
            few = _distinct(candidates, middle.values(mapped, candidates, width * gamma))[:survivors]
            found = list(middle.runs(mapped, few, width * gamma))
            points = [run.point for run in found]
    return _polished(middle, rows, found, [wide for wide, _ in pairs])


def _many_features(
    rows: Rows,
    problem: Problem,
    coordinates: Coordinates,
    n_starts: int,
    rng: np.random.RandomState,
    run_ended: Listener,
) -> tuple[Result, list[Result]]:
    sample = draw_sample(rows, min(_MOST_WIDE_ROWS, _MOST_WIDE_NUMBERS // rows.n_features), rng)
    white, basis = coordinates.ridge_white, coordinates.signal_subspace()
    inside = Whitening(white.matrix @ basis, basis.T @ white.inverse)
    few = Searcher(draw_sample(sample, _SUBSPACE_ROWS, rng), problem, coordinates, inside, coarse=True)
    starts = [np.eye(basis.shape[1])[0], *rng.normal(size=(n_starts - 1, basis.shape[1]))]
    gamma = problem.gamma_for(few.rows, rows)
    with _threads(few.rows) as mapped:
        runs = _heard(few.runs(mapped, starts, gamma), run_ended)
    chosen = [basis @ run.point for run in distinct_best(runs, _WORTH_GOING_ON)[:_FROM_SUBSPACE]]
    every = _ScaledSearcher(sample, problem, coordinates, white)
    if sample.n_rows * sample.n_features <= _FEW_WIDE_NUMBERS:
        others = _starts(coordinates, white, n_starts, rng)
    else:
        others = [white.inverse @ coordinates.discriminant()]
    found = every.run_together([*chosen, *others], problem.gamma_for(sample, rows))
    best = [max(found, key=lambda run: run.divergence)]
    return _polished(every, rows, best if problem.choose is None else found, runs, others)


class _ScaledSearcher(Searcher):
    """Runs on rows that are scaled only: with many features, to make them white would cost more than the search."""

    def __init__(self, rows: MemoryRows, problem: Problem, coordinates: Coordinates, white: Whitening) -> None:
        self.rows, self.problem, self.coordinates, self.white = rows, problem, coordinates, white
        self.coarse = True
        self.grid = GridRows(rows, coordinates.scaled, rows.n_features)

    def climb(self, start: Floats, gamma: float, before: Ascent | None = None, accuracy: Accuracy = _ROUGH) -> Ascent:
        climbing = Ascent(start, self.problem.max_iter, before)
        self.grid.climb_together([climbing], self.white.matrix, gamma, *accuracy)
        return climbing

    def run_together(self, starts: list[Floats], gamma: float) -> list[Found]:
        """Return what ascents from some starts find, which run in step."""
        climbing = [Ascent(start, self.problem.max_iter) for start in starts]
        self.grid.climb_together(climbing, self.white.matrix, gamma, *_ROUGH)
        return [self.ended(each, gamma) for each in climbing]


def _polished(
    searcher: Searcher,
    rows: Rows,
    candidates: Sequence[Found],
    runs: Sequence[Found],
    starts: Sequence[Floats] = (),
) -> tuple[Result, list[Result]]:
    """The best candidate by certified evaluations on all rows, and the results of the runs with the winner in place."""
    problem = searcher.problem
    objective = problem.objective(rows, problem.gamma, 0.0)

    def certified(run: Found) -> float:
        return objective.evaluate(searcher.white.matrix @ run.point).divergence

    if problem.choose is not None:
        distinct = distinct_best(candidates, 0.0)
        few = [distinct[problem.choose([searcher.direction(run.point) for run in distinct])]]
    elif rows.n_rows > _MANY_ROWS:  # what a sample shows may not be so on all rows
        few = [max(distinct_best(candidates, 0.0), key=certified)]
    else:
        few = distinct_best(candidates, _WORTH_POLISHING)[:_POLISHED]
    polished = [polish(objective, searcher, each) for each in few]
    best = best_of(polished)
    winner = few[[each is best for each in polished].index(True)]
    best = _after(winner.result, best) if winner.ascent else problem.sharpen(objective, best)
    if problem.choose is None and not best.converged:
        best = _no_lower_than(starts, best, objective, searcher)
    results = [best if run is winner else run.result for run in runs]
    if (
        candidates is runs and problem.choose is None
    ):  # on all rows; the grid may be wrong by so much that another run seems to be higher
        for k, run in enumerate(runs):
            if run is not winner and run.divergence >= best.divergence:
                results[k] = replace(run.result, divergence=min(certified(run), best.divergence))
    return best, results


def _no_lower_than(starts: Sequence[Floats], best: Result, objective: Objective, searcher: Searcher) -> Result:
    """The best run, or where it ended below one of the starts, that start.

    The first steps follow the grid, which is wrong by some 1e-5. A run that is stopped soon after may have lost that.
    Where rows are many and features few, starts see samples only, and are not compared on all rows either.
    """
    for start in starts:
        begun = objective.evaluate(searcher.white.matrix @ unit(start)).divergence
        if begun > best.divergence:
            history = (*best.history[:-1], begun)[: best.n_iter]
            best = replace(best, direction=searcher.direction(unit(start)), divergence=begun, history=history)
    return best


def polish(objective: Objective, searcher: Searcher, found: Found) -> Result:
    """Return the optimum near a run, by certified evaluations that go on with what the run knows of the curvature."""
    problem, white = searcher.problem, searcher.white.matrix
    rough = found.result
    if searcher.sees_all(objective.rows) and found.ascent is not None:
        # Closer on the grid first: a certified evaluation costs ten times as much.
        found = searcher.ended(searcher.climb(found.point, problem.gamma, found.ascent, _CLOSE), problem.gamma)
    if found.ascent is None:
        return problem.solve(objective, found.result.direction)
    before = objective.n_exponentials
    climbing = Ascent(found.point, problem.max_iter, found.ascent)
    while climbing.status == ascent.RUNNING:
        evaluation = objective.evaluate(white @ climbing.vectors[ascent.TRIAL])
        gradient = white.T @ evaluation.gradient
        kernels.advance(evaluation.divergence, gradient, *climbing.arguments, problem.tol, _LEAST_PROGRESS)
    if problem.needs_sharpening(objective.rows):
        _sharpen(objective, white, climbing, _SHARPER * problem.tol)
    polished = replace(searcher.result(climbing), n_exponentials=objective.n_exponentials - before)
    return polished if found.result is rough else _after(found.result, polished)


def _sharpen(objective: Objective, white: Floats, climbing: Ascent, tol: float) -> None:
    """Make the end of an ascent more accurate, by steps that look at the gradient only.

    The divergence itself changes by less than its rounding there. The gradient need not fall with every step.
    """
    vectors, numbers, counts, pairs, curvatures, _ = climbing.arguments
    for _ in range(_SHARPENING_STEPS):
        if np.max(np.abs(vectors[ascent.GRADIENT])) <= tol or counts[ascent.STATUS] == ascent.LIMITED:
            return
        kernels.choose_direction(vectors, pairs, curvatures, counts)
        vectors[ascent.TRIAL] = unit(climbing.point + vectors[ascent.DIRECTION])
        evaluation = objective.evaluate(white @ vectors[ascent.TRIAL])
        gradient = white.T @ evaluation.gradient
        gradient -= (gradient @ vectors[ascent.TRIAL]) * vectors[ascent.TRIAL]
        counts[ascent.EVALUATIONS] += 1
        if not np.linalg.norm(gradient) < 2 * np.linalg.norm(vectors[ascent.GRADIENT]):
            return
        kernels.remember(vectors, gradient, pairs, curvatures, counts)
        vectors[ascent.POINT], vectors[ascent.GRADIENT] = vectors[ascent.TRIAL], gradient
        numbers[ascent.VALUE] = evaluation.divergence


def _after(run: Result, polished: Result) -> Result:
    """A polished result that counts what the run before it took as well, and whose history ends where it does."""
    n_iter = run.n_iter + polished.n_iter
    return replace(
        polished,
        n_iter=n_iter,
        n_evaluations=run.n_evaluations + polished.n_evaluations,
        history=(*(run.history + polished.history)[:-1], polished.divergence)[:n_iter],
    )


def distinct_best(runs: Sequence[Found], least: float) -> list[Found]:
    """Return runs by falling divergence, no two alike, as far as they reach ``least`` times the best divergence."""
    chosen = _distinct(list(runs), [run.divergence for run in runs], lambda run: run.point)
    return [run for run in chosen if run is chosen[0] or run.divergence >= least * chosen[0].divergence]


def _distinct(things: list, values: list[float], point: Callable = lambda thing: thing) -> list:
    """Things by falling value, no two of which point in about the same direction. Points have length one."""
    kept: list = []
    for k in np.argsort(-np.array(values), kind="stable"):
        if all(abs(float(point(things[k]) @ point(other))) < _SAME for other in kept):
            kept.append(things[k])
    return kept


def _heard(runs: Iterable, run_ended: Listener, result: Callable = lambda run: run.result) -> list:
    """All runs in their order, or those up to where a callback asks for no more."""
    found = []
    for run in runs:
        found.append(run)
        if run_ended(result(run)):
            break
    return found


@contextmanager
def _threads(rows: MemoryRows) -> Iterator[Mapped]:
    """A map on as many threads as the rows have, where there is enough to do."""
    if rows.n_threads == 1 or rows.n_rows * rows.n_features < _WORTH_THREADS:
        yield map
        return
    pool = ThreadPoolExecutor(rows.n_threads)

    def mapped(work: Callable[..., Any], *arguments: Iterable[Any]) -> Iterator[Any]:
        # Few at a time: thousands of starts submitted at once would compete for the lock with whoever is to end them.
        waiting: deque[Future[Any]] = deque()
        for each in zip(*arguments, strict=True):
            waiting.append(pool.submit(work, *each))
            if len(waiting) > 2 * rows.n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    try:
        yield mapped
    finally:
        pool.shutdown(cancel_futures=True)
