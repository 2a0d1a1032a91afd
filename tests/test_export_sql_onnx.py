"""SQL and ONNX, and all exports with more than two classes: they predict exactly as the model does."""

import json
import math
import pickle
import re
import sqlite3
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from export_cases import (
    AWKWARD_NAMES,
    apply_text_rule,
    apply_text_with_odds,
    around,
    bands,
    fitted_bands,
    onnx_session,
    random_rows,
    run_duckdb,
    run_sql,
    through_skops,
    two_thresholds,
)
from melc import MELC
from melc.export import export_text, from_json, to_json, to_onnx, to_sql
from sqlite_mathematics import needs_sqlite_mathematics

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model():
    return fitted_bands()


@pytest.fixture(scope="module")
def many_rows():
    return random_rows()


class TestSql:
    def test_sqlite_decides_as_predict(self, model, many_rows):
        rows = run_sql(to_sql(model), many_rows)
        np.testing.assert_array_equal([row[-1] for row in rows], model.predict(many_rows))
        np.testing.assert_allclose([row[-2] for row in rows], many_rows.to_numpy() @ model.coef_[0])

    def test_names_and_labels_cannot_break_out(self):
        X, y = bands(d=len(AWKWARD_NAMES))
        frame = pd.DataFrame(X, columns=AWKWARD_NAMES)
        labels = np.where(y == "inner", "'; DROP TABLE data; --", "O\"Neil's")
        fitted = MELC(n_init=1, random_state=0).fit(frame, labels)
        table = 'odd "table"; DROP TABLE x'
        rows = run_sql(to_sql(fitted, table), frame, table)
        assert [row[-1] for row in rows] == fitted.predict(frame).tolist()

    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0]])
    def test_labels_that_are_no_texts(self, labels):
        X, y = bands(200)
        fitted = MELC(n_init=1, random_state=0).fit(X, np.array(labels)[(y == "inner").astype(int)])
        rows = run_sql(to_sql(fitted), pd.DataFrame(X, columns=["x0", "x1", "x2"]))
        assert [row[-1] for row in rows] == fitted.predict(X).tolist()

    def test_null_in_null_out(self, model):
        rows = run_sql(to_sql(model), pd.DataFrame({"a": [None], "b": [1.0], "c d": [2.0]}, dtype=object))
        assert rows[0][-1] is None

    def test_a_missing_column_is_an_error_not_a_text(self, model):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            run_sql(to_sql(model), pd.DataFrame({"a": [1.0], "b": [1.0]}))

    def test_duckdb_decides_as_predict(self, model, many_rows):
        rows = many_rows[:20_000].copy()
        found = run_duckdb(to_sql(model), rows)
        assert [row[-1] for row in found] == model.predict(rows).tolist()

    @needs_sqlite_mathematics
    @pytest.mark.parametrize("run", [run_sql, run_duckdb])
    @pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
    def test_several_classes_in_a_pipeline(self, scaler, run):
        X, y = load_iris(return_X_y=True, as_frame=True)
        pipeline = make_pipeline(scaler, MELC(n_init=1, random_state=0)).fit(X, y)
        assert [row[-1] for row in run(to_sql(pipeline), X)] == pipeline.predict(X).tolist()

    @pytest.mark.parametrize("run", [run_sql, run_duckdb])
    def test_a_table_that_has_columns_of_the_added_names(self, model, many_rows, run):
        """The added columns come last, and the old ones do not disturb them."""
        rows = many_rows[:500].assign(prediction=5.0, projection=1e9, z=-1e9)[
            ["projection", "prediction", "z", "a", "b", "c d"]
        ]
        found = run(to_sql(model), rows)
        assert [row[-1] for row in found] == model.predict(rows[["a", "b", "c d"]]).tolist()
        np.testing.assert_allclose(
            [row[-2] for row in found], model.transform(rows[["a", "b", "c d"]])[:, 0], atol=1e-12
        )
        assert {row[:3] for row in found} == {(1e9, 5.0, -1e9)}

    def test_integer_columns(self):
        X = np.arange(40)[:, None] * [1, -3]
        fitted = MELC(n_init=1, random_state=0).fit(X, np.arange(40) // 20)
        rows = pd.DataFrame(X, columns=["x0", "x1"])
        for run in (run_sql, run_duckdb):
            assert [row[-1] for row in run(to_sql(fitted), rows)] == fitted.predict(X).tolist()

    def test_duckdb_multiplies_whole_numbers_as_floats(self, model):
        """As exact decimal numbers, products would be rounded once instead of twice."""
        document = two_thresholds(model)
        document["coef"] = [[0.6, 0.8, 0.0]]
        rows = pd.DataFrame({"a": np.arange(1, 2000), "b": 0, "c d": 0})
        found = run_duckdb(to_sql(from_json(json.dumps(document))), rows)
        assert [row[-2] for row in found] == (rows["a"] * 0.6).tolist()

    def test_more_features_than_sqlite_takes_in_one_chain(self, model):
        document = two_thresholds(model)
        document["coef"] = [np.random.default_rng(0).normal(size=1500, scale=0.03).tolist()]
        del document["feature_names"], document["feature_mean"], document["feature_spread"]
        wide = from_json(json.dumps(document))
        X = np.random.default_rng(1).normal(size=(60, 1500))
        rows = run_sql(to_sql(wide), pd.DataFrame(X, columns=[f"x{i}" for i in range(1500)]))
        assert [row[-1] for row in rows] == wide.predict(X).tolist()
        assert len({row[-1] for row in rows}) == 2

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"prediction": "A"}, "'A' is also a feature"),
            ({"projection": "b"}, "'b' is also a feature"),
            ({"prediction": "z", "projection": "Z"}, "both named .* choose different names"),
            ({"feature_names": ["a", "A", "b"]}, "'a' occurs twice"),
            ({"table": "a\0b"}, "NUL character"),
            ({"feature_names": ["a", "b"]}, "feature_names has 2 names"),
        ],
    )
    def test_faults(self, model, arguments, message):
        with pytest.raises(ValueError, match=message):
            to_sql(model, **arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
class TestOnnx:
    def test_onnxruntime_decides_as_predict(self, model, many_rows):
        session = onnx_session(model)
        for start in range(0, len(many_rows), 20_000):  # the densities are rows × support points
            rows = many_rows[start : start + 20_000]
            labels, decision, probabilities = session.run(None, {"X": rows.to_numpy()})
            np.testing.assert_array_equal(labels, model.predict(rows))
            np.testing.assert_allclose(decision, model.decision_function(rows), rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_rows_of_single_precision(self, n_classes):
        X, y = load_iris(return_X_y=True)
        fitted = MELC(n_init=1, random_state=0).fit(X, y if n_classes == 3 else y == 1)
        rows = np.clip(around(X, 2000), -1e30, 1e30).astype(np.float32)
        found, _, probabilities = onnx_session(fitted, dtype="float32").run(None, {"X": rows})
        np.testing.assert_array_equal(found, fitted.predict(rows.astype(np.float64)))
        np.testing.assert_allclose(probabilities, fitted.predict_proba(rows.astype(np.float64)), atol=1e-9)

    def test_another_type_of_rows_is_refused(self, model):
        with pytest.raises(ValueError, match="dtype='float16' is not a type of rows; choose one of"):
            to_onnx(model, dtype="float16")

    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0]])
    def test_labels_that_are_no_texts(self, labels):
        X, y = bands(200)
        fitted = MELC(n_init=1, random_state=0).fit(X, np.array(labels)[(y == "inner").astype(int)])
        found, *_ = onnx_session(fitted).run(None, {"X": X})
        assert found.tolist() == fitted.predict(X).tolist()

    def test_far_from_the_data_and_at_the_thresholds(self):
        X, y = bands(200, d=1)
        fitted = MELC(n_init=1, random_state=0).fit(X, y)
        edges = fitted.thresholds_ / fitted.coef_[0, 0]
        rows = np.concatenate([edges, [-1e6, 1e6, 0.0]])[:, None]
        found, decision, probabilities = onnx_session(fitted).run(None, {"X": rows})
        np.testing.assert_allclose(probabilities, fitted.predict_proba(rows), rtol=1e-9, atol=1e-12)
        assert found.tolist() == fitted.predict(rows).tolist()
        np.testing.assert_allclose(decision, fitted.decision_function(rows), rtol=1e-9, atol=1e-9)

    def test_without_onnx_the_error_has_the_remedy(self, model, monkeypatch):
        monkeypatch.setitem(sys.modules, "onnx", None)
        with pytest.raises(ImportError, match=r"pip install 'melc\[export\]'"):
            to_onnx(model)


@pytest.fixture(scope="module", params=[None, "empirical"])
def iris(request):
    frame, species = load_iris(return_X_y=True, as_frame=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[species]
    keep = np.arange(150) % 4 != 2 * species  # unequal classes, so that priors matter
    fitted = MELC(n_init=2, tol=1e-3, random_state=0, priors=request.param).fit(frame[keep], labels[keep])
    return fitted, pd.DataFrame(around(frame.to_numpy(), 100_000), columns=frame.columns)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
class TestSeveralClasses:
    def test_json(self, iris):
        fitted, rows = iris
        again = from_json(to_json(fitted))
        np.testing.assert_array_equal(again.predict(rows), fitted.predict(rows))
        np.testing.assert_array_equal(again.predict_proba(rows[:1000]), fitted.predict_proba(rows[:1000]))
        assert to_json(again) == to_json(fitted)
        for name in ("thresholds_", "interval_classes_"):
            for ours, theirs in zip(getattr(again, name), getattr(fitted, name), strict=True):
                np.testing.assert_array_equal(ours, theirs)

    def test_onnx(self, iris):
        fitted, rows = iris
        session = onnx_session(fitted)
        for start in range(0, len(rows), 20_000):
            part = rows[start : start + 20_000]
            labels, decision, probabilities = session.run(None, {"X": part.to_numpy()})
            np.testing.assert_array_equal(labels, fitted.predict(part))
            np.testing.assert_allclose(probabilities, fitted.predict_proba(part), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(decision, fitted.decision_function(part), rtol=1e-9, atol=1e-9)

    def test_text_has_a_rule_a_class_and_none_contradicts_predict(self, iris):
        fitted, rows = iris
        *blocks, closing = export_text(fitted).split("\n\n")
        assert len(blocks) == 3
        assert closing.startswith("Where one rule alone names its class, that class is predicted. Where none or")
        assert "odds=True" in closing
        named = [apply_text_rule(block.split("\n", 1)[1], rows) != "rest" for block in blocks]
        alone = np.sum(named, axis=0) == 1
        assert alone.mean() > 0.2
        expected = fitted.classes_[np.argmax(named, axis=0)]
        np.testing.assert_array_equal(fitted.predict(rows)[alone], expected[alone])

    def test_text_with_odds_decides_as_predict(self, iris):
        fitted, rows = iris
        text = export_text(fitted, odds=True)
        np.testing.assert_array_equal(apply_text_with_odds(text, rows), fitted.predict(rows))
        assert "odds=True" not in text

    def test_a_class_called_rest_is_told_from_the_rest(self):
        X, y = load_iris(return_X_y=True)
        fitted = MELC(n_init=1, tol=1e-2, random_state=0).fit(X, np.array(["rest", "b", "c"])[y])
        assert '\nClass "rest" against the rest\n' in export_text(fitted)
        assert re.search(r'<=? z.*   "rest"  \(\d+ rest, \d+ "rest"\)', export_text(fitted))

    def test_odds_add_nothing_to_two_classes(self, model):
        assert export_text(model, odds=True) == export_text(model)

    @needs_sqlite_mathematics
    def test_sql(self, iris):
        fitted, rows = iris
        rows = rows[:2000]
        found = run_sql(to_sql(fitted), rows)
        assert [row[-1] for row in found] == fitted.predict(rows).tolist()
        near = np.abs(rows).max(axis=1) < 100
        projections = np.array([row[-4:-1] for row in found])
        np.testing.assert_allclose(projections[near], fitted.transform(rows)[near], atol=1e-12)

    def test_sql_on_duckdb(self, iris):
        fitted, rows = iris
        found = run_duckdb(to_sql(fitted), rows[:2000])
        assert [row[-1] for row in found] == fitted.predict(rows[:2000]).tolist()

    def test_pickle_and_skops(self, iris):
        fitted, rows = iris
        for again in (pickle.loads(pickle.dumps(fitted)), through_skops(fitted)):
            np.testing.assert_array_equal(again.predict(rows[:5000]), fitted.predict(rows[:5000]))


# Loader, and a number of rows that SQLite classifies within a second.
OTHERS = {"wine": (load_wine, 2000), "digits": (load_digits, 60)}


@pytest.fixture(scope="module", params=OTHERS)
def other(request):
    load, n_rows = OTHERS[request.param]
    X, y = load(return_X_y=True)
    frame = pd.DataFrame(around(X, 10_000), columns=[f"x{i}" for i in range(X.shape[1])])
    return MELC(n_init=1, tol=1e-2, random_state=0).fit(X[::2], y[::2]), frame, n_rows


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
class TestMoreFeaturesAndClasses:
    """Wine and digits: dozens of features, up to ten classes, integers as labels."""

    def test_text_with_odds(self, other):
        fitted, rows, _ = other
        found = apply_text_with_odds(export_text(fitted, odds=True), rows)
        np.testing.assert_array_equal(found.astype(int), fitted.predict(rows.to_numpy()))

    def test_onnx(self, other):
        fitted, rows, _ = other
        session = onnx_session(fitted)
        for start in range(0, len(rows), 2000):
            part = rows[start : start + 2000].to_numpy()
            np.testing.assert_array_equal(session.run(["label"], {"X": part})[0], fitted.predict(part))

    @needs_sqlite_mathematics
    def test_sql(self, other):
        fitted, rows, n = other
        expected = fitted.predict(rows[:n].to_numpy())
        assert len(np.unique(expected)) > 2
        assert [row[-1] for row in run_sql(to_sql(fitted), rows[:n])] == expected.tolist()


def after_subqueries(query):
    """Yield what comes after the closing bracket of every ``FROM (...)``."""
    for start in re.finditer(r"FROM \(", query):
        end, depth = start.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(query[end], 0)
            end += 1
        yield query[end:]


@needs_sqlite_mathematics
class TestSqlOfSeveralClasses:
    def fit(self, labels, columns=("a", "b", "c")):
        """Return a model of few rows, so that the query is fast, and these rows."""
        rng = np.random.default_rng(0)
        y = np.arange(10 * len(columns)) % 3
        X = pd.DataFrame(rng.normal(size=(len(y), len(columns))) + 2 * y[:, None], columns=columns)
        return MELC(n_init=1, random_state=0).fit(X, np.array(labels)[y]), X

    def test_a_hundred_thousand_rows(self):
        fitted, X = self.fit(["low", "middle", "high"])
        rows = pd.DataFrame(around(X.to_numpy(), 100_000), columns=X.columns)
        np.testing.assert_array_equal([row[-1] for row in run_sql(to_sql(fitted), rows)], fitted.predict(rows))

    def test_functions_and_names_are_those_of_postgresql_too(self):
        """It has no max of two numbers and no atanh, and before version 16 it asks for a name of every subquery."""
        fitted, _ = self.fit(["low", "middle", "high"])
        query = to_sql(fitted)
        called = set(re.findall(r"\b([a-z]+)\(", query))
        assert called == {"abs", "exp", "ln", "min", "sum"}
        assert all(name.startswith(" AS ") for name in after_subqueries(query))

    def test_no_function_is_called_where_postgresql_reports_an_error(self):
        """It does so if a result is zero only by rounding, or too large."""
        fitted, X = self.fit(["low", "middle", "high"])
        rows = pd.DataFrame(around(X.to_numpy(), 400), columns=X.columns)

        def exp(x):
            if math.exp(x) == 0:
                raise ArithmeticError("underflow")
            return math.exp(x)

        found = run_sql(to_sql(fitted), rows, functions={"exp": exp, "ln": math.log})
        assert [row[-1] for row in found] == fitted.predict(rows).tolist()

    @pytest.mark.parametrize("labels", [[3, 5, 11], [1.0, 2.0, 3.0], ["'; DROP TABLE data; --", "O\"Neil's", ""]])
    def test_labels(self, labels):
        fitted, X = self.fit(labels)
        assert [row[-1] for row in run_sql(to_sql(fitted), X)] == fitted.predict(X).tolist()

    @pytest.mark.parametrize("table", ['odd "table"; DROP TABLE x', "melc0_0", "MELC_0_0", "p", "z0"])
    def test_names(self, table):
        fitted, X = self.fit(["a", "b", "c"], [*AWKWARD_NAMES, "z0", "c0", "own", "place", "p"])
        assert [row[-1] for row in run_sql(to_sql(fitted, table), X, table)] == fitted.predict(X).tolist()

    def test_null_in_null_out(self):
        fitted, _ = self.fit(["a", "b", "c"])
        rows = run_sql(to_sql(fitted), pd.DataFrame({"a": [None], "b": [1.0], "c": [2.0]}, dtype=object))
        assert rows[0][-1] is None

    def test_a_class_that_no_interval_belongs_to(self):
        """With extreme priors a class may have no threshold and no interval."""
        fitted, X = self.fit(["a", "b", "c"])
        document = json.loads(to_json(fitted))
        document["decisions"][1] |= {"thresholds": [], "codes": [0], "counts": None}
        changed = from_json(json.dumps(document))
        assert [row[-1] for row in run_sql(to_sql(changed), X)] == changed.predict(X).tolist()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"prediction": "projection1"}, "both named .* choose different names"),
            ({"feature_names": ["a", "b", "Projection2"]}, "'projection2' is also a feature"),
        ],
    )
    def test_faults(self, arguments, message):
        fitted, _ = self.fit(["a", "b", "c"])
        with pytest.raises(ValueError, match=message):
            to_sql(fitted, **arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
def test_exports_differ_only_at_a_threshold_to_the_last_digits_as_the_page_says(model):
    rng = np.random.default_rng(0)
    rows, v = rng.normal(size=(4000, 3), scale=10), model.coef_[0]
    steps = rng.integers(-30, 31, size=len(rows))
    towards = rng.choice(model.thresholds_, size=len(rows))
    rows[:, 2] = (towards - rows[:, :2] @ v[:2]) / v[2]
    rows[:, 2] += steps * np.spacing(rows[:, 2])
    frame = pd.DataFrame(rows, columns=["a", "b", "c d"])
    found = {
        "text": apply_text_rule(export_text(model), frame),
        "SQL": [row[-1] for row in run_sql(to_sql(model), frame)],
        "ONNX": onnx_session(model).run(["label"], {"X": rows})[0],
    }
    away = [abs(sum(map(Fraction, row)) - Fraction(t)) for row, t in zip(rows * v, towards, strict=True)]
    rounding = 4 * np.spacing(np.abs(rows * v).sum(axis=1))
    clear = np.array(away, dtype=float) > rounding
    assert 0.2 < clear.mean() < 0.98
    for labels in found.values():
        np.testing.assert_array_equal(np.asarray(labels)[clear], model.predict(frame)[clear])
    page = " ".join((Path(__file__).parents[1] / "docs/user_guide/exports.md").read_text(encoding="utf-8").split())
    assert "lies on a threshold to the last digit may fall on either side" in page


@pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
def test_a_model_that_never_changes_its_mind(model):
    """Without a threshold one density is above the other everywhere."""
    document = two_thresholds(model)
    document["decisions"][0] |= {"thresholds": [], "codes": [1], "counts": [[3, 5]]}
    constant = from_json(json.dumps(document))
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=["a", "b", "c d"])
    assert set(constant.predict(rows)) == {"outer"}
    assert set(apply_text_rule(export_text(constant), rows)) == {"outer"}
    assert {row[-1] for row in run_sql(to_sql(constant), rows)} == {"outer"}
    assert set(onnx_session(constant).run(None, {"X": rows.to_numpy()})[0]) == {"outer"}
