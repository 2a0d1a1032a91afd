"""The command line: as a program with and without a terminal, and every command."""

import errno
import gzip
import json
import os
import pty
import re
import resource
import signal
import sqlite3
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from cli_cases import PROGRAM, assert_tells_of_lines, call, fit_patients, folder_with_model, patients
from melc import MELC, AdditiveMELC
from melc.export import from_json, to_json
from tables_data import mixed_frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_with_model(tmp_path_factory.mktemp("cli"))


def run(*arguments, **options):
    command = [*PROGRAM, *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def start_on_terminal(*arguments, **variables):
    """Start the program with all of its streams connected to a terminal."""
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
    """Return the exit code and everything that the program wrote on its terminal."""
    process, leader = start_on_terminal(*arguments, **variables)
    written = read_all(leader)
    return process.wait(timeout=120), written.decode()


def _read_terminal(leader):
    try:
        return os.read(leader, 65536)
    except OSError as error:  # on Linux, when the other end is closed
        if error.errno != errno.EIO:
            raise
        return b""


@pytest.mark.slow
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
        # With coverage the program would write files of its own, which fails here too.
        unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        files = folder / "model.json", tmp_path / "big.csv", "-o", tmp_path / "out.csv"
        done = run("predict", *files, preexec_fn=_little_room, env=unmeasured)
        assert done.returncode == 1
        assert done.stderr.startswith("melc: ")
        assert len(done.stderr.strip().splitlines()) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["big.csv"]

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a shell, and a device that is always full")
    @pytest.mark.parametrize(
        ("streams", "arguments", "code", "message"),
        [
            (">&-", ["predict", "model.json", "patients.csv"], 1, "melc: Bad file descriptor"),
            (">&-", ["--version"], 1, "melc: Bad file descriptor"),
            ("<&-", ["predict", "model.json", "-"], 1, "melc: standard input: the file is empty."),
            ("<&- >&- 2>&-", ["predict", "model.json", "patients.csv", "-f", "-o", "out.csv"], 0, ""),
            (">/dev/full", ["--version"], 1, "melc: No space left on device"),
            (">/dev/full", ["--help"], 1, "melc: No space left on device"),
        ],
    )
    def test_standard_streams_that_are_closed_or_full(self, folder, streams, arguments, code, message):
        command = ["sh", "-c", f'exec "$@" {streams}', "sh", *PROGRAM, *arguments]
        done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, timeout=120)
        assert (done.returncode, done.stderr.strip()) == (code, message)
        if "out.csv" in arguments:
            assert len((folder / "out.csv").read_text().splitlines()) == 201

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
    """Limit the size of files to 2 kB, so that writing more fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))


class TestFit:
    def test_equals_the_model_fitted_in_python(self, folder):
        frame = pd.read_csv(folder / "patients.csv").drop(columns="id")
        model = MELC(n_init=2, random_state=0).fit(frame.drop(columns="outcome"), frame["outcome"].to_numpy(str))
        written = json.loads((folder / "model.json").read_text())
        assert written.pop("target") == "outcome"
        assert written == json.loads(to_json(model))

    def test_summary_as_json(self, folder, tmp_path):
        done = fit_patients(folder, "--n-init", 1, "--json", "-o", tmp_path / "m.json")
        summary = json.loads(done.stdout)
        assert summary["rows"] == 200
        assert set(summary["classes"]) == {"ill", "well"}
        assert summary["balanced_accuracy"]["folds"] == 5
        model = from_json((tmp_path / "m.json").read_bytes())
        assert_tells_of_lines(summary, model)
        assert summary["strongest_features"][0]["feature"] == summary["lines"][0]["features"][0]["feature"] == "dose"
        assert summary["divergence"] == [model.divergence_]

    def test_quiet_says_nothing(self, folder, tmp_path):
        done = fit_patients(folder, "--n-init", 1, "--no-cv", "-q", "-o", tmp_path / "m.json")
        assert (done.exit_code, done.output) == (0, "")

    @pytest.mark.parametrize("additive", [False, True])
    def test_every_kind_of_column_is_fitted_as_in_python(self, tmp_path, additive):
        """Texts, true and false, dates, codes, and missing values: as pandas reads them."""
        frame, y = mixed_frame(300)
        frame = frame.astype({"size": str}).replace({"job": {"": "none", "NULL": "nil"}})
        frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
        lines, kind = (["--lines", 2], AdditiveMELC(max_lines=2)) if additive else (["--n-init", 1], MELC(n_init=1))
        options = ["-t", "y", "--categorical", "code", *lines, "--no-cv", "-o", tmp_path / "m"]
        done = call("fit", tmp_path / "t.csv", *options)
        assert done.exit_code == 0, done.output
        model = kind.set_params(categorical_features=["code"], random_state=0)
        model.fit(pd.read_csv(tmp_path / "t.csv", parse_dates=["day"]).drop(columns="y"), y)
        written = from_json((tmp_path / "m").read_text())
        assert list(written.columns_.dates) == [list(frame).index("day")]
        assert json.loads(to_json(written)) == json.loads(to_json(model))
        done = call("predict", tmp_path / "m", tmp_path / "t.csv")
        assert done.stdout.split()[1:] == model.predict(frame).tolist()

    def test_weights_positive_and_gaps(self, tmp_path):
        frame = patients().assign(w=1.0)
        frame["outcome"] = np.where(frame["age"] > 60, "old", frame["outcome"])
        frame.loc[::9, "dose"] = np.nan
        frame.to_csv(tmp_path / "p.csv", index=False)
        columns = ["-t", "outcome", "--drop", "id", "--weights", "w", "--positive", "old"]
        done = call("fit", tmp_path / "p.csv", *columns, "--n-init", 1, "--no-cv", "-o", tmp_path / "m.json")
        assert done.exit_code == 0, done.output
        model = from_json((tmp_path / "m.json").read_bytes())
        assert model.classes_.tolist() == ["not old", "old"]
        assert model.feature_names_in_.tolist() == ["dose", "age", "sex"]
        assert list(model.columns_.places) == [0]
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
        assert (done.exit_code, done.output) == (0, f"Predictions written to {tmp_path / 'out.csv'}\n")
        table = pd.read_csv(tmp_path / "out.csv")
        assert table.columns.tolist() == ["prediction", "probability_ill", "probability_well"]
        model = from_json((folder / "model.json").read_bytes())
        X = patients()[["dose", "age", "sex"]]
        assert table["prediction"].tolist() == model.predict(X).tolist()
        np.testing.assert_allclose(table.iloc[:, 1:], model.predict_proba(X))

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
        assert "column 'sex': 108 values do not occur in the training data" in done.stderr

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
        assert json.loads(done.stdout)["target"] == "outcome"
        assert from_json(done.stdout).classes_.tolist() == ["ill", "well"]

    def test_rows_of_a_table(self, folder):
        done = call("explain", folder / "model.json", folder / "patients.csv", "--rows", 2)
        assert done.exit_code == 0, done.output
        fitted = from_json((folder / "model.json").read_text())
        X = patients()[["dose", "age", "sex"]][:2]
        labels, odds = fitted.predict(X), fitted.decision_function(X)
        for i in range(2):
            assert f"row {i + 1}: class {labels[i]}; parts" in done.stdout
            assert f"{odds[i]:+.4f}" in done.stdout
        assert "row 3" not in done.stdout
        changes = [part.split("\n\n")[0] for part in done.stdout.split("nearest change: ")[1:]]
        assert len(changes) == 2
        assert all("dose" in text or "sex" in text for text in changes)

    def test_rows_are_explained_as_text_only(self, folder):
        done = call("explain", folder / "model.json", folder / "patients.csv", "--format", "sql")
        assert done.exit_code == 1
        assert "leave out --format sql" in done.stderr

    def test_a_table_without_rows(self, folder, tmp_path):
        (tmp_path / "empty.csv").write_text("dose,age,sex\n")
        done = call("explain", folder / "model.json", tmp_path / "empty.csv")
        assert done.exit_code == 1
        assert "no rows to explain" in done.stderr

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
        assert (done.exit_code, done.output) == (0, f"Picture written to {tmp_path / name}\n")
        assert (tmp_path / name).read_bytes().startswith(start)

    def test_page_shows_pictures_and_rule_and_needs_nothing_else(self, folder, tmp_path):
        call("plot", folder / "model.json", "-o", tmp_path / "p.html")
        page = (tmp_path / "p.html").read_text()
        assert page.count("<svg") == 2
        assert "sex" in page
        assert "<script" not in page

    def test_unknown_ending(self, folder, tmp_path):
        done = call("plot", folder / "model.json", "-o", tmp_path / "p.bmp")
        assert done.exit_code == 1
        assert "unknown picture format '.bmp'; choose one of .png" in done.output


class TestEvaluate:
    def test_compare_as_json(self, folder):
        columns = ["-t", "outcome", "--drop", "id"]
        options = ["--n-init", 2, "--cv", 2, "--compare", "--json"]
        done = call("evaluate", folder / "patients.csv", *columns, *options)
        assert done.exit_code == 0, done.output
        models = json.loads(done.stdout)["models"]
        assert list(models) == ["MELC", "additive MELC", "logistic regression", "LDA", "linear SVM", "RBF SVM"]
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
    lines = json.loads(done.stdout)["lines"]
    assert sorted((line["number"], line["found_for"]) for line in lines) == [(1, "a"), (2, "b"), (3, "c")]
    assert all(np.array(line["counts"]).sum(axis=0).tolist() == [50, 50, 50] for line in lines)
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
        assert call("plot", iris / "m", iris / "iris.csv", "-o", iris / "all.html").exit_code == 0
        assert len(re.findall("<svg", (iris / "all.html").read_text())) == 1 + 3  # all lines, and the weights of each
        assert call("explain", iris / "m").stdout.count("\nLine ") == 3
        full = call("explain", iris / "m", "--odds", "--digits", 17).stdout
        model = from_json((iris / "m").read_text())
        points = re.findall(r"^    (\S+) +(\S+) +(\S+) +(\S*\d)$", full, re.M)
        tables = [np.column_stack([line.curves[0].knots, *(c.log_odds for c in line.curves)]) for line in model.lines_]
        assert {tuple(map(float, row)) for row in points} == {tuple(row) for table in tables for row in table.tolist()}

    def test_sql(self, iris):
        query = call("explain", iris / "m", "--format", "sql", "--odds", "--table", "flowers").stdout
        frame = pd.read_csv(iris / "iris.csv")
        with sqlite3.connect(":memory:") as connection:
            frame.to_sql("flowers", connection, index=False)
            found = pd.read_sql(query, connection)
        connection.close()
        expected = call("predict", iris / "m", iris / "iris.csv").stdout.splitlines()[1:]
        assert found["prediction"].tolist() == expected
        model = from_json((iris / "m").read_text())
        odds = model.decision_function(frame.drop(columns="species"))
        np.testing.assert_allclose(found[["log_odds0", "log_odds1", "log_odds2"]], odds, rtol=0, atol=1e-9)

    def test_evaluate(self, iris):
        done = call("evaluate", iris / "iris.csv", "-t", "species", "--n-init", 1, "--cv", 2, "--compare", "--json")
        assert done.exit_code == 0, done.output
        models = json.loads(done.stdout)["models"]
        assert all(scores["AUC"]["mean"] > 0.9 for scores in models.values())
