"""Files that do not fit in memory easily give the same models as those that do."""

import errno
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from cli_cases import call, patients
from melc import MELC, AdditiveMELC
from melc.export import to_json
from melc.tables import Roles, Source, TableError, Training, open_training, pictures, read_blocks
from melc.tables import training as training_module
from melc.tables.csv_files import check_names, check_present
from melc.tables.model_file import StoredModel
from melc.tables.read import written_blocks


@pytest.fixture(autouse=True)
def temporary_folders(tmp_path, monkeypatch):
    """Let temporary folders be made in one of our own, which must be empty afterwards."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    assert list(place.iterdir()) == []


def mixed(n=3000, seed=0):
    frame = patients(n, seed).drop(columns="id")
    frame["visit"] = pd.date_range("2020-01-01", periods=n, freq="h").strftime("%Y-%m-%d %H:%M")
    frame["w"] = np.random.default_rng(seed).integers(1, 4, n).astype(float)
    return frame


def small_model(kind):
    return MELC(n_init=1, random_state=0) if kind is MELC else AdditiveMELC(max_lines=2, random_state=0)


def large_and_small(path, roles, kind=MELC, **options):
    """Return the model of a file taken for a large one, and the model of the same file read into memory."""
    source, found = Source(str(path), **options), []
    for max_bytes in (0, 2**40):
        with open_training(source, roles, max_bytes) as rows:
            assert rows.is_large == (max_bytes == 0)
            found.append(rows.fitted(small_model(kind).set_params(categorical_features=roles.categorical or None)))
    return found


def is_mapped(frame):
    """Whether the numbers of a frame are in a mapped file."""
    base = frame.to_numpy()
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap)


class TestSameModels:
    @pytest.mark.parametrize("roles", [Roles("outcome", weights="w"), Roles("visit_kind", ("outcome", "w"))])
    def test_additive_models(self, tmp_path, roles):
        kinds = np.array(["short", "long", "none"])[np.arange(600) % 3]
        mixed(600).drop(columns="visit").assign(visit_kind=kinds).to_csv(tmp_path / "t.csv", index=False)
        large, small = large_and_small(tmp_path / "t.csv", roles, AdditiveMELC)
        assert to_json(large) == to_json(small)

    @pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
    def test_every_kind_of_column(self, tmp_path, ending):
        """Blocks have different texts among them, whose numbers must be those of the whole."""
        path, frame = tmp_path / f"t.{ending}", mixed()
        frame["town"] = [f"t{k // 150}" for k in range(len(frame))]
        frame["ward"], frame["private"] = np.arange(len(frame)) % 5, frame["age"] > 60
        for name, step in {"dose": 7, "sex": 11, "visit": 13}.items():
            frame.loc[::step, name] = None
        frame.to_parquet(path, index=False) if ending == "parquet" else frame.to_csv(path, index=False)
        large, small = large_and_small(path, Roles("outcome", weights="w", categorical=("ward",)))
        assert to_json(large) == to_json(small)
        names = large.feature_names_in_.tolist()
        assert {names[j] for j in large.columns_.categories} == {"sex", "town", "ward", "private"}
        assert set(large.columns_.categories[names.index("private")].levels) == {True, False}
        assert {names[j] for j in large.columns_.dates} == {"visit"}
        assert {names[j] for j in large.columns_.places} == {"dose", "visit"}

    def test_one_class_against_the_rest(self, tmp_path):
        frame = mixed()
        frame["outcome"] = np.where(frame["age"] > 55, "old", frame["outcome"])
        frame.to_csv(tmp_path / "t.csv", index=False)
        large, small = large_and_small(tmp_path / "t.csv", Roles("outcome", drop=("w",), positive="old"))
        assert to_json(large) == to_json(small)
        np.testing.assert_array_equal(large.classes_, ["not old", "old"])

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_numbers_alone_are_mapped(self, tmp_path, ending):
        frame = mixed().drop(columns=["sex", "visit"])
        frame.to_parquet(tmp_path / "t", index=False) if ending == "parquet" else frame.to_csv(
            tmp_path / "t", index=False
        )
        for roles, mapped in (Roles("outcome"), True), (Roles("outcome", categorical=("w",)), False):
            with open_training(Source(str(tmp_path / "t")), roles, max_bytes=0) as rows:
                assert is_mapped(rows.X) == mapped
                np.testing.assert_array_equal(rows.X, frame.drop(columns="outcome"))
        frame.loc[7, "age"] = None
        frame.to_parquet(tmp_path / "t", index=False) if ending == "parquet" else frame.to_csv(
            tmp_path / "t", index=False
        )
        with open_training(Source(str(tmp_path / "t")), Roles("outcome"), max_bytes=0) as rows:
            assert not is_mapped(rows.X)
        large, small = large_and_small(tmp_path / "t", Roles("outcome"))
        assert to_json(large) == to_json(small)

    def test_three_classes_numbers_as_labels_and_decimal_commas(self, tmp_path):
        frame = mixed().drop(columns="visit")
        frame["outcome"] = np.where(frame["age"] > 55, 7, (frame["outcome"] == "well").astype(int))
        frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
        large, small = large_and_small(tmp_path / "t.csv", Roles("outcome"), decimal=",")
        assert to_json(large) == to_json(small)

    @pytest.mark.parametrize("written", ["0x1f", " 0X1F", "\t-0x1f"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_numbers_in_base_16_are_texts(self, tmp_path, written, encoding):
        frame = mixed()
        frame["code"] = np.where(frame.index % 3 == 0, written, "31")
        frame["sum"] = frame.index % 7
        frame.to_csv(tmp_path / "t.csv", index=False, encoding=encoding)
        large, small = large_and_small(tmp_path / "t.csv", Roles("outcome"), encoding=encoding)
        assert to_json(large) == to_json(small)
        code, total = (list(small.feature_names_in_).index(name) for name in ("code", "sum"))
        assert set(small.columns_.categories[code].levels) == {written, "31"}
        assert total not in small.columns_.categories

    def test_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr("melc.tables.csv_files._BLOCK_BYTES", 10_000)
        mixed().to_csv(tmp_path / "t.csv", index=False)
        large, small = large_and_small(tmp_path / "t.csv", Roles("outcome"))
        assert to_json(large) == to_json(small)

    def test_blocks_of_many_features_have_few_rows(self, tmp_path, monkeypatch):
        monkeypatch.setattr("melc.tables.read._BLOCK_NUMBERS", 64 * 100)
        frame = pd.DataFrame(np.ones((300, 200)), columns=[f"c{k}" for k in range(200)])
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet")
        for name in ("t.csv", "t.parquet"):
            source, kinds = Source(str(tmp_path / name)), dict.fromkeys(frame, "number")
            sizes = [block.num_rows for block in read_blocks(source, kinds)]
            assert (max(sizes), sum(sizes)) == (32, 300)
        assert max(block.num_rows for block, _ in written_blocks(Source(str(tmp_path / "t.parquet")))) == 32

    def test_a_feature_may_be_named_like_a_class(self, tmp_path):
        y = np.repeat(["a", "b"], 50)
        pd.DataFrame({"class 99": 1.0 * (y == "a"), "y": y}).to_csv(tmp_path / "t.csv", index=False)
        with open_training(Source(str(tmp_path / "t.csv")), Roles("y"), max_bytes=0) as rows:
            with pytest.warns(UserWarning, match="rests on feature 'class 99'"):
                rows.fitted(MELC(n_init=1))
            with pytest.raises(ValueError, match=r"the 2 labels \['a', 'b'\]"):
                rows.fitted(MELC(priors=[0.2, 0.3, 0.5]))


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "roles", "message"),
        [
            ({}, Roles("nope"), "no column 'nope'"),
            ({}, Roles("outcome", drop=("gone",)), "no column 'gone'"),
            ({"age": "unknown"}, Roles("outcome"), "'age' has 2999 numbers and 1 text value: 'unknown'"),
            (
                {"age": np.inf},
                Roles("outcome"),
                "'age' (contains inf. Correct it|has 2999 numbers and 1 text)",
            ),
            ({}, Roles("outcome", categorical=("zip",)), "no column 'zip'"),
            ({}, Roles("outcome", positive="dead"), "--positive dead is not a class"),
            ({}, Roles("age"), "must be text or integers"),
            ({"w": -1.0}, Roles("outcome", weights="w"), "must be finite and not negative"),
        ],
    )
    def test_the_same_as_in_memory(self, tmp_path, change, roles, message):
        frame = mixed().astype(object)
        for name, value in change.items():
            frame.loc[2500, name] = value
        frame.to_csv(tmp_path / "t.csv", index=False)
        for max_bytes in (0, 2**30):
            with (
                pytest.raises(TableError, match=message),
                open_training(Source(str(tmp_path / "t.csv")), roles, max_bytes),
            ):
                pytest.fail("must not be opened")

    @pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
    def test_no_room_for_temporary_files(self, tmp_path, monkeypatch, name):
        def refuse(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patients()[["dose", "outcome"]].to_csv(tmp_path / name, index=False)
        monkeypatch.setattr(open_training.__wrapped__, "__defaults__", (0,))
        monkeypatch.setattr("shutil.copyfileobj" if name.endswith("gz") else "melc.tables.frames._matrix_of", refuse)
        done = call("fit", tmp_path / name, "-t", "outcome", "-o", tmp_path / "model.json")
        folder = tempfile.gettempdir()
        assert done.exit_code == 1
        assert done.stderr.startswith(
            f"melc: {folder}: no space left for temporary files; set the environment variable"
        )

    def test_one_class_and_no_rows(self, tmp_path):
        (tmp_path / "one.csv").write_text("x,y\n1,a\n2,a\n")
        (tmp_path / "none.csv").write_text("x,y\n")
        for name, message in {"one.csv": "one class only: 'a'", "none.csv": "no rows"}.items():
            with (
                pytest.raises(TableError, match=message),
                open_training(Source(str(tmp_path / name)), Roles("y"), max_bytes=0),
            ):
                pytest.fail("must not be opened")

    def test_warnings_and_errors_name_classes_and_features(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"dull": [0.0] * 20 + [1.0] * 20, "x": rng.normal(size=40), "y": ["no"] * 20 + ["yes"] * 20}
        )
        frame.loc[40] = [0.5, 0.1, "maybe"]
        frame.to_csv(tmp_path / "t.csv", index=False)
        with (
            open_training(Source(str(tmp_path / "t.csv")), Roles("y"), max_bytes=0) as rows,
            pytest.raises(ValueError, match="Class 'maybe' has 1 row"),
        ):
            rows.fitted(MELC(n_init=1, random_state=0))
        frame.loc[41] = [0.5, 0.2, "maybe"]
        frame.to_csv(tmp_path / "t.csv", index=False)
        with (
            open_training(Source(str(tmp_path / "t.csv")), Roles("y"), max_bytes=0) as rows,
            pytest.warns(UserWarning, match="Class '(no|yes|maybe)' against the rest: .*'dull'"),
        ):
            rows.fitted(MELC(n_init=1, selection="divergence", random_state=0))

    def test_texts_that_need_more_memory_than_there_is(self, tmp_path, monkeypatch):
        mixed().to_csv(tmp_path / "t.csv", index=False)
        monkeypatch.setattr(training_module, "_memory", lambda: 200_000)
        message = r"3,000 rows of 4 columns need about 0.0 GB of memory.*Fit a sample of the rows"
        with (
            pytest.raises(TableError, match=message),
            open_training(Source(str(tmp_path / "t.csv")), Roles("outcome", drop=("w",)), max_bytes=0),
        ):
            pytest.fail("must not be opened")
        numbers = Roles("outcome", drop=("w", "sex", "visit"))
        with open_training(Source(str(tmp_path / "t.csv")), numbers, max_bytes=0) as rows:
            assert is_mapped(rows.X)


class TestCommands:
    def test_fit_and_evaluate_use_a_sample_of_large_files(self, tmp_path, monkeypatch):
        monkeypatch.setattr(open_training.__wrapped__, "__defaults__", (0,))
        monkeypatch.setattr("melc.cli.fitting._MAX_ROWS_CROSS_VALIDATED", 500)
        patients(2000).to_csv(tmp_path / "p.csv", index=False)
        columns = ["-t", "outcome", "--drop", "id", "--n-init", 1]
        done = call("fit", tmp_path / "p.csv", *columns, "--json", "-o", tmp_path / "m")
        assert done.exit_code == 0, done.output
        assert "sample of 500 of the 2,000 rows" in done.stderr
        summary = json.loads(done.stdout)
        assert (summary["rows"], summary["balanced_accuracy"]["folds"]) == (2000, 5)
        assert summary["balanced_accuracy"]["mean"] > 0.9
        done = call("evaluate", tmp_path / "p.csv", *columns, "--cv", 2)
        assert done.exit_code == 0, done.output

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_a_picture_shows_a_sample(self, tmp_path, monkeypatch, ending):
        """Blocks are drawn from as they are read, and the labels stay with their rows."""
        monkeypatch.setattr("melc.tables.pictures._MOST_ROWS", 500)
        monkeypatch.setattr("melc.tables.csv_files._BLOCK_BYTES", 10_000)
        frame = patients(2000)
        frame.to_csv(tmp_path / "p.csv", index=False)
        frame.to_parquet(tmp_path / "p.parquet", index=False)
        names = ["dose", "age", "sex"]
        fitted = StoredModel(small_model(MELC).fit(frame[names], frame["outcome"]), "outcome")
        with pytest.warns(UserWarning, match="random sample of 500 of the 2,000 rows"):
            X, y = pictures._rows(fitted, Source(str(tmp_path / f"p.{ending}")))
        assert X.shape == (500, 3)
        rows = {tuple(x): label for *x, label in frame[[*names, "outcome"]].itertuples(index=False)}
        assert [rows[x] for x in X.itertuples(index=False, name=None)] == y.tolist()

    def test_a_picture_shows_all_rows_of_a_small_file(self, tmp_path):
        frame = patients(200)
        frame.drop(columns="outcome").to_csv(tmp_path / "p.csv", index=False)
        names = ["dose", "age", "sex"]
        fitted = StoredModel(small_model(MELC).fit(frame[names], frame["outcome"]), "outcome")
        X, y = pictures._rows(fitted, Source(str(tmp_path / "p.csv")))
        np.testing.assert_array_equal(X, frame[names])
        assert y is None

    def test_standard_input_and_pipes(self, tmp_path, monkeypatch):
        content = gzip.compress(mixed().drop(columns=["visit", "w"]).to_csv(index=False).encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with open_training(Source("-"), Roles("outcome"), max_bytes=0) as rows:
            assert rows.X.shape == (3000, 3)

    def test_sample_keeps_shares_and_small_classes(self):
        codes = np.repeat([0, 1, 2], [9000, 990, 10]).astype(np.int8)
        frame, weights = pd.DataFrame({"x": np.arange(10_000)}), np.arange(10_000.0)
        whole = Training(frame, np.array(["a", "b", "c"]), codes, weights, "y", is_large=True)
        sample = whole.sample(1000, seed=0)
        assert sample.class_counts == {"a": 900, "b": 99, "c": 5}
        np.testing.assert_array_equal(codes[sample.X["x"]], sample.codes)
        np.testing.assert_array_equal(sample.weights, sample.X["x"])


def test_parquet_is_not_kept_in_memory(tmp_path):
    """Each block is given back when the next one is read, however large the file."""
    values = np.random.default_rng(0).normal(size=2**19)
    columns = {f"x{k}": values for k in range(8)}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=2**14, use_dictionary=False)
    blocks = read_blocks(Source(str(tmp_path / "t.parquet")), dict.fromkeys(columns, "number"))
    tracemalloc.start()  # Arrow reads through Python, whose memory it keeps alive
    held = [tracemalloc.get_traced_memory()[0] for _ in blocks]
    tracemalloc.stop()
    assert len(held) == 8
    assert max(held) < 8 * values.nbytes / 2


FIT = """
import sys
from cli_cases import call
from peaks import peak_of

def fit(table):
    quick = ["--n-init", 1, "--max-iter", 3, "--no-cv", "-q"]
    done = call("fit", table, "-t", "y", *quick, "-f", "-o", sys.argv[1] + "/m")
    assert done.exit_code == 0, done.output

fit(sys.argv[1] + "/small")  # what is compiled now need not be compiled later
print(peak_of(lambda: fit(sys.argv[1] + "/large"))[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="anonymous memory is read from /proc")
@pytest.mark.parametrize(("ending", "n"), [("csv", 1_500_000), ("parquet", 3_400_000)])
def test_melc_fit_holds_a_part_of_a_large_file(tmp_path, temporary_folders, ending, n):
    """Beyond the mapped file of the rows, which the system may drop from memory, there are samples and blocks."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=n)
    columns = {f"x{k}": np.roll(values, 1000 * k) for k in range(10)}
    table = pa.table(columns | {"y": np.where(np.abs(values) > 1, "out", "in")})
    write = pyarrow.parquet.write_table if ending == "parquet" else pyarrow.csv.write_csv
    write(table, tmp_path / "large")
    write(table.slice(0, 200_000), tmp_path / "small")
    paths = os.pathsep.join(path for path in [*sys.path, str(Path(__file__).parent)] if path)
    environment = os.environ | {"PYTHONPATH": paths, "TMPDIR": str(temporary_folders)}
    command = [sys.executable, "-c", FIT, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment)
    beyond, size = float(found.stdout), (tmp_path / "large").stat().st_size
    assert beyond < size, f"{beyond / 1e6:.0f} MB for a file of {size / 1e6:.0f} MB"


def test_names_of_columns_are_checked_in_one_pass():
    class Name(str):
        n_comparisons = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.n_comparisons += 1
            return str.__eq__(self, other)

    names = [Name(f"f{k % 2999}") for k in range(3000)]
    with pytest.raises(TableError, match="'f0' occurs 2 times"):
        check_names(names)
    check_present(names, dict.fromkeys(map(Name, names[:-1]), "number"))
    assert Name.n_comparisons < 20 * len(names)


def test_a_first_line_of_several_megabytes_is_read_whole(tmp_path):
    names = [f"measurement number {k:06d}" for k in range(60_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    (block,) = read_blocks(Source(str(path)), {names[-1]: "number"})
    assert block.column(names[-1]).to_pylist() == [1.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a," * 10**7, "the first line, .*, is longer than 16 MiB"),
        (b'a,y\n1,"' + b"x" * 10**7, "a row is longer than 4 MiB; perhaps a quotation mark is not closed"),
        (gzip.compress(b"a,y\n1,x\n"), "compressed more than once"),
    ],
    ids=["first line", "row", "twice compressed"],
)
def test_what_is_too_long_or_packed_twice_is_named(tmp_path, content, message):
    path = tmp_path / "odd.csv.gz"
    path.write_bytes(gzip.compress(content, 1))
    with pytest.raises(TableError, match=message):
        list(read_blocks(Source(str(path)), {"a": "number"}))
