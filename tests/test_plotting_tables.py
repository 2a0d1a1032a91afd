"""Plots of models of tables: levels, dates, ranks and missing values are shown by their names, never by their codes."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from melc import MELC, AdditiveMELC
from melc.inference import bootstrap
from melc.model.places import level_text
from melc.plotting import (
    ChangeDisplay,
    ExplanationDisplay,
    IntervalsDisplay,
    LinesDisplay,
    PlaneDisplay,
    ProjectionDisplay,
    WeightsDisplay,
)
from tables_data import JOBS, awkward_rows, mixed_frame

mpl.use("Agg")
import matplotlib.pyplot as plt

COLUMNS = ["age", "income", "job", "size", "ok", "day", "code"]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def plain(frame):
    """Return a frame whose levels have glyphs in every font."""
    return frame.assign(job=frame["job"].replace({"日本\nx": "two\nlines"}))


@pytest.fixture(scope="module", params=[2, 3])
def table(request):
    """Rows of a table, their labels, and a model with a line for each column."""
    frame, y = mixed_frame(700, n_classes=request.param)
    settings = {"features_per_line": 1, "full_lines": "never", "random_state": 0, "categorical_features": ["code"]}
    frame = plain(frame)
    return frame, y, AdditiveMELC(**settings).fit(frame, y)


@pytest.fixture(scope="module", params=[2, 3])
def pairs(request):
    frame, y = mixed_frame(700, n_classes=request.param)
    frame = plain(frame)[["job", "income", "day"]]
    return frame, y, AdditiveMELC(full_lines="never", random_state=0).fit(frame, y)


def panel_of(display, name):
    """Return the number of the panel of a column."""
    return next(k for k, panel in enumerate(display.panels) if panel.title.startswith(f"{name}\n"))


def line_of(model, name):
    return next(line for line in model.lines_ if line.features.tolist() == [COLUMNS.index(name)])


def ticks_of(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


def rows_of_level(frame, column, level):
    return int(frame[column].isna().sum() if level is None else (frame[column] == level).sum())


class TestLinesDisplay:
    def test_levels_have_bars_with_names_and_rows(self, table):
        frame, _, model = table
        display = LinesDisplay.from_estimator(model)
        for name in ("job", "ok", "code"):
            k, line = panel_of(display, name), line_of(model, name)
            category = model.columns_.categories[COLUMNS.index(name)]
            assert set(category.levels) - {None} == set(frame[name].dropna())
            counts = [rows_of_level(frame, name, level) for level in category.levels]
            names = [level_text(level).replace("\n", "\\n") for level in line.levels]
            expected = [f"{shown} ({count})" for shown, count in zip(names, counts, strict=True)]
            found = ticks_of(display.axes_[k])
            assert [text.split(" (")[-1] for text in found] == [text.split(" (")[-1] for text in expected]
            assert all(text == full for text, full in zip(found, expected, strict=True) if len(full) < 20)
            self.assert_drawn(display, k, line)

    @staticmethod
    def assert_drawn(display, k, line):
        """Assert that the values of levels and their standard errors are drawn."""
        for curve, errors, drawn, band in zip(
            line.decisive, line.errors, display.curves_[k], display.bands_[k], strict=True
        ):
            heights = [bar.get_height() for bar in drawn] if len(line.curves) == 1 else drawn.get_ydata()
            np.testing.assert_allclose(heights, curve.log_odds)
            low, high = display._limits()
            ends = np.array([segment[:, 1] for segment in band.get_segments()])
            np.testing.assert_allclose(ends[:, 0], np.clip(curve.log_odds - 1.96 * errors, low, high))
            np.testing.assert_allclose(ends[:, 1], np.clip(curve.log_odds + 1.96 * errors, low, high))
        assert display.threshold_lines_[k] == []

    def test_missing_values_have_a_point_right_of_the_curve(self, table):
        frame, _, model = table
        display = LinesDisplay.from_estimator(model)
        low, high = display._limits()
        for name in COLUMNS:
            k, line = panel_of(display, name), line_of(model, name)
            points, texts = display.missing_[k], [text.get_text() for text in display.axes_[k].texts]
            if line.levels or not frame[name].isna().any():
                assert points == texts == []
                continue
            assert [float(point.get_ydata()[0]) for point in points] == [curve.missing for curve in line.decisive]
            assert all(point.get_xdata()[0] > line.places[-1] for point in points)
            assert all(low <= curve.missing <= high for curve in line.decisive)
            assert texts == [f"missing\n({frame[name].isna().sum()})"]

    def test_dates_and_ranks_are_named_at_the_axes(self, table):
        _, _, model = table
        display = LinesDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        assert {"2020"} & set(ticks_of(display.axes_[panel_of(display, "day")]))
        assert ticks_of(display.axes_[panel_of(display, "size")]) == ["small", "medium", "large"]

    def test_rows_are_counted_also_where_levels_are_unknown_or_values_missing(self, table):
        frame, y, model = table
        rows = awkward_rows(frame)
        for labels in (y, None):
            display = LinesDisplay.from_estimator(model, rows, labels)
            jobs = display.panels[panel_of(display, "job")].levels
            assert jobs.names[-1] == "(unknown)"
            assert jobs.counts[-1] == (rows["job"] == "unheard of").sum()
            assert jobs.counts[jobs.names.index("(missing)")] == rows["job"].isna().sum()
            assert jobs.counts.sum() == len(rows)
            np.testing.assert_allclose(jobs.shares.sum(axis=1), 1)
            assert len(jobs.shares) == (1 if labels is None else len(model.classes_))
            assert display.panels[panel_of(display, "age")].n_missing == rows["age"].isna().sum()
            display.figure_.canvas.draw()

    def test_of_very_many_levels_those_with_most_rows_are_drawn(self):
        rng = np.random.default_rng(0)
        town = np.minimum(rng.geometric(0.05, 3000), 60)
        y = rng.random(3000) < np.where(town % 2, 0.8, 0.2)
        frame = pd.DataFrame({"town": [f"town {k:02}" for k in town]})
        display = LinesDisplay.from_estimator(AdditiveMELC(random_state=0).fit(frame, y))
        counts = frame["town"].value_counts()
        levels = display.panels[0].levels
        assert len(levels.names) == 25
        assert set(levels.counts.tolist()) <= set(counts.iloc[:30])
        hidden = len(counts) - 25
        rows = int(counts.iloc[25:].sum())
        assert display.axes_[0].get_xlabel() == f"{hidden} rarer levels with {rows} rows not shown"


class TestProjectionDisplay:
    def test_shares_of_levels_and_densities_of_the_others(self, table):
        frame, y, model = table
        for X, labels in ((None, None), (frame, y), (awkward_rows(frame), None)):
            shown = ProjectionDisplay.from_estimator(model, X, labels)
            for display, line in zip(shown.displays, model.lines_, strict=True):
                name = COLUMNS[line.features[0]]
                assert display.ax_.get_xlabel() == name
                assert (display.levels is not None) == bool(line.levels)
                if X is None and line.levels:
                    np.testing.assert_allclose(display.heights, line.densities)
            shown.figure_.canvas.draw()

    def test_rows_at_levels_of_another_class_are_counted(self, table):
        frame, y, model = table
        shown = ProjectionDisplay.from_estimator(model, frame, y)
        for k, (display, line) in enumerate(zip(shown.displays, model.lines_, strict=True)):
            if not line.levels and COLUMNS[line.features[0]] != "age":
                continue
            alone = model.line_log_odds(frame)[:, k]
            says = (alone > 0).astype(int) if alone.ndim == 1 else alone.argmax(axis=1)
            wrong = int(np.sum(model.classes_[says] != y))
            texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
            assert any(text.endswith(f"of another class ({wrong} of {len(y)})") for text in texts)

    def test_a_note_says_what_missing_values_speak_for(self, table):
        frame, _, model = table
        number, line = next((k, line) for k, line in enumerate(model.lines_, 1) if line is line_of(model, "age"))
        display = ProjectionDisplay.from_estimator(model, frame, line=number)
        odds = [curve.missing for curve in line.decisive]
        label = model.classes_[int(odds[0] > 0) if len(odds) == 1 else int(np.argmax(odds))]
        expected = f"where missing ({frame['age'].isna().sum()} rows): {label}"
        assert expected in [text.get_text() for text in display.ax_.texts]

    def test_a_single_category_decides(self):
        frame, y = mixed_frame(500)
        frame = plain(frame)[["job"]]
        model = AdditiveMELC(random_state=0).fit(frame, y)
        display = ProjectionDisplay.from_estimator(model, frame, y)
        wrong = int(np.sum(model.predict(frame) != y))
        assert f"misclassified ({wrong} of 500)" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


class TestPlaneDisplay:
    def test_levels_and_dates_are_named_at_the_axes(self, pairs):
        frame, y, model = pairs
        names = model.feature_names_in_.tolist()
        for number, line in enumerate(model.lines_, start=1):
            if len(line.features) != 2:
                continue
            for X, labels in ((None, None), (frame, y), (awkward_rows(mixed_frame(50)[0])[names], None)):
                display = PlaneDisplay.from_estimator(model, X, labels, line=number)
                display.figure_.canvas.draw()
                for j, axis in zip(line.features, (display.ax_.xaxis, display.ax_.yaxis), strict=True):
                    texts = {text.get_text() for text in axis.get_ticklabels()}
                    if names[j] == "job":
                        assert {"7", "farmer", "(missing)"} & texts
                        assert texts <= {"(missing)", '""', "two\\nlines", *JOBS} | {
                            text for text in texts if "…" in text
                        }
                    if names[j] == "day":
                        assert any("20" in text or text.isalpha() for text in texts)

    def test_points_are_at_the_scores_of_their_levels(self, pairs):
        frame, y, model = pairs
        number = next(k for k, line in enumerate(model.lines_, 1) if len(line.features) == 2 and 0 in line.features)
        display = PlaneDisplay.from_estimator(model, frame, y, line=number)
        scores = display.points[:, model.lines_[number - 1].features.tolist().index(0)]
        assert set(scores) == set(model.columns_.categories[0].scores)


def test_weights_are_those_of_scores(table):
    frame, y, _ = table
    model = MELC(n_init=2, random_state=0, categorical_features=["code"]).fit(frame, y)
    for X in (None, frame, awkward_rows(frame)):
        shown = WeightsDisplay.from_estimator(model, X)
        first = shown.displays[0] if len(model.classes_) > 2 else shown
        assert set(first.names) <= set(COLUMNS)
        assert np.isfinite(first.weights).all()
    expected = np.sort(np.abs(model.directions_[0] * model.feature_spread_))[::-1]
    shown = WeightsDisplay.from_estimator(model)
    first = shown.displays[0] if len(model.classes_) > 2 else shown
    np.testing.assert_allclose(np.abs(first.weights), expected)


def test_intervals_of_a_table_are_named_by_its_columns():
    frame, y = mixed_frame(200)
    model = MELC(n_init=1, random_state=0, categorical_features=["code"]).fit(frame, y)
    display = IntervalsDisplay.from_bootstrap(bootstrap(model, frame, y, n=20, random_state=0))
    assert sorted(display.names) == sorted(COLUMNS)
    assert (display.low <= display.high).all()


def test_rows_of_numbers_may_have_missing_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + X[:, 1] ** 2 > 0.5
    X[rng.random((300, 2)) < 0.1] = np.nan
    model = AdditiveMELC(random_state=0, features_per_line=1, full_lines="never").fit(X, y)
    display = LinesDisplay.from_estimator(model, X, y)
    assert [panel.n_missing for panel in display.panels] == [
        np.isnan(X[:, panel.line.features[0]]).sum() for panel in display.panels
    ]
    ProjectionDisplay.from_estimator(model, X, y)


def test_a_notebook_shows_levels_dates_and_missing_values(table):
    frame, _, model = table
    text = model._fitted_html()
    for name in ("job", "code"):
        for level, count in frame[name].value_counts().items():
            shown = str(level) if level != "" else '""'
            if len(shown) < 10 and "'" not in shown and '"' not in shown and "\n" not in shown:
                assert f"<bdi>{shown}</bdi>" in text
                assert f"<td>{count}</td></tr>" in text
    assert "<bdi>day</bdi>: " in text
    assert "<small>2020-" in text
    assert "<small>from " in text
    assert "; missing: <span" in text


def test_one_row_is_explained_and_changed_by_names(table):
    frame, _, model = table
    for row in (0, 5, -1):
        display = ExplanationDisplay.from_estimator(model, frame, row=row)
        assert display.base + display.parts.sum() + display.rest == pytest.approx(display.log_odds)
        shown = dict(name.split(" = ", 1) for name in display.names)
        assert set(shown) <= set(COLUMNS)
        for name, text in shown.items():
            value = frame[name].iloc[row]
            if pd.isna(value):
                assert text == "(missing)"
            elif name in ("job", "size", "ok", "code"):
                assert text.replace("\\n", "\n") == (str(value) or '""')
            elif name == "day":
                assert text == value.strftime("%Y-%m-%d")
        display = ChangeDisplay.from_estimator(model, frame, row=row)
        for name, (before, after) in zip(display.names, display.texts, strict=True):
            assert name in COLUMNS
            assert before != after or name in ("age", "income")
            if name == "job":
                assert {before, after} <= {"(missing)", '""', "two\\nlines", *JOBS}
        display.figure_.canvas.draw()
