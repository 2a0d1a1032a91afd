"""What may be asked of rows: everything that the protocol names, wherever they are, with the same answers."""

import inspect

import numpy as np
import pytest
from scipy import sparse

from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample, spread_samples
from melc.data.source import Rows

N = 3000
MEMBERS = {name for name in (*vars(Rows), *Rows.__annotations__) if not name.startswith("_")}


def make(weighted=True, n_classes=2):
    rng = np.random.default_rng(0)
    codes = rng.integers(n_classes, size=N).astype(np.int8)
    X = rng.normal(size=(N, 4)) + codes[:, None]
    return X, codes, rng.exponential(size=N) if weighted else None


def in_memory(X, codes, weights):
    return MemoryRows(X, codes, weights)


def in_dask(X, codes, weights):
    da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install 'melc[dask]'")
    from melc.data.dask.rows import collect_partitions

    chunks = (1, 999, 0, 1200, 800)
    blocks = da.from_array(X.toarray() if sparse.issparse(X) else X, chunks=(chunks, 4))
    if sparse.issparse(X):
        blocks = blocks.map_blocks(sparse.csr_array)
    y, w = (None if each is None else da.from_array(each, chunks=(chunks,)) for each in (codes, weights))
    return collect_partitions(blocks, y, w, few=lambda *_: False).rows


KINDS = [in_memory, pytest.param(in_dask, marks=pytest.mark.dask)]


def assert_same_rows(found, X, codes, weights):
    assert isinstance(found, MemoryRows)
    np.testing.assert_array_equal(found.X.toarray() if sparse.issparse(found.X) else found.X, X)
    np.testing.assert_array_equal(found.codes, codes)
    np.testing.assert_array_equal(found.all_weights(), np.ones(len(codes)) if weights is None else weights)


def test_the_protocol_names_what_it_should():
    assert {"bin", "pull_back_binned", "counts", "in_memory", "close"} <= MEMBERS
    assert len(MEMBERS) > 15


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_every_member_of_the_protocol(kind):
    rows = kind(*make())
    assert {name for name in MEMBERS if not hasattr(rows, name)} == set()
    for name in MEMBERS:
        described = inspect.getattr_static(Rows, name, None)
        if not inspect.isfunction(described):
            assert not callable(getattr(rows, name))
            continue
        wanted = list(inspect.signature(described).parameters.values())[1:]
        given = list(inspect.signature(getattr(rows, name)).parameters.values())
        assert [each.name for each in given[: len(wanted)]] == [each.name for each in wanted], name
        assert all(each.default is not each.empty for each in given[len(wanted) :]), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_counted_and_weighed(kind, weighted):
    X, codes, weights = make(weighted)
    rows = kind(X, codes, weights)
    w = np.ones(N) if weights is None else weights
    assert (rows.n_rows, rows.n_features) == (N, 4)
    assert rows.counts == (np.sum(codes == 0), np.sum(codes == 1))
    assert rows.total_weights == pytest.approx([w[codes == c].sum() for c in (0, 1)], rel=1e-12)
    assert rows.smallest_weights == tuple(w[codes == c].min() for c in (0, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_come_into_memory_as_they_are(kind, form, weighted):
    X, codes, weights = make(weighted)
    assert_same_rows(kind(form(X), codes, weights).in_memory(), X, codes, weights)


@pytest.mark.parametrize("kind", KINDS)
def test_some_rows_by_their_ranks_in_their_classes(kind):
    X, codes, weights = make()
    ranks = np.array([0, 7, 8, 700]), np.array([3, 4, 1100])
    chosen = np.sort(np.concatenate([np.flatnonzero(codes == c)[ranks[c]] for c in (0, 1)]))
    assert_same_rows(kind(X, codes, weights).take(ranks), X[chosen], codes[chosen], weights[chosen])
    none = np.empty(0, dtype=np.int64)
    assert_same_rows(kind(X, codes, weights).take((none, none)), X[:0], codes[:0], weights[:0])


@pytest.mark.parametrize("kind", KINDS)
def test_one_class_against_the_rest(kind):
    X, codes, weights = make(n_classes=3)
    for k in range(3):
        rest = kind(X, codes, weights).against_rest(k)
        assert rest.counts == (np.sum(codes != k), np.sum(codes == k))
        assert_same_rows(rest.in_memory(), X, codes == k, weights)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_around_a_point(kind):
    X, codes, weights = make()
    centre, v = np.array([1.0, -2.0, 0.5, 100.0]), np.array([1.0, 2.0, 3.0, 4.0])
    near = kind(X, codes, weights).around(centre)
    for c in (0, 1):
        np.testing.assert_allclose(near.points_of(v, c).z, (X[codes == c] - centre) @ v, rtol=1e-12)
    for (features, w), c in zip(spread_samples(near, N), (0, 1), strict=True):
        np.testing.assert_array_equal(features, X[codes == c] - centre)
        np.testing.assert_array_equal(w, weights[codes == c])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_summed_along_a_direction(kind):
    X, codes, weights = make()
    v, thresholds = np.array([1.0, -0.5, 0.2, 0.3]), np.array([-1.0, 0.3, 2.0])
    z = X @ v
    rows = kind(X, codes, weights)
    interval = np.searchsorted(thresholds, z, side="right")
    counts = [[weights[(interval == i) & (codes == c)].sum() for c in (0, 1)] for i in range(4)]
    np.testing.assert_allclose(rows.count(v, thresholds), counts, rtol=1e-12)
    for c, found in enumerate(rows.summarise(v).classes):
        mean = np.average(z[codes == c], weights=weights[codes == c])
        assert (found.weight, found.mean) == pytest.approx((weights[codes == c].sum(), mean), rel=1e-12)
        assert found.range == pytest.approx((z[codes == c].min(), z[codes == c].max()), rel=1e-12)
        points = rows.points_of(v, c)
        np.testing.assert_array_equal(points.rows, np.flatnonzero(codes == c))
        np.testing.assert_allclose(points.z, z[codes == c], rtol=1e-12, atol=1e-14)


@pytest.mark.dask
def test_samples_are_those_of_memory():
    X, codes, weights = make()
    lazy, memory = in_dask(X, codes, weights), in_memory(X, codes, weights)
    for size in (100, 1_000, N - 1, N):
        theirs, mine = (draw_sample(rows, size, np.random.RandomState(size)) for rows in (memory, lazy))
        # The weights of a sample are in proportion to the total, which a cluster adds up in another order.
        np.testing.assert_allclose(mine.all_weights(), theirs.all_weights(), rtol=1e-13)
        assert_same_rows(mine, theirs.X, theirs.codes, mine.weights)
    for mine, theirs in zip(spread_samples(lazy, 700), spread_samples(memory, 700), strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])


def test_a_rare_class_is_not_lost_in_a_sample():
    rng = np.random.default_rng(0)
    codes = np.zeros(20_000, dtype=np.int8)
    codes[rng.choice(20_000, 60, replace=False)] = 1
    sample = draw_sample(MemoryRows(rng.normal(size=(20_000, 2)), codes), 1000, np.random.RandomState(0))
    assert 900 < sample.n_rows <= 1040
    assert sample.counts[1] == 30
