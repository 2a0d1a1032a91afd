"""Displays of lines show those of the model: artists are compared with the model, not with stored images."""

import copy
from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from matplotlib.colors import to_rgba
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC, AdditiveMELC
from melc.model.units import fitted_model
from melc.plotting import LinesDisplay, PlaneDisplay
from melc.plotting.common import CLASS_COLOURS


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
def melc(data):
    """A model with one line, of two features, whose intercept is not zero."""
    X, y = data
    return MELC(n_init=1, random_state=0, priors=[0.4, 0.6]).fit(X[:, :2], y)


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
        for (curve,), line in zip(display.curves_, by_importance(model), strict=True):
            z, values = curve.get_data()
            np.testing.assert_allclose(values, line.curves[0].at(z))
            assert set(line.curves[0].knots) <= set(z)

    def test_bands_are_standard_errors_around_the_curves(self, model, iris):
        for fitted in (model, iris[0]):
            display = LinesDisplay.from_estimator(fitted, max_lines=1)
            line, low, high = by_importance(fitted)[0], *display._limits()
            assert len(display.bands_[0]) == len(line.curves)
            for band, curve, errors in zip(display.bands_[0], line.curves, line.errors, strict=True):
                upper = np.clip(curve.log_odds + 1.96 * errors, low, high)
                drawn = band.get_paths()[0].vertices
                points = np.column_stack([curve.knots, upper])
                inside = (curve.knots >= drawn[:, 0].min()) & (curve.knots <= drawn[:, 0].max())
                apart = np.abs(points[inside][:, None] - drawn).max(axis=2).min(axis=1)
                assert apart.max() < 1e-9
            assert "± 1.96 standard errors" in [text.get_text() for text in display.figure_.legends[0].get_texts()]

    def test_without_standard_errors_there_are_no_bands(self, melc):
        display = LinesDisplay.from_estimator(melc)
        assert melc.lines_[0].errors == ()
        assert display.bands_ == [[]]
        assert len(display.figure_.legends[0].get_texts()) == 4

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
        assert title.startswith(f"z = {line.direction[strongest]:.2g} {name}")
        number = 1 + [other is line for other in model.lines_].index(True)
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
        z = X @ panel.line.direction
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
        assert low < min(line.curves[0].log_odds.min() for line in model.lines_)
        assert high > max(line.curves[0].log_odds.max() for line in model.lines_)

    def test_less_important_lines_are_counted(self, model):
        display = LinesDisplay.from_estimator(model, max_lines=1)
        assert display.n_hidden == len(model.lines_) - 1
        assert f"{display.n_hidden} less important lines not shown" in display.figure_.legends[0].get_title().get_text()

    def test_several_classes(self, iris):
        model, X, y = iris
        everything = LinesDisplay.from_estimator(model, X, y, max_lines=99)
        for panel, curves, line in zip(everything.panels, everything.curves_, by_importance(model), strict=True):
            assert panel.line is line
            assert len(panel.heights) == 3
            assert [curve.get_color() for curve in curves] == list(CLASS_COLOURS[:3])
            for drawn, curve in zip(curves, line.curves, strict=True):
                z, values = drawn.get_data()
                np.testing.assert_allclose(values, curve.at(z))
        names = [text.get_text() for text in everything.figure_.legends[0].get_texts()]
        assert names[:3] == ["0", "1", "2"]
        z, colours = X.to_numpy() @ everything.panels[0].line.direction, [to_rgba(c) for c in CLASS_COLOURS[:3]]
        best = np.argmax([curve.at(z) for curve in everything.panels[0].line.curves], axis=0)
        for place, code in zip(z, best, strict=True):
            over = [patch for patch in everything.axes_[0].patches if patch.get_x() <= place]
            assert over[-1].get_facecolor() == colours[code]

    def test_the_curves_of_one_of_several_classes(self, iris):
        model, _, _ = iris
        display = LinesDisplay.from_estimator(model, class_label=2, max_lines=1)
        ((drawn,),), line = display.curves_, by_importance(model)[0]
        np.testing.assert_allclose(drawn.get_ydata(), line.curves[2].at(drawn.get_xdata()))
        assert drawn.get_color() == CLASS_COLOURS[2]
        with pytest.raises(ValueError, match="class_label=7 is not a class of the model"):
            LinesDisplay.from_estimator(model, class_label=7)

    def test_minor_lines_are_counted_and_shown_only_if_asked_for(self, model):
        minor, other = copy.copy(model), model.lines_[0]
        minor.lines_ = [replace(line, minor=line is not other) for line in model.lines_]
        display = LinesDisplay.from_estimator(minor)
        assert (len(display.panels), display.n_minor) == (1, len(model.lines_) - 1)
        assert display.figure_.legends[0].get_title().get_text() == f"{display.n_minor} minor lines not shown"
        both = LinesDisplay.from_estimator(minor, minor=True)
        assert [panel.line.minor for panel in both.panels] == [False] + [True] * display.n_minor
        chosen = LinesDisplay.from_estimator(minor, line=2)
        assert [panel.line for panel in chosen.panels] == [minor.lines_[1]]
        with pytest.raises(ValueError, match="line=0, but there are the lines 1 to"):
            LinesDisplay.from_estimator(minor, line=0)

    def test_axes_may_be_given(self, model):
        figure, axes = plt.subplots(2, 1)
        display = LinesDisplay.from_estimator(model, max_lines=2, ax=axes, title="Two lines")
        assert display.figure_ is figure
        assert len(plt.get_fignums()) == 1
        assert figure.get_suptitle() == "Two lines"
        with pytest.raises(ValueError, match=r"3 lines are shown, but ax has 2 axes: .* or show fewer"):
            LinesDisplay.from_estimator(model, max_lines=3, ax=axes)

    def test_pipelines_and_searches(self, data):
        X, y = data
        scaled = X * [1, 10, 100, 1]
        pipeline = make_pipeline(StandardScaler(), AdditiveMELC(max_lines=2, random_state=0)).fit(scaled, y)
        folded = fitted_model(pipeline)
        search = GridSearchCV(pipeline, {"additivemelc__gamma": [1.0]}, cv=2).fit(scaled, y)
        for estimator in (pipeline, search):
            display = LinesDisplay.from_estimator(estimator, scaled, y)
            shown, expected = display.panels[0].line, by_importance(folded)[0]
            np.testing.assert_array_equal(shown.curves[0].knots, expected.curves[0].knots)
        other = make_pipeline(PCA(2), AdditiveMELC(max_lines=1, random_state=0)).fit(X, y)
        assert "pca" in LinesDisplay.from_estimator(other, X, y).axes_[0].get_title()

    def test_a_line_that_decides_alone_has_its_intercept(self, melc, data):
        X, y = data
        display = LinesDisplay.from_estimator(melc, X[:, :2], y)
        z, values = display.curves_[0][0].get_data()
        np.testing.assert_allclose(values, melc.lines_[0].curves[0].at(z) + np.log(1.5), atol=1e-12)
        assert [mark.get_xdata()[0] for mark in display.threshold_lines_[0]] == melc.thresholds_.tolist()
        assert len(melc.thresholds_) > 0
        assert display.axes_[0].get_ylabel() == "log-odds"
        assert PlaneDisplay.from_estimator(melc).line.thresholds.tolist() == melc.thresholds_.tolist()

    def test_lines_that_were_found_for_classes_say_so(self):
        X, y = load_iris(return_X_y=True)
        fitted = MELC(n_init=1, random_state=0).fit(X, y)
        display = LinesDisplay.from_estimator(fitted, X, y)
        assert [panel.line for panel in display.panels] == by_importance(fitted)
        for panel in display.panels:
            k = next(k for k, line in enumerate(fitted.lines_) if line is panel.line)
            assert f"line {k + 1} (found for {k}), importance" in panel.title

    def test_legend_of_a_single_line_stays_inside_the_figure(self, melc):
        figure = LinesDisplay.from_estimator(melc).figure_
        figure.canvas.draw()
        legend = figure.legends[0].get_window_extent()
        assert 0 <= legend.x0 < legend.x1 <= figure.bbox.x1

    def test_long_names_are_cut(self, model):
        names = [f"{'long ' * 20}{k}" for k in range(4)]
        display = LinesDisplay.from_estimator(model, feature_names=names)
        for ax in display.axes_:
            assert max(len(part) for part in ax.get_title().split("\n")) <= 48


class TestPlaneDisplay:
    @pytest.mark.parametrize(
        ("kind", "number", "scale"), [("model", 2, "adds to the log-odds"), ("melc", 1, "log-odds")]
    )
    def test_the_background_is_what_the_line_says(self, data, kind, number, scale, request):
        model = request.getfixturevalue(kind)
        X, y, line = data[0][:, : model.n_features_in_], data[1], model.lines_[number - 1]
        display = PlaneDisplay.from_estimator(model, X, y, line=number)
        heights = display.image_.get_array()
        (left, right), (low, high) = display.limits
        for row, column in [(0, 0), (10, 200), (299, 299), (150, 7)]:
            x = np.zeros(X.shape[1])
            x[line.features] = left + (right - left) * column / 299, low + (high - low) * row / 299
            assert heights[row, column] == pytest.approx(line.decisive[0].at(np.array([x @ line.direction]))[0])
        assert display.ax_.get_xlabel() == f"x{line.features[0]}"
        assert display.ax_.get_ylabel() == f"x{line.features[1]}"
        assert f"line {number}, importance" in display.ax_.get_title()
        assert display.figure_.axes[-1].get_ylabel().startswith(f"{scale}\n← inside")

    def test_by_default_the_most_important_line_of_two_features(self, data, iris):
        model, X, y = iris
        line = PlaneDisplay.from_estimator(model, X, y).line
        assert line.importance == max(line.importance for line in model.lines_ if len(line.features) == 2)

    def test_of_several_classes_the_colour_is_that_of_the_highest_curve(self, iris):
        model, X, _ = iris
        display = PlaneDisplay.from_estimator(model, X)
        image, (left, right), (low, high) = display.image_.get_array(), *display.limits
        colours = np.array([to_rgba(colour)[:3] for colour in CLASS_COLOURS[:3]])
        for row, column in [(0, 0), (10, 200), (299, 299), (150, 7), (120, 180)]:
            place = left + (right - left) * column / 299, low + (high - low) * row / 299
            z = np.array([place @ display.line.direction[display.line.features]])
            first, second = np.sort([curve.at(z)[0] for curve in display.line.curves])[[-1, -2]]
            best = np.argmax([curve.at(z)[0] for curve in display.line.curves])
            paleness = (1 - image[row, column]) / (1 - colours[best])
            np.testing.assert_allclose(paleness, paleness[0])
            assert (paleness[0] > 1e-9) == (first - second > 1e-9)
        names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert set(names) == {f"favours {code}" for code in display.line.codes}

    def test_the_background_of_one_of_several_classes(self, iris):
        model, X, y = iris
        display = PlaneDisplay.from_estimator(model, X, y, class_label=1)
        corner = np.array([display.limits[0][0], display.limits[1][0]])
        z = corner @ display.line.direction[display.line.features]
        expected = display.line.curves[1].at(np.array([z]))[0]
        assert display.image_.get_array()[0, 0] == pytest.approx(expected)
        assert display.figure_.axes[-1].get_ylabel() == "adds to the log-odds of 1"
        assert [points.get_label() for points in display.ax_.collections[-3:]] == ["0", "1", "2"]

    def test_the_legend_covers_no_rows(self, iris):
        model, X, y = iris
        for display in (PlaneDisplay.from_estimator(model, X, y), PlaneDisplay.from_estimator(model)):
            display.figure_.canvas.draw()
            legend = display.ax_.get_legend().get_window_extent()
            assert legend.y0 > display.ax_.get_window_extent().y1 - 5  # a legend has an invisible margin
            assert display.ax_.title.get_window_extent().y0 > legend.y1 - 8

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
        features = display.line.features
        corners = [
            np.dot(display.line.direction[features], (a, b)) for a in display.limits[0] for b in display.limits[1]
        ]
        places = display.line.places
        assert min(corners) - 1e-12 <= places[0] < places[-1] <= max(corners) + 1e-12
        np.testing.assert_allclose(np.mean(display.limits, axis=1), model.feature_mean_[features])
        np.testing.assert_allclose(
            np.ptp(display.limits[0]) / np.ptp(display.limits[1]), np.divide(*model.feature_spread_[features])
        )

    def test_an_outlier_does_not_squeeze_the_picture(self, model, data):
        X = data[0].copy()
        X[0] = 1e6
        assert max(high for _, high in PlaneDisplay.from_estimator(model, X).limits) < 10

    def test_thresholds_are_drawn(self, model, data):
        display = PlaneDisplay.from_estimator(model, *data)
        contours = display.ax_.collections[0]
        places = np.concatenate(
            [path.vertices @ display.line.direction[display.line.features] for path in contours.get_paths()]
        )
        nearest = np.abs(places[:, None] - display.line.thresholds).min(axis=1)
        assert len(places) > 0
        np.testing.assert_allclose(nearest, 0, atol=1e-9)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"line": 99}, "line=99, but there are the lines 1 to"),
            ({"line": 0}, "line=0, but there are the lines 1 to"),
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
        with pytest.raises(ValueError, match="Line 1 has 4 features, and a plane needs two: LinesDisplay plots it"):
            PlaneDisplay.from_estimator(full, line=1)
        single = AdditiveMELC(features_per_line=1, full_lines="never", max_lines=1, random_state=0).fit(*data)
        with pytest.raises(ValueError, match="Line 1 has 1 feature, and a plane needs two"):
            PlaneDisplay.from_estimator(single, line=1)


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

    def test_not_fitted(self, display):
        with pytest.raises(NotFittedError):
            display.from_estimator(AdditiveMELC())

    def test_a_short_representation(self, model, data, display):
        assert len(repr(display.from_estimator(model, *data))) < 100

    def test_picture_is_not_blank(self, model, data, display):
        figure = display.from_estimator(model, *data).figure_
        figure.canvas.draw()
        assert len(np.unique(np.asarray(figure.canvas.buffer_rgba()).reshape(-1, 4), axis=0)) > 100


def test_max_lines_must_be_positive(model):
    with pytest.raises(ValueError, match="max_lines=0; it must be at least 1"):
        LinesDisplay.from_estimator(model, max_lines=0)
