"""L-BFGS along the sphere: the iterates of a plain twin, every way to end, and memory that is taken over."""

import numpy as np
import pytest

import naive
from melc import kernels
from melc.data.memory import MemoryRows
from melc.kernels import ascent
from melc.objective.grid import Ascent, GridRows

ENDS = {ascent.CONVERGED: "converged", ascent.SETTLED: "settled", ascent.STALLED: "stalled", ascent.LIMITED: "limited"}


def quadratic(values):
    """pᵀAp with the given eigenvalues, whose maximum on the sphere is the largest; and the vector of that."""
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(len(values), len(values))))[0]
    matrix = (vectors * values) @ vectors.T
    return lambda p: (float(p @ matrix @ p), 2 * matrix @ p), vectors[:, np.argmax(values)]


def ripples(d, seed):
    """A sum of waves: many maxima, and steps between them along which the curvature has the wrong sign."""
    K = 2.0 * np.random.default_rng(seed).normal(size=(3 * d, d))
    return lambda p: (float(np.sin(K @ p + 1).sum()), K.T @ np.cos(K @ p + 1))


def run(f, start, tol=1e-7, progress=0.0, max_iter=200, before=None):
    """An ascent by calls of ``advance``, and the points that it went through."""
    climbing, path = Ascent(start, max_iter, before), []
    while climbing.status == ascent.RUNNING:
        value, gradient = f(climbing.table[ascent.TRIAL].copy())
        kernels.advance(value, gradient.copy(), climbing.state, tol, progress)
        if len(path) <= climbing.n_iter and climbing.status != ascent.STALLED:
            path.append(climbing.point.copy())
    return climbing, path


def start_of(d, seed=0):
    return np.random.default_rng(seed).normal(size=d)


FUNCTIONS = {
    "one maximum": (lambda seed: quadratic(np.linspace(1, 3, 12))[0], 12),
    "narrow": (lambda seed: quadratic(np.geomspace(1e-3, 1, 8))[0], 8),
    "few dimensions": (lambda seed: quadratic(np.array([1.0, 2.0]))[0], 2),
    "many maxima": (lambda seed: ripples(6, seed), 6),
    "many dimensions": (lambda seed: ripples(40, seed), 40),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_iterates_are_those_of_the_twin(kind, seed):
    """For twelve iterations: rounding grows from one to the next."""
    make, d = FUNCTIONS[kind]
    f, start = make(seed), start_of(d, seed)
    climbing, path = run(f, start, max_iter=12)
    expected, values, end, _ = naive.sphere_ascent(f, start, 1e-7, 0.0, 12)
    assert len(path) > 4
    np.testing.assert_allclose(path, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(climbing.history[: climbing.n_iter], values[1:], rtol=1e-11)
    assert ENDS[climbing.status] == end


def test_a_step_of_the_wrong_curvature_leaves_the_oldest_pair_as_it_is():
    """Memory is full by then, and the next pair would have taken the place of the oldest."""
    f, start = ripples(6, 9), start_of(6, 9)
    before, climbing = (run(f, start, max_iter=n)[0] for n in (13, 14))
    assert climbing.counts[ascent.KEPT] == ascent.PAIRS
    assert climbing.counts[ascent.NEXT] == before.counts[ascent.NEXT], "this step was to be rejected"
    np.testing.assert_array_equal(climbing.table[ascent.FIRST_STEP :], before.table[ascent.FIRST_STEP :])
    expected, *_ = naive.sphere_ascent(f, start, 1e-7, 0.0, 18)
    np.testing.assert_allclose(run(f, start, max_iter=18)[1], expected, rtol=0, atol=1e-6)


def test_the_top_of_a_quadratic_form_is_its_largest_eigenvector():
    f, top = quadratic(np.linspace(1, 3, 20))
    climbing, path = run(f, start_of(20))
    assert climbing.status == ascent.CONVERGED
    assert abs(climbing.point @ top) == pytest.approx(1, abs=1e-12)
    assert climbing.value == pytest.approx(3)
    np.testing.assert_allclose(np.linalg.norm(path, axis=1), 1, rtol=1e-14)
    angles = np.arccos(np.clip(np.sum(np.array(path[1:]) * path[:-1], axis=1), -1, 1))
    assert angles.max() <= 0.5 + 1e-9


# --------------------------------------------------------------------------------------------------- ways to end


def test_an_ascent_that_begins_at_the_top_takes_one_evaluation():
    f, top = quadratic(np.linspace(1, 3, 5))
    climbing, _ = run(f, top)
    assert (climbing.status, climbing.n_evaluations, climbing.n_iter) == (ascent.CONVERGED, 1, 0)


def test_an_ascent_settles_after_two_iterations_of_little_progress():
    f, _ = quadratic(np.linspace(1, 3, 20))
    climbing, _ = run(f, start_of(20), tol=0.0, progress=1e-2)
    assert climbing.status == ascent.SETTLED
    gains = np.diff(climbing.history[: climbing.n_iter]) / climbing.value
    assert np.all(gains[-2:] <= 1e-2)
    assert not np.any((gains[:-2] <= 1e-2)[1:] & (gains[:-2] <= 1e-2)[:-1])


def test_an_ascent_ends_at_its_limit():
    f, _ = quadratic(np.linspace(1, 3, 20))
    climbing, _ = run(f, start_of(20), max_iter=3)
    assert (climbing.status, climbing.n_iter) == (ascent.LIMITED, 3)


def test_an_ascent_whose_gradient_lies_stalls_where_it_is():
    f, _ = quadratic(np.linspace(1, 3, 5))
    start = start_of(5)
    climbing, _ = run(lambda p: (f(p)[0], -f(p)[1]), start)
    assert (climbing.status, climbing.n_iter, climbing.n_evaluations) == (ascent.STALLED, 0, 14)
    np.testing.assert_allclose(climbing.point, start / np.linalg.norm(start))


def test_a_value_that_is_not_a_number_is_no_progress():
    f, top = quadratic(np.linspace(1, 3, 5))
    climbing, _ = run(lambda p: f(p) if p @ top > -0.5 else (np.nan, np.full(5, np.nan)), start_of(5, 3))
    assert np.isfinite(climbing.value)
    assert np.all(np.isfinite(climbing.point))


@pytest.mark.parametrize("seed", range(5))
def test_values_never_fall(seed):
    climbing, _ = run(ripples(10, seed), start_of(10, seed))
    assert climbing.n_iter > 3
    assert np.all(np.diff(climbing.history[: climbing.n_iter]) >= 0)
    assert climbing.history[climbing.n_iter - 1] == climbing.value
    assert climbing.n_evaluations > climbing.n_iter


# -------------------------------------------------------------------------------------------------------- memory


def test_an_ascent_goes_on_with_what_the_one_before_knows():
    f, _ = quadratic(np.geomspace(1e-2, 1, 30))
    first, _ = run(f, start_of(30), max_iter=15)
    kept = first.table.copy()
    on, path = run(f, first.point, before=first)
    anew, _ = run(f, first.point)
    _, _, _, pairs = naive.sphere_ascent(f, start_of(30), 1e-7, 0.0, 15)
    expected, *_ = naive.sphere_ascent(f, first.point, 1e-7, 0.0, 200, pairs)
    np.testing.assert_allclose(path[:8], expected[:8], rtol=0, atol=1e-8)
    assert on.n_evaluations < anew.n_evaluations
    np.testing.assert_array_equal(first.table, kept)  # a copy, not the same memory


# ------------------------------------------------------------------------------------------------- in one call


def rows_of(n=600, d=7, seed=0, apart=1.0):
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) % 2).astype(np.int8)
    X = rng.normal(size=(n, d))
    X[:, 0] += apart * codes
    return GridRows(MemoryRows(X, codes), lambda some: some - X.mean(axis=0), d)


@pytest.mark.parametrize("d", [1, 2, 7, 9])
def test_one_call_climbs_as_calls_of_its_parts_do(d):
    rows, start = rows_of(d=d), start_of(d)
    alone, together, stepped = (Ascent(start, 100) for _ in range(3))
    rows.climb(alone, 1.0, 1e-3, 1e-7)
    rows.climb_together([together], np.eye(d), 1.0, 1e-3, 1e-7)
    while stepped.status == ascent.RUNNING:
        value, gradient = rows.evaluate(stepped.table[ascent.TRIAL], 1.0)
        tol = 1e-3 * min(1.0, max(value, 1e-4))
        kernels.advance(value, gradient, stepped.state, tol, 1e-7)
    for other in (together, stepped):
        assert other.value == pytest.approx(alone.value, abs=2e-6)
        assert abs(other.point @ alone.point) == pytest.approx(1, abs=1e-5)
        assert other.status in (ascent.CONVERGED, ascent.SETTLED, ascent.STALLED)
    np.testing.assert_allclose(together.history[:2], alone.history[:2], rtol=1e-5)


def test_ascents_in_step_do_not_feel_each_other():
    rows, starts = rows_of(), [start_of(7, seed) for seed in range(5)]
    together = [Ascent(start, 40) for start in starts]
    rows.climb_together(together, np.eye(7), 1.0, 3e-2, 1e-5)
    for start, other in zip(starts, together, strict=True):
        alone = Ascent(start, 40)
        rows.climb(alone, 1.0, 3e-2, 1e-5)
        assert other.value == pytest.approx(alone.value, abs=1e-3)


def test_an_ascent_is_handed_over_when_the_classes_part():
    """It keeps the last point at which the grid did; others of the same step go on."""
    rows = rows_of(apart=12.0)
    start, along = start_of(7), np.eye(7)[0]
    start[0] = 0.0
    climbing, apart = Ascent(start, 100), Ascent(along, 100)
    rows.climb(climbing, 1.0, 1e-3, 1e-7)
    assert climbing.status == ascent.HANDED_OVER
    assert climbing.value > rows.evaluate(start / np.linalg.norm(start), 1.0)[0]
    assert climbing.value == pytest.approx(rows.evaluate(climbing.point, 1.0)[0], rel=1e-4)
    rows.climb(apart, 1.0, 1e-3, 1e-7)
    assert (apart.status, apart.n_iter) == (ascent.HANDED_OVER, 0)
    np.testing.assert_array_equal(apart.point, along)
    limited, apart = Ascent(start, 1), Ascent(along, 1)
    rows.climb_together([limited, apart], np.eye(7), 1.0, 1e-3, 1e-7)
    assert (limited.status, apart.status) == (ascent.LIMITED, ascent.HANDED_OVER)
