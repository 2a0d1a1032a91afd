"""The double sum by every method: value, derivative, cost, and the error that ε allows."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import naive
from melc import bounds, information_potential, kernels
from melc.sums import Bin, Discard, Exact

EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5)  # the paper's
METHODS = {"exact": lambda eps: Exact(), "discard": Discard, "bin": Bin}


def points(most=40):
    return arrays(float, st.integers(1, most), elements=st.floats(-50, 50, width=32))


@given(points(), points(), st.floats(1e-3, 1e3))
@settings(max_examples=100)
def test_exact_is_the_double_sum(x, y, variance):
    method = Exact()
    sides = [method.prepare(p, np.ones(len(p)), label) for label, p in enumerate((x, y))]
    across = method.across(*sides, variance)
    true = naive.log_sum(x, y, variance)
    # A logarithm's relative error means nothing near zero: ε of the sum is ε on its logarithm.
    assert abs(across.log_value - true) <= 1e-12 * max(1, abs(float(true)))
    assert method.within(sides[0], variance).log_value == pytest.approx(
        float(naive.log_sum(x, x, variance)), rel=1e-12, abs=1e-12
    )


# ------------------------------------------------------------------- the error that the theorems promise


def clusters_at_bin_edges(rng, variance, eps):
    """Points a hair to either side of edges of bins, as Theorem 2 would lay them from zero."""
    width = bounds.bin_width(variance, eps)
    if not math.isfinite(width):
        width = math.sqrt(variance)
    # Half the points at one edge of a bin, half at the other: the most that means can be wrong. And farther
    # apart than a bin is wide, where bins too wide would still put them together.
    for stretch in (1 - 1e-9, 1.5, 2.0):
        halves = np.repeat([0.0, width * stretch], 5)
        yield halves, halves.copy()
    for n in (6, 25):
        edges = rng.integers(0, 6, size=(2, n)) * width
        x, y = edges + rng.choice([-1e-9, 0.0, 1e-9, -1e-3, 1e-3], size=(2, n)) * width
        x[0] = 0.0  # the anchor
        yield np.abs(x), np.abs(y)


def pairs_at_the_threshold(rng, variance, eps):
    """Every pair just inside or just outside Theorem 1's window."""
    T = bounds.discarding_threshold(variance, eps)
    yield np.zeros(8), T * (1 + rng.choice([-1e-9, 1e-9, 1e-3], size=8))
    yield np.zeros(8), np.full(8, np.nextafter(T, np.inf))
    yield np.array([0.0, 2 * T]), np.full(5, T * (1 + 1e-12))


def ties(rng, variance, eps):
    s = math.sqrt(variance)
    x = np.repeat(rng.normal(size=3) * s, 7)
    yield x, x.copy()
    yield np.zeros(9), np.zeros(4)
    yield rng.integers(-3, 4, 15) * s, rng.integers(-3, 4, 15) * s


def spread_out(rng, variance, eps):
    s = math.sqrt(variance)
    for scale in (0.1, 1, 10, 1000):
        yield rng.normal(size=12) * scale * s, rng.standard_t(1, size=9) * scale * s
    yield rng.random(30) * s, rng.random(20) * s + 3 * s
    yield np.array([0.0, 1e12 * s]), np.array([s, -1e9 * s])


CASES = {
    "edges": clusters_at_bin_edges,
    "window": pairs_at_the_threshold,
    "ties": ties,
    "spread": spread_out,
}
# Tiny and huge scales as well as those where ε matters: from all pairs kept to everything in one bin.
VARIANCES = (1e-24, 1e-10, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.16, 0.3, 0.6, 1.0, 4.0, 50.0, 1e3, 1e8, 1e20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("method", ["discard", "bin"])
def test_the_error_stays_below_eps(method, kind):
    """More than a thousand cases a method."""
    rng = np.random.default_rng(0)
    n_cases, worst = 0, 0.0
    for eps in EPSILONS:
        for variance in VARIANCES:
            rounding = 1e-12 / math.sqrt(2 * math.pi * variance)
            for x, y in CASES[kind](rng, variance, eps):
                error = abs(information_potential(x, y, variance, method=method, eps=eps) - naive.ip(x, y, variance))
                assert error <= eps + rounding
                worst = max(worst, error / eps)
                n_cases += 1
    assert n_cases >= 200
    assert worst > 1e-3  # the approximation approximates: this is no exact sum in disguise


@pytest.mark.parametrize("eps", EPSILONS)
def test_approximations_are_the_twins_of_theirs(eps):
    rng = np.random.default_rng(1)
    for variance in (1e-4, 0.01, 0.1, 0.5):
        for scale in (0.1, 0.5, 2):
            x, y = rng.normal(size=40) * scale, rng.normal(size=30) * scale + 0.2
            found = information_potential(x, y, variance, method="bin", eps=eps)
            assert found == pytest.approx(naive.binned_ip(x, y, variance, eps), rel=1e-10)
            expected = naive.discard_ip(x, y, variance, eps)
            if expected > 0:
                found = information_potential(x, y, variance, method="discard", eps=eps)
                assert found == pytest.approx(expected, rel=1e-10)


def test_an_empty_window_still_has_a_logarithm():
    """ε is absolute: for separated classes it allows ip(−,+) to be dropped, and log 0 would follow."""
    x, y = np.array([0.0, 0.1]), np.array([50.0, 50.3])
    assert naive.discard_ip(x, y, 0.01, 0.1) == 0
    method = Discard(0.1)
    sides = [method.prepare(p, np.ones(2), label) for label, p in enumerate((x, y))]
    found = method.across(*sides, 0.01)
    assert found.log_value == pytest.approx(float(naive.log_sum(x, y, 0.01)), rel=1e-8)
    assert np.all(np.isfinite(found.dx))


# ------------------------------------------------------------------------------------ derivatives and cost


@pytest.mark.parametrize("method", METHODS)
def test_derivatives_are_those_of_the_methods_own_sum(method):
    """Each point in turn is moved by so little that it changes neither bin nor window."""
    rng = np.random.default_rng(2)
    eps, variance, h = 0.05, 0.3, 1e-6
    x, y = rng.normal(size=15), rng.normal(size=12) + 0.5
    a, b = rng.uniform(0.2, 3, size=15), rng.uniform(0.2, 3, size=12)

    def across(x, y):
        chosen = METHODS[method](eps)
        return chosen.across(chosen.prepare(x, a, 0), chosen.prepare(y, b, 1), variance)

    def within(x):
        chosen = METHODS[method](eps)
        return chosen.within(chosen.prepare(x, a, 0), variance)

    found, own = across(x, y), within(x)
    # The smallest point anchors the bins: moving it moves them all, and that jump is no derivative.
    for i in [i for i in range(15) if method != "bin" or x[i] > min(x.min(), y.min())]:
        step = h * (np.arange(15) == i)
        slope = (across(x + step, y).log_value - across(x - step, y).log_value) / (2 * h)
        assert found.dx[i] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        slope = (within(x + step).log_value - within(x - step).log_value) / (2 * h)
        if method != "bin" or x[i] > x.min():
            assert own.dx[i] == pytest.approx(slope, rel=1e-6, abs=1e-8)
    for j in [j for j in range(12) if method != "bin" or y[j] > min(x.min(), y.min())]:
        step = h * (np.arange(12) == j)
        slope = (across(x, y + step).log_value - across(x, y - step).log_value) / (2 * h)
        assert found.dy[j] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_a_weight_counts_as_copies(method):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=20), rng.normal(size=25)
    a, b = rng.integers(1, 5, size=20), rng.integers(1, 5, size=25)

    def log_sums(x, a, y, b):
        chosen = METHODS[method](0.05)
        first, second = chosen.prepare(x, a * 1.0, 0), chosen.prepare(y, b * 1.0, 1)
        return chosen.across(first, second, 0.1).log_value, chosen.within(first, 0.1).log_value

    weighted = log_sums(x, a, y, b)
    repeated = log_sums(np.repeat(x, a), np.ones(a.sum()), np.repeat(y, b), np.ones(b.sum()))
    assert weighted == pytest.approx(repeated, rel=1e-12)


def test_exact_counts_symmetric_halves_once():
    rng = np.random.default_rng(4)
    method = Exact()
    x, y = (method.prepare(rng.normal(size=n), np.ones(n), c) for c, n in enumerate((30, 50)))
    assert method.within(x, 1.0).n_exponentials == 30 * 29 // 2
    assert method.across(x, y, 1.0).n_exponentials == 30 * 50


def test_approximations_count_what_they_evaluate():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=300), rng.normal(size=200) + 1
    variance, eps = 0.05, 0.05
    discard = Discard(eps)
    sides = [discard.prepare(p, np.ones(len(p)), c) for c, p in enumerate((x, y))]
    kept = naive.window(x, y, variance, eps)
    assert discard.across(*sides, variance).n_exponentials == kept.sum() < kept.size
    binned = Bin(eps)
    sides = [binned.prepare(p, np.ones(len(p)), c) for c, p in enumerate((x, y))]
    width, origin = bounds.bin_width(variance, eps), min(x.min(), y.min())
    bins = [len(np.unique(np.floor((p - origin) / width))) for p in (x, y)]
    assert binned.across(*sides, variance).n_exponentials == bins[0] * bins[1] < 0.2 * kept.size


def test_exact_takes_memory_for_points_not_pairs():
    """A table of these pairs would take 128 MB."""
    n = 4000
    rng = np.random.default_rng(6)
    method = Exact()
    side = method.prepare(rng.normal(size=n), np.ones(n), 0)
    method.within(side, 1.0)  # compile
    tracemalloc.start()
    method.within(side, 1.0)
    method.across(side, side, 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 8 * n


# ---------------------------------------------------------------------------------- the permutation kept


def test_discard_starts_from_the_order_it_found(monkeypatch):
    """Step by step of a slowly turning direction: no fresh sort, and few moves a point."""
    rng = np.random.default_rng(7)
    n = 2000
    X = rng.normal(size=(n, 3))
    moves, insertion_sort = [], kernels.insertion_sort

    def counted(values, order, budget):
        moves.append(insertion_sort(values, order, budget))
        return moves[-1]

    monkeypatch.setattr(kernels, "insertion_sort", counted)
    method = Discard(0.05)
    for angle in np.linspace(0, 0.01, 11):
        z = X @ [np.cos(angle), np.sin(angle), 0.5]
        side = method.prepare(z, np.ones(n), 0)
        np.testing.assert_array_equal(side.values, np.sort(z))
        np.testing.assert_array_equal(side.values, z[side.order])
    assert len(moves) == 10
    assert all(0 <= m < 2 * n for m in moves)


def test_discard_sorts_afresh_where_the_order_is_lost():
    rng = np.random.default_rng(8)
    method = Discard(0.05)
    for n in (500, 500, 300):  # other values, other sizes
        z = rng.normal(size=n)
        side = method.prepare(z, np.arange(1.0, n + 1), 0)
        np.testing.assert_array_equal(side.values, np.sort(z))
        np.testing.assert_array_equal(side.weights, np.arange(1.0, n + 1)[np.argsort(z)])


def test_classes_keep_separate_orders():
    rng = np.random.default_rng(9)
    method = Discard(0.05)
    x, y = rng.normal(size=100), rng.normal(size=100)
    for _ in range(2):
        for label, z in enumerate((x, y)):
            side = method.prepare(z, np.ones(100), label)
            np.testing.assert_array_equal(z[side.order], np.sort(z))
