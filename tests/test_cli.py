"""The command line end to end: as a program with and without a terminal, and its faults by table."""

import errno
import gzip
import json
import os
import pty
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from melc import MELC
from melc.cli import main
from melc.cli.commands import app
from melc.export import from_json
from melc.tables import table_model_from_json
from sqlite_mathematics import needs_sqlite_mathematics

# The installed program where there is one, else the same by its module.
_SCRIPT = Path(sys.executable).with_name("melc")
PROGRAM = [str(_SCRIPT)] if _SCRIPT.exists() else [sys.executable, "-m", "melc.cli"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with numbers and texts, and a model of it fitted by the command line."""
    place = tmp_path_factory.mktemp("cli")
    patients().to_csv(place / "patients.csv", index=False)
    fitted = call(
        "fit",
        place / "patients.csv",
        "-t",
        "outcome",
        "--drop",
        "id",
        "--n-init",
        2,
        "--no-cv",
        "-o",
        place / "model.json",
    )
    assert fitted.exit_code == 0, fitted.output
    return place


def patients(n=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(n)],
            "dose": rng.normal(size=n),
            "age": rng.normal(50, 9, n).round(1),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    level = frame["dose"] + 0.6 * (frame["sex"] == "m")
    return frame.assign(outcome=np.where(np.abs(level) < 0.7, "well", "ill"))


def call(*arguments, stdin=None):
    """A command within this process: no start-up time, same code."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def run(*arguments, **options):
    command = [*PROGRAM, *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def start_on_terminal(*arguments, **variables):
    """The program with a terminal for all of its streams."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **variables}
    command = [*PROGRAM, *(str(argument) for argument in arguments)]
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    return process, leader


def read_all(leader):
    written = b""
    while chunk := _read_terminal(leader):
        written += chunk
    os.close(leader)
    return written


def run_on_terminal(*arguments, **variables):
    """Exit code and everything that the program wrote on its terminal."""
    process, leader = start_on_terminal(*arguments, **variables)
    written = read_all(leader)
    return process.wait(timeout=120), written.decode()


def _read_terminal(leader):
    try:
        return os.read(leader, 65536)
    except OSError as error:  # Linux says so when the other side has gone
        if error.errno != errno.EIO:
            raise
        return b""


class TestAsProgram:
    def test_from_a_file_to_predictions_by_pipe(self, folder, tmp_path):
        model = tmp_path / "model.json"
        fitted = run("fit", folder / "patients.csv", "--target", "outcome", "--drop", "id", "--n-init", 2, "-o", model)
        assert fitted.returncode == 0, fitted.stderr
        assert "balanced accuracy" in fitted.stdout
        assert "\x1b" not in fitted.stdout + fitted.stderr
        content = (folder / "patients.csv").read_text()
        predicted = run("predict", model, "-", input=content)
        assert predicted.returncode == 0, predicted.stderr
        labels = pd.read_csv(folder / "patients.csv")["outcome"]
        assert np.mean(np.array(predicted.stdout.split()[1:]) == labels) > 0.9

    def test_on_a_terminal_progress_moves_and_output_is_the_same(self, folder, tmp_path):
        code, written = run_on_terminal(
            "fit", folder / "patients.csv", "-t", "outcome", "--drop", "id", "--n-init", 2, "-o", tmp_path / "m.json"
        )
        assert code == 0
        assert "fitting 200 rows" in written
        assert "\x1b[" in written
        assert "balanced accuracy" in written

    def test_no_color_on_a_terminal(self, folder):
        code, written = run_on_terminal("fit", "--bogus", NO_COLOR="1")
        assert code == 2
        assert "\x1b[3" not in written

    def test_interrupt_leaves_130_and_no_file(self, folder, tmp_path):
        pd.concat([patients(4000, seed) for seed in range(10)]).to_csv(tmp_path / "big.csv", index=False)
        slow = ["--method", "exact", "--n-init", 50]
        process, leader = start_on_terminal(
            "fit", tmp_path / "big.csv", "-t", "outcome", "--drop", "id", *slow, "-o", tmp_path / "m.json"
        )
        written = b""
        while b"fitting" not in written:
            written += os.read(leader, 65536)
        process.send_signal(signal.SIGINT)
        written += read_all(leader)
        assert process.wait(timeout=60) == 130
        assert written.decode().rstrip().endswith("melc: interrupted")
        assert [path.name for path in tmp_path.iterdir()] == ["big.csv"]

    def test_full_disk_is_one_line_and_nothing_is_left(self, folder, tmp_path):
        big = pd.concat([patients(seed=seed) for seed in range(50)])
        big.to_csv(tmp_path / "big.csv", index=False)
        # Measured by coverage, the program would write files of its own, and complain.
        unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        files = folder / "model.json", tmp_path / "big.csv", "-o", tmp_path / "out.csv"
        done = run("predict", *files, preexec_fn=_little_room, env=unmeasured)
        assert done.returncode == 1
        assert done.stderr.startswith("melc: ")
        assert len(done.stderr.strip().splitlines()) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["big.csv"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full")
    def test_full_standard_output(self, folder):
        with open("/dev/full", "w") as full:
            command = [*PROGRAM, "predict", str(folder / "model.json"), str(folder / "patients.csv")]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert done.stderr.strip() == "melc: No space left on device"

    def test_a_reader_that_goes_away_is_no_fault_to_complain_about(self, folder, tmp_path):
        pd.concat([patients(seed=seed) for seed in range(300)]).to_csv(tmp_path / "big.csv", index=False)
        first = [*PROGRAM, "predict", str(folder / "model.json"), str(tmp_path / "big.csv")]
        process = subprocess.Popen(first, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()
        process.stderr.close()
        process.wait(timeout=60)
        assert complaint == b""


def _little_room():
    """Files end at 2 kB: writing more fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))


class TestFit:
    def test_equals_the_model_fitted_in_python(self, folder):
        frame = patients()
        written = table_model_from_json((folder / "model.json").read_bytes())
        most_frequent = frame["sex"].mode()[0]
        other = "m" if most_frequent == "f" else "f"
        X = np.column_stack([frame["dose"], frame["age"], frame["sex"] == other])
        model = MELC(method="moments", n_init=2, random_state=0).fit(X, frame["outcome"])
        np.testing.assert_array_equal(written.model.coef_, model.coef_)
        np.testing.assert_array_equal(written.model.thresholds_, model.thresholds_)
        assert written.encoding.feature_names == ["dose", "age", f"sex={other}"]

    def test_summary_as_json(self, folder, tmp_path):
        done = call(
            "fit",
            folder / "patients.csv",
            "-t",
            "outcome",
            "--drop",
            "id",
            "--n-init",
            1,
            "--json",
            "-o",
            tmp_path / "m.json",
        )
        summary = json.loads(done.stdout)
        assert summary["rows"] == 200
        assert set(summary["classes"]) == {"ill", "well"}
        assert summary["balanced_accuracy"]["folds"] == 5
        strongest = summary["projections"][0]["strongest_features"][0]["feature"]
        assert strongest in ("dose", "sex=m", "sex=f")

    def test_quiet_says_nothing(self, folder, tmp_path):
        done = call(
            "fit",
            folder / "patients.csv",
            "-t",
            "outcome",
            "--drop",
            "id",
            "--n-init",
            1,
            "--no-cv",
            "-q",
            "-o",
            tmp_path / "m.json",
        )
        assert (done.exit_code, done.output) == (0, "")

    def test_weights_positive_standardize_and_gaps(self, tmp_path):
        frame = patients().assign(w=1.0)
        frame["outcome"] = np.where(frame["age"] > 60, "old", frame["outcome"])
        frame.loc[::9, "dose"] = np.nan
        frame.to_csv(tmp_path / "p.csv", index=False)
        arguments = [
            "fit",
            tmp_path / "p.csv",
            "-t",
            "outcome",
            "--drop",
            "id",
            "--weights",
            "w",
            "--positive",
            "old",
            "--standardize",
            "--n-init",
            1,
            "--no-cv",
            "-o",
            tmp_path / "m.json",
        ]
        refused = call(*arguments)
        assert refused.exit_code == 1
        assert "'dose' (23 of 200)" in refused.output
        assert call(*arguments, "--impute", "median").exit_code == 0
        model = table_model_from_json((tmp_path / "m.json").read_bytes())
        assert model.model.classes_.tolist() == ["not old", "old"]
        assert "w" not in model.encoding.kinds
        done = call("predict", tmp_path / "m.json", tmp_path / "p.csv")
        assert done.exit_code == 0
        assert set(done.stdout.split()[1:]) == {"not", "old"}

    def test_libsvm(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 2))
        lines = [f"{'+1' if x > 0 else '-1'} 1:{x} 2:{y}" for x, y in X]
        (tmp_path / "d.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
        assert call("fit", tmp_path / "d.txt.gz", "--n-init", 1, "--no-cv", "-o", tmp_path / "m").exit_code == 0
        done = call("predict", tmp_path / "m", tmp_path / "d.txt.gz")
        found = np.array(done.stdout.split()[1:], dtype=int)
        assert np.mean(found == np.where(X[:, 0] > 0, 1, -1)) > 0.9


class TestPredict:
    def test_probabilities_in_the_order_of_the_rows(self, folder, tmp_path):
        done = call("predict", folder / "model.json", folder / "patients.csv", "--proba", "-o", tmp_path / "out.csv")
        assert (done.exit_code, done.output) == (0, "")
        table = pd.read_csv(tmp_path / "out.csv")
        assert table.columns.tolist() == ["prediction", "probability_ill", "probability_well"]
        model = table_model_from_json((folder / "model.json").read_bytes())
        frame = patients()
        other = model.encoding.columns[2].categories[1]
        X = np.column_stack([frame["dose"], frame["age"], frame["sex"] == other])
        assert table["prediction"].tolist() == model.model.predict(X).tolist()
        np.testing.assert_allclose(table.iloc[:, 1:], model.model.predict_proba(X))

    def test_other_columns_and_another_order_do_not_matter(self, folder, tmp_path):
        frame = patients().assign(noise='x, "y"')
        frame[frame.columns[::-1]].to_csv(tmp_path / "p.csv", index=False)
        mixed = call("predict", folder / "model.json", tmp_path / "p.csv")
        plain = call("predict", folder / "model.json", folder / "patients.csv")
        assert mixed.stdout == plain.stdout

    def test_new_texts_are_noted(self, folder, tmp_path):
        patients().replace({"sex": {"m": "x"}}).to_csv(tmp_path / "p.csv", index=False)
        done = call("predict", folder / "model.json", tmp_path / "p.csv")
        assert done.exit_code == 0
        assert "values of 'sex' are new to the model" in done.stderr

    def test_labels_with_commas_are_quoted(self, tmp_path):
        frame = patients().replace({"outcome": {"ill": 'very, "very" ill'}})
        frame.to_csv(tmp_path / "p.csv", index=False)
        call("fit", tmp_path / "p.csv", "-t", "outcome", "--drop", "id", "--n-init", 1, "--no-cv", "-o", tmp_path / "m")
        call("predict", tmp_path / "m", tmp_path / "p.csv", "-o", tmp_path / "out.csv")
        assert set(pd.read_csv(tmp_path / "out.csv")["prediction"]) == {'very, "very" ill', "well"}

    def test_an_existing_file_needs_force(self, folder, tmp_path):
        (tmp_path / "out.csv").write_text("precious")
        arguments = ["predict", folder / "model.json", folder / "patients.csv", "-o", tmp_path / "out.csv"]
        refused = call(*arguments)
        assert (refused.exit_code, (tmp_path / "out.csv").read_text()) == (1, "precious")
        assert call(*arguments, "--force").exit_code == 0
        assert (tmp_path / "out.csv").read_text().startswith("prediction")

    def test_a_fault_in_the_last_row_leaves_nothing(self, folder, tmp_path):
        good = (folder / "patients.csv").read_text()
        (tmp_path / "p.csv").write_text(good + "p9,oops,50,m,ill\n")
        done = call("predict", folder / "model.json", tmp_path / "p.csv", "-o", tmp_path / "out.csv")
        assert done.exit_code == 1
        assert "'dose'" in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


class TestExplain:
    def test_text(self, folder):
        done = call("explain", folder / "model.json")
        assert done.exit_code == 0
        assert "z is the sum of weight × feature" in done.stdout

    def test_json_reads_back(self, folder):
        done = call("explain", folder / "model.json", "--format", "json")
        assert table_model_from_json(done.stdout).target == "outcome"
        with pytest.raises(ValueError, match="no melc model"):
            from_json(done.stdout)

    def test_sql(self, folder):
        done = call("explain", folder / "model.json", "--format", "sql", "--table", "my patients")
        assert 'FROM "my patients"' in done.stdout

    @pytest.mark.filterwarnings("ignore::DeprecationWarning:onnx.*")
    def test_onnx(self, folder, tmp_path):
        onnx = pytest.importorskip("onnx")
        assert call("explain", folder / "model.json", "--format", "onnx", "-o", tmp_path / "m.onnx").exit_code == 0
        assert onnx.load(tmp_path / "m.onnx").graph.name == "melc"


class TestPlot:
    @pytest.mark.parametrize(("name", "start"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml"), ("p.html", b"<!doctype")])
    def test_formats(self, folder, tmp_path, name, start):
        done = call("plot", folder / "model.json", folder / "patients.csv", "-o", tmp_path / name)
        assert (done.exit_code, done.output) == (0, "")
        assert (tmp_path / name).read_bytes().startswith(start)

    def test_page_shows_pictures_and_rule_and_needs_nothing_else(self, folder, tmp_path):
        call("plot", folder / "model.json", "-o", tmp_path / "p.html")
        page = (tmp_path / "p.html").read_text()
        assert page.count("<svg") == 2
        assert "sex=" in page
        assert "<script" not in page

    def test_unknown_ending(self, folder, tmp_path):
        done = call("plot", folder / "model.json", "-o", tmp_path / "p.bmp")
        assert done.exit_code == 1
        assert "end in .png" in done.output


class TestEvaluate:
    def test_compare_as_json(self, folder):
        done = call(
            "evaluate",
            folder / "patients.csv",
            "-t",
            "outcome",
            "--drop",
            "id",
            "--n-init",
            2,
            "--cv",
            2,
            "--compare",
            "--json",
        )
        assert done.exit_code == 0, done.output
        models = json.loads(done.stdout)["models"]
        assert list(models) == ["MELC", "logistic regression", "LDA", "linear SVM", "RBF SVM"]
        assert models["MELC"]["balanced accuracy"]["mean"] > models["logistic regression"]["balanced accuracy"]["mean"]

    def test_table(self, folder):
        done = call("evaluate", folder / "patients.csv", "-t", "outcome", "--drop", "id", "--n-init", 1, "--cv", 2)
        assert "balanced accuracy" in done.stdout
        assert "over 2 folds" in done.stdout


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    place = tmp_path_factory.mktemp("iris")
    frame = load_iris(as_frame=True).frame.assign(species=lambda f: f["target"].map(dict(enumerate("abc"))))
    frame.drop(columns="target").to_csv(place / "iris.csv", index=False)
    done = call("fit", place / "iris.csv", "-t", "species", "--n-init", 1, "--no-cv", "--json", "-o", place / "m")
    assert done.exit_code == 0, done.output
    assert [p["class"] for p in json.loads(done.stdout)["projections"]] == ["a", "b", "c"]
    return place


class TestSeveralClasses:
    def test_predict(self, iris):
        done = call("predict", iris / "m", iris / "iris.csv", "--proba")
        rows = [line.split(",") for line in done.stdout.splitlines()]
        assert rows[0] == ["prediction", "probability_a", "probability_b", "probability_c"]
        assert np.mean([row[0] == "aabbcc"[k // 25] for k, row in enumerate(rows[1:])]) > 0.9
        np.testing.assert_allclose([sum(map(float, row[1:])) for row in rows[1:]], 1)

    def test_plot_and_explain(self, iris):
        assert call("plot", iris / "m", iris / "iris.csv", "--class", "b", "-o", iris / "b.html").exit_code == 0
        assert call("explain", iris / "m").stdout.count("against the rest") == 3
        assert "--odds" in call("explain", iris / "m").stdout
        full = call("explain", iris / "m", "--odds", "--digits", 17).stdout
        model = table_model_from_json((iris / "m").read_text()).model
        for decision in model.decisions_:
            assert f"  class variance  {decision.densities[1].variance:.17g}\n" in full

    @needs_sqlite_mathematics
    def test_sql(self, iris):
        query = call("explain", iris / "m", "--format", "sql", "--table", "flowers").stdout
        frame = pd.read_csv(iris / "iris.csv")
        with sqlite3.connect(":memory:") as connection:
            frame.to_sql("flowers", connection, index=False)
            found = [row[-1] for row in connection.execute(query)]
        connection.close()
        expected = call("predict", iris / "m", iris / "iris.csv").stdout.splitlines()[1:]
        assert found == expected

    def test_evaluate(self, iris):
        done = call("evaluate", iris / "iris.csv", "-t", "species", "--n-init", 1, "--cv", 2, "--compare", "--json")
        assert done.exit_code == 0, done.output
        models = json.loads(done.stdout)["models"]
        assert all(scores["AUC"]["mean"] > 0.9 for scores in models.values())


BAD_INPUT = {
    "no such file": (["predict", "MODEL", "nowhere.csv"], "nowhere.csv: No such file"),
    "no such model": (["predict", "nowhere.json", "DATA"], "nowhere.json: No such file"),
    "a model that is none": (["explain", "DATA"], "This is no melc model"),
    "folder as data": (["predict", "MODEL", "."], "Is a directory"),
    "missing target": (["fit", "DATA", "-t", "nope", "-o", "NEW"], "no column 'nope'"),
    "no target": (["fit", "DATA", "-o", "NEW"], "--target"),
    "wrong delimiter": (["fit", "DATA", "-t", "outcome", "--delimiter", ";", "-o", "NEW"], "no column 'outcome'"),
    "identifier column": (["fit", "MANY", "-t", "outcome", "-o", "NEW"], "'id' has 1200 different texts"),
    "one class": (["fit", "ONE", "-t", "outcome", "-o", "NEW"], "one class only"),
    "output in no folder": (["fit", "DATA", "-t", "outcome", "-o", "no/such/folder/m.json"], "there is no folder"),
    "output is a folder": (["fit", "DATA", "-t", "outcome", "--force", "-o", "."], "is a folder"),
    "header only": (["predict", "MODEL", "HEADER"], "no rows"),
    "empty": (["fit", "EMPTY", "-t", "outcome", "-o", "NEW"], "the file is empty"),
    "newer model": (["explain", "NEWER"], "Upgrade melc"),
    "missing column": (["predict", "MODEL", "ONE"], "'sex'"),
    "class that is none": (["plot", "MODEL", "--class", "dead", "-o", "NEW.png"], "--class dead is none of"),
    "senseless shrinkage": (
        ["fit", "DATA", "-t", "outcome", "--shrinkage", "much", "-o", "NEW"],
        "--shrinkage much is neither auto nor a number",
    ),
    "too many folds": (["evaluate", "DATA", "-t", "outcome", "--drop", "id", "--cv", "150"], "too few for 150 folds"),
}

WRONG_USE = {
    "unknown option": ["fit", "DATA", "--bogus"],
    "unknown command": ["guess"],
    "no output": ["fit", "DATA", "-t", "outcome"],
    "unknown method": ["fit", "DATA", "-t", "outcome", "--method", "magic", "-o", "NEW"],
    "no number": ["fit", "DATA", "-t", "outcome", "--gamma", "wide", "-o", "NEW"],
    "long delimiter": ["fit", "DATA", "-t", "outcome", "--delimiter", "ab", "-o", "NEW"],
}


@pytest.fixture(scope="module")
def stand_ins(folder):
    """Files that the tables of faults name by role."""
    document = json.loads((folder / "model.json").read_text())
    (folder / "newer.json").write_text(json.dumps(document | {"version": 99}))
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("id,dose,age,sex\n")
    pd.DataFrame({"dose": [1, 2, 3], "age": [4, 5, 7], "outcome": "same"}).to_csv(folder / "one.csv", index=False)
    patients(1200).to_csv(folder / "many.csv", index=False)
    names = {"MODEL": "model.json", "DATA": "patients.csv", "NEWER": "newer.json", "EMPTY": "empty.csv"}
    names |= {"HEADER": "header.csv", "ONE": "one.csv", "MANY": "many.csv", "NEW": "new", "NEW.png": "new.png"}
    return {role: folder / name for role, name in names.items()}


class TestFaults:
    @pytest.mark.parametrize("name", BAD_INPUT)
    def test_bad_input_is_one_line_and_exit_code_one(self, stand_ins, name):
        arguments, message = BAD_INPUT[name]
        before = sorted(stand_ins["DATA"].parent.iterdir())
        done = call(*(stand_ins.get(argument, argument) for argument in arguments))
        assert done.exit_code == 1, done.output
        assert message in done.stderr
        assert done.stderr.startswith("melc: ")
        assert len(done.stderr.strip().splitlines()) == 1
        assert done.stdout == ""
        assert sorted(stand_ins["DATA"].parent.iterdir()) == before

    @pytest.mark.parametrize("name", WRONG_USE)
    def test_wrong_use_is_exit_code_two(self, stand_ins, name):
        done = call(*(stand_ins.get(argument, argument) for argument in WRONG_USE[name]))
        assert done.exit_code == 2, done.output
        assert "Traceback" not in done.output

    def test_no_permission_to_write(self, stand_ins, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied", "out")

        monkeypatch.setattr("tempfile.mkstemp", refuse)
        done = call("predict", stand_ins["MODEL"], stand_ins["DATA"], "-o", stand_ins["NEW"])
        assert (done.exit_code, done.stderr) == (1, "melc: out: Permission denied\n")

    def test_debug_shows_where(self, stand_ins):
        done = call("fit", stand_ins["EMPTY"], "-t", "outcome", "-o", stand_ins["NEW"], "--debug")
        assert isinstance(done.exception, ValueError)

    def test_every_command_has_help_with_an_example(self):
        listing = call("--help").stdout
        for command in ("fit", "predict", "explain", "plot", "evaluate", "demo", "datasets", "reproduce"):
            assert command in listing
            text = call(command, "--help").stdout
            assert f"melc {command}" in text.split("Example:")[1]

    def test_data_sets_of_the_paper(self):
        pytest.importorskip("melc.paper", reason="the paper's evaluation is not part of this checkout")
        listed = json.loads(call("datasets", "--json").stdout)
        assert len(listed) == 10
        assert {"name", "rows", "features", "classes", "source", "at_hand", "where"} == set(listed[0])
        assert "splice" in call("datasets").stdout

    def test_version(self):
        from melc import __version__

        assert call("--version").stdout == f"melc {__version__}\n"

    def test_without_typer_the_error_has_the_remedy(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "melc.cli.commands")
        monkeypatch.setitem(sys.modules, "typer", None)
        with pytest.raises(SystemExit, match=r"needs typer: pip install 'melc\[cli\]'"):
            main()
