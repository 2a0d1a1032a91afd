"""Displays of explanations, changes and intervals show what was computed: artists are compared with the numbers."""

import itertools
from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse
from matplotlib.colors import to_hex
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from melc import MELC, AdditiveMELC
from melc.explain import explain, nearest_change
from melc.inference import bootstrap
from melc.plotting import ChangeDisplay, ExplanationDisplay, IntervalsDisplay
from melc.plotting.common import CLASS_COLOURS

X, SPECIES = load_iris(return_X_y=True, as_frame=True)
TWO = np.where(SPECIES == 1, "$versicolor$", "other")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return MELC(n_init=2, random_state=0).fit(X, TWO)


@pytest.fixture(scope="module")
def lines():
    return AdditiveMELC(random_state=0).fit(X, SPECIES)


@pytest.fixture(scope="module")
def few_lines():
    """So few and of so few features that they are soon fitted to many resamples."""
    return AdditiveMELC(max_lines=3, full_lines="never", random_state=0).fit(X, SPECIES)


@pytest.fixture(scope="module")
def resampled_lines(few_lines):
    return bootstrap(few_lines, X, SPECIES, n=20, random_state=0)


@pytest.fixture(scope="module")
def resampled(model):
    return bootstrap(model, X, TWO, n=20, random_state=0)


def names_of(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


class TestExplanation:
    def test_the_bars_lead_from_the_reference_to_the_row(self, model):
        display = ExplanationDisplay.from_estimator(model, X, row=60)
        found = explain(model, X)
        order = np.argsort(-np.abs(found.log_odds_parts[60, 0]))
        widths = [bar.get_width() for bar in display.bars_]
        np.testing.assert_allclose(widths, found.log_odds_parts[60, 0][order])
        assert display.bars_[0].get_x() == pytest.approx(found.base[0])
        assert display.bars_[-1].get_x() + widths[-1] == pytest.approx(found.log_odds[60, 0])
        for previous, bar in itertools.pairwise(display.bars_):
            assert previous.get_x() + previous.get_width() == pytest.approx(bar.get_x())
        shown = names_of(display)
        assert shown[0] == "mean of the training rows"
        assert shown[1].endswith(f"= {X.iloc[60, order[0]]:.4g}")
        assert display.ax_.get_xlabel() == "← $versicolor$     log-odds     other →"
        display.figure_.canvas.draw()  # dollar signs begin no formula

    def test_hidden_features_are_added_up(self, model):
        display = ExplanationDisplay.from_estimator(model, X, row=60, max_features=2)
        assert display.n_hidden == 2
        assert display.base + display.parts.sum() + display.rest == pytest.approx(display.log_odds)
        assert names_of(display)[-2] == "2 other features"
        assert display.bars_[-1].get_width() == pytest.approx(display.rest)

    def test_of_several_classes_the_predicted_one_is_shown(self, lines):
        display = ExplanationDisplay.from_estimator(lines, X, row=0)
        assert display.labels == ("", "0")
        assert display.ax_.get_xlabel() == "log-odds of 0"
        assert display.log_odds == pytest.approx(lines.decision_function(X)[0, 0])
        other = ExplanationDisplay.from_estimator(lines, X, row=0, class_label=2)
        assert other.log_odds == pytest.approx(lines.decision_function(X)[0, 2])
        colours = {part >= 0: to_hex(bar.get_facecolor()) for part, bar in zip(other.parts, other.bars_, strict=True)}
        assert colours == {True: CLASS_COLOURS[2].lower(), False: "#6e6e6e"}

    def test_other_holders_of_models_and_rows(self, model):
        pipeline = make_pipeline(StandardScaler(), MELC(n_init=2, random_state=0)).fit(X, TWO)
        assert names_of(ExplanationDisplay.from_estimator(pipeline, X))[1].startswith("petal")
        reduced = make_pipeline(PCA(2), MELC(n_init=2, random_state=0)).fit(X, TWO)
        assert names_of(ExplanationDisplay.from_estimator(reduced, X))[1].startswith("pca")
        plain = MELC(n_init=2, random_state=0).fit(X.to_numpy(), TWO)
        display = ExplanationDisplay.from_estimator(plain, scipy.sparse.csr_array(X.to_numpy()), row=60)
        expected = ExplanationDisplay.from_estimator(model, X, row=60)
        np.testing.assert_allclose(display.parts, expected.parts, atol=1e-9)

    def test_axes_title_and_reference_of_ones_own(self, model):
        _, ax = plt.subplots()
        found = explain(model, X, reference=X.iloc[0])
        display = ExplanationDisplay.from_explanation(found, row=60, ax=ax, title="a $ row")
        assert display.ax_ is ax
        assert ax.get_title() == "a $ row"
        assert names_of(display)[0] == "reference"

    def test_what_is_not_there(self, model, lines):
        with pytest.raises(ValueError, match="row=150, but there are 150 rows"):
            ExplanationDisplay.from_estimator(model, X, row=150)
        with pytest.raises(ValueError, match="class_label=7 is not a class"):
            ExplanationDisplay.from_estimator(lines, X, class_label=7)


class TestChange:
    def test_the_points_are_the_row_and_its_change(self, model):
        display = ChangeDisplay.from_estimator(model, X, row=60, title="a $ row")
        change = nearest_change(model, X.iloc[[60]])
        order = np.argsort(-np.abs(change.standardised[0]))
        mean, spread = model.feature_mean_[order], model.feature_spread_[order]
        for points, values in zip(display.points_, (X.to_numpy()[60], change.rows[0]), strict=True):
            np.testing.assert_allclose(points.get_xdata(), (values[order] - mean) / spread, atol=1e-12)
        assert names_of(display) == [X.columns[j] for j in order]
        assert display.labels == ("$versicolor$", "other")
        assert f"{change.distance[0]:.3g}" in display.ax_.get_xlabel()
        limited = ChangeDisplay.from_estimator(model, X, row=60, fixed=[X.columns[order[0]]])
        assert X.columns[order[0]] not in names_of(limited)
        written = [text.get_text() for text in display.ax_.texts]
        assert f"{X.iloc[60, order[0]]:.4g} → {change.rows[0, order[0]]:.4g}" in written
        display.figure_.canvas.draw()

    def test_lines_classes_and_chosen_features(self, lines):
        display = ChangeDisplay.from_estimator(lines, X, row=0, to=2, features=["petal length (cm)"], max_features=1)
        assert display.labels == ("0", "2")
        assert display.names == ["petal length (cm)"]

    def test_what_is_not_there(self, model):
        with pytest.raises(ValueError, match="row=-151, but there are 150 rows"):
            ChangeDisplay.from_estimator(model, X, row=-151)
        with pytest.raises(ValueError, match="allow more changes"):
            ChangeDisplay.from_estimator(model, X, features=[])


class TestIntervals:
    def test_intervals_times_the_spread(self, model, resampled):
        found = resampled
        display = IntervalsDisplay.from_bootstrap(found, max_features=3, title="a $ title")
        weights = model.coef_[0] * model.feature_spread_
        order = np.argsort(-np.abs(weights))[:3]
        assert display.names == [X.columns[j] for j in order]
        assert display.n_hidden == 1
        np.testing.assert_allclose(display.weights, weights[order])
        ends = [line[:, 0].tolist() for bars in display.bars_ for line in bars.get_segments()]
        expected = np.column_stack([found.coef.low[0], found.coef.high[0]]) * model.feature_spread_[:, None]
        assert sorted(ends) == pytest.approx(np.array(sorted(expected[order].tolist())))
        surely = (expected[order] > 0).all(axis=1) | (expected[order] < 0).all(axis=1)
        assert [len(bars.get_segments()) for bars in display.bars_] == [surely.sum(), (~surely).sum()]
        display.figure_.canvas.draw()

    def test_lines_that_were_found_too_rarely(self, few_lines, resampled_lines):
        found = resampled_lines
        unknown = np.full(few_lines.directions_.shape, np.inf)
        rare = replace(found, coef=replace(found.coef, low=-unknown, high=unknown))
        for k, result in itertools.product(range(len(few_lines.lines_)), (found, rare)):
            display = IntervalsDisplay.from_bootstrap(result, line=k + 1)
            assert np.isfinite(display.ax_.get_xlim()).all()
            assert len(display.names) == len(few_lines.lines_[k].features)
            if result is rare:  # from one edge to the other, so that it does not look like an interval
                ends = [line[:, 0].tolist() for line in display.bars_[1].get_segments()]
                assert ends == [list(display.ax_.get_xlim())] * len(display.names)

    def test_without_a_choice_all_lines_are_panels(self, few_lines, resampled_lines):
        found = resampled_lines
        shown = IntervalsDisplay.from_bootstrap(found, title="all lines")
        headings = [f"line {k}" for k in range(1, 1 + len(few_lines.lines_))]
        assert [ax.get_title() for ax in shown.axes_] == headings
        heads = [text for text in found.summary().splitlines() if text.startswith("line ")]
        assert [head.rpartition(",")[0] for head in heads] == headings
        for k, display in enumerate(shown.displays):
            np.testing.assert_array_equal(display.weights, IntervalsDisplay.from_bootstrap(found, line=k + 1).weights)
            plt.close()
        single = bootstrap(MELC(n_init=1, tol=1e-3, random_state=0).fit(X, SPECIES), X, SPECIES, n=20, random_state=0)
        titles = [ax.get_title() for ax in IntervalsDisplay.from_bootstrap(single).axes_]
        assert titles == [f"line {k + 1} (found for {k})" for k in range(3)]
        assert all(f"\n{title}\n" in single.summary() for title in titles)

    def test_minor_lines_are_left_out_unless_chosen(self, few_lines, resampled_lines):
        found = resampled_lines
        minor = np.arange(len(few_lines.lines_)) > 0
        shown = IntervalsDisplay.from_bootstrap(replace(found, minor=minor))
        np.testing.assert_array_equal(shown.weights, IntervalsDisplay.from_bootstrap(found, line=1).weights)
        text = replace(found, minor=minor).summary()
        assert "line 2" not in text
        assert text.endswith(f"and {minor.sum()} minor line{'s' if minor.sum() > 1 else ''}, each of one feature")

    def test_an_infinite_limit_of_a_constant_feature_is_no_matter(self):
        rows = np.column_stack([X.to_numpy(), np.full(len(X), 3.0)])
        found = bootstrap(AdditiveMELC(random_state=0).fit(rows, TWO), rows, TWO, n=20, random_state=0)
        unknown = np.full(found.coef.low.shape, np.inf)
        rare = replace(found, coef=replace(found.coef, low=-unknown, high=unknown))
        with np.errstate(invalid="raise"):
            assert "x4" not in [name for k in (1, 2) for name in IntervalsDisplay.from_bootstrap(rare, line=k).names]
        assert "no interval" in rare.summary()
        assert "inf" not in rare.summary()

    def test_a_line_that_is_not_there(self, resampled):
        for number in (0, 2):
            with pytest.raises(ValueError, match=f"line={number}, but there are the lines 1 to 1"):
                IntervalsDisplay.from_bootstrap(resampled, line=number)
