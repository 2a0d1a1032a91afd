"""AdditiveMELC on Dask collections: directions from a sample, curves from all rows by rounds, lazy predictions."""

import os
import signal

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'melc[dask]'")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from dask_cases import CHUNKS, in_chunks, two_thresholds  # noqa: E402
from melc.data.dask.rows import DaskRows  # noqa: E402
from test_additive import assert_same_model, assert_sound, learn  # noqa: E402

pytestmark = [pytest.mark.dask, pytest.mark.slow]

LINES = {"max_lines": 3}


@pytest.fixture(scope="module")
def data():
    """With whole weights: in memory, others are scaled to numbers of rows."""
    X, y, weights = two_thresholds()
    return X, y, np.ceil(2 * weights)


@pytest.fixture(scope="module")
def expected(data):
    return learn(*data, **LINES)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_rows_are_gathered(data, n_classes):
    """To the last bit as in memory: also weights, and partitions of a single class or of no row."""
    X, y, weights = (each[:5_000] for each in data)
    if n_classes > 2:
        y = np.digitize(X[:, 0], [-0.5, 0.5])
    found = learn(*in_chunks((1, 2_999, 0, 2_000), X, y, weights), **LINES)
    assert_same_model(found, learn(X, y, weights, **LINES))


def assert_close(found, expected):
    """The same model but for rounding: sums over chunks are added up in another order."""
    np.testing.assert_allclose(found.directions_, expected.directions_, atol=1e-8)
    np.testing.assert_allclose(found.intercepts_, expected.intercepts_, atol=1e-6)
    for mine, others in zip(found.lines_, expected.lines_, strict=True):
        np.testing.assert_allclose(mine.counts.sum(axis=0), others.counts.sum(axis=0))
        for curve, same in zip(mine.curves, others.curves, strict=True):
            np.testing.assert_allclose(curve.at(same.knots), same.log_odds, atol=1e-6)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_curves_are_those_of_all_rows_on_dask_as_in_memory(data, expected, chunks, monkeypatch):
    """Directions come from a sample; the curves from all rows, by rounds that sum over them."""
    rounds, sum_curves = [], DaskRows.sum_curves
    monkeypatch.setattr(DaskRows, "sum_curves", lambda self, *given: rounds.append(1) or sum_curves(self, *given))
    found = learn(*in_chunks(CHUNKS[chunks], *data), **LINES)
    assert 3 <= len(rounds) <= 40
    assert found.lines_[0].counts.sum() == data[2].sum()
    assert_close(found, expected)


def test_several_classes(data):
    X, _, weights = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    found = learn(*in_chunks(CHUNKS["uneven"], X, y, weights), max_lines=2)
    assert_close(found, learn(X, y, weights, max_lines=2))


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function", "line_log_odds"]
)
def test_predictions_are_lazy(data, expected, method):
    X = data[0]
    lazy = getattr(expected, method)(da.from_array(X, chunks=(7_000, X.shape[1])))
    assert isinstance(lazy, da.Array)
    now = getattr(expected, method)(X)
    assert lazy.shape == now.shape
    np.testing.assert_array_equal(lazy.compute(), now)


def test_lazy_predictions_of_several_classes(data):
    X = data[0][:2_000]
    model = learn(X, np.digitize(X[:, 0], [-0.5, 0.5]), max_lines=2)
    for method in ("predict", "predict_proba", "decision_function", "line_log_odds"):
        now, lazy = getattr(model, method)(X), getattr(model, method)(da.from_array(X, chunks=(700, X.shape[1])))
        assert lazy.shape == now.shape
        np.testing.assert_array_equal(lazy.compute(), now)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    named = learn(frame.compute(), np.digitize(X[:, 0], [-0.5, 0.5]), max_lines=2)
    added = named.line_log_odds(frame).compute()
    assert added.columns.tolist() == [f"{line}: {label}" for line in range(len(named.lines_)) for label in range(3)]
    np.testing.assert_array_equal(added.to_numpy().reshape(len(X), -1, 3), named.line_log_odds(frame.compute()))


def test_frames(data):
    X, y, _ = data
    frame = pd.DataFrame(X[-5_000:], columns=[f"f{k}" for k in range(X.shape[1])]).assign(label=y[-5_000:])
    lazy, names = dd.from_pandas(frame, npartitions=3), [f"f{k}" for k in range(X.shape[1])]
    model = learn(lazy[names], lazy["label"], **LINES)
    assert model.feature_names_in_.tolist() == names
    found = model.predict_proba(lazy[names]).compute()
    assert found.columns.tolist() == ["inside", "outside"]
    np.testing.assert_array_equal(found.to_numpy(), model.predict_proba(frame[names]))
    adds = model.line_log_odds(lazy[names]).compute()
    assert adds.columns.tolist() == list(range(len(model.lines_)))
    np.testing.assert_array_equal(adds.to_numpy(), model.line_log_odds(frame[names]))
    assert (model.predict(lazy[names]).compute() == model.predict(frame[names])).all()


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_worker_that_is_killed_is_survived(client, data, expected, monkeypatch):
    """Killed in the middle of the fit of the curves to all rows."""
    before = client.run(os.getpid)
    rounds, sum_curves = [], DaskRows.sum_curves

    def killing(self, *given):
        rounds.append(1)
        if len(rounds) == 2:
            os.kill(next(iter(before.values())), signal.SIGKILL)
        return sum_curves(self, *given)

    monkeypatch.setattr(DaskRows, "sum_curves", killing)
    found = learn(*in_chunks((2_000,) * 15, *data), **LINES)
    assert len(rounds) > 2
    assert set(client.run(os.getpid).values()) != set(before.values())
    assert_close(found, expected)


def test_a_cluster_of_more_rows_than_are_gathered(client):
    client.wait_for_workers(2, timeout=30)
    state = da.random.default_rng(0)
    X = state.normal(size=(150_000, 6), chunks=(25_000, 6))
    y = (X[:, 1] ** 2 + X[:, 4] ** 2 > 1.4).astype(int)
    model, again = (learn(X, y, **LINES) for _ in range(2))
    assert float((model.predict(X) == y).mean().compute()) > 0.93
    assert model.lines_[0].counts.sum() == 150_000
    assert model.importances_[[1, 4]].sum() > 0.9 * model.importances_.sum()
    assert_same_model(model, again)
    assert_sound(model, X[:1_000].compute())


def test_mixed_and_unusable_collections_are_refused(data):
    X, y, _ = data
    lazy = da.from_array(X, chunks=(7_000, X.shape[1]))
    with pytest.raises(TypeError, match="Use the chunks of X"):
        learn(lazy, y, **LINES)
    with pytest.raises(ValueError, match="one class only"):
        learn(lazy, da.zeros(len(y), chunks=7_000), **LINES)
