"""The features as the search sees them: scales, the span of the rows, and where a search begins."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from melc import MELC
from melc.arrays import unit
from melc.data.memory import MemoryRows
from melc.fit.coordinates import Coordinates, UnitsError, mean_and_deviation


def make(seed=0, n=120, d=5):
    """Overlapping classes of unlike shape."""
    rng = np.random.default_rng(seed)
    codes = (np.arange(n) % 2).astype(np.int8)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 0.6, size=d)
    X[codes == 1] = X[codes == 1] * rng.uniform(0.7, 1.4, size=d) + 0.3 * rng.normal(size=d)
    return MemoryRows(X, codes)


def starts_of(rows, n, seed=0):
    return Coordinates(rows).starting_directions(n, np.random.RandomState(seed))


def discriminant(rows):
    return starts_of(rows, 1)[0]


# --------------------------------------------------------------------------------------------------- starts


def test_starts_depend_on_the_seed_alone():
    one, two, other = (starts_of(make(2), 5, seed) for seed in (3, 3, 4))
    assert len(one) == 5
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one[0], other[0])  # the discriminant
    assert not np.allclose(one[1:], other[1:])
    np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1)


def test_more_starts_begin_with_the_fewer():
    few, many = (starts_of(make(2), n) for n in (3, 6))
    np.testing.assert_array_equal(few, many[:3])


def test_the_discriminant_is_fishers():
    rng = np.random.default_rng(5)
    codes = (np.arange(4000) % 2).astype(np.int8)
    spread = np.array([[2.0, 0.8], [0.8, 0.5]])
    X = rng.multivariate_normal([0, 0], spread, size=4000) + codes[:, None] * [1.0, -0.5]
    fisher = np.linalg.solve(spread, [1.0, -0.5])
    found = discriminant(MemoryRows(X, codes))
    assert abs(found @ fisher) / np.linalg.norm(fisher) > 0.995
    assert found @ [1.0, -0.5] > 0


def test_starts_follow_the_units_of_the_features():
    rows = make(2)
    units = np.array([1e-4, 1.0, 30.0, 1e3, 1e6])
    plain, other = starts_of(rows, 3), starts_of(MemoryRows(rows.X * units, rows.codes), 3)
    for u, v in zip(plain, other, strict=True):
        np.testing.assert_allclose(unit(v * units), u, rtol=1e-7, atol=1e-9)


def test_weights_count_as_copies_in_scale_and_discriminant():
    rows = make(6)
    copies = np.random.default_rng(0).integers(1, 4, size=rows.n_rows)
    weighted = MemoryRows(rows.X, rows.codes, copies * 1.0)
    repeated = MemoryRows(np.repeat(rows.X, copies, axis=0), np.repeat(rows.codes, copies))
    np.testing.assert_allclose(Coordinates(weighted).scale, Coordinates(repeated).scale, rtol=1e-12)
    np.testing.assert_allclose(discriminant(weighted), discriminant(repeated), rtol=1e-9)


# ------------------------------------------------------------------------------------------ the span of the rows


@pytest.mark.slow
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize(("n", "d"), [(30, 6), (20, 40), (40, 700), (1100, 1200)])
def test_starts_lie_in_the_span_of_the_rows(n, d, as_sparse):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) if n > 20 else rng.normal(size=(n, d))
    rows = MemoryRows(sparse.csr_matrix(X) if as_sparse else X, (np.arange(n) % 2).astype(np.int8))
    scale = Coordinates(rows).scale
    _, sizes, basis = np.linalg.svd((X[:20] - X.mean(axis=0)) / scale, full_matrices=False)  # as many as span all
    basis = basis[sizes > 1e-9 * sizes[0]]
    for start in starts_of(rows, 3):
        u = unit(start * scale)
        np.testing.assert_allclose(u, basis.T @ (basis @ u), atol=1e-6)


def test_data_of_full_rank_keep_their_starts():
    u = np.array([1.0, -2.0, 3.0, 0.5, 0.0])
    np.testing.assert_array_equal(Coordinates(make())._span_projection()(u), u)


def test_the_nearest_point_of_the_span_is_taken():
    rows = make(d=4)
    doubled = MemoryRows(np.column_stack([rows.X, rows.X[:, 0]]), rows.codes)
    projected = Coordinates(doubled)._span_projection()(np.array([1.0, 2.0, 3.0, 4.0, 0.0]))
    np.testing.assert_allclose(projected, [0.5, 2, 3, 4, 0.5], atol=1e-9)


# ------------------------------------------------------------------------------------------------------- scales


def test_a_constant_feature_takes_no_part_and_one_of_a_sample_counts_by_its_size():
    X = np.column_stack([np.full(50, 0.1), np.full(50, -1e8), np.arange(50.0), np.zeros(50)])
    rows = MemoryRows(X, (np.arange(50) % 2).astype(np.int8))
    spread = np.std(np.arange(50.0))
    np.testing.assert_allclose(Coordinates(rows).scale, [np.inf, np.inf, spread, np.inf])
    np.testing.assert_allclose(Coordinates(rows, is_all=False).scale, [0.1, 1e8, spread, 1])


@pytest.mark.parametrize("size", [1e-160, 1.0, 1e160])
def test_deviations_do_not_overflow(size):
    X = np.random.default_rng(0).normal(size=(200, 4))
    weights = np.random.default_rng(0).uniform(1, 3, size=len(X))
    mean, deviation = mean_and_deviation(X * size, weights)
    np.testing.assert_allclose(mean / size, np.average(X, axis=0, weights=weights), rtol=1e-12, atol=1e-15)
    expected = np.sqrt(np.average((X - mean / size) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(deviation / size, expected, rtol=1e-12)
    of_sparse = mean_and_deviation(sparse.csr_matrix(X * size), weights)
    np.testing.assert_allclose(of_sparse[1] / size, expected, rtol=1e-9)


def test_features_far_from_zero_are_taken_around_their_mean():
    rows = make()
    assert Coordinates(rows).far_centre is None
    far = MemoryRows(rows.X + np.array([0, 0, 1e5, 0, 0]), rows.codes)
    np.testing.assert_allclose(Coordinates(far).far_centre, far.X.mean(axis=0))


@pytest.mark.parametrize("alike", [0.5, 0.9999])
def test_coordinates_in_which_the_covariance_within_classes_is_one(alike):
    """But for directions with next to no variance, which are stretched no more than ten times as far as the longest."""
    rng = np.random.default_rng(7)
    codes = (np.arange(4000) % 2).astype(np.int8)
    X = rng.multivariate_normal([0, 0], [[1, alike], [alike, 1]], size=4000) * [50, 1e-3]
    coordinates = Coordinates(MemoryRows(X, codes))
    scaled = X / coordinates.scale
    within = sum(np.cov(scaled[codes == c].T, bias=True) for c in (0, 1)) / 2
    np.testing.assert_allclose(coordinates.within_covariance, within, atol=1e-12)
    root, largest = coordinates.white.matrix, np.linalg.eigvalsh(within)[-1]
    if alike == 0.5:
        np.testing.assert_allclose(root.T @ within @ root, np.eye(2), atol=1e-9)
    else:
        assert np.linalg.norm(root, 2) == pytest.approx(10 / np.sqrt(largest))


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e301, 1e307])
def test_units_at_the_ends_of_the_floats_are_refused(scale):
    rng = np.random.default_rng(0)
    X = rng.uniform(-5, 5, size=(40, 2))
    with pytest.raises(ValueError, match=r"Feature \d has a standard deviation of .* Choose other units"):
        MELC(n_init=1).fit(X * scale, np.arange(40) % 2)


def test_units_in_which_weighted_sums_of_squares_overflow_are_refused():
    rng = np.random.default_rng(0)
    X, y, weights = 5e150 * rng.normal(size=(200, 2)), np.arange(200) % 2, np.full(200, 1e5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", "By their weights, 200 rows count as")
        with pytest.raises(ValueError, match=r"Feature \d has a standard deviation of .* Choose other units"):
            MELC(n_init=1).fit(X, y, weights)
        assert np.isfinite(MELC(n_init=1).fit(X / 10, y, weights).decision_function(X)).all()


@pytest.mark.parametrize("name", [None, "dose"])
def test_an_error_about_units_reaches_other_processes(name):
    error = UnitsError(3, 1e200, name)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.feature) == (UnitsError, str(error), 3)


# ------------------------------------------------------------------------------------ of the search on a grid


def coordinates_of(n=2_000, d=80, weighted=True):
    rng = np.random.default_rng(4)
    codes = (rng.random(n) < 0.3).astype(np.int8)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.1 * rng.normal(size=(d, d))) + 0.05 * codes[:, None]
    X[codes == 1, 5] *= 3  # a feature in which the spread differs
    weights = rng.exponential(size=n) if weighted else np.ones(n)
    return X, codes, weights, Coordinates(MemoryRows(X, codes, weights))


def covariance(X, weights):
    return np.cov(X.T, aweights=weights, bias=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_covariances_within_the_classes_and_of_all_rows(weighted):
    X, codes, weights, coordinates = coordinates_of(300, 6, weighted)
    scaled = X / coordinates.scale
    first, second, difference = coordinates.class_covariances
    for c, found in enumerate((first, second)):
        np.testing.assert_allclose(found, covariance(scaled[codes == c], weights[codes == c]), atol=1e-12)
    means = [np.average(scaled[codes == c], axis=0, weights=weights[codes == c]) for c in (0, 1)]
    np.testing.assert_allclose(difference, means[1] - means[0], atol=1e-12)
    np.testing.assert_allclose(coordinates._total_covariance(), covariance(scaled, weights), atol=1e-12)
    again = coordinates.class_covariances
    np.testing.assert_array_equal(again[0], first)


def test_white_coordinates_with_a_ridge():
    _, _, _, coordinates = coordinates_of()
    within, white = coordinates.within_covariance, coordinates.ridge_white
    ridged = within + 0.1 * np.trace(within) / 80 * np.eye(80)
    np.testing.assert_allclose(white.matrix.T @ ridged @ white.matrix, np.eye(80), atol=1e-10)
    np.testing.assert_allclose(white.inverse @ white.matrix, np.eye(80), atol=1e-10)


def test_the_subspace_of_signals_begins_with_the_means_and_holds_the_spread():
    _, _, _, coordinates = coordinates_of()
    basis, white = coordinates.signal_subspace(), coordinates.ridge_white
    assert basis.shape == (80, 25)
    np.testing.assert_allclose(basis.T @ basis, np.eye(25), atol=1e-12)
    means = white.matrix.T @ coordinates.class_covariances[2]
    assert abs(basis[:, 0] @ means) == pytest.approx(np.linalg.norm(means))
    first, second, _ = coordinates.class_covariances
    inside = white.matrix @ basis
    contrast = np.abs(np.linalg.eigvalsh(inside.T @ (second - first) @ inside)).max()
    whole = np.abs(np.linalg.eigvalsh(white.matrix.T @ (second - first) @ white.matrix)).max()
    assert contrast == pytest.approx(whole)


def test_few_rows_know_of_the_means_only_and_equal_means_of_any_direction():
    assert coordinates_of(300, 80)[3].signal_subspace().shape == (80, 1)
    X = np.random.default_rng(0).normal(size=(400, 70))
    alike = Coordinates(MemoryRows(np.vstack([X, X]), np.repeat([0, 1], 400).astype(np.int8)))
    basis = alike.signal_subspace()
    assert np.all(np.isfinite(basis))
    np.testing.assert_allclose(np.linalg.norm(basis, axis=0), 1)
