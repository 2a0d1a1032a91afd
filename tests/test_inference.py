"""Bootstrap and permutation test: what they return, that mirrors and units do not matter, and what is refused."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive
from melc import MELC, AdditiveMELC
from melc.inference import bootstrap, permutation_test
from melc.inference.alignment import Lines, divergences_of, log_odds_of_classes
from melc.inference.intervals import accuracy_interval, accuracy_of, folds_of, limits, unbiased
from melc.inference.resampling import refit_of, resampled
from melc.model.curve import Curve
from tables_data import mixed_frame


def band(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.abs(X @ [0.8, 0.6, 0.0] + 0.2 * rng.normal(size=n)) > 0.7, "outside", "inside")


def ring(n=150):
    """Rows of which one class is around the other, so that an additive model has several lines."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4, "outside", "inside")


def several(n=180):
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y], y


def short(**settings):
    return MELC(random_state=0, **settings)


@pytest.fixture(scope="module")
def fitted():
    X, y = band()
    model = short().fit(X, y)
    return model, X, y, bootstrap(model, X, y, n=40, random_state=0)


def test_the_intervals_have_the_shapes_of_the_model(fitted):
    model, _, _, found = fitted
    assert found.n == 40
    assert found.confidence == 0.9
    np.testing.assert_array_equal(found.coef.estimate, model.coef_)
    assert np.all(found.coef.low < found.coef.high)
    assert found.coef.low.shape == model.coef_.shape
    assert [each.value for each in found.thresholds[0]] == model.thresholds_.tolist()
    assert all(each.low < each.value < each.high and 0.9 <= each.share <= 1 for each in found.thresholds[0])
    assert 0 < found.divergence.low < found.divergence.estimate < found.divergence.high
    assert found.divergence.estimate < model.divergence_  # which is biased upward
    assert 0.5 < found.accuracy.low < found.accuracy.estimate < found.accuracy.high < 1
    assert found.same_optimum == 1
    np.testing.assert_array_equal(found.importances.estimate, model.importances_)
    assert found.line_shares.tolist() == [1]


def test_a_resample_by_weights_is_one_by_repeated_rows():
    X, y = band()
    refit = refit_of(short().fit(X, y), X, y, None)
    codes = refit.codes
    counts = resampled(codes, 2, np.random.default_rng(5))
    np.testing.assert_array_equal(np.bincount(codes, counts), np.bincount(codes))
    by_weights = refit(7, codes, counts)
    by_rows = MELC(random_state=7).fit(*naive.repeated(X, codes, counts))
    np.testing.assert_allclose(by_weights.coef_, by_rows.coef_, atol=1e-9)
    np.testing.assert_allclose(by_weights.thresholds_, by_rows.thresholds_, atol=1e-9)
    assert by_weights.divergence_ == pytest.approx(by_rows.divergence_, rel=1e-9)


def test_the_bootstrap_is_that_of_fits_to_repeated_rows(fitted):
    """Slow and obvious: 40 fits to repeated rows, aligned by hand."""
    model, X, y, found = fitted
    codes = (y == "outside").astype(int)
    weights, thresholds, divergences = [], [], []
    v, s = model.coef_[0], model.feature_spread_
    for seed in np.random.RandomState(0).randint(2**31 - 1, size=40):
        counts = resampled(codes, 2, np.random.default_rng(seed))
        other = MELC(random_state=int(seed)).fit(*naive.repeated(X, codes, counts))
        u = other.coef_[0]
        factor = np.linalg.norm(v * s) / np.linalg.norm(u * s) * np.sign(np.corrcoef(X @ u, X @ v)[0, 1])
        weights.append(u * factor)
        moved = np.sort((other.thresholds_ - X.mean(axis=0) @ u) * factor + X.mean(axis=0) @ v)
        thresholds.append(moved)
        divergences.append(other.divergence_)
    assert {len(each) for each in thresholds} == {2}
    low, high = np.quantile(weights, [0.05, 0.95], axis=0, method="weibull")
    largest = np.linalg.norm(v * s) / s
    for limit, sign in ((found.coef.low[0], -1), (found.coef.high[0], 1)):
        np.testing.assert_allclose(limit, np.clip(v + sign * (high - low) / 2, -largest, largest), atol=1e-8)
    low, high = np.quantile(thresholds, [0.05, 0.95], axis=0, method="weibull")
    for i, each in enumerate(found.thresholds[0]):
        assert each.low == pytest.approx(each.value - (high[i] - low[i]) / 2, abs=1e-8)
    assert found.divergence.estimate == pytest.approx(2 * model.divergence_ - np.median(divergences), abs=1e-8)


def test_the_intervals_follow_the_units_of_the_features():
    """A feature mirrored, others in other units and far from zero."""
    X, y = band()
    units, offset = np.array([1.0, -1000.0, 0.01]), np.array([0.0, 5000.0, 3.0])
    found, other = (bootstrap(short().fit(rows, y), rows, y, n=20, random_state=0) for rows in (X, X * units + offset))
    factor = other.coef.estimate[0, 0] / found.coef.estimate[0, 0]
    ends = np.sort([other.coef.low * units / factor, other.coef.high * units / factor], axis=0)
    np.testing.assert_allclose(ends, [found.coef.low, found.coef.high], atol=1e-5)
    move = offset @ other.coef.estimate[0]
    for each, expected in zip(other.thresholds[0], found.thresholds[0], strict=True):
        assert (each.low - move) / factor == pytest.approx(expected.low, abs=1e-5)
        assert (each.high - move) / factor == pytest.approx(expected.high, abs=1e-5)
    assert other.accuracy == found.accuracy


def test_alignment_undoes_a_mirror():
    X, y = band()
    model = short().fit(X, y)
    mirrored, (line,) = copy.copy(model), model.lines_
    curve = Curve(-line.curves[0].knots[::-1], line.curves[0].log_odds[::-1])
    mirrored.lines_ = [replace(line, direction=-line.direction, curves=(curve,))]
    (aligned,) = Lines.of(model, X, np.ones(len(X))).aligned(mirrored)
    np.testing.assert_allclose(aligned.coef, model.coef_[0], atol=1e-12)
    np.testing.assert_allclose(aligned.thresholds, model.thresholds_, atol=1e-12)
    assert aligned.correlation == pytest.approx(1)


def test_thresholds_match_by_the_class_above_them():
    X = np.linspace(-3, 3, 60)[:, None]
    y = np.abs(X[:, 0]) > 1
    model = short().fit(X, y)
    other = clone(model).fit(X + np.where(X > 0, 0.2, 0.0), y)
    (aligned,) = Lines.of(model, X, np.ones(60)).aligned(other)
    assert np.all(np.abs(aligned.thresholds - model.thresholds_) < 0.3)
    without = clone(model).fit(X, X[:, 0] > 1)  # one threshold: below it the first class
    (aligned,) = Lines.of(model, X, np.ones(60)).aligned(without)
    assert np.isnan(aligned.thresholds).tolist() == [True, False]


def test_thresholds_of_several_classes_match_by_both_classes_beside_them():
    X, y = several()
    model = short(n_init=1).fit(X, y)
    line = model.lines_[0]
    middles = np.array([-2.0, 0.0, 2.0, 4.0])

    def with_classes(codes, sign=1.0):
        """The first line with thresholds at -1, 1 and 3 and these classes between them, perhaps mirrored."""
        curves = [np.where(np.array(codes) == code, 1.0, -1.0) for code in range(3)]
        places = sign * middles[:: int(sign)]
        changed = tuple(Curve(places, values[:: int(sign)]) for values in curves)
        other = copy.copy(model)
        other.lines_ = [replace(line, direction=sign * line.direction, curves=changed), *model.lines_[1:]]
        return other

    lines = Lines.of(with_classes([0, 1, 0, 2]), X, np.ones(len(X)))
    for codes, expected in {
        (0, 1, 0, 2): [-1, 1, 3],
        (0, 1, 2, 0): [-1, np.nan, np.nan],  # the other changes are from 1 to 2 and from 2 to 0
        (1, 0, 2, 1): [np.nan, -1, 1],  # the change from 1 to 0 is elsewhere
    }.items():
        for sign in (1.0, -1.0):
            aligned = lines.aligned(with_classes(codes, sign))
            np.testing.assert_allclose(aligned[0].thresholds, expected, atol=1e-9)
    assert [each.correlation for each in aligned] == pytest.approx([1, 1, 1])


def test_the_log_odds_of_classes_are_those_of_their_probabilities():
    scores = np.random.default_rng(0).normal(size=(50, 4)) * 5
    p = softmax(scores, axis=1)
    np.testing.assert_allclose(log_odds_of_classes(scores), np.log(p / (1 - p)), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(log_odds_of_classes(scores[:, :1]), scores[:, :1])


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_a_threshold_beside_few_rows_has_no_interval(weight):
    """A dozen rows of a class far out: most resamples repeat some of them, which does not make their threshold real."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = (X[:, 0] > 0).astype(int)
    X[np.flatnonzero(y == 0)[:12]] += 6
    weights = np.full(300, weight)
    model = MELC(random_state=0).fit(X, y, weights)
    found = bootstrap(model, X, y, n=20, random_state=0, sample_weight=weights)
    middle, tail = found.thresholds[0]
    assert middle.low < middle.value < middle.high
    assert middle.rows > 100
    assert tail.share > 0.9
    assert tail.rows == 12
    assert (tail.low, tail.high) == (-np.inf, np.inf)
    assert "(no interval), in 100%, 12 rows beside it" in found.summary()


def test_several_classes():
    X, y = several()
    model = short().fit(X, y)
    found = bootstrap(model, X, y, n=20, random_state=0)
    assert found.coef.low.shape == (3, 2)
    assert found.divergence.low.shape == (3,)
    assert len(found.thresholds) == 3
    assert 0.7 < found.accuracy.estimate < 1
    assert found.line_names == [f"line {k + 1} (found for {k})" for k in range(3)]
    assert "\nline 3 (found for 2)\n" in found.summary()
    assert found.line_shares.tolist() == [1, 1, 1]
    test = permutation_test(model, X, y, n=9, random_state=0)
    assert test.divergence == pytest.approx(np.mean(model.divergence_), rel=0.05)
    assert test.p_value == 0.1


def test_additive_models():
    X, y = ring()
    model = AdditiveMELC(full_lines="never", random_state=0).fit(X, y)
    assert len(model.lines_) > 1
    found = bootstrap(model, X, y, n=20, random_state=0)
    assert found.coef.low.shape == model.directions_.shape
    assert found.line_shares.shape == (len(model.lines_),)
    assert found.line_shares.max() >= 0.9
    known = found.line_shares >= 0.25
    assert np.isfinite(found.coef.low[known]).all()
    assert np.isinf(found.coef.low[found.line_shares < 0.25]).all()
    assert not found.coef.low[known][model.directions_[known] == 0].any()
    np.testing.assert_array_equal(found.importances.estimate, model.importances_)
    assert np.all((found.importances.low >= 0) & (found.importances.low <= found.importances.high))
    assert 0 < found.same_optimum <= found.line_shares.mean()
    assert "line 1, in " in found.summary()
    assert permutation_test(model, X, y, n=9, random_state=0).p_value == 0.1


def test_only_a_single_line_may_change_its_features():
    X, y = ring()
    one = AdditiveMELC(max_lines=1, features_per_line=1, full_lines="never", random_state=0).fit(X, y)
    several = AdditiveMELC(full_lines="never", random_state=0).fit(X, y)
    assert len(several.lines_) > 1
    alike = np.abs(np.corrcoef((X @ one.directions_.T).T, (X @ several.directions_.T).T)[0, 1:])
    (aligned,) = Lines.of(one, X, np.ones(len(X))).aligned(several)
    assert aligned.correlation == pytest.approx(alike.max())
    same = [line.features.tolist() == one.lines_[0].features.tolist() for line in several.lines_]
    assert not all(same)
    assert [each is not None for each in Lines.of(several, X, np.ones(len(X))).aligned(one)] == same
    found = bootstrap(one, X, y, n=20, random_state=0)
    assert found.line_shares.tolist() == [1]
    assert "\nweights\n" in found.summary()


def test_log_odds_that_are_all_the_same_have_no_divergence():
    X, y = band()
    model = AdditiveMELC(random_state=0).fit(X, y)
    model.lines_ = [replace(model.lines_[0], curves=(Curve(np.zeros(1), np.zeros(1)),), errors=())]
    codes = (y == "outside").astype(int)
    assert divergences_of(model, X, codes, np.ones(len(y))).tolist() == [0.0]


def test_few_rows_and_a_class_of_two():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 2)), np.array([0, 1, 1, 1, 1, 1, 0, 0, 2, 2])
    for model in (short(n_init=1), AdditiveMELC(full_lines="never", random_state=0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = bootstrap(model.fit(X, y), X, y, n=20, random_state=0)
        numbers = [found.coef.low, found.coef.high, *vars(found.divergence).values(), *vars(found.accuracy).values()]
        assert not any(np.isnan(each).any() for each in numbers)
        assert 0 <= found.accuracy.low <= found.accuracy.estimate <= found.accuracy.high <= 1


def test_a_class_of_few_rows_with_small_weights():
    """Resamples in which all rows of the class are the same, of a total weight below two."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) < 3
    weights = np.full(30, 0.3)
    for model in (short(n_init=1), AdditiveMELC(random_state=0)):
        model.fit(X, y, sample_weight=weights)
        found = bootstrap(model, X, y, n=20, sample_weight=weights, random_state=0)
        assert 0 <= found.accuracy.low < found.accuracy.high <= 1


def test_pipelines_and_searches_give_raw_units():
    X, y = band()
    frame = pd.DataFrame(X * [1, 50, 1] + [0, 9, 0], columns=["a", "b", "c"])
    plain = bootstrap(short().fit(frame, y), frame, y, n=20, random_state=0)
    pipeline = make_pipeline(StandardScaler(), short())
    search = GridSearchCV(pipeline, {"melc__gamma": [1.0]}, cv=2)
    for estimator in (pipeline, search):
        found = bootstrap(estimator.fit(frame, y), frame, y, n=20, random_state=0)
        np.testing.assert_allclose(found.coef.low, plain.coef.low, rtol=1e-4)
        np.testing.assert_allclose(found.accuracy.estimate, plain.accuracy.estimate, atol=0.01)
        assert found.feature_names == ["a", "b", "c"]
    assert permutation_test(search, frame, y, n=9, random_state=0).p_value == 0.1


def test_sparse_rows_and_weights():
    X, y = band()
    model = short().fit(sparse.csr_array(X), y)
    found = bootstrap(model, sparse.csr_array(X), y, n=20, random_state=0)
    expected = bootstrap(short().fit(X, y), X, y, n=20, random_state=0)
    np.testing.assert_allclose(found.coef.low, expected.coef.low, atol=0.02)
    weights = np.where(np.arange(len(y)) < 140, 1.0, 0.0)
    model = short().fit(X, y, sample_weight=weights)
    found = bootstrap(model, X, y, n=20, sample_weight=weights, random_state=0)
    expected = bootstrap(model, X[:140], y[:140], n=20, random_state=0)
    np.testing.assert_array_equal(found.coef.low, expected.coef.low)
    heavy = bootstrap(model, X, y, n=20, sample_weight=3 * weights, random_state=0)
    assert heavy.accuracy.estimate == pytest.approx(found.accuracy.estimate, abs=0.05)


def test_the_gamma_that_was_chosen_is_kept():
    X, y = band()
    model = short(gamma="auto").fit(X, y)
    fixed = short(gamma=model.gamma_).fit(X, y)
    found, expected = (bootstrap(each, X, y, n=20, random_state=0) for each in (model, fixed))
    np.testing.assert_allclose(found.divergence.low, expected.divergence.low, rtol=1e-6)


def test_the_p_value_counts_the_permutations_that_reach_it():
    X, y = band(60)
    noise = np.random.default_rng(3).permutation(y)
    model = short().fit(X, noise)
    test = permutation_test(model, X, noise, n=39, random_state=0)
    assert test.p_value == (1 + np.sum(test.null >= test.divergence)) / 40
    assert test.p_value > 0.05
    assert test.divergence == pytest.approx(model.divergence_, rel=1e-6)
    assert f"p = {test.p_value:.3g}" in test.summary()
    clear = permutation_test(short().fit(X, y), X, y, n=39, random_state=0)
    assert clear.p_value == 1 / 40


def test_seeds_decide(fitted):
    model, X, y, found = fitted
    again = bootstrap(model, X, y, n=40, random_state=0)
    np.testing.assert_array_equal(again.coef.low, found.coef.low)
    other = bootstrap(model, X, y, n=40, random_state=1)
    assert not np.array_equal(other.coef.low, found.coef.low)


def test_progress_is_printed(fitted, capsys):
    model, X, y, _ = fitted
    bootstrap(model, X, y, n=20, random_state=0, verbose=1)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "[bootstrap] 2 of 20"
    assert printed[-1] == "[bootstrap] 20 of 20"
    assert len(printed) == 10
    permutation_test(model, X, y, n=3, random_state=0, verbose=1)
    assert capsys.readouterr().out.splitlines()[-1] == "[permutation_test] 3 of 3"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 5}, "n=5; expected a whole number of at least 20"),
        ({"n": 20.5}, "n=20.5"),
        ({"confidence": 90}, "confidence=90; expected a number between 0 and 1"),
        ({"sample_weight": [1.0]}, "sample_weight has shape"),
    ],
)
def test_bad_settings_are_refused(fitted, wrong, message):
    model, X, y, _ = fitted
    with pytest.raises(ValueError, match=message):
        bootstrap(model, X, y, **wrong)


def test_other_rows_are_refused(fitted):
    model, X, y, _ = fitted
    with pytest.raises(ValueError, match="X has 2 features, but the model has 3"):
        bootstrap(model, X[:, :2], y)
    with pytest.raises(ValueError, match="pass one label per row"):
        permutation_test(model, X, y[:-1])
    with pytest.raises(ValueError, match=r"y has the classes \[0, 1\], but the model those of \['inside', 'outside'\]"):
        bootstrap(model, X, (y == "inside").astype(int))


def test_the_summary_shows_every_interval(fitted):
    *_, found = fitted
    text = found.summary()
    assert "90% intervals from 40 resamples" in text
    assert f"x0  {found.coef.estimate[0, 0]:.4g} ({found.coef.low[0, 0]:.4g} to {found.coef.high[0, 0]:.4g})" in text
    assert text.count("threshold") == 2


def test_an_interval_is_as_wide_as_the_middle_values():
    values, estimate = np.arange(101.0)[:, None] + [0, 10], np.array([48.0, 60.0])
    low, high = limits(estimate, values, 0.9)
    np.testing.assert_allclose(low, [48 - 45.9, 60 - 45.9])  # 0.9 · 102 / 2, from one end of 101 values to the other
    np.testing.assert_allclose(high, [48 + 45.9, 60 + 45.9])
    np.testing.assert_allclose(unbiased(estimate, values), [46, 60])


def test_the_interval_of_an_accuracy_is_wilsons():
    perfect = accuracy_interval(np.ones(2), np.full(2, 50.0), 0.9)
    assert perfect.estimate == 1
    assert perfect.high == pytest.approx(1)
    z = 1.6448536269514722
    wilson = 50 / (50 + z * z)  # lower limit for 50 of 50
    assert perfect.low == pytest.approx(1 - np.sqrt(2) * (1 - wilson) / 2)
    one_class = binomtest(41, 50).proportion_ci(0.9, method="wilson")
    found = accuracy_interval(np.array([0.82]), np.array([50.0]), 0.9)
    assert (found.low, found.high) == pytest.approx((one_class.low, one_class.high))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_accuracy_is_that_of_cross_validation(weighted):
    """Slow and obvious: fits to the rows outside each tenth, and a tenth of the accuracy on the model's own rows."""
    X, y = several(90)
    weights = np.random.default_rng(2).uniform(0.5, 2, size=90) if weighted else np.ones(90)
    model = short(n_init=2).fit(X, y, sample_weight=weights)
    found = accuracy_of(refit_of(model, X, y, weights), 0.9, 0, None)
    hits = []
    for seed in np.random.RandomState(0).randint(2**31 - 1, size=2):
        folds = folds_of(y, 3, np.random.default_rng(seed))
        assert {len(np.unique(folds[y == c])) for c in range(3)} == {10}
        for fold in range(10):
            kept, out = folds != fold, folds == fold
            fit = MELC(n_init=2, random_state=int(seed)).fit(X[kept], y[kept], sample_weight=weights[kept])
            hits.append((y[out], fit.predict(X[out]), weights[out]))
    labels, predicted, shares = (np.concatenate(each) for each in zip(*hits, strict=True))
    held_out = balanced_accuracy_score(labels, predicted, sample_weight=shares)
    own = balanced_accuracy_score(y, model.predict(X), sample_weight=weights)
    assert found.estimate == pytest.approx(0.9 * held_out + 0.1 * own, abs=1e-12)


def test_a_model_that_overfits_is_not_judged_by_its_own_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 30)), np.arange(40) % 2
    model = short(n_init=1).fit(X, y)
    assert balanced_accuracy_score(y, model.predict(X)) > 0.8  # of labels that mean nothing
    assert bootstrap(model, X, y, n=20, random_state=0).accuracy.low < 0.55


@pytest.mark.parametrize("classifier", [MELC, AdditiveMELC])
def test_intervals_of_a_table(classifier):
    frame, y = mixed_frame(200, 1)
    model = classifier(categorical_features=["code"], random_state=0).fit(frame, y)
    weights = np.append(np.zeros(3), np.ones(197))
    found = bootstrap(model, frame, y, n=20, sample_weight=weights, random_state=0)
    assert found.coef.low.shape == (len(model.lines_), 7)
    assert found.accuracy.low > 0.6
    assert "job" in found.summary()
    assert permutation_test(model, frame, y, n=10, random_state=0).p_value < 0.1
    with pytest.raises(ValueError, match="'job' held texts"):
        bootstrap(model, frame.assign(job=1), y, n=20)
