"""The kernel density of a class, held in a bounded number of support points."""

import math

import numpy as np
import pytest

import naive
from melc.fit.density import Density, estimate_density


def silverman(points, gamma=1.0):
    return (gamma * (4 / (3 * len(points))) ** 0.2) ** 2 * np.var(points)


def test_logarithms_survive_where_densities_do_not():
    density = Density(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.01)
    t = np.array([-1e150, -1e4, 60.0, 1e8])
    found = density.log(t)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found, naive.log_density(t, [0.0, 1.0], 0.01).astype(float), rtol=1e-13)


def heavy(rng, n):
    return {
        "normal": rng.normal(size=n),
        "tails": rng.standard_t(1.5, size=n),
        "clusters": np.concatenate([rng.normal(c, 0.01, n // 4) for c in (-5, 0, 0.2, 40)]),
        "grid": rng.integers(0, 5000, size=n) / 10.0,
        "lognormal": rng.lognormal(sigma=2, size=n),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", heavy(np.random.default_rng(0), 4))
def test_condensed_densities_agree_with_the_full_ones(kind):
    rng = np.random.default_rng(3)
    points = heavy(rng, 20_000)[kind]
    variance = silverman(points)
    condensed = estimate_density(points, np.ones(len(points)), variance)
    assert len(condensed.support) < len(np.unique(points))
    assert condensed.weights.sum() == pytest.approx(1, rel=1e-12)
    assert np.all(condensed.weights > 0)
    assert np.all(np.diff(condensed.support) >= 0)
    s = math.sqrt(variance)
    t = np.concatenate([rng.choice(points, 150), rng.choice(points, 150) + 5 * s * rng.normal(size=150)])
    full = naive.log_density(t, points, variance, rows_at_once=50)
    # Its height is at most 1/√(2πV); relative to the density itself the error is larger in empty stretches.
    error = np.abs(np.exp(condensed.log(t)) - np.exp(full)) * s
    assert error.max() < 1e-10
    assert_tails_agree(condensed, points, s)


def assert_tails_agree(condensed, points, s):
    """Next to the data to rounding. Far out each point counts by the exponential of its place, which no few
    nodes can follow: there the logarithm is off by less than a move of a hundredth bandwidth."""
    for distance in (0.5, 3, 10, 30, 300, 1e4):
        t = np.array([points.min() - distance * s, points.max() + distance * s])
        full = naive.log_density(t, points, s**2, rows_at_once=1).astype(float)
        allowed = 1e-9 if distance <= 3 else 0.01 * distance
        assert np.max(np.abs(condensed.log(t) - full)) <= allowed


def test_up_to_2048_points_nothing_is_condensed():
    points = np.random.default_rng(4).normal(size=2048)
    density = estimate_density(points, np.ones(2048), 0.05)
    np.testing.assert_array_equal(density.support, np.sort(points))
    np.testing.assert_allclose(density.weights, 1 / 2048)


def test_repeated_points_are_one_support_point_with_their_weight():
    density = estimate_density(np.array([1.0, 2.0, 1.0]), np.array([1.0, 2.0, 5.0]), 1.0)
    np.testing.assert_array_equal(density.support, [1, 2])
    np.testing.assert_allclose(density.weights, [0.75, 0.25])
