"""Curves of lines: values between knots, changes of sign, fewer knots."""

import itertools

import numpy as np
import pytest

import naive
from melc.model.line import Line, sign_changes, simplified


def line_with(knots, log_odds):
    knots, log_odds = np.array(knots, dtype=float), np.array(log_odds, dtype=float)
    shown = np.ones((2, len(knots)))
    return Line(np.ones(1), knots, log_odds, 1, 0.0, np.zeros(1), np.zeros((1, 2)), knots, shown)


def random_curve(seed):
    """Values of all sizes, some zero: next to nothing beside something is where rounding shows."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 8))
    knots = np.unique(rng.normal(size=m) * 10.0 ** rng.integers(-3, 10) + 10.0 ** rng.integers(-2, 10))
    values = rng.normal(size=len(knots)) * 10.0 ** rng.integers(-20, 3, size=len(knots))
    values[rng.random(len(knots)) < 0.2] = 0
    return knots, values


@pytest.mark.parametrize("seed", range(20))
def test_a_curve_between_and_beyond_its_knots(seed):
    rng = np.random.default_rng(seed)
    knots, values = np.cumsum(rng.uniform(0.1, 2, size=6)), rng.normal(size=6)
    z = np.concatenate([knots, rng.uniform(-3, 12, size=50), [-1e300, 1e300]])
    expected = [naive.between_knots(knots, values, each) for each in z]
    np.testing.assert_allclose(line_with(knots, values).at(z), expected, rtol=1e-12, atol=1e-12)


def test_changes_of_sign():
    for seed in range(300):
        knots, values = random_curve(seed)
        found, size = sign_changes(knots, values), np.abs(knots).max()
        np.testing.assert_allclose(found, naive.sign_changes(knots, values), rtol=0, atol=1e-12 * size)
        assert np.all((found >= knots[0]) & (found <= knots[-1]))


def test_every_interval_between_thresholds_says_one_thing():
    for seed in range(2_000):
        assert_says_one_thing(line_with(*random_curve(seed)))


def assert_says_one_thing(line):
    adds, favours = line.adds(), line.favours
    assert len(adds) == len(favours) == len(line.thresholds) + 1
    for (least, most), favoured in zip(adds, favours, strict=True):
        assert least > 0 if favoured else most < 0 or least == most == 0
    assert all(a != b for a, b in itertools.pairwise(favours))


@pytest.mark.parametrize(
    ("knots", "values"),
    [
        ([-13.55667604, 3.22279595], [-1.28634233e-04, 7.91258831e-21]),
        ([0.1, 0.30000000000000004], [1.0, -2e-17]),
        ([-9.35e9, -5.18e8, 1.11e10], [9.986, -2.47e-17, 4.08e-05]),
    ],
)
def test_what_is_next_to_nothing_is_no_opinion(knots, values):
    """Rounding made thresholds of it, and one beyond the last knot left nothing to say of the interval."""
    line = line_with(knots, values)
    assert len(line.thresholds) == 0
    assert line.favours.tolist() == [values[0] > 0]
    assert len(line.adds()) == 1


def test_a_curve_that_says_nothing():
    line = line_with([0, 1], [0, 0])
    assert (len(line.thresholds), line.favours.tolist(), line.adds()) == (0, [False], [(0.0, 0.0)])


def test_a_curve_that_touches_zero_does_not_change():
    assert len(sign_changes(np.arange(3.0), np.array([1.0, 0.0, 2.0]))) == 0
    assert line_with([0, 1, 2], [1, 0, -1]).thresholds.tolist() == [1.0]


@pytest.mark.parametrize("tolerance", [1e-9, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(10))
def test_fewer_knots(seed, tolerance):
    rng = np.random.default_rng(seed)
    knots, values = np.cumsum(rng.uniform(0.1, 1, size=60)), np.cumsum(rng.normal(size=60)) / 5
    values[10:20] = np.interp(knots[10:20], knots[[10, 19]], values[[10, 19]])
    kept, kept_values = simplified(knots, values, tolerance)
    expected = naive.simplified(knots, values, tolerance)
    np.testing.assert_array_equal([kept, kept_values], expected)
    assert kept[[0, -1]].tolist() == knots[[0, -1]].tolist()
    assert np.abs(np.interp(knots, kept, kept_values) - values).max() <= tolerance + 1e-12


def test_two_knots_stay():
    knots, values = simplified(np.array([0.0, 1.0]), np.array([2.0, 2.0]))
    assert (knots.tolist(), values.tolist()) == ([0, 1], [2, 2])
