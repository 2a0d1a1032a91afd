"""Several classes, weights, priors, outputs and repeated fits, as a user of scikit-learn expects them."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score

from melc import MELC, AdditiveMELC
from melc.export import from_json, to_json
from melc.model.curve import Curve
from melc.plotting import ProjectionDisplay


def make(n=240, d=3, n_classes=3, seed=0):
    """Classes that overlap, each of another size."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, p=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(), size=n)
    return rng.normal(size=(n, d)) + 2.0 * np.eye(n_classes, d)[y], np.array(["ant", "bee", "cow", "dog"])[y]


def settle(**options):
    return MELC(**({"n_init": 2, "random_state": 0} | options))


def assert_same_model(one, other):
    """To the last bit."""
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.divergence_, other.divergence_)
    for mine, others in zip(one.lines_, other.lines_, strict=True):
        for curve, another in zip(mine.curves, others.curves, strict=True):
            np.testing.assert_array_equal(curve.knots, another.knots)
            np.testing.assert_array_equal(curve.log_odds, another.log_odds)
        np.testing.assert_array_equal(mine.thresholds, others.thresholds)
        np.testing.assert_array_equal(mine.counts, others.counts)


# ---------------------------------------------------------------------------------------- several classes


@pytest.mark.slow
@pytest.mark.parametrize(("load", "n_init"), [(load_iris, 10), (load_digits, 1)])
def test_several_classes_on_rows_not_seen(load, n_init):
    X, y = load(return_X_y=True)
    model = settle(n_init=n_init).fit(X[::2], y[::2])
    found, probability, odds = (f(X[1::2]) for f in (model.predict, model.predict_proba, model.decision_function))
    n_classes = len(np.unique(y))
    assert balanced_accuracy_score(y[1::2], found) >= 0.85
    assert probability.shape == odds.shape == (len(y) // 2, n_classes)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], found)
    np.testing.assert_array_equal(model.classes_[odds.argmax(axis=1)], found)
    assert model.coef_.shape == (n_classes, X.shape[1])
    np.testing.assert_allclose(np.linalg.norm(model.coef_, axis=1), 1)


def test_one_projection_a_class_in_its_own_shape():
    X, y = make()
    model = settle().fit(X, y)
    assert list(model.classes_) == ["ant", "bee", "cow"]
    assert model.coef_.shape == (3, 3)
    assert model.divergence_.shape == (3,)
    for attribute in ("thresholds_", "interval_classes_", "lines_", "result_", "results_"):
        assert isinstance(getattr(model, attribute), list)
        assert len(getattr(model, attribute)) == 3
    z, added = model.transform(X), model.line_log_odds(X)
    assert added.shape == (len(X), 3, 3)
    np.testing.assert_allclose(model.decision_function(X), model.intercepts_ + added.sum(axis=1), atol=1e-12)
    for k, line in enumerate(model.lines_):
        labels = model.interval_classes_[k]
        assert len(labels) == len(model.thresholds_[k]) + 1
        assert len(model.results_[k]) == 2
        # Along a line, the class of an interval is the one whose curve is highest there.
        interval = np.searchsorted(model.thresholds_[k], z[:, k], side="right")
        np.testing.assert_array_equal(labels[interval], model.classes_[added[:, k].argmax(axis=1)])
        np.testing.assert_allclose(line.counts.sum(axis=0), [np.sum(y == label) for label in model.classes_])
        np.testing.assert_allclose(np.sum([curve.log_odds for curve in line.curves], axis=0), 0, atol=1e-9)


def test_each_projection_is_that_of_the_class_against_the_rest():
    X, y = make()
    model = settle(n_init=1).fit(X, y)
    for k, label in enumerate(model.classes_):
        alone = settle(n_init=1).fit(X, y == label)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], atol=1e-9)
        assert model.divergence_[k] == pytest.approx(alone.divergence_, rel=1e-12)


def test_two_classes_stay_one_projection():
    X, y = make(n_classes=2)
    model = settle().fit(X, y)
    assert model.coef_.shape == (1, 3)
    assert isinstance(model.divergence_, float)
    assert isinstance(model.thresholds_, np.ndarray)
    assert set(model.interval_classes_) <= {"ant", "bee"}
    assert model.decision_function(X).shape == (len(X),)
    assert model.predict_proba(X).shape == (len(X), 2)
    assert model.transform(X).shape == (len(X), 1)


def anywhere(X, n, seed=0):
    """Rows near the data, between and far outside them: from a thousandth of their spread to 1e155 times it."""
    rng = np.random.default_rng(seed)
    exponents = np.concatenate([rng.uniform(-3, 2, n), rng.uniform(0, 8, n), rng.uniform(100, 155, n)])
    steps = rng.normal(size=(3 * n, X.shape[1])) * X.std(axis=0) * 10 ** exponents[:, None]
    return X[rng.integers(len(X), size=3 * n)] + steps


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 4, 10])
@pytest.mark.parametrize("priors", [None, "empirical"])
def test_labels_probabilities_and_decisions_name_the_same_class_wherever_one_looks(n_classes, priors):
    X, y = load_digits(return_X_y=True) if n_classes == 10 else make(n_classes=n_classes)
    model = settle(n_init=1, priors=priors, tol=1e-2).fit(X, y)
    rows = anywhere(X, 2_000 if n_classes == 10 else 20_000)
    found = np.searchsorted(model.classes_, model.predict(rows))
    probability, decision = model.predict_proba(rows), model.decision_function(rows)
    np.testing.assert_array_equal(probability.argmax(axis=1), found)
    np.testing.assert_array_equal(decision > 0 if n_classes == 2 else decision.argmax(axis=1), found)
    assert probability.min() >= 0
    assert probability.max() <= 1
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-14)


def test_the_best_odds_win_also_where_rounding_makes_probabilities_equal():
    """Three features, each with a line on which one class has the only curve that is not zero."""
    model = settle(n_init=1).fit(*make())
    curve, zero = (Curve(np.array([0.0, 18.0]), np.array([-1.0, 1.0]) * height) for height in (1e-14, 0.0))
    own = [tuple(curve if c == k else zero for c in range(3)) for k in range(3)]
    model.lines_ = [
        replace(line, direction=v, curves=curves) for line, v, curves in zip(model.lines_, np.eye(3), own, strict=True)
    ]
    model.intercepts_ = np.zeros(3)
    rows = 9 + np.random.default_rng(0).normal(size=(1000, 3))
    odds = model.decision_function(rows)
    rounded = softmax(odds, axis=1)
    assert np.any(rounded.argmax(axis=1) != odds.argmax(axis=1))
    np.testing.assert_array_equal(model.predict_proba(rows).argmax(axis=1), odds.argmax(axis=1))
    np.testing.assert_array_equal(model.predict(rows), model.classes_[odds.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_proba(rows), 1 / 3, atol=1e-9)


def test_beyond_all_rows_the_curves_go_on_as_they_end():
    model = settle(n_init=1).fit(*make())
    for sign in (-1, 1):
        rows = sign * np.array([1e3, 1e30, 1e149])[:, None] * np.ones((1, 3))
        odds = model.decision_function(rows)
        np.testing.assert_array_equal(odds[1:], odds[:-1])


# ------------------------------------------------------------------------------------- weights and priors


@pytest.mark.slow
@pytest.mark.parametrize("method", ["moments", "exact", "discard", "bin"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_copies_and_zero_is_absence_to_the_last_bit(n_classes, method):
    X, y = make(n_classes=n_classes)
    copies = np.random.default_rng(1).integers(0, 4, size=len(y))
    options = {"method": method, "eps": 1e-2 if method in ("discard", "bin") else 1e-6, "max_iter": 500}
    weighted = settle(**options).fit(X, y, sample_weight=copies)
    assert_same_model(weighted, settle(**options).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies)))
    kept = copies > 0
    assert_same_model(weighted, settle(**options).fit(X[kept], y[kept], sample_weight=copies[kept]))


def test_a_class_without_weight_is_absent():
    X, y = make()
    model = settle().fit(X, y, sample_weight=np.where(y == "bee", 0.0, 1.0))
    assert list(model.classes_) == ["ant", "cow"]
    assert_same_model(model, settle().fit(X[y != "bee"], y[y != "bee"]))


@pytest.mark.slow
def test_weights_are_copies_on_data_too_large_to_be_sorted():
    """Where rows are not joined, to the accuracy of the search."""
    X, y = make(n=30_000, d=8)
    copies = np.random.default_rng(1).integers(1, 3, size=len(y))
    paper = settle(n_init=1, selection="divergence")
    weighted = clone(paper).fit(X, y, sample_weight=copies)
    repeated = paper.fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(weighted.divergence_, repeated.divergence_, rtol=1e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


@pytest.mark.parametrize("selection", ["divergence", "likelihood"])
def test_neither_copies_nor_another_order_lead_to_another_optimum(selection, monkeypatch):
    """Noise has many optima. The rows are not joined, as if they had more than four million numbers."""
    monkeypatch.setattr("melc.fit.intake._WORTH_DENSE", 0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30_000, 8)), rng.integers(2, size=30_000)
    copies, order = rng.integers(1, 4, size=30_000), rng.permutation(30_000)
    noisy = settle(gamma=0.3, selection=selection)
    expected = clone(noisy).fit(X, y, copies.astype(float))
    repeated = clone(noisy).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    shuffled = clone(noisy).fit(X[order], y[order], copies[order].astype(float))
    for other in (repeated, shuffled):
        np.testing.assert_allclose(other.coef_, expected.coef_, rtol=0, atol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_priors_move_the_thresholds_and_nothing_else(n_classes):
    X, y = make(n_classes=n_classes)
    even = settle().fit(X, y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    empirical, given = settle(priors="empirical").fit(X, y), settle(priors=shares).fit(X, y)
    for model in (empirical, given):
        np.testing.assert_array_equal(model.coef_, even.coef_)
        np.testing.assert_array_equal(model.divergence_, even.divergence_)
    np.testing.assert_allclose(empirical.intercepts_, given.intercepts_, rtol=1e-12)
    added = np.log(shares / shares.mean()) if n_classes > 2 else np.log(shares[1:] / shares[0])
    np.testing.assert_allclose(np.diff(empirical.intercepts_ - even.intercepts_), np.diff(added), atol=1e-12)
    if n_classes == 2:
        np.testing.assert_allclose(empirical.intercepts_, added, rtol=1e-12)
    moved = even.decision_function(X) + (empirical.intercepts_ - even.intercepts_ if n_classes > 2 else added[0])
    np.testing.assert_allclose(empirical.decision_function(X), moved, atol=0.004)
    if n_classes == 2:
        assert not np.array_equal(even.thresholds_, empirical.thresholds_)
    # Whoever is frequent gains.
    frequent = even.classes_[-1]
    assert np.mean(empirical.predict(X) == frequent) > np.mean(even.predict(X) == frequent)


def test_empirical_priors_count_weights():
    X, y = make(n_classes=2)
    weights = np.where(y == "ant", 3.0, 1.0)
    model = settle(priors="empirical").fit(X, y, sample_weight=weights)
    assert model.intercepts_ == pytest.approx(np.log(np.sum(y == "bee") / (3 * np.sum(y == "ant"))), rel=1e-12)


@pytest.mark.parametrize(
    "priors",
    [
        [0.5],
        [0.5, 0.3, 0.2],
        [0.5, -0.5],
        [1, 0],
        [np.nan, 1],
        [np.inf, 1],
        ["a", "b"],
        [[0.5, 0.5]],
        {"ant": 1.5, "bee": -0.5},
    ],
)
def test_bad_priors_are_refused(priors):
    X, y = make(n_classes=2)
    with pytest.raises(
        ValueError, match=r"priors=.*must be positive numbers, one for each class.*2 labels.*'ant', 'bee'"
    ):
        settle(priors=priors).fit(X, y)


def test_priors_that_do_not_add_up_to_one_are_refused():
    X, y = make(n_classes=2)
    with pytest.raises(ValueError, match=r"priors=\[1, 3\] add up to 4, .* by their sum: priors=\[0.25, 0.75\]"):
        settle(priors=[1, 3]).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"priors=\[1e\+308, 1e\+308\] .* by their sum: priors=\[0.5, 0.5\]"):
            settle(priors=[1e308, 1e308]).fit(X, y)
    settle(priors=[0.3333333, 0.6666667]).fit(X, y)


@pytest.mark.parametrize("kind", [MELC(n_init=1, random_state=0), AdditiveMELC(max_lines=1, random_state=0)])
def test_priors_by_label_and_balanced(kind):
    X, y = make(n_classes=2)
    plain = clone(kind).fit(X, y)
    assert clone(kind).set_params(priors="balanced").fit(X, y).intercepts_ == plain.intercepts_
    by_label, in_order = (
        clone(kind).set_params(priors=priors).fit(X, y) for priors in ({"bee": 0.9, "ant": 0.1}, [0.1, 0.9])
    )
    assert by_label.intercepts_ == in_order.intercepts_ == pytest.approx(plain.intercepts_ + np.log(9))
    copy = from_json(to_json(by_label))
    assert copy.priors == [0.1, 0.9]
    np.testing.assert_array_equal(copy.predict_proba(X), by_label.predict_proba(X))
    with pytest.raises(
        ValueError, match=r"must have a probability for each of the labels \['ant', 'bee'\], and no other"
    ):
        clone(kind).set_params(priors={"ant": 0.5, "wasp": 0.5}).fit(X, y)


@pytest.mark.parametrize("kind", [MELC(n_init=1, random_state=0), AdditiveMELC(max_lines=1, random_state=0)])
def test_pictures_show_priors_by_label(kind):
    pytest.importorskip("matplotlib")
    X, y = make(n_classes=2)
    by_label, in_order = (
        ProjectionDisplay.from_estimator(clone(kind).set_params(priors=priors).fit(X, y))
        for priors in ({"bee": 0.9, "ant": 0.1}, [0.1, 0.9])
    )
    np.testing.assert_allclose(by_label.heights, in_order.heights)


@pytest.mark.parametrize("priors", ["equal", 0.5])
def test_priors_of_a_kind_that_is_not_known_are_refused(priors):
    X, y = make(n_classes=2)
    with pytest.raises(ValueError, match="'priors' parameter of MELC must be"):
        settle(priors=priors).fit(X, y)


def test_a_prior_of_almost_nothing():
    X, y = make(n_classes=2)
    for priors, label in (([1e-300, 1], "bee"), ([1, 1e-300], "ant")):
        model = settle(priors=priors).fit(X, y)
        assert set(model.predict(X)) == {label}
        assert np.all(np.isfinite(model.predict_log_proba(X)))


# ------------------------------------------------------------------------------------------------ outputs


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("priors", [None, "empirical"])
def test_probabilities_far_from_the_data_are_no_surer_than_near_them(n_classes, priors):
    X, y = make(n_classes=n_classes)
    model = settle(priors=priors).fit(X, y)
    surest = model.predict_proba(X).max()
    assert surest > 0.9
    for distance in (1e4, 1e9, 1e160, 1e307):
        far = X * distance
        probability = model.predict_proba(far)
        assert probability.max() <= (surest + 1e-9 if n_classes == 2 else 1)
        np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(far))
        assert np.all(np.isfinite(model.decision_function(far)))
        assert np.all(np.isfinite(model.predict_log_proba(far)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_probabilities(n_classes):
    X, y = make(n_classes=n_classes)
    model = settle(gamma=0.3).fit(X, y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_transform_projects(n_classes):
    X, y = make(n_classes=n_classes)
    model = settle()
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()
    z = model.fit_transform(X, y)
    np.testing.assert_allclose(z, X @ model.coef_.T, rtol=1e-12, atol=1e-12)
    assert list(model.get_feature_names_out()) == [f"melc{k}" for k in range(model.coef_.shape[0])]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_projections_as_frames(library):
    pytest.importorskip(library)
    X, y = make()
    plain = settle(n_init=1).fit(X, y)
    frame = settle(n_init=1).set_output(transform=library).fit(X, y).transform(X)
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == ["melc0", "melc1", "melc2"]
    np.testing.assert_array_equal(frame.to_numpy(), plain.transform(X))


# ---------------------------------------------------------------------------------------- fits repeated


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X, y = make()
    model = settle(n_init=5, warm_start=True, selection="divergence").fit(X, y)
    first = model.coef_
    evaluations = [r.n_evaluations for r in model.result_]
    model.fit(X, y)
    assert [len(runs) for runs in model.results_] == [1, 1, 1]
    assert all(again.n_evaluations < before for again, before in zip(model.result_, evaluations, strict=True))
    np.testing.assert_allclose(model.coef_, first, atol=1e-3)
    assert model.n_iter_ >= 1
    # A hundred other rows: still one run a class, from there.
    model.fit(*make(n=100, seed=5))
    assert [len(runs) for runs in model.results_] == [1, 1, 1]


def test_a_warm_start_in_small_steps_reaches_what_one_fit_reaches():
    X, y = make(n_classes=2)
    whole = settle(n_init=1, tol=1e-7).fit(X, y)
    steps = settle(n_init=1, tol=1e-7, warm_start=True, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reached = [steps.fit(X, y).divergence_ for _ in range(10)]
    assert np.all(np.diff(reached) >= -1e-12)
    assert reached[-1] == pytest.approx(whole.divergence_, rel=1e-6)


@pytest.mark.parametrize("change", ["features", "classes"])
def test_a_warm_start_elsewhere_is_refused_and_changes_nothing(change):
    X, y = make()
    model = settle(n_init=1, warm_start=True).fit(X, y)
    before = pickle.dumps(model)
    other = (X[:, :2], y) if change == "features" else (X, np.char.upper(y))
    with pytest.raises(ValueError, match=r"goes on from the last fit.*3 features.*set warm_start=False"):
        model.fit(*other)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("when", ["refused", "broken off"])
def test_a_fit_that_fails_leaves_the_model_as_it_was(when, monkeypatch):
    X, y = make()
    model, fresh = settle(n_init=1).fit(X, y), settle(n_init=1)
    before = pickle.dumps(model)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    other, error = (X[:, :2], np.zeros(len(X))), ValueError
    if when == "broken off":
        monkeypatch.setattr("melc.fit.projection.learn_projection", interrupted)
        other, error = (X[:, :2], np.arange(len(X)) % 2), KeyboardInterrupt
    for each in (model, fresh):
        with pytest.raises(error):
            each.fit(*other)
    assert pickle.dumps(model) == before
    assert not [name for name in vars(fresh) if name.endswith("_")]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_seeds_give_equal_models(n_classes):
    X, y = make(n=800, n_classes=n_classes)
    one, two, other = (
        settle(random_state=seed, n_init=3).fit(X, y) for seed in (2, 2, 4)
    )  # of which the same run is polished
    assert_same_model(one, two)
    first, second = (model.results_ if n_classes == 2 else model.results_[0] for model in (one, other))
    np.testing.assert_array_equal(first[0].direction, second[0].direction)  # from the discriminant
    assert not np.array_equal(first[1].direction, second[1].direction)
    drawn = settle(random_state=np.random.RandomState(2), n_init=3).fit(X, y)
    assert_same_model(one, drawn)


def test_n_iter_is_at_least_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1)), np.arange(40) % 2  # one feature: there is nothing to search
    assert settle().fit(X, y).n_iter_ == 1
    model = settle().fit(*make())
    assert model.n_iter_ == max(r.n_iter for r in model.result_) > 1


@pytest.mark.parametrize(("n_classes", "n_runs"), [(2, 4), (3, 12)])
def test_verbose_prints_a_line_a_run(n_classes, n_runs, capsys):
    X, y = make(n_classes=n_classes)
    settle(n_init=4).fit(X, y)
    assert capsys.readouterr().out == ""
    settle(n_init=4, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == n_runs
    for k, line in enumerate(lines, 1):
        assert line.startswith(f"[MELC] run {k}/{n_runs}: D = ")


def test_warnings_name_the_class_and_point_to_the_caller():
    X, y = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settle(max_iter=1, tol=0, selection="divergence").fit(X, y)
    assert [w.category for w in caught] == [ConvergenceWarning] * 3
    for label, warning in zip(("ant", "bee", "cow"), caught, strict=True):
        assert str(warning.message).startswith(f"Class '{label}' against the rest: The best of 2 runs stopped")
        assert warning.filename == __file__


@pytest.mark.slow
def test_the_model_holds_kilobytes_whatever_the_number_of_rows():
    X, y = make(n=200_000, n_classes=2)
    model = settle(n_init=1).fit(X, y)
    assert len(pickle.dumps(model)) < 200_000
    assert len(model.lines_[0].curves[0].knots) < 1_000


def test_sparse_classes_beyond_two():
    X, y = make()
    dense, thin = settle().fit(X, y), settle().fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)
