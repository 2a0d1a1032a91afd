"""``melc report``: a page for the rows of a file, and what it refuses."""

import hashlib
import json
import re

import pytest

from cli_cases import call, folder_with_model, patients

pytestmark = pytest.mark.slow

QUICK = ("--resamples", 0, "--cv", 2, "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return folder_with_model(tmp_path_factory.mktemp("report"))


def page_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["data"]


def test_a_page_has_the_columns_of_the_table_and_the_hash_of_the_file(folder, tmp_path):
    output = tmp_path / "r.html"
    made = call("report", folder / "model.json", folder / "patients.csv", "-o", output, *QUICK)
    assert (made.exit_code, made.output) == (0, "")
    data = page_of(output)
    kinds = {field["name"]: field["kind"] for field in data["fields"]}
    assert kinds == {"dose": "number", "age": "number", "sex": "choice"}
    card = dict(data["card"])
    assert card["Hash of the file"].endswith(hashlib.sha256((folder / "patients.csv").read_bytes()).hexdigest())
    assert card["Missing values"] == "none"
    assert card["Target"] == "outcome"
    assert "<title>Model of outcome</title>" in output.read_text(encoding="utf-8")
    assert data["stability"]["starts"][0]["refitted"]


def test_missing_and_unknown_values_are_counted(folder, tmp_path):
    frame = patients()
    frame.loc[:4, "age"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.json"
    fit = ("-t", "outcome", "--drop", "id", "--n-init", 1, "--no-cv")
    assert call("fit", tmp_path / "t.csv", *fit, "-o", model).exit_code == 0
    frame.loc[:1, "sex"] = "x"
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert call("report", model, tmp_path / "t.csv", "-o", tmp_path / "r.html", *QUICK).exit_code == 0
    data = page_of(tmp_path / "r.html")
    card = dict(data["card"])
    assert card["Missing values"] == "age 5"
    assert card["Unknown categories"].startswith("sex 2")


def test_rows_count_by_a_column_of_weights(folder, tmp_path):
    frame = patients().assign(weight=[0, 1] * 100)
    for name, table, weights in (("w", frame, ["--weights", "weight"]), ("plain", frame[1::2], [])):
        table.to_csv(tmp_path / "t.csv", index=False)
        done = call("report", folder / "model.json", tmp_path / "t.csv", "-o", tmp_path / name, *weights, *QUICK)
        assert done.exit_code == 0, done.output
    weighted, plain = (page_of(tmp_path / name) for name in ("w", "plain"))
    assert weighted["groups"] == plain["groups"]
    assert dict(weighted["card"])["Rows"].startswith("100")


def test_standard_output_target_and_title(folder, tmp_path):
    frame = patients().rename(columns={"outcome": "result"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ("--target", "result", "--title", "A & B", "--rows", 2)
    made = call("report", folder / "model.json", tmp_path / "t.csv", "-o", "-", *options, *QUICK)
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("<!doctype html>")
    assert "<title>A &amp; B</title>" in made.stdout


def test_what_is_refused_is_one_line_and_leaves_nothing(folder, tmp_path):
    model, table = folder / "model.json", folder / "patients.csv"
    (tmp_path / "old.html").write_text("old")
    (tmp_path / "empty.csv").write_text("dose,age,sex,outcome\n")
    (tmp_path / "short.csv").write_text("dose,outcome\n1,well\n")
    (tmp_path / "other.csv").write_text("dose,age,sex,outcome\n1,2,f,dead\n")
    cases = [
        ((model, table, "-o", tmp_path / "old.html"), "already exists; use --force"),
        ((model, table, "-o", tmp_path / "no" / "r.html"), "does not exist"),
        ((table, table, "-o", tmp_path / "r.html"), "patients.csv"),
        ((model, tmp_path / "empty.csv", "-o", tmp_path / "r.html"), "no rows"),
        ((model, tmp_path / "short.csv", "-o", tmp_path / "r.html"), "age"),
        ((model, tmp_path / "other.csv", "-o", tmp_path / "r.html"), "'dead', which is not a class"),
        ((model, table, "-o", tmp_path / "r.html", "--target", "sex"), "which is not a class"),
        (
            (model, table, "-o", tmp_path / "r.html", "--resamples", 5),
            "--resamples=5 should be a whole number of at least 20",
        ),
    ]
    before = sorted(path.name for path in tmp_path.iterdir())
    for arguments, message in cases:
        made = call("report", *arguments, "-q")
        assert made.exit_code != 0
        assert message in made.output
        assert "Traceback" not in made.output
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "old.html").read_text() == "old"
