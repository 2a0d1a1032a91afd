"""Sketches: what a part of the rows knows of all, bins fine enough for any sum, and sums that stay the same."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from melc import bounds, kernels, sketch
from melc.binned import BinnedDivergence
from melc.gaps import rims_in
from melc.kernels import ORDERS
from melc.pairwise import ExactDivergence
from melc.partition import added
from melc.rows import Rows
from melc.sketch import Cells, Demand, Sketch

EPS = 1e-6


# -------------------------------------------------------------------------------------------- points and their parts


def two_classes(rng, n):
    """Points of two classes of many characters: near and far, crowded, heavy-tailed, one far narrower."""
    codes = (rng.random(n) < rng.choice([0.5, 0.1])).astype(np.int8)
    codes[:2], codes[2:4] = 0, 1
    z = [
        lambda: rng.normal(size=n),
        lambda: rng.random(n),
        lambda: rng.integers(4, size=n).astype(float),
        lambda: rng.standard_cauchy(n),
        lambda: rng.exponential(size=n),
        lambda: rng.normal(size=n) * np.where(codes, 1e-6, 1),
    ][rng.integers(6)]()
    z += codes * rng.choice([0, 0.5, 3, 10, 1000]) + rng.choice([0, 50]) * rng.integers(3, size=n)
    if rng.random() < 0.3:  # one class on either side of the other
        z = np.where(codes, 0.01 * z, z + 8 * np.sign(rng.normal(size=n)) * np.ptp(z))
    weights = [None, rng.exponential(size=n), 10 ** rng.uniform(-10, 0, n)][rng.integers(3)]
    return z, codes, weights


def parts_of(rng, z, codes):
    """Rows in parts: as they come, by their place on the line, or by class; of any size."""
    order = [np.arange(len(z)), np.argsort(z), np.lexsort((z, codes))][rng.integers(3)]
    cuts = np.sort(rng.integers(0, len(z) + 1, rng.integers(0, 9)))
    return [part for part in np.split(order, cuts) if len(part)]


def demand_for(z, codes, weights, origin=0.0, gamma=1.0, order=8, guessed=(2.0**60, 2.0**60)):
    weights = np.ones(len(z)) if weights is None else weights
    totals = tuple(float(weights[codes == c].sum()) for c in (0, 1))
    pairs = sum(math.log(totals[c] / weights[codes == c].min()) for c in (0, 1))
    return Demand(origin, order, guessed, totals, kernels.AS_THEY_ARE, gamma, EPS, pairs + math.log(100 / EPS))


def sketched(demand, z, codes, weights, parts):
    """As partitions make it and add it up."""
    each = {
        (0, i): [Sketch.of(demand, z[part], codes[part], None if weights is None else weights[part])]
        for i, part in enumerate(parts)
    }
    ((total,),) = added(each, len(parts)).values()
    total.settle()
    return total


def drawn(seed, n=400, origin=0.0):
    rng = np.random.default_rng(seed)
    z, codes, weights = two_classes(rng, n)
    demand = demand_for(z, codes, weights, origin, rng.choice([0.01, 0.1, 1]))
    return z, codes, weights, demand, parts_of(rng, z, codes)


@pytest.fixture(params=[0, 50, 1 << 16])
def few(request, monkeypatch):
    monkeypatch.setattr(sketch, "_FEW_POINTS", request.param)


# ------------------------------------------------------------------------------------------------------------ cells


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, -3.7, 1e6]))
def test_nothing_is_lost_and_everything_is_in_its_place(seed, origin):
    """The moments of all points, around any place, are those of the points themselves."""
    z, codes, weights, demand, parts = drawn(seed, origin=origin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "_FEW_POINTS", 30)
        found = sketched(demand, z, codes, weights, parts)
    weights = np.ones(len(z)) if weights is None else weights
    for c, cells in enumerate(found.cells):
        x, w = z[codes == c] - origin, weights[codes == c]
        width = 2.0 ** (math.frexp(np.abs(x).max())[1] + 1)
        joined = cells.raised(np.full(len(cells), round(math.log2(width))))
        expected = naive.bin_moments(x, w, width, 8)
        assert list(joined.keys) == sorted(expected)
        size = w.sum()
        np.testing.assert_allclose(
            joined.moments / size, np.array([expected[k] for k in joined.keys]) / size, rtol=0, atol=1e-13
        )
        for low, cell, moments in zip(cells.low, cells.widths, cells.moments, strict=True):
            mine = w[(x >= low) & (x < low + cell)]
            assert moments[0] <= mine.sum() * (1 + 1e-12)  # others may be in a bin within
    spread = found.spread()
    for c in (0, 1):
        mean = np.average(z[codes == c], weights=weights[codes == c])
        variance = np.average((z[codes == c] - mean) ** 2, weights=weights[codes == c])
        assert spread[2 + c] == pytest.approx(mean, rel=1e-12, abs=1e-12 * np.abs(z - origin).max())
        assert spread[4 + c] == pytest.approx(variance, rel=1e-9, abs=1e-24 * np.abs(z - origin).max() ** 2)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_a_part_knows_the_least_that_variances_and_overlap_of_all_can_be(seed):
    z, codes, weights, demand, parts = drawn(seed)
    whole = demand.fineness(squares_of(z, codes, weights))
    w = np.ones(len(z)) if weights is None else weights
    first, second = codes == 0, codes == 1
    log_sum = naive.log_sum(z[first], z[second], whole.variance, w[first], w[second])
    exact = math.exp(log_sum - math.log(w[first].sum()) - math.log(w[second].sum()))
    overlaps = []
    for part in parts:
        of_part = None if weights is None else weights[part]
        fineness = demand.fineness(squares_of(z[part], codes[part], of_part))
        assert fineness.variance <= whole.variance * (1 + 1e-12)
        assert fineness.ordinary <= whole.ordinary
        assert all(mine <= theirs for mine, theirs in zip(fineness.within, whole.within, strict=True))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sketch, "_FEW_POINTS", 0)
            overlaps.append(Sketch.of(demand, z[part], codes[part], of_part).overlap)
            total = sketched(demand, z, codes, weights, parts)
        assert overlaps[-1] <= exact * (1 + 1e-12)
    assert max(overlaps) <= total.overlap <= exact * (1 + 1e-12)


def squares_of(z, codes, weights):
    weights = np.ones(len(z)) if weights is None else weights
    found = []
    for c in (0, 1):
        x, w = z[codes == c], weights[codes == c]
        found.append(float(w @ (x - np.average(x, weights=w)) ** 2) if len(x) else 0.0)
    return found[0], found[1]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(ORDERS))
def test_bins_are_narrow_enough_for_every_pair_that_counts(seed, order):
    """The theorem, checked pair by pair: none that counts is off by more than it may be, unless classes overlap so much
    that single pairs do not matter."""
    z, codes, weights, demand, parts = drawn(seed, n=120)
    demand = replace(demand, order=order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "_FEW_POINTS", 0)
        found = sketched(demand, z, codes, weights, parts)
    fineness = demand.fineness(squares_of(z, codes, weights))
    variance = fineness.variance
    x, y = found.cells
    if not variance > 0 or replace(fineness, overlap=found.overlap).is_bridged:
        return
    nearest = np.abs(np.subtract.outer(z[codes == 0], z[codes == 1])).min()
    reach = nearest + bounds.farther(nearest, variance, demand.exponents)
    asked = bounds.rim_bin_width(order, variance, reach, EPS / max(1, reach / math.sqrt(variance)))
    digits = 2.0**-48 * np.abs(z).max()
    for mine, other in ((x, y), (y, x)):
        away = naive.interval_distances(mine.low, mine.widths, other.low, other.widths)
        counts = away <= reach
        assert (mine.widths[counts] <= max(asked, digits)).all()


def test_twins_of_kernels():
    rng = np.random.default_rng(0)
    z, codes, weights = rng.normal(size=500), rng.integers(2, size=500).astype(np.int8), rng.exponential(size=500)
    measures, masses = np.empty((2, 5)), np.zeros((2, 6))
    kernels.measure_classes(z, codes, weights, 1, 0.5, measures)
    kernels.add_masses(z, codes, weights, 1, 0.3, 4.0, -2.0, masses)
    for c in (0, 1):
        x, w = z[codes == c], weights[codes == c]
        mean = np.average(x, weights=w)
        expected = w.sum(), mean - 0.5, w @ (x - mean) ** 2, x.min() - 0.5, x.max() - 0.5
        np.testing.assert_allclose(measures[c], expected, rtol=1e-12, atol=1e-13)
        keys = np.floor((x - 0.3) * 4) + 2
        np.testing.assert_allclose(masses[c], [w[keys == k].sum() for k in range(6)], rtol=1e-12)
    kernels.measure_classes(z, np.zeros(500, dtype=np.int8), np.ones(1), 0, 0.0, measures)
    assert list(measures[1]) == [0, 0, 0, math.inf, -math.inf]
    assert measures[0, 0] == 500


@given(st.sampled_from(ORDERS), st.floats(1e-12, 0.5), st.floats(1e-6, 1e6))
def test_no_pair_is_off_by_more_than_a_sure_bin_width_promises(order, error, variance):
    width = bounds.sure_bin_width(order, variance, error)
    grid = np.linspace(-1, 1, 15)
    for offset in (0, 1, 2, 5):
        found = naive.interpolated_kernel(grid, grid, offset, width, variance, order)
        apart = (offset + np.subtract.outer(grid, grid) / 2) * width
        assert np.abs(found - np.exp(-(apart**2) / (2 * variance))).max() <= error * (1 + 1e-9) + 1e-14


def test_bins_join_as_more_is_known(monkeypatch):
    """A part needs more bins than all, and parts that are added up no more than all at once."""
    monkeypatch.setattr(sketch, "_FEW_POINTS", 1000)
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=200_000).astype(np.int8)
    for apart in (0.5, 40.0):
        z = rng.normal(size=200_000) + apart * codes
        demand = demand_for(z, codes, None)
        part, whole = (Sketch.of(demand, z[:n], codes[:n], None) for n in (20_000, 200_000))
        added_up = sketched(demand, z, codes, None, np.array_split(np.arange(200_000), 10))
        sizes = [sum(map(len, each.cells)) for each in (part, whole, added_up)]
        assert sizes[0] > 1.2 * sizes[1]
        assert sizes[1] < (600 if apart < 1 else 3000)
        assert sizes[2] == pytest.approx(sizes[1], rel=0.05)


def test_few_points_travel_as_they_are_and_many_in_few_bins():
    rng = np.random.default_rng(0)
    z, codes = rng.normal(size=100_000), rng.integers(2, size=100_000).astype(np.int8)
    demand = demand_for(z, codes, None)
    few, many = (Sketch.of(demand, z[:n], codes[:n], None) for n in (1000, 100_000))
    assert len(pickle.dumps(few)) < 12_000
    assert len(pickle.dumps(many)) < 100_000
    kept = few.points.z.copy()
    z[:] = 0.0  # the next stretch of rows is written to the same place
    np.testing.assert_array_equal(few.points.z, kept)


def test_classes_whose_bins_have_no_numbers_in_common():
    """Each at a place of its own, so that their digits are all there is to go by."""
    codes = np.tile(np.array([0, 1], dtype=np.int8), 5)
    z = np.where(codes == 1, 1e20, 3e-20)
    demand = demand_for(np.append(z, [1.0, 2.0]), np.append(codes, [0, 1]).astype(np.int8), None)
    found = sketched(demand, z, codes, None, [np.arange(10)])
    np.testing.assert_allclose(found.spread(), [5, 5, 3e-20, 1e20, 0, 0], rtol=1e-14)
    assert [len(cells) for cells in found.cells] == [1, 1]


def test_gaps_within_a_class_have_edges():
    """The other class may stand there, as it does here."""
    rng = np.random.default_rng(0)
    codes = (np.arange(3000) % 3 == 0).astype(np.int8)
    z = np.where(codes, 3 + 0.01 * rng.normal(size=3000), rng.random(3000) + 5 * rng.integers(2, size=3000))
    demand = demand_for(z, codes, None, gamma=0.1)
    fineness = demand.fineness(squares_of(z, codes, None))
    gap = math.sqrt(2 * fineness.variance * demand.exponents)
    assert gap < 4  # between the crowds of a class
    assert fineness.gap + 2 * 2.0**fineness.across <= gap
    found = sketched(demand, z, codes, None, [np.arange(3000)]).cells[0]
    for edge in (z[(codes == 0) & (z < 2)].max(), z[(codes == 0) & (z > 4)].min()):
        assert found.widths[np.abs(found.low - edge) < 0.01].max() < 2.0**fineness.across / 4


@given(st.floats(1e-14, 1), st.sampled_from(ORDERS), st.integers(0, 1000))
def test_overlap_bridges_only_with_bins_that_keep_the_sum(overlap, order, seed):
    z, codes, weights, demand, _ = drawn(seed, n=50)
    demand = replace(demand, order=order)
    fineness = replace(demand.fineness(squares_of(z, codes, weights)), overlap=overlap)
    if fineness.is_bridged:
        off = bounds.moment_bin_error(order, 2.0**fineness.across, fineness.variance, n=9).max()
        assert off <= EPS / 8 * overlap * (1 + 1e-9)
    assert not replace(fineness, overlap=0.0).is_bridged


def test_what_a_part_knows_of_the_overlap_is_not_forgotten():
    demand = demand_for(np.arange(4.0), np.array([0, 1, 0, 1], dtype=np.int8), None)
    first, second = Sketch(demand, overlap=0.1), Sketch(demand, overlap=0.3)
    first += second
    assert first.overlap == 0.3


def test_a_sample_that_shows_next_to_nothing_costs_some_bins_and_no_more():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=150_000).astype(np.int8)
    z = rng.normal(size=150_000) + 0.5 * codes
    sizes = []
    for guessed in (2.0**60, 1e-3, 1e-9):  # narrower than the range of all points by that
        demand = demand_for(z, codes, None, guessed=(2.0 ** math.floor(math.log2(guessed)),) * 2)
        sizes.append(sum(map(len, Sketch.of(demand, z, codes, None).cells)))
    assert sizes[0] < sizes[1] == sizes[2] < 40 * sizes[0]


# ------------------------------------------------------------------------------------------------------------- sums


class _InParts(Rows):
    """Rows whose every pass is dear, in parts."""

    remembers, sketches = False, True
    parts = None

    def sketch(self, v, demand):
        return sketched(demand, self.project(v), self.codes, self.weights, self.parts)


V = np.array([1.0, 0.0])


def rows_of(kind, z, codes, weights, parts=None):
    """Rows with the points along V, and noise across."""
    rows = kind(np.column_stack([z, np.random.default_rng(0).normal(size=len(z))]), codes, weights)
    rows.parts = parts
    return rows


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 3.0]), st.sampled_from([1e-3, 1e-6, 1e-8]))
def test_sums_hold_what_they_promise_in_whatever_parts_rows_come(seed, gamma, eps):
    z, codes, weights, _, parts = drawn(seed, n=300)
    exact = ExactDivergence(rows_of(Rows, z, codes, weights), gamma).evaluate(V)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "_FEW_POINTS", 20)
        found = BinnedDivergence(rows_of(_InParts, z, codes, weights, parts), gamma, eps).evaluate(V)
    rounding = 1e-9 * max(1.0, abs(exact.divergence))
    assert found.error <= eps
    assert abs(found.divergence - exact.divergence) <= found.error + rounding
    # A gradient has no certificate: it is as good as in memory.
    memory = BinnedDivergence(rows_of(Rows, z, codes, weights), gamma, eps).evaluate(V)
    size = max(1.0, np.abs(exact.gradient).max()) * max(1.0, np.abs(z).max())
    of_memory = np.abs(memory.gradient - exact.gradient).max()
    assert np.abs(found.gradient - exact.gradient).max() <= 3 * of_memory + 10 * eps * size + rounding


@pytest.mark.parametrize("apart", [0.3, 6.0, 300.0])
@pytest.mark.parametrize("n_parts", [1, 2, 9, 60])
def test_sums_are_those_of_memory_however_rows_are_divided(apart, n_parts, few):
    rng = np.random.default_rng(1)
    codes = rng.integers(2, size=3000).astype(np.int8)
    z = rng.normal(size=3000) + apart * codes
    weights = rng.exponential(size=3000)
    memory = BinnedDivergence(rows_of(Rows, z, codes, weights), 1.0, EPS).evaluate(V)
    parts = np.array_split(np.arange(3000), n_parts)
    found = BinnedDivergence(rows_of(_InParts, z, codes, weights, parts), 1.0, EPS).evaluate(V)
    assert found.divergence == pytest.approx(memory.divergence, rel=1e-12)
    size = max(1.0, np.abs(memory.gradient).max())
    # Along V it is zero, and what is left is the rounding of points 300 away times their weights.
    np.testing.assert_allclose(found.gradient, memory.gradient, rtol=0, atol=1e-9 * size)
    assert found.gradient[1] == pytest.approx(memory.gradient[1], rel=1e-11, abs=1e-11)


def test_the_same_parts_give_the_same_bits():
    z, codes, weights, demand, parts = drawn(3, n=3000)
    first, second = (sketched(demand, z, codes, weights, parts) for _ in range(2))
    for mine, theirs in zip(first.cells, second.cells, strict=True):
        assert pickle.dumps(mine) == pickle.dumps(theirs)


def test_rims_of_a_sketch_keep_to_the_width_that_is_asked_for():
    """Where all bins are ordinary ones, the gap would be bridged with those."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 1000).astype(np.int8)
    z = rng.random(2000) + 3 * codes
    demand = demand_for(z, codes, None)
    divergence = BinnedDivergence(Rows(z[:, None].copy(), codes), 1.0, EPS)
    layout, _ = divergence._guess(np.ones(1), kernels.AS_THEY_ARE)
    found = sketched(demand, z, codes, None, np.array_split(rng.permutation(2000), 5))
    x, y = (found.bins(c, layout.widths[c], 8) for c in (0, 1))
    variance = sum(demand.variances(squares_of(z, codes, None)))
    rims, bins = rims_in(found, replace(layout, origin=0.0), x, y, variance, demand.exponents, EPS)
    asked = bounds.rim_bin_width(8, variance, 2.1, EPS)
    assert asked / 8 < rims.width <= asked
    assert 0 < sum(moments[:, 0].sum() for moments in bins.moments) < 1000
    # Nothing may be missing where bins happen to be wider than that.
    found.cells = [cells.raised(np.full(len(cells), -5)) for cells in found.cells]
    rims, wide = rims_in(found, replace(layout, origin=0.0), x, y, variance, demand.exponents, EPS)
    assert rims.width == 2.0**-5 > asked
    for narrow, moments in zip(bins.moments, wide.moments, strict=True):
        assert moments[:, 0].sum() >= narrow[:, 0].sum()


def test_cells_join_with_all_that_lie_in_the_same_bins():
    cells = Cells(np.array([-2, -1, -2, 3]), np.array([1, 1, 7, 0]), np.eye(4, 8) + 1)
    found = cells.around(np.array([True, False, False, False]), 0)
    assert (list(found.levels), list(found.keys)) == ([0], [0])
    assert found.moments[0, 0] == cells.moments[:2, 0].sum()  # the wide one is left out, and another bin
