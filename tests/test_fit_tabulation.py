"""The curve along a line: every place where the densities cross, intervals that earn their place, and the odds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from melc import MELC
from melc.fit import density, tabulation
from melc.fit.density import Density, estimate_density
from melc.fit.tabulation import DensityRatio, picture_densities, tabulate
from melc.model.curve import Curve


def densities(classes, variances):
    return tuple(estimate_density(p, np.ones(len(p)), V) for p, V in zip(classes, variances, strict=True))


def table_of(classes, variances):
    return tabulate(DensityRatio(densities(classes, variances), tuple(float(len(points)) for points in classes)))


def curve_of(table, log_prior_ratio):
    """The curve of rows that are the support points of the densities."""

    def count(thresholds):
        found = [np.zeros(len(thresholds) + 1) for _ in range(2)]
        for own, d in zip(found, table.formula.densities, strict=True):
            np.add.at(own, np.searchsorted(thresholds, d.support, side="right"), d.weights)
        return np.stack(found, axis=1)

    return tabulation.curve_of(table, log_prior_ratio, count)


def silverman(points, gamma=1.0):
    return (gamma * (4 / (3 * len(points))) ** 0.2) ** 2 * np.var(points)


def fine_grid(classes, variances, n=4000):
    """Through every gap between the outermost rows, densest where the rows are."""
    low, high = (f([f(c) for c in classes]) for f in (min, max))
    near = np.concatenate(classes)[:, None] + math.sqrt(min(variances)) * np.linspace(-4, 4, 41)
    grid = np.unique(np.concatenate([np.linspace(low, high, n), near.ravel()]))
    return grid[(grid >= low) & (grid <= high)]


def coded(table, z):
    return table.codes[np.searchsorted(table.crossings, z, side="right")]


def assert_crossings_are_right(classes, variances):
    """Between neighbouring crossings the sign of the naive f₊ − f₋ is constant and as announced."""
    table = table_of(classes, variances)
    assert np.all(np.diff(table.crossings) > 0)
    assert np.all(np.abs(np.diff(table.codes)) == 1)
    assert len(table.codes) == len(table.crossings) + 1
    grid = fine_grid(classes, variances)
    ratio = naive.log_ratio(grid, classes, variances)
    clear = np.abs(ratio) > 1e-9 * (1 + np.abs(naive.log_density(grid, classes[0], variances[0])))
    wrong = clear & (coded(table, grid) != (ratio > 0))
    assert not wrong.any(), f"{wrong.sum()} wrong, first at {grid[wrong][0]!r}: {table.crossings!r}"
    return table


@st.composite
def lines(draw):
    """Two classes on a line: overlapping, nested, in clusters with wide gaps, tied, of unlike sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = []
    for _ in range(2):
        n_clusters = draw(st.integers(1, 4))
        centres = rng.normal(size=n_clusters) * draw(st.sampled_from([0.0, 1.0, 10.0, 300.0]))
        n = draw(st.integers(2, 40))
        points = centres[rng.integers(0, n_clusters, n)] + rng.normal(size=n)
        classes.append(np.round(points) if draw(st.booleans()) else points)
    variances = [max(silverman(c, draw(st.sampled_from([0.1, 0.5, 1.0, 2.0]))), 1e-6) for c in classes]
    return classes, variances


@pytest.mark.slow
@given(lines())
@settings(max_examples=80)
def test_the_sign_is_constant_between_crossings(line):
    assert_crossings_are_right(*line)


@pytest.mark.slow
def test_naive_crossings_and_crossings_correspond_one_to_one():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        classes = [rng.normal(size=60), np.concatenate([rng.normal(-2, 0.5, 40), rng.normal(2, 0.7, 30)])]
        variances = [silverman(c, 0.5) for c in classes]
        found = table_of(classes, variances).crossings
        rows = np.concatenate(classes)
        expected = naive.thresholds_on_grid(np.linspace(rows.min(), rows.max(), 20_001), classes, variances)
        assert len(expected) == len(found) >= 2
        for (a, b), threshold in zip(expected, found, strict=True):
            assert a - 1e-12 <= threshold <= b + 1e-12


# ------------------------------------------------------------------------------------- intervals earn their place


def expected_thresholds(table, classes, variances):
    """What is left of the crossings by the rule written down naively; None if rounding may decide."""
    gains = naive.interval_gains(classes, variances, table.crossings, len(table.codes))
    own = np.array(
        [
            np.any(np.searchsorted(table.crossings, classes[code], side="right") == j)
            for j, code in enumerate(table.codes)
        ]
    )
    sums = np.add.outer(np.cumsum(gains), -np.append(0, np.cumsum(gains)[:-1]))
    compared = np.sort(gains[own])
    if np.any(np.abs(sums - 1) < 0.05) or np.any(np.diff(compared) < 1e-3):
        return None

    def log_height(t):
        return max(naive.log_density(np.array([t]), points, V)[0] for points, V in zip(classes, variances, strict=True))

    return naive.earned(table.crossings, table.codes.tolist(), gains, own, log_height)


@given(lines())
@settings(max_examples=60)
def test_intervals_that_do_not_earn_their_place_are_joined(line):
    classes, variances = line
    table = table_of(classes, variances)
    curve = curve_of(table, 0.0)
    expected = expected_thresholds(table, classes, variances)
    if expected is not None:
        np.testing.assert_array_equal(curve.thresholds, expected[0])
        if np.any(curve.log_odds):
            np.testing.assert_array_equal(curve.codes, expected[1])
    interval = [np.searchsorted(curve.thresholds, points, side="right") for points in classes]
    if len(curve.thresholds):
        assert all(np.any(interval[code] == j) for j, code in enumerate(curve.codes))


@given(lines(), st.sampled_from([-3.0, -0.4, 0.4, 2.0]))
@settings(max_examples=40)
def test_with_priors_the_curve_is_the_same_except_where_intervals_are_joined(line, log_prior_ratio):
    classes, variances = line
    table = table_of(classes, variances)
    even, moved = curve_of(table, 0.0), curve_of(table, log_prior_ratio)
    decided = moved.plus(log_prior_ratio)
    interval = [np.searchsorted(decided.thresholds, points, side="right") for points in classes]
    if len(decided.thresholds):
        assert all(np.any(interval[code] == j) for j, code in enumerate(decided.codes))
    z = np.concatenate(classes)
    same_side = (even.at(z) + log_prior_ratio > 0) == (moved.at(z) + log_prior_ratio > 0)
    np.testing.assert_allclose(moved.at(z)[same_side], even.at(z)[same_side], atol=0.004)


def test_an_interval_of_one_row_is_joined_and_one_of_twenty_stays():
    rng = np.random.default_rng(0)
    for n, expected in ((1, 1), (20, 3)):
        classes = [np.concatenate([rng.normal(0, 1, 200), rng.normal(9, 0.5, n)]), rng.normal(5, 1, 200)]
        table = table_of(classes, [0.05, 0.1])
        curve = curve_of(table, 0.0)
        assert len(table.crossings) >= 2
        assert len(curve.thresholds) + 1 == 2 + (expected == 3)
        assert (curve.at(np.array([9.0]))[0] < 0) == (expected == 3)


def test_where_an_interval_is_joined_the_odds_are_about_even():
    classes = [np.array([-2.0, -1.5, -1.8, -2.2] * 20), np.array([1.0, 1.2, 1.5, 2.0] * 20 + [-6.0])]
    table = table_of(classes, [0.1, 0.1])
    curve = curve_of(table, 0.0)
    assert table.codes.tolist() == [1, 0, 1]
    assert curve.codes.tolist() == [0, 1]
    assert -0.1 < curve.at(np.array([-6.0]))[0] < 0


def test_rows_of_both_classes_keep_an_interval_however_few_they_are():
    curve = curve_of(table_of([np.array([0.0, 1.0]), np.array([4.0, 5.0])], [0.3, 0.3]), 0.0)
    assert curve.thresholds == pytest.approx([2.5])
    assert curve.codes.tolist() == [0, 1]


# ----------------------------------------------------------------------------------------------------- the curve


@given(lines())
@settings(max_examples=60)
def test_the_curve_is_within_two_thousandths_of_the_formula_where_there_are_rows(line):
    classes, variances = line
    table = table_of(classes, variances)
    curve = curve_of(table, 0.0)
    z = np.concatenate(classes)
    expected = naive.log_odds(z, classes, variances).astype(float)
    kept = (expected > 0) == (curve.at(z) > 0)  # elsewhere an interval was joined
    clear = kept & (np.abs(expected) > 1e-12)
    np.testing.assert_allclose(curve.at(z)[clear], expected[clear], rtol=0, atol=0.002)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 3.0])
def test_the_table_is_close_to_the_formula_everywhere_between_the_rows(gamma):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        classes = [rng.normal(size=80), np.concatenate([rng.standard_t(2, size=60), [40.0]])]
        variances = [silverman(c, gamma) for c in classes]
        table = table_of(classes, variances)
        z = fine_grid(classes, variances, 20_000)
        found = np.interp(z, table.z, table.values)
        np.testing.assert_allclose(found, naive.log_odds(z, classes, variances).astype(float), atol=0.001)
        np.testing.assert_allclose(table.values, naive.log_odds(table.z, classes, variances).astype(float), atol=1e-9)


def test_a_moderate_number_of_knots():
    rng = np.random.default_rng(0)
    classes = [rng.normal(size=2000), rng.normal(1, 2, size=3000)]
    assert 50 < len(curve_of(table_of(classes, [silverman(c) for c in classes]), 0.0).knots) < 400


def test_beyond_the_outermost_rows_the_curve_goes_on_as_it_is_there():
    classes = [np.array([0.0, 0.1, 0.2]), np.array([5.0, 5.1, 5.2])]
    curve = curve_of(table_of(classes, [1.0, 1.1]), 0.0)
    assert len(curve.thresholds) == 1
    far = curve.at(np.array([-1e300, -1e3, 0.0, 5.2, 1e9]))
    assert far[0] == far[1] == far[2] < 0 < far[3] == far[4]


def test_pictures_of_densities_are_close_to_them():
    rng = np.random.default_rng(1)
    classes = [rng.normal(size=80), rng.normal(1, 2, size=70)]
    table = table_of(classes, [0.05, 0.3])
    places, shown = picture_densities(table)
    assert len(places) < 300
    for c in (0, 1):
        true = np.exp(naive.log_density(table.z, classes[c], [0.05, 0.3][c])).astype(float)
        top = np.exp(table.logs).max()
        assert np.abs(np.interp(table.z, places, shown[c]) - true).max() < 0.005 * top


def bisect(a, b, sign_at):
    """The sign change in [a, b] to the last bits of extended precision."""
    a, b = np.longdouble(a), np.longdouble(b)
    left = sign_at(a)
    for _ in range(70):
        middle = (a + b) / 2
        a, b = (middle, b) if sign_at(middle) == left else (a, middle)
    return a


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_thresholds_are_precise(scale):
    """To 1e-10 of the range, whatever the units."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        classes = [rng.normal(size=50) * scale, rng.normal(0.5, 2, size=60) * scale]
        variances = [silverman(c) for c in classes]
        span = np.ptp(np.concatenate(classes))
        thresholds = table_of(classes, variances).crossings
        assert len(thresholds) > 0
        for t in thresholds:
            true = bisect(
                t - 1e-5 * span,
                t + 1e-5 * span,
                lambda x: bool(naive.log_ratio(np.array([x]), classes, variances)[0] > 0),  # noqa: B023
            )
            assert abs(float(true - np.longdouble(t))) <= 1e-10 * span


def test_equal_kernels_have_one_crossing():
    classes = [np.array([0.0, 0.1, 0.2]), np.array([5.0, 5.1, 5.2])]
    assert assert_crossings_are_right(classes, [1.0, 1.0]).crossings == pytest.approx([2.6])


@pytest.mark.slow
def test_clusters_across_wide_gaps():
    """In gaps of thousands of bandwidths both logarithms are parabolas with kinks between."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        centres = [np.cumsum(rng.exponential(rng.choice([3, 300, 30_000]), size=3)) for _ in range(2)]
        classes = [np.concatenate([rng.normal(c, 1, size=8) for c in cs]) for cs in centres]
        assert_crossings_are_right(classes, [rng.uniform(0.01, 1), rng.uniform(0.01, 1)])


def peak_of_ratio(classes, variances):
    """The highest point of the log ratio in [−2, 2], its height and curvature."""
    t = np.linspace(-2, 2, 4001)
    ratio = naive.log_ratio(t, classes, variances)
    peak = int(np.argmax(ratio))
    assert 0 < peak < len(t) - 1
    curvature = -float(ratio[peak - 1] - 2 * ratio[peak] + ratio[peak + 1]) / (t[1] - t[0]) ** 2

    def rising(x):
        return bool(np.diff(naive.log_ratio(np.array([x - 1e-7, x + 1e-7]), classes, variances))[0] > 0)

    top = bisect(t[peak - 1], t[peak + 1], rising)
    return float(top), float(naive.log_ratio(np.array([top]), classes, variances)[0]), curvature


def lifted_crossings(classes, variances, lift):
    """Where the log ratio of the densities plus a constant changes its sign."""
    formula = DensityRatio(densities(classes, variances), (60.0, 70.0))
    grid = density.search_grid(formula.densities)

    def ratio(t):
        return formula.crossing(t) + lift

    return density.find_crossings(ratio, grid, ratio(grid))[0]


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.3, 0.03, 1e-3, 1e-4])
def test_two_crossings_close_together_are_both_found(width):
    """The prior is set so that the ratio rises above zero over ``width`` bandwidths only."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        classes = [
            np.concatenate([rng.normal(-3, 1, 30), rng.normal(3, 1, 30)]),
            np.concatenate([rng.normal(-9, 1, 20), rng.normal(0, 1, 30), rng.normal(9, 1, 20)]),
        ]
        variances = [0.35, 0.4]
        top, height, curvature = peak_of_ratio(classes, variances)
        half = width * math.sqrt(variances[0]) / 2
        found = lifted_crossings(classes, variances, -height + curvature * half**2 / 2)
        near = found[np.abs(found - top) < 10 * half]
        assert len(near) == 2
        assert np.diff(near)[0] == pytest.approx(2 * half, rel=0.1)


def test_identical_classes_have_no_thresholds():
    points = np.random.default_rng(0).normal(size=30)
    table = table_of([points, points], [0.1, 0.1])
    assert len(table.crossings) == 0
    assert len(curve_of(table, 0.0).thresholds) == 0
    np.testing.assert_array_equal(curve_of(table, 0.0).at(points), 0)


@pytest.mark.parametrize("log_prior_ratio", [0.0, 0.3])
def test_a_point_on_a_threshold_belongs_above(log_prior_ratio):
    for first, second in ((-1.0, 1.0), (1.0, -1.0)):
        classes = [first + np.array([0.0, 0.2, 0.4] * 30), second - np.array([0.0, 0.2, 0.4] * 30)]
        curve = curve_of(table_of(classes, [0.1, 0.1]), log_prior_ratio).plus(log_prior_ratio)
        (t,) = curve.thresholds
        below, at, above = curve.at(np.array([np.nextafter(t, -9), t, np.nextafter(t, 9)])) > 0
        assert below != at
        assert at == above == (first < second)


def test_thresholds_of_condensed_densities_are_those_of_the_full_ones():
    rng = np.random.default_rng(5)
    classes = [rng.normal(size=6000), np.concatenate([rng.normal(-2, 0.3, 3000), rng.normal(1, 0.5, 4000)])]
    variances = [silverman(c) for c in classes]
    full = tuple(Density(np.sort(c), np.full(len(c), 1 / len(c)), V) for c, V in zip(classes, variances, strict=True))
    totals = tuple(float(len(c)) for c in classes)
    found, expected = table_of(classes, variances), tabulate(DensityRatio(full, totals))
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_allclose(found.crossings, expected.crossings, atol=1e-7)
    np.testing.assert_allclose(curve_of(found, 0.0).thresholds, curve_of(expected, 0.0).thresholds, rtol=0, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e155])
def test_a_pair_of_crossings_is_found_at_any_scale(scale):
    def ratio(t):
        return 1e10 * ((np.asarray(t) / scale - 0.4) ** 2 - 1e-12)

    [(a, t), (same, b)] = density._split_at_extremum(ratio, 0.0, scale, 1.0)
    assert (a, b, same) == (0.0, scale, t)
    assert t == pytest.approx(0.4 * scale, rel=1e-6)


def test_an_interval_between_the_rows_of_a_large_class_is_joined():
    # The kernels of the second class are so wide that one support point, between its rows, replaces nearly all of them.
    rng = np.random.default_rng(0)
    first = np.concatenate([rng.normal(-0.5, 0.01, 5000), rng.normal(0.5, 0.01, 5000)])
    second = np.concatenate([first + rng.normal(0, 1e-4, 10_000), [1e8, -1e8]])
    X, y = np.concatenate([first, second])[:, None], np.repeat([0, 1], [len(first), len(second)])
    model = MELC(bandwidth="silverman", random_state=0).fit(X, y)
    own = model.lines_[0].counts[np.arange(len(model.interval_classes_)), model.lines_[0].codes]
    assert np.all(own > 0)


def test_thousands_of_spikes_on_a_slope_are_simplified_in_few_rounds(monkeypatch):
    heights = np.outer(np.arange(1.0, 4_001), [0.0, 1.0, 0.0]).ravel()  # the highest spike is the last, again and again
    curve, rounds, interp = Curve(np.arange(12_000.0), heights), [], np.interp
    monkeypatch.setattr(np, "interp", lambda *args: rounds.append(1) or interp(*args))
    found = tabulation._with_few_knots(curve, 0.5)
    assert len(rounds) < 1_024  # otherwise 4,000, each over all points
    assert np.abs(interp(curve.knots, found.knots, found.log_odds) - heights).max() <= 0.001
