"""Densities from passes that keep next to nothing: those of all points, wherever stretches and segments end."""

import math

import numpy as np
import pytest

import naive
from melc.data import memory as rows
from melc.data.memory import MemoryRows
from melc.data.summary import KEPT_AT_EACH_END, Ends
from melc.model import condensing
from melc.model.condensing import densities_along


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
    monkeypatch.setattr(condensing, "SURELY_MANY", 1000)
    monkeypatch.setattr(rows, "_FEW_ROWS", 500)
    monkeypatch.setattr(rows, "_STRETCH", 700)
    monkeypatch.setattr(rows, "_SEGMENT_ROWS", 3000)


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
    ends = Ends()
    for a in range(0, 3000, 123):
        ends = ends.with_points(z[a : a + 123], weights[a : a + 123])
    whole = Ends().with_points(z, weights)
    support = np.unique(z)
    for atoms, same, expected in (
        (ends.lowest, whole.lowest, support[: KEPT_AT_EACH_END + 1]),
        (ends.highest, whole.highest, support[-KEPT_AT_EACH_END - 1 :]),
    ):
        np.testing.assert_array_equal(atoms.points, expected)
        np.testing.assert_allclose(atoms.weights, [weights[z == t].sum() for t in expected])
        np.testing.assert_array_equal(atoms.weights, same.weights)
