"""Plot of one row beside the nearest row of another class."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.explain import nearest_change
from melc.model.units import nameless
from melc.plotting.common import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    axes,
    bounded,
    checked_rows,
    feature_names_for,
    final_step,
    finish_bars,
    shortened,
    with_names_as_written,
)


@dataclass(eq=False)
class ChangeDisplay:
    """A row and its nearest change of class: for each feature that changes, an arrow from its value to the new one.

    Features are shown in units of their standard deviations from their means. Create the plot with
    :meth:`from_estimator`.

    Parameters
    ----------
    names : list of str
        Names of the features shown.
    before : ndarray of shape (n_shown,)
        Their values in the row.
    after : ndarray of shape (n_shown,)
        Their values after the change.
    mean : ndarray of shape (n_shown,)
        Their means on the training rows.
    spread : ndarray of shape (n_shown,)
        Their standard deviations on the training rows.
    distance : float
        The length of the change in units of the standard deviations, all features together.
    labels : tuple of two str
        The class of the row, and that of the changed row.
    n_hidden : int, default=0
        Number of features with smaller changes that are not shown.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    points_ : tuple of two matplotlib Line2D
        The values before and after.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import ChangeDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = MELC(n_init=1, random_state=0).fit(X, species == 2)
    >>> ChangeDisplay.from_estimator(model, X, row=120).labels
    ('True', 'False')
    """

    names: list[str] = field(repr=False)
    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    mean: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    distance: float
    labels: tuple[str, str]
    n_hidden: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        features: Any = None,
        to: Any = None,
        feature_names: Any = None,
        max_features: int = 12,
        title: str | None = None,
        ax: Any = None,
    ) -> "ChangeDisplay":
        """Plot the nearest change of class of a row; see :func:`melc.explain.nearest_change`.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline whose last step is one, or a search for one.
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Rows, as ``predict`` takes them.
        row : int, default=0
            Which row of X is shown.
        features : list of str or int, default=None
            The features that may change. By default all.
        to : default=None
            The class to reach. By default any other one.
        feature_names : list of str, default=None
            Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
        max_features : int, default=12
            Maximum number of features to show.
        title : str, default=None
            Title of the plot.
        ax : matplotlib Axes, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        display : ChangeDisplay
        """
        model, X = final_step(estimator, X)
        names = feature_names_for(estimator, model, feature_names)
        rows = checked_rows(model, X)
        if not -rows.shape[0] <= row < rows.shape[0]:
            raise ValueError(f"row={row}, but there are {rows.shape[0]} rows.")
        model, one = nameless(model), rows[[row]]
        change = nearest_change(model, one, features=features, to=to, feature_names=names)
        if not change.found[0]:
            raise ValueError("No change of these features was found that leads to another class: allow more of them.")
        after, moved = change.rows[0], change.changes[0]
        order = np.argsort(-np.abs(change.standardised[0]), kind="stable")
        order = order[moved[order] != 0]
        shown = order[:max_features]
        display = cls(
            [names[j] for j in shown],
            (after - moved)[shown],
            after[shown],
            model.feature_mean_[shown],
            model.feature_spread_[shown],
            float(change.distance[0]),
            (bounded(model.predict(one)[0]), bounded(change.labels[0])),
            len(order) - len(shown),
        )
        return display.plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "ChangeDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        before, after = (self.before - self.mean) / self.spread, (self.after - self.mean) / self.spread
        places = np.arange(len(self.names))
        arrow = {"arrowstyle": "-|>", "color": GREY, "shrinkA": 4, "shrinkB": 4, "linewidth": 1.2}
        for place, start, end in zip(places, before, after, strict=True):
            self.ax_.annotate("", (end, place), (start, place), arrowprops=arrow, zorder=1)
        (first,) = self.ax_.plot(before, places, "o", color=BLUE, markersize=7, label=f"the row: {self.labels[0]}")
        (second,) = self.ax_.plot(after, places, "D", color=ORANGE, markersize=7, label=f"changed: {self.labels[1]}")
        self.points_ = first, second
        self._write(before, after)
        self._finish(title)
        return self

    def _write(self, before: Floats, after: Floats) -> None:
        """Write the values of both rows, in the units of the features, above the arrows."""
        middles = 0.5 * (before + after)
        for place, (middle, old, new) in enumerate(zip(middles, self.before, self.after, strict=True)):
            text = f"{old:.4g} → {new:.4g}"
            offset = {"xytext": (0, 6), "textcoords": "offset points"}
            behind = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
            self.ax_.annotate(text, (middle, place), **offset, ha="center", fontsize=7.5, color=BLACK, bbox=behind)

    def _finish(self, title: str | None) -> None:
        """Add names, axis label, grid, legend, title and the note on features that are not shown."""
        finish_bars(self.ax_, shortened(self.names), title, pad=24)
        self.ax_.set_ylim(len(self.names) - 0.4, -0.8)
        self.ax_.margins(x=0.12)
        self.ax_.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        note = f"; {self.n_hidden} features that change less not shown" if self.n_hidden else ""
        self.ax_.set_xlabel(f"standard deviations from the mean\nlength of the change: {self.distance:.3g}{note}")
        legend = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2, "frameon": False, "fontsize": 8}
        with_names_as_written(self.ax_.legend(**legend))
