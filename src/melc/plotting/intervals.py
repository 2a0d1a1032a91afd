"""Plot of the weights of a model with their intervals."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.inference import Bootstrap
from melc.plotting.common import AS_WRITTEN, BLACK, BLUE, GREY, axes, shortened


@dataclass(eq=False)
class IntervalsDisplay:
    """The contributions of the features to a projection, with intervals; largest first.

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
        line: int = 0,
        feature_names: Any = None,
        max_features: int = 15,
        title: str | None = None,
        ax: Any = None,
    ) -> "IntervalsDisplay":
        """Plot the contributions of the features to one direction or line.

        Parameters
        ----------
        intervals : Bootstrap
            The result of :func:`melc.inference.bootstrap`.
        line : int, default=0
            Which direction: of more than two classes the index of the class, of an additive model that of the line.
        feature_names : list of str, default=None
            Names of the features. By default those of the model.
        max_features : int, default=15
            Maximum number of features to show.
        title : str, default=None
            Title of the plot.
        ax : matplotlib Axes, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        display : IntervalsDisplay
        """
        n_lines = len(intervals.coef.estimate)
        if not -n_lines <= line < n_lines:
            raise ValueError(f"line={line}, but the model has {n_lines} directions.")
        names = intervals.feature_names if feature_names is None else [str(name) for name in feature_names]
        contributions = intervals.coef.estimate[line] * intervals.feature_spread
        order = np.argsort(-np.abs(contributions), kind="stable")
        order = order[contributions[order] != 0]
        shown = order[:max_features]
        # Only of those shown: an infinite limit of a feature without spread would have no contribution.
        weights, low, high = (
            each[line, shown] * intervals.feature_spread[shown]
            for each in (intervals.coef.estimate, intervals.coef.low, intervals.coef.high)
        )
        hidden = len(order) - len(shown)
        display = cls([names[j] for j in shown], weights, low, high, intervals.confidence, hidden)
        return display.plot(ax=ax, title=title)

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
        self.ax_.set_yticks(places, shortened(self.names), fontsize=8, **AS_WRITTEN)
        self.ax_.set_ylim(len(self.names) - 0.4, -0.6)
        if not known.all():
            self.ax_.set_xlim(-reach, reach)  # an infinite interval runs from one edge to the other
        self._finish(title)
        return self

    def _finish(self, title: str | None) -> None:
        """Add axis label, grid and title."""
        note = f"\n{self.n_hidden} features with smaller contributions not shown" if self.n_hidden else ""
        self.ax_.set_xlabel(f"weight × standard deviation, with {self.confidence:.0%} intervals{note}")
        self.ax_.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        self.ax_.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
        if title:
            self.ax_.set_title(title, **AS_WRITTEN)
