"""The page about a model: its size, what it counts and scores, what it refuses, and what it does not contain."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from melc import MELC, AdditiveMELC, cauchy_schwarz_divergence
from melc.export import export_text
from melc.model.curve import Curve
from melc.report import Report, report_html, show_report, write_report
from melc.report.contents import answers_of
from melc.report.counts import axes_of, counted, on_axes
from melc.report.features import line_pictures
from melc.report.fields import MOST_FIELDS
from melc.report.scores import scores_of
from melc.report.stability import stability_of
from melc.report.storage import page_json, visible, with_arrays
from melc.report.subject import subject_of
from report_cases import ATTACKS, QUICK, bands, fitted, little_boosting, one_line_of  # noqa: F401

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
    assert len(data["axes"]) == (1 if n_classes == 2 or len(model.lines_) == 1 else 3)
    assert len(data["answers"]["lines"]) == len(model.lines_)
    assert len(data["lines"]) == len(model.lines_)
    assert [model["name"] for model in data["scores"]["models"]][1:] == ["logistic regression", "gradient boosting"]
    assert data["document"] is not None
    assert data["sql"].startswith(("SELECT", "WITH"))
    names = [name for name, _ in data["card"]]
    assert {"Rows", "Features", "Classes", "Missing values", "Hash of the rows", "Settings", "Versions"} <= set(names)
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.parametrize("additive", [False, True])
def test_a_page_with_little_room_leaves_parts_out_and_says_so(additive, monkeypatch):
    model, X, y = fitted(additive, 3, n=200)
    full = report_html(model, X, y, **QUICK)
    sizes = [len(full.encode())]
    for most in (97_000, 85_000):
        monkeypatch.setattr("melc.report.page.MOST_PAGE_BYTES", most)
        text = report_html(model, X, y, **QUICK)
        sizes.append(len(text.encode()))
        assert sizes[-1] <= most
    assert data_of(text)["left_out"]
    assert data_of(text)["answers"] is None
    assert data_of(text)["fields"] == []
    assert data_of(full)["left_out"] == []


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


def test_lines_of_the_rule_are_cut_only_if_they_are_very_long():
    model, X, y = fitted(n=150)
    for length, cut in ((90, False), (300, True)):
        names = [f"{name} {'x' * length}" for name in X]
        model.feature_names_in_ = np.array(names, dtype=object)
        text = export_text(model, digits=5)
        shown = data_of(report_html(model, X.set_axis(names, axis=1), y, **QUICK))["rule"]
        assert max(map(len, text.splitlines())) > 80
        assert (shown != text.rstrip("\n")) == cut
        assert ("…" in shown) == cut


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
    words = "a line of the same features" if several else "same optimum"
    assert any(words in text for text in data["stability"]["text"])
    assert all((line["share"] is None) == (not several) for line in data["lines"])


# -------------------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("additive", [False, True])
def test_the_counts_are_those_of_numpy(additive, n_classes):
    about = subject(additive, n_classes)
    z = on_axes(about.model, about.X)
    for axis, column in zip(counted(about), z.T, strict=True):
        edges, counts = axis["edges"], np.array(axis["counts"])
        named = [code for code in axis["sides"] if code is not None]
        members = [~np.isin(about.codes, named) if code is None else about.codes == code for code in axis["sides"]]
        assert np.all(np.diff(edges) > 0)
        assert set(axis["thresholds"]) <= set(edges)
        for k in range(0, len(edges), 17):
            below = counts[:, : k + 1].sum(axis=1).tolist()
            assert below == [np.sum(column[own] < edges[k]) for own in members]


@pytest.mark.parametrize("n_classes", [3, 20])
def test_the_only_line_of_several_classes_is_one_axis_of_all_of_them(n_classes):
    model, X, y = one_line_of(n_classes)
    assert (model.predict(X) == y).all()
    (axis,) = counted(subject_of(model, X, y, max_rows=1000, seed=0))
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
    assert sum(axis["priors"]) == pytest.approx(1)
    assert np.sum(axis["counts"]) == len(X)


@pytest.mark.parametrize(("additive", "max_lines"), [(False, None), (True, 4), (True, 1)])
def test_thresholds_of_an_axis_divide_the_rows_as_predict_does(additive, max_lines):
    about = subject(additive, max_lines=max_lines)
    (axis,) = axes_of(about.model, about.class_counts)
    assert (axis.line is None) == (len(about.model.lines_) > 1)
    codes = np.array(axis.codes)[np.searchsorted(axis.thresholds, on_axes(about.model, about.X)[:, 0], side="right")]
    assert np.array_equal(about.model.classes_[codes], about.model.predict(about.X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("additive", [False, True])
def test_an_axis_has_the_log_odds_at_its_edges(additive, n_classes):
    about = subject(additive, n_classes)
    p = about.model.predict_proba(about.X)
    for axis, z in zip(counted(about), on_axes(about.model, about.X).T, strict=True):
        own, inside = axis["sides"][1], (z >= axis["edges"][0]) & (z <= axis["edges"][-1])
        assert axis["log_odds"][0] is None  # of the others, zero
        between = np.interp(z[inside], axis["edges"], axis["log_odds"][1])
        expected = np.log(p[:, own]) - np.log1p(-p[:, own])
        np.testing.assert_allclose(between, expected[inside], atol=0.1)
        assert axis["heights"] != [[0] * len(axis["edges"])] * 2


# ------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("additive", [False, True])
def test_the_page_computes_with_the_formulas_of_the_model(additive, n_classes):
    about = subject(additive, n_classes)
    answers = answers_of(about)
    weights = np.array([line["weights"] for line in answers["lines"]])
    z = about.X[:, answers["features"]] @ weights.T + [line["rest"] for line in answers["lines"]]
    for each, odds in zip(answers["log_odds"], np.atleast_2d(about.model.decision_function(about.X).T), strict=True):
        adds = [Curve(**curve).at(z[:, k].copy()) for k, curve in enumerate(each["curves"])]
        assert len(adds) == len(about.model.lines_)
        np.testing.assert_allclose(np.sum(adds, axis=0) + each["constant"], odds, rtol=1e-9, atol=1e-12)


def test_curves_are_drawn_with_fewer_knots_but_never_computed_with():
    about = subject()
    ((picture,), (line,)) = line_pictures(about, None), about.model.lines_
    (drawn,), (own,) = picture["curves"], line.curves
    assert len(drawn["knots"]) < len(own.knots) / 2
    error = np.interp(own.knots, drawn["knots"], drawn["log_odds"]) - own.log_odds
    assert np.abs(error).max() < 0.005 * np.abs(own.log_odds).max()
    assert answers_of(about)["log_odds"][0]["curves"][0]["knots"] is own.knots


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
    found = scores_of(about, 3, 0, lambda text: None)
    y = about.model.classes_[about.codes]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(about.X, y))
    predicted = cross_val_predict(about.estimator, about.X, y, cv=folds)
    expected = [balanced_accuracy_score(y[test], predicted[test]) for _, test in folds]
    assert [fold[0] for fold in found["models"][0]["folds"]] == pytest.approx(expected)
    assert sum(map(sum, found["confusion"]["counts"])) == 300
    assert sum(row[2] for row in found["calibration"]) == 300


def test_scores_and_resamples_of_many_rows_use_a_sample_and_say_so():
    about = subject(n=3000, max_rows=200)
    assert 150 <= len(about.sample) <= 250
    text = scores_of(about, 2, 0, lambda text: None)["text"]
    assert f"a random sample of {len(about.sample)} of the 3,000 rows" in text


def test_a_class_of_one_row_has_no_cross_validation():
    model, X, y = fitted(n=200, n_classes=3)
    keep = np.concatenate([np.flatnonzero(y != "high"), np.flatnonzero(y == "high")[:1]])
    data = data_of(report_html(model, X.iloc[keep], y[keep], **QUICK))
    assert data["scores"] == {"reason": "Class high has 1 rows, too few for cross-validation."}


# ----------------------------------------------------------------------------------------------------------- stability


@pytest.mark.parametrize("scaled", [False, True])
def test_starts_that_led_to_the_chosen_direction_are_counted(scaled):
    X, y = bands(300)
    model = MELC(n_init=5, random_state=0, selection="divergence")
    model = make_pipeline(StandardScaler(), model) if scaled else model
    model.fit(X * [1, 100, 1, 0.01], y)
    about = subject_of(model, X * [1, 100, 1, 0.01], y, max_rows=1000, seed=0)
    (found,) = stability_of(about, None)["starts"]
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
    assert data_of(report_html(search, X * 10 + 5, y, **QUICK))["axes"] == data["axes"]


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
    for priors, word in ((None, "equally"), ("empirical", "as often as they occur"), ([0.3, 0.7], "by the priors")):
        model = MELC(n_init=1, random_state=0, priors=priors).fit(X, y)
        data = data_of(report_html(model, X, y, **QUICK))
        assert word in data["scores"]["text"]
    assert data["axes"][0]["priors"] == pytest.approx([0.3, 0.7])


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
