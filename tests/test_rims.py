"""The rims of a gap: narrow bins that keep every pair, nothing left out that matters, and guesses without a say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from melc import bounds
from melc.data.memory import MemoryRows
from melc.kernels import AS_THEY_ARE, ORDERS
from melc.objective.gap import bins_at_rims, foresee_rims, guess_rims, refit, rims_of, sum_at_rims
from melc.objective.moments import MomentsDivergence
from melc.sums.bins import Layout
from melc.sums.moments import Bins
from melc.sums.rims import RimBins, Rims, Slopes

GRID = np.linspace(-1, 1, 41)
EPS = 1e-6


# ----------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize("order", ORDERS)
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
    return z + 0.3, rng.integers(2, size=n).astype(np.int8), rng.exponential(size=n), rng.normal(size=(n, 3))


def rims_at(width=1 / 16, depth=3, chosen=None, with_features=True):
    return Rims(np.ones(1, dtype=bool) if chosen is None else chosen, 0.0, width, LEVELS, depth, False, with_features)


def binned_at(rims, z, codes, weights, X, pieces=1):
    found = RimBins(8, X.shape[1])
    for part in np.array_split(np.arange(len(z)), pieces):
        found.add(rims, z[part], codes[part], weights[part], X[part])
    return found


@pytest.mark.parametrize("depth", [0, 1, 3, 100])
@pytest.mark.parametrize("seed", range(5))
def test_bins_are_those_of_their_slow_twin(seed, depth):
    z, codes, weights, X = some_points(seed)
    found = binned_at(rims_at(depth=depth), z, codes, weights, X)
    for c in (0, 1):
        mine = codes == c
        expected = naive.rim_bins(z[mine], weights[mine], 1 / 16, LEVELS[c], depth, 8)
        assert list(found.keys[c]) == sorted(expected)
        np.testing.assert_allclose(found.moments[c], [expected[k] for k in found.keys[c]], rtol=1e-12, atol=1e-14)
        features = naive.feature_moments(X[mine], z[mine], weights[mine], 1 / 16, 8)
        np.testing.assert_allclose(found.features[c], [features[k] for k in found.keys[c]], rtol=1e-12, atol=1e-13)


@given(st.integers(0, 1000), st.integers(1, 50), st.integers(0, 20))
def test_bins_have_the_same_bits_however_points_are_divided_up(seed, pieces, depth):
    points = some_points(seed, n=100)
    whole, parts = (binned_at(rims_at(depth=depth), *points, n) for n in (1, pieces))
    for c in (0, 1):
        assert whole.keys[c].tobytes() == parts.keys[c].tobytes()
        assert whole.moments[c].tobytes() == parts.moments[c].tobytes()
        assert whole.features[c].tobytes() == parts.features[c].tobytes()


@given(st.integers(0, 1000), st.integers(1, 20), st.integers(0, 20))
def test_bins_of_parts_add_up(seed, pieces, depth):
    rims, points = rims_at(depth=depth), some_points(seed, n=100)
    total = RimBins(8, 3)
    for part in np.array_split(np.arange(100), pieces):
        total += binned_at(rims, *(each[part] for each in points))
    total.crop(rims)
    whole = binned_at(rims, *points)
    for c in (0, 1):
        np.testing.assert_array_equal(total.keys[c], whole.keys[c])
        np.testing.assert_allclose(total.moments[c], whole.moments[c], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(total.features[c], whole.features[c], rtol=1e-12, atol=1e-14)


def test_numbers_of_bins_far_from_each_other():
    """No table of all numbers between them."""
    z = np.array([0.1, 1e9, 0.1, -1e9])
    found = RimBins(8)
    found.add(rims_at(depth=1), z, np.zeros(4, dtype=np.int8), np.ones(4))
    assert list(found.keys[0]) == [-16_000_000_000, 1, 16_000_000_000]
    assert list(found.moments[0][:, 0]) == [1, 2, 1]
    none = np.empty(0, dtype=np.int64), np.empty((0, 8))
    slopes = Slopes(np.ones(2, dtype=bool), 0.0, (1 / 16, 1.0), (found.keys[0], none[0]), (np.ones((3, 8)), none[1]))
    z, codes = np.array([-1e9 + 1 / 64, 5.0, 1e300, 0.1]), np.array([0, 0, 0, 1], dtype=np.int8)
    assert list(slopes.at(z, codes) != 0) == [True, False, False, False]


def test_slopes_are_polynomials_in_their_bins_and_zero_elsewhere():
    rng = np.random.default_rng(0)
    widths, keys = (1 / 16, 1 / 8), (np.array([-3, 0, 7]), np.array([2, 3]))
    polynomials = rng.normal(size=(3, 8)), rng.normal(size=(2, 8))
    z, codes = rng.uniform(-0.5, 0.6, size=300), rng.integers(2, size=300).astype(np.int8)
    found = Slopes(np.ones(1, dtype=bool), 0.0, widths, keys, polynomials).at(z, codes)
    for value, place, c in zip(found, z, codes, strict=True):
        key = math.floor(place / widths[c])
        u = 2 * (place / widths[c] - key) - 1
        row = list(keys[c]).index(key) if key in keys[c] else None
        expected = 0.0 if row is None else sum(a * u**j for j, a in enumerate(polynomials[c][row]))
        assert value == pytest.approx(expected, abs=1e-13)
    assert 0 < np.count_nonzero(found) < 300


# ------------------------------------------------------------------------------------------- what the rims decide


def two_sides(seed, n=300):
    """Two classes with a gap, of many characters, as points, weights and codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(2, size=n).astype(np.int8)
    codes[:2] = 0, 1
    noise = [rng.normal(size=n), rng.random(n), rng.integers(3, size=n), rng.exponential(size=n)][seed % 4]
    span = np.ptp(noise)
    z = np.where(codes == 1, noise, -noise) + codes * span * rng.choice([1.01, 1.5, 3, 30, 1e4])
    if seed % 3 == 0:
        z += 4 * span * rng.integers(2, size=n)
    weights = np.ones(n) if seed % 2 else 10 ** rng.uniform(-12, 0, n)
    return z, codes, weights


def ordinary_bins(z, weights, width, origin=0.0):
    moments = naive.bin_moments(z - origin, weights, width, 8)
    keys = np.array(sorted(moments))
    return Bins(keys, np.array([moments[k] for k in keys]), width)


def exponents_of(weights, codes):
    pairs = sum(math.log(weights[codes == c].sum() / weights[codes == c].min()) for c in (0, 1))
    return pairs + math.log(100 / EPS)


def layout_over(bins, origin=0.0):
    low = tuple(int(b.keys[0]) for b in bins)
    count = tuple(int(b.keys[-1] - b.keys[0]) + 1 for b in bins)
    return Layout(origin, (bins[0].width, bins[1].width), low, count, 8)


@pytest.mark.parametrize("bandwidths", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("seed", range(24))
def test_points_at_the_rims_give_the_whole_sum_to_the_certificate(seed, bandwidths):
    z, codes, weights = two_sides(seed)
    variance = (np.ptp(z) / 100 / bandwidths) ** 2
    width = 2.0 ** math.floor(math.log2(math.sqrt(variance)))
    sides = [ordinary_bins(z[codes == c], weights[codes == c], w * width) for c, w in ((0, 1.0), (1, 0.5))]
    layout, exponents = layout_over(sides), exponents_of(weights, codes)
    chosen, gap = bins_at_rims(*sides, variance, exponents)
    nearest = np.abs(np.subtract.outer(z[codes == 0], z[codes == 1])).min()
    assert gap[0] <= nearest <= gap[1]
    mask = np.zeros(layout.n_bins, dtype=bool)
    for c in (0, 1):
        mask[sides[c].keys[chosen[c]] - layout.low[c] + layout.offset[c]] = True
    rims = rims_of(layout, mask, float(np.abs(z).max()), variance, gap, exponents, EPS)
    slots = layout.slots(z, codes)
    near = mask[slots]
    found = RimBins(8)
    found.add(rims, z[near], codes[near], weights[near])
    x, y = (Bins(found.keys[c], found.moments[c], rims.width) for c in (0, 1))
    total = sum_at_rims(rims, x, y, variance, EPS)
    a, b = (z[codes == c] for c in (0, 1))
    exact = float(naive.log_sum(a, b, variance, weights[codes == 0], weights[codes == 1]))
    assert total.error <= EPS / 4
    assert abs(total.log_value - exact) <= total.error + 1e-13 * abs(exact)


def test_rims_leave_out_what_is_deep():
    """Of a hundred thousand points spread evenly, and a gap of a hundred bandwidths, a few bins remain."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 50_000).astype(np.int8)
    z = rng.random(100_000) + 2 * codes
    divergence = MomentsDivergence(MemoryRows(z[:, None].copy(), codes), 0.2, EPS)
    asked = []
    original = divergence.rows.bin_at_rims
    divergence.rows.bin_at_rims = lambda *given: asked.append(original(*given)) or asked[-1]
    divergence.evaluate(np.ones(1))
    assert sum(len(keys) for keys in asked[0].keys) < 1000
    assert 0 < sum(m[:, 0].sum() for m in asked[0].moments) < 5000


# ---------------------------------------------------------------------------------------------------- guesses


def test_a_sample_without_a_gap_suggests_none():
    rng = np.random.default_rng(0)
    layout = Layout(0.0, (0.5, 0.5), (-20, -20), (40, 40), 8)
    samples = [rng.normal(size=100), rng.normal(size=100) + 1]
    assert guess_rims(layout, samples, 0.1, 40.0, EPS) is None
    assert guess_rims(layout, [samples[0], samples[1] + 9], 0.1, 40.0, EPS) is not None


@pytest.mark.parametrize("with_features", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_was_foreseen_is_refitted_to_what_is_wanted(seed, with_features):
    z, codes, weights = two_sides(seed)
    X = np.random.default_rng(seed).normal(size=(len(z), 2))
    rows = MemoryRows(np.column_stack([z, X]), codes, weights)
    v = np.array([1.0, 0.0, 0.0])
    divergence = MomentsDivergence(rows, 1.0, EPS)
    layout, _ = divergence._guess(v, AS_THEY_ARE)
    variance = 4 * max(layout.widths) ** 2
    sides = [ordinary_bins(z[codes == c], weights[codes == c], layout.widths[c], layout.origin) for c in (0, 1)]
    exponents = exponents_of(weights, codes)
    chosen, gap = bins_at_rims(*sides, variance, exponents)
    mask = np.zeros(layout.n_bins, dtype=bool)
    for c in (0, 1):
        slots = sides[c].keys[chosen[c]] - layout.low[c]
        inside = (slots >= 0) & (slots < layout.count[c])
        mask[slots[inside] + layout.offset[c]] = True
    wanted = rims_of(layout, mask, float(np.abs(z).max()), variance, gap, exponents, EPS)
    wanted = replace(wanted, with_features=with_features)
    foreseen = replace(foresee_rims(layout, *sides, variance, exponents, EPS), with_features=with_features)
    assert foreseen.cover(wanted)
    assert not wanted.cover(foreseen)
    direct, ample = (rows.bin_at_rims(v, layout, rims) for rims in (wanted, foreseen))
    assert direct.has_features == with_features
    found = refit(ample, foreseen, wanted, layout)
    for c in (0, 1):
        np.testing.assert_array_equal(found.keys[c], direct.keys[c])
        size = max(1e-300, np.abs(direct.moments[c]).max())
        np.testing.assert_allclose(found.moments[c] / size, direct.moments[c] / size, rtol=0, atol=1e-13)
        np.testing.assert_allclose(found.features[c] / size, direct.features[c] / size, rtol=0, atol=1e-11)


def test_rims_cover_others_only_with_all_of_it():
    chosen = np.array([True, False, True])
    rims = Rims(chosen, 0.0, 0.5, (1, 1), 10, False)
    assert rims.cover(replace(rims, width=1.0, depth=4))
    assert not rims.cover(rims)  # as deep, but a bin may begin anywhere
    assert not rims.cover(replace(rims, width=0.25, depth=4))
    assert not rims.cover(replace(rims, depth=4, chosen=~chosen))
