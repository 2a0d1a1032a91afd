"""Samples by contents: in proportion to weights, the same for any order, storage and repetition of the rows."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.random import RandomState
from scipy import sparse

from melc.data import hashing
from melc.data.hashing import RowHashes, hashes_of, merge_equal_rows
from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample, samples_of_classes
from melc.fit import intake

FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


def make(n=5_000, d=3):
    """Rows of which some are equal, with zeros of either sign among their numbers."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, d)), 1)
    return X, rng.integers(2, size=n).astype(np.int8), rng.integers(1, 5, size=n).astype(float)


def drawn(X, codes, weights=None, size=500, seed=0):
    return draw_sample(MemoryRows(X, codes, weights), size, np.random.RandomState(seed))


def assert_same(found, expected):
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_allclose(found.all_weights(), expected.all_weights(), rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_hashes_tell_rows_apart_and_do_not_depend_on_how_they_are_stored(form):
    X, *_ = make()
    found = hashes_of(FORMS[form](X))
    np.testing.assert_array_equal(found, hashes_of(X))
    _, which = np.unique(X + 0.0, axis=0, return_inverse=True)
    assert len(np.unique(found)) == which.max() + 1 == len(np.unique(np.column_stack([found, which]), axis=0))


def test_hashes_tell_features_apart():
    X = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [1.0, 2.0, 1e-300], [-1.0, -2.0, 0.0]])
    assert len(np.unique(hashes_of(X))) == 5
    np.testing.assert_array_equal(hashes_of(X.astype(np.float32)[:3]), hashes_of(X)[:3])


def test_a_sample_depends_on_neither_order_nor_repetition():
    X, codes, weights = make()
    expected = drawn(X, codes, weights)
    order = np.random.default_rng(1).permutation(len(codes))
    assert_same(drawn(X[order], codes[order], weights[order]), expected)
    copies = np.repeat(np.arange(len(codes)), weights.astype(int))
    assert_same(drawn(X[copies], codes[copies]), expected)
    assert_same(drawn(X[copies[::-1]], codes[copies[::-1]]), expected)
    joined = merge_equal_rows(X, codes, weights, 0)
    assert len(joined[1]) < len(codes)
    assert_same(draw_sample(MemoryRows(*joined[:3]), 500, np.random.RandomState(0)), expected)


@pytest.mark.parametrize("canonical", [False, True])
def test_the_same_rows_are_drawn_with_the_classes_exchanged(canonical):
    X, codes, weights, _ = merge_equal_rows(*make(), 0)
    pair = []
    for each in (codes, 1 - codes):
        order = np.argsort(each, kind="stable") if canonical else np.arange(len(codes))
        hashes = RowHashes(X[order], weights[order], canonical=canonical)
        pair.append(draw_sample(MemoryRows(X[order], each[order], weights[order], hashes=hashes), 500, RandomState(0)))
    for c in (0, 1):
        found, expected = pair[1].members(1 - c), pair[0].members(c)
        np.testing.assert_array_equal(pair[1].X[found], pair[0].X[expected])
        np.testing.assert_array_equal(pair[1].all_weights()[found], pair[0].all_weights()[expected])


@pytest.mark.parametrize("size", [1_000, 50_000])
def test_without_repetitions_rows_are_in_one_order(size):
    X, codes, weights = make()
    order = np.random.default_rng(1).permutation(len(codes))
    weights = weights / 3  # sums that depend on the order of their terms
    for found, expected in zip(
        merge_equal_rows(X[order], codes[order], weights[order], size)[:3],
        merge_equal_rows(X, codes, weights, size)[:3],
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


def test_rows_of_a_class_have_one_order_with_the_classes_exchanged():
    X, codes, weights = make()
    known = hashes_of(X)[::-1].copy()  # not those of X
    one, other = (merge_equal_rows(X, each, weights, len(codes), known) for each in (codes, 1 - codes))
    for c in (0, 1):
        for found, expected in zip(other, one, strict=True):
            if expected is not one[1]:
                np.testing.assert_array_equal(found[other[1] == 1 - c], expected[one[1] == c])


def test_rows_that_are_distinct_already_stay_as_they_are():
    X = np.random.default_rng(0).normal(size=(300, 2))
    codes = (np.arange(300) % 2).astype(np.int8)
    assert merge_equal_rows(X, codes, None, 299) == (X, codes, None, None)
    ordered, _, weights, _ = merge_equal_rows(X, codes, None, 300)
    assert weights is None
    assert np.array_equal(np.sort(ordered, axis=0), np.sort(X, axis=0))
    assert not np.array_equal(ordered, X)


def test_the_page_has_the_limits_up_to_which_rows_are_joined_and_ordered():
    page = " ".join((Path(__file__).parents[1] / "docs/theory.md").read_text(encoding="utf-8").split())
    assert f"Up to {intake._WORTH_DENSE:,} numbers* (of the data as given, copies included), equal rows" in page
    assert f"up to {intake.MANY_ROWS:,} different rows, these are also put in an order" in page


def test_another_seed_draws_other_rows():
    X, codes, weights = make()
    first, second = (drawn(X, codes, weights, seed=seed) for seed in (0, 1))
    assert not np.array_equal(first.X, second.X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
def test_means_of_samples_are_those_of_all_rows(weighted, distinct):
    """Also if one row has a third of the weight, or comes so often: it is drawn for certain, and keeps its weight."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(4_000, 1)), (np.arange(4_000) % 2).astype(np.int8)
    weights = rng.uniform(0.5, 1.5, size=4_000)
    X[0], weights[0] = 5.0, 1_000.0
    if not weighted:
        weights = np.ceil(weights)
        copies = np.repeat(np.arange(4_000), weights.astype(int))
        X, codes, weights = X[copies], codes[copies], None
    rows = MemoryRows(X, codes, weights, hashes=RowHashes(X, weights, distinct=distinct and weighted))
    mass = rows.all_weights()
    expected = np.average(X[codes == 0, 0], weights=mass[codes == 0])
    samples = [draw_sample(rows, 400, np.random.RandomState(seed)) for seed in range(200)]
    means = [np.average(s.X[s.codes == 0, 0], weights=s.all_weights()[s.codes == 0]) for s in samples]
    assert all(np.any(s.X == 5.0) for s in samples)
    assert np.mean(means) == pytest.approx(expected, abs=4 * np.std(means) / np.sqrt(200))
    assert np.std(means) < 0.1
    for sample in samples:
        assert len(np.unique(sample.X)) == sample.n_rows
        assert sum(sample.total_weights) == pytest.approx(400 * sum(rows.total_weights) / mass.sum(), rel=0.01)


def test_few_distinct_rows_are_all_drawn_with_their_weights():
    rng = np.random.default_rng(0)
    X, codes = rng.integers(4, size=(20_000, 1)).astype(float), rng.integers(2, size=20_000).astype(np.int8)
    sample = drawn(X, codes, size=1_000)
    assert sample.n_rows == 8
    for value, code, weight in zip(sample.X[:, 0], sample.codes, sample.all_weights(), strict=True):
        share = np.sum((X[:, 0] == value) & (codes == code)) / np.sum(codes == code)
        assert weight / sample.total_weights[code] == pytest.approx(share)


def test_weights_of_many_orders_of_magnitude_end_the_draw():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(5_000, 1)), (np.arange(5_000) % 2).astype(np.int8)
    weights = 10 ** rng.uniform(-200, 3, size=5_000)
    sample = drawn(X, codes, weights, size=1_000)
    assert 990 <= sample.n_rows <= 1_000
    heaviest = X[np.argsort(weights)[-50:], 0]
    assert np.isin(heaviest, sample.X).all()


def test_hashes_need_not_be_kept(monkeypatch):
    X, codes, weights = make()
    expected = drawn(X, codes, weights)
    monkeypatch.setattr(hashing, "_MAX_HASHES_KEPT", 0)
    monkeypatch.setattr(hashing, "_ROWS_COMPARED", 700)
    assert_same(drawn(X, codes, weights), expected)


def test_samples_of_classes_are_whole_classes_if_these_are_small():
    X, codes, weights = make(300)
    distinct = merge_equal_rows(X, codes, weights, 300)
    for (some, mass), code in zip(samples_of_classes(MemoryRows(*distinct[:3]), 2_000), (0, 1), strict=True):
        order, mine = np.lexsort(some.T), distinct[1] == code
        np.testing.assert_array_equal(some[order], distinct[0][mine][np.lexsort(distinct[0][mine].T)])
        assert mass.sum() == pytest.approx(weights[codes == code].sum())


def test_copies_of_a_few_rows_take_little_memory():
    """Nearly all rows are copies of a winner: they are joined block by block."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(1_000_000, 2)).astype(np.float32)
    rows = MemoryRows(X, rng.integers(0, 2, size=len(X)).astype(np.int8))
    draw_sample(rows, 100, np.random.RandomState(0))  # hashes and table, which are kept
    tracemalloc.start()
    try:
        sample = draw_sample(rows, 100, np.random.RandomState(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sample.n_rows == 8
    assert peak < 12e6
