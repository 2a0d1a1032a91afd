"""AdditiveMELC: what its lines say, what the parameters promise, and the data that it takes."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from melc import MELC, AdditiveMELC


def noisy(n=200, d=4, seed=0, n_classes=2):
    """Classes that overlap along the first feature."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.5 * y
    return X, y


def learn(X, y, weights=None, **settings):
    """A fit that warns of nothing, unless all rows of a class are equal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "All rows of class")
        return AdditiveMELC(**({"random_state": 0} | settings)).fit(X, y, weights)


def assert_sound(model, X):
    """Everything that a model says is a number, and its answers agree with each other."""
    assert np.isfinite(model.directions_).all()
    np.testing.assert_allclose(np.linalg.norm(model.directions_, axis=1), 1)
    assert np.isfinite(model.importances_).all()
    assert model.importances_.min() >= 0
    n_classes = len(model.classes_)
    n_curves = 1 if n_classes == 2 else n_classes
    for line in model.lines_:
        assert len(line.curves) == len(line.errors) == len(line.offsets) == n_curves
        for curve, errors in zip(line.curves, line.errors, strict=True):
            assert np.all(np.diff(curve.knots) > 0)
            assert errors.shape == curve.knots.shape
            assert np.isfinite(errors).all()
            assert errors.min() >= 0
            assert np.isfinite(curve.log_odds).all()
        for values in (line.densities, line.counts, line.places, line.feature_importances, line.offsets):
            assert np.isfinite(values).all()
        assert line.densities.shape == (n_classes, len(line.places))
        assert line.counts.shape == (len(line.thresholds) + 1, n_classes)
        assert len(line.codes) == len(line.counts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proba, decision, labels = model.predict_proba(X), model.decision_function(X), model.predict(X)
        logarithms = model.predict_log_proba(X)
    assert np.isfinite(decision).all()
    assert np.isfinite(logarithms).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(logarithms), proba, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(labels, model.classes_[np.argmax(proba, axis=1)])
    codes = (decision > 0).astype(int) if len(model.classes_) == 2 else np.argmax(decision, axis=1)
    np.testing.assert_array_equal(labels, model.classes_[codes])


def assert_same_model(one, other):
    """To the last bit."""
    np.testing.assert_array_equal(one.directions_, other.directions_)
    np.testing.assert_array_equal(one.intercepts_, other.intercepts_)
    np.testing.assert_array_equal(one.importances_, other.importances_)
    for mine, others in zip(one.lines_, other.lines_, strict=True):
        np.testing.assert_array_equal(mine.counts, others.counts)
        for curve, same in zip(mine.curves, others.curves, strict=True):
            np.testing.assert_array_equal(curve.knots, same.knots)
            np.testing.assert_array_equal(curve.log_odds, same.log_odds)
        for errors, same in zip(mine.errors, others.errors, strict=True):
            np.testing.assert_array_equal(errors, same)


# ------------------------------------------------------------------------------------------------- what the lines say


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("priors", [None, "empirical"])
def test_lines_add_up_to_the_decision(n_classes, priors):
    X, y = noisy(n_classes=n_classes, n=301)
    model = learn(X, y, priors=priors)
    adds = model.line_log_odds(X)
    assert adds.shape == (len(X), len(model.lines_), *([n_classes] if n_classes > 2 else []))
    adds = adds.reshape(len(X), len(model.lines_), -1)
    for k, line in enumerate(model.lines_):
        for c, curve in enumerate(line.curves):
            np.testing.assert_allclose(adds[:, k, c], curve.at(X @ line.direction), atol=1e-12)
        np.testing.assert_array_equal(model.directions_[k], line.direction)
    decision = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_allclose(decision, adds.sum(axis=1) + model.intercepts_, atol=1e-12)
    if n_classes > 2:
        np.testing.assert_allclose(model.predict_proba(X), softmax(decision, axis=1), atol=1e-12)
    assert_sound(model, X)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_curves_have_mean_zero_and_those_of_several_classes_add_up_to_zero(n_classes):
    X, y = noisy(n_classes=n_classes, n=400)
    X[:, 1] += (y % 2) * 2
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = learn(X, y, weights)
    assert len(model.lines_) > 1
    targets = weights / np.bincount(y, weights)[y] / n_classes
    for line in model.lines_:
        added = np.stack([curve.at(X @ line.direction) for curve in line.curves])
        np.testing.assert_allclose(added @ targets, 0, atol=0.002)  # but for knots that were left out
        if n_classes > 2:
            np.testing.assert_allclose(added.sum(axis=0), 0, atol=1e-9)
    if n_classes > 2:
        assert model.intercepts_.sum() == pytest.approx(0, abs=1e-9)


def test_importances_are_those_of_the_lines():
    X, y = noisy()
    model = learn(np.column_stack([X, np.ones(len(X))]), y)
    assert model.importances_.sum() == pytest.approx(sum(line.importance for line in model.lines_), rel=1e-12)
    assert model.importances_[-1] == 0
    assert np.argmax(model.importances_) == 0
    targets = np.where(y == 1, 0.5 / (y == 1).sum(), 0.5 / (y == 0).sum())
    for line in model.lines_:
        (curve,) = line.curves
        assert line.importance == pytest.approx(targets @ np.abs(curve.at(X @ line.direction[:-1])), rel=1e-9)
        assert line.feature_importances.sum() == pytest.approx(line.importance, rel=1e-12)


def test_counts_are_those_of_the_rows_between_thresholds():
    X, y = noisy()
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    for line in learn(X, y, weights).lines_:
        interval = np.searchsorted(line.thresholds, X @ line.direction, side="right")
        for k, c in np.ndindex(line.counts.shape):
            assert line.counts[k, c] == pytest.approx(weights[(interval == k) & (y == c)].sum())


@pytest.mark.parametrize("shape", ["exclusive or", "ring"])
def test_two_features_among_noise_are_found_with_few_lines(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 20))
    a, b = X[:, 4], X[:, 13]
    y = a * b > 0 if shape == "exclusive or" else a**2 + b**2 > 1.4
    model = learn(X[::2], y[::2], max_lines=6)
    assert len(model.lines_) <= 6
    assert model.score(X[1::2], y[1::2]) > 0.93
    assert model.importances_[[4, 13]].sum() > 0.9 * model.importances_.sum()
    assert set(model.lines_[0].features) == {4, 13}


def test_linear_data_are_decided_as_well_as_by_a_linear_model():
    """Few rows with equal weights for thirteen features: pairs of features would take too many lines."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_120, 13))
    y = (X.sum(axis=1) + rng.normal(size=2_120) > 0).astype(int)
    model, linear = (each.fit(X[:120], y[:120]) for each in (AdditiveMELC(random_state=0), LogisticRegression()))
    assert len(model.lines_[0].features) == 13
    assert model.score(X[120:], y[120:]) > linear.score(X[120:], y[120:]) - 0.01


def test_probabilities_of_a_known_model_are_calibrated():
    """The log-odds of two Gaussians in one feature, and of a wide and a narrow one in another, add up."""
    rng = np.random.default_rng(0)
    n = 6_000
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 6))
    X[:, 0] += 1.2 * y
    X[:, 1] *= 1 + y
    truth = 1.2 * X[:, 0] - 0.72 + X[:, 1] ** 2 * (1 / 2 - 1 / 8) - np.log(2)
    train, test = slice(None, None, 3), np.arange(n) % 3 > 0
    model = learn(X[train], y[train])

    def log_loss(odds):
        return np.mean(np.logaddexp(0, np.where(y[test], -odds, odds)))

    assert log_loss(model.decision_function(X[test])) - log_loss(truth[test]) < 0.008
    # Rows of about the same probability are right about so often.
    p = model.predict_proba(X[test])[:, 1]
    for low in np.arange(0, 1, 0.2):
        some = (p >= low) & (p < low + 0.2)
        assert abs(p[some].mean() - y[test][some].mean()) < 0.05


# ------------------------------------------------------------------------------------------------ what is promised


@pytest.mark.parametrize("max_lines", [1, 2, 5])
def test_the_most_lines(max_lines):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4).astype(int) + (X[:, 2] ** 2 > 2)
    model = learn(X, y, max_lines=max_lines)
    assert 1 <= model.n_iter_ == len(model.lines_) <= max_lines


def test_more_lines_begin_with_the_same_directions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4).astype(int)
    few, more = (learn(X, y, max_lines=max_lines) for max_lines in (2, 4))
    assert len(few.lines_) == 2 < len(more.lines_)
    np.testing.assert_array_equal(more.directions_[:2], few.directions_)


@pytest.mark.parametrize(
    ("features_per_line", "full_lines", "most"),
    [
        (1, "never", [1]),
        (2, "never", [1, 2]),
        (1, "auto", [1, 5]),
        (2, "auto", [1, 2, 5]),
        (None, "never", [5]),
        (None, "auto", [5]),
    ],
)
def test_the_features_of_a_line(features_per_line, full_lines, most):
    X, y = noisy(400, d=5)
    model = learn(X, (X @ [1, 1, 1, 1, 1] > 0) ^ (y == 0), features_per_line=features_per_line, full_lines=full_lines)
    assert {len(line.features) for line in model.lines_} <= set(most)
    np.testing.assert_array_equal(model.lines_[0].features, np.flatnonzero(model.directions_[0]))


def test_only_the_first_line_may_be_full():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_500, 6))
    y = (X.sum(axis=1) ** 2 > 6) & (X @ [1, -1, 1, -1, 1, -1] < 2.4)
    first, every = (learn(X, y, full_lines=full_lines) for full_lines in ("first", "auto"))
    assert len(first.lines_[0].features) == 6
    assert max(len(line.features) for line in first.lines_[1:]) <= 2
    assert sum(len(line.features) == 6 for line in every.lines_) > 1


def test_a_larger_gamma_makes_smoother_curves():
    X = np.random.default_rng(0).uniform(-2, 2, size=(600, 1))  # knots lie evenly: a strong penalty leads to a line
    y = np.random.default_rng(1).random(600) < expit(3 * np.sin(2 * X[:, 0]))
    models = [learn(X, y, gamma=gamma) for gamma in (0.2, 1.0, 5.0)]
    turns = [np.abs(np.diff(model.lines_[0].curves[0].pieces.slopes[1:-1])).sum() for model in models]
    assert turns[0] > 1.3 * turns[1] > 5 * turns[2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_lines": 0}, "'max_lines'.*Got 0"),
        ({"features_per_line": 3}, "'features_per_line'.*Got 3"),
        ({"full_lines": "always"}, "'full_lines'.*Got 'always'"),
        ({"gamma": 0.0}, "'gamma'.*Got 0.0"),
        ({"gamma": 1e-100}, "'gamma'.*Got 1e-100"),
        ({"gamma": 1e50}, "'gamma'.*Got 1e\\+50"),
        ({"n_jobs": 0}, "'n_jobs'.*Got 0"),
        ({"priors": [0.5, 0.6]}, "add up to 1.1"),
    ],
)
def test_what_no_parameter_can_be(settings, message):
    with pytest.raises(ValueError, match=message):
        AdditiveMELC(**settings).fit(*noisy())


@pytest.mark.parametrize("model", [MELC, AdditiveMELC])
@pytest.mark.parametrize("gamma", [1e-15, 1e15])
def test_the_least_and_the_largest_gamma(model, gamma):
    """Beyond them, bandwidths overflowed: with gamma = 1e50, a fit ended with a segmentation fault."""
    X, y = noisy()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        fitted = model(gamma=gamma, random_state=0).fit(X, y)
    assert np.isfinite(fitted.predict_proba(X)).all()


# ---------------------------------------------------------------------------------------------------- priors, weights


def test_priors_change_the_decision_and_not_the_lines():
    X, y = noisy(300)
    X, y = X[30:][(y[30:] == 0) | (np.arange(270) % 5 == 0)], y[30:][(y[30:] == 0) | (np.arange(270) % 5 == 0)]
    even, empirical, given = (learn(X, y, priors=priors) for priors in (None, "empirical", [0.9, 0.1]))
    shares = {empirical: (y == 1).sum() / (y == 0).sum(), given: 1 / 9}
    for model, ratio in shares.items():
        assert model.intercepts_ - even.intercepts_ == pytest.approx(np.log(ratio))
        np.testing.assert_array_equal(model.directions_, even.directions_)
        np.testing.assert_allclose(model.decision_function(X), even.decision_function(X) + np.log(ratio))
    np.testing.assert_allclose(given.predict_proba(X)[:, 1], expit(given.decision_function(X)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_priors_next_to_nothing(n_classes):
    X, y = noisy(n_classes=n_classes)
    priors = [1e-320, 1.0] if n_classes == 2 else [1e-320, 0.5, 0.5]
    model = learn(X, y, priors=priors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logarithms = model.predict_log_proba(X)
    assert np.isfinite(logarithms).all()
    assert logarithms[:, 0].max() < -600


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_copies_and_zero_is_absence_to_the_last_bit(n_classes):
    X, y = noisy(n_classes=n_classes, n=150)
    times = np.random.default_rng(1).integers(0, 4, size=len(y))
    weighted = learn(X, y, times)
    assert_same_model(weighted, learn(np.repeat(X, times, axis=0), np.repeat(y, times)))
    assert_same_model(weighted, learn(X[times > 0], y[times > 0], times[times > 0]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_order_of_rows_does_not_matter_to_the_last_bit(n_classes):
    X, y = noisy(n_classes=n_classes)
    order, weights = np.random.default_rng(2).permutation(len(y)), np.random.default_rng(3).uniform(0.5, 2, len(y))
    assert_same_model(learn(X, y), learn(X[order], y[order]))
    assert_same_model(learn(X, y, weights), learn(X[order], y[order], weights[order]))


@pytest.mark.parametrize("factor", [1e-9, 3.0, 1e12])
def test_a_common_factor_on_weights_changes_nothing(factor):
    X, y = noisy()
    for weights in (np.random.default_rng(3).uniform(0.5, 2, len(y)), np.arange(len(y)) % 3 + 1.0):
        plain, model = learn(X, y, weights), learn(X, y, factor * weights)
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("factor", [0.1, 1 / 3, 1e-100, 1e200])
def test_only_the_ratios_of_fractions_matter(factor):
    X, y = noisy()
    for weights in (np.where(np.arange(len(y)) % 2, 1.0, 1.5), np.random.default_rng(3).integers(2, 10, len(y)) / 7):
        plain, model = learn(X, y, weights), learn(X, y, factor * weights)
        np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-9)


def test_whole_weights_without_a_one_are_copies():
    X, y = noisy(n=150)
    weights = 2 + np.arange(len(y)) % 2
    copies = np.repeat(np.arange(len(y)), weights)
    assert_same_model(learn(X, y, weights), learn(X[copies], y[copies]))


@pytest.mark.parametrize("least", [1e-6, 1e-12, 1e-13, 1e-300])
def test_a_tiny_weight_is_no_unit(least):
    X, y = noisy()
    for weights in (np.random.default_rng(0).uniform(0.5, 1.5, len(y)), np.ones(len(y))):
        expected = learn(X, y, np.where(np.arange(len(y)) == 3, 1e-5, weights)).decision_function(X)
        found = learn(X, y, np.where(np.arange(len(y)) == 3, least, weights)).decision_function(X)
        np.testing.assert_allclose(found, expected, atol=1e-2)


# ------------------------------------------------------------------------------------------------------- scikit-learn


def test_labels_of_every_kind():
    X, y = noisy()
    plain = learn(X, y)
    for labels in (np.array([7, -3]), np.array(["yes", "no"]), np.array([True, False]), np.array([1.0, 0.0])):
        model = learn(X, labels[y])
        np.testing.assert_array_equal(model.classes_, np.sort(labels))
        sign = 1 if labels[1] > labels[0] else -1
        np.testing.assert_allclose(model.decision_function(X), sign * plain.decision_function(X), atol=1e-9)


def test_ten_classes():
    X, y = noisy(400, n_classes=10)
    model = learn(X, y, max_lines=2)
    assert model.decision_function(X).shape == (400, 10)
    assert len(model.lines_) <= 2
    assert_sound(model, X)


@pytest.mark.parametrize(
    "form", [np.asfortranarray, sparse.csr_array, sparse.csc_array, sparse.csr_matrix, np.ndarray.tolist]
)
def test_every_form_of_rows_gives_the_same_bits(form):
    X, y = noisy()
    plain, model = learn(X, y), learn(form(X), y)
    assert_same_model(plain, model)
    np.testing.assert_allclose(model.predict_proba(form(X)), plain.predict_proba(X), rtol=1e-9)


def test_single_precision():
    X, y = noisy()
    single = X.astype(np.float32)
    assert_same_model(learn(single, y), learn(single.astype(float), y))
    assert_sound(learn(single, y), single)


def test_rows_at_the_end_of_single_precision():
    """The sum of such a matrix is no number, so that it must not be what is searched for NaN."""
    X, y = noisy()
    model = learn(X, y)
    edge = np.full((1, 4), np.finfo(np.float32).max, dtype=np.float32)
    assert_sound(model, np.concatenate([edge, -edge]))


def test_a_memory_map(tmp_path):
    X, y = noisy()
    mapped = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    readable = np.memmap(tmp_path / "X", dtype=float, mode="r", shape=X.shape)
    assert_same_model(learn(readable, y), learn(X, y))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    X, y = noisy()
    names = ["a", "b", "c", "d"]
    frame = frames.DataFrame({name: X[:, k] for k, name in enumerate(names)})
    model = learn(frame, y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame), learn(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


def test_what_cannot_be_fitted_is_refused_and_the_model_is_as_it_was():
    X, y = noisy()
    model = learn(X, y)
    before = pickle.dumps(model)
    bad = X.copy()
    for value, message in (
        (np.inf, "infinity"),
        (1e300, r"Feature 2 has a standard deviation of .*e\+29"),
    ):
        bad[3, 2] = value
        with pytest.raises(ValueError, match=message):
            model.fit(bad, y)
    with pytest.raises(ValueError, match="one class only: 0"):
        model.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="None of the 4 features varies"):
        model.fit(np.ones_like(X), y)
    with pytest.raises(ValueError, match="Class True has 1 row"):
        model.fit(X, np.arange(len(y)) == 3)
    with pytest.raises(ValueError, match="rounding"):
        model.fit((1e9 + np.arange(20) % 2 * 1.2e-7)[:, None], np.arange(20) % 2)
    with pytest.raises(ValueError, match="zero for every row"):
        model.fit(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="sample_weight holds -1"):
        model.fit(X, y, np.full(len(y), -1))
    with pytest.raises(ValueError, match="The weights of class"):
        model.fit(X, y, np.where(y == 1, 1e-12, 1.0 + 0.1 * np.arange(len(y))))
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 4), np.inf))
    with pytest.raises(ValueError, match="5 features"):
        model.predict(np.zeros((1, 5)))
    with pytest.raises(NotFittedError):
        AdditiveMELC().predict(X)


def test_clone_parameters_and_pickle():
    X, y = load_iris(return_X_y=True)
    settings = {"max_lines": 3, "features_per_line": 1, "full_lines": "first", "gamma": 0.7, "random_state": 3}
    model = AdditiveMELC(**settings).fit(X, y)
    assert settings.items() <= clone(model).get_params().items()
    assert not [name for name in vars(clone(model)) if name.endswith("_")]
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert_same_model(copy.fit(X, y), model)


def test_the_seed_and_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("melc.fit.pursuit._SEARCHED_ROWS", 1_000)
    monkeypatch.setattr("melc.fit.pursuit._WORTH_THREADS", 100)
    monkeypatch.setattr("melc.data.products.SEGMENT_ROWS", 100)
    X, y = noisy(5_000, seed=4)
    y = y ^ (X[:, 1] ** 2 + X[:, 2] ** 2 > 3)
    models = [learn(X, y, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    assert_same_model(models[0], models[1])
    assert_same_model(models[0], models[2])
    assert not np.array_equal(models[0].directions_, learn(X, y, random_state=1).directions_)  # another sample
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models[:2]))


def test_verbose(capsys):
    model = learn(*noisy(), verbose=1, max_lines=2)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == len(model.lines_)
    assert shown[0].startswith("[AdditiveMELC] line 1: ")
