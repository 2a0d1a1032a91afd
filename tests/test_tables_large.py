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
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from cli_cases import call, patients
from melc import MELC, AdditiveMELC
from melc.tables import Roles, Source, TableError, fit_table, pictures, problem_of, read_blocks, read_table
from melc.tables import large as large_module
from melc.tables.csv_files import check_names, check_present
from melc.tables.large import open_problem
from melc.tables.problem import StoredProblem, mean_and_spread


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


def stored_and_read(path, roles, standardize=False, kind=MELC, **options):
    """Return the model of a file taken for a large one, and the model of the same file read into memory."""
    source = Source(str(path), **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*holds dates")
        with open_problem(source, roles, max_bytes=0) as (problem, target):
            assert isinstance(problem, StoredProblem)
            stored = fit_table(problem, target, small_model(kind), standardize=standardize)
        problem, target = problem_of(read_table(source), roles)
        read = fit_table(problem, target, small_model(kind), standardize=standardize)
    return stored, read


class TestSameModels:
    @pytest.mark.parametrize("roles", [Roles("outcome", weights="w"), Roles("visit_kind", ("outcome", "w"))])
    @pytest.mark.parametrize("standardize", [False, True])
    def test_additive_models(self, tmp_path, roles, standardize):
        kinds = np.array(["short", "long", "none"])[np.arange(600) % 3]
        frame = mixed(600).drop(columns="visit").assign(visit_kind=kinds)
        frame.to_csv(tmp_path / "t.csv", index=False)
        stored, read = stored_and_read(tmp_path / "t.csv", roles, standardize, AdditiveMELC)
        X = read.encoding.encode(read_table(Source(str(tmp_path / "t.csv")))).X
        assert stored.model.classes_.tolist() == read.model.classes_.tolist()
        np.testing.assert_array_equal(stored.model.predict(X), read.model.predict(X))
        np.testing.assert_allclose(stored.model.predict_proba(X), read.model.predict_proba(X), rtol=1e-6)

    @pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
    def test_every_kind_of_column(self, tmp_path, ending):
        path = tmp_path / f"t.{ending}"
        mixed().to_parquet(path, index=False) if ending == "parquet" else mixed().to_csv(path, index=False)
        stored, read = stored_and_read(path, Roles("outcome", weights="w"))
        assert stored.to_json() == read.to_json()

    def test_imputed_standardized_and_one_class_against_the_rest(self, tmp_path):
        frame = mixed()
        frame.loc[::7, "dose"] = np.nan
        frame.loc[::11, "sex"] = None
        frame.loc[::13, "visit"] = None
        frame["outcome"] = np.where(frame["age"] > 55, "old", frame["outcome"])
        frame.to_csv(tmp_path / "t.csv", index=False)
        roles = Roles("outcome", drop=("w",), positive="old", impute=True)
        for standardize in (False, True):
            stored, read = stored_and_read(tmp_path / "t.csv", roles, standardize)
            assert stored.encoding == read.encoding
            np.testing.assert_allclose(stored.model.directions_, read.model.directions_, atol=1e-6)
            np.testing.assert_array_equal(stored.model.classes_, ["not old", "old"])

    def test_three_classes_numbers_as_labels_and_decimal_commas(self, tmp_path):
        frame = mixed().drop(columns="visit")
        frame["outcome"] = np.where(frame["age"] > 55, 7, (frame["outcome"] == "well").astype(int))
        frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
        stored, read = stored_and_read(tmp_path / "t.csv", Roles("outcome"), decimal=",")
        assert stored.to_json() == read.to_json()

    @pytest.mark.parametrize("written", ["0x1f", " 0X1F", "\t-0x1f"])
    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_numbers_in_base_16_are_texts(self, tmp_path, written, encoding):
        frame = mixed()
        frame["code"] = np.where(frame.index % 3 == 0, written, "31")
        frame["sum"] = frame.index % 7
        frame.to_csv(tmp_path / "t.csv", index=False, encoding=encoding)
        stored, read = stored_and_read(tmp_path / "t.csv", Roles("outcome"), encoding=encoding)
        assert stored.to_json() == read.to_json()
        code, total = (next(each for each in read.encoding.columns if each.name == name) for name in ("code", "sum"))
        assert (set(code.categories), total.categories) == ({written, "31"}, None)

    def test_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr("melc.tables.csv_files._BLOCK_BYTES", 10_000)
        mixed().to_csv(tmp_path / "t.csv", index=False)
        stored, read = stored_and_read(tmp_path / "t.csv", Roles("outcome"))
        assert stored.to_json() == read.to_json()

    def test_mean_and_spread_by_blocks(self, monkeypatch):
        X = np.random.default_rng(0).normal(3, 2, size=(1000, 3))
        monkeypatch.setattr("melc.tables.read._BLOCK_NUMBERS", 64 * 64)
        mean, spread = mean_and_spread(X)
        np.testing.assert_allclose(mean, X.mean(axis=0))
        np.testing.assert_allclose(spread, X.std(axis=0))
        for unit in (2.0**1000, 2.0**-1000):
            assert np.array_equal(mean_and_spread(unit * X), (unit * mean, unit * spread))

    def test_blocks_of_many_features_have_few_rows(self, tmp_path, monkeypatch):
        monkeypatch.setattr("melc.tables.read._BLOCK_NUMBERS", 64 * 100)
        frame = pd.DataFrame(np.ones((300, 200)), columns=[f"c{k}" for k in range(200)])
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet")
        for name in ("t.csv", "t.parquet"):
            source, kinds = Source(str(tmp_path / name)), dict.fromkeys(frame, "number")
            for n_features, most in ((200, 32), (640, 10), (10**6, 1)):
                sizes = [block.num_rows for block in read_blocks(source, kinds, n_features)]
                assert (max(sizes), sum(sizes)) == (most, 300)
        assert (
            max(block.num_rows for block, _ in large_module.written_blocks(Source(str(tmp_path / "t.parquet")))) == 32
        )

    def test_small_files_of_many_categories_are_encoded_into_a_file(self, tmp_path, monkeypatch):
        monkeypatch.setattr(large_module, "MAX_FEATURE_BYTES_IN_MEMORY", 100_000)
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"size": rng.normal(size=900), "town": [f"t{k}" for k in rng.integers(0, 200, 900)]})
        frame["outcome"] = np.where(np.abs(frame["size"]) < 0.7, "well", "ill")
        frame.to_csv(tmp_path / "t.csv", index=False)
        with open_problem(Source(str(tmp_path / "t.csv")), Roles("outcome")) as (problem, _):
            assert isinstance(problem, StoredProblem)
        with open_problem(Source(str(tmp_path / "t.csv")), Roles("outcome", drop=("town",))) as (problem, _):
            assert not isinstance(problem, StoredProblem)

    def test_a_feature_may_be_named_like_a_class(self, tmp_path):
        y = np.repeat(["a", "b"], 50)
        pd.DataFrame({"class 99": 1.0 * (y == "a"), "y": y}).to_csv(tmp_path / "t.csv", index=False)
        with open_problem(Source(str(tmp_path / "t.csv")), Roles("y"), max_bytes=0) as (problem, target):
            with pytest.warns(UserWarning, match="rests on feature 'class 99'"):
                fit_table(problem, target, MELC(n_init=1))
            with pytest.raises(ValueError, match=r"the 2 labels \['a', 'b'\]"):
                fit_table(problem, target, MELC(priors=[0.2, 0.3, 0.5]))


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "roles", "message"),
        [
            ({}, Roles("nope"), "no column 'nope'"),
            ({}, Roles("outcome", drop=("gone",)), "no column 'gone'"),
            ({"age": "unknown"}, Roles("outcome"), "'age' has 2999 numbers and 1 text value: 'unknown'"),
            ({"age": None}, Roles("outcome"), r"'age' \(1 of 3000\).*--impute median"),
            ({"outcome": None}, Roles("outcome"), "target 'outcome' is missing"),
            ({}, Roles("outcome", positive="dead"), "--positive dead is not a class"),
            ({}, Roles("age"), "must be text or integers"),
            ({"w": -1.0}, Roles("outcome", weights="w"), "must be finite and not negative"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*holds dates")
    def test_the_same_as_in_memory(self, tmp_path, change, roles, message):
        frame = mixed().astype(object)
        for name, value in change.items():
            frame.loc[2500, name] = value
        frame.to_csv(tmp_path / "t.csv", index=False)
        for max_bytes in (0, 2**30):
            with (
                pytest.raises(TableError, match=message),
                open_problem(Source(str(tmp_path / "t.csv")), roles, max_bytes) as (problem, _),
            ):
                problem.encoded  # noqa: B018  # learned when it is first needed

    @pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
    def test_no_room_for_temporary_files(self, tmp_path, monkeypatch, name):
        def refuse(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patients().drop(columns="id").to_csv(tmp_path / name, index=False)
        monkeypatch.setattr("melc.tables.large._fits_in_memory", lambda problem: False)
        monkeypatch.setattr("shutil.copyfileobj" if name.endswith("gz") else "melc.tables.large._Rows.write", refuse)
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
                open_problem(Source(str(tmp_path / name)), Roles("y"), max_bytes=0),
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
            open_problem(Source(str(tmp_path / "t.csv")), Roles("y"), max_bytes=0) as (problem, target),
            pytest.raises(ValueError, match="Class 'maybe' has 1 row"),
        ):
            fit_table(problem, target, MELC(n_init=1, random_state=0))
        frame.loc[41] = [0.5, 0.2, "maybe"]
        frame.to_csv(tmp_path / "t.csv", index=False)
        with (
            open_problem(Source(str(tmp_path / "t.csv")), Roles("y"), max_bytes=0) as (problem, target),
            pytest.warns(UserWarning, match="Class '(no|yes|maybe)' against the rest: .*'dull'"),
        ):
            fit_table(problem, target, MELC(n_init=1, selection="divergence", random_state=0))


class TestCommands:
    def test_fit_and_evaluate_use_a_sample_of_large_files(self, tmp_path, monkeypatch):
        monkeypatch.setattr(large_module.open_problem.__wrapped__, "__defaults__", (0,))
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
        roles = Roles("outcome", drop=("id",))
        problem, target = problem_of(read_table(Source(str(tmp_path / "p.csv"))), roles)
        fitted = fit_table(problem, target, small_model(MELC))
        with pytest.warns(UserWarning, match="random sample of 500 of the 2,000 rows"):
            X, y = pictures._rows(fitted, Source(str(tmp_path / f"p.{ending}")))
        assert X.shape == (500, 3)
        rows = {tuple(x): label for x, label in zip(problem.encoded[1].tolist(), problem.labels, strict=True)}
        assert [rows[tuple(x)] for x in X.tolist()] == y.tolist()

    def test_a_picture_shows_all_rows_of_a_small_file(self, tmp_path):
        frame = patients(200)
        frame.drop(columns="outcome").to_csv(tmp_path / "p.csv", index=False)
        problem, target = problem_of(pa.table(frame), Roles("outcome", drop=("id",)))
        fitted = fit_table(problem, target, small_model(MELC))
        X, y = pictures._rows(fitted, Source(str(tmp_path / "p.csv")))
        np.testing.assert_array_equal(X, problem.encoded[1])
        assert y is None

    def test_standard_input_and_pipes(self, tmp_path, monkeypatch):
        content = gzip.compress(mixed().drop(columns=["visit", "w"]).to_csv(index=False).encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with open_problem(Source("-"), Roles("outcome"), max_bytes=0) as (problem, _):
            assert problem.X.shape == (3000, 3)

    def test_sample_keeps_shares_and_small_classes(self):
        codes = np.repeat([0, 1, 2], [9000, 990, 10]).astype(np.int8)
        whole = StoredProblem(None, np.arange(10_000.0)[:, None], np.array(["a", "b", "c"]), codes)
        sample = whole.sample(1000, seed=0)
        assert sample.class_counts == {"a": 900, "b": 99, "c": 5}
        np.testing.assert_array_equal(codes[sample.X[:, 0].astype(int)], sample.codes)


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
    write(table.slice(0, 30_000), tmp_path / "small")
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
