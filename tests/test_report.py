"""The page about a model: its size, what it counts and scores, what it refuses, and what it does not contain."""

import base64
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from melc import MELC, AdditiveMELC, cauchy_schwarz_divergence
from melc.export import export_text
from melc.model.curve import Curve
from melc.report import Report, report_html, show_report, stability, write_report
from melc.report.card import card_of
from melc.report.counts import counted, decisions_of, groups_of
from melc.report.features import line_pictures
from melc.report.form import MOST_FIELDS, form_of
from melc.report.heldout import HeldOut, Predictions, held_out, in_bins, scores_of
from melc.report.storage import page_json, visible, with_arrays
from melc.report.subject import subject_of
from melc.report.verdict import verdict_of
from report_cases import ATTACKS, QUICK, bands, fitted, little_boosting, one_line_of, silent  # noqa: F401

MOST_BYTES = 300_000


def data_of(text):
    """Return the data of a page, arrays as lists of their places."""
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])["data"]


def subject(additive=False, n_classes=2, max_rows=10_000, **options):
    model, X, y = fitted(additive, n_classes, **options)
    return subject_of(model, X, y, max_rows=max_rows, seed=0)


# ------------------------------------------------------------------------------------------------------------ the page


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("additive", [False, True])
def test_a_page_is_complete_small_and_refers_to_nothing(additive, n_classes, tmp_path):
    model, X, y = fitted(additive, n_classes)
    path = write_report(model, X, y, tmp_path / "r.html", n_resamples=20, cv=2)
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) <= MOST_BYTES
    assert "default-src 'none'" in text
    assert not re.search(r'(?:src|href)="(?!#)|url\(|@import|https?://(?!www\.w3\.org)', text)
    data = data_of(text)
    assert len(data["decisions"]["axes"]) == (1 if n_classes == 2 else 3)
    assert (data["line"] is None) == (len(model.lines_) > 1)
    assert data["verdict"]["text"][0].startswith("On new rows it is right for")
    assert len(data["answers"]["lines"]) == len(model.lines_)
    assert len(data["lines"]) == len(model.lines_)
    assert [model["name"] for model in data["scores"]["models"]][1:] == ["logistic regression", "gradient boosting"]
    assert data["document"] is not None
    assert data["sql"].startswith(("SELECT", "WITH"))
    names = [name for name, _ in data["card"]]
    assert {"Rows", "Features", "Classes", "Missing values", "Hash of the rows", "Settings", "Versions"} <= set(names)
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_parts_that_are_too_long_are_left_out_with_a_reason(monkeypatch):
    model, X, y = fitted(n=200)
    full = data_of(report_html(model, X, y, **QUICK))
    assert None not in (full["answers"], full["document"], full["sql"])
    for limit in ("_LARGEST_FORM", "_LONGEST_EXPORT", "_LONGEST_RULE"):
        monkeypatch.setattr(f"melc.report.contents.{limit}", 200)
    data = data_of(report_html(model, X, y, **QUICK))
    assert (data["answers"], data["fields"], data["document"], data["sql"]) == (None, [], None, None)
    assert "to_json" in data["document_why"]
    assert "to_sql" in data["sql_why"]
    assert "more lines; melc.export.export_text(model) has all" in data["rule"]


def test_the_same_seed_gives_the_same_page():
    model, X, y = fitted(n=200)
    first, second = (report_html(model, X, y, **QUICK) for _ in range(2))
    assert re.sub(r"\d\d:\d\d UTC", "", first) == re.sub(r"\d\d:\d\d UTC", "", second)


def test_no_row_of_the_data_is_on_the_page_unless_asked_for():
    model, X, y = fitted(n=200)
    X = X.round(6)
    data = data_of(report_html(model, X, y, **QUICK))
    assert data["rows"] == []
    values = set(X.to_numpy().ravel().tolist())
    numbers = {float(text) for text in re.findall(r"-?\d+\.\d+", json.dumps(data))}
    assert {value for value in numbers & values if len(f"{value}".strip("-0.").replace(".", "")) > 4} == set()
    rows = data_of(report_html(model, X, y, rows=3, **QUICK))["rows"]
    order = [field["name"] for field in data["fields"]]
    assert rows == X[order].iloc[:3].to_numpy().tolist()


def test_no_line_of_the_rule_is_cut():
    model, X, y = fitted(n=150)
    names = [f"{name} {'x' * 300}" for name in X]
    model.feature_names_in_ = np.array(names, dtype=object)
    shown = data_of(report_html(model, X.set_axis(names, axis=1), y, **QUICK))["rule"]
    assert shown == export_text(model, digits=5).rstrip("\n")


def test_steps_are_printed_if_asked(capsys):
    model, X, y = fitted(n=150)
    report_html(model, X, y, verbose=1, **QUICK)
    assert capsys.readouterr().out.splitlines()[0] == "counting rows"


@pytest.mark.parametrize("additive", [False, True])
def test_intervals_come_from_resamples_and_the_page_says_so(additive):
    model, X, y = fitted(additive, n=150, max_lines=2)
    data = data_of(report_html(model, X, y, n_resamples=20, cv=2))
    row = data["weights"]["figures"][0]["rows"][0]
    assert row["low"] < row["value"] < row["high"]
    assert "20 resamples" in data["weights"]["text"]
    assert len(data["stability"]["table"]["rows"]) == sum(len(line.thresholds) for line in model.lines_)
    several = len(model.lines_) > 1
    words = "a line of the same features" if several else "nearly the same direction"
    assert any(words in text for text in data["stability"]["text"])
    assert all((line["share"] is None) == (not several) for line in data["lines"])


# -------------------------------------------------------------------------------------------------------------- counts


def test_the_counts_are_those_of_numpy():
    about = subject()
    line, z = counted(about), about.model.transform(about.X)[:, 0]
    edges, counts = line["edges"], np.array(line["counts"])
    assert np.all(np.diff(edges) > 0)
    assert set(line["thresholds"]) <= set(edges)
    for k in range(0, len(edges), 17):
        below = counts[:, : k + 1].sum(axis=1).tolist()
        assert below == [np.sum(z[about.codes == code] < edges[k]) for code in line["sides"]]
    codes = np.array(line["codes"])[np.searchsorted(line["thresholds"], z, side="right")]
    assert np.array_equal(about.model.classes_[codes], about.model.predict(about.X))
    odds = np.interp(z, edges, line["log_odds"][1])
    inside = (z >= edges[0]) & (z <= edges[-1])
    np.testing.assert_allclose(odds[inside], about.model.decision_function(about.X)[inside], atol=0.1)
    assert line["log_odds"][0] is None  # of the first of two classes, zero


@pytest.mark.parametrize("n_classes", [3, 20])
def test_the_only_line_of_several_classes_is_one_axis_of_all_of_them(n_classes):
    model, X, y = one_line_of(n_classes)
    assert (model.predict(X) == y).all()
    axis = counted(subject_of(model, X, y, max_rows=1000, seed=0))
    shown = min(n_classes, 12)
    assert axis["sides"] == [*([None] if n_classes > 12 else []), *range(shown)]
    thresholds, codes = axis["thresholds"], np.array(axis["codes"])
    assert len(thresholds) == n_classes - 1
    sides = [None if side is None else model.classes_[side] for side in axis["sides"]]
    for x, label in zip(X[:, 0], y, strict=True):
        side = sides[codes[np.searchsorted(thresholds, x, side="right")]]
        assert side == (label if label in sides else None)
    leading = np.argmax(axis["log_odds"], axis=0)
    middles = np.searchsorted(axis["edges"], np.arange(n_classes) + 0.5)
    assert [sides[k] for k in leading[middles][:shown]] == model.classes_[:shown].tolist()
    assert np.sum(axis["counts"]) == len(X)


# ----------------------------------------------------------------------------------------------------------- decisions


def matrix_at(axis, sides, place):
    """Return the counts of true and predicted sides if a class is predicted from an edge on."""
    found = np.zeros((len(sides), len(sides)))
    for at, true, other, n in np.reshape(axis["cells"], (-1, 4)):
        found[int(true), sides.index(axis["code"]) if at > place else int(other)] += n
    return found.tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("additive", [False, True])
def test_held_out_decisions_are_counted_as_predicted_and_with_other_priors(additive, n_classes):
    about = subject(additive, n_classes, n=300)
    found = held_out(about, 2, 0, silent)
    data = decisions_of(about, found)
    codes, own = found.codes, np.log(found.own.probabilities)
    for axis in data["axes"]:
        for place in range(0, len(axis["edges"]), 13):
            shifted = own - axis["edges"][place] * (np.arange(n_classes) == axis["code"])
            predicted = np.argmax(shifted, axis=1)
            expected = [[np.sum((codes == a) & (predicted == b)) for b in range(n_classes)] for a in range(n_classes)]
            assert matrix_at(axis, data["sides"], place) == expected
        at_first = int(np.searchsorted(axis["edges"], 0, side="right"))
        table = [[np.sum((codes == a) & (found.own.codes == b)) for b in range(n_classes)] for a in range(n_classes)]
        assert matrix_at(axis, data["sides"], at_first) == table
    np.testing.assert_allclose(data["mix"], np.bincount(codes) / len(codes))


def test_the_matrix_has_all_of_several_classes():
    model, X, y = one_line_of(20)
    about = subject_of(model, X, y, max_rows=1000, seed=0)
    nothing = HeldOut(about.codes.astype(np.int64), np.ones(len(y)), [], {}, "no rows to spare")
    data = decisions_of(about, nothing)
    assert data["sides"] == list(range(20))
    first = int(np.searchsorted(data["axes"][0]["edges"], 0, side="right"))
    assert matrix_at(data["axes"][0], data["sides"], first) == (20 * np.eye(20)).tolist()


def test_errors_are_counted_in_groups_of_rows():
    about = subject(n=300)
    found = held_out(about, 2, 0, silent)
    groups = {each["name"]: each["rows"] for each in groups_of(about, found)}
    assert set(groups) == {"dose", "age", "weight", "height"}
    right = found.own.codes == found.codes
    for name, rows in groups.items():
        values = about.X[:, about.names.index(name)]
        cuts = np.quantile(values, [0.25, 0.5, 0.75], method="nearest")
        assert rows[0][0] == f"up to {float(f'{cuts[0]:.4g}'):.6g}"
        for k, (_, totals, correct) in enumerate(rows):
            inside = np.searchsorted(cuts, values) == k
            assert totals == [np.sum(inside & (found.codes == code)) for code in (0, 1)]
            assert correct == [np.sum(inside & right & (found.codes == code)) for code in (0, 1)]


def decided(about, right):
    """Return held-out predictions that are right where they are to be."""
    codes = about.codes.astype(np.int64)
    predictions = Predictions(np.full((len(codes), 2), 0.5), np.where(right, codes, 1 - codes))
    others = Predictions(predictions.probabilities, codes)
    return HeldOut(codes, np.ones(len(codes)), [], {"MELC": predictions, "logistic regression": others})


def test_the_verdict_says_what_to_expect_and_what_to_distrust():
    about = subject(n=300)
    rng = np.random.default_rng(0)
    verdicts = {}
    for share in (0.5, 0.8, 1.0):
        found = decided(about, rng.random(300) < share)
        accuracy = stability.accuracy_on_new_rows(found)
        verdicts[share] = verdict_of(about, found, accuracy, None, groups_of(about, found))
    assert "no better than chance" in verdicts[0.5]["banner"]
    assert "copy" in verdicts[1.0]["banner"]
    assert verdicts[0.8]["banner"] == ""
    assert re.search(r"right for \d\d% of class inner and \d\d% of class outer", verdicts[0.8]["text"][0])
    assert "logistic regression (100.0%) is clearly better" in verdicts[0.8]["text"][1]
    bad = about.X[:, 0] > np.quantile(about.X[:, 0], 0.75, method="nearest")
    found = decided(about, ~bad | (rng.random(300) < 0.2))
    distrust = verdict_of(about, found, stability.accuracy_on_new_rows(found), None, groups_of(about, found))[
        "distrust"
    ]
    assert any(
        re.match(r"dose above \S+: of \d+ rows of class outer, only \d+% are recognised", text) for text in distrust
    )


def test_few_rows_and_rare_thresholds_are_distrusted():
    about = subject(n=300)
    line = about.model.lines_[0]
    counts = line.counts.copy()
    counts[-1] = [1, 1]
    about.model.lines_ = [replace(line, counts=counts)]
    found = decided(about, np.random.default_rng(0).random(300) < 0.8)
    rare = SimpleNamespace(thresholds=[[SimpleNamespace(value=1.25, share=0.3)]], minor=[False])
    distrust = verdict_of(about, found, stability.accuracy_on_new_rows(found), rare, [])["distrust"]
    assert f"Line 1, above {line.thresholds[-1]:.4g}: what the model says there rests on 2 training rows." in distrust
    assert "Line 1: the threshold 1.25 is found in less than half of the resamples." in distrust


def test_weights_of_rows_count_in_shares_scores_and_fits(monkeypatch):
    model, X, y = fitted(n=200)
    weights = np.where(y == "inner", 3.0, 1.0)
    weights[:20] = 0
    seen = []
    fit = MELC.fit

    def noted(self, X, y, sample_weight=None):
        seen.append(sample_weight)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(MELC, "fit", noted)
    data = data_of(report_html(model, X, y, sample_weight=weights, **QUICK))
    assert (data["n_rows"], data["weighted"]) == (180, True)
    assert {weight for each in seen for weight in each} == {1.0, 3.0}
    inner = np.sum(weights[y == "inner"]) / weights.sum()
    np.testing.assert_allclose(subject_of(model, X, y, max_rows=99, seed=0, sample_weight=weights).mix[0], inner)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\)"):
        report_html(model, X, y, sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match=r"weights of class 'inner' add up to .*e-.*scale the weights"):
        report_html(model, X, y, sample_weight=np.full(len(y), 1e-300), **QUICK)


# ------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("additive", [False, True])
def test_the_page_computes_with_the_formulas_of_the_model(additive, n_classes):
    about = subject(additive, n_classes)
    answers = form_of(about, 0)["answers"]
    weights = np.array([line["weights"] for line in answers["lines"]])
    z = about.X[:, answers["features"]] @ weights.T + [line["rest"] for line in answers["lines"]]
    for each, odds in zip(answers["log_odds"], np.atleast_2d(about.model.decision_function(about.X).T), strict=True):
        curves = [Curve(curve["knots"], curve["log_odds"]) for curve in each["curves"]]
        adds = [curve.at(z[:, k].copy()) for k, curve in enumerate(curves)]
        assert len(adds) == len(about.model.lines_)
        np.testing.assert_allclose(np.sum(adds, axis=0) + each["constant"], odds, rtol=1e-9, atol=1e-12)


def test_curves_are_drawn_with_fewer_knots_but_never_computed_with():
    about = subject()
    ((picture,), (line,)) = line_pictures(about, None), about.model.lines_
    (drawn,), (own,) = picture["curves"], line.curves
    assert len(drawn["knots"]) < len(own.knots) / 2
    error = np.interp(own.knots, drawn["knots"], drawn["log_odds"]) - own.log_odds
    assert np.abs(error).max() < 0.005 * np.abs(own.log_odds).max()
    assert form_of(about, 0)["answers"]["log_odds"][0]["curves"][0]["knots"] is own.knots


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pictures_have_the_curves_of_all_classes_with_their_standard_errors(n_classes):
    about = subject(additive=True, n_classes=n_classes)
    for picture in line_pictures(about, None):
        number = int(re.match(r"Line (\d+)", picture["title"])[1])
        line = about.model.lines_[number - 1]
        assert picture["classes"] == list(range(n_classes))
        assert (len(picture["curves"]), len(picture["densities"])) == (len(line.curves), n_classes)
        for drawn, curve, errors in zip(picture["curves"], line.decisive, line.errors, strict=True):
            slack = 0.005 * np.abs(curve.log_odds).max()
            for sign in (0, 1):
                values = np.interp(curve.knots, drawn["knots"], drawn["log_odds"] + sign * drawn["errors"])
                np.testing.assert_allclose(values, curve.log_odds + sign * errors, atol=slack)


def test_many_classes_have_few_curves_in_a_picture_and_no_bands():
    model, X, y = one_line_of(20)
    model.lines_ = [replace(model.lines_[0], errors=tuple(np.ones(20) for _ in range(20)))]
    (picture,) = line_pictures(subject_of(model, X, y, max_rows=1000, seed=0), None)
    assert picture["classes"] == list(range(12))
    assert [curve["errors"] for curve in picture["curves"]] == [None] * 12


def test_minor_lines_come_last():
    about = subject(additive=True, n_classes=3)
    assert len(about.model.lines_) > 2
    first = max(about.model.lines_, key=lambda line: line.importance)
    about.model.lines_ = [replace(line, minor=line is first) for line in about.model.lines_]
    shown = line_pictures(about, None)
    assert [picture["minor"] for picture in shown] == [False] * (len(shown) - 1) + [True]


def test_lines_are_numbered_from_one_and_the_most_important_is_first():
    about = subject(additive=True, n_classes=3)
    shown = line_pictures(about, None)
    assert [each["importance"] for each in shown] == sorted((each["importance"] for each in shown), reverse=True)
    lines = about.model.lines_
    assert {each["title"] for each in shown} == {f"Line {k}:" for k in range(1, 1 + len(lines))}
    directions = subject(n_classes=3)
    titles = {f"Line {k} (found for {label}):" for k, label in enumerate(directions.labels, start=1)}
    assert {each["title"] for each in line_pictures(directions, None)} == titles


# -------------------------------------------------------------------------------------------------------------- scores


def test_the_scores_are_those_of_cross_validation():
    about = subject(n=300)
    found = scores_of(about, held_out(about, 3, 0, silent))
    y = about.model.classes_[about.codes]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(about.X, y))
    predicted = cross_val_predict(about.estimator, about.X, y, cv=folds)
    expected = [balanced_accuracy_score(y[test], predicted[test]) for _, test in folds]
    assert [fold[0] for fold in found["models"][0]["folds"]] == pytest.approx(expected)
    assert sum(row[2] for row in found["calibration"]) == 300


def test_scores_and_resamples_of_many_rows_use_a_sample_and_say_so():
    about = subject(n=3000, max_rows=200)
    assert 150 <= len(about.sample) <= 250
    text = scores_of(about, held_out(about, 2, 0, silent))["text"]
    assert f"a random sample of {len(about.sample)} of the 3,000 rows" in text


@pytest.mark.parametrize("n_rare", [2, 3, 4])
def test_every_fold_leaves_two_rows_of_a_rare_class_to_fit_to(n_rare):
    about = subject(n=60)
    rare = np.flatnonzero(about.codes == 0)[n_rare:]
    found = held_out(replace(about, sample=np.setdiff1d(about.sample, rare)), 2, 0, silent)
    assert len(found.folds) == (0, 3, 2)[n_rare - 2]
    assert ("Class inner has 2 rows, too few" in found.reason) == (n_rare == 2)


def test_boosting_is_given_few_values_between_which_it_decides_as_between_all():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[:, 1], X[::7, 2] = np.round(X[:, 1], 1), np.nan
    y, binned = X[:, 0] + X[:, 1] ** 2 > 0.5, in_bins(X)
    assert all(len(np.unique(column[~np.isnan(column)])) <= 255 for column in binned.T)
    expected, found = (
        HistGradientBoostingClassifier(max_iter=20).fit(rows, y).predict_proba(rows) for rows in (X, binned)
    )
    np.testing.assert_array_equal(found, expected)


def test_a_class_of_one_row_has_no_cross_validation():
    model, X, y = fitted(n=200, n_classes=3)
    keep = np.concatenate([np.flatnonzero(y != "high"), np.flatnonzero(y == "high")[:1]])
    data = data_of(report_html(model, X.iloc[keep], y[keep], **QUICK))
    assert data["scores"]["reason"].startswith("Class high has 1 row, too few for cross-validation")
    assert data["verdict"]["banner"] == data["scores"]["reason"]
    assert not data["decisions"]["held_out"]
    assert data["groups"] == []


# ----------------------------------------------------------------------------------------------------------- stability


@pytest.mark.parametrize("scaled", [False, True])
def test_starts_that_led_to_the_chosen_direction_are_counted(scaled):
    X, y = bands(300)
    model = MELC(n_init=5, random_state=0, selection="divergence")
    model = make_pipeline(StandardScaler(), model) if scaled else model
    model.fit(X * [1, 100, 1, 0.01], y)
    about = subject_of(model, X * [1, 100, 1, 0.01], y, max_rows=1000, seed=0)
    (found,) = stability.stability_of(about, None)["starts"]
    inner = model[-1] if scaled else model
    best = [run for run in inner.results_ if run.divergence > 0.99 * inner.divergence_]
    assert found["n_same"] == len(best) > 0
    assert not found["linear"]


# ---------------------------------------------------------------------------------------------------------------- card


def test_the_card_recognises_the_rows_of_the_fit():
    model, X, y = fitted(n=300)
    card = dict(data_of(report_html(model, X, y, **QUICK))["card"])
    assert card["Certificate"].endswith("as in the fit")
    here = cauchy_schwarz_divergence(X, y, model.coef_[0])
    assert float(re.search(r"divergence (\S+)", card["Certificate"])[1]) == pytest.approx(here, abs=2e-6)
    others = dict(data_of(report_html(model, X[:200], y[:200], **QUICK))["card"])
    assert "other rows" in others["Certificate"]
    assert others["Hash of the rows"] != card["Hash of the rows"]


def test_rows_without_a_class_have_no_certificate_for_it():
    model, X, y = fitted(n=200, n_classes=3)
    kept = y != "high"
    card = dict(card_of(subject_of(model, X[kept], y[kept], max_rows=1000, seed=0)))
    assert card["Certificate. Line 1 (found for high)"] == "none: the class of this line has no rows here"
    assert "certified" in card["Certificate. Line 2 (found for low)"]


def test_the_certificate_counts_rows_by_their_weights():
    X, y = bands(200)
    weights = np.random.default_rng(0).integers(1, 4, 200)
    model = MELC(n_init=1, random_state=0).fit(X, y, sample_weight=weights)
    card = dict(card_of(subject_of(model, X, y, max_rows=1000, seed=0, sample_weight=weights)))
    assert card["Certificate"].endswith("as in the fit")


def test_the_hash_does_not_depend_on_how_rows_are_stored():
    X, y = bands(200)
    plain = MELC(n_init=1, random_state=0).fit(X.to_numpy(), y)
    storages = [X.to_numpy(), np.asfortranarray(X), sparse.csr_matrix(X), X.to_numpy().tolist()]
    hashes = {dict(data_of(report_html(plain, rows, y, **QUICK))["card"])["Hash of the rows"] for rows in storages}
    assert len(hashes) == 1


# ------------------------------------------------------------------------------------------- kinds of models and rows


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_a_pipeline_of_scalers_is_shown_in_raw_units(scaler):
    X, y = bands(200)
    pipeline = make_pipeline(scaler, MELC(n_init=1, random_state=0)).fit(X * 10 + 5, y)
    data = data_of(report_html(pipeline, X * 10 + 5, y, **QUICK))
    typical = {field["name"]: field["typical"] for field in data["fields"]}
    np.testing.assert_allclose(
        [typical[name] for name in X], (X * 10 + 5).quantile(0.5, interpolation="nearest"), rtol=1e-3
    )
    search = GridSearchCV(pipeline, {"melc__gamma": [1.0]}, cv=2).fit(X * 10 + 5, y)
    assert data_of(report_html(search, X * 10 + 5, y, **QUICK))["line"] == data["line"]


def test_many_features_are_kept_at_their_medians():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2000)) + 3
    y = X[:, 0] + X[:, 1] > 6
    X = pd.DataFrame(X, columns=[f"{'long ' * 20}{j}" for j in range(2000)])
    model = MELC(n_init=1, random_state=0, shrinkage="auto").fit(X, y)
    text = report_html(model, X, y, cv=2)
    data = data_of(text)
    assert len(text.encode()) <= MOST_BYTES
    assert len(data["fields"]) == MOST_FIELDS
    assert data["stability"]["text"][-1].startswith("No resamples were drawn. With more than 500 features")
    assert data["weights"]["figures"][0]["hidden"] == 1980
    others = np.setdiff1d(np.arange(2000), data["answers"]["features"])
    rest = model.coef_[0, others] @ np.median(X, axis=0)[others]
    assert data["answers"]["lines"][0]["rest"] == pytest.approx(rest)
    assert data["document"] is None
    assert "to_json" in data["document_why"]
    assert "gradient boosting" not in [model["name"] for model in data["scores"]["models"]]


def test_labels_of_all_types_have_a_page():
    X, y = bands(150)
    for labels in (y == "inner", (y == "inner").astype(int), y.astype(object), np.where(y == "inner", 2**60, 1)):
        model = MELC(n_init=1, random_state=0).fit(X, labels)
        data = data_of(report_html(model, X, labels, **QUICK))
        assert data["classes"] == [str(label) for label in model.classes_.tolist()]
    assert "round" in data["document_why"]


def test_priors_change_how_the_classes_count():
    X, y = bands(200)
    for priors, word in ((None, "equally"), ("empirical", "by the priors"), ([0.3, 0.7], "by the priors")):
        model = MELC(n_init=1, random_state=0, priors=priors).fit(X, y)
        data = data_of(report_html(model, X, y, **QUICK))
        assert word in data["scores"]["text"]
    np.testing.assert_allclose(subject_of(model, X, y, max_rows=99, seed=0).priors, [0.3, 0.7])


# ------------------------------------------------------------------------------------------------------------ refusals


def test_what_cannot_be_shown_is_refused_before_any_work(tmp_path):
    model, X, y = fitted(n=150)
    path = tmp_path / "r.html"
    wrong_names = X.rename(columns={"dose": "dosis"})
    dask = pytest.importorskip("dask.array")
    cases = [
        (lambda: write_report(MELC(), X, y, path), NotFittedError, "not fitted"),
        (lambda: write_report(AdditiveMELC(), X, y, path), NotFittedError, "not fitted"),
        (lambda: write_report(model, X, y[:-1], path), ValueError, "150 rows, but y has 149 labels"),
        (lambda: write_report(model, X, np.where(y == "inner", "new", y), path), ValueError, "'new', which is not a"),
        (lambda: write_report(model, X, np.full(150, "inner"), path), ValueError, "All rows are of class 'inner'"),
        (lambda: write_report(model, wrong_names, y, path), ValueError, "dosis"),
        (lambda: write_report(model, X.iloc[:, :2], y, path), ValueError, "feature"),
        (lambda: write_report(model, X, y, tmp_path), ValueError, "is a folder"),
        (lambda: write_report(model, X, y, tmp_path / "no" / "r.html"), ValueError, "does not exist"),
        (lambda: write_report(model, X, y, path, cv=1), ValueError, "cv=1 should be a whole number of at least 2"),
        (lambda: write_report(model, X, y, path, n_resamples=5), ValueError, "n_resamples=5"),
        (lambda: write_report(model, X, y, path, rows=1.5), ValueError, "rows=1.5"),
        (lambda: write_report(model, dask.from_array(X.to_numpy()), y, path), ValueError, "Dask"),
        (lambda: write_report(model, X.mask(X > 2, np.inf), y, path, **QUICK), ValueError, "infinity"),
        (
            lambda: write_report(make_pipeline(PolynomialFeatures(), MELC(n_init=1)).fit(X, y), X, y, path),
            ValueError,
            "cannot be folded",
        ),
    ]
    for refused, kind, message in cases:
        with pytest.raises(kind, match=message):
            refused()
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    model, X, y = fitted(n=150)
    path = tmp_path / "r.html"
    path.write_text("old")
    monkeypatch.setattr("melc.report.page.page_json", lambda data: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(model, X, y, path, **QUICK)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("r.html", "old")]


# ------------------------------------------------------------------------------------------------------------- storage


def test_arrays_are_stored_once_and_to_the_last_bit():
    values = np.random.default_rng(0).normal(size=50)
    stored = json.loads(page_json({"a": values, "b": [values.copy(), np.full(30, 0.1)], "c": 1.5}))
    assert stored["data"] == {"a": {"$": 0}, "b": [{"$": 0}, {"$": 1}], "c": 1.5}
    arrays = [np.frombuffer(base64.b64decode(each), "<f8").tolist() for each in stored["arrays"]]
    assert arrays == [values.tolist(), [0.1] * 30]
    packed = with_arrays({"long": values.tolist(), "short": [1.0], "whole": list(range(50))})
    assert isinstance(packed["long"], np.ndarray)
    assert (packed["short"], packed["whole"]) == ([1.0], list(range(50)))


@pytest.mark.parametrize("name", ATTACKS)
def test_no_name_can_end_the_script_or_turn_the_text(name):
    assert "<" not in page_json({"name": visible(name)})
    assert len(visible(name)) <= 200
    assert visible(name).isprintable()


# ----------------------------------------------------------------------------------------------------------- notebooks


def test_a_report_in_a_notebook_can_be_saved(tmp_path):
    model, X, y = fitted(n=150)
    report = show_report(model, X, y, height=500, **QUICK)
    assert isinstance(report, Report)
    assert "kB" in repr(report)
    assert "height:500px" in report._repr_html_()
    assert report.save(tmp_path / "r.html").read_text(encoding="utf-8") == report.text
    with pytest.raises(ValueError, match="is a folder"):
        report.save(tmp_path)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("additive", [False, True])
def test_notebooks_show_rule_picture_and_weights_above_the_diagram(additive, n_classes):
    model, *_ = fitted(additive, n_classes, n=200)
    for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "<svg" in text.split("sk-")[0]
        assert all(str(label) in text for label in model.classes_)
        assert "dose" in text
        assert "sk-container" in text
    assert model._repr_mimebundle_()["text/plain"] == repr(model)


def test_an_unfitted_model_shows_the_diagram_alone_and_text_if_that_is_configured():
    for model in (MELC(), AdditiveMELC()):
        assert "<svg viewBox" not in model._repr_html_()
        assert "sk-container" in model._repr_html_()
        with config_context(display="text"):
            assert not hasattr(model, "_repr_html_")
            assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_names_in_a_notebook_are_escaped():
    X, y = bands(200)
    X.columns = ATTACKS[:4]
    model = MELC(n_init=1, random_state=0).fit(X, np.where(y == "inner", ATTACKS[0], ATTACKS[1]))
    text = model._fitted_html()
    assert not re.search(r"<(script|img|b)\b", text)
    assert pd.Series([text]).str.count("<svg").item() == 1
