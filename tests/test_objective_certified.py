"""The divergence by bins of one width: within eps and its certificate, and handed over where it cannot certify."""

import numpy as np
import pytest
from scipy import sparse

import naive
from melc.data.memory import MemoryRows
from melc.objective.base import Shrinkage
from melc.objective.moments import MomentsDivergence
from melc.objective.penalised import METHODS, CertifiedDivergence, PairwiseDivergence
from melc.sums import Exact
from test_objective_moments import CHARACTERS, ROUNDING, SCALES, _draw, _rounding, _rows_of_character

EPS = (1e-3, 1e-6, 1e-9)

# Characters that need no more than bins of one width over all points.
ORDINARY = ("normal", "tied", "weighted", "clusters_apart")


@pytest.fixture
def handed_over(monkeypatch):
    """Directions that were left to the general way."""
    seen, evaluate = [], MomentsDivergence.evaluate
    monkeypatch.setattr(MomentsDivergence, "evaluate", lambda self, v: seen.append(v.copy()) or evaluate(self, v))
    return seen


def same_bits(found, expected):
    assert found.divergence == expected.divergence
    assert found.gradient.tobytes() == expected.gradient.tobytes()
    assert (found.error, found.n_exponentials, found.floored) == (
        expected.error,
        expected.n_exponentials,
        expected.floored,
    )


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("character", CHARACTERS)
def test_error_is_within_the_certificate_and_the_certificate_within_eps(character, scale):
    for seed in range(6):
        z, codes, weights, gamma = _draw(character, seed, n=(20, 60, 150)[seed % 3])
        z = scale * z
        exact = naive.divergence(z[:, None], codes, np.ones(1), gamma, weights)
        rounding = _rounding(z, codes, weights, gamma, exact)
        for eps in EPS:
            rows = MemoryRows(z[:, None].copy(), codes, weights)
            found = CertifiedDivergence(rows, gamma, eps).evaluate(np.ones(1))
            error = abs(found.divergence - exact)
            assert error <= eps + ROUNDING * max(1, abs(exact)), (seed, eps)
            assert error <= found.error + rounding, (seed, eps)
            assert found.error <= eps, (seed, eps)


@pytest.mark.parametrize("character", CHARACTERS)
def test_gradient_is_the_exact_one_or_that_of_the_general_way_to_the_last_bit(character, handed_over):
    for seed in range(4):
        X, codes, weights, v = _rows_of_character(character, seed)
        handed_over.clear()
        found = CertifiedDivergence(MemoryRows(X, codes, weights), 1.0, 1e-7).evaluate(v)
        if handed_over:
            assert len(handed_over) == 1
            same_bits(found, MomentsDivergence(MemoryRows(X, codes, weights), 1.0, 1e-7).evaluate(v))
            continue
        exact = PairwiseDivergence(MemoryRows(X, codes, weights), 1.0, Exact()).evaluate(v)
        assert abs(found.divergence - exact.divergence) <= 1e-7 + ROUNDING * abs(exact.divergence)
        size = np.abs(exact.gradient).max() + np.abs(X).max() * (1 + abs(exact.divergence))
        np.testing.assert_allclose(found.gradient, exact.gradient, rtol=0, atol=1e-6 * size, err_msg=str(seed))
        assert found.floored == exact.floored
        assert found.n_exponentials > 0


@pytest.mark.parametrize("character", ORDINARY)
def test_ordinary_data_are_not_handed_over(character, handed_over):
    for seed in range(6):
        z, codes, weights, _ = _draw(character, seed, n=500)
        if character == "normal" and np.ptp(z) > 9:  # those that lie apart
            continue
        CertifiedDivergence(MemoryRows(z[:, None].copy(), codes, weights), 1.0, 1e-6).evaluate(np.ones(1))
    assert not handed_over


HARD = {
    "classes apart": lambda z, codes: z + 100 * codes,
    "an outlier": lambda z, codes: np.where(np.arange(len(z)) == 3, 1e9, z),
    "a class that is a point": lambda z, codes: np.where(codes, z, 0.25),
    "all points in one place": lambda z, codes: 0.0 * z,
}


@pytest.mark.parametrize("kind", HARD)
def test_what_cannot_be_certified_in_one_call_is_handed_over(kind, handed_over):
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200).astype(np.int8)
    rows = MemoryRows(HARD[kind](rng.normal(size=400), codes)[:, None].copy(), codes)
    found = CertifiedDivergence(rows, 1.0, 1e-6).evaluate(np.ones(1))
    assert len(handed_over) == 1
    same_bits(found, MomentsDivergence(rows, 1.0, 1e-6).evaluate(np.ones(1)))


@pytest.mark.parametrize("place", [1e12, 1e18, 1e19, 1e25, 1e100, -1e25])
def test_points_beyond_all_numbers_of_bins_are_handed_over(place, monkeypatch):
    """So light that they do not widen the kernels. A number of a bin that overflows must not look like a small one."""
    monkeypatch.setattr(MomentsDivergence, "evaluate", lambda self, v: "the general way")
    rng = np.random.default_rng(0)
    codes, weights = np.repeat([0, 1], 200).astype(np.int8), np.ones(400)
    z = rng.normal(size=400)
    z[3], weights[3] = place, place**-2.0
    assert (
        CertifiedDivergence(MemoryRows(z[:, None], codes, weights), 1.0, 1e-6).evaluate(np.ones(1)) == "the general way"
    )


def test_the_general_way_is_made_once_and_only_if_it_is_needed(monkeypatch):
    made, init = [], MomentsDivergence.__init__
    monkeypatch.setattr(MomentsDivergence, "__init__", lambda self, *a: made.append(1) or init(self, *a))
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200).astype(np.int8)
    X = rng.normal(size=(400, 2)) + np.outer(codes, [0, 100])
    divergence = CertifiedDivergence(MemoryRows(X, codes), 1.0, 1e-6)
    for v, n in (([1.0, 0.0], 0), ([0.0, 1.0], 1), ([0.1, 1.0], 1), ([1.0, 0.0], 1)):
        divergence.evaluate(np.array(v))
        assert len(made) == n


# ---------------------------------------------------------------------------------------------- forms of the rows


@pytest.mark.parametrize("shrunk", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["rows", "columns", "float32", "float32 columns", "strided"])
def test_rows_in_any_form_with_weights_and_shrinkage(form, weighted, shrunk, handed_over):
    rng = np.random.default_rng(5)
    codes = (rng.random(900) < 0.3).astype(np.int8)
    X = (rng.normal(size=(900, 6)) + 0.7 * codes[:, None]).astype(np.float32).astype(float)
    weights, v = rng.exponential(size=900) if weighted else None, rng.normal(size=6)
    shrinkage = Shrinkage((0.3, 0.1), (0.8, 1.2), X.std(axis=0)) if shrunk else None
    made = {
        "rows": np.ascontiguousarray,
        "columns": np.asfortranarray,
        "float32": lambda X: X.astype(np.float32),
        "float32 columns": lambda X: np.asfortranarray(X, dtype=np.float32),
        "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    }[form](X)
    found = CertifiedDivergence(MemoryRows(made, codes, weights), 1.0, 1e-8, shrinkage).evaluate(v)
    exact = PairwiseDivergence(MemoryRows(X, codes, weights), 1.0, Exact(), shrinkage).evaluate(v)
    assert not handed_over
    assert found.divergence == pytest.approx(exact.divergence, abs=1e-8)
    np.testing.assert_allclose(found.gradient, exact.gradient, rtol=0, atol=1e-6)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_features_far_from_zero_do_not_multiply_the_error(offset, centred):
    rng = np.random.default_rng(6)
    codes = (rng.random(800) < 0.5).astype(np.int8)
    X = np.round(rng.normal(size=(800, 4)) + codes[:, None], 4) + offset
    near = X - offset
    v = rng.normal(size=4)
    rows = MemoryRows(X, codes, centre=X.mean(axis=0) if centred else None)
    found = CertifiedDivergence(rows, 1.0, 1e-6).evaluate(v)
    exact = PairwiseDivergence(MemoryRows(near, codes), 1.0, Exact()).evaluate(v)
    assert found.divergence == pytest.approx(exact.divergence, abs=1e-6)
    np.testing.assert_allclose(found.gradient, exact.gradient, rtol=0, atol=1e-5)


def test_the_gradient_is_that_of_the_value_with_a_coarse_eps():
    """Where bins are wide, that of the exact divergence would be another one, and line searches would stumble."""
    rng = np.random.default_rng(7)
    codes = (rng.random(500) < 0.5).astype(np.int8)
    X, v, h = rng.normal(size=(500, 3)) + codes[:, None] + 50, rng.normal(size=3), 1e-6
    divergence = CertifiedDivergence(MemoryRows(X, codes), 1.0, 1e-2)
    gradient = divergence.evaluate(v).gradient
    for e in np.eye(3):
        slope = (divergence.evaluate(v + h * e).divergence - divergence.evaluate(v - h * e).divergence) / (2 * h)
        assert gradient @ e == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("order", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_number_of_threads_gives_the_same_bits(order, weighted):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(20_000, 5))
    codes = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(np.int8)
    weights, v = rng.exponential(size=len(X)) if weighted else None, rng.normal(size=5)
    results = []
    for n_threads in (1, 2, 4):
        rows = MemoryRows(order(X), codes, weights, n_threads)
        results.append(CertifiedDivergence(rows, 1.0, 1e-6).evaluate(v))
        rows.close()
    for other in results[1:]:
        same_bits(other, results[0])


def test_a_weight_of_k_is_k_rows():
    X, codes, _, v = _rows_of_character("normal", 7, n=900)
    counts = np.random.default_rng(0).integers(1, 5, 900)
    weighted = CertifiedDivergence(MemoryRows(X, codes, counts.astype(float)), 1.0, 1e-9).evaluate(v)
    repeated = MemoryRows(np.repeat(X, counts, axis=0), np.repeat(codes, counts))
    other = CertifiedDivergence(repeated, 1.0, 1e-9).evaluate(v)
    assert abs(weighted.divergence - other.divergence) <= 2e-9
    np.testing.assert_allclose(weighted.gradient, other.gradient, rtol=0, atol=1e-7)


def test_an_evaluation_does_not_depend_on_the_one_before():
    rng = np.random.default_rng(9)
    codes = (rng.random(800) < 0.5).astype(np.int8)
    rows = MemoryRows(rng.normal(size=(800, 3)), codes)
    v, other = rng.normal(size=(2, 3))
    divergence = CertifiedDivergence(rows, 1.0, 1e-6)
    first = divergence.evaluate(v)
    kept = first.gradient.copy()
    divergence.evaluate(other)
    np.testing.assert_array_equal(first.gradient, kept)
    same_bits(divergence.evaluate(v), first)
    same_bits(CertifiedDivergence(rows, 1.0, 1e-6).evaluate(v), first)


def test_it_is_the_way_of_dense_rows_in_memory(monkeypatch):
    made = []
    monkeypatch.setattr(CertifiedDivergence, "__init__", lambda self, *a: made.append(a))
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(2000, 2)), (np.arange(2000) % 2).astype(np.int8)
    METHODS["moments"](MemoryRows(X, codes), 1.0, 1e-6, None)
    assert len(made) == 1
    METHODS["moments"](MemoryRows(sparse.csr_array(X), codes), 1.0, 1e-6, None)
    assert len(made) == 1
    few = METHODS["moments"](MemoryRows(X[:400], codes[:400]), 1.0, 1e-6, None)
    assert len(made) == 1
    assert isinstance(few, PairwiseDivergence)
    METHODS["moments"](MemoryRows(X[:401], codes[:401]), 1.0, 1e-6, None)
    assert len(made) == 2
