"""The divergence by moment bins: its error never beyond eps, its certificate never wrong, whatever the data."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification

import naive
from melc import MELC
from melc.data.memory import MemoryRows
from melc.data.points import Binned, Points
from melc.data.sample import spread_samples
from melc.fit.solvers import maximise
from melc.objective import Objective
from melc.objective.base import NO_SHRINKAGE
from melc.objective.moments import MomentsDivergence
from melc.objective.penalised import PairwiseDivergence
from melc.sums import Exact, bins

EPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
SCALES = (1e-6, 1.0, 1e6)
ROUNDING = 1e-13


# ----------------------------------------------------------------------------------- points of many characters


def _codes(rng, n):
    codes = (rng.random(n) < rng.choice([0.1, 0.5, 0.9])).astype(np.int8)
    codes[:2], codes[2:4] = 0, 1
    return codes


def _normal(rng, n, codes):
    return rng.normal(size=n) + codes * rng.choice([0, 0.5, 2, 5, 9]), None


def _cauchy(rng, n, codes):
    return rng.standard_cauchy(n) + codes, None


def _log_normal(rng, n, codes):
    return np.exp(2 * rng.normal(size=n) + codes), None


def _tied(rng, n, codes):
    return np.round(2 * rng.normal(size=n) + codes) / rng.choice([1, 3]), None


def _clustered(rng, n, codes):
    centres = 50 * rng.normal(size=8)
    return centres[rng.integers(8, size=n)] + rng.choice([1e-3, 1e-1]) * rng.normal(size=n), None


def _outliers(rng, n, codes):
    z = rng.normal(size=n) + codes
    z[rng.integers(n, size=3)] += rng.choice([-1, 1], 3) * 10 ** rng.uniform(2, 6, 3)
    return z, None


def _light_outliers(rng, n, codes):
    """So light that they do not widen the kernels: they do stand a million bandwidths away."""
    z, weights = rng.normal(size=n) + codes, np.ones(n)
    chosen = rng.integers(n, size=3)
    z[chosen] += rng.choice([-1, 1], 3) * 10 ** rng.uniform(3, 6, 3)
    weights[chosen] = 1e-14
    return z, weights


def _unequal(rng, n, codes):
    return rng.normal(size=n) * np.where(codes, 10 ** rng.uniform(-5, 0), 1) + codes * rng.choice([0, 1, 3]), None


def _weighted(rng, n, codes):
    return rng.normal(size=n) + codes, rng.exponential(size=n)


def _tiny_weights(rng, n, codes):
    return rng.normal(size=n) + codes * rng.choice([1, 10, 40]), 10 ** rng.uniform(-14, 0, n)


def _separated(rng, n, codes):
    return rng.normal(size=n) + 60 * codes, None


def _light_at_the_gap(rng, n, codes):
    """The pair across the gap that decides the sum is the lightest of all."""
    z, weights = rng.normal(size=n) + 60 * codes, np.ones(n)
    weights[np.argmax(np.where(codes, -np.inf, z))] = 10 ** rng.uniform(-14, -6)
    return z, weights


def _far_apart(rng, n, codes):
    """By up to ten thousand bandwidths."""
    return rng.normal(size=n) + codes * 10 ** rng.uniform(1, 3), None


def _sharp_edges(rng, n, codes):
    """As many points next to the gap as anywhere."""
    return rng.random(n) + codes * rng.choice([1.1, 2, 5, 100]), None


def _crowds_apart(rng, n, codes):
    """Few places with many points each."""
    return rng.integers(3, size=n) + codes * rng.choice([4, 20, 1000]), None


def _clusters_apart(rng, n, codes):
    """Clusters of the two classes in turn, and so several gaps."""
    return 30 * (2 * rng.integers(3, size=n) + codes) + rng.normal(size=n), None


def _stray(rng, n, codes):
    """A few points in the middle of the gap, or across it."""
    z = rng.normal(size=n) + 60 * codes
    z[rng.integers(n, size=3)] -= rng.choice([20, 30, 65])
    return z, None


def _needle(rng, n, codes):
    """A class that hardly varies in a gap, or a tail, of the other."""
    other = rng.choice([-1, 1], n) * (rng.choice([0.01, 1, 10]) + rng.exponential(size=n))
    return np.where(codes == 1, 10 ** rng.uniform(-6, -2) * rng.normal(size=n), other), None


CHARACTERS = {
    f.__name__.strip("_"): f
    for f in (
        *(_normal, _cauchy, _log_normal, _tied, _clustered, _outliers, _light_outliers),
        *(_unequal, _weighted, _tiny_weights, _separated, _light_at_the_gap),
        *(_far_apart, _sharp_edges, _crowds_apart, _clusters_apart, _stray, _needle),
    )
}


def _draw(character, seed, n):
    rng = np.random.default_rng([seed, list(CHARACTERS).index(character)])
    codes = _codes(rng, n)
    z, weights = CHARACTERS[character](rng, n, codes)
    return z, codes, weights, float(rng.choice([0.3, 1.0, 3.0]))


def _evaluate(z, codes, weights, gamma, eps):
    return MomentsDivergence(MemoryRows(z[:, None].copy(), codes, weights), gamma, eps).evaluate(np.ones(1))


def _rounding(z, codes, weights, gamma, value):
    """What rounding may do: 1e-13 of D, and what half a unit in the last place of the points does to them in
    bandwidths. The certificate leaves it out."""
    bandwidth = math.sqrt(min(naive.kernel_variances(z, codes, gamma, weights)))
    return max(1, abs(value)) * (ROUNDING + 4e-16 * np.ptp(z) / bandwidth)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("character", CHARACTERS)
def test_error_is_within_the_certificate_and_the_certificate_within_eps(character, scale):
    """54 of these tests with 4 draws and 7 eps each: 1512 cases, none of them beyond. Scales share no draws."""
    for seed in range(SCALES.index(scale), 12, len(SCALES)):
        z, codes, weights, gamma = _draw(character, seed, n=(20, 60, 150)[seed // len(SCALES) % 3])
        z = scale * z
        exact = naive.divergence(z[:, None], codes, np.ones(1), gamma, weights)
        rounding = _rounding(z, codes, weights, gamma, exact)
        for eps in EPS:
            found = _evaluate(z, codes, weights, gamma, eps)
            error = abs(found.divergence - exact)
            assert error <= eps + ROUNDING * max(1, abs(exact)), (seed, eps)
            assert error <= found.error + rounding, (seed, eps)
            assert found.error <= eps, (seed, eps)


def test_first_layout_seldom_fails_on_ordinary_data(monkeypatch):
    """Refinement is for hard cases; where it became the rule, every evaluation would pay twice."""
    binned = []
    monkeypatch.setattr(MemoryRows, "bin", lambda *a, original=MemoryRows.bin: binned.append(1) or original(*a))
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 2000).astype(np.int8)
    for _ in range(50):
        z = rng.normal(size=4000) + codes * rng.uniform(0, 3)
        _evaluate(z, codes, None, 1.0, 1e-6)
    assert 50 <= len(binned) <= 52


# -------------------------------------------------------------------------------------------------- gradients


def _rows_of_character(character, seed, n=300, n_features=4):
    """Features of one character, each with a shift of its own."""
    rng = np.random.default_rng(seed)
    codes = _codes(rng, n)
    drawn = [CHARACTERS[character](rng, n, codes) for _ in range(n_features)]
    return np.column_stack([z for z, _ in drawn]), codes, drawn[0][1], rng.normal(size=n_features)


@pytest.mark.parametrize("character", CHARACTERS)
def test_gradient_is_that_of_the_exact_divergence_to_the_order_of_eps(character):
    for seed in range(4):
        X, codes, weights, v = _rows_of_character(character, seed)
        exact = PairwiseDivergence(MemoryRows(X, codes, weights), 1.0, Exact()).evaluate(v)
        bandwidth = math.sqrt(min(naive.kernel_variances(X @ v, codes, 1.0, weights)))
        reach = np.abs(X - X.mean(axis=0)).max() / bandwidth
        rounding = 1e-13 * max(1, abs(exact.divergence)) * reach**2
        for eps in (1e-3, 1e-6, 1e-9):
            found = MomentsDivergence(MemoryRows(X, codes, weights), 1.0, eps).evaluate(v)
            np.testing.assert_allclose(found.gradient, exact.gradient, rtol=1e-9, atol=eps * reach + rounding)
            assert abs(v @ found.gradient) <= np.linalg.norm(v) * (eps * reach + rounding)


@pytest.mark.parametrize("offset", [1e2, 1e5])
def test_features_far_from_zero_do_not_multiply_the_error(offset):
    X, codes, _, v = _rows_of_character("normal", 9, n=1000)
    near, far = (MomentsDivergence(MemoryRows(X + shift, codes), 1.0, 1e-3).evaluate(v) for shift in (0, offset))
    exact = PairwiseDivergence(MemoryRows(X, codes), 1.0, Exact()).evaluate(v)
    error = np.abs(near.gradient - exact.gradient).max()
    assert np.abs(far.gradient - exact.gradient).max() <= 3 * error + 1e-15 * offset**2


class _WithFeatures(MemoryRows):
    """Rows that bin their features as well, as those of Dask may."""

    def bin(self, v, layout):
        return super().bin(v, layout, with_features=True)


KINDS = [MemoryRows, _WithFeatures]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("character", ["normal", "weighted", "separated", "outliers"])
def test_gradient_is_exactly_that_of_the_value_within_a_layout(character, kind, monkeypatch):
    """Bins so wide that the computed function is not the divergence: the gradient must be its own."""
    X, codes, weights, v = _rows_of_character(character, 1, n=200, n_features=3)
    divergence = MomentsDivergence(kind(X, codes, weights), 1.0, 0.3)
    layout = divergence._guess(v, NO_SHRINKAGE)
    monkeypatch.setattr(divergence, "_guess", lambda v, shrunk: replace(layout, origin=float(v @ divergence._centre)))
    found = divergence.evaluate(v)
    h = 1e-6
    differences = [
        (divergence.evaluate(v + h * e).divergence - divergence.evaluate(v - h * e).divergence) / (2 * h)
        for e in np.eye(3)
    ]
    size = max(1, np.abs(found.gradient).max())
    np.testing.assert_allclose(found.gradient, differences, rtol=0, atol=3e-7 * size)
    if character in ("normal", "weighted"):
        exact = PairwiseDivergence(MemoryRows(X, codes, weights), 1.0, Exact()).evaluate(v).gradient
        assert np.abs(found.gradient - exact).max() > 1e-5 * size  # so the test above could fail


@pytest.mark.parametrize("character", CHARACTERS)
def test_binned_features_give_the_gradient_of_a_second_pass(character, monkeypatch):
    """They spare that pass, unless the weights of points at a gap are not those of their bins."""
    passes = _recorded(monkeypatch, "bin_at_rims", "pull_back_binned")
    for seed, centre in ((0, None), (1, np.array([1.0, -2.0, 0.5, 3.0]))):
        X, codes, weights, v = _rows_of_character(character, seed, n=3000)
        both = [kind(X, codes, weights, centre=centre) for kind in KINDS]
        twice, once = (MomentsDivergence(rows, 1.0, 1e-6).evaluate(v) for rows in both)
        assert once.divergence == twice.divergence
        size = max(np.abs(twice.gradient).max(), 1.0)
        np.testing.assert_allclose(once.gradient, twice.gradient, rtol=0, atol=1e-11 * size)
    names = [name for name, *_ in passes]
    n_gaps = names.count("bin_at_rims") // 2  # either kind of rows met each of them
    assert names.count("pull_back_binned") == 2 + n_gaps


def _recorded(monkeypatch, *names):
    """The calls of some methods of rows: name and arguments of each."""
    calls = []
    for name in names:
        method = getattr(MemoryRows, name)

        def recorded(*given, name=name, method=method, **options):
            calls.append((name, *given[1:]))
            return method(*given, **options)

        monkeypatch.setattr(MemoryRows, name, recorded)
    return calls


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("character", CHARACTERS)
def test_an_evaluation_takes_two_passes_as_a_rule_and_three_at_most(character, kind, monkeypatch):
    """One fewer where the features come along; one more where a sample misled, or where the classes lie apart."""
    passes = _recorded(monkeypatch, "bin", "bin_at_rims", "pull_back_binned")
    counts = []
    for seed in range(6):
        X, codes, weights, v = _rows_of_character(character, seed, n=6000)
        passes.clear()
        MomentsDivergence(kind(X, codes, weights), 1.0, 1e-6).evaluate(v)
        counts.append(len(passes))
    assert max(counts) <= 3, counts
    if character in ("tied", "weighted", "log_normal"):
        assert set(counts) == {2 if kind is MemoryRows else 1}


@pytest.mark.parametrize(("kind", "n_passes"), [(MemoryRows, 2), (_WithFeatures, 1)])
def test_ordinary_rows_take_no_more_passes_than_the_rule(kind, n_passes, monkeypatch):
    passes = _recorded(monkeypatch, "bin", "bin_at_rims", "pull_back_binned")
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 2000).astype(np.int8)
    for _ in range(50):
        X = rng.normal(size=(4000, 3)) + codes[:, None] * rng.uniform(0, 3)
        MomentsDivergence(kind(X, codes), 1.0, 1e-6).evaluate(np.eye(3)[0])
    assert 50 * n_passes <= len(passes) <= 50 * n_passes + 2


def test_a_sample_that_misleads_of_bandwidths_and_of_the_gap_is_made_good(monkeypatch):
    """Both at once, which no rows but such as these bring about, cost a fourth pass."""
    monkeypatch.setattr("melc.objective.moments._GUESS_ROWS", 4)
    passes = _recorded(monkeypatch, "bin", "bin_at_rims", "pull_back_binned")
    rng = np.random.default_rng(8)
    codes = np.repeat([0, 1], 1500).astype(np.int8)
    X = rng.random(size=(3000, 3)) + 2 * codes[:, None]
    seen = [0, 499, 999, 1499, 1500, 1999, 2499, 2999]
    X[seen] = 30 * rng.normal(size=(8, 3))  # these alone
    weights = np.where(np.isin(np.arange(3000), seen), 1e-13, 1.0)
    v = np.array([1.0, 0.3, 0.2])
    found = MomentsDivergence(MemoryRows(X, codes, weights), 1.0, 1e-6).evaluate(v)
    assert [name for name, *_ in passes] == ["bin", "bin", "bin_at_rims", "pull_back_binned"]
    exact = PairwiseDivergence(MemoryRows(X, codes, weights), 1.0, Exact()).evaluate(v)
    assert found.divergence == pytest.approx(exact.divergence, abs=1e-6)
    size = np.abs(exact.gradient).max()
    np.testing.assert_allclose(found.gradient, exact.gradient, rtol=0, atol=1e-6 * size)


@pytest.mark.parametrize("character", ["normal", "separated"])
def test_many_rows_that_count_by_themselves_ask_for_a_second_pass(character, monkeypatch):
    passes = _recorded(monkeypatch, "pull_back_binned")
    monkeypatch.setattr("melc.sums.bins._MOST_BINS", 16)
    X, codes, weights, v = _rows_of_character(character, 0, n=3000)
    expected = MomentsDivergence(MemoryRows(X, codes, weights), 1.0, 1e-6).evaluate(v)
    size = max(np.abs(expected.gradient).max(), 1.0)
    passes.clear()
    for few, n_passes in ((1 << 20, 1 if character == "separated" else 0), (100, 1)):
        monkeypatch.setattr("melc.data.memory._OUTLIER_NUMBERS", few)
        passes.clear()
        found = MomentsDivergence(_WithFeatures(X, codes, weights), 1.0, 1e-6).evaluate(v)
        assert found.divergence == expected.divergence
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=0, atol=1e-11 * size)
        assert len(passes) == n_passes
        assert all(len(extra.rows) > 100 for _, _, _, _, extra, _ in passes)


# ------------------------------------------------------------------------------------------------ hard layouts


def _recording(monkeypatch):
    """What every evaluation found."""
    seen, original = [], MomentsDivergence._sums_along
    monkeypatch.setattr(MomentsDivergence, "_sums_along", lambda *given: seen.append(original(*given)) or seen[-1])
    return seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("character", ["normal", "separated"])
def test_points_outside_the_table_count_as_in_a_wider_table(character, kind, monkeypatch):
    seen = _recording(monkeypatch)
    X, codes, _, v = _rows_of_character(character, 2, n=2000)
    weights = np.random.default_rng(0).exponential(size=2000)
    wide = MomentsDivergence(MemoryRows(X, codes, weights), 1.0, 1e-6).evaluate(v)
    monkeypatch.setattr("melc.sums.bins._MOST_BINS", 16)
    narrow = MomentsDivergence(kind(X, codes, weights), 1.0, 1e-6).evaluate(v)
    assert seen[0].binned.outside is None
    assert len(seen[-1].binned.outside) > 100
    if character == "separated":
        z = X @ v * np.sign(v.sum())  # class 0 below
        assert np.argmax(np.where(codes == 0, z, -np.inf)) in seen[-1].binned.outside.rows  # an outlier that decides
    assert narrow.divergence == pytest.approx(wide.divergence, rel=1e-13)
    np.testing.assert_allclose(narrow.gradient, wide.gradient, rtol=1e-11, atol=1e-12)
    assert narrow.error == pytest.approx(wide.error, rel=1e-9)


def test_outliers_a_million_bandwidths_away_cost_a_bin_each(monkeypatch):
    seen = _recording(monkeypatch)
    X, codes, _, v = _rows_of_character("normal", 3, n=3000)
    X[:5] += 1e6 * np.sign(v)
    weights = np.where(np.arange(3000) < 5, 1e-14, 1.0)  # too light to widen the kernels
    found = MomentsDivergence(MemoryRows(X, codes, weights), 1.0, 1e-6).evaluate(v)
    layout, outside, sums = seen[-1].layout, seen[-1].binned.outside, seen[-1].sums
    assert layout.n_bins <= 2 * bins._MOST_BINS
    assert 0 < len(outside) <= 5  # the others have their table
    assert all(len(merged.bins.keys) < 3000 for merged in sums.within + sums.across)
    exact = PairwiseDivergence(MemoryRows(X, codes, weights), 1.0, Exact()).evaluate(v)
    assert abs(found.divergence - exact.divergence) <= 1e-6


def test_classes_far_apart_are_summed_at_the_rims_of_the_gap(monkeypatch):
    seen = _recording(monkeypatch)
    z, codes, _, _ = _draw("separated", 1, n=1500)
    found = _evaluate(z, codes, None, 1.0, 1e-6)
    sums = seen[-1].sums
    assert len(seen) == 1
    assert 0 < sum(m[:, 0].sum() for m in sums.rimmed.bins.moments) < 1500  # most points are too far to matter
    exact = naive.divergence(z[:, None], codes, np.ones(1))
    assert abs(found.divergence - exact) <= 1e-6 + ROUNDING * abs(exact)


@pytest.mark.parametrize("apart", [1e4, 1e5, 1e6, 1e7, 1e9])
@pytest.mark.parametrize("kind", KINDS)
def test_gaps_of_a_hundred_million_bandwidths(kind, apart):
    rng = np.random.default_rng(6)
    codes = np.repeat([0, 1], 100).astype(np.int8)
    z = rng.normal(size=200) + apart * codes
    exact = naive.divergence(z[:, None], codes, np.ones(1))
    found = MomentsDivergence(kind(z[:, None].copy(), codes), 1.0, 1e-6).evaluate(np.ones(1))
    assert abs(found.divergence - exact) <= found.error + _rounding(z, codes, None, 1.0, exact)
    assert found.error <= 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gap", [0.0, 0.01, 1.0, 10.0])
def test_a_class_a_billion_times_narrower_than_the_gap_that_it_stands_in(gap, kind):
    """Its ordinary bins are narrower than those that the gap asks for."""
    rng = np.random.default_rng(7)
    codes = np.repeat([0, 1], 100).astype(np.int8)
    z = np.where(codes == 1, 1e-9 * rng.normal(size=200), rng.choice([-1, 1], 200) * (gap + rng.random(200)))
    exact = naive.divergence(z[:, None], codes, np.ones(1))
    found = MomentsDivergence(kind(z[:, None].copy(), codes), 1.0, 1e-6).evaluate(np.ones(1))
    assert abs(found.divergence - exact) <= found.error + _rounding(z, codes, None, 1.0, exact)
    assert found.error <= 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_is_constant_as_far_as_its_sample_shows(kind):
    rng = np.random.default_rng(0)
    codes = np.tile(np.array([0, 1], dtype=np.int8), 3000)
    z = np.where(codes == 1, 10 + rng.normal(size=6000), 0.0)
    z[rng.choice(np.flatnonzero(codes == 0)[1:-1], 5, replace=False)] = -5.0
    exact = PairwiseDivergence(MemoryRows(z[:, None].copy(), codes), 1.0, Exact()).evaluate(np.ones(1))
    found = MomentsDivergence(kind(z[:, None].copy(), codes), 1.0, 1e-6).evaluate(np.ones(1))
    assert abs(found.divergence - exact.divergence) <= 1e-6


def test_nothing_varies_though_the_means_of_weighted_rows_are_rounded():
    codes = (np.arange(300) % 2).astype(np.int8)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.full(300, rng.normal()), np.zeros(300)])
        rows = MemoryRows(X, codes, rng.exponential(size=300))
        found = MomentsDivergence(rows, 1.0, 1e-6).evaluate(np.array([1.0, 0.0]))
        assert (found.divergence, found.floored) == (0.0, True)


@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_rows_that_differ_by_little_more_than_the_rounding_of_their_mean(offset):
    """The sample alone could not tell how wide they are."""
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], 3000).astype(np.int8)
    z = offset * (1 + 1e-13 * np.round(rng.normal(size=6000) + codes, 1))
    exact = PairwiseDivergence(MemoryRows(z[:, None].copy(), codes), 1.0, Exact()).evaluate(np.ones(1)).divergence
    found = _evaluate(z, codes, None, 1.0, 1e-6)
    assert abs(found.divergence - exact) <= 1e-6 + 1e-9 * abs(exact)


@pytest.mark.parametrize("few", [0, 5])
def test_a_sample_in_which_nothing_varies_though_something_does(few):
    codes = np.tile(np.array([0, 1], dtype=np.int8), 3000)
    z = np.full(6000, 2.5)
    seen = {i for X, _ in spread_samples(MemoryRows(np.arange(6000.0)[:, None], codes), 1024) for i in X[:, 0]}
    unseen = np.array([i for i in range(6000) if i not in seen])
    z[unseen[:few]] += np.linspace(1, 2, few)
    exact = PairwiseDivergence(MemoryRows(z[:, None].copy(), codes), 1.0, Exact()).evaluate(np.ones(1)).divergence
    assert _evaluate(z, codes, None, 1.0, 1e-6).divergence == pytest.approx(exact, abs=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
def test_an_outlier_beyond_all_numbers_of_narrow_bins(kind):
    rng = np.random.default_rng(0)
    codes = np.tile(np.array([0, 1], dtype=np.int8), 3000)
    z = rng.normal(size=6000) + 1e6 * codes
    z[2998], weights = -1e12, np.ones(6000)  # no row of the sample
    weights[2998] = 1e-27
    exact = (
        PairwiseDivergence(MemoryRows(z[:, None].copy(), codes, weights), 1.0, Exact()).evaluate(np.ones(1)).divergence
    )
    found = MomentsDivergence(kind(z[:, None].copy(), codes, weights), 1.0, 1e-6).evaluate(np.ones(1))
    assert abs(found.divergence - exact) <= found.error + _rounding(z, codes, weights, 1.0, exact)


def test_a_feature_that_is_the_class_itself():
    """Along it no class varies: the gap is ten billion bandwidths, and the last digit of a point wider than a bin
    would have to be."""
    rng = np.random.default_rng(3)
    codes = _codes(rng, 2000)
    X = np.column_stack([rng.normal(size=2000), codes])
    for slant in (1e-3, 1e-6, 1e-9, 0.0):
        v = np.array([slant, 1.0])
        exact = PairwiseDivergence(MemoryRows(X, codes), 1.0, Exact()).evaluate(v)
        for kind in KINDS:
            found = MomentsDivergence(kind(X, codes), 1.0, 1e-6).evaluate(v)
            assert found.divergence == pytest.approx(exact.divergence, rel=1e-9)
            assert found.floored == exact.floored
            if slant >= 1e-6:
                size = np.abs(exact.gradient).max()
                np.testing.assert_allclose(found.gradient, exact.gradient, rtol=0, atol=1e-7 * size)


def test_a_wrong_guess_of_the_widths_is_mended(monkeypatch):
    """The rows that the widths are guessed from show nothing of the spike that the others form."""
    monkeypatch.setattr("melc.objective.moments._GUESS_ROWS", 2)
    rng = np.random.default_rng(5)
    codes = np.tile(np.array([0, 1], dtype=np.int8), 500)
    z = 1e-3 * rng.normal(size=1000)
    z[:2], z[-2:] = 50, -50
    found = _evaluate(z, codes, None, 0.2, 1e-6)
    exact = naive.divergence(z[:, None], codes, np.ones(1), 0.2)
    assert abs(found.divergence - exact) <= found.error + ROUNDING * max(1, abs(exact))
    assert found.error <= 1e-6


def test_rows_that_coincide_have_no_divergence():
    found = _evaluate(np.full(10, 3.0), np.repeat([0, 1], 5).astype(np.int8), None, 1.0, 1e-6)
    assert (found.divergence, found.floored) == (0.0, True)
    assert not np.any(found.gradient)


# --------------------------------------------------------------------------------------------------- rows as they are


@pytest.fixture(scope="module")
def many_rows():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300_000, 3))
    codes = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(np.int8)
    return X, codes, rng.exponential(size=len(X)), np.array([1.0, -0.4, 0.2])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", [np.ascontiguousarray, np.asfortranarray])
def test_any_number_of_threads_gives_the_same_bits(many_rows, weighted, order):
    X, codes, weights, v = many_rows
    results = []
    for n_threads in (1, 2, 4):
        rows = MemoryRows(order(X), codes, weights if weighted else None, n_threads)
        assert len(rows._passes._edges) > 4  # more than three segments
        results.append(MomentsDivergence(rows, 1.0, 1e-6).evaluate(v))
        rows.close()
    for other in results[1:]:
        assert other.divergence == results[0].divergence
        assert other.gradient.tobytes() == results[0].gradient.tobytes()


def _forms(X, folder):
    """The same numbers, in the ways that memory may hold them."""
    read_only = X.copy()
    read_only.flags.writeable = False
    mapped = np.memmap(folder / "X.dat", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    strided = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    return {
        "F": np.asfortranarray(X),
        "read-only": read_only,
        "memory-mapped": np.memmap(folder / "X.dat", dtype=X.dtype, mode="r", shape=X.shape),
        "strided": strided,
        "reversed": X[::-1].copy()[::-1],
        "csr": sparse.csr_array(X),
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_in_any_form_agree(tmp_path, dtype):
    X, codes, weights, v = _rows_of_character("weighted", 6, n=5000)
    X = X.astype(dtype)
    expected = MomentsDivergence(MemoryRows(X.astype(np.float64), codes, weights), 1.0, 1e-6).evaluate(v)
    for name, form in {"C": X, **_forms(X, tmp_path)}.items():
        found = MomentsDivergence(MemoryRows(form, codes, weights), 1.0, 1e-6).evaluate(v)
        assert found.divergence == pytest.approx(expected.divergence, rel=1e-12), name
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=0, atol=1e-11, err_msg=name)


def test_a_weight_of_k_is_k_rows():
    X, codes, _, v = _rows_of_character("normal", 7, n=900)
    counts = np.random.default_rng(0).integers(1, 5, 900)
    weighted = MomentsDivergence(MemoryRows(X, codes, counts.astype(float)), 1.0, 1e-9).evaluate(v)
    repeated = MomentsDivergence(
        MemoryRows(np.repeat(X, counts, axis=0), np.repeat(codes, counts)), 1.0, 1e-9
    ).evaluate(v)
    assert abs(weighted.divergence - repeated.divergence) <= 2e-9
    np.testing.assert_allclose(weighted.gradient, repeated.gradient, rtol=0, atol=1e-7)


# --------------------------------------------------------------------------------------------------- coarse to fine


@pytest.mark.slow
@pytest.mark.parametrize(("n", "seed"), [(50_000, 0), (60_000, 1)])
def test_coarse_to_fine_reaches_the_best_of_ten_starts_on_all_rows(n, seed):
    X, y = make_classification(
        n, 6, n_informative=5, n_redundant=0, n_clusters_per_class=3, class_sep=0.7, random_state=seed
    )
    objective = Objective(MemoryRows(X, y.astype(np.int8)), method="moments", eps=1e-6, scale=X.std(axis=0))
    starts = np.random.default_rng(0).normal(size=(10, 6))
    optima = [maximise(objective, start).divergence for start in starts]
    assert max(optima) - min(optima) > 0.1  # some starts do end elsewhere
    assert MELC(random_state=0).fit(X, y).divergence_ >= max(optima) - 1e-6


@pytest.mark.parametrize("n_outside", [0, 3])
@pytest.mark.parametrize("n_features", [0, 2])
def test_moments_travel_as_they_are(n_outside, n_features):
    rng = np.random.default_rng(0)
    moments = np.zeros((50, 6))
    moments[7:19] = rng.normal(size=(12, 6))
    moments[9, 0] = 0.0  # an occupied bin by its other moments
    numbers = np.arange(n_outside)
    outside = Points(
        numbers,
        numbers.astype(np.int8),
        rng.normal(size=n_outside),
        np.ones(n_outside),
        rng.normal(size=(n_outside, 2)),
    )
    features = np.zeros((50, n_features, 5)) if n_features else None
    if features is not None:
        features[7:19] = rng.normal(size=(12, n_features, 5))
    arrived = pickle.loads(pickle.dumps(Binned(moments, outside, features)))
    np.testing.assert_array_equal(arrived.moments, moments)
    np.testing.assert_array_equal(arrived.features, features)
    arrived += Binned(moments)
    np.testing.assert_array_equal(arrived.moments, 2 * moments)
    assert arrived.features is None  # some did not bin them
    for name in ("rows", "codes", "z", "weights", *(["features"] if n_outside else [])):
        np.testing.assert_array_equal(getattr(arrived.outside, name), getattr(outside, name))
