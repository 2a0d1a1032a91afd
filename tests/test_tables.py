"""Reading of tables in all formats, errors of one line, typed frames, and models of tables."""

import gzip
import io
import json
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from melc import MELC, AdditiveMELC
from melc.export import from_json, to_json
from melc.tables import Roles, Source, TableError, Training, open_training, read_blocks, read_table
from melc.tables.apply import predictions, score_file, sql_of
from melc.tables.assess import competitors, cross_validate, summarise
from melc.tables.frames import contents_of, unknown_levels
from melc.tables.model_file import StoredModel, model_text, read_model
from tables_data import mixed_frame

TEXT = "size,colour,when,flag\n1,red,2024-01-01,true\n2.5,,2024-01-02,false\n-3,blue,2024-01-03,true\n"


def source(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Source(str(path), **options)


def mixed_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    dose, sex = rng.normal(size=n), rng.choice(["f", "m", "it's"], n)
    level = dose + 0.6 * (sex == "m")
    y = np.where(np.abs(level) < 0.7, "well", "ill")
    return pd.DataFrame({"dose": dose, "age": rng.normal(50, 9, n), "sex": sex, "outcome": y})


def stored(path, frame):
    """Write a frame to a Parquet file and return its source."""
    frame.to_parquet(path, index=False)
    return Source(str(path))


def training_of(frame, target="outcome", weights=None):
    classes, codes = np.unique(frame[target], return_inverse=True)
    return Training(frame.drop(columns=target), classes, codes, weights, target)


@pytest.fixture(scope="module")
def fitted():
    frame = mixed_table()
    return MELC(n_init=1, random_state=0).fit(frame.drop(columns="outcome"), frame["outcome"].to_numpy(str))


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
    "ragged": (b"a,b\n1,2\n3\n", "the row '3' has 1 columns, and the first line has 2. Correct the row"),
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
        with pytest.raises(TableError, match=r"column 'b' must contain numbers, and contains 'x'"):
            list(read_blocks(source(tmp_path / "t.csv", "a,b\n1,2\n3,x\n"), {"b": "number"}))

    def test_missing_columns_are_named_all(self, tmp_path):
        with pytest.raises(TableError, match="no columns 'c', 'd', which are needed"):
            list(read_blocks(source(tmp_path / "t.csv", "a,b\n1,2\n"), dict.fromkeys("acd", "number")))

    def test_a_wrong_delimiter_is_guessed(self, tmp_path):
        wrong = source(tmp_path / "t.csv", "a;b\n1;2\n", delimiter=",")
        with pytest.raises(TableError, match=r"is the delimiter ';'.*--delimiter"):
            list(read_blocks(wrong, {"a": "number"}))
        with pytest.raises(TableError, match="delimiter ';'"):
            opened(wrong, Roles("b"))

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


def opened(origin, roles):
    """Return the rows to learn from in a file."""
    with open_training(origin, roles) as rows:
        return rows


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


class TestFrames:
    def test_types_follow_from_what_the_columns_hold(self, tmp_path):
        text = "n,t,d,b,m\n1,x,2024-01-02,true,\n2.5,y,,False,a\n,x,1969-12-31 12:00,,b\n-3,x,2000-02-29T06:00,TRUE,a\n"
        origin = source(tmp_path / "t.csv", text.replace("m\n", "m,y\n", 1).replace("\n1", "\n1").rstrip())
        lines = [f"{line},{'ab'[k % 2]}" for k, line in enumerate(text.splitlines()[1:])]
        origin = source(tmp_path / "t.csv", "\n".join(["n,t,d,b,m,y", *lines]))
        X = opened(origin, Roles("y")).X
        np.testing.assert_array_equal(X["n"], [1, 2.5, np.nan, -3])
        assert X["t"].tolist() == ["x", "y", "x", "x"]
        days = ["2024-01-02", "NaT", "1969-12-31T12:00", "2000-02-29T06:00"]
        np.testing.assert_array_equal(X["d"], np.array(days, dtype="datetime64[us]"))
        assert X["b"].tolist() == [True, False, None, True]
        assert X["m"].isna().tolist() == [True, False, False, False]

    @pytest.mark.parametrize(
        ("frame", "message"),
        [
            ({"a": [None, None]}, "'a' has no values. Leave it out with --drop a"),
            ({"a": [1.0, np.inf]}, "'a' contains inf. Correct it, or take it as missing with --na-values inf"),
            ({"a": [str(k) for k in range(1001)]}, "1001 different texts in 1001 rows.*identifier"),
            ({}, "No columns are left"),
        ],
    )
    def test_columns_that_teach_nothing(self, tmp_path, frame, message):
        n = len(frame.get("a", [0, 1]))
        whole = pd.DataFrame(frame | {"y": ["p", "q"] * (n // 2) + ["p"] * (n % 2)})
        with pytest.raises(TableError, match=message):
            opened(stored(tmp_path / "t", whole), Roles("y"))

    def test_texts_never_seen_are_counted_and_missing_ones_are_not(self, fitted):
        frame = mixed_table().drop(columns="outcome")
        frame.loc[:2, "sex"], frame.loc[3:9, "sex"] = "never", None
        assert unknown_levels(fitted, frame) == {"sex": 3}

    @pytest.mark.parametrize("named", [True, False])
    def test_models_of_python_read_files(self, tmp_path, named):
        """Whatever the types of the columns were there: ranks, truth values, codes, and columns without names."""
        frame, y = mixed_frame(300)
        frame = frame.replace({"job": {"": "none", "NULL": "nil"}})  # what a CSV file cannot tell from a missing value
        X = frame if named else frame.set_axis(range(frame.shape[1]), axis=1)
        code = list(frame).index("code")
        model = AdditiveMELC(max_lines=2, categorical_features=["code" if named else code], random_state=0).fit(X, y)
        if not named:
            frame.columns = [f"x{j}" for j in range(frame.shape[1])]
        frame.to_csv(tmp_path / "t.csv", index=False)
        assert set(contents_of(model).values()) == {"number", "text", "truth", "date"}
        (found,) = predictions(from_json(to_json(model)), Source(str(tmp_path / "t.csv")), proba=True)
        np.testing.assert_array_equal(found.probabilities, model.predict_proba(X))
        assert found.n_unseen == {}

    def test_what_is_neither_true_nor_false_is_named(self, tmp_path):
        frame = pd.DataFrame({"ok": [True, False] * 20, "y": ["a", "b"] * 18 + ["b", "a"] * 2})
        model = MELC(n_init=1, random_state=0).fit(frame[["ok"]], frame["y"])
        with pytest.raises(TableError, match="'ok' contains 'maybe'; it held only true and false"):
            list(predictions(model, source(tmp_path / "t.csv", "ok\ntrue\nmaybe\n")))
        (found,) = predictions(model, source(tmp_path / "t.csv", "ok\n1\n0\n"))
        assert found.labels.tolist() == ["a", "b"]


class TestRoles:
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
    def test_faults(self, tmp_path, roles, message):
        with pytest.raises(TableError, match=message):
            opened(stored(tmp_path / "t", mixed_table()), roles)

    def test_missing_target(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, 2.0], "y": ["a", None]})
        with (
            pytest.warns(UserWarning, match="1 row has no value in the target 'y', and is left out"),
            pytest.raises(TableError, match="'y' has one class only"),
        ):
            opened(stored(tmp_path / "t", frame), Roles("y"))
        with (
            pytest.warns(UserWarning, match="2 rows have"),
            pytest.raises(TableError, match="'y' has no values; choose"),
        ):
            opened(stored(tmp_path / "t", frame.assign(y=[None, None])), Roles("y"))

    def test_one_class_against_all_others(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["a", "b", "c"]})
        rows = opened(stored(tmp_path / "t", frame), Roles("y", positive="b"))
        assert rows.labels.tolist() == ["not b", "b", "not b"]
        assert rows.class_counts == {"b": 1, "not b": 2}

    def test_whole_numbers_stay_numbers(self, tmp_path):
        frame = pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 1.0]})
        assert opened(stored(tmp_path / "t", frame), Roles("y")).labels.dtype == np.int64


class TestModelFiles:
    def test_round_trip(self, fitted, tmp_path):
        text = model_text(StoredModel(fitted, "outcome"))
        again = read_model(text)
        assert (again.target, model_text(again)) == ("outcome", text)
        assert read_model(text.encode()).target == "outcome"
        assert to_json(from_json(text)) == to_json(fitted)
        origin = stored(tmp_path / "t.parquet", mixed_table(seed=1))
        for ours, theirs in zip(predictions(fitted, origin), predictions(again.model, origin), strict=True):
            np.testing.assert_array_equal(ours.labels, theirs.labels)

    def test_a_model_of_python_does_not_know_its_target(self, fitted, tmp_path):
        again, origin = read_model(to_json(fitted)), stored(tmp_path / "t", mixed_table(seed=1))
        assert again.target is None
        assert score_file(again, origin, "outcome").balanced_accuracy > 0.8
        with pytest.raises(TableError, match="name it with --target"):
            score_file(again, origin)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": "other"}, "Not a melc model"),
            ({"version": 7}, "Upgrade melc"),
            ({"target": 5}, r"'target'\]: expected a string"),
            ({"extra": 1}, "'extra' is not known"),
        ],
    )
    def test_faults(self, fitted, change, message):
        with pytest.raises(ValueError, match=message):
            read_model(json.dumps(json.loads(to_json(fitted)) | change))


class TestAssess:
    def test_scores_of_a_problem_that_a_cut_cannot_solve(self):
        models = {"MELC": MELC(n_init=2, random_state=0), "cut": LogisticRegression()}
        frame = mixed_table(200)[["dose", "age"]]
        frame["outcome"] = np.where(np.abs(frame["dose"]) < 0.7, "well", "ill")
        scores = list(cross_validate(training_of(frame), models, n_folds=2))
        ours, theirs = summarise(scores)
        assert [score.fold for score in scores] == [0, 0, 1, 1]
        assert ours.means[0] > 0.9 > 0.7 > theirs.means[0]
        assert ours.means[2] > 0.95

    def test_others_see_texts_dates_codes_and_gaps(self):
        """Classes that a text decides nearly alone are found by all."""
        frame, _ = mixed_frame(300)
        even = frame["code"].isin([0, 2]) ^ (np.arange(300) % 20 == 0)
        frame["y"] = np.where(even == frame["ok"], "yes", "no")
        frame["parity"] = (10 * (frame["code"] % 2) + 3 * frame["ok"]).astype(str)
        scores = list(cross_validate(training_of(frame, "y"), competitors(["code"]), n_folds=2))
        assert [score.model for score in scores[:4]] == ["logistic regression", "LDA", "linear SVM", "RBF SVM"]
        assert all(score.values[0] > 0.85 for score in scores)

    def test_too_few_rows_in_a_class(self):
        rows = training_of(pd.DataFrame({"x": [1.0, 2, 3, 4], "y": ["a", "a", "a", "b"]}), "y")
        with pytest.raises(ValueError, match="class b has 1 row; cross-validation needs at least 3 of every"):
            next(cross_validate(rows, {}, n_folds=3))

    def test_weights_count(self):
        frame, model = mixed_table(120), {"MELC": MELC(n_init=1, random_state=0)}
        weighted = training_of(frame, weights=np.where(np.arange(120) % 2, 1.0, 2.0))
        first, second = (next(cross_validate(rows, model, n_folds=2)) for rows in (weighted, training_of(frame)))
        assert first.values != second.values


def test_without_pyarrow_the_error_has_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install 'melc\\[cli\\]'"):
        read_table(Source("t.csv"))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sql_of_columns_named_as_those_that_the_query_adds(n_classes):
    duckdb = pytest.importorskip("duckdb")
    names = ["Prediction", "prediction_", "projection1", "log_odds"]
    y = np.arange(120) % n_classes
    X = np.random.default_rng(0).normal(size=(120, 4)) + 2 * y[:, None]
    frame = pd.DataFrame(X, columns=names)
    model = MELC(n_init=1, random_state=0).fit(frame, [f"class {k}" for k in y])
    with duckdb.connect() as connection:
        connection.register("data", frame)
        found = connection.execute(sql_of(model, "data", odds=True)).fetchdf()
    assert found["prediction__"].tolist() == model.predict(frame).tolist()
    of_last = "log_odds_" if n_classes == 2 else "log_odds_2"
    odds = model.decision_function(frame).reshape(120, -1)[:, -1]
    np.testing.assert_allclose(found[of_last], odds, rtol=0, atol=1e-9)
