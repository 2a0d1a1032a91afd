"""Tables as analysts have them end in a model, or in one message with all faults and a command that works."""

import json
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analyst_tables import READABLE, customers, german, text_of
from cli_cases import call
from melc.export import from_json
from melc.tables import Roles, Source, TableError, open_training
from melc.tables.inspection import contents_to_fit
from melc.tables.notation import dates_in, numbers_in
from melc.tables.source import Notation
from melc.tables.summary import few_rows_remarks
from melc.tables.survey import Survey, settle

FIT = ["--no-cv", "--n-init", 1, "--max-iter", 5, "-t", "stays"]


def fit(path, model, *options):
    return call("fit", path, *FIT, "-f", "-o", model, *options)


def surveyed(**columns):
    """Return the surveys of columns of texts, settled together."""
    surveys = {name: Survey(name) for name in columns}
    for name, values in columns.items():
        surveys[name].add(pa.array(values))
    settle(surveys.values())
    return surveys


class TestReadable:
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("name", READABLE)
    @pytest.mark.parametrize("max_bytes", [0, 2**30])
    def test_columns_have_the_values_that_are_meant(self, tmp_path, name, max_bytes):
        (tmp_path / "t.csv").write_text(READABLE[name][0], encoding="utf-8")
        with open_training(Source(str(tmp_path / "t.csv")), Roles("stays"), max_bytes) as rows:
            plain, X = pd.DataFrame(customers()), rows.X.copy()
        digits = 2 if plain["income"].round(2).equals(X["income"].round(2)) else -99
        income = plain["income"] / (40 if name == "few thousands" else 1)
        assert (income.round(max(digits, 0)) - X["income"]).abs().max() < 1e-9
        for other in ("age", "share", "joined"):
            assert (plain[other].to_numpy() == X[other].to_numpy()).all(), other

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(
        "name", ["semicolons and decimal commas", "a unit of measure", "dates with points", "percent"]
    )
    def test_the_model_remembers_how_its_table_was_read(self, tmp_path, name):
        """Its predictions are those of the same rows in a plain table, and no command needs an option."""
        (tmp_path / "t.csv").write_text(READABLE[name][0], encoding="cp1252", errors="replace")
        fitted = fit(tmp_path / "t.csv", tmp_path / "m.json", "--encoding", "cp1252")
        assert fitted.exit_code == 0, fitted.output
        assert READABLE[name][1] in fitted.stderr
        predicted = call("predict", tmp_path / "m.json", tmp_path / "t.csv", "--keep", "income")
        assert predicted.exit_code == 0, predicted.output
        model = from_json((tmp_path / "m.json").read_text(encoding="utf-8"))
        with open_training(Source(str(tmp_path / "t.csv"), encoding="cp1252"), Roles("stays")) as rows:
            expected = model.predict(rows.X)
        assert [line.rpartition(",")[2] for line in predicted.stdout.splitlines()[1:]] == expected.tolist()
        for command in (["explain"], ["plot", "-o", tmp_path / "p.svg"], ["evaluate"]):
            model_file = ["--model", tmp_path / "m.json"] if command == ["evaluate"] else [tmp_path / "m.json"]
            done = call(*command, *model_file, tmp_path / "t.csv")
            assert (done.exit_code, "note:" in done.stderr) == (0, False), done.output

    def test_other_marks_in_new_rows(self, tmp_path):
        (tmp_path / "t.csv").write_text(READABLE["semicolons and decimal commas"][0])
        assert fit(tmp_path / "t.csv", tmp_path / "m.json").exit_code == 0
        (tmp_path / "plain.csv").write_text(text_of(customers()))
        refused = call("predict", tmp_path / "m.json", tmp_path / "plain.csv")
        assert refused.exit_code == 1
        assert "expected a number with decimal commas and thousands points" in refused.stderr
        done = call("predict", tmp_path / "m.json", tmp_path / "plain.csv", "--decimal", ".")
        assert done.stdout == call("predict", tmp_path / "m.json", tmp_path / "t.csv").stdout

    def test_what_a_model_file_keeps_is_checked(self, tmp_path):
        (tmp_path / "t.csv").write_text(READABLE["currency"][0])
        assert fit(tmp_path / "t.csv", tmp_path / "m.json").exit_code == 0
        document = json.loads((tmp_path / "m.json").read_text())
        assert document["reading"] == {"numbers": {"income": [".", ","]}}
        for wrong in ({"numbers": {"income": ["..", None]}}, {"decimals": ","}, {"encoding": 8}):
            (tmp_path / "m.json").write_text(json.dumps(document | {"reading": wrong}))
            assert "reading" in call("explain", tmp_path / "m.json").stderr

    def test_lines_before_the_names(self, tmp_path):
        (tmp_path / "t.csv").write_text("Customers, 2024\n\n" + text_of(customers()))
        refused = fit(tmp_path / "t.csv", tmp_path / "m.json").stderr
        assert "begin after 2 other lines; skip them with --skip-rows 2" in refused
        assert fit(tmp_path / "t.csv", tmp_path / "m.json", "--skip-rows", 2).exit_code == 0
        assert call("predict", tmp_path / "m.json", tmp_path / "t.csv").exit_code == 0


def test_tables_of_other_shapes(tmp_path):
    """Three classes, one row in a hundred, 200 columns: each is a model with as many classes and features."""
    plain, n = customers(600), 600
    rng = np.random.default_rng(0)
    wide = {f"x{k}": rng.normal(size=n).round(3) for k in range(200)}
    for columns, n_classes, n_features in (
        (plain | {"stays": np.digitize(plain["age"], [35, 50])}, 3, 5),
        (plain | {"stays": np.where(np.arange(n) % 100 == 0, "rare", "usual")}, 2, 5),
        (wide | {"stays": plain["stays"]}, 2, 200),
    ):
        (tmp_path / "t.csv").write_text(text_of(columns))
        done = fit(tmp_path / "t.csv", tmp_path / "m.json")
        assert done.exit_code == 0, done.output
        model = from_json((tmp_path / "m.json").read_text())
        assert (len(model.classes_), model.n_features_in_) == (n_classes, n_features)


class TestWaysToWriteNumbers:
    def test_a_column_that_proves_its_marks_speaks_for_the_others(self):
        surveys = surveyed(a=["1,5", "2,25"], b=["1,844", "2,345"], c=[1.844, 818], d=["12 %", "3 %"])
        assert {name: str(survey.notation) for name, survey in surveys.items()} == dict.fromkeys(
            "abcd", "decimal commas and thousands points"
        )
        assert surveyed(a=["0.5 %"], b=["1,844", "2,345"])["b"].notation == Notation(".", ",")

    def test_thousands_in_every_row_can_be_decimals(self):
        (fault,) = (survey.fault() for survey in surveyed(a=["1,844", "2,345"] * 9).values())
        assert "may stand before decimals or between thousands. Say which with --decimal , or --thous" in fault.text
        assert fault.remedy == ("--thousands", ",")

    @pytest.mark.parametrize("values", [["5 %", "5"], ["$5", "5 €"]])
    def test_mixed_units(self, values):
        (fault,) = (survey.fault() for survey in surveyed(a=values * 9).values())
        assert "with different units" in fault.text

    def test_units_of_measure(self):
        found = surveyed(a=["12 kg", "7,5 kg"], b=["1m"] * 2, c=["2a", "3b"])
        units = {name: survey.notation and survey.notation.unit for name, survey in found.items()}
        assert units == {"a": "kg", "b": "m", "c": None}
        for other in ("g", "?"):
            (fault,) = (s.fault() for s in surveyed(a=[f"{k} {other if k == 7 else 'kg'}" for k in range(50)]).values())
            assert "numbers with units, but not all with one: '0 kg'" in fault.text

    def test_points_that_may_be_thousands_are_noted(self, tmp_path):
        rows = "".join(f"{x},{'ab'[x % 2]}\n" for x in range(200)) + "".join(f"1.{x},a\n" for x in range(801, 850))
        (tmp_path / "t.csv").write_text("n,y\n" + rows)
        with (
            pytest.warns(UserWarning, match=r"'n' are read as decimal points, as in 1.801; if .*--thousands \."),
            open_training(Source(str(tmp_path / "t.csv")), Roles("y")),
        ):
            pass
        with open_training(Source(str(tmp_path / "t.csv"), thousands=".", decimal=","), Roles("y")) as rows:
            assert rows.X["n"].max() == 1849

    def test_signs_spaces_and_exponents(self):
        written = ["-1.234,5 €", "€ 7", "−2,5", " 1e3 ", None]
        assert numbers_in(pa.array(written), Notation(",", "."), "a").to_pylist() == [-1234.5, 7, -2.5, 1000, None]
        for wrong in ("1.23,4", "5 % 5", "$", "1,2,3", "12 kg"):
            with pytest.raises(TableError, match="'a' contains"):
                numbers_in(pa.array([wrong]), Notation(",", "."), "a")

    def test_units_that_contain_what_numbers_contain(self):
        """A price has a currency in its unit, and the unit e is the sign of exponents as well."""
        assert numbers_in(pa.array(["2.5 EUR/kg", "1"]), Notation(unit="EUR/kg"), "a").to_pylist() == [2.5, 1]
        assert numbers_in(pa.array(["1e3 e", "1e3"]), Notation(unit="e"), "a").to_pylist() == [1000, 1000]
        with pytest.raises(TableError, match=r"contains '5 g'; expected .*, in kg or without a unit"):
            numbers_in(pa.array(["5 g"]), Notation(unit="kg"), "a")


class TestWaysToWriteDates:
    def test_days_and_months_that_cannot_be_told_apart(self):
        (fault,) = (survey.fault() for survey in surveyed(a=["1/2/2024", "3/4/2024"] * 20).values())
        assert "can be read in two ways. Say which with --date-format %d/%m/%Y or --date-format %m/%d/%Y" in fault.text

    def test_years_are_whole(self):
        assert dates_in(pa.array(["5.1.20"]), "%d.%m.%Y") is None
        assert dates_in(pa.array(["05.10.2020 7:30"]), "%d.%m.%Y %H:%M").to_pylist()[0].hour == 7


class TestFaults:
    def test_all_at_once_with_a_command_that_works(self, tmp_path):
        columns = customers()
        n = len(columns["age"])
        columns |= {"customer id": [f"c{k}" for k in range(n)], "empty": [""] * n}
        columns |= {"bmi": ["?" if k % 30 == 0 else k / 7 for k in range(n)], "inf": ["inf", *range(n - 1)]}
        columns |= {"both": [f"{k}.5" if k % 2 else f"{k},5" for k in range(n)]}
        columns |= {"when": [f"{k % 12 + 1}/{k % 11 + 1}/2020" for k in range(n)]}
        (tmp_path / "t.csv").write_text(text_of(columns))
        refused = fit(tmp_path / "t.csv", tmp_path / "m.json")
        assert refused.exit_code == 1
        first, *faults, command = refused.stderr.splitlines()
        assert first == "melc: 6 columns cannot be used as they are."
        assert [fault.split("'")[1] for fault in faults] == ["customer id", "empty", "bmi", "inf", "both", "when"]
        words = shlex.split(command.partition(": ")[2])
        done = call(*words[1:])
        assert (words[0], done.exit_code) == ("melc", 0), done.output

    def test_an_encoding_to_try(self, tmp_path):
        for encoding in ("cp1252", "utf-16"):
            (tmp_path / "t.csv").write_text(text_of(customers()).replace("Łódź", "€"), encoding=encoding)
            refused = fit(tmp_path / "t.csv", tmp_path / "m.json")
            command = refused.stderr.splitlines()[-1]
            assert f"--encoding {encoding}" in command
            assert call(*shlex.split(command.partition(": ")[2])[1:]).exit_code == 0

    def test_a_name_in_other_letters_is_suggested(self, tmp_path):
        (tmp_path / "t.csv").write_text(text_of(customers()))
        assert "no column 'Stay'; do you mean 'stays'?" in fit(tmp_path / "t.csv", "-", "-t", "Stay").stderr

    def test_faults_of_a_file_that_cannot_be_read_come_with_those_of_its_columns(self, tmp_path):
        columns = customers() | {"id": [f"c{k}" for k in range(300)], "bmi": ["?", *range(299)]}
        text = "Kundenliste\n" + text_of(columns, ";").replace("Łódź", "€")
        (tmp_path / "t.csv").write_text(text, encoding="cp1252")
        refused = fit(tmp_path / "t.csv", tmp_path / "m.json", "-t", "Stays")
        for fault in ("--encoding cp1252", "--skip-rows 1", "do you mean 'stays'", "column 'id'", "column 'bmi'"):
            assert fault in refused.stderr
        command = refused.stderr.splitlines()[-1]
        assert call(*shlex.split(command.partition(": ")[2])[1:]).exit_code == 0
        refused = fit(tmp_path / "t.csv", tmp_path / "m.json", "-t", "result")  # nobody knows what is meant
        assert "This command works" not in refused.stderr

    def test_a_column_that_counts_the_rows_is_noted(self, tmp_path):
        (tmp_path / "t.csv").write_text(text_of({"customer no": range(1, 301)} | customers()))
        assert "'customer no' counts the rows" in fit(tmp_path / "t.csv", tmp_path / "m.json").stderr

    def test_no_column_left(self):
        with pytest.raises(TableError, match="No columns are left"):
            contents_to_fit({})


class TestVerdict:
    """What a fit says first."""

    def test_a_good_model(self, tmp_path):
        (tmp_path / "t.csv").write_text(text_of(customers()))
        done = call("fit", tmp_path / "t.csv", "-t", "stays", "-o", tmp_path / "m")
        lines = done.stdout.splitlines()
        assert lines[1].startswith("balanced accuracy 0.9")
        assert lines[2].split() == ["held-out", "rows", "predicted", "no", "predicted", "yes", "recall"]
        assert "Of 100 new rows of class no it recognises about" in " ".join(lines)
        assert not any(line.startswith("!") for line in lines)
        assert lines[-2].startswith("divergence D = ")

    def test_a_note_of_the_fit_is_not_repeated_by_cross_validation(self, tmp_path):
        (tmp_path / "t.csv").write_text(text_of(customers(90) | {"same": [1] * 90}))
        done = call("fit", tmp_path / "t.csv", "-t", "stays", "--n-init", 1, "-o", tmp_path / "m")
        assert done.stderr.count("'same' is constant") == 1

    def test_no_better_than_chance(self, tmp_path):
        rng = np.random.default_rng(0)
        noise = {f"x{k}": rng.normal(size=120).round(3) for k in range(20)} | {"y": ["a", "b"] * 60}
        (tmp_path / "t.csv").write_text(text_of(noise))
        done = call("fit", tmp_path / "t.csv", "-t", "y", "--n-init", 1, "-o", tmp_path / "m", "--json")
        assert any("no better than guessing" in remark for remark in json.loads(done.stdout)["remarks"])

    def test_the_other_kind_of_model(self, tmp_path):
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, (240, 2)).round(3)
        inside = np.where((abs(x) < 0.7).all(axis=1), "in", "out")
        (tmp_path / "t.csv").write_text(text_of({"a": x[:, 0], "b": x[:, 1], "y": inside}))
        fit = ["fit", tmp_path / "t.csv", "-t", "y", "-f", "-o", tmp_path / "m"]
        assert "With --lines auto, the model is clearly better" in " ".join(call(*fit).stdout.split())
        assert "Without --lines" not in call(*fit, "--lines", "auto").stdout

    def test_a_copy_of_the_target(self, tmp_path):
        columns = customers()
        (tmp_path / "t.csv").write_text(text_of(columns | {"result": [text[0] for text in columns["stays"]]}))
        done = fit(tmp_path / "t.csv", tmp_path / "m.json")
        assert "! The column 'result' alone tells the class of every row." in done.stdout

    def test_few_rows(self, tmp_path):
        """Cross-validation needs three rows of a class, so that two are left outside of a fold."""
        few = {"x": [1, 2, 3, 14, 15], "stays": ["no", "no", "no", "yes", "yes"]}
        (tmp_path / "t.csv").write_text(text_of(few))
        done = call("fit", tmp_path / "t.csv", "-t", "stays", "-o", tmp_path / "m.json")
        assert done.exit_code == 0, done.output
        assert "no cross-validation: class yes has 2 rows; cross-validation needs at least 3" in done.stderr
        assert "5 rows, 1 feature;" in done.stdout

    def test_intervals_of_few_rows(self):
        line = {"number": 2, "levels": [], "minor": False, "shown_thresholds": ["1", "2"]}
        (remark,) = few_rows_remarks([line | {"counts": [[9, 9], [1, 1], [9, 9]]}])
        assert remark == "Along line 2, the interval from 1 to 2 rests on 2 training rows."
        assert few_rows_remarks([line | {"counts": [[9, 9]] * 3}]) == []


class TestCheck:
    def test_every_column_and_the_command(self, tmp_path):
        columns = {"nr": range(300)} | customers()
        columns |= {"id": [f"c{k}" for k in range(300)], "one": [5] * 300, "copy": [t[0] for t in columns["stays"]]}
        columns |= {
            "price": [german(k * 1000 / 7, 2) for k in range(300)],
            "odd, name": [f"1,{k}" for k in range(100, 400)],
        }
        (tmp_path / "t.csv").write_text(text_of(columns))
        found = call("check", tmp_path / "t.csv", "-t", "stays")
        assert found.exit_code == 0, found.output
        for name, text in {"nr": "counts the rows", "one": "is the same in all", "copy": "alone tells"}.items():
            assert f"- The column '{name}' {text}" in found.stdout
        command = shlex.split(found.stdout.splitlines()[-1])
        dropped = [command[k + 1] for k, word in enumerate(command) if word == "--drop"]
        assert dropped == ["nr", "id", "one", "odd, name", "copy"]
        done = call(*command[1:-1], tmp_path / "m", *FIT)
        assert done.exit_code == 0, done.output

    @pytest.mark.filterwarnings("ignore")
    def test_without_a_target_and_as_json(self, tmp_path):
        (tmp_path / "t.csv").write_text(text_of(customers()))
        found = json.loads(call("check", tmp_path / "t.csv", "--json").stdout)
        assert (found["rows"], found["target"], found["options"]) == (300, "stays", ["--target", "stays"])
        assert [column["holds"] for column in found["columns"]] == ["numbers"] * 3 + ["dates", "texts", "texts"]
        (tmp_path / "t.csv").write_text(text_of({name: customers()[name] for name in ("income", "share")}))
        assert "name the one to predict with --target" in call("check", tmp_path / "t.csv").stdout


def test_names_with_commas_between_them(tmp_path):
    (tmp_path / "t.csv").write_text(text_of(customers()))
    for option in (["--drop", "share,joined,town"], ["--keep-only", "income,age"]):
        assert fit(tmp_path / "t.csv", tmp_path / "m.json", *option).exit_code == 0
        model = from_json((tmp_path / "m.json").read_text())
        assert model.feature_names_in_.tolist() == ["income", "age"]


def test_german_numbers():
    assert german(1234567.891, 2) == "1.234.567,89"
