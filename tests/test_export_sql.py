"""SQL: SQLite, DuckDB and PostgreSQL predict row for row what the model predicts, for both classifiers."""

import copy
import json
import re
import sqlite3
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from export_cases import (
    AWKWARD_NAMES,
    CASES,
    KINDS,
    additive,
    apply_text_rule,
    bands,
    fitted_case,
    fitted_digits,
    flowers,
    framed,
    on_thresholds,
    onnx_session,
    rings,
    run_sql,
    short,
    widened,
    with_curve,
)
from melc.export import export_text, from_json, to_json, to_onnx, to_sql
from melc.export.sql import MOST_POINTS
from melc.export.sql_parts import literal
from melc.model.curve import Curve
from melc.model.line import decides_alone

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")]


@pytest.fixture(scope="module")
def model():
    return fitted_case("two classes")[0]


def predictions(rows):
    return [row[-1] for row in rows]


def columns_before_last(rows, n):
    """The n columns before the prediction, shape (n_rows,) if it is one, else (n_rows, n)."""
    found = np.array([row[-1 - n : -1] for row in rows], dtype=np.float64)
    return found[:, 0] if n == 1 else found


def n_added(model):
    """How many columns come before the prediction: the projection, the log-odds of two classes, or none."""
    return int(decides_alone(model) or len(model.classes_) == 2)


class TestPredictions:
    @pytest.mark.parametrize("name", CASES)
    def test_every_row_as_predict(self, name, run):
        model, rows = fitted_case(name)
        found = run(to_sql(model), rows)
        assert predictions(found) == model.predict(rows).tolist()
        assert len(found[0]) == rows.shape[1] + 1 + n_added(model)
        if decides_alone(model):
            near = np.abs(rows).max(axis=1) < 100
            expected = rows.to_numpy() @ model.directions_[0]
            np.testing.assert_allclose(columns_before_last(found, 1)[near], expected[near], atol=1e-12)
        elif len(model.classes_) == 2:
            np.testing.assert_allclose(columns_before_last(found, 1), model.decision_function(rows), atol=1e-10)

    @pytest.mark.parametrize("name", [*KINDS, "one line of three classes"])
    def test_log_odds_on_request(self, name, run):
        model, rows = fitted_case(name)
        found = run(to_sql(model, odds=True), rows)
        assert predictions(found) == model.predict(rows).tolist()
        odds = columns_before_last(found, len(model.intercepts_))
        np.testing.assert_allclose(odds, model.decision_function(rows), atol=1e-10)

    @pytest.mark.parametrize("estimator", [short(), short(priors=[0.7, 0.3]), additive(max_lines=1), additive()])
    def test_on_the_thresholds_and_the_floats_next_to_them(self, estimator, run):
        model, rows = on_thresholds(estimator)
        found = run(to_sql(model, odds=True), rows)
        odds = columns_before_last(found, 1)
        np.testing.assert_allclose(odds, model.decision_function(rows), atol=1e-12)
        if decides_alone(model):  # otherwise the order of a sum may decide
            assert predictions(found) == model.predict(rows).tolist()
            np.testing.assert_array_equal(odds > 0, model.predict(rows) == "outer")

    def test_ten_classes_within_seconds(self, run):
        model, rows = fitted_digits()
        rows = pd.concat([rows] * 6)[:10_000]
        start = time.perf_counter()
        found = run(to_sql(model), rows)
        assert time.perf_counter() - start < 20  # about one on an idle machine; a CASE for every curve took minutes
        assert predictions(found) == model.predict(rows.to_numpy()).tolist()

    @pytest.mark.parametrize("estimator", [short(), additive(max_lines=2)])
    @pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
    def test_several_classes_in_a_pipeline(self, scaler, estimator, run):
        X, y = load_iris(return_X_y=True, as_frame=True)
        pipeline = make_pipeline(scaler, estimator).fit(X, y)
        assert predictions(run(to_sql(pipeline), X)) == pipeline.predict(X).tolist()

    @pytest.mark.parametrize("estimator", [short(), additive()])
    def test_integers_are_multiplied_as_floats(self, estimator, run):
        """As decimal numbers, products would overflow, or be rounded once instead of twice."""
        X, y = rings()
        rows = framed(np.round(1e6 * X).astype(np.int64))
        model = estimator.fit(rows, y)
        assert predictions(run(to_sql(model), rows)) == model.predict(rows).tolist()
        line = replace(model.lines_[0], direction=np.array([0.6, -0.8, 0, 0, 0]))
        model.lines_ = [line]
        rows = framed(np.column_stack([np.arange(1, 2000), *np.zeros((4, 1999), dtype=np.int64)]))
        assert columns_before_last(run(to_sql(model), rows), 1).tolist() == (np.arange(1, 2000) * 0.6).tolist()

    def test_a_model_that_never_changes_its_mind(self, model, run):
        constant = from_json(json.dumps(with_curve(model, [0.5], [2.0], [[3, 5]])))
        rows = framed(bands(50)[0])
        assert set(constant.predict(rows)) == {"outer"}
        assert set(predictions(run(to_sql(constant, odds=True), rows))) == {"outer"}

    @pytest.mark.parametrize("name", ["two classes", "lines, priors", "lines of one feature"])
    def test_numbers_at_the_ends_of_the_range(self, name, run):
        """PostgreSQL stops where a sum or a product leaves the range of floats."""
        model, rows = fitted_case(name)
        edges = np.repeat([1.7e308, -1.7e308, 5e-324, -5e-324, 2.3e-308], rows.shape[1])[:, None]
        one = np.tile(np.eye(rows.shape[1], dtype=bool), (5, 1))
        edges = framed(np.concatenate([np.where(one, edges, rows.to_numpy()[1]), np.where(one, -edges, edges)]))
        with np.errstate(invalid="ignore"):
            expected = model.predict(edges).tolist()
        assert predictions(run(to_sql(model, odds=True), edges)) == expected

    @pytest.mark.parametrize("name", ["two classes", "lines, priors", "lines of one feature"])
    def test_columns_of_single_precision(self, name, run):
        """Their largest and smallest numbers as well, which are far from the limits of the query."""
        model, rows = fitted_case(name)
        edges = np.resize([3.4e38, -3.4e38, 1.4e-45, -1.4e-45], (8, rows.shape[1]))
        near = np.clip(rows.to_numpy()[:100], -1e38, 1e38)
        singles = framed(np.concatenate([near, edges]).astype(np.float32).astype(np.float64))
        found = run(to_sql(model), singles, types=dict.fromkeys(singles.columns, "REAL"))
        assert predictions(found) == model.predict(singles).tolist()

    def test_products_with_small_weights(self, run):
        """A number need not be tiny for its product with the weight to be."""
        Z = np.random.default_rng(0).normal(size=(200, 2))
        rows = framed(Z * [1e13, 1e-13])
        model = short().fit(rows, np.where(Z[:, 0] + Z[:, 1] > 0, "over", "under"))
        assert 0 < np.abs(model.coef_).min() < 1e-24
        rows.iloc[:4, 0] = [1e-299, -1e-299, 1e-295, 1e-20]
        assert predictions(run(to_sql(model), rows)) == model.predict(rows).tolist()


class TestNamesAndLabels:
    @pytest.mark.parametrize("table", ['odd "table"; DROP TABLE x', "p", "r", "o", "q", "pieces", "Lines"])
    @pytest.mark.parametrize("estimator", [short(), additive(features_per_line=None)])
    def test_they_cannot_break_out(self, estimator, table, run):
        X, y = bands(d=len(AWKWARD_NAMES))
        frame = pd.DataFrame(X, columns=AWKWARD_NAMES)
        model = estimator.fit(frame, np.where(y == "inner", "'; DROP TABLE data; --", "O\"Neil's"))
        assert predictions(run(to_sql(model, table), frame, table)) == model.predict(frame).tolist()

    @pytest.mark.parametrize("estimator", [short(), additive(max_lines=2)])
    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [1.0, 2.0], [3, 5, 11], ["", "a\\b", "c\nd"]])
    def test_labels(self, labels, estimator, run):
        X, y = flowers()
        codes = np.unique(y, return_inverse=True)[1] % len(labels)
        model = estimator.fit(framed(X), np.array(labels)[codes])
        assert predictions(run(to_sql(model), framed(X))) == model.predict(framed(X)).tolist()

    @pytest.mark.parametrize("name", KINDS)
    def test_columns_of_the_table_may_have_the_added_names(self, name, run):
        """Such as those of a table that holds predictions already. The added ones come last."""
        model, rows = fitted_case(name)
        rows = rows[:500]
        known = [
            "projection",
            "log_odds",
            "log_odds0",
            "prediction",
            "z",
            "line",
            "piece",
            "a",
            "v0",
            "s0",
            "o0",
            "p",
            "o",
        ]
        found = run(to_sql(model), rows.assign(**dict.fromkeys(known, -1.0)))
        assert predictions(found) == model.predict(rows).tolist()
        plain = run(to_sql(model), rows)
        n = n_added(model)
        assert [row[-1 - n :] for row in found] == [row[-1 - n :] for row in plain]
        assert {row[rows.shape[1] : -1 - n] for row in found} == {(-1.0,) * len(known)}

    @pytest.mark.parametrize(
        ("name", "odds", "added"),
        [
            ("two classes", False, ["at", "class"]),
            ("two classes", True, ["at", "strength", "class"]),
            ("one line", False, ["at", "class"]),
            ("one line of three classes", False, ["at", "class"]),
            ("one line of three classes", True, ["at", "strength0", "strength1", "strength2", "class"]),
            ("three classes", False, ["class"]),
            ("three classes", True, ["strength0", "strength1", "strength2", "class"]),
            ("lines of two features", False, ["strength", "class"]),
            ("lines of two features", True, ["strength", "class"]),
            ("lines of three classes", False, ["class"]),
        ],
    )
    def test_names_of_the_added_columns(self, name, odds, added):
        model, rows = fitted_case(name)
        query = to_sql(model, odds=odds, prediction="class", projection="at", log_odds="strength")
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE TABLE data (" + ", ".join(f'"{name}" REAL' for name in rows) + ")")
            names = [column[0] for column in connection.execute(query).description]
        connection.close()
        assert names == [*rows.columns, *added]

    @pytest.mark.parametrize(
        ("name", "arguments", "message"),
        [
            ("two classes", {"prediction": "Feature 1"}, "'Feature 1' is also a feature"),
            ("two classes", {"projection": "feature 1"}, "'feature 1' is also a feature"),
            ("two classes", {"prediction": "z", "projection": "Z"}, "both named .* choose different names"),
            ("two classes", {"prediction": "z", "log_odds": "Z", "odds": True}, "both named .* choose different names"),
            ("two classes", {"feature_names": ["a", "A", "b"]}, r"'a' occurs twice \(SQL ignores the case of a to z\)"),
            ("two classes", {"prediction": None}, "prediction=None should be the name of a column"),
            ("two classes", {"projection": 3}, "projection=3 should be the name of a column"),
            ("three classes", {"log_odds": ""}, "log_odds='' should be the name of a column"),
            ("two classes", {"prediction": "\ud800"}, r"half of a character, which SQL cannot express; rename it\.$"),
            ("two classes", {"table": "a\0b"}, "NUL character"),
            ("two classes", {"table": "a\ud800"}, "half of a character, which SQL cannot express"),
            ("two classes", {"feature_names": ["a", "", "b"]}, "A column has no name"),
            ("two classes", {"table": ""}, "table='' should be a name, or a pair"),
            ("two classes", {"table": 5}, "table=5 should be a name, or a pair"),
            ("two classes", {"table": ("a", "b", "c")}, "should be a name, or a pair"),
            ("lines, priors", {"table": ("lines",)}, r"table=\('lines',\) should be a name, or a pair"),
            ("lines, priors", {"table": ["lines"]}, r"table=\['lines'\] should be a name, or a pair"),
            ("two classes", {"feature_names": ["a", "b"]}, "feature_names has 2 names"),
            ("three classes", {"prediction": "log_odds1", "odds": True}, "both named .* choose different names"),
            ("three classes", {"feature_names": [*"abc", "Log_odds2"], "odds": True}, "'log_odds2' is also a feature"),
            ("lines, priors", {"feature_names": ["a", "b", "c", "d", "log_odds"]}, "is also a feature.* log_odds="),
            ("lines, priors", {"prediction": "z", "log_odds": "Z"}, "both named .* choose different names"),
        ],
    )
    def test_faults(self, name, arguments, message):
        with pytest.raises(ValueError, match=message):
            to_sql(fitted_case(name)[0], **arguments)

    @pytest.mark.parametrize("pair", [("ß", "SS"), ("\N{KELVIN SIGN}", "k"), ("ﬁ", "fi"), ("É", "é")])
    def test_letters_beyond_a_to_z_have_a_case_of_their_own(self, pair, run):
        rows = framed(bands(100)[0][:, :2]).set_axis(pair, axis=1)
        model = short().fit(rows, np.where(rows[pair[0]] > rows[pair[1]], "first", "second"))
        assert predictions(run(to_sql(model), rows)) == model.predict(rows).tolist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([2**63 + 1, 2**63 + 5], np.uint64), "is beyond the whole numbers of SQL"),
        (np.array(["a", "b\ud800"]), r"'b\\ud800' contains half of a character"),
    ],
)
def test_labels_that_sql_cannot_express(labels, message):
    X = np.array([[0.0], [1.0], [4.0], [5.0]])
    with pytest.raises(ValueError, match=message):
        to_sql(short().fit(X, np.repeat(labels, 2)))


@pytest.mark.parametrize("export", [to_sql, to_json, to_onnx])
@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("datetime64[ns]", "1970-01-01T00:00:00.000000001, "),
        ("datetime64[us]", "1970-01-01T00:00:00.000001, "),
        ("datetime64[D]", "1970-01-02, 1970-01-03"),
        ("timedelta64[ns]", "1 nanoseconds, 2"),
        ("timedelta64[D]", "1 days, 2 days"),
    ],
)
def test_labels_of_dates_and_durations_are_refused_as_people_write_them(kind, shown, export):
    model = short().fit(np.array([[0.0], [1.0], [4.0], [5.0]]), np.repeat(np.array([1, 2], kind), 2))
    with pytest.raises(ValueError, match=rf"The labels {shown}.* cannot be written as .*y.astype\(str\)"):
        export(model)


class TestMissingValues:
    @pytest.mark.parametrize(
        ("data", "estimator"),
        [
            (bands, short()),
            (flowers, short()),
            (rings, additive(max_lines=2, full_lines="never")),
            (flowers, additive(max_lines=1, full_lines="never")),
        ],
    )
    def test_null_counts_as_the_mean_as_in_predict(self, data, estimator, run):
        X, y = data()
        model = estimator.fit(framed(X), y)
        rows = framed(np.repeat(X[:1], X.shape[1] + 1, axis=0))
        rows = rows.mask(np.vstack([np.eye(X.shape[1], dtype=bool), np.ones(X.shape[1], dtype=bool)]))
        for odds in (False, True):
            found = run(to_sql(model, odds=odds), rows)
            assert predictions(found) == model.predict(rows).tolist()
            filled = model.predict(rows.fillna(dict(zip(rows, model.feature_mean_, strict=True))))
            assert predictions(found) == filled.tolist()

    @pytest.mark.parametrize("name", KINDS)
    def test_a_missing_column_is_an_error_not_a_text(self, name):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            run_sql(to_sql(fitted_case(name)[0]), pd.DataFrame({"feature 9": [1.0]}))


class TestSize:
    @pytest.mark.parametrize("name", ["two classes", "lines, priors"])
    def test_more_features_than_sqlite_takes_in_one_chain(self, name):
        wide = from_json(json.dumps(widened(fitted_case(name)[0], 1500)))
        X = np.random.default_rng(1).normal(size=(60, 1500))
        rows = run_sql(to_sql(wide), pd.DataFrame(X, columns=[f"x{i}" for i in range(1500)]))
        assert predictions(rows) == wide.predict(X).tolist()
        assert len(set(predictions(rows))) == 2

    @pytest.mark.parametrize(
        ("estimator", "remedy"),
        [(short(), r"gamma \(now 1.0\),"), (additive(max_lines=1), r"gamma \(now 1.0\), lower max_lines \(now 1\),")],
    )
    def test_curves_of_very_many_points_are_refused(self, estimator, remedy):
        model = estimator.fit(*bands())
        knots = np.linspace(-3, 3, MOST_POINTS + 1)
        model.lines_ = [replace(model.lines_[0], curves=(Curve(knots, knots),))]
        with pytest.raises(ValueError, match=rf"have 50001 points.*raise {remedy} or export to ONNX"):
            to_sql(model, odds=True)
        to_sql(model)  # has the thresholds only

    def test_sqlite_parses_a_curve_of_very_many_points(self):
        """If a curve were searched by halves, 2¹⁵ points would be too deep for SQLite's parser."""
        X, y = bands()
        model = short().fit(X, y)
        knots = np.linspace(-3, 3, 33_000)
        model.lines_ = [replace(model.lines_[0], curves=(Curve(knots, knots),))]
        rows = run_sql(to_sql(model, odds=True), pd.DataFrame(X[:20], columns=["x0", "x1", "x2"]))
        np.testing.assert_allclose([row[-2] for row in rows], model.decision_function(X[:20]), rtol=1e-9)

    @pytest.mark.parametrize("n_pieces", [1_000, 1_001, 2_345])
    def test_curves_of_thousands_of_points(self, run, n_pieces):
        """One part of the table may be a single piece without an anchor."""
        model, rows = fitted_case("lines of three classes")
        n_knots = np.full(len(model.lines_), n_pieces // len(model.lines_) - 1)
        n_knots[-1] += n_pieces % len(model.lines_)
        many = copy.copy(model)
        many.lines_ = []
        for line, n in zip(model.lines_, n_knots, strict=True):
            knots = np.linspace(-3, 3, n)
            many.lines_.append(replace(line, curves=tuple(Curve(knots, curve.at(knots)) for curve in line.curves)))
        near = rows[np.abs(rows).max(axis=1) < 100][:20]
        assert predictions(run(to_sql(many), near)) == many.predict(near).tolist()

    def test_sqlite_finds_pieces_by_an_index(self):
        """Of tens of thousands, or ten thousand rows would take minutes."""
        model = additive(max_lines=2).fit(*bands())
        knots = np.linspace(-3, 3, 36_000 // len(model.lines_))
        model.lines_ = [replace(line, curves=(Curve(knots, np.sin(knots)),)) for line in model.lines_]
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE TABLE data (x0 REAL, x1 REAL, x2 REAL)")
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {to_sql(model, odds=True)}")]
        assert [step for step in plan if " t " in f"{step} "] == [
            "SEARCH t USING AUTOMATIC COVERING INDEX (piece=?)"
        ] * 2

    def test_a_query_of_thresholds_is_short(self, model):
        assert len(to_sql(model)) < 3000 < len(to_sql(model, odds=True))

    def test_hundreds_of_lines(self, run, request):
        """SQLite joins at most 64 tables, and unites at most 500. The others have no such limits, but take long."""
        n_lines = 600 if "SQLite" in request.node.name else 120
        model, rows = fitted_case("lines of three classes")
        rng = np.random.default_rng(0)
        many = copy.copy(model)
        many.lines_ = [
            replace(line, direction=direction / np.linalg.norm(direction))
            for line, direction in zip(model.lines_ * n_lines, rng.normal(size=(n_lines, 4)), strict=False)
        ]
        near = rows[np.abs(rows).max(axis=1) < 100][:20]
        assert len(many.lines_) == n_lines
        assert predictions(run(to_sql(many), near)) == many.predict(near).tolist()

    @pytest.mark.parametrize("table", ["pieces", "data"])
    def test_the_piece_is_searched_for_once_a_line(self, table):
        """However many classes there are: their curves have the same knots."""
        model, _ = fitted_case("lines of three classes")
        query = to_sql(model, table)
        assert all(
            query.count(f"u.z < {literal(knot)} ") == 1 for line in model.lines_ for knot in line.curves[0].knots
        )

    @pytest.mark.parametrize("name", KINDS)
    def test_no_functions_are_needed(self, name):
        """SQLite may have been built without exp and ln."""
        assert not re.findall(r"\b[a-z]+\(", to_sql(fitted_case(name)[0], odds=True))


def test_exports_differ_only_at_a_threshold_to_the_last_digits_as_the_page_says(model):
    rng = np.random.default_rng(0)
    rows, v = rng.normal(size=(4000, 3), scale=10), model.coef_[0]
    steps = rng.integers(-30, 31, size=len(rows))
    towards = rng.choice(model.thresholds_, size=len(rows))
    rows[:, 2] = (towards - rows[:, :2] @ v[:2]) / v[2]
    rows[:, 2] += steps * np.spacing(rows[:, 2])
    frame = framed(rows)
    found = {
        "text": apply_text_rule(export_text(model), frame),
        "SQL": predictions(run_sql(to_sql(model), frame)),
        "ONNX": onnx_session(model).run(["label"], {"X": rows})[0],
    }
    away = [abs(sum(map(Fraction, row)) - Fraction(t)) for row, t in zip(rows * v, towards, strict=True)]
    rounding = 4 * np.spacing(np.abs(rows * v).sum(axis=1))
    clear = np.array(away, dtype=float) > rounding
    assert 0.2 < clear.mean() < 0.98
    for labels in found.values():
        np.testing.assert_array_equal(np.asarray(labels)[clear], model.predict(frame)[clear])
    page = " ".join((Path(__file__).parents[1] / "docs/user_guide/exports.md").read_text(encoding="utf-8").split())
    assert "Only for a row that lies on a threshold up to rounding may they differ" in page
