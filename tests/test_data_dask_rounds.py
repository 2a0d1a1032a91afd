"""Rounds over the partitions of Dask collections: how many an evaluation takes, who works on what, how sums add up."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

pytest.importorskip("dask", reason="Dask is not installed: pip install 'melc[dask]'")
import dask.array as da

from dask_cases import in_chunks, learn, rows_of, two_classes, two_thresholds
from melc.data.dask.partitions import Partitions, share_out, side_by_side
from melc.data.dask.rows import DaskRows
from melc.data.dask.shared import Request, SharedRounds
from melc.data.dask.worker import added
from melc.data.memory import MemoryRows
from melc.objective.moments import MomentsDivergence

pytestmark = pytest.mark.dask


@pytest.fixture(scope="module")
def data():
    return two_thresholds()


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_sums_are_the_same_bits_whoever_adds_them(n, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)
    whole = added({(0, i): [np.array([values[i]])] for i in range(n)}, n)
    owner = rng.integers(0, 4, n)
    parts = {}
    for worker in range(4):
        parts |= added({(0, i): [np.array([values[i]])] for i in np.flatnonzero(owner == worker).tolist()}, n)
    (one,), (other,) = whole.values(), added(parts, n).values()
    np.testing.assert_array_equal(one, other)
    assert one[0][0] == pytest.approx(np.sum(values), abs=1e-9 * np.abs(values).sum())


@given(st.integers(1, 60), st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4)))
def test_neighbours_are_wished_side_by_side(n, workers):
    wished = side_by_side(n, workers)
    assert len(wished) == (n if workers else 0)
    assert wished == sorted(wished, key=list(workers).index)
    for worker, threads in workers.items():
        assert abs(wished.count(worker) - n * threads / sum(workers.values())) < 1


@given(st.integers(1, 60), st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 4), min_size=1), st.randoms())
def test_partitions_are_shared_out_fairly_and_stay_where_they_are(n, workers, random):
    held_by = [[random.choice("abcdef")] for _ in range(n)]
    shares = share_out(held_by, workers)
    assert sorted(i for mine in shares.values() for i in mine) == list(range(n))
    for worker, mine in shares.items():
        assert len(mine) <= -(-n * workers[worker] // sum(workers.values())) + 1
    if n >= 6 and len(workers) == 1:
        assert next(iter(shares.values())) == list(range(n))


@pytest.fixture
def asked(monkeypatch):
    """The methods that partitions were asked for, one a round."""
    names, round_ = [], Partitions.round
    monkeypatch.setattr(
        Partitions, "round", lambda self, calls, *a: names.append(calls[0].method) or round_(self, calls, *a)
    )
    return names


ROUNDS = {
    "ordinary": ["bin"],
    "outlier": ["bin"],
    "sparse": ["bin", "pull_back_binned"],
    "wide": ["bin", "pull_back_binned"],
    "crowd": ["bin", "pull_back_binned"],
    "apart": ["bin", "bin_at_rims", "pull_back_binned"],
    "wide apart": ["bin", "bin_at_rims", "pull_back_binned"],
    "sparse apart": ["bin", "bin_at_rims", "pull_back_binned"],
    "clusters apart": ["bin", "bin_at_rims", "pull_back_binned"],
    "misled": ["bin", "bin", "pull_back_binned"],
    "misled crowd": ["bin", "bin", "pull_back_binned"],
    "misled outliers": ["bin", "bin", "pull_back_binned"],
    "misled wide": ["bin", "bin", "pull_back_binned"],
    "misled sparse": ["bin", "bin", "pull_back_binned"],
}


@pytest.mark.parametrize("case", ROUNDS)
def test_the_rounds_of_an_evaluation(case, data, asked, monkeypatch):
    """One if the features come along, which sparse ones and those that are too much to send do not; otherwise two.

    One more where classes lie apart, or where a sample has misled.
    """
    X, y = data[0][:20_000].copy(), (data[1][:20_000] == "inside").astype(np.int8)
    chunks = 200 if "crowd" in case else 3_000
    if case == "outlier":
        X[17] *= 1e7
    if "outliers" in case:
        monkeypatch.setattr("melc.sums.bins._MOST_BINS", 8)
        monkeypatch.setattr("melc.data.memory._OUTLIER_NUMBERS", 1)
    if "wide" in case:
        X = np.tile(X, 20)
    v = np.random.default_rng(0).normal(size=X.shape[1])
    if "apart" in case:
        X[:, 0] += np.sign(v[0]) * 1e3 * (y + (2 * (X[:, 1] > 0) if "clusters" in case else 0))
    if "misled" in case:
        monkeypatch.setattr("melc.objective.moments._GUESS_ROWS", 2)
        X[[0, 1, -2, -1]] *= 100  # all that is seen of them
        y[[0, 1, -2, -1]] = 0, 1, 0, 1
    blocks = da.from_array(X, chunks=(chunks, X.shape[1]))
    if "sparse" in case:
        blocks = blocks.map_blocks(sparse.csr_array)
    divergence = MomentsDivergence(rows_of(blocks, da.from_array(y, chunks=chunks)), 1.0, 1e-6)
    asked.clear()  # the sample that widths are guessed from is drawn once
    found = divergence.evaluate(v)
    assert asked == ROUNDS[case]
    expected = MomentsDivergence(MemoryRows(X, y), 1.0, 1e-6).evaluate(v)
    assert found.divergence == pytest.approx(expected.divergence, rel=1e-13)
    size = max(1.0, np.abs(expected.gradient).max())
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=0, atol=1e-11 * size)


# Kinds of data, and the most rounds that an evaluation of a fit takes: a third is for classes that lie apart.
MOST_ROUNDS = {
    "overlapping": 1,
    "heavy tails": 3,
    "words": 2,
    "wide": 3,
    "sharp edges": 3,
    "crowds": 3,
    "clusters": 3,
    "the class itself": 3,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", MOST_ROUNDS)
def test_no_evaluation_of_a_fit_takes_more_than_three_rounds(kind, asked, general_way, monkeypatch):
    X, y = two_classes(kind)
    rounds, evaluate = [], MomentsDivergence.evaluate

    def counted(self, v):
        before = len(asked)
        found = evaluate(self, v)
        if isinstance(self.rows, DaskRows):
            rounds.append(len(asked) - before)
        return found

    monkeypatch.setattr(MomentsDivergence, "evaluate", counted)
    lazy, labels = in_chunks((12_000, 16_000, 12_000), X, y)
    if kind == "words":
        X, lazy = sparse.csr_array(X), lazy.map_blocks(sparse.csr_array)
    found = learn(lazy, labels, max_iter=15)
    assert len(rounds) > 1
    assert max(rounds) <= MOST_ROUNDS[kind]
    np.testing.assert_allclose(found.coef_, learn(X, y, max_iter=15).coef_, rtol=0, atol=1e-8)


@pytest.mark.parametrize("fails", ["in a round", "between rounds"])
def test_an_error_in_one_of_several_problems_ends_them_all(fails):
    shared, n_threads = SharedRounds([type("Rows", (), {})() for _ in range(3)]), threading.active_count()
    rounds = []

    def problem(k):
        for i in range(1000):
            if fails == "between rounds" and (k, i) == (1, 5):
                raise ZeroDivisionError("problem 1")
            shared.run(Request(None), make)

    def make(requests):
        rounds.append(len(requests))
        if fails == "in a round" and len(rounds) == 6:
            raise ZeroDivisionError("round 6")
        for request in requests:
            request.done = True

    with pytest.raises(ZeroDivisionError, match=r"problem 1|round 6"):
        shared.solve_all(problem)
    assert len(rounds) <= 6
    assert threading.active_count() == n_threads
