"""The decision along a line: every place where the densities cross, and the odds on either side."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from melc.model import crossings
from melc.model.decision import decide
from melc.model.density import Density, estimate_density


def densities(classes, variances):
    return tuple(estimate_density(p, np.ones(len(p)), V) for p, V in zip(classes, variances, strict=True))


def silverman(points, gamma=1.0):
    return (gamma * (4 / (3 * len(points))) ** 0.2) ** 2 * np.var(points)


def fine_grid(classes, variances, n=4000):
    """From far outside the data through every gap, densest where the data are."""
    low, high = (f([f(c) for c in classes]) for f in (min, max))
    span = high - low + math.sqrt(max(variances))
    tails = span * np.logspace(-4, 6, 400)
    near = np.concatenate(classes)[:, None] + math.sqrt(min(variances)) * np.linspace(-4, 4, 41)
    inside = np.linspace(low - span, high + span, n)
    return np.unique(np.concatenate([low - tails, inside, near.ravel(), high + tails]))


def assert_thresholds_are_right(classes, variances, log_prior_ratio=0.0):
    """Between neighbouring thresholds the sign of the naive f₊ − f₋ is constant and as announced."""
    decision = decide(densities(classes, variances), log_prior_ratio)
    assert np.all(np.diff(decision.thresholds) > 0)
    assert np.all(np.abs(np.diff(decision.codes)) == 1)
    assert len(decision.codes) == len(decision.thresholds) + 1
    grid = fine_grid(classes, variances)
    ratio = naive.log_ratio(grid, classes, variances, log_prior_ratio)
    clear = np.abs(ratio) > 1e-9 * (1 + np.abs(naive.log_density(grid, classes[0], variances[0])))
    wrong = clear & (decision.classify(grid) != (ratio > 0))
    assert not wrong.any(), f"{wrong.sum()} wrong, first at {grid[wrong][0]!r}: {decision.thresholds!r}"
    return decision


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
@given(lines(), st.sampled_from([0.0, 0.0, 0.5, -2.0]))
@settings(max_examples=80)
def test_the_sign_is_constant_between_thresholds(line, log_prior_ratio):
    assert_thresholds_are_right(*line, log_prior_ratio)


@pytest.mark.slow
def test_naive_crossings_and_thresholds_correspond_one_to_one():
    rng = np.random.default_rng(0)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        classes = [rng.normal(size=60), np.concatenate([rng.normal(-2, 0.5, 40), rng.normal(2, 0.7, 30)])]
        variances = [silverman(c, 0.5) for c in classes]
        decision = decide(densities(classes, variances))
        low, high = decision.thresholds[0] - 1, decision.thresholds[-1] + 1
        crossings = naive.thresholds_on_grid(np.linspace(low, high, 20_001), classes, variances)
        assert len(crossings) == len(decision.thresholds) >= 2
        for (a, b), threshold in zip(crossings, decision.thresholds, strict=True):
            assert a - 1e-12 <= threshold <= b + 1e-12


# ----------------------------------------------------------------------------------- intervals without a training row


def count(decision, classes):
    """The rows of both classes in each interval, shape (n_intervals, 2)."""
    n = len(decision.codes)
    return np.stack([np.bincount(decision.interval(points), minlength=n) for points in classes], axis=1).astype(float)


def join(classes, variances, log_prior_ratio=0.0):
    decision = decide(densities(classes, variances), log_prior_ratio)
    return decision.with_counts(count(decision, classes))


@given(lines(), st.sampled_from([0.0, 0.0, 0.5, -2.0]))
@settings(max_examples=40)
def test_neighbours_of_an_empty_interval_are_joined(line, log_prior_ratio):
    classes, variances = line
    decision = join(classes, variances, log_prior_ratio)
    np.testing.assert_array_equal(decision.counts, count(decision, classes))
    assert np.all(decision.counts.sum(axis=1) > 0)
    assert np.all(np.abs(np.diff(decision.codes)) == 1)
    rows = np.concatenate(classes)
    span = np.ptp(rows) + 1
    z = np.unique(np.concatenate([rows, np.linspace(rows.min() - 3 * span, rows.max() + 3 * span, 500)]))
    expected = naive.classify_between_rows(z, classes, variances, log_prior_ratio)
    ratio = naive.log_ratio(z, classes, variances, log_prior_ratio)
    clear = (np.abs(ratio) > 1e-9 * (1 + np.abs(naive.log_density(z, classes[0], variances[0])))) & (expected >= 0)
    wrong = clear & (decision.classify(z) != expected)
    assert not wrong.any(), f"at {z[wrong][0]!r}: {decision.thresholds!r}, {decision.counts!r}"


def test_beyond_the_outermost_rows_their_class_goes_on_at_even_odds():
    classes = [np.array([0.0, 0.1, 0.2]), np.array([5.0, 5.1, 5.2])]
    decision = join(classes, [1.0, 1.1])
    assert len(decision.thresholds) == 1
    far = np.array([-1e9, -1e3, 1e9])
    np.testing.assert_array_equal(decision.classify(far), [0, 0, 1])
    assert np.all(decision.log_ratio(far)[:2] == -1e-15)  # the second density is higher there
    assert decision.log_ratio(far)[2] > 1
    np.testing.assert_allclose(decision.log_odds(far), 0, atol=1e-12)
    np.testing.assert_array_equal(decision.log_odds(far) > 0, [False, False, True])
    # A tail that says the opposite of the class counts least where several classes are compared by their tails.
    assert abs(decision.log_odds(far)[0]) == 1e-15 < abs(decision.log_odds(far)[2])


def test_of_several_crossings_between_two_classes_the_highest_remains():
    """The second density is made higher, lower and higher again on the way from the rows of one class to the other."""
    first = Density(np.array([0.0, 4.0]), np.array([0.9, 0.1]), 0.1)
    second = Density(np.array([2.0, 6.0]), np.array([0.2, 0.8]), 0.1)
    decision = decide((first, second))
    np.testing.assert_array_equal(decision.codes, [0, 1, 0, 1])
    heights = first.log(decision.thresholds)
    assert heights[0] > heights[2] > heights[1]
    joined = decision.with_counts(np.array([[9.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 9.0]]))
    np.testing.assert_array_equal(joined.thresholds, decision.thresholds[:1])
    np.testing.assert_array_equal(joined.codes, [0, 1])
    np.testing.assert_array_equal(joined.counts, [[9, 0], [0, 9]])
    middle = decision.with_counts(np.array([[9.0, 0.0], [0.0, 0.0], [1.0, 2.0], [0.0, 9.0]]))
    np.testing.assert_array_equal(middle.thresholds, decision.thresholds[2:])
    np.testing.assert_array_equal(middle.counts, [[10, 2], [0, 9]])
    mirrored = decide(
        (
            Density(6 - second.support[::-1], second.weights[::-1], 0.1),
            Density(np.array([2.0, 6.0]), np.array([0.1, 0.9]), 0.1),
        )
    )
    joined = mirrored.with_counts(np.array([[9.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 9.0]]))
    np.testing.assert_allclose(joined.thresholds, 6 - decision.thresholds[:1])


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
        thresholds = decide(densities(classes, variances)).thresholds
        assert len(thresholds) > 0
        for t in thresholds:
            true = bisect(
                t - 1e-5 * span,
                t + 1e-5 * span,
                lambda x: bool(naive.log_ratio(np.array([x]), classes, variances)[0] > 0),  # noqa: B023
            )
            assert abs(float(true - np.longdouble(t))) <= 1e-10 * span


def test_a_crossing_far_outside_the_data():
    """The wider kernel wins far out, wherever the data lie: a threshold no row is near to."""
    classes = [np.array([0.0, 0.1, 0.2]), np.array([5.0, 5.1, 5.2])]
    decision = assert_thresholds_are_right(classes, [1.0, 1.1])
    assert decision.thresholds[0] < -10
    assert decision.thresholds[-1] > 1
    nearly_equal = assert_thresholds_are_right(classes, [1.0, 1.0 + 1e-6])
    # log f₊ − log f₋ ~ t²·0.5e-6 + 5t: the crossing lies some ten million units to the left.
    assert nearly_equal.thresholds[0] < -1e6
    assert list(nearly_equal.codes) == [1, 0, 1]


def test_equal_kernels_have_no_crossing_far_out():
    classes = [np.array([0.0, 0.1, 0.2]), np.array([5.0, 5.1, 5.2])]
    decision = assert_thresholds_are_right(classes, [1.0, 1.0])
    assert decision.thresholds == pytest.approx([2.6])


@pytest.mark.slow
def test_clusters_across_wide_gaps():
    """In gaps of thousands of bandwidths both logarithms are parabolas with kinks between."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        centres = [np.cumsum(rng.exponential(rng.choice([3, 300, 30_000]), size=3)) for _ in range(2)]
        classes = [np.concatenate([rng.normal(c, 1, size=8) for c in cs]) for cs in centres]
        assert_thresholds_are_right(classes, [rng.uniform(0.01, 1), rng.uniform(0.01, 1)])


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
        decision = decide(densities(classes, variances), -height + curvature * half**2 / 2)
        near = decision.thresholds[np.abs(decision.thresholds - top) < 10 * half]
        assert len(near) == 2
        assert np.diff(near)[0] == pytest.approx(2 * half, rel=0.1)


def test_identical_classes_have_no_thresholds():
    points = np.random.default_rng(0).normal(size=30)
    decision = decide(densities([points, points], [0.1, 0.1]))
    assert len(decision.thresholds) == 0
    assert len(decision.codes) == 1


def test_a_point_on_a_threshold_belongs_above():
    decision = decide(densities([np.array([-1.0, -1.2]), np.array([1.0, 1.2])], [0.1, 0.1]))
    t = decision.thresholds[0]
    assert list(decision.classify(np.array([np.nextafter(t, -9), t, np.nextafter(t, 9)]))) == [0, 1, 1]


def test_the_decision_has_the_sign_of_the_class_and_the_size_of_the_ratio():
    rng = np.random.default_rng(1)
    classes = [rng.normal(size=80), rng.normal(1, 2, size=70)]
    variances = [silverman(c) for c in classes]
    decision = decide(densities(classes, variances))
    z = np.concatenate([rng.normal(scale=5, size=2000), decision.thresholds, [1e6, -1e6]])
    found = decision.log_ratio(z)
    np.testing.assert_array_equal(found > 0, decision.classify(z) == 1)
    np.testing.assert_allclose(found, naive.log_ratio(z, classes, variances).astype(float), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("log_prior_ratio", [0.0, 2.0])
def test_odds_are_those_of_the_densities_near_the_data_and_even_far_away(log_prior_ratio):
    rng = np.random.default_rng(1)
    classes = [rng.normal(size=80), rng.normal(1, 2, size=70)]
    variances = [silverman(c) for c in classes]
    decision = decide(densities(classes, variances), log_prior_ratio)
    near = np.concatenate(classes)
    expected = naive.log_ratio(near, classes, variances).astype(float) + log_prior_ratio
    both = np.abs(expected) < 10  # a background of 1e-12 shows where one of the densities is as faint
    assert both.mean() > 0.9
    np.testing.assert_allclose(decision.log_odds(near)[both], expected[both], atol=1e-6)
    far = np.array([-1.7e308, -1e160, -1e9, 1e4, 1e9, 1e160, 1.7e308])
    odds = decision.log_odds(far)
    assert np.all(np.abs(odds) < 1e-6)
    np.testing.assert_array_equal(odds > 0, decision.classify(far) == 1)
    ratio = decision.log_ratio(far)
    assert np.all(np.isfinite(ratio))
    np.testing.assert_array_equal(ratio > 0, decision.classify(far) == 1)


@pytest.mark.parametrize("log_prior_ratio", [0.0, -1.5])
def test_odds_are_precise_down_to_the_smallest_that_a_probability_shows(log_prior_ratio):
    rng = np.random.default_rng(1)
    classes = [rng.normal(size=80), rng.normal(1, 2, size=70)]
    variances = [silverman(c) for c in classes]
    decision = decide(densities(classes, variances), log_prior_ratio)
    z = np.linspace(-15, 15, 3001)
    expected = naive.log_odds(z, classes, variances, log_prior_ratio).astype(float)
    ratio = naive.log_ratio(z, classes, variances, log_prior_ratio).astype(float)
    least = 1e-15 * (1 + np.log1p(np.abs(ratio)))
    faint = np.abs(expected) < least
    assert 0.05 < faint.mean() < 0.5
    assert np.any(~faint & (np.abs(expected) < 1e-13))
    found = decision.log_odds(z)
    clear = np.abs(ratio) > 1e-3  # where two densities are equal, only the sign is certain
    np.testing.assert_allclose(found[clear & ~faint], expected[clear & ~faint], rtol=1e-9)
    np.testing.assert_allclose(found[faint], np.sign(ratio[faint]) * least[faint], rtol=1e-9)


def test_a_prior_of_almost_nothing_leaves_odds_finite():
    rng = np.random.default_rng(2)
    classes = [rng.normal(size=80), rng.normal(1, 2, size=70)]
    both = densities(classes, [silverman(c) for c in classes])
    z = np.linspace(-5, 5, 11)
    for ratio in (-700.0, 700.0):
        odds = decide(both, ratio).log_odds(z)
        assert np.all(np.isfinite(odds))
        assert np.all(np.sign(odds) == np.sign(ratio))


def test_thresholds_of_condensed_densities_are_those_of_the_full_ones():
    rng = np.random.default_rng(5)
    classes = [rng.normal(size=6000), np.concatenate([rng.normal(-2, 0.3, 3000), rng.normal(1, 0.5, 4000)])]
    variances = [silverman(c) for c in classes]
    full = tuple(Density(np.sort(c), np.full(len(c), 1 / len(c)), V) for c, V in zip(classes, variances, strict=True))
    condensed = densities(classes, variances)
    found, expected = decide(condensed), decide(full)
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_allclose(found.thresholds, expected.thresholds, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e155])
def test_a_pair_of_crossings_is_found_at_any_scale(scale):
    def ratio(t):
        return 1e10 * ((np.asarray(t) / scale - 0.4) ** 2 - 1e-12)

    [(a, t), (same, b)] = crossings._split_at_extremum(ratio, 0.0, scale, 1.0)
    assert (a, b, same) == (0.0, scale, t)
    assert t == pytest.approx(0.4 * scale, rel=1e-6)
