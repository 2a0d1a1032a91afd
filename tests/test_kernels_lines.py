"""The kernels of lines beside direct sums over the rows: densities, likelihood without each row, angles, pairs."""

import math
from dataclasses import replace

import numpy as np
import pytest

import naive
from melc import kernels
from melc.fit.evidence import Standing
from melc.kernels.lines import sum_logs


def two_classes(kind, n, seed=0):
    rng = np.random.default_rng([n, seed])
    codes = (np.arange(n) % 2).astype(np.int8)
    z = {
        "normal": lambda: rng.normal(size=n) + 1.5 * codes,
        "cauchy": lambda: rng.standard_cauchy(n),
        "log-normal": lambda: np.exp(2 * rng.normal(size=n)),
        "uniform": lambda: rng.random(n),
        "ties": lambda: rng.integers(0, 4, n).astype(float),
        "binary": lambda: rng.integers(0, 2, n).astype(float),
        "outlier": lambda: np.where(np.arange(n) == 3, 1e6, rng.normal(size=n)),
        "one class is a point": lambda: np.where(codes == 1, rng.normal(size=n), 0.3),
        "far away": lambda: 1e9 + rng.normal(size=n) + codes,
        "smallest units": lambda: 1e-150 * rng.normal(size=n),
        "largest units": lambda: 1e150 * rng.normal(size=n),
    }[kind]()
    return z, codes


KINDS = [
    "normal",
    "cauchy",
    "log-normal",
    "uniform",
    "ties",
    "binary",
    "outlier",
    "one class is a point",
    "far away",
    "smallest units",
    "largest units",
]


def prospect_of(codes, gamma, weighted=False, explained=True):
    """Rows that some lines explain in part, perhaps of several copies."""
    rng = np.random.default_rng(0)
    standing = Standing(codes, rng.uniform(0.5, 3, len(codes)) if weighted else None, gamma)
    if explained:
        standing.log_odds = rng.normal(size=len(codes))
    return standing.prospect()


def gains_of(z, prospect):
    """What the line adds to the log-odds of each row: it follows from the likelihood if only this row counts."""
    alone = (replace(prospect, targets=target) for target in np.eye(len(z)))
    likelihoods = np.array([each.likelihood(z) for each in alone])
    margins = -np.log(np.expm1(-likelihoods))
    return np.where(prospect.codes == 1, margins, -margins) - prospect.log_odds


def grid_of(z, codes, prospect):
    """The nodes of the curve, the densities there, and σ."""
    table = np.empty((kernels.TABLE_ROWS, kernels.MOST_NODES))
    arguments = prospect.masses, prospect.factor, prospect.pseudo_mass
    low, step, _, left, right, deviation = kernels.line_densities(z, codes, *arguments, table)
    nodes = np.arange(left, right + 1)
    return low + step * nodes, table[:2, nodes], deviation


def errors_of_grid(z, codes, n, gamma):
    """The largest errors of the densities, in units of their peak, and of the curve."""
    prospect = prospect_of(codes, gamma, weighted=n == 40, explained=n != 8)
    places, densities, deviation = grid_of(z, codes, prospect)
    guide = naive.line_guide(z, codes, prospect.masses, prospect.factor, prospect.pseudo_mass)
    assert deviation == pytest.approx(float(guide.deviation), rel=1e-12)
    exact = naive.line_densities(places, z, codes, prospect.masses, prospect.factor)
    b = float(guide.background)
    curve, exact_curve = (np.log((second + b) / (first + b)) for first, second in (densities, exact))
    return np.abs(densities - exact).max() / exact.max(), np.abs(curve - exact_curve).max()


# --------------------------------------------------------------------------------------------- densities, likelihood


@pytest.mark.parametrize("gamma", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [8, 40, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_the_grid_is_near_the_direct_sums(kind, n, gamma):
    """Cells of 0.4 bandwidths: densities to two hundredths of their peak, curves to about a tenth.

    How near depends on where rows lie between the nodes, so the largest errors of several data sets are averaged.
    """
    errors = [errors_of_grid(*two_classes(kind, n, seed), n, gamma) for seed in range(6)]
    of_densities, of_curves = np.mean(errors, axis=0)
    assert of_densities <= 0.02
    # Measured: 0.1094 if one class is a point, at most 0.0373 elsewhere.
    assert of_curves <= (0.11 if kind == "one class is a point" else 0.05)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [8, 40, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_left_out_of_its_own_density(kind, n, gamma):
    """Also rows beyond the ends of the curve, from where they are hardly felt."""
    z, codes = two_classes(kind, n)
    prospect = prospect_of(codes, gamma, weighted=n == 40, explained=n != 8)
    found, gains = prospect.likelihood(z), gains_of(z, prospect)
    places, *_ = grid_of(z, codes, prospect)
    ends = places[0], places[-1]
    exact = naive.line_gains(z, codes, prospect.masses, prospect.own, prospect.factor, prospect.pseudo_mass, ends)
    assert np.abs(gains - exact).max() <= (0.4 if kind == "one class is a point" else 0.13)
    assert found == pytest.approx(naive.likelihood(codes, prospect.targets, prospect.log_odds + gains), abs=1e-12)
    # Errors of single rows have both signs; most are far smaller than the largest.
    assert found == pytest.approx(naive.likelihood(codes, prospect.targets, prospect.log_odds + exact), abs=0.015)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("n", [8, 40, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_a_direction_and_its_opposite_are_worth_the_same(kind, n, gamma):
    """The grid of −z is the mirror image of that of z, also with the classes exchanged."""
    z, codes = two_classes(kind, n)
    prospect = prospect_of(codes, gamma, weighted=n == 40, explained=False)
    exchanged = prospect_of(1 - codes, gamma, weighted=n == 40, explained=False)
    found = prospect.likelihood(z)
    allowed = 1e-5 if kind == "far away" else 1e-10
    assert prospect.likelihood(-z) == pytest.approx(found, abs=allowed)
    assert exchanged.likelihood(-z) == pytest.approx(found, abs=allowed)


def test_few_rows_lie_beyond_the_ends_of_a_curve():
    z, codes = two_classes("cauchy", 400)
    prospect = prospect_of(codes, 1.0)
    places, *_ = grid_of(z, codes, prospect)
    cell = places[1] - places[0]
    for beyond in (z < places[0] - cell, z > places[-1] + cell):
        assert 0 < prospect.masses[beyond].sum() <= prospect.pseudo_mass


@pytest.mark.parametrize("z", [np.full(8, 3.0), np.full(8, 1e9), np.zeros(8), np.arange(8) % 2 * 1.0])
def test_rows_that_do_not_vary_within_their_classes(z):
    codes = (np.arange(8) % 2).astype(np.int8)
    prospect = prospect_of(codes, 1.0, explained=False)
    gains = gains_of(z, prospect)
    assert np.isfinite(prospect.likelihood(z))
    assert np.isfinite(gains).all()
    if z[0] == z[1]:
        np.testing.assert_allclose(gains, 0, atol=1.0)  # but for the row left out, both classes are the same
    else:
        assert np.all(gains * np.where(codes, 1, -1) > 0.5)


@pytest.mark.parametrize("gamma", [1e-15, 1.0])
@pytest.mark.parametrize("z", [np.full(8, -6.9e8), np.full(8, 1e150), np.full(8, 3e-150), 1e9 + np.arange(8) * 1.2e-7])
def test_nodes_ascend_where_floats_are_farther_apart_than_bandwidths(z, gamma):
    codes = (np.arange(8) % 2).astype(np.int8)
    prospect = prospect_of(codes, gamma, explained=False)
    places, densities, _ = grid_of(z, codes, prospect)
    assert np.all(np.diff(places) > 0)
    assert np.isfinite(densities).all()
    assert np.isfinite(prospect.likelihood(z))


def test_copies_of_a_row_know_of_each_other():
    """A row of weight three leaves out one of its copies, as each of three rows does."""
    z, codes = two_classes("normal", 60)
    times = np.random.default_rng(1).integers(1, 4, 60)
    weighted = Standing(codes, times.astype(float), 1.0).prospect()
    repeated = Standing(np.repeat(codes, times), None, 1.0).prospect()
    several = np.repeat(z, times)
    assert weighted.likelihood(z) == pytest.approx(repeated.likelihood(several), rel=1e-12)
    np.testing.assert_allclose(np.repeat(gains_of(z, weighted), times), gains_of(several, repeated), atol=1e-12)


def test_rows_of_which_the_lines_so_far_are_certain():
    """Odds beyond the largest float would make the likelihood infinite, and no two lines could be compared."""
    z, codes = two_classes("normal", 60)
    standing = Standing(codes, None, 1.0)
    standing.log_odds = np.where(np.arange(60) < 5, -1.0, 1.0) * np.where(codes == 1, 1e4, -1e4)
    assert np.isfinite(standing.prospect().likelihood(z))


def test_sums_of_logarithms():
    rng = np.random.default_rng(0)
    x = np.concatenate([1 + rng.random(500), 10.0 ** rng.uniform(-300, 300, 500), [1.0, 0.5**0.5, 2**0.5, 2.0, 1e308]])
    weights = rng.random(len(x))
    assert sum_logs(x.copy(), weights) == pytest.approx(weights @ np.log(x), rel=1e-13)
    for value in x:
        assert sum_logs(np.array([value]), np.ones(1)) == pytest.approx(np.log(value), rel=1e-14, abs=1e-15)


# ------------------------------------------------------------------------------------------------------- angles, pairs


@pytest.mark.parametrize("correlation", [0.0, 0.6, -0.95, 1.0])
def test_the_best_angle_in_the_plane_of_two_features(correlation):
    rng = np.random.default_rng(3)
    codes = (np.arange(60) % 2).astype(np.int8)
    x = rng.normal(size=60) + codes
    y = correlation * x + math.sqrt(1 - correlation**2) * rng.normal(size=60)
    prospect, ridge = prospect_of(codes, 1.0), 0.01

    def value(angle):
        weights = naive.plane_weights(angle, correlation)
        return prospect.likelihood(weights[0] * x + weights[1] * y) - ridge * np.sum(weights**2)

    best, angle = naive.angles(8, 4, value)
    found, *weights = kernels.best_angle(x, y, correlation, ridge, *prospect.arguments, 8, 4)
    assert found == pytest.approx(best, abs=1e-9)
    np.testing.assert_allclose(weights, naive.plane_weights(angle, correlation), atol=1e-9)


def test_quick_gains_of_pairs():
    rng = np.random.default_rng(4)
    X, residuals, curvatures = rng.standard_t(2, size=(5, 80)), rng.normal(size=80), rng.random(80)
    features = np.array([0, 2, 3])
    gains = np.zeros((3, 3))
    kernels.pair_gains(X, features, residuals, curvatures, 0.5, gains)
    for p in range(3):
        for q in range(3):
            pair = X[features[p]], X[features[q]]
            expected = 0.0 if p == q else naive.pair_gain(*pair, residuals, curvatures, 0.5)
            assert gains[p, q] == pytest.approx(expected, rel=1e-12)
