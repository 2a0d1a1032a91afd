"""Shrunk class variances: the formula, its gradient in every method, and what it is for."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.covariance import ledoit_wolf_shrinkage

import naive
from melc import MELC
from melc.data.memory import MemoryRows
from melc.fit.coordinates import Coordinates, estimate_shrinkage, gram, ledoit_wolf
from melc.objective import Objective
from melc.objective.base import Shrinkage


def make(seed, n=60, d=4):
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) % 3 > 0).astype(np.int8)
    return rng.normal(size=(n, d)) * rng.uniform(0.3, 3, size=d) + codes[:, None] * rng.normal(size=d), codes, rng


@pytest.mark.parametrize(("n", "d"), [(20, 5), (5, 40), (200, 10), (300, 3), (40, 1)])
def test_intensity_is_ledoit_and_wolfs(n, d):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 3, size=d) + 5
    intensity, target = ledoit_wolf(gram(X, np.ones(n), np.ones(d)), np.ones(n), d, n)
    assert intensity == pytest.approx(ledoit_wolf_shrinkage(X), abs=1e-12)
    assert target == pytest.approx(np.var(X, axis=0).mean(), rel=1e-12)


def test_weights_count_as_copies_in_the_intensity():
    X, _, rng = make(1)
    copies = rng.integers(1, 5, size=len(X))
    weighted = ledoit_wolf(gram(X, 1.0 * copies, np.ones(4)), 1.0 * copies, 4, copies.sum())
    repeated = np.repeat(X, copies, axis=0)
    assert weighted[0] == pytest.approx(ledoit_wolf_shrinkage(repeated), abs=1e-12)


@pytest.mark.parametrize("d", [2, 5, 50])
def test_two_rows_are_not_taken_for_certainty(d):
    """Where Ledoit and Wolf see no uncertainty; the twin is the Rao-Blackwell formula for any n, written out."""
    X = np.random.default_rng(d).normal(size=(2, d))
    assert ledoit_wolf_shrinkage(X) == pytest.approx(0, abs=1e-12)
    covariance = np.cov(X.T, bias=True)
    n, square, trace = 2, np.sum(covariance**2), np.trace(covariance)
    expected = ((n - 2) / n * square + trace**2) / ((n + 2) * (square - trace**2 / d))
    intensity, _ = ledoit_wolf(gram(X, np.ones(2), np.ones(d)), np.ones(2), d, 2.0)
    assert intensity == pytest.approx(min(1, expected), rel=1e-12)


def test_little_weight_on_many_rows_is_shrunk_no_less_than_by_the_formula():
    X, _, _ = make(6)
    products = gram(X, np.full(60, 1.0), np.ones(4))
    light, heavy = (ledoit_wolf(products, np.full(60, w), 4, 60 * w)[0] for w in (1 / 60, 1.0))
    assert light > max(heavy, 4 / 12)


def test_a_class_of_two_rows_keeps_a_width_where_both_are_one_point():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(2, 6)), rng.normal(size=(30, 6)) + 1])
    found = estimate_shrinkage(MemoryRows(X, (np.arange(32) >= 2).astype(np.int8)), "auto", np.ones(6))
    apart = X[1] - X[0]
    v = rng.normal(size=6)
    v -= apart * (apart @ v) / (apart @ apart)
    assert np.ptp(X[:2] @ v) < 1e-12
    assert found.along(v).add_x > 0.2 * found.targets[0] * (v @ v)


def test_difference_of_equal_numbers_is_no_uncertainty():
    """Rows at two places, as many at either: all products are equal, up to rounding."""
    rng = np.random.default_rng(1)
    places = rng.normal(size=(2, 7))
    X = places[np.arange(40) % 2]
    assert ledoit_wolf(gram(X, np.ones(40), np.ones(7)), np.ones(40), 7, 40)[0] == 0


def test_intensity_of_many_rows_is_that_of_all_not_of_the_sample():
    """Correlated features, so that the intensity is small and falls as one over the rows."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40_000, 6)) @ rng.normal(size=(6, 6))
    rows = MemoryRows(X, (np.arange(len(X)) % 2).astype(np.int8))
    found = estimate_shrinkage(rows, "auto", np.ones(6))
    for code in (0, 1):
        assert found.intensities[code] == pytest.approx(ledoit_wolf_shrinkage(X[code::2]), rel=0.2)


def test_sparse_and_dense_rows_have_the_same_products():
    X, _, rng = make(4, n=50, d=8)
    X[rng.random(X.shape) < 0.7] = 0
    scale, weights = rng.uniform(0.5, 2, size=8), rng.uniform(1, 3, size=50)
    np.testing.assert_allclose(gram(sparse.csr_matrix(X), weights, scale), gram(X, weights, scale), atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("method", "eps", "n"), [("exact", None, 60), ("discard", 0.01, 60), ("bin", 0.05, 60), ("moments", 1e-10, 900)]
)
def test_value_and_gradient_are_those_of_the_formula(method, eps, n, weighted):
    X, codes, rng = make(5, n=n, d=3)
    weights = rng.uniform(0.5, 3, size=n) if weighted else None
    shrinkage = Shrinkage((0.3, 0.05), (0.8, 1.4), np.array([0.5, 2.0, 1.0]))
    v = rng.normal(size=3)
    evaluation = Objective(MemoryRows(X, codes, weights), method=method, eps=eps, shrinkage=shrinkage).evaluate(v)
    plain = (shrinkage.intensities, shrinkage.targets, shrinkage.scale)
    twin = naive.FrozenDivergence(
        X, codes, v, method="exact" if method == "moments" else method, eps=eps, weights=weights, shrinkage=plain
    )
    assert evaluation.divergence == pytest.approx(float(twin(v)), rel=1e-9)
    np.testing.assert_allclose(evaluation.gradient, twin.gradient(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("shrinkage", [0.2, "auto"])
def test_more_features_than_rows_give_a_moderate_divergence_and_no_warning(shrinkage):
    rng = np.random.default_rng(6)
    y = np.repeat([0, 1], 15)
    X = rng.normal(size=(30, 60)) + 0.4 * y[:, None]
    with pytest.warns(UserWarning, match=r"A class does not vary"):
        plain = MELC(selection="divergence", random_state=0, n_init=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MELC(selection="divergence", shrinkage=shrinkage, random_state=0, n_init=2).fit(X, y)
    assert model.divergence_ < 1e3 < 1e15 < plain.divergence_ < np.inf
    y_new = np.arange(1000) % 2
    X_new = rng.normal(size=(1000, 60)) + 0.4 * y_new[:, None]
    assert model.score(X_new, y_new) > plain.score(X_new, y_new)


def test_no_shrinkage_and_one_of_zero_are_the_same():
    X, codes, _ = make(7)
    one, two = (
        MELC(selection="divergence", shrinkage=wish, random_state=0, n_init=2).fit(X, codes) for wish in (None, 0.0)
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert estimate_shrinkage(MemoryRows(X, codes), 0.0, np.ones(4)) is None


def test_full_shrinkage_leaves_the_mean_variance_of_the_class():
    X, codes, rng = make(8)
    rows = MemoryRows(X, codes)
    scale = Coordinates(rows).scale
    shrinkage = estimate_shrinkage(rows, 1.0, scale)
    v = rng.normal(size=4)
    expected = [np.mean(np.var(X[codes == c] / scale, axis=0)) * np.sum((scale * v) ** 2) for c in (0, 1)]
    shrunk = shrinkage.along(v)
    np.testing.assert_allclose([shrunk.add_x, shrunk.add_y], expected, rtol=1e-12)
    assert shrunk.keep_x == shrunk.keep_y == 0


def test_features_without_spread_count_for_nothing():
    X, codes, _ = make(9)
    wider = np.column_stack([X, np.full(len(X), 7.0)])
    plain, other = (
        MELC(selection="divergence", shrinkage="auto", random_state=0, n_init=1).fit(data, codes) for data in (X, wider)
    )
    assert other.coef_[0, 4] == 0
    np.testing.assert_allclose(other.coef_[0, :4], plain.coef_[0], atol=1e-6)
    both = [MemoryRows(data, codes) for data in (X, wider)]
    found = [estimate_shrinkage(rows, "auto", Coordinates(rows).scale) for rows in both]
    np.testing.assert_allclose(found[1].intensities, found[0].intensities, rtol=1e-9)
    np.testing.assert_allclose(found[1].targets, found[0].targets, rtol=1e-9)


@pytest.mark.parametrize("wish", [-0.1, 1.5, "often"])
def test_a_senseless_shrinkage_is_refused(wish):
    X, codes, _ = make(10)
    with pytest.raises(ValueError, match=r"shrinkage"):
        MELC(selection="divergence", shrinkage=wish).fit(X, codes)


def test_products_of_many_sparse_rows_need_no_dense_ones():
    X = sparse.random_array((300, 1000), density=0.02, random_state=np.random.default_rng(0), format="csr")
    weights, scale = np.random.default_rng(1).uniform(0.5, 2, size=300), np.full(1000, 0.3)
    np.testing.assert_allclose(gram(X, weights, scale), gram(X.toarray(), weights, scale), atol=1e-13)
