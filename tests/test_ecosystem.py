"""Both classifiers among scikit-learn's own: pipelines, searches, callbacks, metadata, representations."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC, AdditiveMELC

pytestmark = pytest.mark.slow


def make(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.abs(X.sum(axis=1)) + 0.3 * rng.normal(size=n) > 1.5, "outside", "inside")


def settle(**options):
    return MELC(**({"n_init": 2, "random_state": 0} | options))


def add_up(**options):
    return AdditiveMELC(**({"random_state": 0} | options))


both = pytest.mark.parametrize("unfitted", [settle, add_up])


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


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_over_the_features_of_a_line_in_a_pipeline(n_jobs):
    X, y = make()
    grid = {"additivemelc__gamma": [0.5, 1.0], "additivemelc__features_per_line": [1, 2, None]}
    pipeline = make_pipeline(StandardScaler(), add_up(full_lines="never"))
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=n_jobs).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.8
    assert search.best_params_["additivemelc__features_per_line"] != 1  # the sum of three features decides


@both
def test_calibration(unfitted):
    X, y = make()
    calibrated = CalibratedClassifierCV(unfitted(), cv=3).fit(X, y)
    probability = calibrated.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert np.mean(calibrated.predict(X) == y) > 0.85


@both
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_several_scorers(unfitted, n_jobs):
    X, y = load_iris(return_X_y=True)
    scoring = ["balanced_accuracy", "neg_log_loss", "roc_auc_ovr", "f1_macro"]
    found = cross_validate(unfitted(), X, y, cv=3, scoring=scoring, n_jobs=n_jobs, return_estimator=True)
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


# ----------------------------------------------------------------------------------------------- selection


def with_idle_features():
    """Rows whose class depends on the features 0 and 2; feature 3 has the largest values."""
    X = np.random.default_rng(0).normal(size=(400, 5)) * [1, 1, 1, 1000, 1]
    return X, (np.abs(X[:, 0] + X[:, 2]) > 1).astype(int)


def test_features_are_selected_by_their_importance():
    X, y = with_idle_features()
    selector = SelectFromModel(add_up(), threshold=-np.inf, max_features=2).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [0, 2]
    importances = selector.estimator_.feature_importances_
    assert importances.sum() == pytest.approx(1)
    np.testing.assert_array_equal(np.sort(np.argsort(-importances)[:2]), [0, 2])
    by_threshold = SelectFromModel(add_up(), threshold=0.2).fit(X, y)
    np.testing.assert_array_equal(by_threshold.get_support(), importances >= 0.2)


def test_features_are_eliminated_by_their_importance():
    X, y = with_idle_features()
    eliminated = RFE(add_up(), n_features_to_select=2, step=3).fit(X, y)
    assert eliminated.get_support(indices=True).tolist() == [0, 2]
    assert eliminated.score(X, y) > 0.9


def test_a_sum_of_curves_does_not_look_linear():
    """Tools that find ``coef_`` and ``intercept_`` take a model for a linear one."""
    model = add_up().fit(*make())
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "intercept_")
    assert model.directions_.shape == (len(model.lines_), 3)


# ------------------------------------------------------------------------------------------------ metadata


@both
def test_weights_find_their_way_through_pipelines_and_searches(unfitted):
    X, y = make()
    weights = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        wants = unfitted().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, wants).fit(X, y, sample_weight=weights)
        scorer = make_scorer(balanced_accuracy_score).set_score_request(sample_weight=True)
        grid = {f"{pipeline.steps[-1][0]}__gamma": [1.0]}
        search = GridSearchCV(make_pipeline(scaler, wants), grid, cv=2, scoring=scorer)
        search.fit(X, y, sample_weight=weights)
    expected = unfitted().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    unweighted = unfitted().fit(StandardScaler().fit_transform(X), y)
    for model in (pipeline, search.best_estimator_):
        np.testing.assert_array_equal(model[-1].directions_, expected.directions_)
        assert not np.array_equal(model[-1].lines_[0].curves[0].log_odds, unweighted.lines_[0].curves[0].log_odds)


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


@both
def test_a_copy_by_pickle_predicts_the_same(unfitted):
    X, y = load_iris(return_X_y=True)
    model = unfitted().fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(copy.fit(X, y).directions_, model.directions_)


def test_an_interrupted_fit_leaves_the_model_as_it_was(monkeypatch):
    X, y = make()
    model = add_up().fit(X, y)
    before = model.directions_.copy()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("melc.fit.pursuit._Search.best", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    np.testing.assert_array_equal(model.directions_, before)
    assert model.n_features_in_ == 3


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
@both
def test_callbacks_hear_of_every_run_or_line(unfitted):
    X, y = make()
    weights, recorder = np.ones(len(y)), Recorder()
    model = unfitted().set_callbacks(recorder).fit(X, y, sample_weight=weights)
    # MELC tells of a model made of the best run so far. The last one is the model itself.
    n_runs, most, n_models = (2, 2, 3) if unfitted is settle else (len(model.lines_), 16, 1)
    runs = [event for k in range(n_runs) for event in (f"begin run {k} of 0", "end run")]
    assert recorder.heard == ["setup", f"begin fit 0 of {most}", *runs, "end fit", "teardown"]
    assert len(recorder.scores) == n_models
    assert recorder.scores[-1] == model.score(X, y)
    assert recorder.given[0][0] is X
    assert recorder.given[0][2] == {"sample_weight": weights}
    assert not left_over(model)
    np.testing.assert_array_equal(model.directions_, unfitted().fit(X, y, sample_weight=weights).directions_)


@pytest.mark.usefixtures("callback")
def test_callbacks_hear_of_the_runs_of_all_classes():
    X, y = load_iris(return_X_y=True)
    alone = settle().fit(X, y)
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
def test_a_callback_may_ask_to_stop_after_a_line():
    recorder = Recorder(stop_after=1)
    model = add_up().set_callbacks(recorder).fit(*make())
    assert len(model.lines_) == 1
    assert recorder.heard[-2:] == ["end fit", "teardown"]
    # With several classes, lines are added in rounds of one for each class; no other round is begun.
    model = add_up().set_callbacks(Recorder(stop_after=1)).fit(*load_iris(return_X_y=True))
    assert 1 <= len(model.lines_) <= 3


@pytest.mark.usefixtures("callback")
@both
@pytest.mark.parametrize("moment", ["on_fit_task_begin", "on_fit_task_end"])
def test_a_callback_that_fails_is_torn_down_and_the_model_is_as_before(unfitted, moment, monkeypatch):
    X, y = make()

    def fail(*_):
        raise ZeroDivisionError

    recorder = Recorder()
    monkeypatch.setattr(recorder, moment, fail)
    model = unfitted().set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, y)
    assert recorder.heard[-1] == "teardown"
    assert not left_over(model)
    assert not [name for name in vars(model) if name.endswith("_")]


@both
def test_a_progress_bar(unfitted, callback, capsys):
    pytest.importorskip("rich")
    X, y = make()
    model = unfitted().set_callbacks(callback.ProgressBar()).fit(X, y)
    shown = capsys.readouterr().out
    assert type(model).__name__ in shown
    assert "100%" in shown
    assert not left_over(model)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@both
@pytest.mark.parametrize("load", [make, lambda: load_iris(return_X_y=True)])
def test_a_scoring_monitor(unfitted, load, callback):
    X, y = load()
    monitor = callback.ScoringMonitor(scoring="balanced_accuracy")
    model = unfitted().set_callbacks(monitor).fit(X, y)
    log = monitor.get_logs().data
    by_run = [row["balanced_accuracy"] for row in log if row["task_name"] == "run"]
    # One class alone, or a line among others, is no model yet.
    assert len(by_run) == (2 if len(model.classes_) == 2 and unfitted is settle else 0)
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
