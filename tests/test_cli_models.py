"""What the commands do with a fitted model: kept columns, JSON, scores on new rows, words, and pictures."""

import io
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, log_loss

from cli_cases import call, folder_with_model, patients
from melc.cli.console import Reporter, guarded, in_options
from melc.export import from_json


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_with_model(tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def document(folder):
    return json.loads((folder / "model.json").read_text())


class TestKeptColumns:
    def test_as_they_are_written(self, folder, tmp_path):
        frame = patients().astype({"age": str}).assign(note='=1+1, "x"', key="00012345678901234567")
        frame.loc[0, "note"] = None
        frame.loc[1, "age"] = " 50.10"
        frame.to_csv(tmp_path / "p.csv", index=False)
        keep = ["--keep", "key", "--keep", "note", "--keep", "age"]
        done = call("predict", folder / "model.json", tmp_path / "p.csv", *keep)
        assert done.exit_code == 0, done.output
        lines = done.stdout.splitlines()
        assert lines[0] == "key,note,age,prediction"
        assert lines[1].startswith("00012345678901234567,,")
        assert lines[2].startswith('00012345678901234567,"=1+1, ""x""", 50.10,')
        plain = call("predict", folder / "model.json", tmp_path / "p.csv").stdout.splitlines()
        assert [line.rsplit(",")[-1] for line in lines] == plain

    def test_all_digits_of_parquet(self, folder, tmp_path):
        patients().assign(key=2**60 + 1).to_parquet(tmp_path / "p.parquet", index=False)
        done = call("predict", folder / "model.json", tmp_path / "p.parquet", "--keep", "key")
        assert done.stdout.splitlines()[1].startswith(f"{2**60 + 1},")

    def test_decimal_commas_of_a_feature_that_is_kept(self, folder, tmp_path):
        patients().to_csv(tmp_path / "p.csv", index=False, sep=";", decimal=",")
        done = call("predict", folder / "model.json", tmp_path / "p.csv", "--decimal", ",", "--keep", "dose")
        expected = call("predict", folder / "model.json", folder / "patients.csv").stdout.split()
        assert [line.rsplit(",")[-1] for line in done.stdout.splitlines()] == expected
        assert re.fullmatch(r'"-?\d+,\d+"', done.stdout.splitlines()[1].rpartition(",")[0])

    @pytest.mark.parametrize(
        ("keep", "message"),
        [
            (["nope"], "no column 'nope'"),
            (["prediction"], "two columns 'prediction'"),
            (["id", "id"], "two columns 'id'"),
        ],
    )
    def test_columns_that_cannot_be_kept(self, folder, tmp_path, keep, message):
        patients().assign(prediction=1).to_csv(tmp_path / "p.csv", index=False)
        options = [part for name in keep for part in ("--keep", name)]
        done = call("predict", folder / "model.json", tmp_path / "p.csv", *options)
        assert (done.exit_code, done.stdout) == (1, "")
        assert message in done.stderr

    def test_json(self, folder, monkeypatch):
        monkeypatch.setattr("melc.tables.csv_files._BLOCK_BYTES", 2000)  # several blocks make one list
        done = call("predict", folder / "model.json", folder / "patients.csv", "--json", "--proba", "--keep", "id")
        rows = json.loads(done.stdout)
        table = call("predict", folder / "model.json", folder / "patients.csv", "--proba", "--keep", "id").stdout
        pd.testing.assert_frame_equal(pd.DataFrame(rows), pd.read_csv(io.StringIO(table)))
        assert list(rows[0]) == ["id", "prediction", "probability_ill", "probability_well"]


class TestScores:
    def test_of_a_fitted_model_on_new_rows(self, folder, tmp_path):
        frame = patients(150, seed=1)
        frame.to_csv(tmp_path / "test.csv", index=False)
        done = call("evaluate", "--model", folder / "model.json", tmp_path / "test.csv", "--json")
        assert done.exit_code == 0, done.output
        scores = json.loads(done.stdout)
        rows = call("predict", folder / "model.json", tmp_path / "test.csv", "--json", "--proba").stdout
        predicted = pd.DataFrame(json.loads(rows))
        truth = frame["outcome"]
        assert scores["classes"] == ["ill", "well"]
        assert scores["rows"] == 150
        np.testing.assert_array_equal(scores["confusion"], confusion_matrix(truth, predicted["prediction"]))
        assert scores["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, predicted["prediction"]))
        assert scores["log_loss"] == pytest.approx(log_loss(truth, predicted.iloc[:, 1:]))
        text = call("evaluate", "--model", folder / "model.json", tmp_path / "test.csv").stdout
        assert f"150 rows; balanced accuracy {scores['balanced_accuracy']:.3f}" in text
        assert "predicted well" in text

    def test_weights_count_as_rows(self, folder, tmp_path):
        patients(50, seed=1).assign(w=[2, 0] * 25).to_csv(tmp_path / "w.csv", index=False)
        patients(50, seed=1).iloc[::2].to_csv(tmp_path / "half.csv", index=False)
        weighted = call("evaluate", "--model", folder / "model.json", tmp_path / "w.csv", "--weights", "w", "--json")
        plain = call("evaluate", "--model", folder / "model.json", tmp_path / "half.csv", "--json")
        first, second = json.loads(weighted.stdout), json.loads(plain.stdout)
        np.testing.assert_allclose(first["confusion"], 2 * np.array(second["confusion"]))
        assert first["log_loss"] == pytest.approx(second["log_loss"])

    @pytest.mark.parametrize(
        "option", [["--gamma", "2"], ["--cv", "5"], ["--compare"], ["--drop", "id"], ["--lines", "3"], ["--seed", "0"]]
    )
    def test_options_of_a_fit_are_refused(self, folder, option):
        done = call("evaluate", "--model", folder / "model.json", folder / "patients.csv", *option)
        assert (done.exit_code, done.stdout) == (2, "")
        assert option[0] in done.stderr
        assert "belongs to a fit" in done.stderr

    def test_unknown_categories_are_noted(self, folder, tmp_path):
        frame = patients(60, seed=1)
        column = "sex"
        frame.loc[:6, column] = "never seen"
        frame.to_csv(tmp_path / "t.csv", index=False)
        done = call("evaluate", "--model", folder / "model.json", tmp_path / "t.csv", "--json")
        assert json.loads(done.stdout)["rows"] == 60
        assert f"note: column {column!r}: 7 values do not occur in the training data" in done.stderr

    def test_unknown_classes_are_named(self, folder, tmp_path):
        patients().replace({"outcome": {"ill": "dead"}}).to_csv(tmp_path / "t.csv", index=False)
        done = call("evaluate", "--model", folder / "model.json", tmp_path / "t.csv")
        assert done.exit_code == 1
        assert "'dead', which is not a class of the model; its classes are ill, well" in done.stderr

    def test_integer_classes_and_one_against_the_rest(self, tmp_path):
        load_iris(as_frame=True).frame.to_csv(tmp_path / "iris.csv", index=False)
        for extra, classes in ([], [0, 1, 2]), (["--positive", "1"], ["1", "not 1"]):
            fit = ["fit", tmp_path / "iris.csv", "-t", "target", "--n-init", 1, "--no-cv", "-f", "-o", tmp_path / "m"]
            assert call(*fit, *extra).exit_code == 0
            done = call("evaluate", "--model", tmp_path / "m", tmp_path / "iris.csv", "--json")
            scores = json.loads(done.stdout)
            assert scores["classes"] == classes
            assert scores["balanced_accuracy"] > 0.7
            assert np.sum(scores["confusion"]) == 150


class TestWords:
    def test_notes_name_features_and_options(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"tol": np.repeat([0.0, 1.0], 20), "noise": rng.normal(size=40), "y": ["a", "b"] * 20})
        frame = frame.assign(y=np.repeat(["a", "b"], 20))
        frame.to_csv(tmp_path / "t.csv", index=False)
        done = call("fit", tmp_path / "t.csv", "-t", "y", "--selection", "divergence", "--no-cv", "-o", tmp_path / "m")
        assert "feature 'tol'" in done.stderr
        assert "--shrinkage auto" in done.stderr
        done = call("fit", tmp_path / "t.csv", "-t", "y", "--shrinkage", "auto", "--no-cv", "-f", "-o", tmp_path / "m")
        assert "rests on" not in done.stderr

    def test_iterations_and_tolerance(self, folder, tmp_path):
        fit = ["fit", folder / "patients.csv", "-t", "outcome", "--drop", "id", "--n-init", 1, "--no-cv"]
        done = call(*fit, "--max-iter", 1, "-o", tmp_path / "m")
        assert "Raise --max-iter (now 1) or --tol (now 1e-05)" in done.stderr
        assert call(*fit, "--max-iter", 1, "--tol", 1e9, "-o", tmp_path / "m2").stderr == ""

    def test_notes_of_folds_that_differ_in_numbers_alone_are_joined(self, folder, tmp_path):
        table = [folder / "patients.csv", "-t", "outcome", "--drop", "id", "--n-init", 1, "--max-iter", 1]
        (note,) = call("evaluate", *table).stderr.splitlines()
        assert "(5 such notes with other numbers; this is the first.)" in note
        assert len(call("fit", *table, "-o", tmp_path / "m").stderr.splitlines()) == 1  # of the fit, none of its folds

    def test_notes_of_folds_do_not_repeat_that_of_the_fit_with_fewer_rows(self, folder, tmp_path):
        table, options = tmp_path / "t.csv", ["-t", "outcome", "--weights", "weight", "--n-init", 1]
        patients().drop(columns="id").assign(weight=np.arange(200) % 2 + 100).to_csv(table, index=False)
        done = call("fit", table, *options, "-o", tmp_path / "m")
        assert done.stderr.count("By their weights") == 1, done.stderr
        assert "200 rows count as" in done.stderr

    def test_notes_that_explain_an_error_come_before_it(self, tmp_path):
        with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
            patients().assign(outcome="ill").to_excel(book, sheet_name="one", index=False)
            patients().to_excel(book, sheet_name="other", index=False)
        done = call("fit", tmp_path / "two.xlsx", "-t", "outcome", "-o", tmp_path / "m")
        note, error = done.stderr.splitlines()[:2]
        assert "of 2 sheets, the first, 'one', is read" in note
        assert error.startswith("melc: ")

    def test_a_long_name_does_not_move_the_numbers_of_others(self, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["n" * 3000, "dose"])
        frame.assign(y=np.where(frame["dose"] > 0, "a", "b")).to_csv(tmp_path / "t.csv", index=False)
        model = tmp_path / "m"
        texts = [
            call("fit", tmp_path / "t.csv", "-t", "y", "--n-init", 1, "--no-cv", "-o", model).stdout,
            call("explain", model).stdout,
            call("explain", model, tmp_path / "t.csv", "--rows", "1").stdout,
        ]
        for text in texts:
            assert max(len(line) for line in text.splitlines() if "nnn" not in line) < 120

    def test_priors(self, folder, tmp_path):
        fit = ["fit", folder / "patients.csv", "-t", "outcome", "--drop", "id", "--n-init", 1, "--no-cv", "-f"]
        by_label = ("well=0.1, ill=0.9", [0.9, 0.1])
        for given, expected in ("empirical", "empirical"), ("balanced", "balanced"), ("0.9,0.1", [0.9, 0.1]), by_label:
            assert call(*fit, "--priors", given, "-o", tmp_path / "m").exit_code == 0
            assert from_json((tmp_path / "m").read_text()).priors == expected
        for wrong in ("many", "0.5,0.3,0.2", "well=0.1", "well=0.1,0.9", "well=0.1,Ill=0.9"):
            done = call(*fit, "--priors", wrong, "-o", tmp_path / "m")
            assert done.exit_code == 1
            assert "--priors" in done.stderr

    def test_quoted_words_are_left_alone(self):
        assert in_options("'max_iter' and max_iter, n_init2") == "'max_iter' and --max-iter, n_init2"
        assert in_options("the model's tol, \"Ann's tol\" and tol") == "the model's --tol, \"Ann's tol\" and --tol"

    def test_notes_about_different_columns_are_not_joined(self, capsys):
        with Reporter(quiet=False).warnings_as_notes():
            for text in ("'v1.5' holds dates", "'v1.6' holds dates", "'v1.6' has D = 0.5", "'v1.6' has D = 0.25"):
                warnings.warn(text, stacklevel=1)
        first, second, third = capsys.readouterr().err.splitlines()
        assert (first, second) == ("note: 'v1.5' holds dates", "note: 'v1.6' holds dates")
        assert third == "note: 'v1.6' has D = 0.5 (2 such notes with other numbers; this is the first.)"

    def test_warnings_of_any_part_of_a_command_become_notes(self, capsys):
        @guarded
        def command(quiet=False, debug=False):
            warnings.warn("rows were left out", stacklevel=1)

        command()
        command(quiet=True)
        assert capsys.readouterr().err == "note: rows were left out\n"

    def test_characters_that_a_font_lacks_are_noted_once_and_in_words(self, capsys):
        with Reporter(quiet=False).warnings_as_notes():
            for character in ("7 (\x07)", "10 (\n)", r"20320 (\N{CJK UNIFIED IDEOGRAPH-4F60})"):
                warnings.warn(f"Glyph {character} missing from font(s) DejaVu Sans.", stacklevel=1)
        (note,) = capsys.readouterr().err.splitlines()
        assert note == "note: The font of the picture lacks some of the characters; boxes stand for them."

    def test_a_table_with_decimal_commas_is_explained(self, folder, tmp_path):
        patients().to_csv(tmp_path / "commas.csv", index=False, sep=";", decimal=",", encoding="utf-16")
        patients().to_csv(tmp_path / "points.csv", index=False)
        explain = ["explain", folder / "model.json", "--rows", 2]
        expected = call(*explain, tmp_path / "points.csv").stdout
        assert expected.startswith("row 1: class")
        assert call(*explain, tmp_path / "commas.csv", "--decimal", ",", "--encoding", "utf-16").stdout == expected


class TestPictures:
    @pytest.fixture
    def draw(self, document, tmp_path):
        def drawn(ending, name="dose", classes=("ill", "well"), n_thresholds=None):
            changed = json.loads(json.dumps(document))
            changed["feature_names"][0], changed["classes"]["values"] = name, list(classes)
            if n_thresholds is not None:
                line = changed["lines"][0]
                line["knots"] = np.linspace(-3, 3, n_thresholds + 1).tolist()
                line["log_odds"] = [[1.0 if k % 2 else -1.0 for k in range(n_thresholds + 1)]]
                line["counts"] = [[1.0, 1.0]] * (n_thresholds + 1)
            (tmp_path / "m").write_text(json.dumps(changed))
            done = call("plot", tmp_path / "m", "-o", tmp_path / f"p.{ending}")
            assert done.exit_code == 0, done.output
            return (tmp_path / f"p.{ending}").read_bytes()

        return drawn

    @pytest.mark.parametrize("ending", ["png", "html"])
    def test_dollar_signs_are_no_formulas(self, draw, ending):
        assert draw(ending, r"price in $ or \frac{$", ("$5 to $10", r"$\bad$"))

    def test_long_names_are_cut(self, draw):
        page = draw("html", "a" * 10**6, ("i" * 10**6, "w" * 10**6))
        assert len(page) < 400_000

    @pytest.mark.parametrize("options", [["--n-init", 1], ["--lines", 1]])
    def test_long_names_of_several_classes_are_cut(self, tmp_path, options):
        frame = load_iris(as_frame=True).frame
        frame = frame.assign(target=frame["target"].map(lambda k: "abc"[k] * 20_000))
        frame.rename(columns=lambda name: name * 1000 if name != "target" else name).to_csv(tmp_path / "t", index=False)
        fitted = call("fit", tmp_path / "t", "-t", "target", *options, "--no-cv", "-o", tmp_path / "m")
        assert fitted.exit_code == 0, fitted.output[:500]
        done = call("plot", tmp_path / "m", "-o", tmp_path / "p.html")
        assert done.exit_code == 0, done.output
        assert (tmp_path / "p.html").stat().st_size < 1_000_000

    def test_very_many_thresholds(self, draw):
        page = draw("html", n_thresholds=20_000).decode()
        assert len(page) < 2_000_000
        assert "more lines; melc explain prints them all" in page
