"""Exports of an additive model predict as the model does; its text is short; a damaged file gives one clear error."""

import json
import re
import sqlite3
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from export_cases import AWKWARD_NAMES, apply_additive_text, around, onnx_session, run_duckdb, run_sql
from melc import AdditiveMELC
from melc.export import additive_sql, export_text, from_json, to_json, to_sql
from melc.export.additive_text import ranges_of
from test_export import ANY_JSON, DELETE, change

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")


def rings(n=300, d=5, seed=0):
    """Return rows and labels: "inside" within an ellipse in the plane of the first two features."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.where(X[:, 0] ** 2 + 0.7 * X[:, 1] ** 2 + 0.3 * X[:, 2] > 1.2, "outside", "inside")


def fitted(X, y, **options):
    return AdditiveMELC(**{"max_lines": 4, "random_state": 0, **options}).fit(X, y)


def framed(X):
    return pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])])


def three_classes():
    X, species = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[species]


CASES = {
    "two features": lambda: (*rings(), {}),
    "one feature": lambda: (*rings(), {"features_per_line": 1}),
    "all features": lambda: (*rings(d=8), {"features_per_line": None}),
    "one line": lambda: (*rings(), {"max_lines": 1}),
    "priors": lambda: (*rings(), {"priors": [0.9, 0.1]}),
    "three classes": lambda: (*three_classes(), {}),
    "three classes, priors": lambda: (*three_classes(), {"priors": [0.6, 0.3, 0.1], "features_per_line": None}),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """A fitted model, its training rows, and rows in and far outside their range."""
    X, y, options = CASES[request.param]()
    model = fitted(framed(X), y, **options)
    return model, framed(X), framed(around(X, 5000))


@pytest.fixture(scope="module")
def model():
    X, y = rings()
    return fitted(framed(X), y)


def log_odds_of(rows, model):
    """The columns with log-odds in the result of a query, shape (n_rows, n) or (n_rows,) as in decision_function."""
    n = len(model.intercept_)
    odds = np.array([row[-1 - n : -1] for row in rows], dtype=np.float64)
    return odds[:, 0] if n == 1 else odds


class TestText:
    def test_the_text_with_odds_decides_as_predict(self, case):
        model, _, rows = case
        np.testing.assert_array_equal(apply_additive_text(export_text(model, odds=True), rows), model.predict(rows))

    def test_awkward_names_and_labels(self):
        X, y = rings(d=len(AWKWARD_NAMES))
        frame = pd.DataFrame(X, columns=[*AWKWARD_NAMES[:-1], "two  spaces\n"])
        labels = np.where(y == "inside", "a (b), <c>", "against b: 5 + what")
        model = fitted(frame, labels)
        np.testing.assert_array_equal(apply_additive_text(export_text(model, odds=True), frame), model.predict(frame))

    def test_lines_are_in_the_order_of_importance(self, model):
        numbers = [int(n) for n in re.findall(r"^Line (\d+), importance", export_text(model), re.MULTILINE)]
        assert numbers == np.argsort([-line.importance for line in model.lines_]).tolist()
        assert len(numbers) == len(model.lines_) > 1

    def test_intercept_classes_and_decision(self):
        X, y = rings()
        text = export_text(fitted(X, y, priors=[0.9, 0.1], max_lines=2))
        assert text.startswith("Log-odds of outside against inside: -2.2 + what 2 lines add\n")
        assert text.endswith("Where the log-odds are above 0, outside is predicted, elsewhere inside.")

    def test_several_classes(self):
        text = export_text(fitted(*three_classes()))
        assert re.findall(r"^Log-odds of (\w+) against the rest: 0 \+", text, re.MULTILINE) == [
            "setosa",
            "versicolor",
            "virginica",
        ]
        assert text.endswith("The class with the largest log-odds is predicted, the first of equals.")

    def test_a_class_called_rest_is_told_from_the_rest(self):
        X, y = three_classes()
        text = export_text(fitted(X, np.where(y == "setosa", "rest", y)))
        assert 'Log-odds of "rest" against the rest' in text
        assert re.search(r'\(\d+ rest, \d+ "rest"\)', text)

    def test_weights_and_counts_of_a_line(self, model):
        X, y = rings()
        text = export_text(model, digits=6)
        for k, line in enumerate(model.lines_):
            block = text[text.index(f"Line {k}, ") :].split("\n\n")[0].splitlines()
            terms = re.findall(r"(-?) ?([\d.e-]+) feature (\d)", block[0].split("z = ")[1])
            weights = {int(j): float(sign + number) for sign, number, j in terms}
            assert weights == pytest.approx({int(j): line.coef[j] for j in line.features}, rel=1e-5)
            interval = np.searchsorted(line.thresholds, X @ line.coef, side="right")
            for i, row in enumerate(block[1:]):
                inside, outside = (np.sum((interval == i) & (y == label)) for label in ("inside", "outside"))
                assert row.endswith(f"({inside} inside, {outside} outside)")
                assert f"for {'outside' if line.favours[i] else 'inside'} " in row

    def test_the_range_of_an_interval_holds_what_the_line_adds_there(self, case):
        for line in case[0].lines_:
            ends = [line.knots[0] - 1, *line.thresholds, line.knots[-1] + 1]
            for (left, right), (least, most) in zip(pairwise(ends), ranges_of(line), strict=True):
                values = line.at(np.linspace(left, right, 2001))
                assert values.min() == pytest.approx(least, abs=0.02 * np.ptp(line.log_odds))
                assert values.max() == pytest.approx(most, abs=0.02 * np.ptp(line.log_odds))
                assert values.min() >= least - 1e-9
                assert values.max() <= most + 1e-9

    def test_the_strongest_of_many_features_and_the_number_of_the_others(self):
        X, y = rings(d=9)
        model = fitted(X, y, features_per_line=None, max_lines=1)
        line = model.lines_[0]
        heading = export_text(model).splitlines()[2]
        strongest = np.argsort(-line.feature_importances)[:4]
        assert [int(j) for j in re.findall(r" x(\d)", heading)] == strongest.tolist()
        assert heading.endswith(f" + {len(line.features) - 4} more")
        text = export_text(fitted(X[:, :5], y, features_per_line=None, max_lines=1))
        assert "more" not in text.splitlines()[2]  # the fifth is named rather than counted

    def test_short_unless_digits_are_asked_for(self, model):
        assert re.search(r"importance \d\.\d\d?: z = -?[\d.e-]{1,9} feature", export_text(model))
        assert len(export_text(model)) < len(export_text(model, digits=9)) < len(export_text(model, odds=True))

    def test_wrong_number_of_names(self, model):
        with pytest.raises(ValueError, match="feature_names has 1 names, but the model has 5"):
            export_text(model, ["only"])


class TestJson:
    def test_predictions_survive_to_the_last_bit(self, case):
        model, _, rows = case
        again = from_json(to_json(model))
        assert type(again) is AdditiveMELC
        for method in ("predict", "decision_function", "predict_proba", "line_log_odds"):
            np.testing.assert_array_equal(getattr(again, method)(rows), getattr(model, method)(rows))

    def test_attributes_survive(self, case):
        model = case[0]
        again = from_json(to_json(model).encode())
        assert again.get_params() == model.get_params()
        assert again.n_iter_ == model.n_iter_
        for name in ("coef_", "importances_", "intercept_", "classes_", "feature_names_in_"):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
        for ours, theirs in zip(again.lines_, model.lines_, strict=True):
            for name, value in vars(theirs).items():
                np.testing.assert_array_equal(getattr(ours, name), value)
        assert to_json(again) == to_json(model)
        assert export_text(again) == export_text(model)

    @pytest.mark.parametrize("labels", [np.array([3, -7]), np.array([False, True]), np.array(["b", "a"], dtype=object)])
    def test_labels(self, labels):
        X, y = rings(100)
        model = fitted(X, labels[(y == "inside").astype(int)], max_lines=1)
        again = from_json(to_json(model))
        assert again.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            to_json(AdditiveMELC())


LINE = ("lines", 0)

FAULTS = {
    "foreign format": (change(["format"], "other"), "'format' should be 'melc-model' or 'melc-additive-model', found"),
    "format as list": (change(["format"], ["melc-additive-model"]), "Not a melc model"),
    "format of the other model": (change(["format"], "melc-model"), "the key 'coef' is missing"),
    "newer version": (change(["version"], 99), "version 99.*Upgrade melc"),
    "no version": (change(["version"], DELETE), "the key 'version' is missing"),
    "unknown key": (change(["surprise"], 1), "the key 'surprise' is not known"),
    "no lines": (change(["lines"], []), r"lines: expected lines with every class_index from 1 to 1, found \[\]"),
    "lines object": (change(["lines"], {}), "lines: expected a list"),
    "line number": (change([*LINE], 5), r"lines\[0\]: expected an object"),
    "line without knots": (change([*LINE, "knots"], DELETE), r"lines\[0\]: the key 'knots' is missing"),
    "line with more": (change([*LINE, "colour"], 1), r"lines\[0\]: the key 'colour' is not known"),
    "wrong parameter": (change(["parameters", "max_lines"], 0), "'max_lines' parameter of AdditiveMELC"),
    "no threads": (change(["parameters", "n_jobs"], 0), "'n_jobs' parameter of AdditiveMELC"),
    "parameter of MELC": (change(["parameters", "n_init"], 3), "the key 'n_init' is not known"),
    "one class": (change(["classes", "values"], ["a"]), "two or more different labels in ascending order"),
    "three classes": (change(["classes", "values"], ["a", "b", "c"]), "intercept: expected 3 items, found 1"),
    "names missing one": (change(["feature_names"], ["a", "b"]), "feature_names: expected 5 items, found 2"),
    "names equal": (change(["feature_names"], list("aabcd")), "feature_names: expected different names"),
    "no features": (change(["n_features"], 0), "n_features: expected an integer from 1"),
    "features of a giant": (change(["n_features"], 2**40), "n_features: expected an integer from 1 to [0-9]+, found"),
    "feature out of range": (change([*LINE, "features", 1], 5), r"features\[1\]: expected an integer from 0 to 4"),
    "features descend": (change([*LINE, "features"], [1, 0]), "features: expected ascending indices"),
    "feature twice": (change([*LINE, "features"], [1, 1]), "features: expected ascending indices"),
    "no feature": (change([*LINE, "features"], []), "features: expected ascending indices of one or more"),
    "weight too few": (change([*LINE, "weights"], [1.0]), "weights: expected 2 items, found 1"),
    "weight zero": (change([*LINE, "weights", 0], 0), "weights: expected weights other than zero"),
    "weight huge": (change([*LINE, "weights", 0], -1e308), "weights: expected weights from -1 to 1"),
    "weight as text": (change([*LINE, "weights", 0], "1"), r"weights\[0\]: expected a finite number"),
    "class of two": (change([*LINE, "class_index"], 0), "class_index: expected an integer from 1 to 1, found 0"),
    "class as text": (change([*LINE, "class_index"], "outside"), "class_index: expected an integer"),
    "knots descend": (change([*LINE, "knots", 0], 1e9), "knots: expected ascending"),
    "no knots": (change([*LINE, "knots"], []), "knots: expected at least one knot"),
    "knots at one place": (change([*LINE, "knots", 0], DELETE), "log_odds: expected [0-9]+ items, found"),
    "knots far apart": (
        lambda document: document["lines"][0].update(knots=[-1.7e308, 1.7e308], log_odds=[-1, 1]),
        "knots: expected knots whose distances are neither tiny nor huge",
    ),
    "knots close together": (
        lambda document: document["lines"][0].update(knots=[0, 5e-324], log_odds=[-1, 1]),
        "knots: expected knots whose distances are neither tiny nor huge",
    ),
    "log-odds null": (change([*LINE, "log_odds", 0], None), r"log_odds\[0\]: expected a finite number"),
    "log-odds of a giant": (change([*LINE, "log_odds", 0], 1e300), "log_odds: expected numbers from -1500 to 1500"),
    "counts negative": (change([*LINE, "counts", 0, 0], -1), "counts: expected non-negative counts"),
    "counts too few": (change([*LINE, "counts"], [[1, 2]]), "counts: expected [0-9]+ items, found 1"),
    "importance text": (change([*LINE, "importance"], "high"), "importance: expected a finite number"),
    "shares negative": (
        change([*LINE, "feature_importances", 0], -1),
        "feature_importances: expected numbers that are",
    ),
    "places descend": (change([*LINE, "places", 0], 1e9), "places: expected ascending"),
    "one density": (change([*LINE, "densities"], [[]]), "densities: expected 2 items, found 1"),
    "density negative": (change([*LINE, "densities", 0, 0], -1), r"densities\[0\]: expected numbers that are not"),
    "density too short": (change([*LINE, "densities", 1], [1]), r"densities\[1\]: expected 101 items, found 1"),
    "intercept text": (change(["intercept"], "big"), "intercept: expected a list"),
}


class TestFaultyFiles:
    @pytest.mark.parametrize("name", FAULTS)
    def test_one_clear_error_for_every_fault(self, model, name):
        edit, message = FAULTS[name]
        document = json.loads(to_json(model))
        assert len(document["lines"][0]["counts"]) > 1
        edit(document)
        with pytest.raises(ValueError, match=message) as caught:
            from_json(json.dumps(document))
        assert "\n" not in str(caught.value)

    def test_a_class_without_lines(self):
        document = json.loads(to_json(fitted(*three_classes())))
        document["lines"] = [line for line in document["lines"] if line["class_index"] != 1]
        with pytest.raises(ValueError, match="lines: expected lines with every class_index from 0 to 2"):
            from_json(json.dumps(document))

    @pytest.mark.slow
    @settings(max_examples=200, deadline=None)
    @given(data=st.data())
    def test_any_part_replaced_by_any_json(self, model, data):
        document = json.loads(to_json(model))
        parent = document
        while True:
            keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
            key = data.draw(st.sampled_from(keys[:10]))
            child = parent[key]
            if not isinstance(child, (dict, list)) or not child or data.draw(st.booleans()):
                parent[key] = data.draw(ANY_JSON)
                break
            parent = child
        self._accepts_or_refuses(json.dumps(document))

    @pytest.mark.slow
    @settings(max_examples=200, deadline=None)
    @given(data=st.data())
    def test_changed_bytes_give_a_model_or_a_value_error(self, model, data):
        content = bytearray(to_json(model).encode())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        self._accepts_or_refuses(bytes(content))

    def _accepts_or_refuses(self, content):
        try:
            restored = from_json(content)
        except ValueError:
            return
        rows = np.zeros((2, restored.n_features_in_))
        if hasattr(restored, "feature_names_in_"):
            rows = pd.DataFrame(rows, columns=list(restored.feature_names_in_))
        assert set(restored.predict(rows)) <= set(restored.classes_)
        assert np.isfinite(restored.decision_function(rows)).all()


@pytest.mark.slow
class TestSql:
    @pytest.mark.parametrize("run", [run_sql, run_duckdb])
    def test_databases_decide_as_predict(self, case, run):
        model, _, rows = case
        found = run(to_sql(model), rows)
        np.testing.assert_array_equal([row[-1] for row in found], model.predict(rows))
        np.testing.assert_allclose(log_odds_of(found, model), model.decision_function(rows), atol=1e-10)

    def test_at_the_knots_and_thresholds(self):
        X = rings()[0][:, :1]
        model = fitted(X, np.where(np.abs(X[:, 0]) > 0.8, "outside", "inside"), max_lines=2)
        places = np.concatenate([[*line.knots, *line.thresholds] / line.coef[0] for line in model.lines_])
        rows = pd.DataFrame({"x0": np.concatenate([places, np.nextafter(places, -9), np.nextafter(places, 9)])})
        for run in (run_sql, run_duckdb):
            odds = log_odds_of(run(to_sql(model), rows), model)
            np.testing.assert_allclose(odds, model.decision_function(rows.to_numpy()), atol=1e-12)

    def test_integers_need_no_decimal_arithmetic(self):
        """DuckDB multiplies integers and numbers without an exponent as decimals, which overflow."""
        X, y = rings()
        rows = framed(np.round(1e6 * X).astype(np.int64))
        model = fitted(rows, y)
        assert [row[-1] for row in run_duckdb(to_sql(model), rows)] == model.predict(rows).tolist()

    @pytest.mark.parametrize("table", ['odd "table"; DROP TABLE x', "p", "r", "o"])
    def test_names_and_labels_cannot_break_out(self, table):
        X, y = rings(d=len(AWKWARD_NAMES))
        frame = pd.DataFrame(X, columns=AWKWARD_NAMES)
        model = fitted(frame, np.where(y == "inside", "'; DROP TABLE data; --", "O\"Neil's"), features_per_line=None)
        rows = run_sql(to_sql(model, table), frame, table)
        assert [row[-1] for row in rows] == model.predict(frame).tolist()

    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0]])
    def test_labels_that_are_no_texts(self, labels):
        X, y = rings(100)
        model = fitted(framed(X), np.array(labels)[(y == "inside").astype(int)], max_lines=1)
        for run in (run_sql, run_duckdb):
            assert [row[-1] for row in run(to_sql(model), framed(X))] == model.predict(framed(X)).tolist()

    @pytest.mark.parametrize("run", [run_sql, run_duckdb])
    @pytest.mark.parametrize("several", [False, True])
    def test_null_in_null_out(self, run, several):
        X, y = three_classes() if several else rings()
        model = fitted(framed(X), y, max_lines=1, full_lines="never")
        used = np.flatnonzero(model.coef_.any(axis=0))
        rows = framed(np.repeat(X[:1], X.shape[1], axis=0))
        rows = rows.mask(np.eye(X.shape[1], dtype=bool))  # each feature is missing once
        # DuckDB knows missing values of pandas' own type; SQLite None.
        rows = rows.astype("Float64") if run is run_duckdb else rows.astype(object).where(rows.notna(), None)
        found = [row[-1] for row in run(to_sql(model), rows)]
        assert [label is None for label in found] == np.isin(np.arange(X.shape[1]), used).tolist()

    def test_a_missing_column_is_an_error_not_a_text(self, model):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            run_sql(to_sql(model), pd.DataFrame({"feature 7": [1.0]}))

    def test_more_features_than_sqlite_takes_in_one_chain(self, model):
        document = json.loads(to_json(model))
        weights = np.random.default_rng(0).normal(size=1500, scale=0.03).tolist()
        document["lines"][0] |= {"features": list(range(1500)), "weights": weights, "feature_importances": [1] * 1500}
        document |= {"n_features": 1500, "feature_names": None, "feature_mean": None, "feature_spread": None}
        wide = from_json(json.dumps(document))
        X = np.random.default_rng(1).normal(size=(60, 1500))
        rows = run_sql(to_sql(wide), pd.DataFrame(X, columns=[f"x{i}" for i in range(1500)]))
        assert [row[-1] for row in rows] == wide.predict(X).tolist()
        assert len({row[-1] for row in rows}) == 2

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"prediction": "Feature 1"}, "'Feature 1' is also a feature"),
            ({"feature_names": ["a", "b", "c", "d", "log_odds"]}, "'log_odds' is also a feature.* log_odds="),
            ({"prediction": "z", "log_odds": "Z"}, "both named .* choose different names"),
            ({"table": "a\0b"}, "NUL character"),
        ],
    )
    def test_faults(self, model, arguments, message):
        with pytest.raises(ValueError, match=message):
            to_sql(model, **arguments)

    @pytest.mark.parametrize("run", [run_sql, run_duckdb])
    def test_columns_of_the_table_may_have_any_names(self, run):
        """Such as those of a table that holds the predictions of another model already."""
        for X, y in (rings(100), three_classes()):
            model = fitted(framed(X), y, max_lines=2)
            rows = framed(X).assign(
                **dict.fromkeys(["log_odds", "log_odds0", "prediction", "z0", "o0", "p", "o"], -1.0)
            )
            found = run(to_sql(model), rows)
            assert [row[-1] for row in found] == model.predict(framed(X)).tolist()
            np.testing.assert_allclose(log_odds_of(found, model), model.decision_function(framed(X)), atol=1e-10)

    def test_names_of_the_added_columns(self, model):
        query = to_sql(model, prediction="class", log_odds="odds")
        X, _ = rings()
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE TABLE data (" + ", ".join(f'"{name}" REAL' for name in framed(X)) + ")")
            names = [column[0] for column in connection.execute(query).description]
        connection.close()
        assert names[5:] == ["odds", "class"]

    def test_curves_of_very_many_knots_are_refused(self):
        """SQLite ended with "parser stack overflow" for a hundred curves of nine hundred knots."""
        model = fitted(*rings(), max_lines=1)
        line = model.lines_[0]
        knots = np.linspace(-3, 3, additive_sql.MOST_KNOTS + 1)
        model.lines_ = [replace(line, knots=knots, log_odds=np.zeros(len(knots)))]
        with pytest.raises(ValueError, match=r"have 10001 knots.*raise gamma \(now 1\), lower max_lines \(now 1\)"):
            to_sql(model)


@pytest.mark.slow
class TestOnnx:
    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_onnxruntime_decides_as_predict(self, case, dtype):
        model, _, rows = case
        rows = rows.clip(-1e30, 1e30).astype(dtype)
        labels, decision, proba = onnx_session(model, dtype=dtype).run(None, {"X": rows.to_numpy()})
        np.testing.assert_array_equal(labels, model.predict(rows))
        np.testing.assert_allclose(decision, model.decision_function(rows), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=1e-12)

    @pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered in reduce")  # scikit-learn's sum of X
    def test_at_the_ends_of_the_floating_point_range(self):
        X, y = rings()
        model = fitted(X, y, features_per_line=None)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, X.shape[1]))
        for rows in (1.7e308 * signs, 5e-324 * signs):
            labels, decision, _ = onnx_session(model).run(None, {"X": rows})
            np.testing.assert_array_equal(labels, model.predict(rows))
            np.testing.assert_allclose(decision, model.decision_function(rows), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0]])
    def test_labels_that_are_no_texts(self, labels):
        X, y = rings(100)
        model = fitted(X, np.array(labels)[(y == "inside").astype(int)], max_lines=1)
        assert onnx_session(model).run(["label"], {"X": X})[0].tolist() == model.predict(X).tolist()

    def test_a_curve_with_one_knot_is_constant(self, model):
        document = json.loads(to_json(model))
        document["lines"] = document["lines"][:1]
        document["lines"][0] |= {"knots": [0.5], "log_odds": [2.0], "counts": [[1, 2]]}
        constant = from_json(json.dumps(document))
        rows = framed(rings()[0])
        assert set(constant.predict(rows)) == {"outside"}
        assert set(onnx_session(constant).run(["label"], {"X": rows.to_numpy()})[0]) == {"outside"}
        assert {row[-1] for row in run_sql(to_sql(constant), rows)} == {"outside"}
        assert "any z   adds 2 to 2   for outside" in export_text(constant)
