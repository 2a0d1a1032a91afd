"""AdditiveMELC among scikit-learn's own: pipelines, searches, calibration, callbacks, metadata."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import AdditiveMELC
from test_ecosystem import Recorder, callback, left_over, make

pytestmark = pytest.mark.slow

__all__ = ["callback"]  # a fixture


def lines(**options):
    return AdditiveMELC(**({"random_state": 0} | options))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_in_a_pipeline(n_jobs):
    X, y = make()
    grid = {"additivemelc__gamma": [0.5, 1.0], "additivemelc__features_per_line": [1, 2, None]}
    pipeline = make_pipeline(StandardScaler(), lines(full_lines="never"))
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.8
    assert search.best_params_["additivemelc__features_per_line"] != 1  # the sum of three features decides


def test_calibration_and_scorers():
    X, y = make()
    calibrated = CalibratedClassifierCV(lines(), cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert calibrated.score(X, y) > 0.85
    X, y = load_iris(return_X_y=True)
    found = cross_validate(lines(), X, y, cv=3, scoring=["balanced_accuracy", "neg_log_loss", "roc_auc_ovr"])
    assert found["test_balanced_accuracy"].mean() > 0.93
    assert found["test_neg_log_loss"].min() > -0.5
    assert found["test_roc_auc_ovr"].min() > 0.95


def test_weights_find_their_way_through_a_pipeline():
    X, y = make()
    weights = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler, wants = (
            StandardScaler().set_fit_request(sample_weight=False),
            lines().set_fit_request(sample_weight=True),
        )
        pipeline = make_pipeline(scaler, wants).fit(X, y, sample_weight=weights)
    Z = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(pipeline[-1].coef_, lines().fit(Z, y, weights).coef_)
    assert not np.array_equal(pipeline[-1].lines_[0].counts, lines().fit(Z, y).lines_[0].counts)


@pytest.mark.usefixtures("callback")
def test_callbacks_hear_of_every_line():
    X, y = make()
    weights, recorder = np.ones(len(y)), Recorder()
    model = lines().set_callbacks(recorder).fit(X, y, sample_weight=weights)
    n = len(model.lines_)
    runs = [event for k in range(n) for event in (f"begin run {k} of 0", "end run")]
    assert recorder.heard == ["setup", "begin fit 0 of 16", *runs, "end fit", "teardown"]
    assert recorder.scores[-1] == model.score(X, y)
    assert recorder.given[0][0] is X
    assert recorder.given[0][2] == {"sample_weight": weights}
    assert not left_over(model)
    np.testing.assert_array_equal(model.coef_, lines().fit(X, y, weights).coef_)


@pytest.mark.usefixtures("callback")
def test_a_callback_may_ask_to_stop():
    recorder = Recorder(stop_after=1)
    model = lines().set_callbacks(recorder).fit(*make())
    assert len(model.lines_) == 1
    assert recorder.heard[-2:] == ["end fit", "teardown"]
    # With several classes each needs a line; no more are made.
    model = lines().set_callbacks(Recorder(stop_after=2)).fit(*load_iris(return_X_y=True))
    assert [line.class_index for line in model.lines_] in ([0, 0, 1, 2], [0, 1, 2])


@pytest.mark.usefixtures("callback")
@pytest.mark.parametrize("moment", ["on_fit_task_begin", "on_fit_task_end"])
def test_a_callback_that_fails_is_torn_down_and_the_model_is_as_before(moment, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    recorder = Recorder()
    monkeypatch.setattr(recorder, moment, fail)
    model = lines().set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError):
        model.fit(*make())
    assert recorder.heard[-1] == "teardown"
    assert not left_over(model)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_progress_bar(callback, capsys):
    pytest.importorskip("rich")
    model = lines().set_callbacks(callback.ProgressBar()).fit(*make())
    shown = capsys.readouterr().out
    assert "AdditiveMELC" in shown
    assert "100%" in shown
    assert not left_over(model)


@pytest.mark.parametrize("load", [make, lambda: load_iris(return_X_y=True)])
def test_a_scoring_monitor(load, callback):
    X, y = load()
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = lines().set_callbacks(monitor).fit(X, y)
    scores = [row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "fit"]
    assert scores == [pytest.approx(model.score(X, y))]


def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch):
    X, y = make()
    model = lines().fit(X, y)
    before = model.coef_.copy()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("melc.fit.pursuit.Pursuit._best", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.n_features_in_ == 3
