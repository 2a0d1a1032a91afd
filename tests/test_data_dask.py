"""Dask collections: the same fit wherever the rows are, lazy predictions, and errors that say how to mend the chunks.

These tests run on Dask's threads; those on worker processes are in test_data_dask_workers.py.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("dask", reason="Dask is not installed: pip install 'melc[dask]'")
import dask.array as da
import dask.dataframe as dd
import pandas as pd

from dask_cases import CHUNKS, D, N, assert_same, in_chunks, learn, two_thresholds
from melc import MELC
from melc.data.dask.partitions import Partitions

pytestmark = pytest.mark.dask


@pytest.fixture(scope="module")
def data():
    return two_thresholds()


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


@pytest.mark.parametrize("selection", ["divergence", "likelihood"])
@pytest.mark.parametrize("gamma", [1.0, 8.0])
def test_the_fit_is_that_of_memory_where_the_optimum_is_flat(gamma, selection):
    """Noise, and densities so wide that D hardly depends on the direction. The likelihood prefers linear directions."""
    options = {"gamma": gamma, "selection": selection}
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, D)), rng.integers(2, size=N)
    found = learn(*in_chunks(CHUNKS["many"], X, y), **options)
    assert found.result_.converged
    assert_same(found, learn(X, y, **options))


def test_the_pages_say_which_searches_may_end_elsewhere_where_the_optimum_is_flat():
    docs = Path(__file__).parents[1] / "docs"
    scaling, theory = (
        " ".join((docs / f"{name}.md").read_text(encoding="utf-8").split()) for name in ("scaling", "theory")
    )
    assert "to about 1e-8 in the coefficients with the default solver. With other solvers and with shrinkage" in scaling
    assert "The general solver stops where the gradient is below `tol`. If the optimum is flat" in theory


def test_partitions_that_do_not_fit_are_read_again_to_the_same_bits(data, monkeypatch):
    held = learn(*in_chunks(CHUNKS["uneven"], *data))
    reads = []

    def read(block):
        reads.append(1)
        return block

    monkeypatch.setattr("melc.data.dask.rows.fits_in_memory", lambda n_bytes: False)
    X, y, weights = in_chunks(CHUNKS["uneven"], *data)
    found = learn(X.map_blocks(read, dtype=X.dtype, meta=np.empty((0, 0))), y, weights)
    assert_same(found, held, bits=True)
    assert len(reads) > 10 * 5  # once a round and partition that has rows


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
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, size=N)
    X = rng.normal(size=(N, D)) + 2.0 * np.eye(3, D)[y]
    shared = []
    round_ = Partitions.round

    def counted(self, calls, *arguments):
        if calls[0].method not in ("sum_curves", "count"):  # the curves of all classes are fitted together
            shared.append(len(calls))
        return round_(self, calls, *arguments)

    monkeypatch.setattr(Partitions, "round", counted)
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
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        learn(X, y, da.zeros(N, chunks=X.chunks[:1]))
    with pytest.raises(ValueError, match="continuous"):
        learn(X[:, :2].rechunk({0: 300}), X[:, 0].rechunk(300))
    with pytest.raises(ValueError, match="different labels: these are not classes"):
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


def test_texts_on_a_cluster_are_refused_by_name():
    frame = pd.DataFrame({"a": np.arange(40.0), "b": ["x", "y"] * 20})
    y = dd.from_pandas(pd.Series([0, 1] * 20), npartitions=2)
    with pytest.raises(ValueError, match=r"Column 'b' has the type .*but Dask collections must hold numbers"):
        MELC().fit(dd.from_pandas(frame, npartitions=2), y)
