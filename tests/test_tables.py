"""Reading of tables in all formats, errors of one line, encoding of columns, and models of tables."""

import gzip
import io
import json
import sqlite3
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC
from melc.export import to_json
from melc.tables import (
    Roles,
    Source,
    TableError,
    fit_table,
    learn_encoding,
    problem_of,
    read_blocks,
    read_table,
    table_model_from_json,
)
from melc.tables.assess import cross_validate, summarise
from melc.tables.model import TableModel
from melc.tables.problem import Problem

TEXT = "size,colour,when,flag\n1,red,2024-01-01,true\n2.5,,2024-01-02,false\n-3,blue,2024-01-03,true\n"


def source(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Source(str(path), **options)


def mixed_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    dose, sex = rng.normal(size=n), rng.choice(["f", "m", "it's"], n)
    level = dose + 0.6 * (sex == "m")
    y = np.where(np.abs(level) < 0.7, "well", "ill")
    return pa.table({"dose": dose, "age": rng.normal(50, 9, n), "sex": sex, "outcome": y})


@pytest.fixture(scope="module")
def fitted():
    problem, target = problem_of(mixed_table(), Roles("outcome"))
    return fit_table(problem, target, MELC(n_init=1, random_state=0))


class TestReading:
    def test_numbers_and_texts(self, tmp_path):
        table = read_table(source(tmp_path / "t.csv", TEXT))
        assert [str(field.type) for field in table.schema] == ["double", "string", "string", "string"]
        assert table.column("colour").to_pylist() == ["red", None, "blue"]
        assert table.column("flag").to_pylist() == ["true", "false", "true"]

    @pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet", "t.unknown"])
    def test_every_way_of_writing_gives_the_same_table(self, tmp_path, name):
        expected = read_table(source(tmp_path / "expected.csv", TEXT))
        path = tmp_path / name
        if "parquet" in name:
            pyarrow.parquet.write_table(expected, path)
        else:
            text = TEXT.replace(",", "\t") if "tsv" in name else TEXT
            path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
        assert read_table(Source(str(path))).equals(expected)
        kinds = {"size": "number", "colour": "text"}
        blocks = pa.Table.from_batches(
            [batch for block in read_blocks(Source(str(path)), kinds) for batch in _batches(block)]
        )
        assert blocks.equals(expected.select(["size", "colour"]))

    @pytest.mark.parametrize("packed", [False, True])
    def test_standard_input(self, monkeypatch, packed):
        content = gzip.compress(TEXT.encode()) if packed else TEXT.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read_table(Source("-")).num_rows == 3

    def test_libsvm_text(self, tmp_path):
        table = read_table(source(tmp_path / "t.libsvm", "+1 1:0.5 3:2\n-1 2:1e-3 # remark\n"))
        assert table.to_pydict() == {"label": [1, -1], "f1": [0.5, 0], "f2": [0, 0.001], "f3": [2, 0]}

    def test_libsvm_blocks_ignore_features_that_the_model_lacks(self, tmp_path):
        origin = source(tmp_path / "t", "1 1:5 9:7\n0 3:2\n")
        (block,) = read_blocks(origin, {"f1": "number", "f3": "number"})
        assert block.select(["f1", "f3"]).to_pydict() == {"f1": [5, 0], "f3": [0, 2]}

    def test_line_breaks_within_quotes_and_byte_order_mark(self, tmp_path):
        table = read_table(source(tmp_path / "t.csv", '\ufeffa,b\n1,"x\ny"\n2,"say ""hi"""\n'))
        assert table.to_pydict() == {"a": [1, 2], "b": ["x\ny", 'say "hi"']}

    def test_blocks_of_a_file_larger_than_a_block(self, tmp_path):
        numbers = np.arange(300_000)
        origin = source(tmp_path / "t.csv", "x,text\n" + "\n".join(f"{k},padding{k}" for k in numbers))
        blocks = list(read_blocks(origin, {"x": "number"}))
        assert len(blocks) > 1
        np.testing.assert_array_equal(np.concatenate([block.column("x") for block in blocks]), numbers)


def _batches(block):
    return block.to_batches() if isinstance(block, pa.Table) else [block]


BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "white space": (b"  \n\n", "the file is empty"),
    "header only": (b"a,b\n", "no rows"),
    "ragged": (b"a,b\n1,2\n3\n", "Expected 2 columns, got 1"),
    "not UTF-8": ("a,b\n1,ü\n".encode("latin-1"), "UTF-?8"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "not valid UTF-8.*--encoding"),
    "not UTF-8 further on": (b"a,b\n" + b"1,x\n" * 300_000 + b"1,\xff\n", "UTF-?8"),
    "binary": (bytes(range(256)) * 50, "not valid UTF-8|binary data"),
    "NUL bytes": (b"a,b\n\0\0,1\n", "binary data"),
    "repeated column": (b"a,a,b\n1,2,3\n", "'a' occurs 2 times"),
    "no names": (b",,\n1,2,3\n", "the first line is empty"),
    "a name made up twice": (b"column 2,,b\n1,2,3\n", "'column 2' occurs 2 times"),
    "broken gzip": (gzip.compress(b"a,b\n1,2\n" * 50)[:-20], "cannot be read"),
    "no gzip at all": (b"\x1f\x8bnothing", "cannot be read"),
    "no Parquet at all": (b"PAR1 something else", "cannot be read"),
    "bad libSVM": (b"1 1:2 2:3\n0 3:x\n", "cannot be read"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*has no name and is called:UserWarning")
class TestBadFiles:
    @pytest.mark.parametrize("name", BAD_FILES)
    def test_one_line_that_names_the_file(self, tmp_path, name):
        content, message = BAD_FILES[name]
        with pytest.raises(TableError, match=message) as caught:
            read_table(source(tmp_path / "bad.csv", content))
        assert "bad.csv" in str(caught.value)
        assert len(str(caught.value)) < 600
        assert "\n" not in str(caught.value)

    def test_a_text_among_numbers_names_the_column(self, tmp_path):
        with pytest.raises(TableError, match=r"column 'b'.*invalid value 'x'"):
            list(read_blocks(source(tmp_path / "t.csv", "a,b\n1,2\n3,x\n"), {"b": "number"}))

    def test_missing_columns_are_named_all(self, tmp_path):
        with pytest.raises(TableError, match="no columns 'c', 'd', which are needed"):
            list(read_blocks(source(tmp_path / "t.csv", "a,b\n1,2\n"), dict.fromkeys("acd", "number")))

    def test_a_wrong_delimiter_is_guessed(self, tmp_path):
        wrong = source(tmp_path / "t.csv", "a;b\n1;2\n", delimiter=",")
        with pytest.raises(TableError, match=r"is the delimiter ';'.*--delimiter"):
            list(read_blocks(wrong, {"a": "number"}))
        with pytest.raises(TableError, match="delimiter ';'"):
            problem_of(read_table(wrong), Roles("b"))

    def test_nested_parquet(self, tmp_path):
        pyarrow.parquet.write_table(pa.table({"a": [[1], [2]]}), tmp_path / "t.parquet")
        with pytest.raises(TableError, match="'a' has type list"):
            read_table(Source(str(tmp_path / "t.parquet")))

    def test_parquet_with_texts_where_numbers_should_be(self, tmp_path):
        pyarrow.parquet.write_table(pa.table({"a": ["x"]}), tmp_path / "t.parquet")
        with pytest.raises(TableError, match="'a' must contain numbers, but its type is string"):
            list(read_blocks(Source(str(tmp_path / "t.parquet")), {"a": "number"}))

    @settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(content=st.binary(max_size=300) | st.text(alphabet='a1,.\n"\t:-e', max_size=60).map(str.encode))
    def test_random_bytes_are_a_table_or_one_error(self, tmp_path, content):
        origin = source(tmp_path / "fuzz", content)
        for read in (read_table, lambda s: list(read_blocks(s, {"a": "number"}))):
            assert "\n" not in refusal_of(read, origin)

    @settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_damaged_files_of_every_format(self, tmp_path, data):
        content = bytearray(data.draw(st.sampled_from(_valid_files())))
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        end = data.draw(st.integers(1, len(content)))
        assert "\n" not in refusal_of(read_table, source(tmp_path / "fuzz", bytes(content[:end])))


def refusal_of(read, origin):
    """Return the message with which a reader refuses a file, or "" if it accepts it. Other errors are not caught."""
    try:
        read(origin)
    except TableError as error:
        return str(error)
    return ""


def _valid_files():
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"a": [1.0, 2.0], "b": ["x", "y"]}), buffer)
    return [TEXT.encode(), gzip.compress(TEXT.encode()), buffer.getvalue(), b"1 1:2 2:3\n-1 2:4\n"]


class TestEncoding:
    def test_texts_are_measured_against_the_most_frequent(self):
        table = pa.table({"c": ["b", "a", "b", "c"], "n": [1.0, 2.0, 3.0, 4.0]})
        encoding = learn_encoding(table, ["c", "n"])
        assert encoding.feature_names == ["c=a", "c=c", "n"]
        np.testing.assert_array_equal(encoding.encode(table).X, [[0, 0, 1], [1, 0, 2], [0, 0, 3], [0, 1, 4]])

    def test_texts_never_seen_are_counted(self):
        encoding = learn_encoding(pa.table({"c": ["a", "b", "b"]}), ["c"])
        encoded = encoding.encode(pa.table({"c": ["z", "a", "y"]}))
        assert encoded.n_unseen == {"c": 2}
        np.testing.assert_array_equal(encoded.X, [[0], [1], [0]])

    def test_gaps_are_refused_with_column_and_count(self):
        table = pa.table({"a": [1.0, None, None], "b": ["x", "y", None]})
        with pytest.raises(TableError, match=r"'a' \(2 of 3\), 'b' \(1 of 3\).*--impute median"):
            learn_encoding(table, ["a", "b"])

    def test_gaps_are_filled_with_what_was_learned(self):
        table = pa.table({"a": [1.0, 3.0, 100.0, None], "b": ["x", "y", "y", None]})
        encoding = learn_encoding(table, ["a", "b"], impute=True)
        np.testing.assert_array_equal(encoding.encode(table).X[-1], [3.0, 0.0])
        later = pa.table({"a": pa.array([None], pa.float64()), "b": ["x"]})
        np.testing.assert_array_equal(encoding.encode(later).X, [[3.0, 1.0]])

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (pa.table({"a": pa.array([None, None], pa.float64())}), "'a' has no values"),
            (pa.table({"a": [1.0, np.inf]}), "'a' contains inf"),
            (pa.table({"a": [str(k) for k in range(1001)]}), "1001 different text values.*identifier"),
            (pa.table({"a": ["same", "same"]}), "same text in all rows"),
        ],
    )
    def test_columns_that_teach_nothing(self, table, message):
        with pytest.raises(TableError, match=message):
            learn_encoding(table, ["a"]).encode(table)

    def test_no_columns(self):
        with pytest.raises(TableError, match="No columns are left"):
            learn_encoding(pa.table({"y": ["a"]}), [])


class TestProblem:
    @pytest.mark.parametrize(
        ("roles", "message"),
        [
            (Roles(), "name the column with the classes with --target"),
            (Roles("nope"), "no column 'nope'; the columns are 'dose'"),
            (Roles("outcome", drop=("gone",)), "no column 'gone'"),
            (Roles("outcome", weights="sex"), "'sex' must be numbers"),
            (Roles("outcome", weights="dose"), "must be finite and not negative; found -"),
            (Roles("dose"), "must be text or integers"),
            (Roles("outcome", positive="dead"), "--positive dead is not a class; the classes are 'ill', 'well'"),
        ],
    )
    def test_faults(self, roles, message):
        with pytest.raises(TableError, match=message):
            problem_of(mixed_table(), roles)

    def test_missing_target(self):
        with pytest.raises(TableError, match="'y' is missing in 1 of 2 rows"):
            problem_of(pa.table({"x": [1.0, 2.0], "y": ["a", None]}), Roles("y"))

    def test_one_class_against_all_others(self):
        table = pa.table({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]})
        assert problem_of(table, Roles("y", positive="b"))[0].labels.tolist() == ["not b", "b", "not b"]

    def test_whole_numbers_stay_numbers(self):
        assert problem_of(pa.table({"x": [1.0, 2.0], "y": [0.0, 1.0]}), Roles("y"))[0].labels.dtype == np.int64


class TestTableModel:
    def test_equals_the_model_fitted_in_python(self, fitted):
        table = mixed_table()
        sex = np.array(table.column("sex").to_pylist())
        names = fitted.encoding.feature_names
        columns = {"dose": table.column("dose").to_numpy(), "age": table.column("age").to_numpy()}
        columns |= {f"sex={s}": (sex == s).astype(float) for s in ("f", "m", "it's")}
        X = np.column_stack([columns[name] for name in names])
        model = MELC(n_init=1, random_state=0).fit(X, np.array(table.column("outcome").to_pylist()))
        np.testing.assert_array_equal(fitted.model.coef_, model.coef_)
        np.testing.assert_array_equal(fitted.model.thresholds_, model.thresholds_)

    def test_standardising_changes_the_search_and_not_the_units(self):
        table = mixed_table()
        problem, target = problem_of(table, Roles("outcome", drop=("sex",)))
        fitted = fit_table(problem, target, MELC(n_init=1, random_state=0), standardize=True)
        X = np.column_stack([table.column(name).to_numpy() for name in ("dose", "age")])
        pipeline = make_pipeline(StandardScaler(), MELC(n_init=1, random_state=0)).fit(X, problem.labels)
        np.testing.assert_array_equal(fitted.model.predict(X), pipeline.predict(X))
        np.testing.assert_allclose(fitted.model.decision_function(X), pipeline.decision_function(X), atol=1e-9)
        assert np.linalg.norm(fitted.model.coef_) == pytest.approx(1)

    def test_round_trip(self, fitted, tmp_path):
        again = table_model_from_json(fitted.to_json())
        assert again.to_json() == fitted.to_json()
        pyarrow.parquet.write_table(mixed_table(seed=1), tmp_path / "t.parquet")
        origin = Source(str(tmp_path / "t.parquet"))
        for ours, theirs in zip(fitted.predictions(origin), again.predictions(origin), strict=True):
            np.testing.assert_array_equal(ours.labels, theirs.labels)

    def test_a_plain_model_with_names_takes_tables_too(self):
        import pandas as pd

        X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["p", "q"])
        model = MELC(n_init=1, random_state=0).fit(X, (X["p"] > 0).to_numpy())
        assert table_model_from_json(to_json(model)).encoding.kinds == {"p": "number", "q": "number"}

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": "other"}, "Not a melc model"),
            ({"version": 7}, "Upgrade melc"),
            ({"version": None}, "version.*: expected an integer"),
            ({"columns": []}, "columns with different names"),
            ({"columns": [{"name": "a", "categories": None, "fill": None}]}, "1 features, but the model has 4"),
            ({"columns": [{"name": "a", "categories": [], "fill": None}]}, "expected one or more different strings"),
            ({"columns": [{"name": "a", "categories": ["x"], "fill": "y"}]}, "one of the categories"),
            ({"columns": [{"name": 1, "categories": None, "fill": None}]}, "expected a string"),
            ({"target": 5}, "target: expected a string"),
            ({"model": {}}, "Not a melc model"),
            ({"extra": 1}, "'extra' is not known"),
        ],
    )
    def test_faults(self, fitted, change, message):
        with pytest.raises(ValueError, match=message):
            table_model_from_json(json.dumps(json.loads(fitted.to_json()) | change))

    def test_sql_over_the_raw_columns(self):
        table = mixed_table(seed=2)
        gap = pa.array([None if k % 7 == 0 else v for k, v in enumerate(table.column("age").to_pylist())])
        table = table.set_column(1, "age", gap)
        problem, target = problem_of(table, Roles("outcome", impute=True))
        fitted = fit_table(problem, target, MELC(n_init=1, random_state=0))
        rows = table.to_pylist()
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE TABLE patients (dose, age, sex, outcome)")
            connection.executemany("INSERT INTO patients VALUES (:dose, :age, :sex, :outcome)", rows)
            found = [row[-1] for row in connection.execute(fitted.to_sql("patients"))]
        connection.close()
        expected = fitted.model.predict(fitted.encoding.encode(table).X)
        assert found == expected.tolist()


class TestAssess:
    def test_scores_of_a_problem_that_a_cut_cannot_solve(self):
        from sklearn.linear_model import LogisticRegression

        problem, _ = problem_of(mixed_table(200), Roles("outcome"))
        models = {"MELC": MELC(n_init=2, random_state=0), "cut": LogisticRegression()}
        scores = list(cross_validate(problem, models, n_folds=2))
        ours, theirs = summarise(scores)
        assert [score.fold for score in scores] == [0, 0, 1, 1]
        assert ours.means[0] > 0.8 > theirs.means[0]
        assert ours.means[2] > 0.9

    def test_too_few_rows_in_a_class(self):
        problem = Problem(pa.table({"x": [1.0, 2, 3, 4]}), ["x"], np.array(["a", "a", "a", "b"]))
        with pytest.raises(ValueError, match="Class b has 1 rows, too few for 3 folds"):
            next(cross_validate(problem, {}, n_folds=3))

    def test_weights_count(self):
        table = mixed_table(120)
        labels = np.array(table.column("outcome").to_pylist())
        weights = np.where(np.arange(120) % 2, 1.0, 2.0)
        problem = Problem(table, ["dose", "age"], labels, weights)
        plain = Problem(table, ["dose", "age"], labels)
        model = {"MELC": MELC(n_init=1, random_state=0)}
        weighted, unweighted = (next(cross_validate(p, model, n_folds=2)) for p in (problem, plain))
        assert weighted.values != unweighted.values


def test_without_pyarrow_the_error_has_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install 'melc\\[cli\\]'"):
        read_table(Source("t.csv"))


def test_table_model_is_what_the_command_line_writes(fitted):
    assert isinstance(table_model_from_json(fitted.to_json().encode()), TableModel)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sql_of_columns_named_as_those_that_the_query_adds(n_classes):
    duckdb = pytest.importorskip("duckdb")
    names = ["Prediction", "prediction_", "projection1", "log_odds"]
    y = np.arange(120) % n_classes
    X = np.random.default_rng(0).normal(size=(120, 4)) + 2 * y[:, None]
    table = pa.table({**dict(zip(names, X.T, strict=True)), "y": [f"class {k}" for k in y]})
    problem, target = problem_of(table, Roles(target="y"))
    fitted = fit_table(problem, target, MELC(n_init=1, random_state=0))
    with duckdb.connect() as connection:
        connection.register("data", table)
        found = connection.execute(fitted.to_sql("data", odds=True)).fetchdf()
    assert found["prediction__"].tolist() == fitted.model.predict(X).tolist()
    of_last = "log_odds_" if n_classes == 2 else "log_odds_2"
    odds = fitted.model.decision_function(X).reshape(120, -1)[:, -1]
    np.testing.assert_allclose(found[of_last], odds, rtol=0, atol=1e-9)
