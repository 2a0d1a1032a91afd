"""The estimator among scikit-learn's own: pipelines, searches, callbacks, metadata, representations."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC

pytestmark = pytest.mark.slow


def make(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.abs(X.sum(axis=1)) + 0.3 * rng.normal(size=n) > 1.5, "outside", "inside")


def settle(**options):
    return MELC(**({"n_init": 2, "random_state": 0} | options))


# -------------------------------------------------------------------------------------------- model search


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_over_gamma_and_method_in_a_pipeline(n_jobs):
    X, y = make()
    grid = {"melc__gamma": [0.5, 1.0, 5.0], "melc__method": ["moments", "bin"]}
    pipeline = make_pipeline(StandardScaler(), settle(eps=1e-3))
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs, scoring="balanced_accuracy").fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_score_ > 0.85
    assert search.best_params_["melc__gamma"] < 5  # so smooth that the middle is lost
    assert search.predict(X).shape == y.shape


def test_calibration():
    X, y = make()
    calibrated = CalibratedClassifierCV(settle(), cv=3).fit(X, y)
    probability = calibrated.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert np.mean(calibrated.predict(X) == y) > 0.85


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_several_scorers(n_jobs):
    X, y = load_iris(return_X_y=True)
    scoring = ["balanced_accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro"]
    found = cross_validate(settle(), X, y, cv=3, scoring=scoring, n_jobs=n_jobs, return_estimator=True)
    for name in scoring:
        assert np.all(np.isfinite(found[f"test_{name}"]))
    assert found["test_balanced_accuracy"].min() > 0.85
    assert found["test_roc_auc_ovr"].min() > 0.95
    assert found["test_neg_log_loss"].min() > -0.5


def test_a_learning_curve():
    X, y = make(n=400)
    sizes, _, scores = learning_curve(settle(), X, y, train_sizes=[0.1, 1.0], cv=3, shuffle=True, random_state=0)
    assert sizes[0] < sizes[1]
    assert scores[1].mean() > scores[0].mean()


# ------------------------------------------------------------------------------------------------ metadata


def test_weights_find_their_way_through_pipelines_and_searches():
    X, y = make()
    weights = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        wants = settle().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, wants).fit(X, y, sample_weight=weights)
        scorer = make_scorer(balanced_accuracy_score).set_score_request(sample_weight=True)
        search = GridSearchCV(make_pipeline(scaler, wants), {"melc__gamma": [1.0]}, cv=2, scoring=scorer)
        search.fit(X, y, sample_weight=weights)
    expected = settle().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    unweighted = settle().fit(StandardScaler().fit_transform(X), y)
    for model in (pipeline, search.best_estimator_):
        np.testing.assert_array_equal(model[-1].coef_, expected.coef_)
        assert not np.array_equal(model[-1].coef_, unweighted.coef_)


# ------------------------------------------------------------------------------------------- good citizen


def test_clone_and_parameters():
    priors = np.array([0.3, 0.7])
    model = settle(gamma=0.3, method="exact", priors=priors, warm_start=True, verbose=0)
    copy = clone(model)
    np.testing.assert_array_equal(copy.priors, priors)
    assert {k: v for k, v in copy.get_params().items() if k != "priors"} == {
        k: v for k, v in model.get_params().items() if k != "priors"
    }
    assert copy.set_params(gamma=2.0).gamma == 2.0
    fitted = model.fit(*make())
    assert not [name for name in vars(clone(fitted)) if name.endswith("_")]


def test_the_picture_of_the_estimator_links_to_its_documentation():
    assert MELC._doc_link_template.startswith("https://")
    assert f'href="{MELC._doc_link_template}"' in settle()._repr_html_()
    assert "MELC" in make_pipeline(StandardScaler(), settle())._repr_html_()


def test_a_copy_by_pickle_predicts_the_same():
    X, y = load_iris(return_X_y=True)
    model = settle().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(copy.fit(X, y).coef_, model.coef_)


# ----------------------------------------------------------------------------------------------- callbacks


class Recorder:
    """Writes down what it hears; asks to stop after a number of runs."""

    def __init__(self, stop_after=None):
        self.heard, self.scores, self.stop_after, self.given = [], [], stop_after, []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {context.task_name} {context.task_id} of {context.max_subtasks}")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.heard.append(f"end {context.task_name}")
        self.given.append((X, y, metadata))
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return self.stop_after is not None and self.heard.count("end run") == self.stop_after


@pytest.fixture
def callback():
    return pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


def left_over(model):
    """Attributes that a fit should have cleared away: whatever is neither parameter, result nor the user's own."""
    return set(vars(model)) - set(model.get_params()) - {n for n in vars(model) if n.endswith("_")} - {"_skl_callbacks"}


@pytest.mark.usefixtures("callback")
def test_callbacks_hear_of_every_run():
    X, y = make()
    weights = np.ones(len(y))
    recorder = Recorder()
    model = settle(n_init=3).set_callbacks(recorder).fit(X, y, sample_weight=weights)
    runs = [event for k in range(3) for event in (f"begin run {k} of 0", "end run")]
    assert recorder.heard == ["setup", "begin fit 0 of 3", *runs, "end fit", "teardown"]
    # Each hears of a model made of the best run so far; the last one is the model itself.
    assert len(recorder.scores) == 4
    assert recorder.scores[-1] == model.score(X, y)
    assert recorder.given[0][0] is X
    assert recorder.given[0][2] == {"sample_weight": weights}
    assert not left_over(model)
    np.testing.assert_array_equal(model.coef_, settle(n_init=3).fit(X, y, sample_weight=weights).coef_)


@pytest.mark.usefixtures("callback")
def test_callbacks_hear_of_the_runs_of_classes_solved_together(monkeypatch):
    X, y = load_iris(return_X_y=True)
    alone = settle().fit(X, y)
    monkeypatch.setattr("melc.fit.projection._WORTH_TOGETHER", 0)
    recorder = Recorder()
    model = settle().set_callbacks(recorder).fit(X, y)
    assert recorder.heard.count("end run") == 6
    assert recorder.heard[-2:] == ["end fit", "teardown"]
    np.testing.assert_array_equal(model.coef_, alone.coef_)


@pytest.mark.usefixtures("callback")
def test_a_callback_may_ask_to_stop():
    X, y = make()
    recorder = Recorder(stop_after=2)
    model = settle(n_init=8).set_callbacks(recorder).fit(X, y)
    assert len(model.results_) == 2
    assert recorder.heard[-2:] == ["end fit", "teardown"]
    # With several classes each needs a run; no more are made.
    recorder = Recorder(stop_after=2)
    model = settle(n_init=8).set_callbacks(recorder).fit(*load_iris(return_X_y=True))
    assert [len(runs) for runs in model.results_] == [2, 1, 1]


@pytest.mark.usefixtures("callback")
@pytest.mark.parametrize("moment", ["on_fit_task_begin", "on_fit_task_end"])
def test_a_callback_that_fails_is_torn_down_and_the_model_is_as_before(moment, monkeypatch):
    X, y = make()

    def fail(*_):
        raise ZeroDivisionError

    recorder = Recorder()
    monkeypatch.setattr(recorder, moment, fail)
    model = settle().set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, y)
    assert recorder.heard[-1] == "teardown"
    assert not left_over(model)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_progress_bar(callback, capsys):
    pytest.importorskip("rich")
    X, y = make()
    model = settle(n_init=3).set_callbacks(callback.ProgressBar()).fit(X, y)
    shown = capsys.readouterr().out
    assert "MELC" in shown
    assert "100%" in shown
    assert not left_over(model)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.parametrize("load", [make, lambda: load_iris(return_X_y=True)])
def test_a_scoring_monitor(load, callback):
    X, y = load()
    monitor = callback.ScoringMonitor(scoring="balanced_accuracy")
    model = settle(n_init=3).set_callbacks(monitor).fit(X, y)
    log = monitor.get_logs().data
    by_run = [row["balanced_accuracy"] for row in log if row["task_name"] == "run"]
    assert len(by_run) == (3 if len(model.classes_) == 2 else 0)  # one class alone is no model yet
    assert [row["balanced_accuracy"] for row in log if row["task_name"] == "fit"] == [
        pytest.approx(balanced_accuracy_score(y, model.predict(X)))
    ]
    assert not left_over(model)


def test_a_progress_bar_around_a_search(callback, capsys):
    pytest.importorskip("rich")
    X, y = make()
    search = GridSearchCV(settle(), {"gamma": [0.5, 1.0]}, cv=2)
    if not hasattr(search, "set_callbacks"):
        pytest.skip("this search takes no callbacks")
    search.set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "MELC" in capsys.readouterr().out


def test_without_callbacks_a_fit_is_a_fit():
    X, y = make()
    model = settle().fit(X, y)
    assert not left_over(model)
    assert len(pickle.dumps(model)) < 50_000
