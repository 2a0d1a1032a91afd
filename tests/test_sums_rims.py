"""The rims of a gap: narrow bins that keep every pair, and the polynomials that points there have."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from melc import bounds
from melc.kernels import ORDER
from melc.sums.rims import RimBins, Rims, RimSlopes

GRID = np.linspace(-1, 1, 41)


# ----------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("order", [6, ORDER])
@pytest.mark.parametrize("eps", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("reach", [2.0, 10.0, 1e3, 1e7])
def test_no_pair_within_reach_is_interpolated_worse_than_eps(order, eps, reach):
    variance = 1.7
    sigma = math.sqrt(variance)
    width = bounds.rim_bin_width(order, variance, reach * sigma, eps)
    nodes = naive.chebyshev_nodes(order)
    worst = 0.0
    for offset in {math.floor(reach * sigma / width) - 1, math.floor(reach * sigma / width) // 2, 1}:

        def kernel(apart, offset=offset):  # relative to bins whose middles are compared
            return np.exp(-(2 * offset + apart) * apart * width**2 / (2 * variance))

        at_nodes = kernel(np.subtract.outer(nodes, nodes) / 2)
        found = naive.lagrange(nodes, GRID).T @ at_nodes @ naive.lagrange(nodes, GRID)
        exact = kernel(np.subtract.outer(GRID, GRID) / 2)
        worst = max(worst, float((np.abs(found - exact) / exact).max()))
    assert worst <= eps + 1e-13
    assert worst >= 1e-4 * eps  # so the bins are not idly narrow


@given(st.floats(0, 1e9), st.floats(1e-6, 1e6), st.floats(0.1, 100))
def test_farther_is_what_the_gaussian_needs(distance, variance, exponents):
    more = bounds.farther(distance, variance, exponents)
    assert more * (more + 2 * distance) / (2 * variance) == pytest.approx(exponents, rel=1e-9)


# --------------------------------------------------------------------------------------------- bins and their division

LEVELS = (4, 2)


def some_points(seed, n=400):
    rng = np.random.default_rng(seed)
    z = rng.choice([rng.normal(size=n), np.round(rng.normal(size=n), 1), rng.standard_cauchy(n)])
    return z + 0.3, rng.integers(2, size=n).astype(np.int8), rng.exponential(size=n)


def rims_at(depth=3):
    return Rims(np.ones(1, dtype=bool), 0.0, 1 / 16, LEVELS, depth, False)


def binned_at(rims, z, codes, weights, pieces=1):
    found = RimBins()
    for part in np.array_split(np.arange(len(z)), pieces):
        found.add(rims, z[part], codes[part], weights[part])
    return found


@pytest.mark.parametrize("depth", [0, 1, 3, 100])
@pytest.mark.parametrize("seed", range(5))
def test_bins_are_those_of_their_slow_twin(seed, depth):
    z, codes, weights = some_points(seed)
    found = binned_at(rims_at(depth), z, codes, weights)
    for c in (0, 1):
        mine = codes == c
        expected = naive.rim_bins(z[mine], weights[mine], 1 / 16, LEVELS[c], depth, 8)
        assert list(found.keys[c]) == sorted(expected)
        np.testing.assert_allclose(found.moments[c], [expected[k] for k in found.keys[c]], rtol=1e-12, atol=1e-14)


@given(st.integers(0, 1000), st.integers(1, 50), st.integers(0, 20))
def test_bins_have_the_same_bits_however_points_are_divided_up(seed, pieces, depth):
    points = some_points(seed, n=100)
    whole, parts = (binned_at(rims_at(depth), *points, n) for n in (1, pieces))
    for c in (0, 1):
        assert whole.keys[c].tobytes() == parts.keys[c].tobytes()
        assert whole.moments[c].tobytes() == parts.moments[c].tobytes()


@given(st.integers(0, 1000), st.integers(1, 20), st.integers(0, 20))
def test_bins_of_parts_add_up(seed, pieces, depth):
    rims, points = rims_at(depth), some_points(seed, n=100)
    total = RimBins()
    for part in np.array_split(np.arange(100), pieces):
        total += binned_at(rims, *(each[part] for each in points))
    total.crop(rims)
    whole = binned_at(rims, *points)
    for c in (0, 1):
        np.testing.assert_array_equal(total.keys[c], whole.keys[c])
        np.testing.assert_allclose(total.moments[c], whole.moments[c], rtol=1e-12, atol=1e-14)


def test_numbers_of_bins_far_from_each_other():
    """No table of all numbers between them."""
    z = np.array([0.1, 1e9, 0.1, -1e9])
    found = RimBins()
    found.add(rims_at(1), z, np.zeros(4, dtype=np.int8), np.ones(4))
    assert list(found.keys[0]) == [-16_000_000_000, 1, 16_000_000_000]
    assert list(found.moments[0][:, 0]) == [1, 2, 1]
    slopes = RimSlopes(rims_at(1), (found.keys[0], np.array([-7])), (np.ones((3, 8)), np.ones((1, 8))))
    z, codes = np.array([-1e9 + 1 / 64, 5.0, 2e9, 0.1]), np.array([0, 0, 0, 1], dtype=np.int8)
    assert list(slopes.at(z, codes) != 0) == [True, False, False, False]


def test_slopes_are_polynomials_in_their_bins_and_zero_elsewhere():
    rng = np.random.default_rng(0)
    keys = np.array([-3, 0, 7]), np.array([2, 3])
    polynomials = rng.normal(size=(3, 8)), rng.normal(size=(2, 8))
    z, codes = rng.uniform(-0.5, 0.6, size=300), rng.integers(2, size=300).astype(np.int8)
    found = RimSlopes(rims_at(), keys, polynomials).at(z, codes)
    for value, place, c in zip(found, z, codes, strict=True):
        key = math.floor(16 * place)
        u = 2 * (16 * place - key) - 1
        row = list(keys[c]).index(key) if key in keys[c] else None
        expected = 0.0 if row is None else sum(a * u**j for j, a in enumerate(polynomials[c][row]))
        assert value == pytest.approx(expected, abs=1e-13)
    assert 0 < np.count_nonzero(found) < 300
