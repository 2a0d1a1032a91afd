"""AdditiveMELC on Dask collections: a sample is learned from, predictions are lazy; on threads and on a cluster."""

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'melc[dask]'")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from dask_cases import CHUNKS, in_chunks, two_thresholds  # noqa: E402
from test_additive import assert_same_model, assert_sound, learn  # noqa: E402

pytestmark = [pytest.mark.dask, pytest.mark.slow]

LINES = {"max_lines": 3}


@pytest.fixture(scope="module")
def data():
    return two_thresholds()


@pytest.fixture(scope="module")
def expected(data):
    return learn(*data, **LINES)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_few_rows_are_all_learned_from(data, expected, chunks):
    """Up to 200,000 rows, to the last bit as in memory: also weights, and partitions of a single class or of no row."""
    assert_same_model(learn(*in_chunks(CHUNKS[chunks], *data), **LINES), expected)


def test_several_classes(data):
    X, _, weights = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    found = learn(*in_chunks(CHUNKS["uneven"], X, y, weights), max_lines=2)
    assert_same_model(found, learn(X, y, weights, max_lines=2))


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


def test_a_cluster_of_more_rows_than_are_gathered():
    state = da.random.default_rng(0)
    X = state.normal(size=(400_000, 6), chunks=(50_000, 6))
    y = (X[:, 1] ** 2 + X[:, 4] ** 2 > 1.4).astype(int)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster),
    ):
        model = learn(X, y, **LINES)
        again = learn(X, y, **LINES)
        accuracy = float((model.predict(X) == y).mean().compute())
        head = X[:1_000].compute()
    assert accuracy > 0.93
    assert 190_000 <= model.lines_[0].counts.sum() <= 200_010
    assert set(model.lines_[0].features) == {1, 4}
    assert_same_model(model, again)
    assert_sound(model, head)


def test_mixed_and_unusable_collections_are_refused(data):
    X, y, _ = data
    lazy = da.from_array(X, chunks=(7_000, X.shape[1]))
    with pytest.raises(TypeError, match="Use the chunks of X"):
        learn(lazy, y, **LINES)
    with pytest.raises(ValueError, match="one class only"):
        learn(lazy, da.zeros(len(y), chunks=7_000), **LINES)
