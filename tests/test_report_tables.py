"""The page about a model of a table: what it counts, offers in its form, draws and says of missing values."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from melc import MELC, AdditiveMELC
from melc.fit.intake import coded_rows
from melc.report import report_html
from melc.report.card import card_of, rows_hash
from melc.report.counts import counted, decisions_of, groups_of
from melc.report.features import line_pictures
from melc.report.form import MOST_CHOICES, form_of
from melc.report.heldout import held_out, scores_of
from melc.report.subject import subject_of
from report_cases import QUICK, fitted_to_table, little_boosting, silent  # noqa: F401
from tables_data import JOBS, SIZES, awkward_rows, mixed_frame

COLUMNS = ["age", "income", "job", "size", "ok", "day", "code"]


def subject(kind="columns", n_classes=2):
    return subject_of(*fitted_to_table(kind, n_classes), max_rows=1000, seed=0)


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["data"]


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["MELC", "pairs"])
def test_a_page_of_a_table_is_complete(kind, n_classes):
    model, X, y = fitted_to_table(kind, n_classes)
    text = report_html(model, X, y, n_resamples=20, cv=2, rows=5)
    data = data_of(text)
    assert len(text.encode()) <= 300_000
    assert {field["name"] for field in data["fields"]} == set(COLUMNS)
    assert len(data["lines"]) == len(model.lines_)
    assert [each["name"] for each in data["scores"]["models"]][1:] == ["logistic regression", "gradient boosting"]
    assert "20 resamples" in data["weights"]["text"]
    assert data["document"] is not None
    assert "job" in data["rule"]
    assert len(data["rows"]) == 5


def test_the_form_has_lists_of_levels_and_ranks_dates_and_numbers():
    about = subject()
    fields = {field["name"]: field for field in form_of(about, 0)["fields"]}
    kinds = dict.fromkeys(["age", "income"], "number") | dict.fromkeys(["job", "size", "ok", "code"], "choice")
    kinds |= {"day": "date", "size": "rank"}
    assert {name: field["kind"] for name, field in fields.items()} == kinds
    shown = {name: [label for label, _ in field["choices"]] for name, field in fields.items()}
    assert set(shown["job"]) == {*JOBS, '""', "(missing)", "日本\\nx"} - {"", "日本\nx"}
    assert shown["size"] == [*SIZES, "(missing)"]
    assert set(shown["ok"]) == {"True", "False", "(missing)"}
    for name in ("job", "code"):
        category = about.model.columns_.categories[COLUMNS.index(name)]
        for _, code in fields[name]["choices"]:
            assert code is None or 0 <= code < category.n_levels
    assert fields["ok"]["choices"][-1] == ("(missing)", None)
    most = pd.Series(about.X["job"]).value_counts().index[0]
    assert {code: label for label, code in fields["job"]["choices"]}[fields["job"]["typical"]] == (most or '""')


def test_rows_with_levels_that_are_not_listed_cannot_be_chosen():
    rng = np.random.default_rng(0)
    town = np.minimum(rng.geometric(0.03, 2000), 100)
    frame = pd.DataFrame({"town": [f"town {k}" for k in town], "size": rng.normal(size=2000)})
    y = rng.random(2000) < np.where(town % 2, 0.8, 0.2)
    data = data_of(report_html(AdditiveMELC(random_state=0).fit(frame, y), frame, y, rows=40, **QUICK))
    (field,) = [field for field in data["fields"] if field["name"] == "town"]
    assert len(field["choices"]) == MOST_CHOICES + 1
    assert field["n_hidden"] == len(set(town)) - MOST_CHOICES
    offered = {code for _, code in field["choices"]}
    place = data["fields"].index(field)
    assert 0 < len(data["rows"]) <= 40
    assert {row[place] for row in data["rows"]} <= offered


def test_the_counts_are_those_of_the_decisions():
    model, X, y = fitted_to_table("MELC", 2)
    about = subject_of(model, X, y, max_rows=1000, seed=0)
    line = counted(about)
    z = model.transform(X)[:, 0]
    codes = np.array(line["codes"])[np.searchsorted(line["thresholds"], z, side="right")]
    assert (model.classes_[codes] == model.predict(X)).all()
    assert np.sum(line["counts"]) == len(y)


def test_errors_are_counted_for_levels_ranks_and_missing_values():
    about = subject()
    found = held_out(about, 2, 0, silent)
    groups = {each["name"]: {name: totals for name, totals, _ in each["rows"]} for each in groups_of(about, found)}
    assert sum(groups["job"]["farmer"]) == (about.X["job"] == "farmer").sum()
    assert list(groups["size"])[:3] == SIZES
    assert sum(groups["age"]["(missing)"]) == about.X["age"].isna().sum()
    assert np.sum(decisions_of(about, found)["axes"][0]["cells"][3::4]) == len(about.codes)


def test_what_columns_without_a_field_add_is_that_of_typical_values(monkeypatch):
    monkeypatch.setattr("melc.report.form.MOST_FIELDS", 2)
    about = subject("pairs")
    answers = form_of(about, 0)["answers"]
    assert len(answers["features"]) == 2
    typical = pd.DataFrame({name: [about.X[name].mode(dropna=False)[0]] for name in ("job", "size", "ok", "code")})
    typical["size"] = typical["size"].astype(about.X["size"].dtype)
    for name in ("age", "income", "day"):
        typical[name] = [about.X[name].median()]
    model = fitted_to_table("pairs", 2)[0]
    expected = model.line_log_odds(typical[COLUMNS])[0]
    coded = coded_rows(model, typical[COLUMNS])[0][answers["features"]]
    for k, (line, curve) in enumerate(zip(answers["lines"], answers["log_odds"][0]["curves"], strict=True)):
        columns = zip(coded, answers["columns"], strict=True)
        quantities = [value if each["scores"] is None else each["scores"][int(value)] for value, each in columns]
        z = line["rest"] + line["weights"] @ quantities
        if model.lines_[k].reads_codes:
            z = line["rest"] if line["reads"] is None else coded[line["reads"]]
        assert np.interp(z, curve["knots"], curve["log_odds"]) == pytest.approx(expected[k])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pictures_have_levels_dates_ranks_and_missing_values(n_classes):
    about = subject("columns", n_classes)
    pictures = {picture["terms"]: picture for picture in line_pictures(about, None)}
    assert set(pictures) == set(COLUMNS)
    assert {name: picture["scale"]["kind"] for name, picture in pictures.items()} == {
        **dict.fromkeys(["job", "ok", "code"], "level"),
        **{"age": "number", "income": "number", "day": "date", "size": "rank"},
    }
    assert pictures["size"]["scale"]["labels"] == SIZES
    levels = pictures["job"]["levels"]
    assert dict(zip(levels["names"], levels["counts"], strict=True))["farmer"] == (about.X["job"] == "farmer").sum()
    assert (
        np.shape(levels["values"]) == np.shape(levels["errors"]) == (1 if n_classes == 2 else 3, len(levels["names"]))
    )
    assert pictures["age"]["n_missing"] == about.X["age"].isna().sum()
    assert len(pictures["age"]["missing"]) == (1 if n_classes == 2 else 3)
    assert pictures["income"]["missing"] is None


def test_sums_list_the_points_of_levels():
    about = subject("MELC")
    (picture,) = line_pictures(about, None)
    assert "score of job" in picture["terms"]
    (points,) = [each for each in picture["points"] if each["name"] == "job"]
    line, category = about.model.lines_[0], about.model.columns_.categories[COLUMNS.index("job")]
    expected = line.direction[COLUMNS.index("job")] * category.scores
    np.testing.assert_allclose([value for _, value in points["rows"]], np.sort(expected)[::-1], rtol=1e-3, atol=1e-12)


def test_the_card_counts_missing_values_and_unknown_levels():
    model, X, y = fitted_to_table("columns", 2)
    card = dict(card_of(subject_of(model, X, y, max_rows=1000, seed=0)))
    counts = X.isna().sum()
    assert card["Missing values"] == ", ".join(f"{name} {counts[name]}" for name in X if counts[name])
    assert "Unknown categories" not in card
    rows = awkward_rows(X)
    card = dict(card_of(subject_of(model, rows, y, max_rows=1000, seed=0)))
    assert f"age {rows['age'].isna().sum()}" in card["Missing values"]
    assert f"job {(rows['job'] == 'unheard of').sum()}" in card["Unknown categories"]
    assert "they say nothing about the class" in card["Unknown categories"]


def test_polars_frames_and_arrays_with_missing_values():
    pl = pytest.importorskip("polars")
    frame, y = mixed_frame(200)
    frame = frame.drop(columns="size")
    model = MELC(n_init=1, random_state=0).fit(frame, y)
    pandas, polars = (subject_of(model, X, y, max_rows=1000, seed=0) for X in (frame, pl.from_pandas(frame)))
    assert rows_hash(pandas) == rows_hash(polars)
    found = [scores_of(each, held_out(each, 2, 0, silent))["models"][0]["folds"] for each in (pandas, polars)]
    assert found[0] == found[1]
    X = frame[["age", "income"]].to_numpy()
    data = data_of(report_html(AdditiveMELC(random_state=0).fit(X, y), X, y, **QUICK))
    assert dict(data["card"])["Missing values"] == f"x0 {np.isnan(X[:, 0]).sum()}"
    codes = frame[["code", "income"]].to_numpy(dtype=float)
    model = AdditiveMELC(random_state=0, categorical_features=[0]).fit(codes, y)
    fields = data_of(report_html(model, codes, y, **QUICK))["fields"]
    assert {field["name"]: field["kind"] for field in fields} == {"x0": "choice", "x1": "number"}
