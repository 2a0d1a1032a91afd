"""ONNX: the runtime predicts what the model predicts, for both classifiers."""

import copy
import json
import sys
import time

import numpy as np
import pandas as pd
import pytest

from export_cases import (
    CASES,
    KINDS,
    additive,
    bands,
    fitted_case,
    fitted_digits,
    flowers,
    framed,
    on_thresholds,
    onnx_session,
    rings,
    short,
    with_curve,
)
from melc.export import from_json, to_onnx

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_every_row_as_predict(name, dtype):
    model, rows = fitted_case(name)
    rows = rows.clip(-1e30, 1e30).astype(dtype)
    labels, decision, proba = onnx_session(model, dtype=dtype).run(None, {"X": rows.to_numpy()})
    np.testing.assert_array_equal(labels, model.predict(rows))
    np.testing.assert_allclose(decision, model.decision_function(rows), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=1e-12)


@pytest.mark.parametrize("estimator", [short(), short(priors=[0.7, 0.3]), additive(max_lines=1)])
def test_on_the_thresholds_and_the_floats_next_to_them(estimator):
    model, rows = on_thresholds(estimator)
    labels, decision, _ = onnx_session(model).run(None, {"X": rows.to_numpy()})
    np.testing.assert_array_equal(labels, model.predict(rows))
    np.testing.assert_array_equal(decision, model.decision_function(rows))


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered in reduce")  # scikit-learn's sum of X
@pytest.mark.parametrize("estimator", [short(), additive(features_per_line=None)])
@pytest.mark.parametrize("data", [rings, flowers])
def test_at_the_ends_of_the_floating_point_range(data, estimator):
    X, y = data()
    model = estimator.fit(X, y)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, X.shape[1]))
    for rows in (1.7e308 * signs, 5e-324 * signs):
        labels, decision, _ = onnx_session(model).run(None, {"X": rows})
        np.testing.assert_array_equal(labels, model.predict(rows))
        np.testing.assert_allclose(decision, model.decision_function(rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("estimator", [short(), additive(max_lines=2)])
@pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0], [3, 5, 11], ["a", "ü", "日本"]])
def test_labels(labels, estimator):
    X, y = flowers()
    codes = np.unique(y, return_inverse=True)[1] % len(labels)
    model = estimator.fit(X, np.array(labels)[codes])
    assert onnx_session(model).run(["label"], {"X": X})[0].tolist() == model.predict(X).tolist()


def test_ten_classes_in_few_nodes_and_little_time():
    model, rows = fitted_digits()
    assert len(to_onnx(model).graph.node) <= 100
    session, X = onnx_session(model), rows.to_numpy()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        labels, _, proba = session.run(None, {"X": X})
        times.append(time.perf_counter() - start)
    assert min(times) < 0.4  # 0.02 s on an idle machine; exponentials of all support points took seconds
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_the_number_of_nodes_depends_on_the_largest_number_of_knots_only(name):
    model, _ = fitted_case(name)
    steps = max(len(line.curves[0].knots) for line in model.lines_).bit_length()
    assert len(to_onnx(model).graph.node) <= 30 + 4 * steps


@pytest.mark.parametrize(("value", "label"), [(2.0, "outer"), (0.0, "inner"), (-2.0, "inner")])
def test_a_model_that_never_changes_its_mind(value, label):
    constant = from_json(json.dumps(with_curve(fitted_case("two classes")[0], [0.5], [value], [[3, 5]])))
    X = bands(50)[0]
    assert set(constant.predict(framed(X))) == {label}
    assert set(onnx_session(constant).run(["label"], {"X": X})[0]) == {label}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([1, 2**63], dtype=np.uint64), "label 9223372036854775808 cannot be .* end at 9223372036854775807"),
        (np.array(["a", "b\ud800"]), r"'b\\ud800' contains half of a character, which ONNX cannot express"),
        (np.array([1, 2], dtype="datetime64[D]"), "labels 1970-01-02, .* cannot be written as ONNX"),
    ],
)
def test_labels_that_onnx_does_not_have(labels, message):
    model = copy.copy(fitted_case("two classes")[0])
    model.classes_ = labels
    with pytest.raises(ValueError, match=message):
        to_onnx(model)


@pytest.mark.parametrize(("name", "levels"), [("town\ud800", "ab"), ("town", ["a", "b\ud800"])])
def test_names_and_levels_that_onnx_does_not_have(name, levels):
    towns = pd.Series(np.resize(np.array(list(levels), dtype=object), 40), dtype=object)
    numbers = np.arange(40)
    y = (numbers + (numbers % 5 == 0)) % 2  # mostly the town
    model = short().fit(pd.DataFrame({"town": towns, "x": np.cos(numbers)}), y)
    with pytest.raises(ValueError, match="contains half of a character, which ONNX cannot express"):
        to_onnx(model, feature_names=[name, "x"])


def test_another_type_of_rows_is_refused():
    with pytest.raises(ValueError, match="dtype='float16' is not a type of rows; choose one of"):
        to_onnx(fitted_case("two classes")[0], dtype="float16")


def test_without_onnx_the_error_has_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'melc\[export\]'"):
        to_onnx(fitted_case("two classes")[0])
