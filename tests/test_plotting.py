"""Displays show the fitted model: the artists drawn are compared with its attributes, not with stored images."""

import subprocess
import sys
from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from melc import MELC, AdditiveMELC
from melc.model.columns import Columns
from melc.model.curve import Curve
from melc.model.line import Line
from melc.model.units import fitted_model
from melc.plotting import ConvergenceDisplay, LinePanels, ProjectionDisplay, WeightsDisplay
from melc.plotting.common import CLASS_COLOURS, shortened


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(np.abs(X[:, 0] + 0.5 * X[:, 1]) > 0.9, "outside", "inside")
    return X, y


@pytest.fixture(scope="module")
def model(data):
    return MELC(n_init=2, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def lines(data):
    return AdditiveMELC(max_lines=3, full_lines="never", random_state=0).fit(*data)


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


class TestProjectionDisplay:
    def test_very_many_lines_are_plotted_one_at_a_time(self):
        many = _fitted_like(*[_line([k + 0.5]) for k in range(51)])
        with pytest.raises(
            ValueError, match=r"51 lines, and at most 50 .* set line to the number of one, from 1 to 51"
        ):
            ProjectionDisplay.from_estimator(many)
        assert ProjectionDisplay.from_estimator(many, line=7).thresholds.tolist() == [6.5]

    def test_very_many_classes_are_counted_in_the_legend(self):
        line = _line_of_classes([0.5, 1.5, 2.5], 30)
        rows, labels = np.linspace(-1, 4, 90)[:, None], np.repeat(np.arange(30), 3)
        display = ProjectionDisplay.from_estimator(_fitted_like(line, classes=range(30)), rows, labels)
        assert len(display.lines_) == 30
        assert legend_of(display)[:13] == [*map(str, range(12)), "and 18 more classes"]
        styles = {(each.get_color(), each.get_linestyle(), each._unscaled_dash_pattern) for each in display.lines_}
        assert len(styles) == 30  # all can be told apart
        display.figure_.canvas.draw()
        legend, figure = display.ax_.get_legend().get_window_extent(), display.figure_.bbox
        assert figure.y0 <= legend.y0 < legend.y1 <= figure.y1

    def test_legend_with_long_names_stays_inside_the_figure(self, data):
        X, y = data
        long = np.char.add("a class with a very long name that is cut: ", y)
        display = ProjectionDisplay.from_estimator(MELC(n_init=1, random_state=0).fit(X, long), X, long, title="title")
        display.figure_.canvas.draw()
        legend = display.ax_.get_legend().get_window_extent()
        figure = display.figure_.bbox
        assert legend.x0 >= figure.x0
        assert legend.x1 <= figure.x1
        assert display.ax_.title.get_window_extent().y0 >= legend.y1 - 5  # a legend has an invisible margin

    @pytest.mark.parametrize("kind", ["model", "lines"])
    def test_curves_are_the_densities_of_the_line(self, kind, request):
        line = request.getfixturevalue(kind).lines_[0]
        display = ProjectionDisplay.from_estimator(request.getfixturevalue(kind), line=1)
        for drawn, density in zip(display.lines_, line.densities, strict=True):
            z, heights = drawn.get_data()
            assert set(line.places) <= set(z)
            np.testing.assert_allclose(heights[np.isin(z, line.places)], density, atol=1e-12)
            # Between the places it is smooth, and between the densities there.
            np.testing.assert_allclose(heights, np.interp(z, line.places, density), atol=0.02 * density.max())

    def test_curves_hold_nearly_all_mass(self, model):
        display = ProjectionDisplay.from_estimator(model)
        for height in display.heights:
            assert np.trapezoid(height, display.grid) > 0.995

    def test_thresholds_stand_where_the_model_has_them(self, model):
        display = ProjectionDisplay.from_estimator(model)
        drawn = [line.get_xdata()[0] for line in display.threshold_lines_]
        low, high = display.ax_.get_xlim()
        assert drawn == [t for t in model.thresholds_ if low < t < high]
        assert len(drawn) >= 2

    def test_without_data_nothing_is_called_misclassified(self, model):
        assert legend_of(ProjectionDisplay.from_estimator(model)) == ["inside", "outside", "thresholds"]

    @pytest.mark.parametrize("style", ["rug", "histogram"])
    def test_the_misclassified_are_counted_as_predict_counts_them(self, model, data, style):
        X, y = data
        wrong = int(np.sum(model.predict(X) != y))
        display = ProjectionDisplay.from_estimator(model, X, y, data=style)
        assert legend_of(display)[-1] == f"misclassified ({wrong} of 300)"
        assert wrong > 0

    def test_rug_marks_each_row_once(self, model, data):
        X, y = data
        display = ProjectionDisplay.from_estimator(model, X, y, data="rug")
        marks = {"|": [], "x": []}
        for line in display.ax_.get_lines():
            if line.get_marker() in marks:
                marks[line.get_marker()] += list(line.get_xdata())
        wrong = model.predict(X) != y
        z = X @ model.coef_[0]
        np.testing.assert_allclose(np.sort(marks["x"]), np.sort(z[wrong]))
        np.testing.assert_allclose(np.sort(marks["|"]), np.sort(z[~wrong]))

    def test_auto_takes_a_histogram_for_many_rows(self, model, data):
        many = np.tile(data[0], (4, 1))
        markers = [line.get_marker() for line in ProjectionDisplay.from_estimator(model, many).ax_.get_lines()]
        assert "|" not in markers

    def test_rows_without_labels_are_grey(self, model, data):
        display = ProjectionDisplay.from_estimator(model, data[0])
        colours = {line.get_color() for line in display.ax_.get_lines() if line.get_marker() == "|"}
        assert colours == {"#6E6E6E"}

    def test_draws_on_given_axes(self, model, data):
        figure, axes = plt.subplots(1, 2)
        display = ProjectionDisplay.from_estimator(model, *data, ax=axes[1], title="Right")
        assert display.ax_ is axes[1]
        assert display.figure_ is figure
        assert axes[1].get_title() == "Right"
        assert len(plt.get_fignums()) == 1

    def test_scalers_of_a_pipeline_become_part_of_the_weights(self, data):
        X, y = data
        pipeline = make_pipeline(StandardScaler(), MELC(n_init=1, random_state=0)).fit(X * [1, 10, 100], y)
        display = ProjectionDisplay.from_estimator(pipeline, X * [1, 10, 100], y)
        wrong = np.sum(pipeline.predict(X * [1, 10, 100]) != y)
        assert f"misclassified ({wrong} of 300)" in legend_of(display)
        np.testing.assert_allclose(display.thresholds, fitted_model(pipeline).thresholds_)
        search = GridSearchCV(pipeline, {"melc__gamma": [1.0]}, cv=2).fit(X * [1, 10, 100], y)
        np.testing.assert_allclose(ProjectionDisplay.from_estimator(search).thresholds, display.thresholds)

    def test_other_pipelines_are_drawn_in_the_space_of_their_last_step(self, data):
        X, y = data
        pipeline = make_pipeline(PCA(2), StandardScaler(), MELC(n_init=1, random_state=0)).fit(X, y)
        display = ProjectionDisplay.from_estimator(pipeline, X, y)
        np.testing.assert_array_equal(display.thresholds, pipeline[-1].thresholds_)
        assert f"misclassified ({np.sum(pipeline.predict(X) != y)} of 300)" in legend_of(display)

    def test_outliers_do_not_squeeze_the_picture(self):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(size=(4000, 1)), rng.normal(2, 1, size=(4000, 1)), [[-1e4], [1e4]]])
        display = ProjectionDisplay.from_estimator(MELC(n_init=1, random_state=0).fit(X, np.arange(8002) >= 4000))
        assert np.abs(display.ax_.get_xlim()).max() < 10

    def test_thresholds_outside_the_picture_are_counted(self):
        line = _line([0.3, 900.0], places=np.linspace(-3, 4, 81))
        display = ProjectionDisplay.from_estimator(_fitted_like(line))
        assert display.ax_.get_xlim() == (-3, 4)
        assert any("1 threshold outside the plot" in text.get_text() for text in display.ax_.texts)

    def test_unequal_priors_scale_the_curves_so_that_they_cross_at_the_threshold(self):
        rng = np.random.default_rng(0)
        X, y = np.concatenate([rng.normal(size=3000), rng.normal(2, 1, size=3000)])[:, None], np.arange(6000) >= 3000
        display = ProjectionDisplay.from_estimator(MELC(n_init=1, random_state=0, priors=[0.25, 0.75]).fit(X, y))
        (threshold,) = display.thresholds
        assert threshold == pytest.approx(1 - np.log(3) / 2, abs=0.1)  # where f₊/f₋ = exp(2z − 2) is 1/3
        assert display.priors == pytest.approx((0.25, 0.75))
        first, second = (np.interp(threshold, display.grid, h) for h in display.heights)
        assert first == pytest.approx(second, rel=0.05)
        assert display.ax_.get_ylabel() == "prior × density"

    def test_one_line_of_several_classes(self):
        lines = [_line_of_classes([shift, shift + 1]) for shift in (0.5, 1.5, 2.5)]
        model = _fitted_like(*lines, classes=["a", "b", "c"])
        display = ProjectionDisplay.from_estimator(model, line=2)
        assert display.labels == ["a", "b", "c"]
        assert display.thresholds.tolist() == pytest.approx([1.5, 2.5])
        assert display.codes.tolist() == [0, 1, 2]
        for choice in ({"line": 0}, {"line": 4}):
            with pytest.raises(ValueError, match=f"line={choice['line']}, but there are the lines 1 to 3"):
                WeightsDisplay.from_estimator(model, **choice)

    @pytest.mark.parametrize("style", ["rug", "histogram"])
    def test_rows_of_several_classes_are_compared_with_the_class_of_their_interval(self, style):
        rows, labels = np.array([[0.0], [1.0], [1.2], [2.0], [9.0]]), np.array(["a", "b", "a", "c", "b"])
        alone = _fitted_like(_line_of_classes([0.5, 1.5]), classes=["a", "b", "c"])
        display = ProjectionDisplay.from_estimator(alone, rows, labels, data=style)
        assert legend_of(display)[-1] == "misclassified (2 of 5)"
        assert np.sum(alone.predict(rows) != labels) == 2
        several = _fitted_like(*[_line_of_classes([0.5, 1.5])] * 2, classes=["a", "b", "c"])
        display = ProjectionDisplay.from_estimator(several, rows, labels, line=2, data=style)
        assert legend_of(display)[-1] == "in an interval of another class (2 of 5)"

    def test_minor_lines_are_left_out_unless_chosen(self):
        lines = [_line([0.5]), replace(_line([1.5]), minor=True), _line([2.5])]
        model = _fitted_like(*lines)
        for display in (ProjectionDisplay, WeightsDisplay):
            assert len(display.from_estimator(model).displays) == 2
        assert ProjectionDisplay.from_estimator(model, line=2).thresholds.tolist() == [1.5]
        only = _fitted_like(*[replace(line, minor=True) for line in lines])
        assert len(WeightsDisplay.from_estimator(only).displays) == 3

    def test_all_lines_of_several_classes(self):
        lines = [_line_of_classes([shift, shift + 1]) for shift in (0.5, 1.5, 2.5)]
        model = _fitted_like(*lines, classes=["a", "b", "c"])
        shown = ProjectionDisplay.from_estimator(model, np.array([[0.0], [3.0]]), ["a", "c"], title="Everything")
        for display, ax, line in zip(shown.displays, shown.axes_, lines, strict=True):
            assert display.ax_ is ax
            assert display.labels == ["a", "b", "c"]
            assert [each.get_xdata()[0] for each in display.threshold_lines_] == line.thresholds.tolist()
        names = [f"line {k} (found for {label})" for k, label in enumerate("abc", 1)]
        for name, ax in zip(names, shown.axes_, strict=True):
            assert ax.get_title() == f"x0\n{name}, importance 1"
        assert [ax.get_title() for ax in WeightsDisplay.from_estimator(model).axes_] == names
        assert shown.figure_.get_suptitle() == "Everything"
        figure, axes = plt.subplots(1, 3)
        assert ProjectionDisplay.from_estimator(model, ax=axes).figure_ is figure
        empty = matplotlib.figure.Figure()
        assert ProjectionDisplay.from_estimator(model, ax=empty).axes_.tolist() == empty.axes
        with pytest.raises(ValueError, match=r"3 lines are shown, but ax has 1 axes: .* or show fewer"):
            ProjectionDisplay.from_estimator(model, ax=axes[0])

    def test_rows_in_other_intervals_of_one_of_several_lines_are_not_called_misclassified(self, lines, data):
        X, y = data
        shown = ProjectionDisplay.from_estimator(lines, X, y)
        assert isinstance(shown, LinePanels)
        assert len(shown.displays) == len(lines.lines_) > 1
        for display, line in zip(shown.displays, lines.lines_, strict=True):
            wrong = np.sum((line.curves[0].at(X @ line.direction) > 0) != (y == "outside"))
            assert legend_of(display)[-1] == f"in an interval of another class ({wrong} of 300)"

    def test_narrow_bands_keep_their_label(self):
        line = _line([0.0, 0.05, 1.0], places=np.linspace(-5, 5, 81))
        display = ProjectionDisplay.from_estimator(_fitted_like(line, classes=["left", "right"]))
        written = {round(float(text.get_position()[0]), 3): text for text in display.ax_.texts}
        assert [text.get_text() for _, text in sorted(written.items())] == ["left", "right", "left", "right"]
        assert written[0.025].get_rotation() == 90
        assert written[0.525].get_rotation() == 0

    def test_names_of_many_narrow_bands_do_not_cover_each_other(self):
        line = _line(np.linspace(-1, 1, 999), places=np.linspace(-3, 3, 81))
        display = ProjectionDisplay.from_estimator(_fitted_like(line, classes=["a", "b" * 1000]))
        places = np.sort([text.get_position()[0] for text in display.ax_.texts])
        assert 10 < len(places) < 40
        assert np.diff(places).min() > 0.02 * np.ptp(display.grid)
        assert max(len(text.get_text()) for text in display.ax_.texts) <= 24

    def test_representations_are_short(self, model, data):
        for display in (ProjectionDisplay, WeightsDisplay):
            assert len(repr(display.from_estimator(model, data[0]))) < 100
        assert len(repr(ConvergenceDisplay.from_estimator(model))) < 100

    def test_in_grey_the_two_classes_differ_in_line_and_hatching(self, model):
        display = ProjectionDisplay.from_estimator(model)
        first, second = display.lines_
        assert first.get_linestyle() != second.get_linestyle()
        assert {patch.get_hatch() for patch in display.ax_.patches} >= {"////"}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"y": ["inside"]}, "y was given without X"),
            ({"X": np.zeros((2, 3)), "y": ["inside"]}, r"y has shape \(1,\), but X has 2 rows"),
            (
                {"X": np.zeros((1, 3)), "y": ["elsewhere"]},
                r"y contains 'elsewhere', .* the model's classes \['inside', 'outside'\]",
            ),
            ({"X": np.zeros((1, 2))}, "X has 2 features, but MELC is expecting 3"),
            ({"data": "violin"}, "data must be .*got 'violin'"),
        ],
    )
    def test_faults(self, model, arguments, message):
        with pytest.raises(ValueError, match=message):
            ProjectionDisplay.from_estimator(model, **arguments)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            ProjectionDisplay.from_estimator(MELC())

    def test_picture_is_not_blank(self, model, data):
        image = pixels(ProjectionDisplay.from_estimator(model, *data).figure_)
        assert len(np.unique(image.reshape(-1, 4), axis=0)) > 100


def test_several_classes_as_fitted():
    X, y = load_iris(return_X_y=True)
    fitted = MELC(n_init=2, tol=1e-3, random_state=0).fit(X, y)
    display = ProjectionDisplay.from_estimator(fitted, X, y, line=2)
    z = X @ fitted.coef_[1]
    wrong = np.sum(np.argmax([curve.at(z) for curve in fitted.lines_[1].curves], axis=0) != y)
    assert legend_of(display)[-1] == f"in an interval of another class ({wrong} of 150)"
    np.testing.assert_allclose(
        np.abs(WeightsDisplay.from_estimator(fitted, line=2).weights),
        np.sort(np.abs(fitted.coef_[1] * X.std(axis=0)))[::-1],
    )
    lines = ConvergenceDisplay.from_estimator(fitted, line=2).lines_
    assert [line.get_ydata()[-1] for line in lines] == [run.history[-1] for run in fitted.results_[1]]


class TestWeightsDisplay:
    def test_long_class_names_stay_inside_the_figure(self):
        X = np.random.default_rng(0).normal(size=(80, 2))
        y = np.where(X[:, 0] > 0, "CLASS " + "A" * 60, "CLASS " + "B" * 60)
        display = WeightsDisplay.from_estimator(MELC(n_init=1, random_state=0).fit(X, y))
        display.figure_.canvas.draw()
        label, figure = display.ax_.xaxis.label.get_window_extent(), display.figure_.bbox
        assert any(display.labels)
        assert label.x0 >= figure.x0
        assert label.x1 <= figure.x1

    def test_strongest_first_with_names(self, model):
        display = WeightsDisplay.from_estimator(model, feature_names=["a", "b", "c"])
        contributions = model.coef_[0] * model.feature_spread_
        order = np.argsort(-np.abs(contributions))
        assert display.names == [["a", "b", "c"][i] for i in order]
        np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], contributions[order])

    @pytest.mark.parametrize("with_rows", [True, False])
    def test_standard_deviations_make_weights_comparable(self, data, with_rows):
        X, y = data
        scale = np.array([1.0, 1000.0, 0.01])
        model = MELC(n_init=1, random_state=0).fit(X * scale, y)
        assert np.argmax(np.abs(model.coef_[0])) == 2  # by its units alone
        display = WeightsDisplay.from_estimator(model, X * scale if with_rows else None)
        assert display.names[:2] == ["x0", "x1"]
        expected = model.coef_[0] * (X * scale).std(axis=0)
        np.testing.assert_allclose(display.weights, expected[np.argsort(-np.abs(expected))])
        assert display.ax_.get_xlabel().count("standard deviation") == 1

    def test_lines_of_some_features_show_these(self, lines):
        shown = WeightsDisplay.from_estimator(lines, feature_names=["a", "b", "c"])
        for display, line in zip(shown.displays, lines.lines_, strict=True):
            assert sorted(display.names) == [["a", "b", "c"][j] for j in line.features]
            assert display.n_hidden == 0
        assert len(shown.displays[0].names) == 2

    def test_arrows_name_classes_only_if_one_threshold_decides(self, model):
        assert len(model.thresholds_) == 2
        assert "→" not in WeightsDisplay.from_estimator(model).ax_.get_xlabel()
        one = WeightsDisplay.from_estimator(_fitted_like(_line([0.5]), classes=["low", "high"]))
        assert one.ax_.get_xlabel() == "← low     weight × standard deviation     high →"
        other = WeightsDisplay.from_estimator(_fitted_like(_line([0.5], first=1), classes=["low", "high"]))
        assert other.ax_.get_xlabel() == "← high     weight × standard deviation     low →"
        classes = ["low", "never", "high"]
        between = WeightsDisplay.from_estimator(_fitted_like(_line_of_classes([0.5], 3, codes=[2, 0]), classes=classes))
        assert between.ax_.get_xlabel() == "← high     weight × standard deviation     low →"
        assert between.bars_[0].get_facecolor() == matplotlib.colors.to_rgba(CLASS_COLOURS[0])

    def test_bars_have_colours_of_classes_only_if_one_threshold_decides(self, model):
        grey = {bar.get_facecolor() for bar in WeightsDisplay.from_estimator(model).bars_}
        assert grey == {matplotlib.colors.to_rgba("#6E6E6E")}
        one = WeightsDisplay(["down", "up"], np.array([-1.0, 1.0]), labels=("low", "high")).plot()
        turned = WeightsDisplay(["down", "up"], np.array([-1.0, 1.0]), labels=("high", "low"), sides=(1, 0)).plot()
        colours = [[bar.get_facecolor() for bar in display.bars_] for display in (one, turned)]
        assert colours[0] == colours[1][::-1]
        assert [bar.get_facecolor() for bar in one.bars_] == [matplotlib.colors.to_rgba(c) for c in CLASS_COLOURS[:2]]

    def test_long_names_are_told_apart_below_their_bars(self, model):
        names = ["mean of the measurements of the " + end for end in ("first year", "second year", "third year")]
        display = WeightsDisplay.from_estimator(model, feature_names=names)
        shown = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert shown == shortened(display.names)
        assert [name.split()[-2] for name in shown] == [name.split()[-2] for name in display.names]

    def test_a_search_has_the_names_and_contributions_of_its_best_estimator(self, data):
        X, y = data
        search = GridSearchCV(make_pipeline(PCA(2), MELC(n_init=1, random_state=0)), {"melc__gamma": [1.0]}, cv=2)
        found = WeightsDisplay.from_estimator(search.fit(X, y), X)
        expected = WeightsDisplay.from_estimator(search.best_estimator_, X)
        assert found.names == expected.names
        assert set(found.names) == {"pca0", "pca1"}
        np.testing.assert_array_equal(found.weights, expected.weights)

    def test_scalers_of_a_pipeline_change_no_contribution(self, data):
        X, y = data
        pipeline = make_pipeline(StandardScaler(), MELC(n_init=1, random_state=0)).fit(X * [1, 10, 100], y)
        display = WeightsDisplay.from_estimator(pipeline)
        expected = fitted_model(pipeline).coef_[0] * (X * [1, 10, 100]).std(axis=0)
        np.testing.assert_allclose(display.weights, expected[np.argsort(-np.abs(expected))])

    def test_sparse_rows_have_the_same_standard_deviations(self, model, data):
        dense = WeightsDisplay.from_estimator(model, data[0])
        sparse = WeightsDisplay.from_estimator(model, scipy.sparse.csr_array(data[0]))
        np.testing.assert_allclose(dense.weights, sparse.weights)

    def test_weaker_features_are_counted(self, model):
        display = WeightsDisplay.from_estimator(model, max_features=1)
        assert (len(display.bars_), display.n_hidden) == (1, 2)
        assert any("2 features with smaller contributions not shown" in text.get_text() for text in display.ax_.texts)

    def test_names_come_from_the_pipeline(self, data):
        X, y = data
        pipeline = make_pipeline(PCA(2), MELC(n_init=1, random_state=0)).fit(X, y)
        assert set(WeightsDisplay.from_estimator(pipeline, X).names) == {"pca0", "pca1"}

    def test_a_step_without_names_falls_back_to_numbers(self, data):
        X, y = data
        pipeline = make_pipeline(FunctionTransformer(np.cbrt), MELC(n_init=1, random_state=0)).fit(X, y)
        assert set(WeightsDisplay.from_estimator(pipeline).names) == {"x0", "x1", "x2"}

    def test_wrong_number_of_names(self, model):
        with pytest.raises(ValueError, match="feature_names has 2 names, but the model has 3 features"):
            WeightsDisplay.from_estimator(model, feature_names=["a", "b"])


@pytest.mark.parametrize(
    "names",
    [
        ["a" * 50 + str(k) for k in range(3)],
        [f"{k}" + "a" * 50 for k in range(3)],
        ["a" * 10 + str(k) + "b" * 50 for k in range(3)],
        ["a" * 50 + str(k) + "b" * 50 for k in range(3)],
        ["short", "long" * 300_000, "short"],
    ],
)
def test_long_names_are_cut_and_stay_apart(names):
    cut = shortened(names)
    assert max(len(name) for name in cut) <= 36
    assert len(set(cut)) == len(set(names))
    assert all(a == b for a, b in zip(cut, names, strict=True) if len(b) <= 32)
    assert shortened(["first half " * 5 + "second half"])[0] == "first half firs…half second half"


class TestConvergenceDisplay:
    def test_one_line_a_start_and_the_best_in_front(self, model):
        display = ConvergenceDisplay.from_estimator(model)
        assert len(display.lines_) == len(model.results_)
        for line, result in zip(display.lines_, model.results_, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), result.history)
        best = int(np.argmax([result.history[-1] for result in model.results_]))
        assert display.lines_[best].get_linewidth() == max(line.get_linewidth() for line in display.lines_)

    def test_legend_names_the_best_and_counts_the_others(self, model):
        texts = legend_of(ConvergenceDisplay.from_estimator(model))
        assert sum("best start" in text for text in texts) == 1
        assert sum("1 other start" in text for text in texts) == 1

    def test_pipelines_and_searches_have_the_runs_of_their_model(self, data):
        pipeline = make_pipeline(StandardScaler(), MELC(n_init=2, random_state=0))
        search = GridSearchCV(pipeline, {"melc__gamma": [1.0]}, cv=2).fit(*data)
        for fitted in (search, search.best_estimator_):
            lines = ConvergenceDisplay.from_estimator(fitted).lines_
            assert [line.get_ydata()[-1] for line in lines] == [
                run.history[-1] for run in search.best_estimator_[-1].results_
            ]

    def test_of_several_classes_all_are_shown(self):
        X, y = load_iris(return_X_y=True)
        fitted = MELC(n_init=2, tol=1e-3, random_state=0).fit(X, y)
        shown = ConvergenceDisplay.from_estimator(fitted)
        for display, runs in zip(shown.displays, fitted.results_, strict=True):
            assert [line.get_ydata()[-1] for line in display.lines_] == [run.history[-1] for run in runs]

    def test_a_model_without_runs_says_so(self, lines):
        for model in (_fitted_like(_line([0.5])), lines):
            with pytest.raises(ValueError, match=f"The {type(model).__name__} has no record of runs"):
                ConvergenceDisplay.from_estimator(model)


@pytest.mark.parametrize(("display", "n_named"), [(ProjectionDisplay, 6), (WeightsDisplay, 4), (ConvergenceDisplay, 1)])
@pytest.mark.parametrize("classes", [("$y^2$", "$$"), ("$y^2$", "$$", "$^$")])
def test_dollars_are_drawn_as_they_are(display, n_named, classes):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = ["$a$", "cost in $", "$x_1$", "{$^$}"]
    labels = np.array(classes)[np.minimum(y, len(classes) - 1)]
    model = MELC(n_init=1, random_state=0).fit(X, labels)
    figure = display.from_estimator(model, title="$title$").figure_
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(matplotlib.text.Text) if "$" in text.get_text()]
    assert not [text.get_text() for text in texts if text.get_parse_math()]
    assert len(texts) >= n_named - (len(classes) == 2)


def test_without_matplotlib_the_error_has_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'melc\[plot\]'"):
        ConvergenceDisplay([np.ones(1)]).plot()


@pytest.mark.slow
def test_matplotlib_is_imported_only_when_something_is_drawn():
    code = "import sys, melc, melc.plotting; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "False"


def _line(thresholds, *, places=None, first=0):
    """Return a line of two classes along the only feature; the interval below the thresholds has code ``first``."""
    ends = np.concatenate([[thresholds[0] - 1], thresholds, [thresholds[-1] + 1]])
    middles = (ends[:-1] + ends[1:]) / 2
    signs = np.where((np.arange(len(middles)) + first) % 2, 1.0, -1.0)
    # A curve that rises is positive above the knot at which it is zero.
    zeros = np.where(signs[1:] > 0, np.nextafter(thresholds, -np.inf), thresholds)
    knots, order = np.append(middles, zeros), np.argsort(np.append(middles, zeros))
    places = np.linspace(thresholds[0] - 4, thresholds[0] + 4, 81) if places is None else places
    bells = [np.exp(-0.5 * (places - thresholds[0] - shift) ** 2) / np.sqrt(2 * np.pi) for shift in (-1, 1)]
    return Line(
        direction=np.ones(1),
        curves=(Curve(knots[order], np.append(signs, np.zeros(len(zeros)))[order]),),
        importance=1.0,
        feature_importances=np.ones(1),
        counts=np.ones((len(middles), 2)),
        places=places,
        densities=np.array(bells),
        offsets=np.zeros(1),
    )


def _line_of_classes(thresholds, n_classes=3, *, codes=None):
    """Return a line of several classes along the only feature, each of which leads in at most one interval."""
    codes = list(range(len(thresholds) + 1)) if codes is None else codes
    ends = np.concatenate([[thresholds[0] - 1], thresholds, [thresholds[-1] + 1]])
    middles = (ends[:-1] + ends[1:]) / 2
    curves = [Curve(middles, np.full(len(middles), -1.0)) for _ in range(n_classes)]
    for k, code in enumerate(codes):  # from one in the middle of an interval to minus one in those of its neighbours
        curves[code] = Curve(middles, np.where(np.arange(len(middles)) == k, 1.0, -1.0))
    places = np.linspace(ends[0] - 3, ends[-1] + 3, 81)
    bells = [np.exp(-0.5 * (places - middles[k % len(middles)]) ** 2) for k in range(n_classes)]
    return Line(
        direction=np.ones(1),
        curves=tuple(curves),
        importance=1.0,
        feature_importances=np.ones(1),
        counts=np.ones((len(middles), n_classes)),
        places=places,
        densities=np.array(bells) / np.sqrt(2 * np.pi),
        offsets=np.zeros(n_classes),
    )


def _fitted_like(*lines, classes=(0, 1)):
    """Return a model with given lines, for cases that are hard to reach with data."""
    model = MELC()
    model.classes_, model.lines_ = np.array(classes), list(lines)
    model.intercepts_ = np.zeros(1 if len(classes) == 2 else len(classes))
    model.feature_mean_, model.feature_spread_, model.n_features_in_ = np.zeros(1), np.ones(1), 1
    model.columns_ = Columns()
    return model


def test_names_in_pictures_have_no_control_characters():
    assert shortened(["a\nb", "c\x1b[31m", "d\u202ee"]) == [r"a\nb", r"c\x1b[31m", r"d\u202ee"]


def test_only_names_that_are_cut_are_numbered():
    long = ["a" * 40 + middle + "b" * 40 for middle in "xy"]
    assert shortened([*long, "short"]) == ["a" * 16 + "…" + "b" * 15 + f" ({k})" for k in (1, 2)] + ["short"]
