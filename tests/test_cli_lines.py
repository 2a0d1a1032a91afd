"""The commands with an additive model, and the options that choose between models."""

import io
import json
import re
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from cli_cases import assert_tells_of_lines, call, fit_patients, patients
from melc import MELC, AdditiveMELC
from melc.cli.console import in_options
from melc.cli.fitting import compared_models, n_steps, unfitted_model
from melc.cli.printing import _width
from melc.export import from_json
from melc.tables.summary import fit_summary, fit_text

FEATURES = ["dose", "age", "sex"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the table and an additive model of it, fitted by the command line."""
    folder = tmp_path_factory.mktemp("lines")
    patients().to_csv(folder / "patients.csv", index=False)
    fitted = fit_patients(folder, "--lines", 3, "--no-cv", "-o", folder / "model.json")
    assert fitted.exit_code == 0, fitted.output
    return folder


@pytest.fixture(scope="module")
def predicted(folder):
    done = call("predict", folder / "model.json", folder / "patients.csv", "--proba", "--keep", "id")
    assert done.exit_code == 0, done.output
    return pd.read_csv(io.StringIO(done.stdout))


def read_model(path):
    return from_json(path.read_text())


class TestFit:
    def test_is_the_additive_model_of_the_frame(self, folder, predicted):
        model = read_model(folder / "model.json")
        assert isinstance(model, AdditiveMELC)
        assert model.max_lines == 3
        ours = AdditiveMELC(max_lines=3, random_state=0).fit(patients()[FEATURES], patients()["outcome"])
        assert predicted["prediction"].tolist() == ours.predict(patients()[FEATURES]).tolist()
        np.testing.assert_allclose(predicted["probability_well"], ours.predict_proba(patients()[FEATURES])[:, 1])

    def test_auto_is_the_default_of_the_model(self, folder, tmp_path):
        done = fit_patients(folder, "--lines", "auto", "--no-cv", "-q", "-o", tmp_path / "m")
        assert done.exit_code == 0, done.output
        assert read_model(tmp_path / "m").max_lines == AdditiveMELC().max_lines

    def test_summary(self, folder, tmp_path):
        fit = ["--lines", 2, "--priors", "0.4,0.6", "--gamma", 2, "-f", "-o", tmp_path / "m"]
        summary = json.loads(fit_patients(folder, *fit, "--json").stdout)
        model = read_model(tmp_path / "m")
        assert (model.gamma, model.priors) == (2, [0.4, 0.6])
        assert summary["balanced_accuracy"]["mean"] > 0.75
        assert_tells_of_lines(summary, model)
        assert "divergence" not in summary
        assert summary["intercepts"] == model.intercepts_.tolist()
        text = fit_patients(folder, *fit, "--no-cv").stdout
        shown = [line["number"] for line in summary["lines"] if not line["minor"]]
        assert re.findall(r"^line (\d+)", text, re.M) == [str(number) for number in shown]
        assert re.search(r"[+-]0\.\d+ dose [+-]0\.\d+ score.*sex", text)

    def test_minor_lines_are_last_and_counted_in_the_text(self, folder):
        model = read_model(folder / "model.json")
        first = max(model.lines_, key=lambda line: line.importance)
        model.lines_ = [replace(line, minor=line is first) for line in model.lines_]
        summary = fit_summary(model, {"ill": 3, "well": 4}, None)
        assert [line["minor"] for line in summary["lines"]] == [False] * (len(summary["lines"]) - 1) + [True]
        text = fit_text(summary)
        assert len(re.findall(r"^line \d+, importance", text, re.M)) == len(summary["lines"]) - 1
        assert "\nand 1 minor line, each of one feature\n" in text

    def test_rows_of_text_are_as_wide_as_a_narrow_terminal(self, folder, monkeypatch):
        model = read_model(folder / "model.json")
        summary = fit_summary(
            model, {"ill": 3, "well": 4}, None, ["This remark has far too many words for one row. " * 3]
        )
        assert max(map(len, fit_text(summary, 60).splitlines())) <= 60
        monkeypatch.setenv("COLUMNS", "70")
        assert [_width(SimpleNamespace(isatty=lambda shown=shown: shown)) for shown in (True, False)] == [70, 100]

    def test_levels_of_a_category_and_dates_are_shown_by_their_names(self, tmp_path):
        rng = np.random.default_rng(0)
        colour, day = rng.integers(0, 12, 900), rng.integers(0, 300, 900)
        odds = np.where(colour % 2, 2.0, -2.0) + np.where(np.abs(day - 150) < 60, 2.0, -1.0)
        frame = pd.DataFrame({"colour": [f"shade {k}" for k in colour], "day": np.datetime64("2020-01-01") + day})
        frame["y"] = np.where(rng.random(900) < 1 / (1 + np.exp(-odds)), "well", "ill")
        frame.loc[::9, "day"] = None
        frame.to_csv(tmp_path / "t.csv", index=False)
        fit = ["fit", tmp_path / "t.csv", "-t", "y", "--lines", 1, "--no-cv", "-f", "-o", tmp_path / "m"]
        (line,) = json.loads(call(*fit, "--drop", "day", "--json").stdout)["lines"]
        of_level = dict(zip(line["levels"], line["intervals"], strict=True))
        assert of_level == {f"shade {k}": "well" if k % 2 else "ill" for k in range(12)}
        assert (line["thresholds"], np.sum(line["counts"])) == ([], 900)
        text = call(*fit, "--drop", "day").stdout
        assert re.search(r"^  colour\n    ill: shade \d+, .*\n    well: shade \d+, ", text, re.M)
        (line,) = json.loads(call(*fit, "--drop", "colour", "--json").stdout)["lines"]
        assert (line["levels"], len(line["thresholds"])) == ([], 2)
        text = call(*fit, "--drop", "colour").stdout
        places = r"along z: ill \| 2020-0[34]-\d\d \| well \| 2020-0[78]-\d\d \| ill"
        assert re.search(rf"{places}\n  where it is missing: {line['missing']}\n", text)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--lines", "2", "--gamma", "auto"], "--gamma auto does not work with --lines; give a number"),
            (["--lines", "2", "--n-init", "3"], "--n-init has no effect with --lines; leave out one"),
            (["--lines", "2", "--selection", "likelihood"], "--selection has no effect with --lines"),
            (["--lines", "2", "--bandwidth", "pooled"], "--bandwidth has no effect with --lines"),
        ],
    )
    def test_refused_before_any_work(self, tmp_path, options, message):
        done = call("fit", tmp_path / "no-such-file.csv", "-t", "y", *options, "-o", tmp_path / "m")
        assert done.exit_code == 1
        assert message in done.stderr

    @pytest.mark.parametrize(
        ("option", "values", "message"),
        [
            ("--lines", ["many", "2.5", "0", "inf"], "is not auto or a whole number from 1 to 10000."),
            ("--gamma", ["wide", "0", "nan"], "is not auto or a number from 1e-15 to 1e15."),
            ("--bandwidth", ["wide", "0", "inf"], "is not robust, silverman, pooled or a positive number."),
            ("--shrinkage", ["much", "1.5"], "is not auto or a number from 0 to 1."),
        ],
    )
    def test_values_that_make_no_sense(self, tmp_path, option, values, message):
        for value in values:
            done = call("fit", tmp_path / "no-such-file.csv", "-t", "y", option, value, "-o", tmp_path / "m")
            assert done.exit_code == 2
            words = " ".join(done.stderr.replace("│", " ").split())  # the message is in a box, broken into lines
            assert f"Invalid value for {option}: {value!r} {message}" in words

    def test_options_of_one_projection(self, folder, tmp_path):
        chosen = ["--selection", "divergence", "--bandwidth", "pooled", "--gamma", "auto", "--n-init", 2]
        done = fit_patients(folder, *chosen, "--no-cv", "--json", "-o", tmp_path / "m")
        assert done.exit_code == 0, done.output
        model = read_model(tmp_path / "m")
        assert (model.selection, model.bandwidth, model.gamma, model.n_init) == ("divergence", "pooled", "auto", 2)
        assert type(model.selection) is str
        assert 0.4 <= json.loads(done.stdout)["gamma"] <= 3

    def test_defaults_are_those_of_the_models(self):
        assert unfitted_model(None, 0, gamma=None, n_init=None).get_params() == MELC(random_state=0).get_params()
        given = unfitted_model("auto", 0, gamma=None).get_params()
        assert given == AdditiveMELC(random_state=0).get_params()

    def test_progress_counts_lines_of_each_class(self):
        assert [n_steps(AdditiveMELC(max_lines=4), n) for n in (2, 3)] == [4, 12]
        assert [n_steps(MELC(n_init=5), n) for n in (2, 3)] == [5, 15]


class TestUse:
    def test_json(self, folder, predicted):
        done = call("predict", folder / "model.json", folder / "patients.csv", "--proba", "--keep", "id", "--json")
        pd.testing.assert_frame_equal(pd.DataFrame(json.loads(done.stdout)), predicted)

    def test_scores(self, folder, predicted):
        done = call("evaluate", "--model", folder / "model.json", folder / "patients.csv", "--json")
        scores = json.loads(done.stdout)
        right = (predicted["prediction"] == patients()["outcome"]).sum()
        assert np.trace(scores["confusion"]) == right > 190

    def test_explained_as_text(self, folder):
        text = call("explain", folder / "model.json", "--digits", 3).stdout
        assert re.match(r"Log-odds of well against ill: -?[\d.e-]+ \+ what \d lines add\n", text)
        assert re.search(r"importance [\d.]+: z = -?0\.\d+ dose [+-] 0\.\d+ .*sex", text)
        assert "points of the curve" not in text
        assert "points of the curve" in call("explain", folder / "model.json", "--odds").stdout

    def test_explained_as_json(self, folder):
        text = call("explain", folder / "model.json", "--format", "json").stdout
        assert json.loads(text) == json.loads((folder / "model.json").read_text())

    def test_explained_as_sql(self, folder, predicted):
        query = call("explain", folder / "model.json", "--format", "sql", "--table", "patients").stdout
        with sqlite3.connect(":memory:") as connection:
            patients().to_sql("patients", connection, index=False)
            found = pd.read_sql(query, connection)
        connection.close()
        assert found["prediction"].tolist() == predicted["prediction"].tolist()

    def test_explained_as_onnx(self, folder, predicted, tmp_path):
        runtime = pytest.importorskip("onnxruntime")
        done = call("explain", folder / "model.json", "--format", "onnx", "-o", tmp_path / "m.onnx")
        assert done.exit_code == 0, done.output
        session = runtime.InferenceSession((tmp_path / "m.onnx").read_bytes())
        rows = {each.name: patients()[each.name].to_numpy() for each in session.get_inputs()}
        labels = session.run(None, rows)[0]
        assert labels.tolist() == predicted["prediction"].tolist()

    @pytest.mark.parametrize(
        ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!doctype html>")]
    )
    def test_pictures(self, folder, tmp_path, ending, start):
        done = call("plot", folder / "model.json", folder / "patients.csv", "-o", tmp_path / f"p.{ending}")
        assert done.exit_code == 0, done.output
        assert (tmp_path / f"p.{ending}").read_bytes().startswith(start)

    def test_a_page_has_the_lines_and_the_rule(self, folder, tmp_path):
        call("plot", folder / "model.json", "-o", tmp_path / "p.html")
        page = (tmp_path / "p.html").read_text()
        assert "What each line adds to the log-odds" in page
        assert page.count("<svg") == 1
        assert "Log-odds of well against ill" in page


@pytest.fixture(scope="module")
def iris(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iris")
    load_iris(as_frame=True).frame.to_csv(folder / "iris.csv", index=False)
    fit = ["fit", folder / "iris.csv", "-t", "target", "--lines", 2, "--no-cv", "-o", folder / "m"]
    done = call(*fit)
    assert done.exit_code == 0, done.output
    numbers = re.findall(r"^line (\d+), importance", done.stdout, re.M)
    assert sorted(map(int, numbers)) == list(range(1, 1 + len(numbers)))
    assert re.search(r"^  along z: [012] \|", done.stdout, re.M)
    return folder


class TestSeveralClasses:
    def test_page_of_all_classes_or_one(self, iris, tmp_path):
        pages = []
        for options in [], ["--class", "1"]:
            done = call("plot", iris / "m", iris / "iris.csv", "-f", "-o", tmp_path / "p.html", *options)
            assert done.exit_code == 0, done.output
            pages.append((tmp_path / "p.html").read_text())
            assert pages[-1].count("<svg") == 1
        assert len(pages[1]) < len(pages[0])  # fewer curves

    def test_scores(self, iris):
        done = call("evaluate", "--model", iris / "m", iris / "iris.csv", "--json")
        assert json.loads(done.stdout)["balanced_accuracy"] > 0.94


class TestCompare:
    def test_lines_alone(self, folder):
        evaluate = ["evaluate", folder / "patients.csv", "-t", "outcome", "--drop", "id", "--cv", 2, "--json"]
        found = json.loads(call(*evaluate, "--lines", 2).stdout)["models"]
        assert list(found) == ["additive MELC"]
        assert found["additive MELC"]["balanced accuracy"]["mean"] > 0.8

    def test_both_kinds_are_compared_with_common_ones(self):
        priors = [0.2, 0.8]
        models = compared_models(MELC(n_init=3, priors=priors, random_state=1), True)
        assert list(models)[:3] == ["MELC", "additive MELC", "logistic regression"]
        assert models["MELC"].n_init == 3
        assert (models["additive MELC"].priors, models["additive MELC"].random_state) == (priors, 1)
        models = compared_models(AdditiveMELC(max_lines=4), True)
        assert list(models)[:3] == ["additive MELC", "MELC", "logistic regression"]
        assert models["additive MELC"].max_lines == 4


def test_notes_speak_of_options():
    message = 'Raise max_lines, or set gamma="auto" or selection="divergence".'
    assert in_options(message) == "Raise --lines, or set --gamma auto or --selection divergence."
