"""D and its gradient for every method, against twins in extended precision."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
from melc.data.memory import MemoryRows
from melc.objective import Objective
from melc.objective.base import VARIANCE_FLOOR

METHODS = ("exact", "discard", "bin")
GAMMAS = (0.1, 0.5, 1.0, 1.5, 2.0)


def make(seed=0, n=40, m=30, d=4, shift=0.7, scale=1.0):
    """Two overlapping classes with correlated features of different spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + m, d)) @ rng.normal(size=(d, d))
    X[n:] += shift * rng.normal(size=d)
    codes = np.repeat([0, 1], [n, m]).astype(np.int8)
    order = rng.permutation(n + m)
    return X[order] * scale, codes[order], rng.normal(size=d)


@st.composite
def problems(draw, weighted):
    """Any data a person could bring: ties, grids, small classes, wild scales, and weights if wanted."""
    seed = draw(st.integers(0, 2**32 - 1))
    n, m, d = draw(st.integers(2, 30)), draw(st.integers(2, 30)), draw(st.integers(1, 6))
    X, codes, v = make(seed, n, m, d, shift=draw(st.sampled_from([0.0, 1.0, 30.0])))
    if draw(st.booleans()):
        X = np.round(X)  # ties
    X = X * 10.0 ** draw(st.integers(-6, 6)) + draw(st.sampled_from([0.0, 1.0, -50.0]))
    weights = np.random.default_rng(seed).uniform(0.1, 5, size=n + m) if weighted else None
    return X, codes, v, draw(st.sampled_from(GAMMAS)), weights


def well_posed(X, codes, v, least=1e-6):
    """Both classes vary along v by more than rounding."""
    z = X @ v
    return all(np.std(z[codes == c]) > least * np.max(np.abs(z)) for c in (0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_exact_divergence_equals_the_naive_one(weighted):
    used = 0

    @given(problems(weighted))
    @settings(max_examples=200)
    def check(problem):
        nonlocal used
        X, codes, v, gamma, weights = problem
        assume(well_posed(X, codes, v))
        used += 1
        found = Objective(MemoryRows(X, codes, weights), gamma=gamma).evaluate(v).divergence
        expected = naive.divergence(X, codes, v, gamma, weights)
        # D may be next to zero as a difference of logarithms of order one. Far from zero, the rounding of projections
        # is what counts, in kernel widths.
        z = X @ v
        rounding = 1e-15 * np.abs(z).max() / math.sqrt(min(naive.kernel_variances(z, codes, gamma, weights)))
        allowed = max(1e-11, 1e-10 * abs(expected)) + rounding * max(1, abs(expected))
        assert abs(found - expected) <= allowed

    check()
    assert used > 150


def gradient_cases():
    for seed in range(12):
        d = 1 + seed % 6
        X, codes, v = make(seed, n=25, m=20, d=d, shift=(0.0, 0.7, 2.0)[seed % 3])
        weights = np.random.default_rng(seed).uniform(0.2, 3, size=45) if seed % 2 else None
        yield X, codes, v, GAMMAS[seed % 5], weights


def test_exact_gradient_matches_finite_differences():
    for X, codes, v, gamma, weights in gradient_cases():
        twin = naive.FrozenDivergence(X, codes, v, gamma, weights=weights)
        found = Objective(MemoryRows(X, codes, weights), gamma=gamma).evaluate(v)
        expected = twin.gradient()
        size = max(np.max(np.abs(expected)), 1e-3)
        assert np.max(np.abs(found.gradient - expected)) <= 1e-7 * size


@pytest.mark.parametrize("eps", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("method", ["discard", "bin"])
def test_gradients_match_finite_differences_of_their_own_value(method, eps):
    """Window and bins held as they are at v: there the value is the method's own, and the slope too."""
    used = 0
    for X, codes, v, gamma, weights in gradient_cases():
        v = v / np.linalg.norm(X @ v) * 3  # scales at which ε neither drops everything nor nothing
        twin = naive.FrozenDivergence(X, codes, v, gamma, method, eps, weights)
        if method == "discard" and not twin.frozen[0, 1].any():
            continue  # an empty window is another matter, tested with the sums
        used += 1
        found = Objective(MemoryRows(X, codes, weights), gamma=gamma, method=method, eps=eps).evaluate(v)
        assert found.divergence == pytest.approx(float(twin(v)), rel=1e-10, abs=1e-11)
        expected = twin.gradient()
        size = max(np.max(np.abs(expected)), 1e-3)
        assert np.max(np.abs(found.gradient - expected)) <= 1e-6 * size
    assert used >= 9


@pytest.mark.parametrize("method", ["discard", "bin"])
def test_approximations_differ_from_exact_and_converge_to_it(method):
    X, codes, v = make(3)
    exact = Objective(MemoryRows(X, codes)).evaluate(v)
    coarse = Objective(MemoryRows(X, codes), method=method, eps=0.05).evaluate(v)
    fine = Objective(MemoryRows(X, codes), method=method, eps=1e-13).evaluate(v)
    assert abs(coarse.divergence - exact.divergence) > 1e-6
    assert fine.divergence == pytest.approx(exact.divergence, rel=1e-9)
    np.testing.assert_allclose(fine.gradient, exact.gradient, rtol=1e-5, atol=1e-7)
    assert coarse.n_exponentials < exact.n_exponentials


# ------------------------------------------------------------------------------------------ invariances


@given(st.integers(0, 10**6), st.floats(-6, 6), st.booleans())
@settings(max_examples=60)
def test_the_length_of_v_does_not_matter(seed, exponent, negative):
    X, codes, v = make(seed)
    objective = Objective(MemoryRows(X, codes))
    factor = -(10**exponent) if negative else 10**exponent
    one, other = objective.evaluate(v), objective.evaluate(factor * v)
    assert other.divergence == pytest.approx(one.divergence, rel=1e-11, abs=1e-12)
    np.testing.assert_allclose(other.gradient * factor, one.gradient, rtol=1e-8, atol=1e-10)
    assert abs(one.gradient @ v) <= 1e-10 * np.linalg.norm(one.gradient) * np.linalg.norm(v) + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_swapping_translating_and_permuting_change_nothing(method):
    for seed in range(8):
        X, codes, v = make(seed)
        v = v / np.linalg.norm(X @ v) * 3

        def evaluate(X, codes, v=v):
            return Objective(MemoryRows(X, codes), method=method, eps=0.05).evaluate(v)

        base = evaluate(X, codes)
        order = np.random.default_rng(seed).permutation(len(codes))
        # Shifts that are exact in binary: every point stays in its bin to the last bit.
        shift = np.array([4.0, -2.0, 8.0, 0.5])
        for other in (
            evaluate(X, (1 - codes).astype(np.int8)),
            evaluate(X[order], codes[order]),
            evaluate(X + shift, codes),
        ):
            assert other.divergence == pytest.approx(base.divergence, rel=1e-9, abs=1e-10)
            np.testing.assert_allclose(other.gradient, base.gradient, rtol=1e-6, atol=1e-8)
            assert other.n_exponentials == base.n_exponentials


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_k_equals_k_repeats(method):
    for seed in range(5):
        X, codes, v = make(seed)
        v = v / np.linalg.norm(X @ v) * 3
        repeats = np.random.default_rng(seed).integers(1, 5, size=len(codes))
        weighted = Objective(MemoryRows(X, codes, repeats * 1.0), method=method, eps=0.05).evaluate(v)
        copied = MemoryRows(np.repeat(X, repeats, axis=0), np.repeat(codes, repeats))
        repeated = Objective(copied, method=method, eps=0.05).evaluate(v)
        assert weighted.divergence == pytest.approx(repeated.divergence, rel=1e-10)
        np.testing.assert_allclose(weighted.gradient, repeated.gradient, rtol=1e-8, atol=1e-10)


def test_units_of_the_features_do_not_matter_with_their_scale():
    X, codes, v = make(2)
    units = np.array([1e-3, 1.0, 50.0, 1e4])
    plain = Objective(MemoryRows(X, codes), scale=np.ones(4)).evaluate(v)
    scaled = Objective(MemoryRows(X * units, codes), scale=units).evaluate(v)
    assert scaled.divergence == pytest.approx(plain.divergence, rel=1e-12)
    np.testing.assert_allclose(scaled.gradient, plain.gradient, rtol=1e-9)


# ----------------------------------------------------------------------------------------- where it is hard


@pytest.mark.parametrize("eps", [1e-6, 0.05, 0.5])
@pytest.mark.parametrize("method", METHODS)
def test_classes_a_thousand_bandwidths_apart(method, eps):
    """exp(−10⁶/4) is far below the smallest float; D is its logarithm and no trouble at all."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 40).astype(np.int8)
    X = rng.normal(size=(80, 3)) + 1000.0 * codes[:, None] * [1, 0, 0]
    v = np.array([1.0, 0.2, -0.1])
    found = Objective(MemoryRows(X, codes), method=method, eps=eps).evaluate(v)
    expected = naive.FrozenDivergence(X, codes, v)
    assert found.divergence > 1e5
    assert np.all(np.isfinite(found.gradient))
    # One bin is Theorem 2's honest answer where ε exceeds any ip; otherwise D is right to a fraction.
    tolerance = {"exact": 1e-10, "discard": 1e-3, "bin": 0.05}[method]
    assert found.divergence == pytest.approx(float(expected(v)), rel=tolerance)
    slopes = expected.gradient()
    tolerance = {"exact": 1e-7, "discard": 1e-2, "bin": 0.1}[method]
    np.testing.assert_allclose(found.gradient, slopes, atol=tolerance * np.max(np.abs(slopes)))


@pytest.mark.parametrize("method", METHODS)
def test_an_outlier_a_million_bandwidths_away(method):
    X, codes, v = make(1, d=2)
    X[0] = 1e7
    found = Objective(MemoryRows(X, codes), method=method, eps=1e-3).evaluate(v)
    assert math.isfinite(found.divergence)
    assert np.all(np.isfinite(found.gradient))


@pytest.mark.parametrize("method", METHODS)
def test_a_class_without_variance_meets_the_floor(method):
    """Duplicates, a constant feature: V would be zero and D infinite. The floor is stated and obeyed."""
    rng = np.random.default_rng(4)
    codes = np.repeat([0, 1], 20).astype(np.int8)
    X = rng.normal(size=(40, 2))
    X[codes == 0] = [0.3, -0.1]
    v = np.array([0.8, 0.6])
    found = Objective(MemoryRows(X, codes), method=method, eps=1e-6).evaluate(v)
    assert found.floored
    assert math.isfinite(found.divergence)
    assert np.all(np.isfinite(found.gradient))
    if method == "exact":
        assert VARIANCE_FLOOR == naive.VARIANCE_FLOOR
        assert found.divergence == pytest.approx(naive.divergence(X, codes, v), rel=1e-9)
        slopes = naive.FrozenDivergence(X, codes, v).gradient()
        np.testing.assert_allclose(found.gradient, slopes, atol=1e-6 * np.max(np.abs(slopes)))


@pytest.mark.parametrize("method", METHODS)
def test_all_points_on_one_spot_along_v(method):
    X, codes, _ = make(5, d=2)
    X[:, 1] = 7.0
    found = Objective(MemoryRows(X, codes), method=method, eps=0.1).evaluate(np.array([0.0, 1.0]))
    assert found.divergence == 0
    np.testing.assert_array_equal(found.gradient, 0)


def test_a_vanishing_bandwidth_has_no_rounding_in_its_gradient():
    """Far from the origin the differences are what counts."""
    X, codes, v = make(6)
    near = Objective(MemoryRows(X, codes)).evaluate(v)
    far = Objective(MemoryRows(X + 1e6, codes)).evaluate(v)
    assert far.divergence == pytest.approx(near.divergence, rel=1e-7)
    np.testing.assert_allclose(far.gradient, near.gradient, rtol=1e-4, atol=1e-6)


# ------------------------------------------------------------------------------------- penalty and counters


def test_the_penalty_is_the_papers():
    for seed in range(5):
        X, codes, v = make(seed)
        objective = Objective(MemoryRows(X, codes))
        value, gradient = objective.penalise(v, objective.evaluate(v))
        assert value == pytest.approx(naive.penalised(X, codes, v), rel=1e-10)
        h = 1e-5
        for i, e in enumerate(np.eye(len(v))):
            slope = (naive.penalised(X, codes, v + h * e) - naive.penalised(X, codes, v - h * e)) / (2 * h)
            assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_without_the_penalty_the_value_is_the_divergence():
    X, codes, v = make(0)
    objective = Objective(MemoryRows(X, codes), penalty=False)
    evaluation = objective.evaluate(3 * v)
    value, gradient = objective.penalise(3 * v, evaluation)
    assert value == evaluation.divergence
    np.testing.assert_array_equal(gradient, evaluation.gradient)


def test_counters_add_up():
    X, codes, v = make(0, n=12, m=9)
    objective = Objective(MemoryRows(X, codes))
    for _ in range(3):
        assert objective.evaluate(v).n_exponentials == 12 * 11 // 2 + 9 * 8 // 2 + 12 * 9
    assert objective.n_evaluations == 3
    assert objective.n_exponentials == 3 * (12 * 11 // 2 + 9 * 8 // 2 + 12 * 9)


def test_float32_rows_are_read_as_they_are():
    X, codes, v = make(0)
    single = X.astype(np.float32)
    found = Objective(MemoryRows(single, codes)).evaluate(v)
    assert found.divergence == pytest.approx(naive.divergence(single.astype(float), codes, v), rel=1e-4)
    assert found.gradient.dtype == np.float64
