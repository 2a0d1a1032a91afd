"""Classes that lie apart: the points next to the gap decide the sum across it, and nothing that matters is left out."""

import math

import numpy as np
import pytest

import naive
from melc.data.memory import MemoryRows
from melc.objective.gap import bins_at_rims, rims_of, sum_at_rims
from melc.objective.moments import MomentsDivergence
from melc.sums.bins import BinLayout, Bins
from melc.sums.rims import RimBins

EPS = 1e-6


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


def ordinary_bins(z, weights, width):
    moments = naive.bin_moments(z, weights, width, 8)
    keys = np.array(sorted(moments))
    return Bins(keys, np.array([moments[k] for k in keys]), width)


def exponents_of(weights, codes):
    pairs = sum(math.log(weights[codes == c].sum() / weights[codes == c].min()) for c in (0, 1))
    return pairs + math.log(100 / EPS)


def layout_over(bins):
    low = tuple(int(b.keys[0]) for b in bins)
    count = tuple(int(b.keys[-1] - b.keys[0]) + 1 for b in bins)
    return BinLayout(0.0, (bins[0].width, bins[1].width), low, count)


@pytest.mark.parametrize("seed", range(24))
def test_bins_at_the_rims_are_those_within_reach_of_the_other_class(seed):
    z, codes, weights = two_sides(seed)
    variance, width = (np.ptp(z) / 300) ** 2, 2.0 ** math.floor(math.log2(np.ptp(z) / 100))
    sides = [ordinary_bins(z[codes == c], weights[codes == c], w * width) for c, w in ((0, 1.0), (1, 0.5))]
    exponents = exponents_of(weights, codes)
    chosen, (least, most) = bins_at_rims(*sides, variance, exponents)
    low, widths = [side.edges[0] for side in sides], [np.full(len(side.keys), side.width) for side in sides]
    assert most == least + 1.5 * width
    for c, other in ((0, 1), (1, 0)):
        away = naive.interval_distances(low[c], widths[c], low[other], widths[other])
        assert away.min() == least
        # Beyond, a Gaussian is smaller by all that the exponents say.
        np.testing.assert_array_equal(chosen[c], (away**2 - most**2) / (2 * variance) <= exponents)


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
    slots = layout.located(z, codes)[0]
    near = mask[slots]
    found = RimBins()
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
