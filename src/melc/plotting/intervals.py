"""Plot of the weights of a model with their intervals."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.inference import Bootstrap
from melc.plotting.common import BLACK, BLUE, GREY, axes, finish_bars, shortened
from melc.plotting.panels import LinePanels, chosen, owner_of, plotted


@dataclass(eq=False)
class IntervalsDisplay:
    """The contributions of the features to a line, with intervals; largest first.

    The contribution of a feature is its weight times its standard deviation, whatever its units. Intervals that contain
    zero are drawn grey with hollow points: the sign of such a weight is not known. Create the plot with
    :meth:`from_bootstrap`.

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
    ) -> "IntervalsDisplay | LinePanels":
        """Plot the contributions of the features to the lines of a model.

        Parameters
        ----------
        intervals : Bootstrap
            The result of :func:`melc.inference.bootstrap`.
        line : int, default=None
            Number of the line to plot, from 1. By default all lines, one below the other.
        feature_names : list of str, default=None
            Names of the features. By default those of the model.
        max_features : int, default=15
            Maximum number of features to show.
        title : str, default=None
            Title of the plot. By default, of several lines, their numbers.
        ax : matplotlib Axes, array of Axes, or empty Figure, default=None
            Axes to plot on, one for each line, or a figure to fill. If None, a new figure is created.

        Returns
        -------
        display : IntervalsDisplay or LinePanels
        """
        names = intervals.feature_names if feature_names is None else [str(name) for name in feature_names]
        lines = chosen(list(enumerate(intervals.coef.estimate, start=1)), line)
        displays = [cls._of_line(intervals, number - 1, names, max_features) for number, _ in lines]
        return plotted(displays, [f"line {number}{_owner(intervals, number - 1)}" for number, _ in lines], ax, title)

    @classmethod
    def _of_line(cls, intervals: Bootstrap, k: int, names: list[str], most: int) -> "IntervalsDisplay":
        """Return the display of the line of an index, not yet plotted."""
        coef, spread = intervals.coef, intervals.feature_spread
        weights = coef.estimate[k] * spread
        order = np.argsort(-np.abs(weights), kind="stable")
        order = order[weights[order] != 0]
        shown = order[:most]
        # Only of those shown: an infinite limit of a feature without spread would have no contribution.
        low, high = (each[k, shown] * spread[shown] for each in (coef.low, coef.high))
        named = [names[j] for j in shown]
        return cls(named, weights[shown], low, high, intervals.confidence, len(order) - len(shown))

    def plot(self, ax: Any = None, *, title: str | None = None) -> "IntervalsDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
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
        finish_bars(self.ax_, shortened(self.names), title)
        self.ax_.set_ylim(len(self.names) - 0.4, -0.6)
        if not known.all():
            self.ax_.set_xlim(-reach, reach)  # an infinite interval runs from one edge to the other
        note = f"\n{self.n_hidden} features with smaller contributions not shown" if self.n_hidden else ""
        self.ax_.set_xlabel(f"weight × standard deviation, with {self.confidence:.0%} intervals{note}")
        self.ax_.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        return self


def _owner(intervals: Bootstrap, k: int) -> str:
    """Return the class of the line of an index, if each of several classes has one."""
    return owner_of(intervals.classes, k) if len(intervals.coef.estimate) == len(intervals.classes) else ""
