"""The report in a browser: it answers as predict does, counts as NumPy does, and asks for nothing."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cli_cases import call, patients
from melc import MELC, AdditiveMELC
from melc.explain import explain, nearest_change
from melc.explain.parts import all_log_odds
from melc.export import from_json
from melc.fit.intake import coded_rows
from melc.report import report_html, show_report
from melc.report.form import form_of
from melc.report.heldout import held_out
from melc.report.storage import visible
from melc.report.subject import subject_of
from report_cases import (  # noqa: F401
    ATTACKS,
    QUICK,
    bands,
    browser,
    fitted,
    fitted_to_table,
    little_boosting,
    one_line_of,
    open_page,
    quick_page,
    random_rows,
    silent,
)
from tables_data import awkward_rows, mixed_frame

pytestmark = pytest.mark.slow

# Enters rows into the fields of the form, one after the other, and reads what the page says. A field has the values of
# the rows under its name, null if they are missing; a level is entered as its text, and one that is not listed not at
# all.
ASK = """(rows) => {
  const fields = [...document.querySelectorAll(".field")].map((field) =>
    [field.querySelector(".name").textContent, field.querySelector("select, input")]);
  return rows.map((row) => {
    for (const [name, input] of fields) {
      input.value = input.tagName === "SELECT"
        ? [...input.options].findIndex((option) => option.textContent === (row[name] ?? "(missing)")) : row[name];
    }
    fields[0][1].dispatchEvent(new Event("input"));
    const answer = document.querySelector(".answer");
    return [answer.querySelector(".class strong").textContent, JSON.parse(answer.dataset.probabilities)];
  });
}"""


# The parts of the features in the log-odds of coded rows, in the order of the columns.
PARTS = """(rows) => { const stored = JSON.parse(document.getElementById("data").textContent);
  const { answers } = resolved(stored.data, stored.arrays.map(arrayFrom));
  return rows.map((row) => { const x = row.map((value) => value ?? NaN);
    return partsOf(answers, x, codeOf(oddsAt(answers, projectionsOf(answers, x)))); }); }"""


def as_frame_of_codes(model, frame):
    """Return rows of a table as a model codes them, None where they are missing."""
    return [[None if np.isnan(value) else value for value in row] for row in coded_rows(model, frame).tolist()]


def asked(page, frame):
    """Return the classes and probabilities that the form gives for the rows of a data frame."""
    columns = {name: [as_entered(value) for value in frame[name]] for name in frame}
    answers = page.evaluate(ASK, [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    return np.array([label for label, _ in answers]), np.array([proba for _, proba in answers])


def as_frequent(model, y, proba):
    """Return probabilities of a model, which has equal priors, for classes that are as frequent as in y."""
    shares = proba * np.mean(np.asarray(y)[:, None] == model.classes_, axis=0)
    return shares / shares.sum(axis=1, keepdims=True)


def as_entered(value):
    """Return a value of a table as it is entered: numbers as they are, dates and levels as texts."""
    if pd.isna(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d")
    return visible(value) or '""' if isinstance(value, str) else str(value) if isinstance(value, bool) else value


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("additive", "max_lines"), [(False, None), (True, 4), (True, 1)])
def test_the_form_answers_as_predict_does(open_page, additive, max_lines, n_classes):  # noqa: F811
    model, X, y = fitted(additive, n_classes, max_lines)
    page = open_page(quick_page(additive, n_classes, max_lines))
    rows = pd.DataFrame(random_rows(X, 400), columns=X.columns)
    labels, proba = asked(page, rows)
    assert labels.tolist() == model.predict(rows).tolist()
    np.testing.assert_allclose(proba, as_frequent(model, y, model.predict_proba(rows)), rtol=1e-9, atol=1e-12)
    assert "in these data" in page.locator(".answer .aside").first.text_content()
    assert len(set(labels)) == n_classes
    assert page.complaints == []
    assert len(page.requests) == 1


@pytest.mark.parametrize(
    ("kind", "n_classes"),
    [("MELC", 2), ("MELC", 3), ("pairs", 3), ("columns", 2), ("columns", 3), ("level", 2), ("number", 3)],
)
def test_the_form_answers_as_predict_does_for_tables(open_page, kind, n_classes):  # noqa: F811
    model, X, y = fitted_to_table(kind, n_classes)
    page = open_page(report_html(model, X, y, **QUICK))
    rows = pd.concat([mixed_frame(150, seed=1)[0], awkward_rows(mixed_frame(150, seed=2)[0])], ignore_index=True)
    entered = rows.astype({"code": object})
    entered["code"] = [None if pd.isna(code) else str(int(code)) for code in rows["code"]]
    labels, proba = asked(page, entered[list(X)])
    assert labels.tolist() == model.predict(rows[list(X)]).tolist()
    expected = as_frequent(model, y, model.predict_proba(rows[list(X)]))
    np.testing.assert_allclose(proba, expected, rtol=1e-9, atol=1e-12)
    assert len(set(labels)) == n_classes
    parts = page.evaluate(PARTS, as_frame_of_codes(model, rows[list(X)].iloc[:40]))
    explained = explain(model, rows[list(X)].iloc[:40])
    shown = np.array([explained.log_odds_parts[i, explained.column_of(i)] for i in range(40)])
    np.testing.assert_allclose([each["parts"] for each in parts], shown, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        [each["base"] for each in parts], [explained.base[explained.column_of(i)] for i in range(40)], atol=1e-9
    )
    assert page.complaints == []


def test_a_table_from_the_command_line_is_asked_by_its_columns(open_page, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    frame = patients(400).assign(
        town=rng.choice(["Aa", "</script><b>", "Łódź", "it's"], 400),
        admitted=np.datetime_as_string(np.datetime64("2024-01-01") + rng.integers(0, 300, 400)),
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    model, output = tmp_path / "m.json", tmp_path / "r.html"
    made = call("fit", tmp_path / "t.csv", "-t", "outcome", "--drop", "id", "--no-cv", "-o", model)
    assert made.exit_code == 0, made.output
    made = call("report", model, tmp_path / "t.csv", "-o", output, "--resamples", 0, "--cv", 2, "-q")
    assert (made.exit_code, made.output) == (0, "")
    page = open_page(output.read_text(encoding="utf-8"))
    new = frame.drop(columns=["id", "outcome"]).iloc[rng.integers(0, 400, 1000)].reset_index(drop=True)
    new = new.assign(dose=rng.normal(scale=2, size=1000), age=rng.normal(50, 20, 1000))
    new.to_csv(tmp_path / "new.csv", index=False)
    expected = call("predict", model, tmp_path / "new.csv").stdout.split()[1:]
    labels, _ = asked(page, new)
    assert labels.tolist() == expected
    assert len(set(expected)) == 2
    assert page.complaints == []


@pytest.mark.parametrize("n_classes", [2, 3])
def test_levels_missing_values_and_points_are_drawn(open_page, n_classes):  # noqa: F811
    model, X, y = fitted_to_table("columns", n_classes)
    page = open_page(report_html(model, X, y, **QUICK))
    figures = page.locator("#curves .curve")
    assert figures.count() == len(model.lines_)
    n_levels = sum(len(line.levels) for line in model.lines_)
    assert figures.locator(".level, .point").count() == n_levels * (1 if n_classes == 2 else 3)
    assert figures.locator(".share").count() == n_levels * n_classes
    with_missing = [line for line in model.lines_ if not line.levels and line.curves[0].missing is not None]
    assert figures.locator(".missing").count() == len(with_missing) == 3
    texts = page.locator("#curves").text_content()
    assert f"missing ({X['age'].isna().sum()})" in texts
    assert f"farmer ({(X['job'] == 'farmer').sum()})" in texts
    assert "2020-0" in texts
    assert "medium" in texts
    model, X, y = fitted_to_table("pairs", n_classes)
    page = open_page(report_html(model, X, y, **QUICK))
    assert page.locator("#curves details:not(.minor) summary").first.text_content().startswith("Points of ")
    assert page.complaints == []


@pytest.mark.parametrize(("kind", "n_classes"), [("MELC", 2), ("columns", 2), ("pairs", 3)])
def test_changes_of_class_are_feasible(open_page, kind, n_classes):  # noqa: F811
    model, X, y = fitted_to_table(kind, n_classes)
    X = X.assign(income=X["income"].round(-1))
    page = open_page(report_html(model, X, y, **QUICK))
    rows, fixed = X.iloc[:30], "job"
    codes = as_frame_of_codes(model, rows)
    found = nearest_changes(page, codes, fixed)
    assert sum(each is not None for each in found) > 20
    names, columns = list(X), model.columns_
    form = form_of(subject_of(model, X, y, max_rows=1000, seed=0), 0)
    fields = {field["name"]: field for field in form["fields"]}
    for before, each in zip(codes, found, strict=True):
        if each is None:
            continue
        after = np.array(each["row"], dtype=float)
        code = int(np.argmax(all_log_odds(model, after[None])[0]))
        assert code == each["code"]
        for j, name in enumerate(names):
            if before[j] is None or after[j] == before[j]:
                assert (before[j] is None) == np.isnan(after[j])
                continue
            assert name != fixed
            if j in columns.categories or j in columns.ranks or fields[name]["whole"]:
                assert after[j] == round(after[j])
            if fields[name]["kind"] in ("number", "date"):
                low, high = min(fields[name]["low"], before[j]), max(fields[name]["high"], before[j])
                assert low <= after[j] <= high
    assert page.complaints == []


def test_one_feature_alone_lists_levels_and_missing_numbers_stay_missing(open_page):  # noqa: F811
    model, X, y = fitted_to_table("columns", 2)
    page = open_page(report_html(model, X, y, rows=20, **QUICK))
    rows = page.locator(".change details tbody tr")
    for option in range(5, 20):  # the first of these rows whose class a level would change
        page.evaluate("() => document.querySelectorAll('.change > *').forEach((node) => { node.dataset.old = 'yes'; })")
        page.locator(".rows select").select_option(index=option)
        page.locator(".change > p:not([data-old])").first.wait_for()  # it is shown with a delay
        page.get_by_text("One feature alone").click()
        page.locator(".change details > :not(summary)").wait_for()
        if {"size", "job"} & set(page.locator(".change details tbody th").all_text_contents()):
            break
    typical = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".field")].map((field) => {
        const input = field.querySelector("select, input"), option = input.selectedOptions?.[0];
        return [field.querySelector(".name").textContent, option ? option.textContent : input.value];
        }))"""
    )
    row = pd.DataFrame([typical]).astype({"age": float, "income": float, "code": int, "day": "datetime64[s]"})
    row["ok"] = row["ok"] == "True"
    row["size"] = pd.Categorical(row["size"], ["small", "medium", "large"], ordered=True)
    n_levels = 0
    for name, change, label in (each.locator("th, td").all_text_contents() for each in rows.all()):
        if name in ("size", "job"):
            text = change.removeprefix("to ")
            other = row.copy()
            other[name] = pd.Series([{'""': "", "日本\\nx": "日本\nx"}.get(text, text)], dtype=X[name].dtype)
            assert model.predict(other[list(X)]).tolist() == [label]
            n_levels += 1
    assert n_levels > 0
    page.locator(".rows select").select_option(index=3)
    assert page.locator(".answer .class").count() == 1
    page.locator(".field", has_text="age").locator("input[type=number]").fill("")
    page.locator(".change > .scroll", has_not_text="age").wait_for()
    assert page.complaints == []


def fitted_with_several_lines():
    """A model of two classes with several lines, and its rows: a ring."""
    X, _ = bands()
    y = np.where(X["dose"] ** 2 + X["age"] ** 2 > 1.4, "outer", "inner")
    model = AdditiveMELC(max_lines=4, full_lines="never", random_state=0).fit(X, y)
    assert len(model.lines_) > 1
    return model, X, y


def axis_counts(page):
    """Return the thresholds and the matrix that a page shows on its first axis."""
    return page.evaluate(
        """() => { const { axis } = document.querySelector(".axis-panel");
        const number = (cell) => Number(cell.textContent.replaceAll(",", ""));
        const cells = [...document.querySelector(".axis-panel").querySelectorAll("tbody tr")].map((row) =>
          [...row.querySelectorAll("td")].slice(0, -2).map(number));
        return { thresholds: axis.chosen.map((i) => axis.edges[i]), codes: axis.shownCodes, cells }; }"""
    )


def counted_by_numpy(z, side, thresholds, codes):
    predicted, sides = np.asarray(codes)[np.searchsorted(thresholds, z, side="right")], range(side.max() + 1)
    return [[int(np.sum((side == a) & (predicted == b))) for b in sides] for a in sides]


def test_the_matrix_follows_thresholds_that_are_dragged_or_moved_by_keys(open_page):  # noqa: F811
    model, X, y = fitted()
    z, side = model.transform(X)[:, 0], (y == model.classes_[1]).astype(int)
    page = open_page(quick_page())
    seen = [axis_counts(page)]
    assert seen[0]["cells"] == [
        [int(np.sum((y == a) & (model.predict(X) == b))) for b in model.classes_] for a in model.classes_
    ]
    page.locator("#line .threshold").first.scroll_into_view_if_needed()
    box = page.locator("#line .threshold circle").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] + 20, steps=5)
    seen.append(axis_counts(page))
    page.mouse.up()
    page.mouse.move(10, 10)
    for key in ("ArrowRight", "PageUp", "ArrowUp", "Shift+ArrowLeft", "End", "Home"):
        page.locator("#line .threshold").last.press(key)
        seen.append(axis_counts(page))
    for state in seen:
        assert state["cells"] == counted_by_numpy(z, side, state["thresholds"], state["codes"])
    assert len({json.dumps(state["thresholds"]) for state in seen}) == len(seen)
    page.locator("#line").get_by_role("button", name="Back to the model").click()
    assert axis_counts(page) == seen[0]
    assert page.complaints == []


def held_out_counts(page):
    """Return the matrix of held-out rows that a page shows."""
    number = "(cell) => Number(cell.textContent.replaceAll(',', ''))"
    return page.evaluate(
        f"""() => [...document.querySelectorAll("#decisions .figures tbody tr")].map((row) =>
        [...row.querySelectorAll("td")].slice(0, -2).map({number}))"""
    )


def slide(page, index, value):
    """Move a slider of the policy: the share (0, as log-odds) or the cost (1, as the logarithm to base 2)."""
    page.locator(".policy input").nth(index).evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }", value
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_and_costs_govern_counts_and_answers(open_page, n_classes):  # noqa: F811
    model, X, y = fitted_with_several_lines() if n_classes == 2 else fitted(True, 3)
    page = open_page(report_html(model, X, y, **QUICK))
    about = subject_of(model, X, y, max_rows=10_000, seed=0)
    found = held_out(about, 2, 0, silent)
    n, last = n_classes, n_classes - 1
    first = [[int(np.sum((found.codes == a) & (found.own.codes == b))) for b in range(n)] for a in range(n)]
    assert held_out_counts(page) == first
    page.locator("#decisions .threshold").press("Shift+ArrowRight")
    assert held_out_counts(page)[last][last] <= first[last][last]
    assert sum(each[last] for each in held_out_counts(page)) < sum(each[last] for each in first)
    page.locator("#decisions").get_by_role("button", name="Back to the model").click()
    assert held_out_counts(page) == first
    rows = pd.DataFrame(random_rows(X, 200), columns=X.columns)
    slide(page, 0, 0.5)
    share = 1 / (1 + np.exp(-0.5))
    mix = np.bincount(found.codes) / len(found.codes)
    shares = np.where(np.arange(n) == last, share, mix * (1 - share) / (1 - mix[last]))
    labels, proba = asked(page, rows)
    expected = model.predict_proba(rows) * shares
    np.testing.assert_allclose(proba, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)
    slide(page, 1, 2)  # an error costs as much as four others, so that these are the most probable classes but for cost
    costs = (1 / n) / mix
    costs = np.where(np.arange(n) == last, 4 * costs[:last].mean(), costs)
    labels, _ = asked(page, rows)
    assert labels.tolist() == model.classes_[np.argmax(model.predict_proba(rows) * shares * costs, axis=1)].tolist()
    assert page.complaints == []


def test_errors_are_shown_for_groups_of_a_column(open_page):  # noqa: F811
    page = open_page(quick_page())
    page.locator(".groups select").select_option(label="by age")
    shown = page.locator(".groups table:visible")
    assert shown.count() == 1
    assert shown.locator("tbody tr").count() == 4


def test_a_threshold_is_dragged_by_touch(open_page):  # noqa: F811
    page = open_page(quick_page(), has_touch=True, viewport={"width": 375, "height": 700})
    before = axis_counts(page)
    page.locator("#line .threshold").first.scroll_into_view_if_needed()
    box = page.locator("#line .threshold circle").first.bounding_box()
    start = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    session = page.context.new_cdp_session(page)
    for kind, x in (("touchStart", start["x"]), ("touchMove", start["x"] - 30), ("touchEnd", None)):
        points = [] if x is None else [{"x": x, "y": start["y"]}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert axis_counts(page)["thresholds"][0] < before["thresholds"][0]


@pytest.mark.parametrize(("own", "prior"), [(0.5, 0.2), (0.5, 0.9), (0.7, 0.5)])
def test_the_prior_moves_the_thresholds_to_those_of_a_fit_with_it(open_page, own, prior):  # noqa: F811
    X, y = bands()
    model = MELC(n_init=3, random_state=0, priors=[1 - own, own]).fit(X, y)
    page = open_page(report_html(model, X, y, **QUICK))
    # Decisions of a model with these priors: errors on both classes cost the same in proportion to them.
    mix = float(np.mean(y == "outer"))
    value = round(float(np.log2((prior / (1 - prior)) / (mix / (1 - mix)))) / 0.05) * 0.05
    slide(page, 1, value)
    odds = 2**value * mix / (1 - mix)
    again = MELC(n_init=3, random_state=0, priors=[1 / (1 + odds), odds / (1 + odds)]).fit(X, y)
    state = axis_counts(page)
    assert len(state["thresholds"]) == len(again.thresholds_)
    width = np.ptp(model.transform(X)) / 200
    np.testing.assert_allclose(state["thresholds"], again.thresholds_, atol=width)
    z, side = model.transform(X)[:, 0], (y == "outer").astype(int)
    assert state["cells"] == counted_by_numpy(z, side, state["thresholds"], state["codes"])


def test_the_only_line_of_several_classes_has_a_threshold_between_each_two(open_page):  # noqa: F811
    model, X, y = one_line_of(4)
    page = open_page(report_html(model, X, y, **QUICK))
    state, side = axis_counts(page), np.searchsorted(model.classes_, y)
    assert state["codes"] == [0, 1, 2, 3]
    assert state["cells"] == (20 * np.eye(4, dtype=int)).tolist()
    page.locator("#line .threshold").nth(1).press("PageUp")
    state = axis_counts(page)
    assert state["cells"] == counted_by_numpy(X[:, 0], side, state["thresholds"], state["codes"])
    assert state["cells"][2][1] > 0
    page.locator(".policy select").select_option(label="class 01")
    assert axis_counts(page)["cells"] == (20 * np.eye(4, dtype=int)).tolist()
    slide(page, 0, 0)
    state, added = axis_counts(page), np.log(3)  # of the log-odds of a share of one half, less those of one quarter
    odds = model.decision_function(np.array(state["thresholds"])[:, None]) + added * np.eye(4)[1]
    for k, (below, above) in enumerate(itertools.pairwise(state["codes"])):
        assert odds[k, below] == pytest.approx(odds[k, above], abs=0.1)
    assert state["cells"] == counted_by_numpy(X[:, 0], side, state["thresholds"], state["codes"])
    assert page.complaints == []


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_of_all_classes_are_drawn_and_minor_lines_folded(open_page, n_classes):  # noqa: F811
    model, X, y = fitted_with_several_lines() if n_classes == 2 else fitted(True, 3)
    first = max(model.lines_, key=lambda line: line.importance)
    model.lines_ = [replace(line, minor=line is not first) for line in model.lines_]
    page = open_page(report_html(model, X, y, **QUICK))
    assert page.locator("#curves .curve:visible").count() == 1
    drawn = page.locator("#curves > .grid .curve")
    assert drawn.locator(".curve-line").count() == len(first.curves)
    assert drawn.locator("g:has(> .curve-line) > .area").count() == len(first.curves)  # with bands
    assert drawn.locator(".density").count() == n_classes
    assert drawn.locator(".band").count() == len(first.codes)
    n_minor = len(model.lines_) - 1
    summary = page.locator("#curves details.minor summary")
    assert summary.text_content().startswith(f"{n_minor} minor line")
    summary.click()
    assert page.locator("#curves .curve:visible").count() == n_minor + 1
    colours = {
        page.evaluate("(node) => getComputedStyle(node).stroke", each.element_handle())
        for each in drawn.locator(".curve-line").all()
    }
    assert len(colours) == len(first.curves)
    assert page.complaints == []


def nearest_changes(page, rows, fixed=None, bounded=True):
    """Return the nearest changes of class that a page finds for coded rows, within the range of the data or not."""
    return page.evaluate(
        """([rows, fixed, bounded]) => { const stored = JSON.parse(document.getElementById("data").textContent);
        const { answers, fields } = resolved(stored.data, stored.arrays.map(arrayFrom));
        const odds = (x) => oddsAt(answers, projectionsOf(answers, x)), decide = (x) => codeOf(odds(x));
        const free = fields.map((field) => (bounded ? field : { ...field, low: -1e9, high: 1e9 }));
        return rows.map((row) => {
          const x = row.map((value) => value ?? NaN), values = fields.map(({ feature }) => x[feature]);
          const allowed = allowedOf(free, values, fields.map(({ name }) => name !== fixed), x.length);
          const found = nearestChange(answers, x, allowed, decide, (own) => (each) => leadOver(odds(each), own));
          return found && { ...found, row: found.row.map((value) => (Number.isNaN(value) ? null : value)) };
        }); }""",
        [rows, fixed, bounded],
    )


@pytest.mark.parametrize("kind", ["MELC", "AdditiveMELC", "of four classes"])
def test_the_nearest_change_of_one_line_is_that_of_melc_explain(open_page, kind):  # noqa: F811
    model, X, y = one_line_of(4) if kind == "of four classes" else fitted(kind == "AdditiveMELC", max_lines=1)
    assert len(model.lines_) == 1
    page = open_page(
        report_html(model, X, y, **QUICK) if kind == "of four classes" else quick_page(kind != "MELC", 2, 1)
    )
    rows = random_rows(pd.DataFrame(X), 50)[1::5]
    frame = rows if kind == "of four classes" else pd.DataFrame(rows, columns=X.columns)
    form = form_of(subject_of(model, X, y, max_rows=10_000, seed=0), 0)
    ranges = {field["name"]: (field["low"], field["high"]) for field in form["fields"]}
    for bounds in (None, ranges):
        exact = nearest_change(model, frame, bounds=bounds)
        found = nearest_changes(page, rows.tolist(), bounded=bounds is not None)
        assert [each is not None for each in found] == exact.found.tolist()
        found, kept = [each for each in found if each], exact.found
        np.testing.assert_allclose([each["distance"] for each in found], exact.distance[kept], rtol=1e-6)
        np.testing.assert_allclose([each["row"] for each in found], exact.rows[kept], rtol=1e-6, atol=1e-6)
        assert exact.labels[kept].tolist() == [model.classes_[each["code"]] for each in found]


def test_a_large_whole_step_is_not_taken_if_a_smaller_change_does(open_page):  # noqa: F811
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"sex": rng.integers(1, 3, 400), "age": rng.normal(50, 10, 400), "dose": rng.normal(size=400)})
    y = 2 * X["sex"] + X["age"] / 10 + X["dose"] + 0.3 * rng.normal(size=400) > 8
    model = MELC(n_init=2, random_state=0).fit(X, y)
    page = open_page(report_html(model, X, y, **QUICK))
    found = nearest_changes(page, X.to_numpy(dtype=float)[:60].tolist())
    small = nearest_changes(page, X.to_numpy(dtype=float)[:60].tolist(), fixed="sex")
    assert all(each["row"][0] in (1, 2) for each in found)
    for each, other in zip(found, small, strict=True):
        assert other is None or each["distance"] <= other["distance"] * (1 + 1e-6)


@pytest.mark.parametrize("additive", [False, True])
def test_a_change_of_one_of_three_classes_is_one_indeed(open_page, additive):  # noqa: F811
    model, X, _ = fitted(additive, 3)
    page = open_page(quick_page(additive, 3))
    found = nearest_changes(page, X.to_numpy()[:40].tolist())
    assert all(found)
    changed = pd.DataFrame([each["row"] for each in found], columns=X.columns)
    assert model.predict(changed).tolist() == [model.classes_[each["code"]] for each in found]
    assert np.all(model.predict(changed) != model.predict(X[:40]))


def test_one_feature_alone_and_fields_left_empty(open_page):  # noqa: F811
    model, X, _ = fitted()
    page = open_page(quick_page())
    page.get_by_text("One feature alone").click()
    rows = page.locator(".change details tbody tr")
    rows.first.wait_for()
    typical = X.quantile(0.5, interpolation="nearest").map(lambda value: float(f"{value:.4g}")).to_dict()
    for row in rows.all():
        name, to, label = (row.locator("th, td").nth(k).text_content() for k in range(3))
        value = float(to.removeprefix("to ").replace("−", "-"))
        step = 1e-3 * np.sign(value - typical[name])  # the text has five digits
        assert model.predict(pd.DataFrame([typical | {name: value + step}])) == [label]
        assert model.predict(pd.DataFrame([typical | {name: value - step}])) != [label]
    page.locator(".field input[type=number]").first.fill("")
    empty = pd.DataFrame([typical | {"dose": np.nan}])
    assert page.locator(".answer strong").text_content() == model.predict(empty)[0]
    page.locator(".field input[type=number]").first.press_sequentially("1e")
    assert page.locator(".answer .refused").text_content() == "Enter a value for dose."
    page.get_by_role("button", name="Typical values").click()
    assert page.locator(".answer .class").count() == 1
    page.locator(".may input").first.uncheck()
    page.locator(".change > .scroll", has_not_text="dose").wait_for()
    assert page.complaints == []


def test_names_are_shown_and_never_run(open_page):  # noqa: F811
    X, y = bands(300)
    X = pd.concat([X, X * 0.1 + 1], axis=1).iloc[:, : len(ATTACKS)]
    X.columns = ATTACKS
    labels = np.where(y == "inner", ATTACKS[0], ATTACKS[4])
    model = MELC(n_init=1, random_state=0).fit(X, labels)
    text = report_html(model, X, labels, title=ATTACKS[1], **QUICK)
    page = open_page(text)
    assert len(text.encode()) <= 300_000
    assert page.title() == ATTACKS[1]
    assert page.locator("main img, main script, main b").count() == 0
    assert page.locator("h1").text_content() == ATTACKS[1]
    assert "\u202e" not in page.locator("main").text_content()
    assert page.complaints == []
    assert len(page.requests) == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_very_long_names_of_many_features_and_classes_leave_less_on_the_page(open_page):  # noqa: F811
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 60)), columns=[f"{'né<&>' * 60}{j}" for j in range(60)])
    y = np.array([f"{'<class> é' * 600}{k}" for k in range(12)])[rng.integers(0, 12, 400)]
    text = report_html(MELC(n_init=1, random_state=0, shrinkage="auto").fit(X, y), X, y, **QUICK)
    assert len(text.encode()) <= 1_000_000
    page = open_page(text)
    assert page.locator("section").count() >= 6
    assert page.complaints == []


@pytest.mark.parametrize(("additive", "n_classes"), [(False, 2), (False, 3), (True, 2)])
def test_the_json_to_copy_is_the_model(open_page, additive, n_classes):  # noqa: F811
    model, X, _ = fitted(additive, n_classes)
    page = open_page(quick_page(additive, n_classes))
    text = page.locator("#rule details pre").last.text_content()
    again = from_json(text)
    rows = pd.DataFrame(random_rows(X, 200), columns=X.columns)
    assert again.predict_proba(rows).tolist() == model.predict_proba(rows).tolist()
    assert "SELECT" in page.locator("#rule details pre").first.text_content()


@pytest.mark.parametrize(("scheme", "width"), [("light", 320), ("light", 1400), ("dark", 375)])
def test_no_screen_is_too_narrow(open_page, width, scheme):  # noqa: F811
    page = open_page(quick_page(n_classes=3), viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = page.evaluate(
        "(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.body))"
    )
    brightness = [sum(map(int, each[4:-1].split(","))) for each in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")


def test_the_keyboard_reaches_every_control_and_names_it(open_page):  # noqa: F811
    page = open_page(quick_page())
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(({ tagName, className }) => tagName + ' ' + (className.baseVal ?? className))(document.activeElement)"
            )
        )
    assert {"A ", "g threshold", "BUTTON ", "INPUT ", "SUMMARY ", "PRE "} <= reached
    sliders = page.get_by_role("slider").all()
    assert all(each.get_attribute("aria-label") or each.evaluate("node => node.labels.length") for each in sliders)


def test_a_printed_page_shows_all_classes(open_page):  # noqa: F811
    page = open_page(quick_page(n_classes=3))
    assert page.locator("#weights figure:visible").count() == 1
    page.emulate_media(media="print")
    assert page.locator("#weights figure:visible").count() == 3
    assert page.pdf()[:4] == b"%PDF"


def test_a_model_at_chance_has_a_banner_and_formulas_are_whole(open_page):  # noqa: F811
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a feature with quite a long name=yes", "b", "c"])
    y = rng.integers(0, 2, 200)
    model = AdditiveMELC(random_state=0, max_lines=2).fit(X, y)
    page = open_page(report_html(model, X, y, **QUICK))
    assert "no better than chance" in page.locator(".banner").text_content()
    for line, text in zip(
        page.evaluate(LINES), page.locator("#curves figcaption bdi").all_text_contents(), strict=True
    ):
        assert "…" not in text
        assert text.replace("\u00a0", " ") == line.replace("- ", "− ").replace("-0", "−0")
        assert not re.search("[+−=] −?\\d", text)  # no line ends between a sign and its weight
    limits = {
        tuple(each.all_text_contents())
        for each in [
            figure.locator("svg > .axis").first.locator("text") for figure in page.locator("#curves figure").all()
        ]
    }
    assert len(limits) == 1  # all pictures have one scale
    assert page.evaluate("[...document.querySelectorAll('.weight rect')].every((bar) => !bar.getAttribute('class'))")


LINES = """() => JSON.parse(document.getElementById("data").textContent).data.lines.map(({ terms }) => terms)"""


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(open_page):  # noqa: F811
    model, X, y = fitted()
    report = show_report(model, X, y, **QUICK)
    around = f"<!doctype html><section></section><title>notebook</title>{report._repr_html_()}"
    page = open_page(around)
    frame = page.frame_locator("iframe")
    frame.locator(".threshold").first.wait_for()
    assert frame.locator("section").count() >= 6
    assert page.complaints == []
