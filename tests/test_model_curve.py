"""Curves: values between knots, changes of sign, fewer knots."""

import itertools
import tracemalloc

import numpy as np
import pytest

import naive
from melc import kernels
from melc.model.curve import Curve, leading, of_points, simplified


def curve_with(knots, log_odds):
    return Curve(np.array(knots, dtype=float), np.array(log_odds, dtype=float))


def random_curve(seed):
    """Values of all sizes, some zero: next to nothing beside something is where rounding shows."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 8))
    knots = np.unique(rng.normal(size=m) * 10.0 ** rng.integers(-3, 10) + 10.0 ** rng.integers(-2, 10))
    values = rng.normal(size=len(knots)) * 10.0 ** rng.integers(-20, 3, size=len(knots))
    values[rng.random(len(knots)) < 0.2] = 0
    return knots, values


def test_columns_of_a_table_need_no_code_of_their_own():
    curve, table = curve_with([0, 1, 3], [-1, 1, -3]), np.linspace(-1, 4, 20).reshape(10, 2)
    np.testing.assert_array_equal(curve.at(table[:, 0]), curve.at(table[:, 0].copy()))
    compiled = getattr(kernels.evaluate_curve, "signatures", [])  # none if numba is disabled
    assert all(each.layout == "C" for signature in compiled for each in signature)


@pytest.mark.parametrize("seed", range(20))
def test_a_curve_between_and_beyond_its_knots(seed):
    rng = np.random.default_rng(seed)
    knots, values = np.cumsum(rng.uniform(0.1, 2, size=6)), rng.normal(size=6)
    z = np.concatenate([knots, rng.uniform(-3, 12, size=50), [-1e300, 1e300]])
    expected = [naive.between_knots(knots, values, each) for each in z]
    np.testing.assert_allclose(curve_with(knots, values).at(z), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_the_sign_between_knots_is_exact(seed):
    """Rounding near a zero could give a row to the other class than a comparison with the threshold does."""
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=5) * 10.0 ** rng.integers(-3, 9) + 10.0 ** rng.integers(-2, 10))
    values = np.array([-1.0, 0.0, 2.0, 0.0, -3.0]) * 10.0 ** rng.integers(-9, 3)
    curve = Curve(knots, values)
    steps = [knots[[1, 3]]]
    for _ in range(20):
        steps.append(np.nextafter(steps[-1], np.inf))
        steps.insert(0, np.nextafter(steps[0], -np.inf))
    z = np.concatenate([*steps, rng.uniform(knots[0], knots[-1], size=1000)])
    np.testing.assert_array_equal(
        np.sign(curve.at(z)), np.where(z < knots[1], -1, np.where(z > knots[3], -1, 1)) * ~np.isin(z, knots[[1, 3]])
    )
    codes = curve.codes[np.searchsorted(curve.thresholds, z, side="right")]
    np.testing.assert_array_equal(curve.at(z) > 0, codes == 1)


def test_changes_of_sign():
    for seed in range(300):
        knots, values = random_curve(seed)
        knots, values = knots[values != 0], values[values != 0]
        if len(knots) == 0:
            continue
        found, size = Curve(knots, values).thresholds, np.abs(knots).max()
        np.testing.assert_allclose(found, naive.sign_changes(knots, values), rtol=0, atol=1e-12 * size)
        assert np.all((found >= knots[0]) & (found <= knots[-1]))


def test_every_interval_between_thresholds_says_one_thing():
    for seed in range(2_000):
        assert_says_one_thing(Curve(*random_curve(seed)))


def assert_says_one_thing(curve):
    ranges, codes = curve.ranges(), curve.codes
    assert len(ranges) == len(codes) == len(curve.thresholds) + 1
    for (least, most), code in zip(ranges, codes, strict=True):
        assert (least >= 0 and most > 0) if code else (least < 0 and most <= 0) or least == most == 0
    assert all(a != b for a, b in itertools.pairwise(codes))


def test_a_curve_that_says_nothing():
    curve = curve_with([0, 1], [0, 0])
    assert (len(curve.thresholds), curve.codes.tolist(), curve.ranges()) == (0, [0], [(0.0, 0.0)])


def test_a_curve_that_touches_zero_does_not_change():
    assert len(curve_with([0, 1, 2], [1, 0, 2]).thresholds) == 0
    assert curve_with([0, 1, 2], [1, 0, -1]).thresholds.tolist() == [1.0]
    assert curve_with([0, 1, 2], [-1, 0, 1]).thresholds.tolist() == [np.nextafter(1.0, 2)]
    assert curve_with([0, 1, 2, 3], [1, 0, 0, -1]).thresholds.tolist() == [1.0]
    assert curve_with([0, 1, 2, 3], [-1, 0, 0, 1]).thresholds.tolist() == [np.nextafter(2.0, 3)]


@pytest.mark.parametrize("seed", range(10))
def test_knots_at_a_level_change_nothing_but_make_the_sign_exact(seed):
    rng = np.random.default_rng(seed)
    knots, values = np.cumsum(rng.uniform(0.1, 2, size=9)), rng.normal(size=9)
    curve, level = Curve(knots, values), float(np.median(values)) + 0.01
    found = curve.with_knots_at(level)
    z = np.linspace(-1, knots[-1] + 1, 1000)
    np.testing.assert_allclose(found.at(z), curve.at(z), atol=1e-12)
    moved = found.plus(-level)
    assert len(moved.thresholds) == np.count_nonzero(np.diff(values > level)) > 0
    near = np.concatenate([moved.thresholds, np.nextafter(moved.thresholds, -9), np.nextafter(moved.thresholds, 99)])
    codes = moved.codes[np.searchsorted(moved.thresholds, near, side="right")]
    np.testing.assert_array_equal(moved.at(near) > 0, codes == 1)


def test_of_equal_knots_that_of_the_threshold_stays():
    curve = of_points(np.array([1.0, 0.0, 1.0, 1.0, 2.0]), np.array([0.5, -1.0, 0.0, -0.2, 1.0]))
    assert (curve.knots.tolist(), curve.log_odds.tolist()) == ([0, 1, 2], [-1, 0, 1])


def test_a_curve_in_other_units():
    curve = curve_with([0, 1, 3], [-1, 0, 2])
    moved = curve.moved(5.0, 2.0)
    z = np.linspace(-1, 4, 50)
    np.testing.assert_allclose(moved.at((z + 5) / 2), curve.at(z), atol=1e-12)
    assert curve_with([1, 1 + 1e-15, 2], [-1e-9, 0, 1]).moved(1e6, 1.0).log_odds.tolist() == [0, 1]


@pytest.mark.parametrize("tolerance", [1e-9, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(10))
def test_fewer_knots(seed, tolerance):
    rng = np.random.default_rng(seed)
    knots, values = np.cumsum(rng.uniform(0.1, 1, size=60)), np.cumsum(rng.normal(size=60)) / 5
    values[10:20] = np.interp(knots[10:20], knots[[10, 19]], values[[10, 19]])
    indices = simplified(knots, values, tolerance)
    kept, kept_values = knots[indices], values[indices]
    expected = naive.simplified(knots, values, tolerance)
    np.testing.assert_array_equal([kept, kept_values], expected)
    assert kept[[0, -1]].tolist() == knots[[0, -1]].tolist()
    assert np.abs(np.interp(knots, kept, kept_values) - values).max() <= tolerance + 1e-12


def test_two_knots_stay_and_those_required():
    assert simplified(np.array([0.0, 1.0]), np.array([2.0, 2.0]), 0.1).tolist() == [0, 1]
    assert simplified(np.arange(5.0), np.zeros(5), 0.1, np.array([3])).tolist() == [0, 3, 4]


def test_several_curves_are_simplified_together():
    z = np.linspace(0, 1, 200)
    values = np.column_stack([np.sin(9 * z), np.exp(z)])
    kept = simplified(z, values, 0.01)
    assert len(kept) < 60
    for column in values.T:
        assert np.abs(np.interp(z, z[kept], column[kept]) - column).max() <= 0.01


# --------------------------------------------------------------------------------------------------- several classes


@pytest.mark.parametrize("n_curves", [2, 3, 9])
@pytest.mark.parametrize("seed", range(5))
def test_the_highest_of_several_curves(n_curves, seed):
    """Also where values are equal: at some knots, and of two curves everywhere."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 8, n_curves)
    told = [(np.sort(rng.normal(size=size)), np.round(3 * rng.normal(size=size)) / 3) for size in sizes]
    told[-1] = told[0]
    thresholds, numbers = leading([Curve(*each) for each in told])
    expected, highest = naive.leading(told)
    np.testing.assert_allclose(thresholds, expected, rtol=0, atol=1e-12)
    assert numbers.tolist() == highest


def test_the_highest_of_a_thousand_curves():
    """Half a million pairs of curves would take a gigabyte."""
    rng = np.random.default_rng(0)
    knots = np.linspace(-1, 1, 26)
    curves = [Curve(knots, values) for values in rng.normal(size=(1_000, 26))]
    tracemalloc.start()
    thresholds, numbers = leading(curves)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
    assert len(thresholds) > 50
    edges = np.concatenate([[-1.5], thresholds, [1.5]])
    for low, high, number in zip(edges[:-1], edges[1:], numbers, strict=True):
        inside = np.linspace(low, high, 7)[1:-1]
        np.testing.assert_array_equal(np.argmax([curve.at(inside) for curve in curves], axis=0), number)


def test_lines_that_are_nearly_parallel_lead_one_after_the_other():
    """Two of them overtake the first at the same place, up to rounding, but each other at another one."""
    knots = np.array([0.0, 1.0])
    ends = [(1.0, -1.0), (-0.5, 0.5), (-0.5 - 7e-13, 0.5 + 3e-13)]
    thresholds, numbers = leading([Curve(knots, np.array(each)) for each in ends])
    assert numbers.tolist() == [0, 1, 2]
    np.testing.assert_allclose(thresholds, [0.5, 0.7], atol=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_lines_through_one_point_lead_from_there(seed):
    rng = np.random.default_rng(seed)
    knots, slopes, (place, height) = np.array([0.0, 1.0]), np.sort(rng.normal(size=6)), rng.uniform(0.1, 0.9, 2)
    thresholds, numbers = leading([Curve(knots, height + slope * (knots - place)) for slope in slopes])
    assert numbers.tolist() == [0, 5]
    np.testing.assert_allclose(thresholds, [place])
