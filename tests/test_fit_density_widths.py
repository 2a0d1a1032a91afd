"""The kernel widths of the class densities: Silverman's, and those that outliers do not widen."""

from unittest import mock

import numpy as np
import pytest

from melc import MELC
from melc.data.memory import MemoryRows
from melc.fit import density, projection
from melc.objective.base import NO_SHRINKAGE


def two_classes(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 0.4 * rng.normal(size=n) > 0).astype(int)


def naive_robust_variance(z, n):
    """Silverman's variance with the smaller of two standard deviations, from the definition of quantiles."""
    ordered = np.sort(z)
    low, high = np.quantile(ordered, [0.1, 0.9], method="averaged_inverted_cdf")
    sigma = np.std(z)
    bulk = (high - low) / 2.563 if high > low else sigma
    return (4 / (3 * n)) ** 0.4 * np.clip(bulk, 0.01 * sigma, sigma) ** 2


def fitted_with_variances(X, y, weights=None, **settings):
    """A fitted model, and the kernel variances of the densities of both classes along its direction."""
    with mock.patch.object(projection, "tabulate", side_effect=projection.tabulate) as tabulated:
        model = MELC(random_state=0, **settings).fit(X, y, weights)
    (formula,) = tabulated.call_args.args
    return model, [density.variance for density in formula.densities]


@pytest.mark.parametrize("far", [1.0, 20.0, 1e6])
def test_robust_widths_are_those_of_the_definition(far):
    X, y = two_classes()
    X[::20] *= far
    model, variances = fitted_with_variances(X, y)
    z = X @ model.coef_[0]
    expected = [naive_robust_variance(z[y == c], np.sum(y == c)) for c in (0, 1)]
    np.testing.assert_allclose(variances, expected, rtol=1e-9)


def test_outliers_do_not_move_the_threshold():
    X, y = two_classes(1000, seed=5)
    far = X.copy()
    far[::20] *= 20  # on their own side of the hyperplane
    inner = np.arange(len(X)) % 20 != 0
    robust, silverman = (MELC(random_state=0, bandwidth=rule).fit(far, y) for rule in ("robust", "silverman"))
    clean = MELC(random_state=0).fit(X, y).score(X[inner], y[inner])
    assert robust.score(X[inner], y[inner]) > clean - 0.01
    assert silverman.score(X[inner], y[inner]) < clean - 0.01


def test_a_bulk_of_one_point_tells_of_no_width():
    """Nine rows in ten have the same value: the standard deviation is all there is."""
    rng = np.random.default_rng(1)
    z = np.where(rng.random(600) < 0.95, 0.0, rng.normal(size=600))
    X, y = np.column_stack([z]), (rng.random(600) < 0.5).astype(int)
    robust, silverman = (fitted_with_variances(X, y, bandwidth=rule)[1] for rule in ("robust", "silverman"))
    np.testing.assert_array_equal(robust, silverman)


def test_weights_are_copies_in_robust_widths():
    X, y = two_classes(200)
    X[::10] *= 30
    copies = np.random.default_rng(4).integers(1, 4, size=len(y))
    weighted, variances = fitted_with_variances(X, y, copies)
    repeated, same = fitted_with_variances(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(variances, same, rtol=1e-6)
    np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, rtol=1e-6)


def test_a_direction_and_its_opposite_have_the_same_widths():
    for seed in range(10):
        X, y = two_classes(60, seed=seed)
        rows, v = MemoryRows(X, y.astype(np.int8)), np.array([0.8, -0.6, 0.0])
        both = [
            density.density_variances("robust", 1.0, rows.summarise(u).spread, NO_SHRINKAGE, rows, u) for u in (v, -v)
        ]
        np.testing.assert_allclose(*both, rtol=1e-12)
