"""Moment bins: layouts that the kernels can trust, points found in the right bins, and bins joined into wider ones."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from melc import kernels
from melc.sums.bins import BinLayout, Bins, merge, power_of_two

ORDERS = (6, kernels.ORDER)  # merging is exact for any number of moments


# -------------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize(
    "widths",
    [(0.3, 0.5), (0.5, 0.3), (0.75, 0.75), (1.0, np.nextafter(1.0, 2.0)), (-0.5, 0.5), (0.0, 0.5), (0.5, np.inf)],
)
def test_widths_that_are_no_powers_of_two_are_refused(widths):
    with pytest.raises(ValueError, match=r"must be powers of two"):
        BinLayout(0.0, widths, (0, 0), (4, 4))


@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
def test_widths_are_at_most_2_to_the_52_apart(scale):
    assert BinLayout(0.0, (scale, scale * 2.0**52), (0, 0), (4, 4)).n_bins == 8
    assert BinLayout(0.0, (scale * 2.0**52, scale), (0, 0), (4, 4)).n_bins == 8
    for widths in ((scale, scale * 2.0**53), (scale * 2.0**53, scale)):
        with pytest.raises(ValueError, match=r"2\^52 apart"):
            BinLayout(0.0, widths, (0, 0), (4, 4))


@given(
    exponents=st.tuples(st.integers(-60, 60), st.integers(-52, 52)),
    seed=st.integers(0, 10_000),
    origin=st.sampled_from([0.0, 0.1, -1e5]),
)
def test_points_lie_where_exact_arithmetic_says(exponents, seed, origin):
    """Whatever the widths of the two classes: the bin of a point, and the point's place there."""
    rng = np.random.default_rng(seed)
    widths = 2.0 ** exponents[0], 2.0 ** (exponents[0] + exponents[1])
    codes = rng.integers(2, size=40).astype(np.int8)
    z = origin + np.array(widths)[codes] * rng.uniform(-6, 6, 40)
    layout = BinLayout(origin, widths, (-4, -3), (8, 5))
    rows, local = np.empty(40, dtype=np.int32), np.empty(40)
    kernels.locate(z, codes, *layout.arguments, rows, local)
    keys, same = layout.locate(z, codes)
    np.testing.assert_array_equal(local, same)
    np.testing.assert_array_equal(layout.located(z, codes)[0], rows)
    for point, c, row, u, key in zip(z, codes, rows, local, keys, strict=True):
        t = (Fraction(point - origin)) / Fraction(widths[c])
        expected = math.floor(t)
        inside = 0 <= expected - layout.low[c] < layout.count[c]
        assert key == expected
        assert row == (layout.offset[c] + expected - layout.low[c] if inside else -1)
        assert u == float(2 * (t - expected) - 1)


def test_a_table_covers_the_ranges_and_a_margin():
    layout = BinLayout.around(1.0, (0.5, 0.25), ((0.0, 4.0), (2.0, 3.0)), lambda c: math.nan)
    for c, (a, b) in enumerate(((0.0, 4.0), (2.0, 3.0))):
        width, margin = layout.widths[c], (b - a) / 2
        assert layout.origin + layout.low[c] * width <= a - margin
        assert layout.origin + (layout.low[c] + layout.count[c]) * width >= b + margin
        assert layout.count[c] <= 2 * (b - a) / width + 2


def test_a_table_that_would_be_too_long_is_cut_around_the_median():
    layout = BinLayout.around(0.0, (1.0, 1.0), ((0.0, 1e9), (-3.0, 3.0)), lambda c: 12.5)
    assert layout.low[0] + layout.count[0] // 2 == 12
    assert layout.count[0] == 1 << 14
    assert layout.count[1] == 13


@given(st.floats(1e-300, 1e300))
def test_the_largest_power_of_two_that_is_not_above(width):
    found = power_of_two(width)
    assert math.frexp(found)[0] == 0.5
    assert found <= width < 2 * found


# -------------------------------------------------------------------------------------------------- merging


def binned(z, weights, width, order):
    """The bins of points, and every point's bin and place."""
    keys, members = np.unique(np.floor(z / width).astype(np.int64), return_inverse=True)
    u = 2 * (z / width - np.floor(z / width)) - 1
    moments = np.zeros((len(keys), order))
    kernels.add_point_moments(u, members, weights, moments)
    return Bins(keys, moments, width), members, u


@given(
    seed=st.integers(0, 10_000),
    level=st.integers(0, 12),
    order=st.sampled_from(ORDERS),
    spread=st.sampled_from([0.1, 3.0, 100.0]),
)
def test_merged_moments_are_those_of_wider_bins(seed, level, order, spread):
    rng = np.random.default_rng(seed)
    z, weights = spread * rng.normal(size=50), rng.exponential(size=50)
    fine, _, _ = binned(z, weights, 0.125, order)
    merged = merge(fine, 0.125 * 2**level).bins
    direct = naive.bin_moments(z, weights, 0.125 * 2**level, order)
    assert merged.keys.tolist() == sorted(direct)
    for key, moments in zip(merged.keys, merged.moments, strict=True):
        np.testing.assert_allclose(moments, direct[key], rtol=0, atol=1e-13 * weights.sum())


@given(seed=st.integers(0, 10_000), level=st.integers(0, 12), order=st.sampled_from(ORDERS))
def test_polynomials_carried_back_have_the_same_values(seed, level, order):
    rng = np.random.default_rng(seed)
    z = 4 * rng.normal(size=40)
    fine, members, u = binned(z, np.ones(40), 0.25, order)
    merged = merge(fine, 0.25 * 2**level)
    wide, wide_members, wide_u = binned(z, np.ones(40), 0.25 * 2**level, order)
    coefficients = rng.normal(size=wide.moments.shape)
    carried = merged.carry_back(coefficients)
    value = np.polynomial.polynomial.polyval
    expected = value(wide_u, coefficients[wide_members].T, tensor=False)
    np.testing.assert_allclose(value(u, carried[members].T, tensor=False), expected, rtol=0, atol=1e-13 * order**2)


def test_bins_are_not_merged_into_narrower_ones():
    fine, _, _ = binned(np.linspace(0, 1, 9), np.ones(9), 0.25, 4)
    assert merge(fine, 0.125).bins is fine
