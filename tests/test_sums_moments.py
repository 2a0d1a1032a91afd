"""Sums over moment bins: every bound attacked, and sums compared with their slow twins and with another library."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from melc import bounds, information_potential, kernels
from melc.sums import SUMS, Exact, Moments, Side
from melc.sums.bins import Bins
from melc.sums.exact import nearest_distance
from melc.sums.moments import sum_bins, sum_bins_across, sum_bins_within

ORDERS = (6, kernels.ORDER)  # the formulas hold for any number of moments
EPS = (1e-3, 1e-5, 1e-7, 1e-9)
GRID = np.linspace(-1, 1, 41)


def binned(z, weights, width, order):
    """Bins of points, by the kernel that looks bins up beforehand."""
    keys, members = np.unique(np.floor(z / width).astype(np.int64), return_inverse=True)
    u = 2 * (z / width - np.floor(z / width)) - 1
    moments = np.zeros((len(keys), order))
    kernels.add_point_moments(u, members, weights, moments)
    return Bins(keys, moments, width), members, u


# --------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("order", [1, 2, 3, *ORDERS, 12])
def test_lebesgue_constant_is_the_largest_sum_of_lagrange_polynomials(order):
    dense = np.abs(naive.lagrange(naive.chebyshev_nodes(order), np.linspace(-1, 1, 20_001))).sum(axis=0)
    assert dense.max() == pytest.approx(bounds.lebesgue_constant(order), rel=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_cramers_inequality(order):
    x = np.linspace(-40, 40, 400_001)
    hermite = np.polynomial.hermite_e.hermeval(x, [0] * order + [1])
    damped = np.abs(hermite) * np.exp(-(x**2) / 4)
    assert damped.max() <= math.sqrt(math.factorial(order))
    assert damped.max() > 0.5 * math.sqrt(math.factorial(order))  # and it is no idle bound


@pytest.mark.parametrize("order", ORDERS)
def test_positive_hermite_dominates_the_hermite_polynomial_and_grows(order):
    x = np.linspace(0, 60, 6001)
    positive = np.polynomial.polynomial.polyval(x, bounds.positive_hermite(order))
    assert np.all(np.abs(np.polynomial.hermite_e.hermeval(x, [0] * order + [1])) <= positive * (1 + 1e-12))
    assert np.all(np.diff(positive) > 0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("width", [0.05, 0.2, 0.5, 1.0, 2.0, 4.0])
def test_no_pair_is_interpolated_worse_than_its_bound(order, width):
    variance = 1.7
    width *= math.sqrt(variance)
    offsets = range(14)
    claimed = bounds.moment_bin_error(order, width, variance, 0, len(offsets))
    for offset in offsets:
        distance = (offset + np.subtract.outer(GRID, GRID) / 2) * width
        exact = np.exp(-(distance**2) / (2 * variance))
        off = np.abs(naive.interpolated_kernel(GRID, GRID, offset, width, variance, order) - exact)
        assert off.max() <= claimed[offset] + 5e-15


@pytest.mark.parametrize("order", ORDERS)
def test_the_bound_of_near_pairs_is_not_idle(order):
    exact = np.exp(-((np.subtract.outer(GRID, GRID) / 4) ** 2) / 2)
    off = np.abs(naive.interpolated_kernel(GRID, GRID, 0, 0.5, 1.0, order) - exact).max()
    assert bounds.moment_bin_error(order, 0.5, 1.0)[0] < 4 * off


def test_the_bound_of_far_pairs_is_relative_to_the_kernel():
    """Far apart the bound falls as fast as the kernel itself, up to a polynomial; Cramér's alone would not."""
    order, width, least = 8, 0.1, 400
    near = (least - 1) * width
    claimed = bounds.moment_bin_error(order, width, 1.0, least, 1)[0]
    cramer = 2 * (1 + bounds.lebesgue_constant(order)) * (width / 4) ** order / math.sqrt(math.factorial(order))
    assert claimed < 1e-3  # the nearest pair counts one
    assert cramer * math.exp(near**2 / 4) > 1e100


@pytest.mark.parametrize("offset", [5, 40])
def test_far_bounds_hold_with_the_common_exponent_taken_out(offset):
    order, width = 8, 0.25
    near = (offset - 1) * width
    nodes, u = naive.chebyshev_nodes(order), GRID
    scaled = lambda t: np.exp((near - t) * (near + t) / 2)  # noqa: E731
    at_nodes = scaled((offset + np.subtract.outer(nodes, nodes) / 2) * width)
    interpolated = naive.lagrange(nodes, u).T @ at_nodes @ naive.lagrange(nodes, u)
    off = np.abs(interpolated - scaled((offset + np.subtract.outer(u, u) / 2) * width)).max()
    claimed = bounds.moment_bin_error(order, width, 1.0, offset, 1)[0]
    assert 1e-14 < off <= claimed


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("eps", EPS)
def test_width_spends_a_quarter_of_eps_on_the_nearest_pairs(order, eps):
    width = bounds.moment_bin_width(order, 2.5, eps)
    factor = 2 * (1 + bounds.lebesgue_constant(order)) / math.sqrt(math.factorial(order))
    assert 4 * factor * (width / (4 * math.sqrt(2.5))) ** order == pytest.approx(eps, rel=1e-9)
    assert bounds.moment_bin_width(order, 2.5e12, eps) == pytest.approx(1e6 * width)


# ----------------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize("order", ORDERS)
def test_sums_are_those_of_the_interpolated_kernel(order):
    """Wide bins, so that the interpolated kernel is far from the kernel: it is this one that must be summed."""
    rng = np.random.default_rng(order)
    x, y, a, b = rng.normal(size=12), rng.normal(size=9) + 1, rng.exponential(size=12), rng.exponential(size=9)
    width, variance = 2.0, 0.5
    bins_x, bins_y = binned(x, a, width, order)[0], binned(y, b, width, order)[0]
    charges = naive.moment_sum(x, a, y, b, width, variance, order)
    least = int(nearest_distance(bins_x.keys, bins_y.keys))
    assert least <= 1  # no exponent is taken out
    value, _, error, log_factor, *_ = sum_bins(bins_x, bins_y, False, variance, 40.0)
    assert log_factor == 0
    assert value == pytest.approx(charges, rel=1e-12)
    exact = math.exp(naive.log_sum(x, y, variance, a, b))
    assert abs(charges - exact) > 1e-6 * exact
    assert abs(charges - exact) <= error


@given(
    seed=st.integers(0, 10_000),
    order=st.sampled_from(ORDERS),
    bandwidths=st.sampled_from([0.05, 0.25, 0.5, 1.0]),
    shift=st.sampled_from([0.0, 1.0, 5.0, 30.0]),
    weighted=st.booleans(),
)
def test_certificate_of_a_sum_covers_its_error(seed, order, bandwidths, shift, weighted):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 60, 2)
    x, y = rng.normal(size=n), rng.standard_t(2, size=m) + shift
    a, b = (10 ** rng.uniform(-8, 0, k) if weighted else np.ones(k) for k in (n, m))
    variance = 10 ** rng.uniform(-3, 1)
    width = bandwidths * math.sqrt(variance)
    bins_x, bins_y = binned(x, a, width, order)[0], binned(y, b, width, order)[0]
    for result, twin in (
        (sum_bins_within(bins_x, variance, 1e-9), naive.log_sum(x, x, variance, a, a)),
        (sum_bins_across(bins_x, bins_y, variance, 1e-9), naive.log_sum(x, y, variance, a, b)),
    ):
        assert math.isinf(result.error) or abs(result.log_value - twin) <= result.error + 1e-13 * max(1, abs(twin))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("eps", [1e-2, 1e-6])
def test_polynomials_and_slope_are_derivatives_of_the_sum_as_computed(order, eps):
    """Points kept away from the edges of bins, so that differences see one layout."""
    rng = np.random.default_rng(3)
    width, variance, h = 1.0, 0.4, 1e-6
    x = rng.integers(-4, 4, 14) + rng.uniform(0.01, 0.99, 14)
    y = rng.integers(-2, 6, 11) + rng.uniform(0.01, 0.99, 11)
    a, b = rng.exponential(size=14), rng.exponential(size=11)

    def across(x, y, variance):
        (bins_x, in_x, u), (bins_y, in_y, t) = binned(x, a, width, order), binned(y, b, width, order)
        return sum_bins_across(bins_x, bins_y, variance, eps), (in_x, u, in_y, t)

    def within(x, variance):
        bins, members, u = binned(x, a, width, order)
        return sum_bins_within(bins, variance, eps), (members, u)

    value = np.polynomial.polynomial.polyval
    result, (in_x, u, in_y, t) = across(x, y, variance)
    dx = a * value(u, result.polynomials[0][in_x].T, tensor=False)
    dy = b * value(t, result.polynomials[1][in_y].T, tensor=False)
    result_within, (members, u) = within(x, variance)
    own = a * value(u, result_within.polynomials[0][members].T, tensor=False)
    for i, e in enumerate(np.eye(len(x))):
        difference = across(x + h * e, y, variance)[0].log_value - across(x - h * e, y, variance)[0].log_value
        assert difference / (2 * h) == pytest.approx(dx[i], abs=2e-8)
        difference = within(x + h * e, variance)[0].log_value - within(x - h * e, variance)[0].log_value
        assert difference / (2 * h) == pytest.approx(own[i], abs=2e-8)
    for j, e in enumerate(np.eye(len(y))):
        difference = across(x, y + h * e, variance)[0].log_value - across(x, y - h * e, variance)[0].log_value
        assert difference / (2 * h) == pytest.approx(dy[j], abs=2e-8)
    difference = across(x, y, variance + h)[0].log_value - across(x, y, variance - h)[0].log_value
    assert difference / (2 * h) == pytest.approx(result.slope, abs=2e-8)
    difference = within(x, variance + h)[0].log_value - within(x, variance - h)[0].log_value
    assert difference / (2 * h) == pytest.approx(result_within.slope, abs=2e-8)


def test_a_light_pair_between_heavy_classes_is_not_lost():
    """Nearly all mass is far from the other class; what is left out is measured against the light pair."""
    x, a = np.array([-20.0, -20.1, 0.0]), np.array([1.0, 1.0, 1e-12])
    y, b = np.array([0.3, 20.0, 21.0]), np.array([1e-12, 1.0, 1.0])
    bins = [binned(z, w, 0.25, 8)[0] for z, w in ((x, a), (y, b))]
    for eps in EPS:
        result = sum_bins_across(*bins, 1.0, eps)
        assert result.error <= 1e-6
        assert abs(result.log_value - naive.log_sum(x, y, 1.0, a, b)) <= result.error + 1e-13


# ---------------------------------------------------------------------------------- behind the common interface


@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("shift", [0.0, 3.0, 60.0])
def test_method_of_points_agrees_with_all_pairs(eps, shift):
    rng = np.random.default_rng(5)
    x, y = Side(rng.normal(size=400), np.ones(400)), Side(rng.normal(size=300) + shift, rng.exponential(size=300))
    exact, moments = Exact(), Moments(eps)
    for found, expected in (
        (moments.within(x, 0.05), exact.within(x, 0.05)),
        (moments.across(x, y, 0.05), exact.across(x, y, 0.05)),
    ):
        assert abs(found.log_value - expected.log_value) <= eps + 1e-13 * abs(expected.log_value)
        np.testing.assert_allclose(found.dx, expected.dx, rtol=0, atol=10 * eps)
        if expected.dy is not None:
            np.testing.assert_allclose(found.dy, expected.dy, rtol=0, atol=10 * eps)


def test_information_potential_is_relative_to_itself():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=2000), rng.normal(size=1500) + 1
    for scale in (1e-6, 1.0, 1e6):
        exact = information_potential(scale * x, scale * y, 0.01 * scale**2)
        found = information_potential(scale * x, scale * y, 0.01 * scale**2, method="moments", eps=1e-9)
        assert found == pytest.approx(exact, rel=1.1e-9)


# ----------------------------------------------------------------------------------------------- another library


def fourier_log_sum(x, y, variance):
    """log Σ exp(−(x_i − y_j)²/2V) by the trapezoidal rule in frequency, its sums by finufft."""
    finufft = pytest.importorskip("finufft", reason="finufft is not installed: pip install 'melc[bench]'")
    s = math.sqrt(variance)
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    step = 2 * math.pi / (high - low + 9 * s)  # periods do not touch
    n_modes = 2 * math.ceil(9 / (s * step)) + 1  # beyond, the transform is below 1e-17
    frequency = step * (np.arange(n_modes) - n_modes // 2)
    transforms = [
        finufft.nufft1d1((z - (low + high) / 2) * step, np.ones(len(z), dtype=complex), n_modes, eps=1e-14, isign=-1)
        for z in (x, y)
    ]
    damping = step * s / math.sqrt(2 * math.pi) * np.exp(-variance * frequency**2 / 2)
    return math.log(np.sum(damping * (transforms[0] * transforms[1].conj()).real))


@pytest.mark.slow
@pytest.mark.parametrize("order", [6, 8])
def test_sums_agree_with_nonuniform_fourier_transforms(order):
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=60_000), np.concatenate([rng.normal(size=20_000), 0.3 * rng.normal(size=20_000) + 2])
    variance = 0.03
    width = {6: 0.015, 8: 0.03}[order]
    bins = [binned(z, np.ones(len(z)), width, order)[0] for z in (x, y)]
    assert sum_bins_within(bins[0], variance, 1e-13).log_value == pytest.approx(
        fourier_log_sum(x, x, variance), rel=1e-12
    )
    assert sum_bins_across(*bins, variance, 1e-13).log_value == pytest.approx(
        fourier_log_sum(x, y, variance), rel=1e-12
    )


def test_points_that_bins_cannot_tell_apart_are_summed_pair_by_pair():
    """So far from zero that a bin is lost in the rounding of its points."""
    method, exact = SUMS["moments"](1e-6), SUMS["exact"](1e-6)
    far, near = (np.array([0.0, 1.0, 3.0]) + offset for offset in (2.0**45, 2.0**45 + 1))
    sides = [[each.prepare(points, np.ones(3), 0) for points in (far, near)] for each in (method, exact)]
    assert method.within(sides[0][0], 1.0).log_value == exact.within(sides[1][0], 1.0).log_value
    assert method.across(*sides[0], 1.0).log_value == exact.across(*sides[1], 1.0).log_value


@pytest.mark.parametrize("shift", np.arange(5, 7, 0.05))
def test_a_sum_across_keeps_the_part_of_eps_that_the_divergence_can_use(shift):
    """Crowds apart and one light pair between them: what is usually far enough is not."""
    eps, weights = 1e-6, np.append(np.full(40, 1e4), 1.0)
    crowd = np.linspace(-1, 1, 40)
    x, y = (binned(np.append(crowd + place, shift / 2), weights, 0.125, 8)[0] for place in (0, shift))
    assert sum_bins_across(x, y, 1.0, eps).error <= eps / 4
