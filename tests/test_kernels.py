"""The compiled functions, each against a line of NumPy."""

import numpy as np
import pytest
from numba import njit
from scipy.special import logsumexp

import naive
from melc import kernels, sums
from melc.kernels.flags import FAST
from melc.kernels.pairs import exp_negative
from melc.sums import Side
from melc.sums.bins import BinLayout, Bins
from melc.sums.exact import nearest_distance, sum_across, sum_within
from melc.sums.moments import sum_bins


@njit(fastmath=set(FAST))
def exponentials(x):
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = exp_negative(x[i])
    return out


def test_exponential_is_accurate_over_its_whole_range():
    x = np.concatenate([-np.logspace(-300, np.log10(708), 200_000), -np.linspace(0, 708, 200_001), [0.0]])
    true = np.exp(x.astype(np.longdouble))
    error = np.abs(exponentials(x) - true) / true
    assert np.all(error <= 2e-14 + 3e-16 * np.abs(x))
    assert exponentials(np.zeros(1))[0] == 1.0


def test_exponential_is_negligible_below_its_range():
    x = -np.array([708.5, 745.0, 1e4, 1e16, 1e300, np.inf])
    assert np.all(exponentials(x) <= 1e-307)
    assert np.all(exponentials(x) >= 0)


def random_side(rng, n):
    return rng.normal(scale=2, size=n), rng.uniform(0.1, 3, size=n)


@pytest.mark.parametrize("reach", [np.inf, 1.5, 0.2, 0.0])
def test_cross_sum_and_its_derivatives(reach):
    rng = np.random.default_rng(1)
    for n, m in [(1, 1), (1, 40), (40, 1), (37, 53)]:
        (x, a), (y, b) = random_side(rng, n), random_side(rng, m)
        y[0] = x[0]  # a tie: kept even by a window of no width
        x, y = np.sort(x), np.sort(y)
        t = x[:, None] - y[None, :]
        terms = np.where(np.abs(t) <= reach, a[:, None] * b * np.exp(-(t**2) / 1.4), 0)
        found, total = sum_across(Side(x, a), Side(y, b), 0.7, 0.0, reach), terms.sum()
        assert found.n_exponentials == np.sum(np.abs(t) <= reach)
        assert np.exp(found.log_value) == pytest.approx(total, rel=1e-13)
        np.testing.assert_allclose(total * found.dx, -np.sum(terms * t, axis=1) / 0.7, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(total * found.dy, np.sum(terms * t, axis=0) / 0.7, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("reach", [np.inf, 1.5, 0.2, 0.0])
def test_self_sum_counts_every_pair_once(reach):
    rng = np.random.default_rng(2)
    for n in (1, 2, 61):
        x, a = random_side(rng, n)
        x = np.sort(x)
        t = x[:, None] - x[None, :]
        terms = np.where(np.abs(t) <= reach, a[:, None] * a * np.exp(-(t**2) / 1.4), 0)
        found, total = sum_within(Side(x, a), 0.7, reach), terms.sum()
        assert found.n_exponentials == (np.sum(np.abs(t) <= reach) - n) / 2  # symmetric halves once, no diagonal
        assert np.exp(found.log_value) == pytest.approx(total, rel=1e-13)
        np.testing.assert_allclose(total * found.dx, -2 * np.sum(terms * t, axis=1) / 0.7, rtol=1e-11, atol=1e-13)


def test_an_infinite_reach_needs_no_order():
    rng = np.random.default_rng(3)
    (x, a), (y, b) = random_side(rng, 50), random_side(rng, 70)
    across, within = sum_across(Side(x, a), Side(y, b), 0.7, 0.0), sum_within(Side(x, a), 0.7)
    assert (across.n_exponentials, within.n_exponentials) == (50 * 70, 50 * 49 / 2)
    assert across.log_value == pytest.approx(float(naive.log_sum(x, y, 0.7, a, b)), rel=1e-13)
    assert within.log_value == pytest.approx(float(naive.log_sum(x, x, 0.7, a, a)), rel=1e-13)


def test_nearest_distance():
    rng = np.random.default_rng(4)
    for n, m in [(1, 1), (3, 100), (100, 3), (80, 80)]:
        x, y = np.sort(rng.normal(size=n)), np.sort(rng.normal(size=m) + rng.choice([0, 10, -10]))
        assert nearest_distance(x, y) == np.min(np.abs(x[:, None] - y))


def inversions(values):
    return int(np.sum(np.triu(values[:, None] > values[None, :], 1)))


def test_insertion_sort_moves_once_for_every_inversion():
    rng = np.random.default_rng(5)
    for values in (np.sort(rng.normal(size=200)), rng.normal(size=200), rng.integers(0, 5, 200) * 1.0):
        work, order = values.copy(), np.arange(200)
        moves = kernels.insertion_sort(work, order, 10**9)
        assert moves == inversions(values)
        np.testing.assert_array_equal(work, np.sort(values))
        np.testing.assert_array_equal(values[order], work)


def test_insertion_sort_gives_up_within_its_budget_and_loses_nothing():
    values = np.arange(1000.0)[::-1].copy()
    work, order = values.copy(), np.arange(1000)
    assert kernels.insertion_sort(work, order, 5000) == -1
    np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    np.testing.assert_array_equal(values[order], work)


@pytest.mark.parametrize("n", [1000, 10_000, 100_000])
def test_moves_are_linear_for_nearly_sorted_input(n):
    """Every point at most a few places from where it belongs: a few moves a point, however many points."""
    rng = np.random.default_rng(6)
    values = np.arange(n) + rng.uniform(0, 4, size=n)
    moves = kernels.insertion_sort(values, np.arange(n), 100 * n)
    assert 0 < moves < 2 * n


def bin_means(x, a, origin, inverse_width):
    weights, means, members = np.empty(len(x)), np.empty(len(x)), np.empty(len(x), dtype=np.int64)
    n_bins = kernels.bin_means(x, a, origin, inverse_width, weights, means, members)
    return weights[:n_bins], means[:n_bins], members


def test_bin_means_conserve_weight_and_mean():
    rng = np.random.default_rng(7)
    x, a = random_side(rng, 500)
    weights, means, members = bin_means(x, a, x.min(), 1 / 0.3)
    keys = np.floor((x - x.min()) / 0.3)
    assert len(weights) == len(np.unique(keys))
    for k in range(len(weights)):
        inside = members == k
        assert len(np.unique(keys[inside])) == 1
        assert weights[k] == pytest.approx(a[inside].sum(), rel=1e-13)
        assert means[k] == pytest.approx(np.average(x[inside], weights=a[inside]), rel=1e-12, abs=1e-14)


def test_bin_means_keep_their_digits_far_from_zero():
    x = 1e9 + np.array([0.0, 1e-4, 2e-4])
    _, means, _ = bin_means(x, np.ones(3), x.min(), 1.0)
    assert means[0] - x[0] == pytest.approx(np.mean(x - x[0]), abs=1e-7)


def test_bin_means_survive_an_outlier_beyond_the_integers():
    x = np.array([0.0, 0.1, 1e300])
    weights, means, members = bin_means(x, np.ones(3), 0.0, 1 / 1e-3)
    assert list(members) == [0, 1, 2]
    np.testing.assert_allclose(means, x)
    np.testing.assert_array_equal(weights, 1)


def test_one_bin_of_infinite_width():
    x = np.array([3.0, 1.0, 8.0])
    weights, means, members = bin_means(x, np.ones(3), 1.0, 1 / np.inf)
    assert weights.tolist() == [3]
    assert means.tolist() == [4]
    assert members.tolist() == [0, 0, 0]


def test_log_density_near_and_far():
    rng = np.random.default_rng(8)
    support, weights = random_side(rng, 300)
    support = np.sort(support)
    t = np.concatenate([rng.normal(scale=3, size=500), [-1e3, 1e3, 1e6, -1e12], support])
    out = np.empty(len(t))
    kernels.log_density(t, support, weights, 0.2, out)
    true = naive.log_density(t, support, 0.04, weights)
    true += np.log(weights.sum()) + np.log(2 * np.pi * 0.04) / 2
    np.testing.assert_allclose(out, true.astype(float), rtol=1e-13, atol=1e-12)


def test_log_density_hears_heavy_points_behind_a_light_one():
    support, weights = np.array([0.0, 2.0, 2.1]), np.array([1e-12, 1.0, 1.0])
    t = np.linspace(-8, 1, 50)
    out = np.empty(50)
    kernels.log_density(t, support, weights, 0.2, out)
    squares = np.subtract.outer(t, support) ** 2 / 0.08
    np.testing.assert_allclose(out, logsumexp(np.log(weights) - squares, axis=1), rtol=1e-13)


@pytest.mark.parametrize("reach", [np.inf, 0.5])
def test_a_sum_in_stretches_is_the_sum(reach, monkeypatch):
    rng = np.random.default_rng(9)
    x, y = (Side(np.sort(rng.normal(size=n)), rng.uniform(0.1, 3, size=n)) for n in (60, 41))
    whole = sums.exact.sum_within(x, 0.3, reach), sums.exact.sum_across(x, y, 0.3, 0.0, reach)
    monkeypatch.setattr(sums.exact, "_PAIRS_AT_ONCE", 100)
    parts = sums.exact.sum_within(x, 0.3, reach), sums.exact.sum_across(x, y, 0.3, 0.0, reach)
    for one, other in zip(whole, parts, strict=True):
        assert other.n_exponentials == one.n_exponentials
        assert other.log_value == pytest.approx(one.log_value, rel=1e-14)
        np.testing.assert_allclose(other.dx, one.dx, rtol=1e-13)
    np.testing.assert_allclose(parts[1].dy, whole[1].dy, rtol=1e-13)


@pytest.mark.parametrize("n_features", [1, 2, 3, 20, 63, 64, 65, 100])
def test_products_with_a_stretch_of_rows(n_features):
    rng = np.random.default_rng(9)
    X, v = rng.normal(size=(50, n_features)), rng.normal(size=n_features)
    for start, stop in [(0, 50), (0, 49), (7, 8), (7, 40), (9, 9)]:
        z = np.full(50, 3.0)
        kernels.project_rows(X, v, start, stop, z)
        n = stop - start
        np.testing.assert_allclose(z[:n], [naive.dot(row, v) for row in X[start:stop]], rtol=1e-12, atol=1e-12)
        assert np.all(z[n:] == 3)
        w, gradient = rng.normal(size=stop - start), np.ones(n_features)
        kernels.pull_rows(X, w, start, stop, gradient)
        true = [1 + naive.dot(column[start:stop], w) for column in X.T]
        np.testing.assert_allclose(gradient, true, rtol=1e-12, atol=1e-12)


FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("n_features", [1, 3, 10])
@pytest.mark.parametrize("form", FORMS)
def test_moments_of_features(form, n_features):
    """Rows beyond the table are left out, and what was there before stays."""
    rng = np.random.default_rng(11)
    n, start = 1_500, 7
    X = FORMS[form](rng.normal(size=(n, n_features)).astype(np.float32).astype(float) + 5)
    centre = rng.normal(size=n_features)
    z, codes = rng.normal(size=n - start), rng.integers(0, 2, n - start).astype(np.int8)
    layout, order = BinLayout(0.0, (0.25, 0.5), (-4, -3), (8, 6)), kernels.ORDER
    for weights, step in ((np.array([1.5]), 0), (rng.uniform(1, 2, n - start), 1)):
        features = np.ones((layout.n_bins, n_features, order - 1))
        kernels.add_features(X, centre, start, *layout.located(z, codes), weights, step, features)
        expected = np.ones_like(features)
        for c in (0, 1):
            mine = codes == c
            true = naive.feature_moments(
                X[start:][mine] - centre, z[mine], np.broadcast_to(weights, z.shape)[mine], layout.widths[c], order
            )
            assert set(true) > {layout.low[c] - 1, layout.low[c], layout.low[c] + layout.count[c]}
            for k in range(layout.count[c]):
                expected[layout.offset[c] + k] += true[layout.low[c] + k]
        np.testing.assert_allclose(features, expected, rtol=1e-12, atol=1e-11)


def bins_of(z, weights, width, order):
    """Bins as a dictionary for the slow twin, and as arrays for the kernel."""
    moments = naive.bin_moments(z, weights, width, order)
    keys = np.array(sorted(moments))
    return moments, keys, np.array([moments[k] for k in keys])


# The centres of two classes in bandwidths, and their spread: bins of which all are occupied, or some, or few.
PLACES = {
    "overlapping": ([0.0], [1.0], 2.0),
    "a gap": ([0.0], [9.0], 1.0),
    "gaps within": ([0.0, 40.0], [20.0, 60.0], 1.0),
    "few of many bins": ([0.0, 300.0, 4000.0], [1.0, 2000.0, 4001.0], 0.2),
    "one bin each": ([0.0], [0.0], 0.01),
    "one bin each, apart": ([0.0], [12.0], 0.01),
}


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("order", [6, 8])
def test_a_sum_over_bins_is_that_of_its_slow_twin(order, within, places):
    rng = np.random.default_rng(12)
    *centres, spread = PLACES[places]
    for width, variance in ((0.5, 1.0), (2.0, 0.7), (2.0**-4, 4.0**-3)):
        points = [np.sqrt(variance) * (rng.choice(each, 30) + spread * rng.normal(size=30)) for each in centres]
        weights = [rng.exponential(size=30) for _ in centres]
        sides = [bins_of(z, w, width, order) for z, w in zip(points, weights, strict=True)]
        other = 0 if within else 1
        (x, *arrays_x), (y, *arrays_y) = sides[0], sides[other]
        given = Bins(*arrays_x, width), Bins(*arrays_y, width), within, variance

        twin = naive.sum_bins(x, y, width, variance, order)
        value, slope, error, exponent, polynomials, count = sum_bins(*given, 1e6)
        assert count % order**2 == 0
        if twin.value <= 0:  # so wide are the bins: nothing can be said
            assert error == np.inf
            continue
        factor = np.exp(np.longdouble(exponent))  # what the kernel took out
        assert value == pytest.approx(float(twin.value * factor), rel=1e-10, abs=0)
        assert slope == pytest.approx(float(twin.slope * factor), rel=1e-10, abs=0)
        assert error == pytest.approx(float(twin.error * factor), rel=1e-6, abs=0)
        for found, expected in zip(polynomials, twin.polynomials, strict=False):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        # The error covers what interpolation does, and what is left out.
        exact = np.exp(naive.log_sum(points[0], points[other], variance, weights[0], weights[other]) + exponent)
        for exponents in (2.0, 12.0, 1e6):
            value, _, error, *_ = sum_bins(*given, exponents)
            assert abs(value - exact) <= error + 1e-13 * exact


@pytest.mark.parametrize("within", [False, True])
def test_a_sum_of_nothing_but_the_smallest_numbers_is_not_certified(within):
    bins = Bins(np.array([0]), np.full((1, 8), 5e-324), 0.5)
    value, _, error, *_ = sum_bins(bins, bins, within, 1.0, 40.0)
    assert (value, error) == (0.0, np.inf)
