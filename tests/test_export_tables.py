"""Exports of models of tables: texts, categories, ranks, dates, truth values and missing values, on every row."""

import json
import re
from contextlib import suppress
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from export_cases import additive, apply_table_text, onnx_inputs, onnx_session, run_duckdb, run_sql, short
from melc.export import export_text, from_json, to_json, to_onnx, to_sql
from melc.export.onnx_parts import text_of_missing
from melc.export.sql_columns import days_since_1970
from tables_data import SQL_TYPES, awkward_rows, mixed_frame, stored

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")

CODES = {"categorical_features": ["code"]}
ALONE = {"features_per_line": 1, "full_lines": "never"}
CASES = {
    "MELC": (2, short(**CODES), []),
    "MELC of three classes": (3, short(**CODES), []),
    "MELC of a category and a date": (2, short(), ["job", "day"]),
    "lines of all columns": (2, additive(features_per_line=None, **CODES), []),
    "lines of two columns": (2, additive(full_lines="never", max_lines=8, **CODES), []),
    "lines of two columns, three classes": (3, additive(full_lines="never", max_lines=8, **CODES), []),
    "lines of one column": (2, additive(max_lines=8, **ALONE, **CODES), []),
    "lines of one column, three classes": (3, additive(max_lines=8, **ALONE, **CODES), []),
    "a category": (2, additive(max_lines=1, **ALONE, priors=[0.4, 0.6]), ["job"]),
    "a category, three classes": (3, additive(max_lines=1, **ALONE), ["job"]),
    "a number with missing rows": (2, additive(max_lines=1, **ALONE, priors=[0.4, 0.6]), ["age"]),
    "a date": (2, additive(max_lines=1, **ALONE), ["day"]),
    "ranks": (3, additive(max_lines=1, **ALONE), ["size"]),
    "truth values": (2, additive(max_lines=1, **ALONE), ["ok"]),
}
EVERY = pytest.mark.parametrize("name", CASES)


@cache
def fitted(name):
    """Return a model, and rows: those of the fit, and others that it may meet, of the columns of the model."""
    n_classes, estimator, names = CASES[name]
    frame, y = mixed_frame(400, 1, n_classes)
    frame = frame[names or list(frame)]
    rows = [frame, awkward_rows(mixed_frame(300, 2, n_classes)[0])[list(frame)]]
    return estimator.fit(frame, y), rows


def test_the_cases_have_lines_of_every_kind():
    lines = [(line, name) for name in CASES for line in fitted(name)[0].lines_]
    assert any(line.levels for line, _ in lines)
    assert any(line.reads_codes and not line.levels for line, _ in lines)
    assert any(len(line.features) > 1 for line, _ in lines)


# ----------------------------------------------------------------------------------------------------------------- JSON


@EVERY
def test_json_restores_every_prediction(name):
    model, (frame, other) = fitted(name)
    again = from_json(to_json(model))
    for rows in (frame, other):
        for method in ("predict", "decision_function", "predict_proba", "line_log_odds"):
            np.testing.assert_array_equal(getattr(again, method)(rows), getattr(model, method)(rows))
    assert to_json(again) == to_json(model)
    assert export_text(again, odds=True) == export_text(model, odds=True)
    assert to_sql(again) == to_sql(model)
    assert again.get_params() == model.get_params()
    assert [line.levels for line in again.lines_] == [line.levels for line in model.lines_]
    for ours, theirs in zip(again.lines_, model.lines_, strict=True):
        np.testing.assert_array_equal(ours.missing_counts, theirs.missing_counts)


@pytest.mark.parametrize("wanted", [["code", "ok"], [6], [False] * 6 + [True], np.array([6]), np.array(["code"])])
def test_categorical_features_are_kept(wanted):
    frame, y = mixed_frame(200)
    again = from_json(to_json(additive(categorical_features=wanted).fit(frame, y)))
    assert again.categorical_features == list(wanted)
    assert {type(each) for each in again.categorical_features} <= {str, int, bool}


def test_levels_keep_their_types():
    rng = np.random.default_rng(0)
    columns = {
        "whole": pd.Categorical(rng.choice([3, -7, 2**60], 200)),
        "float": pd.Categorical(rng.choice([0.1, 2.0, 1e300], 200)),
        "truth": rng.random(200) < 0.5,
        "object": pd.Series(rng.choice(np.array(["a", "", "1"], dtype=object), 200)),
    }
    frame = pd.DataFrame(columns)
    frame["rank"] = pd.Categorical(rng.choice([10, 20, 30], 200), [30, 20, 10], ordered=True)
    model = additive(**ALONE).fit(frame, rng.random(200) < 0.2 + 0.5 * frame["truth"])
    again = from_json(to_json(model))
    for j, category in model.columns_.categories.items():
        assert list(map(repr, again.columns_.categories[j].levels)) == list(map(repr, category.levels))
    assert again.columns_.ranks == model.columns_.ranks == {4: (30, 20, 10)}


def test_a_level_of_infinity_cannot_be_written():
    model, _ = fitted("a category")
    category = model.columns_.categories[0]
    with pytest.raises(ValueError, match="A level of a category cannot be written as JSON: expected a string"):
        to_json(_with_columns(model, categories={0: type(category)((np.inf, *category.levels[1:]), category.scores)}))


def _with_columns(model, **changes):
    changed = type(model).__new__(type(model))
    changed.__dict__.update(vars(model))
    changed.columns_ = type(model.columns_)(**changes)
    return changed


def _part(document, holds):
    return next(each for each in document["columns"] if each["holds"] == holds)


def _line(document, with_counts):
    """Return a line that reads codes: of a number with missing values, or of a category."""
    lines = [line for line in document["lines"] if line["missing"] is not None]
    return next(line for line in lines if (line["missing_counts"] is not None) == with_counts)


def set_in(find, key, value):
    def edit(document):
        find(document)[key] = value

    return edit


categories, ranks, dates, numbers = (partial(_part, holds=kind) for kind in ("categories", "ranks", "dates", "numbers"))
of_category, of_number = partial(_line, with_counts=False), partial(_line, with_counts=True)
FAULTS = {
    "no columns": (lambda document: document.pop("columns"), "the key 'columns' is missing"),
    "columns null": (set_in(lambda d: d, "columns", None), "columns: expected a list"),
    "a column of a number": (set_in(lambda d: d["columns"], 0, 5), r"columns\[0\]: expected an object"),
    "kind": (set_in(categories, "holds", "colours"), "holds: expected 'categories' or 'ranks' or"),
    "kind of another type": (set_in(categories, "holds", ["ranks"]), "holds: expected 'categories' or"),
    "no levels": (lambda d: categories(d).pop("levels"), "the key 'levels' is missing"),
    "place of a category": (set_in(categories, "place", 1.0), "the key 'place' is not known"),
    "feature twice": (set_in(lambda d: d["columns"][1], "feature", 0), r"columns\[1\].feature: expected an integer"),
    "feature beyond": (set_in(lambda d: d["columns"][-1], "feature", 7), "feature: expected an integer from 6 to 6"),
    "levels empty": (set_in(categories, "levels", []), "levels: expected one or more levels"),
    "levels equal": (lambda d: categories(d)["levels"].__setitem__(0, categories(d)["levels"][1]), "different levels"),
    "one and true": (set_in(ranks, "levels", [1, True]), "levels: expected different levels"),
    "level of a list": (
        lambda d: categories(d)["levels"].__setitem__(0, ["a"]),
        r"levels\[0\]: expected a string",
    ),
    "level too large": (lambda d: categories(d)["levels"].__setitem__(0, 10**400), r"levels\[0\]: expected a string"),
    "a score less": (lambda d: categories(d)["scores"].pop(), "scores: expected [0-9]+ items"),
    "score text": (lambda d: categories(d)["scores"].__setitem__(0, "high"), r"scores\[0\]: expected a finite number"),
    "others a number": (set_in(categories, "others", 1), "others: expected true or false"),
    "rank null": (set_in(ranks, "levels", ["a", None]), "levels: expected levels without null"),
    "place text": (set_in(dates, "place", "1970-01-01"), "place: expected a finite number"),
    "no place": (set_in(numbers, "place", None), "place: expected a finite number"),
    "missing of two": (set_in(of_number, "missing", [1, 2]), "missing: expected 1 items, found 2"),
    "missing huge": (set_in(of_number, "missing", [1e9]), "missing: expected numbers from -1500 to 1500"),
    "missing of none": (set_in(of_number, "missing", None), "missing_counts: expected null, as for 'missing'"),
    "counts of one class": (set_in(of_number, "missing_counts", [1]), "missing_counts: expected 2 items"),
    "counts negative": (
        set_in(of_number, "missing_counts", [1, -1]),
        r"missing_counts\[1\]: expected a number",
    ),
    "no counts": (set_in(of_number, "missing_counts", None), "missing_counts: expected a list"),
    "counts of a category": (set_in(of_category, "missing_counts", [1, 1]), "missing_counts: expected null in a line"),
    "knots no levels": (lambda d: of_category(d)["knots"].__setitem__(0, -1), "knots: expected the numbers of"),
    "places no levels": (
        lambda d: of_category(d)["places"].__setitem__(0, -1),
        "places: expected the numbers of",
    ),
    "counts of levels": (lambda d: of_category(d)["counts"].pop(), "counts: expected [0-9]+ items"),
    "weight -1": (set_in(of_category, "weights", [-1.0]), "missing: expected null, except in a line of weight 1"),
    "plain column": (set_in(of_number, "features", [1]), "missing: expected null, except in a line of weight 1"),
    "parameter": (set_in(lambda d: d["parameters"], "categorical_features", [1.5]), r"categorical_features\[0\]: exp"),
    "parameter a text": (set_in(lambda d: d["parameters"], "categorical_features", "job"), "expected a list"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_one_clear_error_for_every_fault(name):
    edit, message = FAULTS[name]
    document = json.loads(to_json(fitted("lines of one column")[0]))
    edit(document)
    with pytest.raises(ValueError, match=message) as caught:
        from_json(json.dumps(document))
    assert "\n" not in str(caught.value)


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_any_part_of_the_columns_replaced_by_any_json(data):
    model, (rows, _) = fitted("lines of one column")
    document = json.loads(to_json(model))
    parent = data.draw(st.sampled_from([document["columns"], *document["columns"], *document["lines"]]))
    while True:
        keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        key = data.draw(st.sampled_from(keys[:12]))
        child = parent[key]
        if not isinstance(child, (dict, list)) or not child or data.draw(st.booleans()):
            parent[key] = data.draw(ANY_JSON)
            break
        parent = child
    try:
        restored = from_json(json.dumps(document))
    except ValueError:
        return
    with suppress(ValueError):  # the rows may not suit the columns
        assert np.isfinite(restored.decision_function(rows[:20])).all()


# ------------------------------------------------------------------------------------------------------------------ SQL


def kinds_of(frame):
    return {name: SQL_TYPES[name] for name in frame}


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("odds", [False, True])
def test_sql_predicts_every_row(name, odds, run):
    model, frames = fitted(name)
    for rows in frames:
        found = run(to_sql(model, odds=odds), stored(rows), types=kinds_of(rows))
        assert [row[-1] for row in found] == model.predict(rows).tolist()
        if odds:
            n = len(model.intercepts_)
            values = np.array([row[-1 - n : -1] for row in found], dtype=np.float64)
            np.testing.assert_allclose(values, model.decision_function(rows).reshape(-1, n), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MELC", "lines of one column", "a number with missing rows"])
def test_nan_in_a_database_is_missing(name, run, request):
    if "SQLite" in request.node.name:
        pytest.skip("SQLite has no NaN")
    model, (_, rows) = fitted(name)
    rows = rows.assign(age=rows["age"].where(rows["age"].abs() < 1e6))
    names = [each for each in ("age", "income", "code") if each in rows]
    nan = "; ".join(f"UPDATE data SET {each} = 'NaN' WHERE {each} IS NULL" for each in names)
    infinite = "UPDATE data SET age = 'Infinity' WHERE age = 'NaN'"
    for before in (nan, f"{nan}; {infinite}"):
        found = run(to_sql(model), stored(rows), types=kinds_of(rows), before=before)
        assert [row[-1] for row in found] == model.predict(rows).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("last", [5.0, np.nan])
def test_codes_in_a_column_of_texts(run, last):
    frame = pd.DataFrame({"code": np.resize([1.0, 2.0, last], 90)})
    y = (frame["code"] == 2) ^ (np.arange(90) % 7 == 0)
    model = additive(max_lines=1, **ALONE, categorical_features=[0]).fit(frame, np.where(y, "two", "other"))
    rows = pd.DataFrame({"code": ["1", "2", "5", "9", None]})
    expected = model.predict(pd.DataFrame({"code": [1, 2, 5, 9, np.nan]}))
    assert [row[-1] for row in run(to_sql(model), rows, types={"code": "text"})] == expected.tolist()


@pytest.mark.slow
def test_dates_of_every_kind(run, request):
    moments = pd.to_datetime(["1969-12-31", "1970-01-01", "2000-02-29", "2000-03-01", "1900-02-28", "1900-03-01"])
    moments = moments.append(pd.date_range("1890-01-01", "2105-01-01", freq="97D"))
    timed = moments + pd.to_timedelta(np.arange(len(moments)) * 12_345.678901, unit="s")
    kinds = {"SQLite": ["text"], "DuckDB": ["timestamp", "text"], "PostgreSQL": ["timestamp", "timestamptz", "text"]}
    database = re.search(r"\[(\w+)", request.node.name)[1]
    for column, kind in [(moments, "date"), *((timed, kind) for kind in kinds[database])]:
        if kind == "timestamptz":
            column = column.floor("s")
        texts = column.strftime("%Y-%m-%d" if kind == "date" else "%Y-%m-%d %H:%M:%S.%f").to_numpy()
        frame = pd.DataFrame({"day": np.append(texts.astype(object), None)})
        found = run(f"SELECT r.*, {days_since_1970('r.day')} AS days FROM data AS r", frame, types={"day": kind})
        assert found[-1][-1] is None
        days = np.array([row[-1] for row in found[:-1]], dtype=np.float64)
        np.testing.assert_allclose(days, (column - pd.Timestamp(0)) / pd.Timedelta(days=1), rtol=0, atol=1e-10)
    garbage = run(
        f"SELECT r.*, {days_since_1970('r.day')} AS days FROM data AS r",
        pd.DataFrame({"day": ["tomorrow", "", "2020-02-29T12:00", "12"]}),
        types={"day": "text"},
    )
    assert [row[-1] for row in garbage] == [None, None, 18321.5, None]


@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM"])
def test_sqlite_compares_levels_by_their_characters(collation):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": rng.choice(["a", "A", "b", "b "], 200), "x": rng.normal(size=200)})
    y = np.where(frame["town"].isin(["a", "b "]), "yes", "no")
    for model in (short().fit(frame, y), additive(max_lines=1, **ALONE).fit(frame, y)):
        found = run_sql(to_sql(model), frame, types={"town": f"TEXT COLLATE {collation}"})
        assert [row[-1] for row in found] == model.predict(frame).tolist() == y.tolist()


@pytest.mark.slow
def test_dates_of_other_years_are_missing(run, request):
    years = {"SQLite": ["10000-01-01"], "DuckDB": ["0044-03-15 (BC)", "10000-01-01", "infinity"]}
    years["PostgreSQL"] = ["0044-03-15 BC", "4713-01-01 00:00:00 BC", "10000-01-01", "infinity"]
    database = re.search(r"\[(\w+)", request.node.name)[1]
    frame = pd.DataFrame({"day": ["0001-01-01", "9999-12-31", *years[database]]})
    for kind in ("date", "timestamp") if database != "SQLite" else ["text"]:
        found = run(f"SELECT r.*, {days_since_1970('r.day')} AS days FROM data AS r", frame, types={"day": kind})
        assert [row[-1] for row in found] == [-719162, 2932896] + [None] * len(years[database])


@pytest.mark.slow
def test_another_style_of_dates_stops_the_query(run, request):
    if "PostgreSQL" not in request.node.name:
        pytest.skip("the others have one style")
    query = f"SELECT r.*, {days_since_1970('r.day')} AS days FROM data AS r"
    for style in ("German", "SQL, DMY", "Postgres, MDY"):
        frame = pd.DataFrame({"day": ["2020-02-29", None]})
        with pytest.raises(AssertionError, match=r"after SET datestyle = ISO, not with dates such as \S*29\S+2020"):
            run(query, frame, types={"day": "date"}, before=f"SET datestyle = '{style}'")
        assert run(query, frame[1:], types={"day": "date"}, before=f"SET datestyle = '{style}'") == [(None, None)]


@pytest.mark.slow
def test_a_table_in_a_schema(run, request):
    model, (rows, _) = fitted("lines of two columns")
    schema = "main" if "SQLite" in request.node.name else "pg_temp" if "PostgreSQL" in request.node.name else "temp"
    for table in ("data", "lines"):
        found = run(to_sql(model, (schema, table)), stored(rows), table, types=kinds_of(rows))
        assert [row[-1] for row in found] == model.predict(rows).tolist()
    with pytest.raises(ValueError, match=r"table=\('a', 'b', 'c'\) should be a name, or a pair"):
        to_sql(model, ("a", "b", "c"))


def test_names_that_postgresql_takes_for_one():
    frame, y = mixed_frame(200)
    long = "é" * 31
    names = ["age", f"{long}a1", f"{long}a2", *frame.columns[3:]]
    model = short().fit(frame.set_axis(names, axis=1), y)
    with pytest.raises(ValueError, match="begin with the same 63 bytes, and PostgreSQL reads no more of a name: 'éé"):
        to_sql(model)
    to_sql(model, feature_names=["age", f"{long}a", f"{long}b", *frame.columns[3:]])
    with pytest.raises(ValueError, match="is also a feature"):
        to_sql(model, feature_names=[f"{long}ab", *frame.columns[1:]], prediction=f"{long}ac")


def test_levels_that_sql_cannot_tell_apart():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"mixed": pd.Series(rng.choice(np.array(["1", 1, "b"], dtype=object), 200))})
    model = additive(**ALONE).fit(frame, rng.random(200) < np.where(frame["mixed"] == 1, 0.8, 0.2))
    with pytest.raises(ValueError, match=r"The level '?1'? of the column \"mixed\" cannot be told from another one"):
        to_sql(model)
    with pytest.raises(ValueError, match="Two levels of the column 'mixed' are written '1'; rename one of them"):
        to_onnx(model)


# ----------------------------------------------------------------------------------------------------------------- ONNX


@pytest.mark.slow
@EVERY
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_onnx_predicts_every_row(name, dtype):
    model, frames = fitted(name)
    session = onnx_session(model, dtype=dtype)
    for rows in frames:
        rows = rows.astype({each: dtype for each in ("age", "income") if each in rows})
        labels, decision, proba = session.run(None, onnx_inputs(session, model, rows, dtype))
        np.testing.assert_array_equal(labels, model.predict(rows))
        np.testing.assert_allclose(decision, model.decision_function(rows), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(proba, model.predict_proba(rows), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [short(), additive(), additive(**ALONE), additive(max_lines=1, **ALONE)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("in_the_fit", [False, True])
def test_onnx_of_numbers_with_missing_ones(estimator, n_classes, in_the_fit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.5, 1.5][: n_classes - 1])
    rows = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    rows[0] = np.nan
    model = estimator.fit(rows if in_the_fit else X, y)
    session = onnx_session(model)
    labels, decision, _ = session.run(None, {"X": rows})
    np.testing.assert_array_equal(labels, model.predict(rows))
    np.testing.assert_allclose(decision, model.decision_function(rows), atol=1e-12)
    infinite = np.where(np.isnan(rows), rng.choice([-np.inf, np.inf], X.shape), rows)  # which predict refuses
    np.testing.assert_array_equal(session.run(["label"], {"X": infinite})[0], labels)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["label", "", "/cast_0", "age"])
def test_names_that_an_input_cannot_have(name):
    model, (rows, _) = fitted("lines of one column")
    names = [*rows.columns[:-1], name]
    with pytest.raises(ValueError, match=f"The column name '{name}' cannot be that of an input.*feature_names="):
        to_onnx(model, feature_names=names)
    assert "kind" in {each.name for each in to_onnx(model, feature_names=[*rows.columns[:-1], "kind"]).graph.input}


def test_the_text_of_a_missing_text_is_no_level():
    assert text_of_missing(["a"]) == ""
    assert text_of_missing(["a", ""]) == "(missing)"
    assert text_of_missing(["", "(missing)"]) == "(missing)_"


# ----------------------------------------------------------------------------------------------------- names of levels

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NASTY = ["", " ", "a'", '"', "\\", "\n", "NULL", "1", "1.0", "true", "(missing)", "(others)", "any other", "x" * 5000]


@cache
def _document_of_jobs():
    return to_json(fitted("a category")[0]), to_json(fitted("MELC of a category and a date")[0])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(TEXTS, st.sampled_from(NASTY)), min_size=9, max_size=9, unique=True))
def test_levels_of_any_name(names):
    for text in _document_of_jobs():
        document = json.loads(text)
        levels = document["columns"][0]["levels"]
        document["columns"][0]["levels"] = [None if level is None else names[k] for k, level in enumerate(levels)]
        model = from_json(json.dumps(document))
        rows = pd.DataFrame({"job": pd.Series([*names, None], dtype=object)})
        if model.n_features_in_ == 2:
            rows["day"] = pd.Timestamp("2020-05-01")
        expected = model.predict(rows)
        databases = (run_sql, run_duckdb) if len("".join(names)) % 5 == 0 else (run_sql,)
        for run in databases:
            found = run(to_sql(model), stored(rows), types=kinds_of(rows))
            assert [row[-1] for row in found] == expected.tolist()
        session = onnx_session(model)
        np.testing.assert_array_equal(session.run(["label"], onnx_inputs(session, model, rows))[0], expected)
        labels, _ = apply_table_text(export_text(model, odds=True), rows)
        np.testing.assert_array_equal(labels, expected)


@pytest.mark.slow
def test_more_levels_than_a_category_keeps(run):
    """The rarest are one level, which stands for unknown ones as well."""
    rng = np.random.default_rng(0)
    town = rng.geometric(0.002, 9000)
    frame = pd.DataFrame({"town": pd.Series([f"town {k}" for k in town], dtype=object), "x": rng.normal(size=9000)})
    y = np.where(rng.random(9000) < 1 / (1 + np.exp(-frame["x"] - np.sin(town))), "yes", "no")
    rows = pd.concat([frame[:500], frame[:3].assign(town="nowhere"), frame[:3].assign(town=None)])
    for estimator in (short(), additive(**ALONE)):
        model = estimator.fit(frame, y)
        assert model.columns_.categories[0].others
        expected = model.predict(rows)
        found = run(to_sql(model), rows, types={"town": "text", "x": "double precision"})
        assert [row[-1] for row in found] == expected.tolist()
        session = onnx_session(model)
        np.testing.assert_array_equal(session.run(["label"], onnx_inputs(session, model, rows))[0], expected)
        np.testing.assert_array_equal(from_json(to_json(model)).decision_function(rows), model.decision_function(rows))
        np.testing.assert_array_equal(apply_table_text(export_text(model, odds=True), rows)[0], expected)
        short_text = export_text(model, digits=2)
        assert len(short_text.splitlines()) < 45
        assert re.search(r"\d+ other levels", short_text)


# ----------------------------------------------------------------------------------------------------------------- text


@EVERY
def test_the_text_with_odds_is_sufficient(name):
    model, frames = fitted(name)
    text = export_text(model, odds=True)
    for rows in frames:
        # What stands for a number that is missing where none was in the fit is not in the text.
        known = rows.drop(columns=[each for each in ("age", "day", "size", "job") if each in rows])
        rows = rows[known.notna().all(axis=1)]
        labels, proba = apply_table_text(text, rows)
        np.testing.assert_array_equal(labels, model.predict(rows))
        np.testing.assert_allclose(proba, model.predict_proba(rows), atol=1e-9)


def test_the_text_of_lines():
    text = export_text(fitted("lines of one column")[0])
    assert re.search(r"^Line \d, importance [0-9.]+: the level of job$", text, re.M)
    assert re.search(r"^  farmer  +adds -[0-9.]+  +for high(, uncertain)?  +\(\d+ high, \d+ low\)$", text, re.M)
    assert re.search(r"^  \(missing\)  +adds ", text, re.M)
    assert re.search(r"^  z < 2020-\d\d-\d\d  +adds -?[0-9.]+ to ", text, re.M)
    assert re.search(r"^  z < (medium|large)  +adds ", text, re.M)
    assert re.search(r"^  missing  +adds -?[0-9.]+  .* \(\d+ high, \d+ low\)$", text, re.M)
    assert not re.search(r"^  \d\. +adds", text, re.M)


def test_the_text_of_sums():
    text = export_text(fitted("MELC")[0], digits=3)
    first = text.splitlines()[0]
    assert first == "z is the sum of weight × feature, where a category adds the points of its level:"
    assert re.search(r"^ +-?[0-9.e-]+  job = farmer$", text, re.M)
    assert re.search(r"^ +-?[0-9.e-]+  job = \(missing\)$", text, re.M)
    assert re.search(r"^ +-?[0-9.e-]+  ok = True$", text, re.M)
    assert re.search(r"^ +-?[0-9.e-]+  age \([0-9.]+ if missing\)$", text, re.M)
    assert re.search(r"  day \(in days since 1970-01-01; 18\d\d\d.0 if missing\)$", text, re.M)
    assert re.search(r"  size \(by rank: 0 small, 1 medium, 2 large; \d if missing\)$", text, re.M)
    lines = export_text(fitted("lines of all columns")[0])
    assert re.search(r"z = .*-?[0-9.]+ score of job ", lines)
    assert re.search(r"^  -?[0-9.]+ score of job = .*-?[0-9.]+ for farmer, ", lines, re.M)


def test_dates_and_ranks_that_coincide_are_numbers():
    model, _ = fitted("a date")
    document = json.loads(to_json(model))
    line = document["lines"][0]
    line |= {"knots": [0.0, 0.3, 0.6, 1.0], "log_odds": [[-1, 1, -1, 1]], "errors": [], "counts": [[1, 1]] * 4}
    document["intercepts"] = [0.0]
    text = export_text(from_json(json.dumps(document)), digits=3)
    assert "  z < 1970-01-01 03:36:00 " in text
    line["knots"] = [1e8, 1.1e8, 1.2e8, 1.3e8]
    assert "  z < 1.05e+08 " in export_text(from_json(json.dumps(document)), digits=3)


# ------------------------------------------------------------------------------------------------------------ pipelines


@pytest.mark.parametrize("export", [export_text, to_json, to_sql])
def test_a_column_transformer_is_not_needed(export):
    frame, y = mixed_frame(200)
    encoder = make_column_transformer((OneHotEncoder(), ["ok"]), (StandardScaler(), ["income"]))
    with pytest.raises(ValueError, match=r"'columntransformer'.*Fit the model to the frame itself: it takes texts"):
        export(make_pipeline(encoder, short()).fit(frame, y))


def test_scaled_codes_are_refused():
    frame, y = mixed_frame(200)
    pipeline = make_pipeline(StandardScaler(), short(categorical_features=[1]))
    pipeline.fit(frame[["income", "code"]], y)
    with pytest.raises(ValueError, match=r"'standardscaler' .* scales the codes of categories.*needs no scaling"):
        to_sql(pipeline)


def test_scalers_keep_missing_values():
    frame, y = mixed_frame(300)
    X = frame[["age", "income"]]
    for estimator in (short(), additive(), additive(**ALONE)):
        pipeline = make_pipeline(StandardScaler(), estimator).fit(X, y)
        raw = from_json(to_json(pipeline))
        np.testing.assert_array_equal(raw.predict(X), pipeline.predict(X))
        np.testing.assert_allclose(raw.decision_function(X), pipeline.decision_function(X), atol=1e-9)
