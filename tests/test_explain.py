"""Explanations: the parts add up, are the integrated gradients, and the same whatever holds the model or rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import naive
from melc import MELC, AdditiveMELC
from melc.explain import explain
from melc.export import from_json, to_json
from tables_data import awkward_rows, mixed_frame

IRIS = load_iris(as_frame=True)
X, SPECIES = IRIS.data, IRIS.target
TWO = np.where(SPECIES == 1, "versicolor", "other")


def fitted(kind, y):
    return (MELC(n_init=2, random_state=0) if kind == "one" else AdditiveMELC(random_state=0)).fit(X, y)


MODELS = {
    "one line": lambda: fitted("one", TWO),
    "three classes": lambda: fitted("one", SPECIES),
    "lines": lambda: fitted("lines", TWO),
    "lines of three classes": lambda: fitted("lines", SPECIES),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def two_dimensional(odds):
    return odds.reshape(len(odds), -1)


def test_the_parts_add_up(model):
    found = explain(model, X)
    np.testing.assert_allclose(found.base + found.log_odds_parts.sum(axis=2), found.log_odds, rtol=0, atol=1e-10)
    total = found.base_projections + found.projection_parts.sum(axis=2)
    np.testing.assert_allclose(total, X.to_numpy() @ model.directions_.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.log_odds, two_dimensional(model.decision_function(X)), rtol=0, atol=1e-12)
    reference = model.decision_function(pd.DataFrame(found.reference[None], columns=X.columns))
    np.testing.assert_allclose(found.base, two_dimensional(reference)[0], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.labels, model.predict(X))
    np.testing.assert_array_equal(found.line_log_odds, model.line_log_odds(X))
    assert found.feature_names == list(X.columns)


def test_the_parts_are_the_integrated_gradients(model):
    rows = X.to_numpy()[[0, 60, 110]]
    found = explain(model, pd.DataFrame(rows, columns=X.columns))

    def column(c):
        return lambda rows: two_dimensional(model.decision_function(pd.DataFrame(rows, columns=X.columns)))[:, c]

    for i, x in enumerate(rows):
        for c in range(len(found.base)):
            expected = naive.integrated_gradients(column(c), x, found.reference, n=20_000)
            np.testing.assert_allclose(found.log_odds_parts[i, c], expected, atol=0.01)


def test_the_reference_is_the_mean_and_its_parts_are_zero(model):
    mean = X.mean().to_numpy()
    np.testing.assert_allclose(model.feature_mean_, mean, rtol=1e-12)
    np.testing.assert_allclose(model.feature_spread_, X.std(ddof=0), rtol=1e-9)
    found = explain(model, pd.DataFrame(model.feature_mean_[None], columns=X.columns))
    assert not found.log_odds_parts.any()
    np.testing.assert_allclose(found.log_odds[0], found.base, rtol=0, atol=1e-12)


def test_where_the_projections_are_equal_the_parts_cancel():
    model = MELC(n_init=1, random_state=0).fit(X.to_numpy(), TWO)
    v, mean = model.directions_[0], model.feature_mean_
    across = np.array([v[1], -v[0], 0, 0])  # orthogonal to v
    found = explain(model, (mean + np.outer([1.0, 1e-3], across)))
    parts = found.log_odds_parts[:, 0]
    assert np.abs(parts[:, :2]).min() > 1e-6
    np.testing.assert_allclose(parts.sum(axis=1), 0, atol=1e-10)
    step = 1e-6
    slope = model.decision_function(mean + np.outer([-step, step], v)) @ [-1, 1] / (2 * step)
    np.testing.assert_allclose(parts[0], slope * v * across, rtol=1e-6, atol=1e-9)


def test_intervals_and_distances_are_those_of_the_thresholds(model):
    found = explain(model, X)
    z = X.to_numpy() @ model.directions_.T
    for k, thresholds in enumerate(found.thresholds):
        expected = [np.sum(thresholds <= place) for place in z[:, k]]
        np.testing.assert_array_equal(found.intervals[:, k], expected)
        nearest = [np.abs(thresholds - place).min() if len(thresholds) else np.inf for place in z[:, k]]
        np.testing.assert_allclose(found.distance[:, k], nearest, rtol=1e-9, atol=1e-12)


def test_pipelines_and_searches_are_explained_in_raw_units():
    pipeline = make_pipeline(StandardScaler(), MELC(n_init=2, random_state=0)).fit(X, TWO)
    found = explain(pipeline, X)
    np.testing.assert_allclose(found.reference, X.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.log_odds[:, 0], pipeline.decision_function(X), atol=1e-9)
    search = GridSearchCV(pipeline, {"melc__gamma": [1.0]}, cv=2).fit(X, TWO)
    np.testing.assert_allclose(explain(search, X).log_odds_parts, found.log_odds_parts, atol=1e-9)
    additive = make_pipeline(StandardScaler(), AdditiveMELC(random_state=0)).fit(X, TWO)
    found = explain(additive, X)
    np.testing.assert_allclose(found.reference, X.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.base + found.log_odds_parts.sum(axis=2), found.log_odds, atol=1e-10)


def test_sparse_rows_and_models_read_back_give_the_same(model):
    expected = explain(model, X)
    read = from_json(to_json(model))
    np.testing.assert_array_equal(explain(read, X).log_odds_parts, expected.log_odds_parts)
    del read.feature_names_in_
    found = explain(read, sparse.csr_array(X.to_numpy()), feature_names=list("abcd"))
    np.testing.assert_allclose(found.log_odds_parts, expected.log_odds_parts, atol=1e-12)
    assert found.feature_names == list("abcd")


def test_a_reference_of_ones_own():
    model = fitted("one", TWO)
    found = explain(model, X, reference=X.iloc[3])
    assert not found.log_odds_parts[3].any()
    np.testing.assert_allclose(found.base + found.log_odds_parts.sum(axis=2), found.log_odds, rtol=0, atol=1e-10)
    for same in (X.iloc[[3]], X.to_numpy()[[3]], sparse.csr_array(X.to_numpy()[[3]])):
        np.testing.assert_allclose(explain(model, X, reference=same).log_odds_parts, found.log_odds_parts, atol=1e-12)
    wrongs = ([1.0], "4 numbers; found shape"), ([1, 2, 3, np.inf], "infinity"), (X.iloc[:2], "one row; found 2 rows")
    wrongs = *wrongs, ({"a": 1}, "must be one row of 4 numbers"), (1.0, r"found shape \(\)")
    for wrong, message in wrongs:
        with pytest.raises(ValueError, match=message):
            explain(model, X, reference=wrong)


@pytest.mark.parametrize("fitted_with_missing", [False, True])
@pytest.mark.parametrize("kind", [MELC(n_init=1, random_state=0), AdditiveMELC(random_state=0)])
def test_a_value_of_the_reference_may_be_missing(kind, fitted_with_missing):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 2))
    y, holes = rows.sum(axis=1) > 0, np.where(rng.random((200, 2)) < [0.2, 0], np.nan, rows)
    model = clone(kind).fit(holes if fitted_with_missing else rows, y)
    found = explain(model, holes, reference=[np.nan, 1.0])
    np.testing.assert_allclose(found.base, model.decision_function([[np.nan, 1.0]]), atol=1e-12)
    total = found.base + found.log_odds_parts.sum(axis=2)
    np.testing.assert_allclose(total[:, 0], model.decision_function(holes), atol=1e-10)


def test_parts_are_those_of_the_predicted_class_whatever_labels_are():
    """Also of labels that do not equal themselves."""
    found = explain(fitted("one", SPECIES), X)
    labels = np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="datetime64[D]")
    strange = replace(found, classes=labels, labels=labels[found.labels])
    assert [strange.column_of(row) for row in range(len(X))] == found.labels.tolist()


def test_the_means_are_weighted():
    weights = np.arange(len(X)) % 3 + 0.5
    for kind in (MELC(n_init=1, random_state=0), AdditiveMELC(random_state=0)):
        model = kind.fit(X, TWO, sample_weight=weights)
        np.testing.assert_allclose(model.feature_mean_, np.average(X, axis=0, weights=weights), rtol=1e-12)


def test_a_constant_feature_has_no_part():
    rows = np.column_stack([X.to_numpy(), np.full(len(X), 7.0)])
    for kind in (MELC(n_init=1, random_state=0), AdditiveMELC(random_state=0)):
        model = kind.fit(rows, TWO)
        assert model.feature_spread_[4] == 0
        assert not explain(model, rows).log_odds_parts[:, :, 4].any()


def test_the_summary_names_values_and_parts():
    found = explain(fitted("one", SPECIES), X)
    text = found.summary(70)
    assert text.startswith(
        f"class {found.labels[70]}; parts of the features in the log-odds of class {found.labels[70]}"
    )
    assert f"petal width (cm) = {X.iloc[70, 3]:g} " in text
    assert text.splitlines()[-1].endswith(f"{found.log_odds[70, found.labels[70]]:+.4f}")
    short = found.summary(70, most=2)
    assert "2 other features" in short
    numbers = [float(line.split()[-1]) for line in short.splitlines()[1:]]
    assert abs(sum(numbers[:-1]) - numbers[-1]) < 5e-4


@pytest.mark.parametrize("classifier", [MELC, AdditiveMELC])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_of_the_columns_of_a_table(classifier, n_classes):
    frame, y = mixed_frame(300, 1, n_classes)
    rows = awkward_rows(frame)
    model = classifier(categorical_features=["code"], random_state=0).fit(frame, y)
    for reference in (None, frame.iloc[[3]]):
        found = explain(model, rows, reference=reference)
        total = found.base + found.log_odds_parts.sum(axis=2)
        np.testing.assert_allclose(total, model.decision_function(rows).reshape(total.shape), atol=1e-10)
    gone = int(np.flatnonzero(rows["age"].isna())[0])
    assert found.value(gone, 0) == "(missing)"
    assert found.value(0, 5) == "(missing)" if rows["day"].isna()[0] else str(rows["day"][0].date())
    unheard = int(np.flatnonzero(rows["job"] == "unheard of")[0])
    assert found.value(unheard, 2) == "(unknown)"
    np.testing.assert_allclose(explain(model, frame.iloc[[3]], reference=frame.iloc[[3]]).log_odds_parts, 0, atol=1e-10)
    with pytest.raises(ValueError, match="a table of one row; found 2 rows"):
        explain(model, rows, reference=frame.iloc[:2])
