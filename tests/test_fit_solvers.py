"""The solvers: where they end, how they tell, and that nothing good is lost on the way."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import naive
from melc.data.memory import MemoryRows
from melc.fit import solvers
from melc.fit.coordinates import Coordinates
from melc.fit.solvers import best_run, maximise, sharpen
from melc.objective import Objective
from melc.objective.base import Evaluation

SOLVERS = tuple(solvers.SOLVERS)
METHODS = ("exact", "discard", "bin")


def make(seed=0, n=120, d=5, shift=0.3):
    """Overlapping classes of unlike shape, about as large as the paper's scaled data."""
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) % 2).astype(np.int8)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 0.6, size=d)
    X[codes == 1] = X[codes == 1] * rng.uniform(0.7, 1.4, size=d) + shift * rng.normal(size=d)
    return MemoryRows(X, codes)


def random_starts(d, n, seed=0):
    starts = np.random.default_rng(seed).normal(size=(n, d))
    return starts / np.linalg.norm(starts, axis=1, keepdims=True)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_climbs_to_a_stationary_point(solver):
    for seed in range(3):
        rows = make(seed)
        start = random_starts(5, 1, seed)[0]
        result = maximise(Objective(rows), start, solver=solver, max_iter=2000, tol=1e-6)
        assert result.converged
        assert result.reason.startswith("converged")
        assert result.divergence > naive.divergence(rows.X, rows.codes, start)
        assert result.divergence == pytest.approx(naive.divergence(rows.X, rows.codes, result.direction), rel=1e-9)
        gradient = naive.FrozenDivergence(rows.X, rows.codes, result.direction).gradient()
        assert np.max(np.abs(gradient)) < 2e-3 * max(1, result.divergence)
        assert np.linalg.norm(result.direction) == pytest.approx(1, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_direction_nearby_is_better(solver):
    rows = make(1)
    result = maximise(Objective(rows), random_starts(5, 1)[0], solver=solver, max_iter=2000, tol=1e-6)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(30):
            other = result.direction + size * rng.normal(size=5)
            assert naive.divergence(rows.X, rows.codes, other) <= result.divergence + 1e-7 * abs(result.divergence)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["lbfgs", "cg"])
@pytest.mark.parametrize("method", METHODS)
def test_the_penalty_keeps_the_norm_near_one(method, solver):
    for seed, eps in product(range(2), (0.01, 0.05, 0.2)):
        for start in random_starts(5, 2, seed):
            result = maximise(Objective(make(seed), method=method, eps=eps), start, solver=solver)
            assert 0.9 <= result.norm <= 1.1


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["lbfgs", "cg"])
def test_without_the_penalty_the_norm_wanders(solver):
    """D pulls at right angles to v: every step makes v longer, and nothing brings it back."""
    norms = [
        maximise(Objective(make(seed), penalty=False), start, solver=solver).norm
        for seed in range(4)
        for start in random_starts(5, 3, seed)
    ]
    assert min(norms) >= 1
    assert np.mean([norm > 1.1 for norm in norms]) > 0.8
    assert max(norms) > 2


def test_the_sphere_is_never_left():
    seen = []

    class Watched(Objective):
        def evaluate(self, u):
            seen.append(np.linalg.norm(u))
            return super().evaluate(u)

    maximise(Watched(make(0)), 7 * random_starts(5, 1)[0], solver="sphere")
    np.testing.assert_allclose(seen, 1, rtol=1e-12)


class Recorded(Objective):
    """Keeps every point that a solver asks for."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.seen = []

    def penalise(self, u, evaluation):
        value, gradient = super().penalise(u, evaluation)
        self.seen.append((value, evaluation.divergence, u.copy()))
        return value, gradient

    def best(self):
        return max(self.seen, key=lambda point: point[0])


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["lbfgs", "cg"])
def test_the_best_point_is_kept_though_line_searches_fail(solver):
    """Wide bins make jumps on which line searches fail; what was reached before counts."""
    stalled = 0
    for seed in range(6):
        rows = make(seed, n=60)
        for start in random_starts(5, 2, seed):
            objective = Recorded(rows, gamma=0.1, method="bin", eps=0.5)
            result = maximise(objective, start, solver=solver)
            stalled += result.reason.startswith("stalled")
            _, divergence, u = objective.best()
            assert result.divergence == divergence
            np.testing.assert_allclose(result.direction, u / np.linalg.norm(u), rtol=1e-14)
            assert not (result.converged and result.reason.startswith("stalled"))
    assert stalled > 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_cliff_costs_nothing_that_was_found(solver):
    """From the fifth evaluation on every point is worse than the gradients promise: no line search can succeed."""

    class Cliff(Recorded):
        def evaluate(self, u):
            evaluation = super().evaluate(u)
            drop = 1.0 if self.n_evaluations > 4 else 0.0
            return replace(evaluation, divergence=evaluation.divergence - drop)

    objective = Cliff(make(3))
    result = maximise(objective, random_starts(5, 1)[0], solver=solver)
    assert result.divergence == objective.best()[1] >= objective.seen[0][1]
    assert len(objective.seen) > 5
    assert objective.seen[-1][0] < objective.best()[0]  # where the solver stood at the end was worse


def test_a_result_counts_its_own_run_only():
    objective = Objective(make(0))
    first = maximise(objective, random_starts(5, 1)[0])
    second = maximise(objective, random_starts(5, 1)[0])
    assert first.n_evaluations == second.n_evaluations > first.n_iter > 0
    assert first.n_exponentials == first.n_evaluations * (120 * 119 // 2)
    assert objective.n_evaluations == 2 * first.n_evaluations
    assert len(first.history) == first.n_iter
    assert first.history[-1] == first.divergence


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_limit_is_obeyed_and_told(solver):
    result = maximise(Objective(make(0)), random_starts(5, 1)[0], solver=solver, max_iter=2, tol=0)
    assert result.n_iter == 2
    assert not result.converged
    assert "2 iterations" in result.reason


def test_results_are_frozen():
    result = maximise(Objective(make(0)), random_starts(5, 1)[0], max_iter=1)
    with pytest.raises(AttributeError):
        result.divergence = 1.0


def test_best_of_takes_the_highest_and_the_first_of_equals():
    base = maximise(Objective(make(0)), random_starts(5, 1)[0], max_iter=1)
    for divergences, best in (((1.0, 3.0, 3.0, 2.0), 1), ((1.0, 3.0, 3.0 + 1e-9, 2.0), 1), ((3.0, 3.0 + 1e-7), 1)):
        results = [replace(base, divergence=d, n_iter=i, converged=True) for i, d in enumerate(divergences)]
        assert best_run(results).n_iter == best
        results[best] = replace(results[best], converged=False)
        assert best_run(results).n_iter == (2 if divergences[2:] else best)


def test_a_flat_objective_ends_at_once():
    class Flat(Objective):
        def evaluate(self, u):
            self.n_evaluations += 1
            return Evaluation(0.0, np.zeros(len(u)), 0, False)

    for solver in SOLVERS:
        result = maximise(Flat(make(0)), random_starts(5, 1)[0], solver=solver)
        assert result.converged
        assert result.n_iter == 0


# ------------------------------------------------------------------------------------------ to more digits


@pytest.fixture(scope="module")
def long_run():
    """The objective, and a run of many iterations that ends somewhere within a loose tolerance."""
    rows = make(seed=2, n=400, d=60)
    objective = Objective(rows, scale=Coordinates(rows).scale)
    return objective, maximise(objective, random_starts(60, 1)[0], max_iter=1000, tol=1e-4, progress=0.0)


def gradient_at(objective, result):
    u = result.norm * objective.coordinates_of(result.direction)
    return objective.penalise(u, objective.evaluate(u))[1]


def test_a_long_run_is_sharpened(long_run):
    objective, found = long_run
    assert found.converged
    assert found.n_iter >= 60
    evaluations, exponentials = objective.n_evaluations, objective.n_exponentials
    sharp = sharpen(objective, found)
    assert found.n_evaluations < sharp.n_evaluations <= 2 * found.n_evaluations + 1
    assert sharp.n_evaluations - found.n_evaluations == objective.n_evaluations - evaluations
    assert sharp.n_exponentials - found.n_exponentials == objective.n_exponentials - exponentials
    before, after = (np.linalg.norm(gradient_at(objective, run)) for run in (found, sharp))
    assert after < 2e-4 * before
    assert sharp.divergence >= found.divergence - 1e-13
    assert sharp.history[-1] == sharp.divergence
    assert np.linalg.norm(sharp.direction) == pytest.approx(1, rel=1e-14)
    assert (sharp.n_iter, sharp.reason, len(sharp.history)) == (found.n_iter, found.reason, len(found.history))


def test_where_a_run_ended_is_forgotten(long_run):
    """Ends 1e-5 apart become one."""
    objective, found = long_run
    ends = [found]
    for seed in range(3):
        moved = found.direction + 1e-6 * random_starts(60, 1, seed)[0]
        ends.append(replace(found, direction=moved / np.linalg.norm(moved)))
    sharp = [sharpen(objective, end).direction for end in ends]
    for direction in sharp[1:]:
        assert np.linalg.norm(direction - sharp[0]) < 3e-8


@pytest.mark.parametrize("change", [{"converged": False}, {"n_iter": 59}])
def test_short_runs_and_those_that_were_cut_short_stay_as_they_are(long_run, change):
    objective, found = long_run
    before = objective.n_evaluations
    changed = replace(found, **change)
    assert sharpen(objective, changed) is changed
    assert objective.n_evaluations == before


def test_no_step_is_taken_where_the_objective_is_not_concave(long_run):
    """Somewhere on the way the gradient leads uphill without end: better the run as it was than a wild step."""
    objective, found = long_run
    start = random_starts(60, 1, 5)[0]
    away = replace(found, direction=start, divergence=objective.evaluate(objective.coordinates_of(start)).divergence)
    sharp = sharpen(objective, away)
    assert sharp.divergence >= away.divergence - 1e-8
    assert np.isfinite(sharp.divergence)
