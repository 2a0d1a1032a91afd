"""Densities from passes that keep next to nothing: those of all points, wherever stretches and segments end."""

import math

import numpy as np
import pytest

import naive
from melc.data import products
from melc.data.memory import MemoryRows
from melc.data.points import KEPT_AT_EACH_END, Gathered
from melc.fit import density as densities
from melc.fit.density import densities_along


def points(kind, rng, n):
    return {
        "normal": rng.normal(size=n),
        "tails": rng.standard_t(1.5, size=n),
        "grid": rng.integers(0, 400, size=n) / 10.0,
        "few values": rng.integers(0, 50, size=n) * 1.0,
        "two values": rng.integers(0, 2, size=n) * 1.0,
    }[kind]


@pytest.fixture
def short_stretches(monkeypatch):
    monkeypatch.setattr(densities, "_ALWAYS_CONDENSED", 1000)
    monkeypatch.setattr(products, "_STRETCH_ROWS", 700)
    monkeypatch.setattr(products, "SEGMENT_ROWS", 3000)


@pytest.mark.parametrize("kind", ["normal", "tails", "grid", "few values", "two values"])
def test_condensed_densities_are_those_of_all_points(kind, short_stretches):
    rng = np.random.default_rng(0)
    z, codes = points(kind, rng, 20_000), rng.integers(0, 2, 20_000).astype(np.int8)
    weights, v = rng.integers(1, 4, 20_000).astype(float), np.ones(1)
    here = MemoryRows(z[:, None].copy(), codes, weights, n_threads=2)
    summary = here.summarise(v)
    for c, (density, V) in enumerate(
        zip(densities_along(here, v, summary, (0.01 * np.var(z), 0.02 * np.var(z))), (0.01, 0.02), strict=True)
    ):
        mine, w = z[codes == c], weights[codes == c]
        mean = np.average(mine, weights=w)
        found = summary.classes[c]
        assert (found.weight, found.mean) == pytest.approx((w.sum(), mean), rel=1e-12, abs=1e-12)
        assert found.squares == pytest.approx(np.sum(w * (mine - mean) ** 2), rel=1e-12)
        assert np.all(np.diff(density.support) > 0)
        assert np.all(density.weights > 0)
        s = math.sqrt(V * np.var(z))
        at = np.concatenate(
            [rng.choice(mine, 100) + s * rng.normal(size=100), [mine.min() - 3 * s, mine.max() + 3 * s]]
        )
        full = naive.log_density(at, mine, s * s, w, rows_at_once=10)
        assert np.max(np.abs(np.exp(density.log(at)) - np.exp(full))) * s < 1e-10
        assert np.max(np.abs(density.log(at[-2:]) - full[-2:])) < 1e-9  # next to the data also relative to itself
    here.close()


def test_counts_are_those_of_the_intervals(short_stretches):
    rng = np.random.default_rng(1)
    z, codes, weights = rng.normal(size=5000), rng.integers(0, 2, 5000).astype(np.int8), rng.uniform(size=5000)
    thresholds = np.array([-1.0, 0.2, z[7]])
    found = MemoryRows(z[:, None].copy(), codes, weights).count(np.ones(1), np.sort(thresholds))
    interval = np.searchsorted(np.sort(thresholds), z, side="right")
    expected = [[weights[(interval == i) & (codes == c)].sum() for c in (0, 1)] for i in range(4)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("least", [-9.0, 0.0])
def test_ends_are_the_outermost_points_with_all_their_weight(least):
    """With half of the points at the lowest place, the lowest points are few places."""
    rng = np.random.default_rng(2)
    z, weights = np.maximum(np.round(rng.normal(size=3000), 2), least), rng.uniform(size=3000)
    parts, whole = Gathered(), Gathered()
    for a in range(0, 3000, 123):
        parts.add_to_ends(0, z[a : a + 123], weights[a : a + 123])
    whole.add_to_ends(0, z, weights)
    support = np.unique(z)
    for atoms, same, expected in (
        (parts.lowest[0], whole.lowest[0], support[: KEPT_AT_EACH_END + 1]),
        (parts.highest[0], whole.highest[0], support[-KEPT_AT_EACH_END - 1 :]),
    ):
        np.testing.assert_array_equal(atoms.points, expected)
        np.testing.assert_allclose(atoms.weights, [weights[z == t].sum() for t in expected])
        np.testing.assert_array_equal(atoms.weights, same.weights)


@pytest.mark.slow
@pytest.mark.parametrize("narrow_class", [0, 1])
@pytest.mark.parametrize("narrow", [1e-3, 1e-7])
def test_a_narrow_class_beside_a_wide_one_far_from_zero(narrow, narrow_class):
    """Bins are looked up by arithmetic with the widths of both classes, which is exact for powers of two only.

    With other widths the density of the wide class was off by 3e-5 of its height.
    """
    rng = np.random.default_rng(3)
    codes = (np.arange(140_000) % 2).astype(np.int8)
    z = 1e5 + rng.normal(size=140_000) * np.where(codes == narrow_class, narrow, 1.0)
    rows, v = MemoryRows(z[:, None].copy(), codes), np.ones(1)
    assert min(rows.counts) > densities._ALWAYS_CONDENSED
    bandwidths = [0.1 * np.std(z[codes == c]) for c in (0, 1)]
    found = densities_along(rows, v, rows.summarise(v), (bandwidths[0] ** 2, bandwidths[1] ** 2))
    for c, (density, s) in enumerate(zip(found, bandwidths, strict=True)):
        mine = z[codes == c]
        assert len(density.support) < len(mine) / 10
        at = rng.choice(mine, 60) + s * rng.normal(size=60)
        full = np.exp(naive.log_density(at, mine, s * s, rows_at_once=10))
        off = np.abs(np.exp(density.log(at)) - full).max() / full.max()
        # A narrow kernel is some hundred steps between numbers wide, and its support points are numbers.
        assert off < (1e-10 if c != narrow_class else 0.1 * np.spacing(1e5) / s)
