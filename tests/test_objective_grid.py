"""Rows for the search: the divergence on a grid and its gradient, by weights as by copies, whatever their order."""

import numpy as np
import pytest

from melc.data.memory import MemoryRows
from melc.objective.grid import GridRows
from melc.objective.penalised import PairwiseDivergence
from melc.sums import Exact


def drawn(n=400, d=5, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    codes = (rng.random(n) < 0.4).astype(np.int8)
    X = rng.normal(size=(n, d)) * (1 + 0.5 * codes[:, None])
    X[:, 0] += codes
    return X, codes, rng.exponential(size=n) if weighted else None


def as_they_are(X, codes, weights=None):
    return GridRows(MemoryRows(X, codes, weights), lambda some: some, X.shape[1])


def directions(d, n=5):
    return [v / np.linalg.norm(v) for v in np.random.default_rng(1).normal(size=(n, d))]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_value_and_gradient_are_near_the_exact_ones(gamma, weighted):
    X, codes, weights = drawn(weighted=weighted)
    rows, exact = as_they_are(X, codes, weights), PairwiseDivergence(MemoryRows(X, codes, weights), gamma, Exact())
    for v in directions(5):
        value, gradient = rows.evaluate(v, gamma)
        expected = exact.evaluate(v)
        assert value == pytest.approx(expected.divergence, abs=3e-4)
        np.testing.assert_allclose(gradient, expected.gradient, rtol=0, atol=5e-3)
        assert gradient.dtype == np.float64


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_its_own_value(weighted):
    """By long steps, for the value is in single precision, along directions across v and along it."""
    X, codes, weights = drawn(weighted=weighted)
    rows, h = as_they_are(X, codes, weights), 2e-3
    for v in directions(5):
        _, gradient = rows.evaluate(v, 1.0)
        for e in np.eye(5):
            one, two = (rows.evaluate(v + k * h * e, 1.0)[0] - rows.evaluate(v - k * h * e, 1.0)[0] for k in (1, 2))
            assert gradient @ e == pytest.approx((8 * one - two) / (12 * h), abs=3e-3)
        assert gradient @ v == pytest.approx(0, abs=3e-3)  # D does not depend on the length of v


def test_weights_count_as_copies():
    X, codes, _ = drawn()
    copies = np.random.default_rng(0).integers(1, 4, len(codes))
    weighted = as_they_are(X, codes, copies.astype(float))
    repeated = as_they_are(np.repeat(X, copies, axis=0), np.repeat(codes, copies))
    np.testing.assert_array_equal(weighted.totals, repeated.totals)
    for v in directions(5):
        (value, gradient), (other, expected) = weighted.evaluate(v, 1.0), repeated.evaluate(v, 1.0)
        assert value == pytest.approx(other, abs=2e-6)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-5)


def test_weights_of_one_are_no_weights():
    X, codes, _ = drawn()
    plain, ones = as_they_are(X, codes), as_they_are(X, codes, np.ones(len(codes)))
    for v in directions(5):
        assert plain.evaluate(v, 1.0)[0] == ones.evaluate(v, 1.0)[0]


@pytest.mark.parametrize("n", [7, 1023, 1024, 1025, 3000])
def test_rows_are_sorted_by_class_and_prepared_a_few_at_a_time(n):
    X, codes, weights = drawn(n=n, weighted=True)
    codes[:2] = 0, 1
    seen = []

    def prepare(some):
        seen.append(len(some))
        return 2 * some[:, :3]

    rows = GridRows(MemoryRows(X, codes, weights), prepare, 3)
    order = np.concatenate([np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)])
    np.testing.assert_array_equal(rows.columns, (2 * X[order, :3]).astype(np.float32).T)
    np.testing.assert_array_equal(rows.weights, weights[order].astype(np.float32))
    assert rows.n_first == np.sum(codes == 0)
    assert (rows.n_rows, sum(seen)) == (n, n)
    assert max(seen) <= 1024
    np.testing.assert_allclose(rows.totals, [weights[codes == c].sum() for c in (0, 1)])


def test_where_the_grid_does_not_do_there_is_no_value_and_no_warning():
    """The gradient is then not made of what memory happens to hold."""
    X, codes, _ = drawn(n=3000)
    X[:, 0] += 1e3 * codes
    rows = as_they_are(X, codes)
    np.full(3000, 3e38, dtype=np.float32).sum(dtype=np.float64)  # memory that the next array may get
    value, gradient = rows.evaluate(np.eye(5)[0], 1.0)
    assert np.isnan(value)
    assert np.all(np.isnan(gradient) | (gradient == 0))
