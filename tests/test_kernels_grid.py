"""The divergence on a grid: that of its slow twin, smooth, near the exact one; and products that take four columns."""

import math

import numpy as np
import pytest

import naive
from melc import kernels
from melc.data.memory import MemoryRows
from melc.fit import validation
from melc.fit.density import Density, gauss_nodes, search_grid, thinned
from melc.objective.base import silverman_factor
from melc.objective.penalised import PairwiseDivergence
from melc.sums import Exact
from test_objective_moments import CHARACTERS, _draw


def drawn(character, seed, n):
    """Points as the search sees them: around zero, of about unit size, those of class 0 first."""
    z, codes, weights, gamma = _draw(character, seed, n)
    order = np.argsort(codes, kind="stable")
    z, codes, weights = z[order], codes[order], None if weights is None else weights[order]
    z = z - np.average(z, weights=weights)
    return z / math.sqrt(np.average(z**2, weights=weights)), codes, weights, gamma


def grid(z, codes, weights=None, gamma=1.0, dtype=np.float64):
    """D by the kernel, and the weight of every point in its gradient."""
    mass = np.ones(len(z)) if weights is None else weights
    totals = np.array([mass[codes == c].sum() for c in (0, 1)])
    factors = np.array([silverman_factor(total, gamma) for total in totals])
    w = np.zeros(len(z), dtype)
    n_x = int(np.sum(codes == 0))
    return float(kernels.grid_divergence(z.astype(dtype), n_x, mass.astype(dtype), totals, factors, w)), w


def exact(z, codes, weights, gamma):
    return (
        PairwiseDivergence(MemoryRows(z[:, None].copy(), codes, weights), gamma, Exact())
        .evaluate(np.ones(1))
        .divergence
    )


# ------------------------------------------------------------------------------------------------- its slow twin


@pytest.mark.parametrize("character", CHARACTERS)
def test_the_grid_is_that_of_its_slow_twin(character):
    """Also in single precision, and it hands over at the same points. The twin leaves no pair out."""
    for seed in range(6):
        z, codes, weights, gamma = drawn(character, seed, (40, 100, 300)[seed % 3])
        twin = naive.GridDivergence(z, codes, gamma, weights)
        found, w = grid(z, codes, weights, gamma)
        assert found == pytest.approx(twin(z), abs=1e-6, nan_ok=True), seed
        if not math.isnan(found):
            assert grid(z, codes, weights, gamma, np.float32)[0] == pytest.approx(found, abs=2e-4), seed
            some = np.unique(np.linspace(0, len(z) - 1, 5).astype(int))
            slopes = [twin.slope(i) for i in some]
            np.testing.assert_allclose(w[some], slopes, rtol=0, atol=1e-6 * (1 + np.abs(w).max()), err_msg=str(seed))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_translation_and_a_stretch_change_nothing(dtype):
    z, codes, weights, gamma = drawn("weighted", 0, 500)
    found, w = grid(z, codes, weights, gamma, dtype)
    assert abs(w.sum()) < 1e-4  # ∂D by a translation
    assert abs(w @ z) < 2e-3  # and by a stretch: the cells follow it, their error does not
    for moved in (2.0 * z, 0.25 * z):
        assert grid(moved, codes, weights, gamma, dtype)[0] == pytest.approx(found, abs=1e-12)


# ------------------------------------------------------------------------------------------------ the exact value

# Largest error that was seen, over all characters and bandwidths: 1.6e-3, for clusters that overlap by their tails.
WORST = 2e-3
# For classes that do overlap, by the number of rows.
ORDINARY = {50: 2e-4, 100: 1e-4, 300: 3e-5, 1000: 1e-5, 5000: 2e-6}


@pytest.mark.parametrize("n", [50, 100, 300, 1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_the_error_of_the_grid(n):
    for character in CHARACTERS:
        for seed in range(12 if n < 5000 else 4):
            z, codes, weights, gamma = drawn(character, seed, n)
            found = grid(z, codes, weights, gamma, np.float32)[0]
            assert math.isnan(found) or abs(found - exact(z, codes, weights, gamma)) < WORST, (character, seed)


@pytest.mark.parametrize("n", ORDINARY)
def test_the_error_of_the_grid_on_ordinary_data(n):
    rng = np.random.default_rng(n)
    for apart in (0, 0.5, 1, 2, 4):
        codes = np.sort(rng.integers(2, size=n)).astype(np.int8)
        z = rng.normal(size=n) * (1 + codes) + apart * codes
        z = (z - z.mean()) / z.std()
        assert grid(z, codes, dtype=np.float32)[0] == pytest.approx(exact(z, codes, None, 1.0), abs=ORDINARY[n]), apart


HANDED_OVER = {
    "classes far apart": lambda z, codes: z + 30 * codes,
    "a class that is a point": lambda z, codes: np.where(codes, z, 0.25),
    "a class that is a point at zero": lambda z, codes: np.where(codes, z, 0.0),
    "both": lambda z, codes: codes - 0.5,
    "all points in one place": lambda z, codes: 0.0 * z,
    "an outlier": lambda z, codes: np.where(np.arange(len(z)) == 3, 1e6, z),
    "tails": lambda z, codes: np.sinh(6 * z),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", HANDED_OVER)
def test_a_grid_hands_over(kind, dtype):
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200).astype(np.int8)
    z = rng.normal(size=400)
    assert not math.isnan(grid(z, codes, dtype=dtype)[0])
    assert math.isnan(grid(HANDED_OVER[kind](z, codes), codes, dtype=dtype)[0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1e15, 1e20, 1e37])
def test_a_grid_hands_over_where_single_precision_ends(size, weighted):
    """Their squares, or the weighted sums of them, are infinite, and so would be the cells."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200).astype(np.int8)
    z = size * rng.normal(size=400)
    found = grid(z, codes, np.full(400, 1e12) if weighted else None, dtype=np.float32)[0]
    assert math.isnan(found) or found == pytest.approx(grid(z / size, codes, None)[0], abs=1e-3)


# ---------------------------------------------------------------------------------------------------- smoothness


def test_value_gradient_and_curvature_are_continuous_where_a_point_crosses_into_the_next_cell():
    z, codes, _, _ = drawn("normal", 1, 60)
    twin = naive.GridDivergence(z, codes)
    i = int(np.argsort(z)[30])  # not one at the ends, to which the cells are tied
    border = twin.origin + twin.width * (math.floor((z[i] - twin.origin) / twin.width) + 1)
    delta = 1e-5 * twin.width

    def at(place):
        moved = z.copy()
        moved[i] = place
        value, w = grid(moved, codes)
        return value, w[i]

    # The cells are a little wider when the point is elsewhere, so the border is looked for.
    low, high = border - twin.width, border + twin.width
    for _ in range(60):
        middle = (low + high) / 2
        moved = np.where(np.arange(len(z)) == i, middle, z)
        there = naive.GridDivergence(moved, codes)
        inside = math.floor((middle - there.origin) / there.width) <= math.floor((z[i] - twin.origin) / twin.width)
        low, high = (middle, high) if inside else (low, middle)
    places = low + delta * np.arange(-3, 4)
    values, slopes = (np.array(each) for each in zip(*map(at, places), strict=True))
    curvatures = np.diff(slopes) / delta
    np.testing.assert_allclose(np.diff(values) / delta, (slopes[1:] + slopes[:-1]) / 2, rtol=0, atol=2e-4)
    assert np.ptp(slopes) <= 10 * delta * np.abs(curvatures).max()
    assert np.ptp(curvatures) < 1e-3 * (1 + np.abs(curvatures).max())  # the third derivative jumps, this one does not


# ------------------------------------------------------------------------------------------- four columns at a time


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", range(1, 10))
def test_products_of_columns(n_features, dtype):
    rng = np.random.default_rng(n_features)
    X, v = rng.normal(size=(2500, n_features)).astype(dtype), rng.normal(size=n_features)
    XT, tolerance = np.ascontiguousarray(X.T), {"rtol": 0, "atol": 1e-4 if dtype == np.float32 else 1e-12}
    for start, stop in [(0, 2500), (0, 1024), (5, 6), (7, 1030), (1023, 2049), (9, 9)]:
        for narrow in (False, True):  # all in the type of X, or the vectors in double precision
            z, w = np.full(2500, 3.0), rng.normal(size=stop - start)
            gradient = np.ones(n_features)
            if narrow:
                z, w = z.astype(dtype), w.astype(dtype)
            kernels.project_columns(XT, v.astype(z.dtype), start, stop, z)
            kernels.pull_columns(XT, w, start, stop, gradient)
            np.testing.assert_allclose(z[: stop - start], X[start:stop].astype(float) @ v, **tolerance)
            assert np.all(z[stop - start :] == 3)
            np.testing.assert_allclose(gradient, 1 + X[start:stop].astype(float).T @ w, **tolerance)


@pytest.mark.parametrize("n_features", [3, 8])
def test_sums_over_columns_are_in_double_precision_where_the_weights_are(n_features):
    rng = np.random.default_rng(0)
    XT, w = rng.normal(size=(n_features, 5000)).astype(np.float32), rng.normal(size=5000)
    gradient = np.zeros(n_features)
    kernels.pull_columns(XT, w, 0, 5000, gradient)
    np.testing.assert_allclose(gradient, XT.astype(float) @ w, rtol=0, atol=1e-11)


# --------------------------------------------------------------------------- thresholds, densities, order of the rows


@pytest.mark.parametrize("kind", ["normal", "ties", "gaps", "one", "two"])
def test_points_are_thinned_as_one_by_one(kind):
    rng = np.random.default_rng(0)
    points = {
        "normal": rng.normal(size=500),
        "ties": np.round(rng.normal(size=500), 1),
        "gaps": rng.choice([-1e6, 0, 3.0], 500) + rng.normal(size=500),
        "one": np.zeros(1),
        "two": np.array([0.0, 1.0]),
    }[kind]
    points = np.sort(points)
    for step in (1e-9, 0.01, 0.1, 1.0, 1e9):
        np.testing.assert_array_equal(thinned(points, step), naive.thinned(points, step))


@pytest.mark.parametrize("n", [1, 2, 50, 2000])
@pytest.mark.parametrize("bandwidth", [1e-4, 0.1, 10.0])
def test_the_grid_for_thresholds_is_the_slow_one(n, bandwidth):
    rng = np.random.default_rng(n)
    supports = [np.unique(rng.normal(size=n) + 3 * c) for c in (0, 1)]
    found = search_grid(tuple(Density(s, np.full(len(s), 1 / len(s)), bandwidth**2) for s in supports))
    expected = naive.search_grid(supports, bandwidth)
    assert np.all(np.diff(found) > 0)
    # Points that rounding parts may be one or two there and here; every point of one has its like in the other.
    for mine, theirs in ((found, expected), (expected, found)):
        nearest = theirs[np.clip(np.searchsorted(theirs, mine), 1, len(theirs) - 1) - np.array([[0], [1]])]
        assert np.all(np.abs(nearest - mine).min(axis=0) <= 1e-15 * (10 + np.abs(mine)))
    assert abs(len(found) - len(expected)) <= 0.01 * len(expected)


def moments_of(points, weights):
    return np.array([np.sum(weights * points**j) for j in range(kernels.ORDER)])


def test_nodes_have_the_moments_of_the_points_of_their_bins():
    """Bins with one, two and three places among them, and with places that lie close together."""
    rng = np.random.default_rng(0)
    bins = [(rng.uniform(-1, 1, n), rng.exponential(size=n)) for n in (1, 2, 3, 4, 5, 40, 1, 3, 1000) for _ in range(5)]
    bins += [(np.array(places), np.ones(len(places))) for places in ([-1, 1], [0, 0], [1, 1, 1], [0.3, 0.3 + 1e-9])]
    bins += [(0.5 + 1e-3 * rng.normal(size=50), np.full(50, 1e-12)), (rng.choice([-1, 1], 50), np.full(50, 1e12))]
    moments = np.array([moments_of(*each) for each in bins])
    numbers, nodes, weights = gauss_nodes(moments)
    assert np.all(np.abs(nodes) <= 1)
    assert np.all(weights > 0)
    for k, (points, _) in enumerate(bins):
        mine = numbers == k
        assert 1 <= mine.sum() <= min(4, len(np.unique(points)))
        found = moments_of(nodes[mine], weights[mine])
        np.testing.assert_allclose(found, moments[k], rtol=0, atol=2e-6 * moments[k, 0], err_msg=str(k))


def test_bins_give_the_same_nodes_alone_and_together():
    rng = np.random.default_rng(1)
    moments = np.array([moments_of(rng.uniform(-1, 1, n), np.ones(n)) for n in (1, 2, 3, 4, 5, 6, 100)])
    numbers, nodes, weights = gauss_nodes(moments)
    for k, own in enumerate(moments):
        _, alone, masses = gauss_nodes(own[None])
        np.testing.assert_allclose(nodes[numbers == k], alone, rtol=0, atol=1e-12)
        np.testing.assert_allclose(weights[numbers == k], masses, rtol=1e-9)
    assert all(len(part) == 0 for part in gauss_nodes(np.zeros((0, kernels.ORDER))))


CANONICAL = {
    "no ties": lambda rng: rng.normal(size=(60, 3)),
    "ties in the first feature": lambda rng: np.column_stack([rng.integers(5, size=60), rng.normal(size=(60, 2))]),
    "equal rows": lambda rng: rng.integers(2, size=(60, 3)).astype(float),
    "a tie between classes": lambda rng: np.repeat(rng.normal(size=(30, 3)), 2, axis=0),
    "zeros of both signs": lambda rng: np.where(rng.random((60, 3)) < 0.5, 0.0, -0.0),
    "one feature": lambda rng: rng.normal(size=(60, 1)),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", CANONICAL)
def test_the_short_way_to_the_canonical_order_leads_where_the_long_one_does(kind, weighted):
    rng = np.random.default_rng(3)
    X, index = CANONICAL[kind](rng), np.arange(60) % 2
    weights = rng.exponential(size=60) if weighted else None
    expected = naive.canonical(X, index, np.ones(60) if weights is None else weights)
    for order in (np.arange(60), rng.permutation(60)):
        found = validation.canonical(X[order], index[order], None if weights is None else weights[order])
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-14)


def test_columns_of_the_same_values_are_told_apart_by_the_classes():
    """Two yes-or-no columns of which each has eight ones: only their classes differ."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(np.repeat([0.0, 1.0], 8)) for _ in range(4)])
    X = np.column_stack([X, np.full(16, -7e8)])  # rounding must not make a constant column vary
    codes, weights = np.arange(16) % 2, np.arange(1.0, 17.0)
    order, signs = validation.column_order(X, codes, weights)
    for _ in range(20):
        columns, rows, units = rng.permutation(5), rng.permutation(16), rng.choice([-3.7, 0.2, 1e9], size=5)
        for each in (codes, 1 - codes):
            found, turned = validation.column_order((X * units)[rows][:, columns], each[rows], weights[rows])
            np.testing.assert_array_equal(columns[found], order)
            varies = columns < 4  # the sign of a constant column does not matter
            np.testing.assert_array_equal((turned * np.sign(units)[columns])[varies], signs[columns][varies])
