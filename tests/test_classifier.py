"""The estimator as a user meets it."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler

import naive
from melc import MELC, AdditiveMELC, cauchy_schwarz_divergence
from melc.fit import grid_search, solvers
from melc.sums import SUMS

METHODS = ("exact", "discard", "bin")
SOLVERS = tuple(solvers.SOLVERS)


def make(seed=0, n=150, d=3):
    """A class between two halves of the other: no single threshold will do."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ np.linspace(1, 2, d) / np.sqrt(d) + 0.2 * rng.normal(size=n)
    return X, np.where(np.abs(score) > 1, "outside", "inside")


def settle(**options):
    return MELC(**({"method": "exact", "n_init": 3, "random_state": 0, "max_iter": 500} | options))


def projections(model, X, y):
    """Both classes along the direction found, and their kernel variances, the naive way."""
    z = X @ model.coef_[0]
    codes = (y == model.classes_[1]).astype(int)
    variances = [float(V) for V in naive.kernel_variances(z, codes, model.gamma)]
    return [z[codes == c] for c in (0, 1)], variances


# ---------------------------------------------------------------------------------------------- prediction


@pytest.mark.slow
@pytest.mark.parametrize(("method", "gamma"), [("exact", 0.3), ("discard", 1.0), ("bin", 0.5)])
def test_prediction_by_thresholds_equals_the_naive_densities(method, gamma):
    """On 3 · 10⁴ random points, many of them outside the data."""
    X, y = make()
    model = settle(method=method, gamma=gamma, eps=0.05, bandwidth="silverman").fit(X, y)
    classes, variances = projections(model, X, y)
    rng = np.random.default_rng(1)
    new = rng.normal(size=(30_000, 3)) * rng.choice([0.5, 2, 50, 1e4], size=(30_000, 1))
    z = new @ model.coef_[0]
    ratio = naive.log_ratio(z, classes, variances)
    # A point on a threshold may go either way; beyond the outermost rows, and in joined intervals, other rules hold.
    rows = np.concatenate(classes)
    clear = (np.abs(ratio) > 1e-10) & (z >= rows.min()) & (z <= rows.max())
    expected = naive.log_odds(z, classes, variances).astype(float)
    kept = clear & ((expected > 0) == (model.decision_function(new) > 0))
    assert kept.sum() > 0.98 * clear.sum() > 9_000
    np.testing.assert_array_equal(model.predict(new)[kept], model.classes_[(ratio > 0).astype(int)][kept])
    np.testing.assert_allclose(model.decision_function(new)[kept], expected[kept], rtol=0, atol=0.002)


@pytest.mark.slow
def test_prediction_of_a_condensed_model_equals_the_naive_densities():
    X, y = make(n=5000)
    model = settle(method="bin", eps=0.2, n_init=1, bandwidth="silverman").fit(X, y)
    classes, variances = projections(model, X, y)
    assert max(len(c) for c in classes) > 2048
    z = np.random.default_rng(2).normal(scale=3, size=1000)
    new = z[:, None] * model.coef_
    ratio = naive.log_ratio(new @ model.coef_[0], classes, variances)
    rows = np.concatenate(classes)
    clear = (np.abs(ratio) > 1e-7) & (z >= rows.min()) & (z <= rows.max())
    assert clear.sum() > 700
    np.testing.assert_array_equal(model.predict(new)[clear], model.classes_[(ratio > 0).astype(int)][clear])


@pytest.mark.slow
@pytest.mark.parametrize("solver", solvers.SOLVERS)
@pytest.mark.parametrize("method", SUMS)
def test_every_method_and_solver_learns_what_one_threshold_cannot(method, solver):
    X, y = make(n=300)
    model = settle(method=method, solver=solver, eps=0.01).fit(X, y)
    assert balanced_accuracy_score(y, model.predict(X)) > 0.85
    assert list(model.interval_classes_[[0, -1]]) == ["outside", "outside"]
    assert "inside" in model.interval_classes_
    exact = cauchy_schwarz_divergence(X, y, model.coef_[0])
    assert model.divergence_ == pytest.approx(exact, abs=0.01 if SUMS[method].scale_free else 0.3)


@pytest.mark.parametrize("selection", ["likelihood", "divergence"])
@pytest.mark.parametrize("solver", solvers.SOLVERS)
@pytest.mark.parametrize("method", SUMS)
def test_every_result_names_its_algorithm(method, solver, selection):
    X, y = make(n=100)
    model = settle(method=method, solver=solver, eps=0.01, n_init=2, selection=selection).fit(X, y)
    on_grid = SUMS[method].has_grid and solvers.SOLVERS[solver].has_grid
    expected = grid_search.ALGORITHM if on_grid else solvers.SOLVERS[solver].algorithm
    assert {run.algorithm for run in model.results_} == {expected}
    linear = model.result_.reason == solvers.BY_LIKELIHOOD
    assert model.result_.algorithm == ("none: a linear direction" if linear else expected)


def test_with_shrinkage_lbfgs_is_that_of_scipy():
    X, y = make(n=100)
    assert MELC(n_init=1, shrinkage=0.1).fit(X, y).result_.algorithm == solvers.SOLVERS["lbfgs"].algorithm


def test_the_additive_classifier_learns_what_one_threshold_cannot():
    X, y = make(n=300)
    assert balanced_accuracy_score(y, AdditiveMELC(random_state=0).fit(X, y).predict(X)) > 0.85


def test_real_data():
    """breast cancer as shipped with scikit-learn; a held-out half."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :10]
    model = settle(n_init=1).fit(X[::2], y[::2])
    assert balanced_accuracy_score(y[1::2], model.predict(X[1::2])) > 0.9


def test_divergence_is_that_of_the_direction():
    X, y = make()
    model = settle().fit(X, y)
    assert model.divergence_ == pytest.approx(cauchy_schwarz_divergence(X, y, model.coef_[0]), rel=1e-10)
    assert model.divergence_ == pytest.approx(max(r.divergence for r in model.results_), rel=3e-9)
    assert len(model.results_) == 3
    assert model.n_iter_ == model.result_.n_iter


def test_coef_has_unit_norm_and_a_fixed_sign():
    X, y = make()
    y = np.where(X @ [1.0, 0.5, 0.0] > 0.3, "up", "down")
    for seed in range(4):
        model = settle(random_state=seed, n_init=1).fit(X, y)
        assert np.linalg.norm(model.coef_) == pytest.approx(1, rel=1e-12)
        heaviest = np.argmax(np.abs(model.coef_[0]) * X.std(axis=0))
        assert model.coef_[0, heaviest] > 0


def test_probabilities_and_decisions_agree_with_the_prediction():
    X, y = make()
    model = settle().fit(X, y)
    new = np.random.default_rng(3).normal(scale=3, size=(500, 3))
    probability, decision = model.predict_proba(new), model.decision_function(new)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[(decision > 0).astype(int)], model.predict(new))
    np.testing.assert_array_equal(model.classes_[(probability[:, 1] > 0.5).astype(int)], model.predict(new))
    assert np.all((probability >= 0) & (probability <= 1))
    # Pseudo-rows make the probabilities less extreme than the ratio of the densities, never more.
    near, ratio = model.predict_proba(X)[:, 1], model.decision_function(X)
    assert np.all(np.abs(near - 0.5) <= np.abs(1 / (1 + np.exp(-ratio)) - 0.5) + 1e-12)
    np.testing.assert_array_equal(near > 0.5, ratio > 0)


def test_thresholds_separate_the_interval_classes():
    X, y = make()
    model = settle(gamma=0.4).fit(X, y)
    t = model.thresholds_
    assert len(t) >= 2
    middles = np.concatenate([[t[0] - 1], (t[:-1] + t[1:]) / 2, [t[-1] + 1]])
    np.testing.assert_array_equal(model.predict(middles[:, None] * model.coef_), model.interval_classes_)


def test_classes_count_equally_however_many_rows_they_have():
    """Ten rows against a thousand, same shape: the threshold lies half way, not next to the rare class."""
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(size=1000), 3 + np.linspace(-1.5, 1.5, 10)])[:, None]
    y = np.repeat([0, 1], [1000, 10])
    model = settle().fit(X, y)
    inside = model.thresholds_[(model.thresholds_ > 0) & (model.thresholds_ < 3)]
    assert inside == pytest.approx([1.5], abs=0.4)


# -------------------------------------------------------------------------------------------- invariances


@pytest.mark.parametrize("method", METHODS)
def test_swapping_the_classes_changes_the_sign_only(method):
    X, y = make()
    swapped = np.where(y == "inside", "outside", "inside")
    one, other = (settle(method=method, eps=0.01, n_init=1).fit(X, labels) for labels in (y, swapped))
    # The discriminant turns round with the classes, and bins are laid from the other end then.
    tolerance = 1e-2 if method == "bin" else 1e-5
    sign = np.sign(one.coef_[0] @ other.coef_[0])
    np.testing.assert_allclose(one.coef_, sign * other.coef_, atol=tolerance)
    new = np.random.default_rng(0).normal(scale=2, size=(2000, 3))
    disagree = (one.predict(new) == "inside") != (other.predict(new) == "outside")
    assert disagree.mean() <= tolerance
    if method != "bin":
        np.testing.assert_allclose(one.decision_function(X), -other.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("n", [7_000, 30_000])
@pytest.mark.parametrize("model", [MELC(n_init=2, random_state=0), AdditiveMELC(max_lines=3, random_state=0)])
def test_samples_of_many_rows_do_not_depend_on_which_class_comes_first(model, n):
    X, y = make_classification(n, 5, n_redundant=0, weights=[0.3], flip_y=0.1, random_state=0)
    one, other = (clone(model).fit(X, labels).decision_function(X) for labels in (y, 1 - y))
    np.testing.assert_allclose(one, -other, atol=1e-6)


def test_translation_moves_the_thresholds_only():
    X, y = make()
    shift = np.array([16.0, -4.0, 2.0])
    one, other = settle(n_init=1).fit(X, y), settle(n_init=1).fit(X + shift, y)
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.thresholds_, one.thresholds_ + shift @ one.coef_[0], rtol=1e-4, atol=1e-4)


def test_the_order_of_rows_does_not_matter():
    X, y = make()
    order = np.random.default_rng(5).permutation(len(y))
    one, other = settle(n_init=1).fit(X, y), settle(n_init=1).fit(X[order], y[order])
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.thresholds_, one.thresholds_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_copies_and_zero_is_absence(method):
    X, y = make()
    copies = np.random.default_rng(6).integers(0, 4, size=len(y))
    options = {"method": method, "eps": 0.01, "n_init": 2}
    weighted = settle(**options).fit(X, y, sample_weight=copies)
    repeated = settle(**options).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-5)
    assert weighted.divergence_ == pytest.approx(repeated.divergence_, rel=1e-7)
    np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, rtol=1e-3, atol=1e-4)


def test_units_of_the_features_do_not_matter():
    X, y = make()
    units = np.array([1e-3, 1.0, 1e4])
    one, other = settle().fit(X, y), settle().fit(X * units, y)
    np.testing.assert_array_equal(one.predict(X), other.predict(X * units))
    assert other.divergence_ == pytest.approx(one.divergence_, rel=1e-6)


# ---------------------------------------------------------------------------------------- starts and seeds


def test_starts_are_the_same_for_every_method():
    """With an ε that leaves nothing out and features of unit scale, two steps from the same starts lead every
    method to the same places, run by run."""
    X, y = make(d=4)
    X = StandardScaler().fit_transform(X)
    found = {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = settle(method=method, eps=1e-13, n_init=6, max_iter=2, tol=0).fit(X, y)
        found[method] = np.array([r.direction for r in model.results_])
    np.testing.assert_allclose(found["discard"], found["exact"], atol=1e-6)
    np.testing.assert_allclose(found["bin"], found["exact"], atol=1e-3)
    assert np.linalg.matrix_rank(found["exact"], tol=1e-2) == 4  # six starts that differ


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_fixes_everything(method):
    X, y = make()
    one, two = (settle(method=method, random_state=7).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.thresholds_, two.thresholds_)
    other = settle(method=method, random_state=8).fit(X, y)
    first, second = ([r.n_evaluations for r in m.results_] for m in (one, other))
    assert first[0] == second[0]  # the discriminant
    assert first != second


def test_the_global_generator_is_left_alone():
    X, y = make()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    settle(random_state=3).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


# ------------------------------------------------------------------------------------------------ warnings


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_iterations_warn_with_the_remedy(solver):
    X, y = make()
    with pytest.warns(ConvergenceWarning, match=r"limit of 2 iterations.*Raise max_iter \(now 2\).*tol"):
        MELC(method="exact", solver=solver, max_iter=2, tol=0, n_init=2, random_state=0).fit(X, y)


def test_a_class_that_does_not_vary_warns_with_the_remedy():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    X[y == 0] = [0.5, 0.5]
    with pytest.warns(UserWarning, match=r"does not vary.*'x1', 'x0'.*floor.*shrinkage=\"auto\""):
        model = settle(selection="divergence").fit(X, y)
    assert np.isfinite(model.divergence_)
    assert np.all(np.isfinite(model.predict_proba(X)))
    assert list(model.predict([[0.5, 0.5]])) == [0]


def test_more_features_than_rows_gives_no_nan():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(12, 40)), np.repeat([0, 1], 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which of the two warnings comes is not the point
        model = settle(n_init=2).fit(X, y)
    assert np.all(np.isfinite(model.coef_))
    assert np.isfinite(model.divergence_)
    assert np.sum(model.predict(X) != y) <= 1  # an interval of one row does not earn its place


def test_classes_a_thousand_bandwidths_apart():
    rng = np.random.default_rng(9)
    y = np.repeat([0, 1], 50)
    X = rng.normal(size=(100, 2)) + 2000.0 * y[:, None] * [1, 0]
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = settle(method=method, n_init=1, selection="divergence").fit(X, y)
        assert 1e5 < model.divergence_ < np.inf
        assert abs(model.coef_[0, 0]) > 0.5
        np.testing.assert_array_equal(model.predict(X), y)


# ----------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_values_that_are_no_numbers(value):
    X, y = make()
    model = settle(n_init=1).fit(X, y)
    X = X.copy()
    X[2, 1] = value
    with pytest.raises(ValueError, match="Input X contains infinity"):
        settle().fit(X, y)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.predict(X)


def test_one_class():
    X, _ = make()
    with pytest.raises(ValueError, match=r"one class only: 'lonely'\. .*second class"):
        settle().fit(X, ["lonely"] * len(X))


def test_one_class_left_by_the_weights():
    X, y = make()
    with pytest.raises(ValueError, match="one class only: 'inside'"):
        settle().fit(X, y, sample_weight=(y == "inside") * 1.0)


@pytest.mark.parametrize("weights", [None, np.ones(150)])
def test_fewer_than_two_points_in_a_class(weights):
    X, _ = make()
    y = np.where(np.arange(150) == 17, "rare", "usual")
    with pytest.raises(ValueError, match=r"Class 'rare' has 1 row.*at least 2.*Add rows"):
        settle().fit(X, y, sample_weight=weights)


def test_a_matrix_without_variance():
    with pytest.raises(ValueError, match=r"None of the 3 features varies over the 20 rows.*Check how the data"):
        settle().fit(np.full((20, 3), 4.2), np.arange(20) % 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0}, "'gamma' parameter.*Got 0 instead"),
        ({"gamma": -2.0}, r"'gamma' parameter.*Got -2\.0 instead"),
        ({"gamma": np.nan}, "'gamma' parameter.*Got nan instead"),
        ({"gamma": np.inf}, "'gamma' parameter.*Got inf instead"),
        ({"gamma": "wide"}, "'gamma' parameter.*Got 'wide' instead"),
        ({"eps": 0}, "'eps' parameter.*Got 0 instead"),
        ({"eps": -1e-3}, r"'eps' parameter.*Got -0\.001 instead"),
        ({"eps": np.nan}, "'eps' parameter.*Got nan instead"),
        ({"method": "guess"}, "'method' parameter.*exact.*Got 'guess' instead"),
        ({"solver": "newton"}, "'solver' parameter.*lbfgs.*Got 'newton' instead"),
        ({"n_init": 0}, "'n_init' parameter.*Got 0 instead"),
        ({"max_iter": 0}, "'max_iter' parameter.*Got 0 instead"),
        ({"n_init": 10**11}, r"'n_init' parameter.*range \[1, 1000000\]. Got 100000000000 instead"),
        ({"max_iter": 10**12}, r"'max_iter' parameter.*range \[1, 1000000\]. Got 1000000000000 instead"),
        ({"tol": -1.0}, r"'tol' parameter.*Got -1\.0 instead"),
    ],
)
def test_bad_parameters_are_named_with_what_is_allowed(options, message):
    X, y = make()
    with pytest.raises(ValueError, match=message):
        settle(**options).fit(X, y)


def test_bad_weights_and_shapes():
    X, y = make()
    with pytest.raises(ValueError, match=r"sample_weight holds -1\. A weight counts as that many rows.*not negative"):
        settle().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(
        ValueError, match=r"sample_weight has shape \(3,\), but X has 150 rows.*one weight for each row"
    ):
        settle().fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples"):
        settle().fit(X, y[:-1])
    model = settle(n_init=1).fit(X, y)
    with pytest.raises(ValueError, match=r"has 2 features, but MELC is expecting 3"):
        model.predict(X[:, :2])


def test_a_failed_fit_leaves_things_as_they_were():
    X, y = make()
    model = settle()
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, ["only"] * len(X))
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, ["only"] * len(X))
    np.testing.assert_array_equal(model.predict(X), before)


# ------------------------------------------------------------------------------------------- good citizen


def test_pickle_and_clone():
    X, y = make()
    model = settle(gamma=0.7).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()


def test_float32_data_give_the_same_model():
    X, y = make()
    one, other = settle(n_init=1).fit(X, y), settle(n_init=1).fit(X.astype(np.float32), y)
    assert other.coef_.dtype == np.float64
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-3)
    assert np.mean(other.predict(X.astype(np.float32)) == one.predict(X)) > 0.99


def test_the_model_is_small_beside_the_data():
    X, y = make(n=20_000)
    model = settle(method="bin", eps=0.2, n_init=1).fit(X, y)
    assert len(pickle.dumps(model)) < 0.2 * X.nbytes
