"""Displays of an additive model show its lines: artists are compared with the model, not with stored images."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC, AdditiveMELC
from melc.model.units import fitted_model
from melc.plotting import ConvergenceDisplay, LinesDisplay, PlaneDisplay, ProjectionDisplay, WeightsDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(400, 4))
    y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 + 0.3 * X[:, 2] > 1.4, "outside", "inside")
    return X, y


@pytest.fixture(scope="module")
def model(data):
    return AdditiveMELC(max_lines=5, random_state=0, full_lines="never").fit(*data)


@pytest.fixture(scope="module")
def full(data):
    return AdditiveMELC(max_lines=2, features_per_line=None, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return AdditiveMELC(random_state=0, full_lines="never").fit(X, y), X, y


def by_importance(model):
    return sorted(model.lines_, key=lambda line: -line.importance)


def drawn_texts(figure):
    """Return the texts of a figure, after drawing."""
    figure.canvas.draw()
    return [text for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


class TestLinesDisplay:
    def test_curves_are_those_of_the_lines_by_importance(self, model):
        display = LinesDisplay.from_estimator(model)
        assert len(display.curves_) == len(model.lines_) > 2
        for curve, line in zip(display.curves_, by_importance(model), strict=True):
            z, values = curve.get_data()
            np.testing.assert_allclose(values, line.at(z))
            assert set(line.knots) <= set(z)

    def test_thresholds_stand_where_the_lines_have_them(self, model):
        display = LinesDisplay.from_estimator(model)
        for drawn, line in zip(display.threshold_lines_, by_importance(model), strict=True):
            assert [mark.get_xdata()[0] for mark in drawn] == line.thresholds.tolist()

    def test_titles_have_weights_number_and_importance(self, model):
        display = LinesDisplay.from_estimator(model, feature_names=["age", "pulse", "dose", "noise"])
        line = by_importance(model)[0]
        strongest = line.features[np.argmax(line.feature_importances[line.features])]
        name = ["age", "pulse", "dose", "noise"][strongest]
        title = display.axes_[0].get_title()
        assert title.startswith(f"z = {line.coef[strongest]:.2g} {name}")
        number = [other is line for other in model.lines_].index(True)
        assert title.endswith(f"\nline {number}, importance {line.importance:.2g}")

    def test_a_line_of_all_features_names_the_strongest(self, full):
        title = LinesDisplay.from_estimator(full).axes_[0].get_title()
        assert "+ 2 more" in title

    def test_densities_are_those_of_the_line(self, model):
        display = LinesDisplay.from_estimator(model)
        line = by_importance(model)[0]
        curves = display.axes_[0].child_axes[0].get_lines()
        for curve, density in zip(curves, line.densities, strict=True):
            np.testing.assert_array_equal(curve.get_data(), [line.places, density])

    def test_given_rows_are_shown_as_histograms(self, model, data):
        X, y = data
        panel = LinesDisplay.from_estimator(model, X, y).panels[0]
        z = X @ panel.line.coef
        for label, heights in zip(["inside", "outside"], panel.heights, strict=True):
            np.testing.assert_allclose(heights, np.histogram(z[y == label], panel.edges)[0] / np.sum(y == label))
        assert len(z[(z >= panel.edges[0]) & (z <= panel.edges[-1])]) / len(z) > 0.98
        without = LinesDisplay.from_estimator(model, scipy.sparse.csr_array(X)).panels[0]
        np.testing.assert_allclose(without.heights[0], np.histogram(z, panel.edges)[0] / len(z))

    def test_a_given_figure_is_filled(self, model):
        figure = matplotlib.figure.Figure(layout="constrained")
        display = LinesDisplay.from_estimator(model, max_lines=2, ax=figure)
        assert display.figure_ is figure
        assert figure.axes == display.axes_.tolist()
        assert len(figure.legends) == 1

    def test_all_panels_have_one_scale(self, model):
        limits = {ax.get_ylim() for ax in LinesDisplay.from_estimator(model).axes_}
        assert len(limits) == 1
        low, high = limits.pop()
        assert low < min(line.log_odds.min() for line in model.lines_)
        assert high > max(line.log_odds.max() for line in model.lines_)

    def test_less_important_lines_are_counted(self, model):
        display = LinesDisplay.from_estimator(model, max_lines=1)
        assert display.n_hidden == len(model.lines_) - 1
        assert f"{display.n_hidden} less important lines not shown" in display.figure_.legends[0].get_title().get_text()

    def test_several_classes(self, iris):
        model, X, y = iris
        everything = LinesDisplay.from_estimator(model, X, y, max_lines=99)
        assert len(everything.panels) == len(model.lines_)
        names = [text.get_text() for text in everything.figure_.legends[0].get_texts()]
        assert names[:2] == ["speaks for the rest", "speaks for the class"]
        one = LinesDisplay.from_estimator(model, class_label=2)
        assert [panel.line.class_index for panel in one.panels] == [2] * sum(k.class_index == 2 for k in model.lines_)
        assert one.panels[0].sides == ("rest", "2")
        assert "(2 against the rest)" in one.axes_[0].get_title()

    def test_axes_may_be_given(self, model):
        figure, axes = plt.subplots(2, 1)
        display = LinesDisplay.from_estimator(model, max_lines=2, ax=axes, title="Two lines")
        assert display.figure_ is figure
        assert len(plt.get_fignums()) == 1
        assert figure.get_suptitle() == "Two lines"
        with pytest.raises(ValueError, match=r"3 lines are shown, but ax has 2 axes: .* or set max_lines=2"):
            LinesDisplay.from_estimator(model, max_lines=3, ax=axes)

    def test_pipelines_and_searches(self, data):
        X, y = data
        scaled = X * [1, 10, 100, 1]
        pipeline = make_pipeline(StandardScaler(), AdditiveMELC(max_lines=2, random_state=0)).fit(scaled, y)
        folded = fitted_model(pipeline)
        search = GridSearchCV(pipeline, {"additivemelc__gamma": [1.0]}, cv=2).fit(scaled, y)
        for estimator in (pipeline, search):
            display = LinesDisplay.from_estimator(estimator, scaled, y)
            np.testing.assert_array_equal(display.panels[0].line.knots, by_importance(folded)[0].knots)
        other = make_pipeline(PCA(2), AdditiveMELC(max_lines=1, random_state=0)).fit(X, y)
        assert "pca" in LinesDisplay.from_estimator(other, X, y).axes_[0].get_title()

    def test_long_names_are_cut(self, model):
        names = [f"{'long ' * 20}{k}" for k in range(4)]
        display = LinesDisplay.from_estimator(model, feature_names=names)
        for ax in display.axes_:
            assert max(len(part) for part in ax.get_title().split("\n")) <= 48


class TestPlaneDisplay:
    def test_the_background_is_what_the_line_adds(self, model, data):
        display = PlaneDisplay.from_estimator(model, *data, line=1)
        line = model.lines_[1]
        heights = display.image_.get_array()
        (left, right), (low, high) = display.limits
        for row, column in [(0, 0), (10, 200), (299, 299), (150, 7)]:
            x = np.zeros(4)
            x[line.features] = left + (right - left) * column / 299, low + (high - low) * row / 299
            assert heights[row, column] == pytest.approx(line.at(x @ line.coef))
        assert display.ax_.get_xlabel() == f"x{line.features[0]}"
        assert display.ax_.get_ylabel() == f"x{line.features[1]}"

    def test_by_default_the_most_important_line_of_two_features(self, data, iris):
        model, X, y = iris
        line = PlaneDisplay.from_estimator(model, X, y).line
        assert line.importance == max(line.importance for line in model.lines_)
        of_class = PlaneDisplay.from_estimator(model, class_label=1).line
        assert of_class.importance == max(line.importance for line in model.lines_ if line.class_index == 1)

    def test_points_are_the_rows(self, model, data):
        X, y = data
        display = PlaneDisplay.from_estimator(model, X, y)
        for points, label in zip(display.ax_.collections[-2:], ["inside", "outside"], strict=True):
            np.testing.assert_array_equal(points.get_offsets(), X[y == label][:, display.line.features])
            assert points.get_label() == label
        np.testing.assert_array_equal(
            PlaneDisplay.from_estimator(model, scipy.sparse.csr_array(X)).points, X[:, display.line.features]
        )

    def test_many_rows_are_sampled(self, model, data):
        X, y = data
        display = PlaneDisplay.from_estimator(model, X, y, max_rows=50)
        assert display.points.shape == (50, 2)
        shown = {tuple(row): label for row, label in zip(X[:, display.line.features], y, strict=True)}
        labels = [shown[tuple(row)] for row in display.points]
        assert [label == "outside" for label in labels] == display.targets.astype(bool).tolist()

    def test_without_rows_all_values_of_the_curve_are_in_the_picture(self, model):
        display = PlaneDisplay.from_estimator(model)
        weights = display.line.coef[display.line.features]
        corners = [np.dot(weights, (a, b)) for a in display.limits[0] for b in display.limits[1]]
        np.testing.assert_allclose([min(corners), max(corners)], display.line.knots[[0, -1]])

    def test_an_outlier_does_not_squeeze_the_picture(self, model, data):
        X = data[0].copy()
        X[0] = 1e6
        assert max(high for _, high in PlaneDisplay.from_estimator(model, X).limits) < 10

    def test_thresholds_are_drawn(self, model, data):
        display = PlaneDisplay.from_estimator(model, *data)
        contours = display.ax_.collections[0]
        places = np.concatenate(
            [path.vertices @ display.line.coef[display.line.features] for path in contours.get_paths()]
        )
        nearest = np.abs(places[:, None] - display.line.thresholds).min(axis=1)
        assert len(places) > 0
        np.testing.assert_allclose(nearest, 0, atol=1e-9)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"line": 99}, "line=99, but the model has the lines 0 to"),
            ({"line": -1}, "line=-1, but the model has the lines 0 to"),
            ({"y": ["inside"]}, "y was given without X"),
            ({"class_label": "elsewhere"}, "class_label='elsewhere' is not a class of the model"),
            ({"max_rows": -1}, "max_rows=-1"),
            ({"X": np.zeros((2, 4)), "y": ["inside"]}, r"y has shape \(1,\), but X has 2 rows"),
            ({"X": np.zeros((1, 4)), "y": ["elsewhere"]}, "'elsewhere'.* is not one of the model's classes"),
        ],
    )
    def test_faults(self, model, arguments, message):
        with pytest.raises(ValueError, match=message):
            PlaneDisplay.from_estimator(model, **arguments)

    def test_lines_of_more_or_fewer_features_are_refused(self, full, data):
        with pytest.raises(ValueError, match="No line of the model has two features; LinesDisplay plots any"):
            PlaneDisplay.from_estimator(full)
        with pytest.raises(ValueError, match="Line 0 has 4 features, and a plane needs two: LinesDisplay plots it"):
            PlaneDisplay.from_estimator(full, line=0)
        single = AdditiveMELC(features_per_line=1, full_lines="never", max_lines=1, random_state=0).fit(*data)
        with pytest.raises(ValueError, match="Line 0 has 1 feature, and a plane needs two"):
            PlaneDisplay.from_estimator(single, line=0)


@pytest.mark.parametrize("display", [LinesDisplay, PlaneDisplay])
class TestBoth:
    def test_dollars_are_drawn_as_they_are(self, data, display):
        X, y = data
        frame = pd.DataFrame(X, columns=["$a$", "cost in $", "$x_1$", "{$^$}"])
        labels = np.where(y == "inside", "$y^2$", "$$")
        model = AdditiveMELC(max_lines=2, full_lines="never", random_state=0).fit(frame, labels)
        figure = display.from_estimator(model, frame, labels, title="$title$").figure_
        texts = drawn_texts(figure)
        assert not [text for text in texts if "$" in text.get_text() and text.get_parse_math()]
        assert sum("$" in text.get_text() for text in texts) >= 5

    def test_a_melc_has_no_lines(self, data, display):
        with pytest.raises(ValueError, match="MELC has a projection and no lines: plot it with ProjectionDisplay"):
            display.from_estimator(MELC(n_init=1, random_state=0).fit(*data))

    def test_not_fitted(self, display):
        with pytest.raises(NotFittedError):
            display.from_estimator(AdditiveMELC())

    def test_a_short_representation(self, model, data, display):
        assert len(repr(display.from_estimator(model, *data))) < 100

    def test_picture_is_not_blank(self, model, data, display):
        figure = display.from_estimator(model, *data).figure_
        figure.canvas.draw()
        assert len(np.unique(np.asarray(figure.canvas.buffer_rgba()).reshape(-1, 4), axis=0)) > 100


@pytest.mark.parametrize("display", [ProjectionDisplay, WeightsDisplay, ConvergenceDisplay])
def test_displays_of_projections_refuse_an_additive_model(model, display):
    with pytest.raises(ValueError, match="no single projection: plot it with LinesDisplay or PlaneDisplay"):
        display.from_estimator(model)


def test_max_lines_must_be_positive(model):
    with pytest.raises(ValueError, match="max_lines=0; it must be at least 1"):
        LinesDisplay.from_estimator(model, max_lines=0)
