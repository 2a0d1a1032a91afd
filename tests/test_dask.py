"""Dask collections: the same fit wherever the rows are, with workers that die, join, or hold nothing of a class.

Most tests run on Dask's threads. Those on worker processes share one cluster on loopback, which is gone afterwards.
"""

import _thread
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'melc[dask]'")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402
from distributed import Client, LocalCluster, wait  # noqa: E402

from melc import MELC, binned, dask_rows, gaps  # noqa: E402
from melc.data.dask.rows import _Partitions, share_out, side_by_side  # noqa: E402
from melc.data.dask.worker import added  # noqa: E402
from melc.data.memory import MemoryRows  # noqa: E402
from melc.objective.moments import MomentsDivergence  # noqa: E402

N, D = 30_000, 8
CHUNKS = {
    "one": (N,),
    "uneven": (1, 9_999, 12_345, 0, 5_000, 2_655),
    "many": (1_000,) * 30,
}


@pytest.fixture(scope="module")
def data():
    """Two classes with two thresholds; the first 1,000 rows all belong to one class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.where(np.abs(X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N)) > 1, "outside", "inside")
    y[:1_000] = "inside"
    return X, y, rng.uniform(0.5, 2.0, size=N)


def in_chunks(chunks, *arrays):
    return [da.from_array(a, chunks=(chunks, *a.shape[1:])) for a in arrays]


def learn(*data, **options):
    return MELC(random_state=0, n_init=2, **options).fit(*data)


def assert_same(found, expected, bits=False):
    if bits:
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        np.testing.assert_array_equal(found.divergence_, expected.divergence_)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    for mine, theirs in zip(found.decisions_, expected.decisions_, strict=True):
        np.testing.assert_allclose(mine.thresholds, theirs.thresholds, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(mine.codes, theirs.codes)
        np.testing.assert_allclose(mine.counts, theirs.counts, rtol=1e-12)


@pytest.fixture(scope="module")
def expected(data):
    return learn(*data)


# ----------------------------------------------------------------------------------------------------- the same fit


@pytest.mark.parametrize("chunks", CHUNKS)
def test_the_fit_is_that_of_memory_whatever_the_chunks(data, expected, chunks):
    """Empty partitions and partitions of a single class among them."""
    found = learn(*in_chunks(CHUNKS[chunks], *data))
    assert_same(found, expected)
    assert_same(learn(*in_chunks(CHUNKS[chunks], *data)), found, bits=True)


def test_partitions_that_do_not_fit_are_read_again_to_the_same_bits(data, monkeypatch):
    held = learn(*in_chunks(CHUNKS["uneven"], *data))
    reads = []

    def read(block):
        reads.append(1)
        return block

    monkeypatch.setattr(dask_rows, "_fits", lambda n_bytes: False)
    X, y, weights = in_chunks(CHUNKS["uneven"], *data)
    found = learn(X.map_blocks(read, dtype=X.dtype, meta=np.empty((0, 0))), y, weights)
    assert_same(found, held, bits=True)
    assert len(reads) > 15 * 5  # once a round and partition that has rows


def test_float32_and_sparse_blocks(data):
    X, y, _ = data
    narrow = X.astype(np.float32)
    assert_same(learn(*in_chunks(CHUNKS["uneven"], narrow, y)), learn(narrow, y))
    few = np.where(np.abs(X) > 0.5, X, 0)
    blocks = da.from_array(few, chunks=(7_000, D)).map_blocks(sparse.csr_array)
    found = learn(blocks, da.from_array(y, chunks=7_000))
    assert_same(found, learn(sparse.csr_array(few), y))


def test_several_classes_with_priors_weights_and_shrinkage():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, size=N)
    X = rng.normal(size=(N, D)) + 2.0 * np.eye(3, D)[y]
    weights = rng.integers(0, 3, size=N).astype(float)  # some rows count nothing
    options = {"priors": "empirical", "shrinkage": "auto"}
    found = learn(*in_chunks(CHUNKS["uneven"], X, y, weights), **options)
    assert_same(found, learn(X, y, weights, **options))


def test_several_classes_share_their_rounds(monkeypatch):
    monkeypatch.setattr("melc.classifier._WORTH_TOGETHER", 20_000)
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, size=N)
    X = rng.normal(size=(N, D)) + 2.0 * np.eye(3, D)[y]
    shared = []
    round_ = _Partitions.round
    monkeypatch.setattr(
        _Partitions, "round", lambda self, calls, *a: shared.append(len(calls)) or round_(self, calls, *a)
    )
    assert_same(learn(*in_chunks(CHUNKS["uneven"], X, y)), learn(X, y))
    assert shared[0] == 3
    assert sum(shared) > 2 * len(shared)


def test_warm_start_and_callbacks_of_runs(data, expected, capsys):
    X, y, weights = in_chunks(CHUNKS["many"], *data)
    model = learn(X, y, weights, warm_start=True, verbose=1)
    assert capsys.readouterr().out.count("[MELC] run") == 2
    model.fit(X, y, weights)
    assert len(model.results_) == 1
    np.testing.assert_allclose(np.abs(model.coef_ @ expected.coef_.T), 1, atol=1e-6)


def test_far_features_and_outliers_and_classes_far_apart():
    """What leaves the table of bins travels by number of row, and points at a gap in bins of their own."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, size=N)
    X = rng.normal(size=(N, D))
    X[:, 0] += 60 * y
    X[rng.choice(N, 20), 1] = 1e4
    X[:, 2] += 1e7
    found = learn(*in_chunks(CHUNKS["uneven"], X, y), max_iter=30)
    exact = learn(X, y, max_iter=30)
    np.testing.assert_allclose(found.coef_, exact.coef_, rtol=0, atol=1e-6)
    assert found.divergence_ == pytest.approx(exact.divergence_, rel=1e-6)


def test_small_data_are_fitted_in_memory_to_the_same_bits(data):
    X, y, weights = (a[:2_000] for a in data)
    found = learn(*in_chunks((700, 1_300), X, y, weights))
    assert_same(found, learn(X, y, weights), bits=True)


# ------------------------------------------------------------------------------------------------------- dataframes


@pytest.fixture(scope="module")
def frame(data):
    X, y, weights = data
    table = pd.DataFrame(X, columns=[f"f{j}" for j in range(D)])
    return table.assign(label=y, weight=weights)


def test_dataframes_from_parquet(frame, expected, tmp_path):
    for i in range(5):
        frame[i * N // 5 : (i + 1) * N // 5].to_parquet(tmp_path / f"{i}.parquet")
    lazy = dd.read_parquet(tmp_path)
    features = [f"f{j}" for j in range(D)]
    found = learn(lazy[features], lazy["label"], lazy["weight"])
    assert_same(found, expected)
    assert found.feature_names_in_.tolist() == features
    labels = found.predict(lazy[features])
    assert labels.npartitions == 5
    computed = labels.compute()
    assert computed.index.equals(lazy.index.compute())
    np.testing.assert_array_equal(computed, found.predict(frame[features]))
    proba, line = found.predict_proba(lazy[features]), found.transform(lazy[features])
    assert (list(proba.columns), list(line.columns)) == (["inside", "outside"], ["melc0"])
    np.testing.assert_array_equal(proba.compute(), found.predict_proba(frame[features]))
    np.testing.assert_array_equal(
        found.decision_function(lazy[features]).compute(), found.decision_function(frame[features])
    )
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(lazy[features].rename(columns={"f0": "other"}))


# ------------------------------------------------------------------------------------------------------- prediction


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_are_lazy_and_the_same(method, n_classes):
    rng = np.random.default_rng(3)
    y = rng.integers(0, n_classes, 400)
    model = learn(rng.normal(size=(400, 3)) + y[:, None], y)
    X = rng.normal(size=(100, 3))
    seen = []

    def note(block):
        seen.append(1)
        return block

    lazy = da.from_array(X, chunks=((40, 0, 60), 3)).map_blocks(note, dtype=float, meta=np.empty((0, 0)))
    later = getattr(model, method)(lazy)
    assert not seen
    now = getattr(model, method)(X)
    assert (later.shape, later.dtype) == (now.shape, now.dtype)
    np.testing.assert_array_equal(later.compute(), now)
    unknown = getattr(model, method)(da.from_array(X, chunks=(30, 3))[da.from_array(X[:, 0] > 0, chunks=30)])
    np.testing.assert_array_equal(unknown.compute(), now[X[:, 0] > 0])


def test_predictions_ask_for_whole_rows_and_fitted_models():
    X = da.ones((10, 4), chunks=(5, 2))
    with pytest.raises(ValueError, match=r"X = X\.rechunk\(\{1: -1\}\)"):
        learn(np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2).predict(X)
    with pytest.raises(Exception, match="not fitted"):
        MELC().predict(X)


# ----------------------------------------------------------------------------------------------- errors that mend


def mended_by(data, names, line):
    """Fit again after the line that the error gave."""
    variables = {"da": da, "np": np, **dict(zip(("X", "y", "sample_weight"), data, strict=True)), **names}
    exec(line, variables)  # the line is what is tested
    return learn(variables["X"], variables["y"], variables["sample_weight"])


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda X, y, w: (X[X[:, 0] > -1e9], y, w), "X = X.compute_chunk_sizes()"),
        (lambda X, y, w: (X, y[X[:, 0] > -1e9], w), "y = y.compute_chunk_sizes()"),
        (lambda X, y, w: (X.rechunk({1: 2}), y, w), "X = X.rechunk({1: -1})"),
        (lambda X, y, w: (X, y.rechunk(5_000), w), "y = y.rechunk({0: X.chunks[0]})"),
        (lambda X, y, w: (X, y, w.rechunk(5_000)), "sample_weight = sample_weight.rechunk({0: X.chunks[0]})"),
        (lambda X, y, w: (X, y.compute(), w), "y = da.from_array(y, chunks=X.chunks[0])"),
    ],
)
def test_errors_hold_the_line_that_mends(data, expected, spoil, line):
    spoilt = spoil(*in_chunks(CHUNKS["uneven"], *data))
    with pytest.raises((ValueError, TypeError)) as error:
        learn(*spoilt)
    assert line in str(error.value)
    assert_same(mended_by(spoilt, {}, line), expected)


def test_a_number_that_is_none_is_found_in_its_partition(data):
    X, y, weights = data
    spoilt = X.copy()
    spoilt[25_000, 3] = np.nan
    chunks = (10_000, 10_000, 10_000)
    message = r"Partition 2 of X holds nan \(its row 5000, feature 3\).*X = da\.where\(da\.isfinite\(X\), X, 0\)"
    with pytest.raises(ValueError, match=message):
        learn(*in_chunks(chunks, spoilt, y, weights))
    assert mended_by(
        in_chunks(chunks, spoilt, y, weights), {}, "X = da.where(da.isfinite(X), X, 0)"
    ).divergence_ == pytest.approx(learn(np.nan_to_num(spoilt), y, weights).divergence_)
    with pytest.raises(ValueError, match="Partition 1 holds the weight -1"):
        learn(*in_chunks(chunks, X, y, np.where(np.arange(N) == 15_000, -1.0, weights)))
    with pytest.raises(ValueError, match=r"Partition 1.*NaN"):
        learn(*in_chunks(chunks, X, np.where(np.arange(N) == 15_000, np.nan, 1.0 * (y == "inside"))))


def test_what_cannot_be_fitted_is_refused(data, frame):
    X, y, _ = in_chunks(CHUNKS["uneven"], *data)
    with pytest.raises(ValueError, match="all projections in one place"):
        learn(X, y, method="exact")
    with pytest.raises(ValueError, match="one class only: 'a'"):
        learn(X, da.full(N, "a", chunks=X.chunks[:1]))
    with pytest.raises(ValueError, match="None of the 8 features varies"):
        learn(da.ones((N, D), chunks=X.chunks), y)
    with pytest.raises(ValueError, match="continuous"):
        learn(X[:, :2].rechunk({0: 300}), X[:, 0].rechunk(300))
    with pytest.raises(ValueError, match="different labels: these are no classes"):
        learn(X.rechunk({0: N}), X[:, 0].rechunk(N))
    with pytest.raises(ValueError, match="X has 30000 rows and y has 7"):
        learn(X, y[:7])
    lazy = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match="X has 3 partitions and y has 2"):
        learn(lazy[["f0", "f1"]], dd.from_pandas(frame, npartitions=2)["label"])
    with pytest.raises(TypeError, match=r"y = y\.compute\(\)"):
        learn(data[0], y)


def test_a_refused_fit_leaves_the_model_as_it_was(data):
    X, y, weights = in_chunks(CHUNKS["uneven"], *data)
    model = MELC(random_state=0, n_init=1).fit(data[0][-500:], data[1][-500:])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="rechunk"):
        model.fit(X, y.rechunk(5_000), weights)
    np.testing.assert_array_equal(model.coef_, before)


# ------------------------------------------------------------------------------------------------------- the pieces


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


def dask_rows_of(*collections):
    return dask_rows.collect(*collections, None, few=lambda *_: False).rows


def rounds_of(rows, v, monkeypatch):
    """What an evaluation asks the partitions for, and what it gives."""
    asked = []
    with monkeypatch.context() as patch:
        round_ = _Partitions.round
        patch.setattr(
            _Partitions, "round", lambda self, calls, *a: asked.append(calls[0].function) or round_(self, calls, *a)
        )
        divergence = MomentsDivergence(rows, 1.0, 1e-6)
        asked.clear()  # the sample that widths are guessed from is drawn once
        return asked, divergence.evaluate(v)


ROUNDS = {
    "ordinary": [MemoryRows.bin],
    "outlier": [MemoryRows.bin],
    "sparse": [MemoryRows.sketch, MemoryRows.pull_back_binned],
    "wide": [MemoryRows.sketch, MemoryRows.pull_back_binned],
    "crowd": [MemoryRows.bin, MemoryRows.pull_back_binned],
    "apart": [MemoryRows.bin, MemoryRows.pull_back_binned],
    "wide apart": [MemoryRows.sketch, MemoryRows.pull_back_binned],
    "sparse apart": [MemoryRows.sketch, MemoryRows.pull_back_binned],
    "clusters apart": [MemoryRows.bin, MemoryRows.pull_back_binned],
    "misled apart": [MemoryRows.bin, MemoryRows.bin],
    "misled wide apart": [MemoryRows.sketch, MemoryRows.pull_back_binned],
    "misled sparse apart": [MemoryRows.sketch, MemoryRows.pull_back_binned],
    "misled": [MemoryRows.bin, MemoryRows.bin],
    "misled crowd": [MemoryRows.bin, MemoryRows.bin],
    "misled outliers": [MemoryRows.bin, MemoryRows.bin],
    "misled wide": [MemoryRows.sketch, MemoryRows.pull_back_binned],
    "misled sparse": [MemoryRows.sketch, MemoryRows.pull_back_binned],
}


@pytest.mark.parametrize("case", ROUNDS)
def test_an_evaluation_is_one_round_or_two(case, data, monkeypatch):
    """One, unless features are sparse or too much to send, or classes lie apart, or a sample has misled."""
    X, y = data[0][:20_000].copy(), (data[1][:20_000] == "inside").astype(np.int8)
    chunks = 200 if "crowd" in case else 3_000
    if case == "outlier":
        X[17] *= 1e7
    if "outliers" in case:
        monkeypatch.setattr(binned, "_MOST_BINS", 8)
        monkeypatch.setattr("melc.data.memory._FEW_NUMBERS", 1)
    if "wide" in case:
        X = np.tile(X, 20)
    v = np.random.default_rng(0).normal(size=X.shape[1])
    if "apart" in case:
        X[:, 0] += np.sign(v[0]) * 1e3 * (y + (2 * (X[:, 1] > 0) if "clusters" in case else 0))
    if "misled" in case and "apart" not in case:
        monkeypatch.setattr(binned, "_GUESS_ROWS", 2)
        X[[0, 1, -2, -1]] *= 100  # all that is seen of them
        y[[0, 1, -2, -1]] = 0, 1, 0, 1
    elif "misled" in case:
        monkeypatch.setattr(gaps, "_WORTH_GUESSING", math.inf)
    blocks = da.from_array(X, chunks=(chunks, X.shape[1]))
    if "sparse" in case:
        blocks = blocks.map_blocks(sparse.csr_array)
    asked, found = rounds_of(dask_rows_of(blocks, da.from_array(y, chunks=chunks)), v, monkeypatch)
    expected = MomentsDivergence(MemoryRows(X, y), 1.0, 1e-6).evaluate(v)
    assert found.divergence == pytest.approx(expected.divergence, rel=1e-13)
    size = max(1.0, np.abs(expected.gradient).max())
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=0, atol=1e-11 * size)
    assert asked == ROUNDS[case]


def separable(kind):
    rng = np.random.default_rng(7)
    y = rng.integers(2, size=40_000)
    X = {
        "wide": lambda: rng.normal(size=(40_000, 100)) + 2 * y[:, None],
        "sharp edges": lambda: rng.random(size=(40_000, 8)) + y[:, None],
        "crowds": lambda: rng.integers(2, size=(40_000, 60)) + y[:, None],
        "clusters": lambda: rng.normal(size=(40_000, 8)) + np.where(y, rng.choice([-9, 9], 40_000), 0)[:, None],
        "the class itself": lambda: np.column_stack([rng.normal(size=(40_000, 7)), y]),
        "heavy tails": lambda: rng.standard_cauchy((40_000, 8)) + 30 * y[:, None],
        "words": lambda: rng.poisson(np.where(y[:, None], *rng.exponential(size=(2, 300)) / 20)),
    }[kind]()
    return X.astype(float), y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["wide", "sharp edges", "crowds", "clusters", "the class itself", "heavy tails", "words"]
)
def test_no_evaluation_of_a_fit_takes_more_than_two_rounds(kind, monkeypatch):
    X, y = separable(kind)
    rounds, evaluations = [], []
    round_, evaluate = _Partitions.round, MomentsDivergence.evaluate

    def counted(self, v):
        before = len(rounds)
        found = evaluate(self, v)
        if isinstance(self.rows, dask_rows.DaskRows):
            evaluations.append(rounds[before:])
        return found

    monkeypatch.setattr(
        _Partitions, "round", lambda self, calls, *a: rounds.append(calls[0].function) or round_(self, calls, *a)
    )
    monkeypatch.setattr(MomentsDivergence, "evaluate", counted)
    lazy, labels = in_chunks((12_000, 16_000, 12_000), X, y)
    if kind == "words":
        X, lazy = sparse.csr_array(X), lazy.map_blocks(sparse.csr_array)
    found = learn(lazy, labels, max_iter=15)
    assert len(evaluations) > 1
    assert max(len(each) for each in evaluations) <= 2
    np.testing.assert_allclose(found.coef_, learn(X, y, max_iter=15).coef_, rtol=0, atol=1e-8)


def test_samples_are_those_of_memory(data):
    X, y, weights = data
    codes = (y == "outside").astype(np.int8)
    lazy = dask_rows.collect(*in_chunks(CHUNKS["uneven"], X, y, weights), lambda *_: False).rows
    memory = MemoryRows(X, codes, weights)
    for size in (100, 5_000, 29_999, N):
        mine, theirs = (rows.sample(size, np.random.RandomState(size)) for rows in (lazy, memory))
        np.testing.assert_array_equal(mine.X, theirs.X)
        np.testing.assert_array_equal(mine.codes, theirs.codes)
        np.testing.assert_array_equal(mine.weights, theirs.weights)
    for mine, theirs in zip(lazy.spread_samples(1_000), memory.spread_samples(1_000), strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
    assert (lazy.counts, lazy.lightest) == (memory.counts, memory.lightest)
    np.testing.assert_allclose(lazy.total_weights, memory.total_weights)


# -------------------------------------------------------------------------------------------------- worker processes


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        processes = list(client.run(os.getpid).values())
        yield client
        processes += client.run(os.getpid).values()
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in processes if os.path.exists(f"/proc/{pid}")], "a worker was left behind"


def at_round(monkeypatch, number, action):
    """Do something when a fit comes to its n-th round."""
    rounds = []
    original = _Partitions.round

    def round_(self, *arguments):
        rounds.append(1)
        if len(rounds) == number:
            action(self)
        return original(self, *arguments)

    monkeypatch.setattr(_Partitions, "round", round_)
    return rounds


def test_workers_give_the_bits_of_threads_and_a_plain_model(client, data, expected):
    chunks = (2_000,) * 15
    found = learn(*in_chunks(chunks, *data))
    assert_same(found, expected)
    with dask.config.set(scheduler="threads"):
        X = in_chunks(chunks, data[0])[0]
        np.testing.assert_array_equal(found.predict(X).compute(), found.predict(data[0]))
    stored = pickle.dumps(found)
    assert b"distributed" not in stored
    assert b"dask" not in stored
    code = "import pickle, sys; m = pickle.load(sys.stdin.buffer); print(m.coef_.shape, 'dask' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], input=stored, capture_output=True, check=True).stdout
    assert printed.decode().split() == ["(1,", "8)", "False"]
    assert_same(learn(*in_chunks(chunks, *data)), found, bits=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["wide", "words"])
def test_workers_sketch_rows_of_many_features(client, kind):
    X, y = (each[:24_000] for each in separable(kind))
    lazy, labels = in_chunks((4_000,) * 6, X, y)
    if kind == "words":
        X, lazy = sparse.csr_array(X), lazy.map_blocks(sparse.csr_array)
    found, again = (learn(lazy, labels, max_iter=5) for _ in range(2))
    np.testing.assert_allclose(found.coef_, learn(X, y, max_iter=5).coef_, rtol=0, atol=1e-8)
    assert_same(again, found, bits=True)


@pytest.mark.parametrize("little", [False, True])
def test_neighbours_are_brought_together_where_there_is_little_to_move(client, data, little, monkeypatch):
    X, y = in_chunks((2_000,) * 15, *data[:2])
    first, second = list(client.nthreads())[:2]
    by_turns = [client.persist(X.blocks[i], workers=[(first, second)[i % 2]]) for i in range(15)]
    wait(by_turns)
    wished = []
    monkeypatch.setattr(dask_rows, "side_by_side", lambda *given: wished.append(1) or side_by_side(*given))
    if not little:
        monkeypatch.setattr(dask_rows, "_LITTLE_TO_MOVE", 0)
    owner = {
        i: worker for worker, mine in dask_rows_of(da.concatenate(by_turns), y)._partitions._grouped() for i in mine
    }
    assert len(wished) == little
    if little:  # all but one pair, but Dask may choose otherwise for some
        assert sum(owner[i] == owner[i + 1] for i in range(14)) >= 8


def test_a_worker_that_is_killed_is_survived(client, data, expected, monkeypatch):
    chunks = (2_000,) * 15
    before = client.run(os.getpid)
    rounds = at_round(monkeypatch, 8, lambda _: os.kill(next(iter(before.values())), signal.SIGKILL))
    found = learn(*in_chunks(chunks, *data))
    assert len(rounds) > 10  # it was in mid-fit
    assert set(client.run(os.getpid).values()) != set(before.values())
    assert_same(found, expected)
    client.wait_for_workers(2, timeout=30)
    assert_same(learn(*in_chunks(chunks, *data)), found, bits=True)


def test_a_worker_that_joins_is_used(client, data, expected, monkeypatch):
    monkeypatch.setattr(dask_rows, "_KNOWN_FOR", 0.0)
    seen = []

    def join(partitions):
        client.cluster.scale(3)
        client.wait_for_workers(3, timeout=30)

    at_round(monkeypatch, 5, join)
    grouped = _Partitions._grouped
    monkeypatch.setattr(_Partitions, "_grouped", lambda self: seen.append(grouped(self)) or seen[-1])
    try:
        assert_same(learn(*in_chunks((2_000,) * 15, *data)), expected)
    finally:
        client.cluster.scale(2)
    assert [len(groups) for groups in (seen[0], seen[-1])] == [2, 3]
    assert all(len(mine) == 5 for _, mine in seen[-1])


def test_workers_may_come_when_there_is_work(data, expected):
    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, **options) as cluster, Client(cluster) as late:
        soon = threading.Timer(0.5, cluster.scale, [1])
        soon.start()
        assert_same(learn(*in_chunks((2_000,) * 15, *data)), expected)
        soon.join()
        assert len(late.nthreads()) == 1


def test_an_interrupt_cancels_what_is_running(client, data, monkeypatch):
    X, y, weights = in_chunks((2_000,) * 15, *data)
    slow = X.map_blocks(lambda block: time.sleep(0.01) or block, dtype=X.dtype, meta=np.empty((0, 0)))
    model = MELC(random_state=0)
    at_round(monkeypatch, 4, lambda _: threading.Timer(0.0, _thread.interrupt_main).start())
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.fit(slow, y, weights)
    assert time.monotonic() - begin < 20
    assert not hasattr(model, "coef_")
    deadline = time.monotonic() + 10
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(client.processing().values())


# ------------------------------------------------------------------------------------------------------ out of core

OUT_OF_CORE = """
import ctypes, re, sys, threading, time
import numpy as np
from pathlib import Path
from melc import MELC, rows

def anonymous():
    return 1024 * int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1))

X, y = np.load(sys.argv[1] + "/X.npy", mmap_mode="r"), np.load(sys.argv[1] + "/y.npy", mmap_mode="r")
rows._MOST_KEPT = 1 << 17  # as if there were hundreds of millions
MELC(random_state=0, n_init=2, n_jobs=2).fit(X, y)  # what is compiled now need not be compiled later
ctypes.CDLL(None).malloc_trim(0)
before, peak, done = anonymous(), [0], []

def watch():
    while not done:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.002)

watcher = threading.Thread(target=watch)
watcher.start()
model = MELC(random_state=0, n_init=2, n_jobs=2).fit(X, y)
done.append(1)
watcher.join()
print(peak[0] - before, model.divergence_)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="anonymous memory is read from /proc")
def test_a_memory_map_is_trained_in_blocks(tmp_path):
    """Beyond the file itself, which the system may drop from memory, a fit holds next to nothing a row."""
    rng = np.random.default_rng(0)
    n = 2_000_000
    X = rng.normal(size=(n, 10)).astype(np.float32)
    y = (np.abs(X[:, 0] + 0.5 * rng.normal(size=n)) > 1).astype(np.int8)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    found = subprocess.run(
        [sys.executable, "-c", OUT_OF_CORE, str(tmp_path)], capture_output=True, text=True, timeout=55, check=True
    )
    beyond, divergence = map(float, found.stdout.split())
    assert beyond < 40e6, f"{beyond / 1e6:.0f} MB beside {X.nbytes / 1e6:.0f} MB"  # samples and some bytes a row
    assert 0.5 < divergence < 5
