"""Plot of the weights of the features in a projection."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from melc.arrays import Floats
from melc.model.names import contributions_of
from melc.plotting.common import (
    AS_WRITTEN,
    BLACK,
    CLASS_COLOURS,
    CLASS_HATCHES,
    GREY,
    axes,
    checked_rows,
    feature_names_for,
    final_step,
    projection_index,
    shortened,
    side_labels,
)

# Most characters of a class name under the axis; names that together have more get a line of their own.
_MOST_IN_LABEL = 24


@dataclass(eq=False)
class WeightsDisplay:
    """Bar plot of the contributions of the features to the projection, largest first.

    The contribution of a feature is its weight times its standard deviation, whatever its units. Create the plot with
    :meth:`from_estimator`.

    Parameters
    ----------
    names : list of str
        Names of the features shown.
    weights : ndarray of shape (n_shown,)
        Their contributions, by descending absolute value.
    scaled : bool, default=True
        Whether the weights are multiplied by the standard deviations of the features, which makes features with
        different units comparable. False for a model that does not know them.
    n_hidden : int, default=0
        Number of features with smaller contributions that are not shown.
    labels : tuple of two str, default=("", "")
        Names of the classes that negative and positive weights point to; empty unless there is a single threshold.

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
    scaled: bool = True
    n_hidden: int = 0
    labels: tuple[str, str] = field(default=("", ""))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        class_label: Any = None,
        feature_names: Any = None,
        max_features: int = 15,
        title: str | None = None,
        ax: Any = None,
    ) -> "WeightsDisplay":
        """Plot the contributions of the features to the projection of a fitted model.

        Parameters
        ----------
        estimator : MELC, Pipeline or fitted search
            A fitted model, a pipeline whose last step is one, or a search for one.
        X : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
            Rows from which the standard deviations are computed. By default those of the training rows are used.
        class_label : default=None
            Class whose projection is plotted; required with more than two classes.
        feature_names : list of str, default=None
            Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
        max_features : int, default=15
            Maximum number of features to show.
        title : str, default=None
            Title of the plot.
        ax : matplotlib Axes, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        display : WeightsDisplay
        """
        model, X = final_step(estimator, X)
        names = feature_names_for(estimator, model, feature_names)
        index = projection_index(model, class_label)
        weights = contributions_of(model, index)
        if X is not None:
            weights = model.coef_[index] * _standard_deviations(checked_rows(model, X))
        order = np.argsort(-np.abs(weights), kind="stable")[:max_features]
        display = cls(
            [names[i] for i in order],
            weights[order],
            X is not None or hasattr(model, "feature_spread_"),
            len(weights) - len(order),
            _ends(model, index),
        )
        return display.plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "WeightsDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        raises = (self.weights >= 0).astype(int)
        style: dict[str, Any] = {"color": GREY}  # with several thresholds no end of the line belongs to one class
        if any(self.labels):
            style = {"color": [CLASS_COLOURS[k] for k in raises], "hatch": [CLASS_HATCHES[k] for k in raises]}
        places = np.arange(len(self.names))
        self.bars_ = self.ax_.barh(places, self.weights, height=0.72, edgecolor="white", **style)
        self.ax_.set_yticks(places, shortened(self.names), fontsize=8, **AS_WRITTEN)
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color=BLACK, linewidth=0.8)
        self._finish(title)
        return self

    def _finish(self, title: str | None) -> None:
        """Add axis label, grid, title and the note on features that are not shown."""
        what = "weight × standard deviation" if self.scaled else "weight in v"
        if any(self.labels):
            below, above = shortened(list(self.labels), _MOST_IN_LABEL)
            long = len(below) + len(above) > _MOST_IN_LABEL
            what = f"{what}\n← {below}     {above} →" if long else f"← {below}     {what}     {above} →"
        self.ax_.set_xlabel(what, **AS_WRITTEN)
        self.ax_.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
        if title:
            self.ax_.set_title(title, **AS_WRITTEN)
        if self.n_hidden:
            note = f"{self.n_hidden} feature{'s' if self.n_hidden > 1 else ''} with smaller contributions not shown"
            self.ax_.annotate(
                note,
                (1, 0),
                (0, 4),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="right",
                fontsize=7,
                color=GREY,
            )


def _ends(model: Any, index: int) -> tuple[str, str]:
    """Return the names of the classes below and above the threshold; empty unless there is exactly one."""
    codes = model.decisions_[index].codes
    sides = side_labels(model, index)
    return (sides[codes[0]], sides[codes[1]]) if len(codes) == 2 else ("", "")


def _standard_deviations(X: Any) -> Floats:
    """Return the standard deviations of the features, shape (n_features,). ``X`` may be sparse."""
    variances = mean_variance_axis(X, axis=0)[1] if issparse(X) else X.var(axis=0)
    return np.sqrt(np.asarray(variances, dtype=np.float64))
