"""Plots of the weights of the features in lines, alone and with their intervals."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from melc.arrays import Floats
from melc.inference import Bootstrap
from melc.model.names import largest_first
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, BLUE, GREY, class_style

# Most characters of a class name under the axis; names that together have more get a line of their own.
_MOST_IN_LABEL = 24


@dataclass(eq=False)
class WeightsDisplay:
    """Bar plot of the contributions of the features to a line, largest first.

    The contribution of a feature is its weight times its standard deviation, which does not depend on its units. For a
    category it is the standard deviation of the scores of its levels. Create the plot with :meth:`from_estimator`.

    Parameters
    ----------
    names : list of str
        Names of the features shown.
    weights : ndarray of shape (n_shown,)
        Their contributions, by descending absolute value.
    n_hidden : int, default=0
        Number of features with smaller contributions that are not shown.
    labels : tuple of two str, default=("", "")
        Names of the classes that negative and positive weights point to; empty unless there is a single threshold.
    sides : tuple of two int, default=(0, 1)
        The numbers of these classes, whose colours negative and positive weights have.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : matplotlib BarContainer
        The bars.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import WeightsDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = MELC(n_init=1, random_state=0).fit(X, species == 2)
    >>> display = WeightsDisplay.from_estimator(model, X, max_features=3)
    >>> len(display.names), display.n_hidden
    (3, 1)
    """

    names: list[str] = field(repr=False)
    weights: Floats = field(repr=False)
    n_hidden: int = 0
    labels: tuple[str, str] = field(default=("", ""))
    sides: tuple[int, int] = (0, 1)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        line: int | None = None,
        feature_names: Any = None,
        max_features: int = 15,
        title: str | None = None,
        ax: Any = None,
    ) -> "WeightsDisplay | common.LinePanels":
        """Plot the contributions of the features to the lines of a fitted model.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline that ends in one, or a fitted search for one.
        X : {array-like, sparse matrix, frame} of shape (n_rows, n_features), default=None
            Rows from which the standard deviations are computed. By default those of the training rows are used.
        line : int, default=None
            Number of the line to plot, from 1. By default all lines except minor ones, one below the other.
        feature_names : list of str, default=None
            Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
        max_features : int, default=15
            Maximum number of features to show.
        title : str, default=None
            Title of the plot. By default, if there are several lines, their numbers.
        ax : matplotlib Axes, array of Axes, or empty Figure, default=None
            Axes to plot on, one for each line, or a figure to fill. If None, a new figure is created.

        Returns
        -------
        display : WeightsDisplay or LinePanels
        """
        model, rows, names = common.unwrapped(estimator, X, feature_names=feature_names)
        spread = model.feature_spread_ if rows is None else _standard_deviations(common.quantities_of(model, rows))
        numbers = common.chosen([each.minor for each in model.lines_], line)
        displays = [cls._of_line(model, k, names, spread, max_features) for k in numbers]
        return common.plotted(displays, [common.name_of(model, k) for k in numbers], ax, title)

    @classmethod
    def _of_line(cls, model: Any, number: int, names: list[str], spread: Floats, most: int) -> "WeightsDisplay":
        """Return the display of a line, not yet plotted."""
        line = model.lines_[number - 1]
        weights = line.direction * spread
        order = line.features[np.argsort(-np.abs(weights[line.features]), kind="stable")]
        shown = order[:most]
        # With several thresholds no end of the line belongs to one class, and levels of a category are no ends.
        labels, sides = ("", ""), (0, 1)
        if len(line.codes) == 2 and not line.levels:
            sides = int(line.codes[0]), int(line.codes[1])
            labels = common.bounded(model.classes_[sides[0]]), common.bounded(model.classes_[sides[1]])
        return cls([names[j] for j in shown], weights[shown], len(order) - len(shown), labels, sides)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "WeightsDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_, self.figure_ = common.axes(ax)
        style: dict[str, Any] = {"color": GREY}
        if any(self.labels):
            styles = [class_style(self.sides[int(weight >= 0)]) for weight in self.weights]
            style = {"color": [each.colour for each in styles], "hatch": [each.hatch for each in styles]}
        places = np.arange(len(self.names))
        self.bars_ = self.ax_.barh(places, self.weights, height=0.72, edgecolor="white", **style)
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color=BLACK, linewidth=0.8)
        common.finish_bars(self.ax_, common.shortened(self.names), title)
        self._finish()
        return self

    def _finish(self) -> None:
        """Add the axis label and the note on features that are not shown."""
        what = "weight × standard deviation"
        if any(self.labels):
            below, above = common.shortened(list(self.labels), _MOST_IN_LABEL)
            long = len(below) + len(above) > _MOST_IN_LABEL
            what = f"{what}\n← {below}     {above} →" if long else f"← {below}     {what}     {above} →"
        self.ax_.set_xlabel(what, **AS_WRITTEN)
        if self.n_hidden:
            note = f"{self.n_hidden} feature{'s' if self.n_hidden > 1 else ''} with smaller contributions not shown"
            place = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right"}
            self.ax_.annotate(note, (1, 0), (0, 4), **place, fontsize=7, color=GREY)


@dataclass(eq=False)
class IntervalsDisplay:
    """The contributions of the features to a line, with intervals; largest first.

    The contribution of a feature is its weight times its standard deviation, which does not depend on its units.
    Intervals that contain zero are grey with hollow points: the sign of such a weight is uncertain. Create the plot
    with :meth:`from_bootstrap`.

    Parameters
    ----------
    names : list of str
        Names of the features shown.
    weights : ndarray of shape (n_shown,)
        Their contributions, by descending absolute value.
    low : ndarray of shape (n_shown,)
        Lower limits of the intervals.
    high : ndarray of shape (n_shown,)
        Upper limits of the intervals.
    confidence : float
        The confidence of the intervals.
    n_hidden : int, default=0
        Number of features with smaller contributions that are not shown.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : tuple of two matplotlib LineCollection
        The intervals with zero outside and inside.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.inference import bootstrap
    >>> from melc.plotting import IntervalsDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = MELC(n_init=1, random_state=0).fit(X, species == 2)
    >>> intervals = bootstrap(model, X, species == 2, n=20, random_state=0)
    >>> len(IntervalsDisplay.from_bootstrap(intervals).names)
    4
    """

    names: list[str] = field(repr=False)
    weights: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    confidence: float
    n_hidden: int = 0

    @classmethod
    def from_bootstrap(
        cls,
        intervals: Bootstrap,
        *,
        line: int | None = None,
        feature_names: Any = None,
        max_features: int = 15,
        title: str | None = None,
        ax: Any = None,
    ) -> "IntervalsDisplay | common.LinePanels":
        """Plot the contributions of the features to the lines of a model.

        Parameters
        ----------
        intervals : Bootstrap
            The result of :func:`melc.inference.bootstrap`.
        line : int, default=None
            Number of the line to plot, from 1. By default all lines except minor ones, one below the other.
        feature_names : list of str, default=None
            Names of the features. By default those of the model.
        max_features : int, default=15
            Maximum number of features to show.
        title : str, default=None
            Title of the plot. By default, if there are several lines, their numbers.
        ax : matplotlib Axes, array of Axes, or empty Figure, default=None
            Axes to plot on, one for each line, or a figure to fill. If None, a new figure is created.

        Returns
        -------
        display : IntervalsDisplay or LinePanels
        """
        names = intervals.feature_names if feature_names is None else [str(name) for name in feature_names]
        numbers = common.chosen(intervals.minor.tolist(), line)
        displays = [cls._of_line(intervals, k - 1, names, max_features) for k in numbers]
        headings = [common.bounded(intervals.line_names[k - 1], common.LINE_NAME_LENGTH) for k in numbers]
        return common.plotted(displays, headings, ax, title)

    @classmethod
    def _of_line(cls, intervals: Bootstrap, k: int, names: list[str], most: int) -> "IntervalsDisplay":
        """Return the display of the line of an index, not yet plotted."""
        coef, spread = intervals.coef, intervals.feature_spread
        weights = coef.estimate[k] * spread
        order = largest_first(weights)
        shown = order[:most]
        # Only of those shown: an infinite limit of a feature without spread would have no contribution.
        low, high = (each[k, shown] * spread[shown] for each in (coef.low, coef.high))
        named = [names[j] for j in shown]
        return cls(named, weights[shown], low, high, intervals.confidence, len(order) - len(shown))

    def plot(self, ax: Any = None, *, title: str | None = None) -> "IntervalsDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_, self.figure_ = common.axes(ax)
        places = np.arange(len(self.names))
        ends = np.concatenate([self.weights, self.low, self.high])
        known = np.isfinite(ends)
        reach = 1.1 * np.abs(ends[known]).max()
        low, high = np.maximum(self.low, -reach), np.minimum(self.high, reach)
        sure = (self.low > 0) | (self.high < 0)
        self.bars_ = tuple(
            self.ax_.hlines(places[kind], low[kind], high[kind], color=colour, linewidth=3, alpha=0.75)
            for kind, colour in ((sure, BLUE), (~sure, GREY))
        )
        for kind, fill, colour in ((sure, BLUE, BLUE), (~sure, "white", GREY)):
            style = {"markerfacecolor": fill, "markeredgecolor": colour, "markersize": 6.5}
            self.ax_.plot(self.weights[kind], places[kind], "o", **style)
        common.finish_bars(self.ax_, common.shortened(self.names), title)
        self.ax_.set_ylim(len(self.names) - 0.4, -0.6)
        if not known.all():
            self.ax_.set_xlim(-reach, reach)  # an infinite interval runs from one edge to the other
        note = f"\n{self.n_hidden} features with smaller contributions not shown" if self.n_hidden else ""
        self.ax_.set_xlabel(f"weight × standard deviation, with {self.confidence:.0%} intervals{note}")
        self.ax_.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        return self


def _standard_deviations(X: Any) -> Floats:
    """Return the standard deviations of the features, shape (n_features,). ``X`` may be sparse."""
    variances = mean_variance_axis(X, axis=0)[1] if issparse(X) else X.var(axis=0)
    return np.sqrt(np.asarray(variances, dtype=np.float64))
