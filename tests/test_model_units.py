"""A pipeline of scalers and a model is a model in other units; a search is its best estimator."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from export_cases import apply_text_rule, apply_text_with_odds, onnx_session, run_sql
from melc import MELC, AdditiveMELC
from melc.export import export_text, from_json, to_json, to_onnx, to_sql
from melc.model.curve import Curve
from melc.model.units import fitted_model, in_units_of

SCALERS = {
    "standard": [StandardScaler()],
    "mean only": [StandardScaler(with_std=False)],
    "deviation only": [StandardScaler(with_mean=False)],
    "range": [MinMaxScaler(feature_range=(-3, 2))],
    "largest": [MaxAbsScaler()],
    "quartiles": [RobustScaler()],
    "several": [RobustScaler(), "passthrough", MinMaxScaler(), StandardScaler(), MaxAbsScaler()],
}


def short():
    return MELC(n_init=1, max_iter=20, tol=1e-2, random_state=0)


def rows(n_classes=2):
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X * [1.0, 1e-3, 50.0, 1.0] + [0, 5, 1000, 0], (y == 1 if n_classes == 2 else y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", SCALERS)
def test_scalers_are_folded_into_the_weights(name, n_classes):
    X, y = rows(n_classes)
    pipeline = make_pipeline(*SCALERS[name], short()).fit(X, y)
    before = pipeline[-1].coef_.copy()
    model = fitted_model(pipeline)
    np.testing.assert_array_equal(model.predict(X), pipeline.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), pipeline.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(model.directions_, axis=1), 1)
    np.testing.assert_allclose(model.feature_spread_, X.std(ddof=0), rtol=1e-9)
    np.testing.assert_allclose(model.feature_mean_, X.mean(), rtol=1e-9)
    np.testing.assert_array_equal(model.feature_names_in_, X.columns)
    np.testing.assert_array_equal(pipeline[-1].coef_, before)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", SCALERS)
def test_scalers_are_folded_into_lines(name, n_classes):
    X, y = rows(n_classes)
    pipeline = make_pipeline(*SCALERS[name], AdditiveMELC(max_lines=2, random_state=0)).fit(X, y)
    before = to_json(pipeline[-1])
    model = fitted_model(pipeline)
    np.testing.assert_array_equal(model.predict(X), pipeline.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), pipeline.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(model.directions_, axis=1), 1)
    np.testing.assert_array_equal(model.feature_names_in_, X.columns)
    for line, original in zip(model.lines_, pipeline[-1].lines_, strict=True):
        masses = [np.trapezoid(each.densities, each.places, axis=1) for each in (line, original)]
        np.testing.assert_allclose(*masses, rtol=1e-6)
        places = [(each.places - each.curves[0].knots[0]) / np.ptp(each.places) for each in (line, original)]
        np.testing.assert_allclose(*places, atol=1e-6)
        assert [len(errors) for errors in line.errors] == [len(curve.knots) for curve in line.curves]
    assert to_json(pipeline[-1]) == before


def test_every_export_takes_a_pipeline_and_a_search_for_lines():
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), AdditiveMELC(max_lines=2, random_state=0))
    search = GridSearchCV(pipeline, {"additivemelc__gamma": [0.8, 1.2]}, cv=2).fit(X, y)
    for fitted in (search, search.best_estimator_):
        expected = fitted.predict(X)
        assert apply_text_with_odds(export_text(fitted, odds=True), X)[0].tolist() == [str(label) for label in expected]
        np.testing.assert_array_equal(from_json(to_json(fitted)).predict(X), expected)
        assert [bool(row[-1]) for row in run_sql(to_sql(fitted), X)] == expected.tolist()
        np.testing.assert_array_equal(onnx_session(fitted).run(["label"], {"X": X.to_numpy()})[0], expected)


def test_every_export_takes_a_pipeline_and_a_search():
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), short())
    search = GridSearchCV(pipeline, {"melc__gamma": [0.8, 1.2]}, cv=2).fit(X, y)
    nested = make_pipeline(RobustScaler(), clone(search)).fit(X, y)
    for fitted in (search, search.best_estimator_, nested):
        expected = fitted.predict(X)
        assert apply_text_rule(export_text(fitted), X).tolist() == [str(label) for label in expected]
        np.testing.assert_array_equal(from_json(to_json(fitted)).predict(X), expected)
        assert [bool(row[-1]) for row in run_sql(to_sql(fitted), X)] == expected.tolist()
        np.testing.assert_array_equal(onnx_session(fitted).run(["label"], {"X": X.to_numpy()})[0], expected)


def test_names_may_be_absent_or_come_from_the_scaler():
    X, y = rows()
    assert "x0" in export_text(make_pipeline(StandardScaler(), short()).fit(X.to_numpy(), y))
    framed = make_pipeline(StandardScaler().set_output(transform="pandas"), short()).fit(X, y)
    assert "petal width" in export_text(framed)


@pytest.mark.parametrize("scale", [1e-100, 1e147])
def test_units_at_the_ends_of_the_range(scale):
    X, y = rows()
    pipeline = make_pipeline(MaxAbsScaler(), short()).fit(X * scale, y)
    np.testing.assert_array_equal(fitted_model(pipeline).predict(X * scale), pipeline.predict(X * scale))


@pytest.mark.parametrize(
    ("scaler", "units", "found"),
    [
        (MaxAbsScaler(), [2e160, 1.0], r"of \S+e\+160"),  # which a JSON document may not have
        (MaxAbsScaler(), [2e200, 1e-150], r"of \S+e\+200"),  # a weight would become zero
        (StandardScaler(), [2e200, 1e-150], "beyond the range of floating-point numbers"),
        (StandardScaler(), [2e-160, 1.0], r"of \S+e-160"),
    ],
)
def test_units_beyond_the_range_are_refused(scaler, units, found):
    Z = np.random.default_rng(0).normal(size=(60, 2))
    pipeline = make_pipeline(scaler, short()).fit(Z, Z[:, 0] > Z[:, 1])
    with np.errstate(all="ignore"):  # the scaler is fitted anew, the model is not: it would refuse some of the units
        scaler.fit(Z * units)
    for export in (to_json, to_sql, to_onnx, export_text):
        with pytest.raises(ValueError, match=f"feature 'x0' has a standard deviation {found}. Choose units"):
            export(pipeline)


@pytest.mark.parametrize("kind", [MELC, AdditiveMELC])
def test_offsets_that_sums_of_raw_features_would_round_are_refused(kind):
    X, y = rows()
    X = X.to_numpy() / X.to_numpy().std(axis=0)
    near = make_pipeline(StandardScaler(), kind(random_state=0)).fit(X + 1e9, y)
    np.testing.assert_array_equal(from_json(to_json(near)).predict(X + 1e9), near.predict(X + 1e9))
    far = make_pipeline(StandardScaler(), kind(random_state=0)).fit(X + 1e14, y)
    for export in (to_json, to_sql, to_onnx, export_text):
        with pytest.raises(ValueError, match=r"feature 'x\d' are near 1e\+14, .* Subtract"):
            export(far)


def test_a_line_may_tell_missing_values_from_a_constant():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[:, 0] = np.where(X[:, 0] > 0, 5.0, np.nan)
    y = np.isnan(X[:, 0])
    pipeline = make_pipeline(MinMaxScaler(), AdditiveMELC(max_lines=1, features_per_line=1, random_state=0)).fit(X, y)
    assert pipeline[-1].lines_[0].features.tolist() == [0]
    np.testing.assert_array_equal(from_json(to_json(pipeline)).predict(X), y)


def apart(offset, size, difference, n=1000):
    """Two features with a given difference, on whose size the class depends."""
    rng = np.random.default_rng(0)
    first, between = size * rng.normal(size=n) + offset, difference * rng.normal(size=n)
    return np.column_stack([first, first + between]), np.abs(between) > 0.8 * difference


@pytest.mark.parametrize(("offset", "size", "difference"), [(1e14, 1e4, 0.1), (0.0, 1.0, 1e-14)])
def test_features_that_cancel_up_to_rounding_are_refused(offset, size, difference):
    X, y = apart(offset, size, difference)
    pipeline = make_pipeline(StandardScaler(), AdditiveMELC(max_lines=1, random_state=0)).fit(X, y)
    assert pipeline.score(X, y) > 0.95
    with pytest.raises(ValueError, match=r"feature 'x[01]' are near .* where features nearly cancel, give it their"):
        to_json(pipeline)


def test_features_that_cancel_less_are_folded():
    X, y = apart(1e6, 1.0, 1e-4)
    pipeline = make_pipeline(StandardScaler(), AdditiveMELC(max_lines=1, random_state=0)).fit(X, y)
    assert pipeline.score(X, y) > 0.95
    np.testing.assert_array_equal(from_json(to_json(pipeline)).predict(X), pipeline.predict(X))


def test_a_row_far_away_does_not_hide_the_rounding_of_the_others():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.abs(X[:, 0]) > 0.8
    X[0, 0] = 1e8
    X[:, 0] += 1e13
    pipeline = make_pipeline(RobustScaler(), AdditiveMELC(max_lines=1, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match=r"feature 'x0' are near 1e\+13, .* Subtract"):
        to_json(pipeline)


@pytest.mark.filterwarnings("ignore:A class does not vary")
def test_steep_curves_without_rows_near_their_thresholds_are_folded():
    rng = np.random.default_rng(0)
    for years in ([2019, 2020], [2019, 2020, 2021], [2021, 2020, 2019]):
        year = rng.choice(years, 400)
        X, y = np.column_stack([year, rng.normal(size=(400, 3))]), year == years[1]
        pipeline = make_pipeline(StandardScaler(), MELC(random_state=0)).fit(X, y)
        assert np.diff(pipeline[-1].lines_[0].curves[0].knots).min() < 1e-9
        np.testing.assert_array_equal(from_json(to_json(pipeline)).predict(X), y)


@pytest.mark.filterwarnings("ignore:A class does not vary")
@pytest.mark.parametrize(("n", "days", "gamma"), [(60, 3, 1.0), (1000, 3, 1.0), (100, 5, 0.4), (300, 10, 0.4)])
@pytest.mark.parametrize("chosen", [0, -1])
def test_steep_curves_on_which_rounding_moves_rows_are_not_folded(n, days, gamma, chosen):
    """Dates as numbers, and one of them is a class. Rounding would change probabilities, and once labels."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        day = 20240101.0 + rng.integers(0, days, n)
        X, y = np.column_stack([day, rng.normal(size=n)]), day == np.unique(day)[chosen]
        pipeline = make_pipeline(StandardScaler(), MELC(gamma=gamma, n_init=2, random_state=0)).fit(X, y)
        with suppress(ValueError):  # refused, or the same
            folded = from_json(to_json(pipeline))
            np.testing.assert_allclose(folded.predict_proba(X), pipeline.predict_proba(X), atol=1e-4)


@pytest.mark.filterwarnings("ignore:A class does not vary")
@pytest.mark.filterwarnings("ignore:All rows of class")
@pytest.mark.parametrize("offset", [0, 2019])
def test_curves_of_several_classes_on_two_values_are_folded(offset):
    """All of them pass through the same point between the values, up to rounding."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 2, 300)
        y = np.where(rng.random(300) < 0.3, x, rng.integers(0, 3, 300))
        pipeline = make_pipeline(StandardScaler(), MELC(n_init=1, random_state=0)).fit(x[:, None] + offset, y)
        assert all(len(line.thresholds) < 2 for line in pipeline[-1].lines_)
        folded = from_json(to_json(pipeline))
        np.testing.assert_array_equal(folded.predict(x[:, None] + offset), pipeline.predict(x[:, None] + offset))


@pytest.mark.filterwarnings("ignore:A class does not vary")
@pytest.mark.parametrize("offset", [1e8, 1e9])
def test_two_values_far_from_zero_are_refused(offset):
    X = np.random.default_rng(0).integers(0, 2, (400, 1)) + offset
    pipeline = make_pipeline(StandardScaler(), MELC(random_state=0)).fit(X, X[:, 0] > offset)
    with pytest.raises(ValueError, match=r"rounding of sums of such values may change predictions"):
        to_json(pipeline)


def test_places_and_thresholds_that_become_equal():
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), AdditiveMELC(max_lines=1, features_per_line=1, random_state=0))
    pipeline.fit(X + 1e6, y)
    (line,) = pipeline[-1].lines_
    places = np.linspace(0, 1e-9, len(line.places))
    pipeline[-1].lines_ = [replace(line, places=places)]
    from_json(to_json(pipeline))  # refuses places that do not ascend
    curve = Curve(np.array([0.0, 1e-11, 2e-11]), np.array([-1.0, 1.0, -1.0]))
    pipeline[-1].lines_ = [replace(line, curves=(curve,), errors=(), counts=np.ones((3, 2)))]
    with pytest.raises(ValueError, match="cannot be folded"):
        to_json(pipeline)


def test_knots_that_become_equal_keep_the_largest_error():
    X, y = rows()
    model = AdditiveMELC(max_lines=1, random_state=0).fit(X, y)
    (line,) = model.lines_
    near = Curve(np.array([0.0, 1e-9, 1.0]), np.array([-1.0, -0.5, 1.0]))
    model.lines_ = [replace(line, curves=(near,), errors=(np.array([0.1, 0.3, 0.2]),))]
    (moved,) = in_units_of(model, np.full(4, 1e9), np.ones(4)).lines_
    assert len(moved.curves[0].knots) == 2
    assert moved.errors[0].tolist() == [0.3, 0.2]


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (make_pipeline(PCA(2), short()), r"step 'pca' \(PCA\) cannot be folded .* Pass the model .* pipeline\[-1\]"),
        (make_pipeline(MinMaxScaler(clip=True), short()), r"step 'minmaxscaler' .*without clip"),
        (
            LogisticRegression(max_iter=5000),
            "Expected a fitted MELC or AdditiveMELC, or a Pipeline .* found LogisticRegression",
        ),
        (GridSearchCV(short(), {"gamma": [1.0]}, cv=2, refit=False), "refit=True"),
    ],
)
def test_what_cannot_be_folded_is_refused_with_the_remedy(estimator, message):
    X, y = rows()
    with pytest.raises(ValueError, match=message):
        export_text(estimator.fit(X, y))


def test_not_fitted():
    for estimator in (short(), make_pipeline(StandardScaler(), short()), GridSearchCV(short(), {"gamma": [1.0]})):
        with pytest.raises(NotFittedError):
            to_json(estimator)


def test_the_text_is_in_the_order_of_contributions():
    X, y = rows()
    model = short().fit(X, y)
    lines = export_text(model, digits=3).splitlines()[1 : 1 + X.shape[1]]
    order = np.argsort(-np.abs(model.coef_[0] * X.std(ddof=0).to_numpy()))
    assert [line.split("  ")[-1] for line in lines] == [f'"{name}"' for name in X.columns[order]]
    assert not np.array_equal(order, np.argsort(-np.abs(model.coef_[0])))
    frame = pd.DataFrame(X)
    assert from_json(to_json(model)).fit(frame, y).feature_spread_.shape == (4,)
    np.testing.assert_array_equal(from_json(to_json(model)).feature_spread_, model.feature_spread_)
