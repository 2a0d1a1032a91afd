"""Plots of one row: the parts of its features in the log-odds, and its nearest change of class."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.data.frames import rows_of
from melc.explain import Explanation, explain, nearest_change
from melc.model.columns import Columns
from melc.model.names import class_index_of, largest_first, n_named
from melc.model.places import value_text
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, BLUE, GREY, ORANGE, ClassStyle, class_style


@dataclass(eq=False)
class ExplanationDisplay:
    """Waterfall plot: from the log-odds of the reference, feature by feature, to those of a row.

    Create the plot with :meth:`from_estimator` or :meth:`from_explanation`.

    Parameters
    ----------
    names : list of str
        Names of the features shown, with their values.
    parts : ndarray of shape (n_shown,)
        Their parts in the log-odds, by descending absolute value.
    base : float
        The log-odds of the reference.
    log_odds : float
        The log-odds of the row.
    rest : float, default=0
        The sum of the parts that are not shown.
    n_hidden : int, default=0
        Number of features whose parts are in ``rest``.
    labels : tuple of two str, default=("", "")
        The classes that negative and positive log-odds favour. With more than two classes, the first is empty and the
        second is the class whose log-odds are shown.
    code : int, default=1
        The number of the class whose log-odds are shown, for its colour.
    reference_name : str, default="reference"
        What the reference is.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : matplotlib BarContainer
        The bars of the parts, the last that of the parts not shown.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import ExplanationDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = MELC(n_init=1, random_state=0).fit(X, species == 2)
    >>> display = ExplanationDisplay.from_estimator(model, X, row=120)
    >>> bool(abs(display.base + display.parts.sum() - display.log_odds) < 1e-10)
    True
    """

    names: list[str] = field(repr=False)
    parts: Floats = field(repr=False)
    base: float
    log_odds: float
    rest: float = 0.0
    n_hidden: int = 0
    labels: tuple[str, str] = field(default=("", ""))
    code: int = 1
    reference_name: str = "reference"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        row: int = 0,
        class_label: Any = None,
        feature_names: Any = None,
        max_features: int = 12,
        title: str | None = None,
        ax: Any = None,
    ) -> "ExplanationDisplay":
        """Plot the parts of the features of a row.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline that ends in one, or a fitted search for one.
        X : {array-like, sparse matrix, frame} of shape (n_rows, n_features)
            Rows, as ``predict`` takes them.
        row : int, default=0
            Which row of X is explained.
        class_label : default=None
            With more than two classes, the class whose log-odds are shown. By default the predicted class.
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
        display : ExplanationDisplay
        """
        model, rows, names = common.unwrapped(estimator, X, feature_names=feature_names)
        explanation = explain(*common.plain_rows(model, rows), feature_names=names)
        options: dict[str, Any] = {"max_features": max_features, "title": title, "ax": ax}
        return cls.from_explanation(explanation, row=row, class_label=class_label, **options)

    @classmethod
    def from_explanation(
        cls,
        explanation: Explanation,
        *,
        row: int = 0,
        class_label: Any = None,
        max_features: int = 12,
        title: str | None = None,
        ax: Any = None,
    ) -> "ExplanationDisplay":
        """Plot one row of an :class:`melc.explain.Explanation`; the arguments are those of :meth:`from_estimator`."""
        column, labels, code = _column(explanation, row, class_label)
        parts = explanation.log_odds_parts[row, column]
        order = largest_first(parts)
        shown = order[: n_named(len(order), max_features)]
        display = cls(
            [
                f"{explanation.feature_names[j]} = {_shown(explanation.columns, int(j), explanation.codes[row, j])}"
                for j in shown
            ],
            parts[shown],
            float(explanation.base[column]),
            float(explanation.log_odds[row, column]),
            float(parts[order[len(shown) :]].sum()),
            len(order) - len(shown),
            labels,
            code,
            explanation.reference_name,
        )
        return display.plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "ExplanationDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_, self.figure_ = common.axes(ax)
        names, parts = common.shortened(self.names), np.asarray(self.parts)
        if self.n_hidden:
            names, parts = [*names, f"{self.n_hidden} other features"], np.append(parts, self.rest)
        ends = self.base + np.cumsum(parts)
        starts, places = np.concatenate([[self.base], ends[:-1]]), np.arange(1, len(parts) + 1)
        below = class_style(0) if self.labels[0] else ClassStyle(GREY, "solid", "", "o")
        styles = [class_style(self.code) if part >= 0 else below for part in parts]
        style = {"color": [each.colour for each in styles], "hatch": [each.hatch for each in styles]}
        self.bars_ = self.ax_.barh(places, parts, left=starts, height=0.66, edgecolor="white", **style)
        self._connect(np.concatenate([[self.base], ends]), parts)
        common.finish_bars(self.ax_, [self.reference_name, *names, "log-odds of the row"], title)
        self.ax_.invert_yaxis()
        self._finish()
        return self

    def _connect(self, levels: Floats, parts: Floats) -> None:
        """Draw the first and last level as points, lines between the bars, and the numbers beside them."""
        last = len(levels)
        for place, level in enumerate(levels):
            self.ax_.plot([level, level], [place, place + 1], color=GREY, linewidth=0.8, zorder=0)
        self.ax_.plot([levels[0], self.log_odds], [0, last], "D", color=BLACK, markersize=5)
        texts = [f"{levels[0]:.2f}", *(f"{part:+.2f}" for part in parts), f"{self.log_odds:.2f}"]
        edges = [levels[0], *np.maximum(levels[:-1], levels[1:]), self.log_odds]
        for place, (text, edge) in enumerate(zip(texts, edges, strict=True)):
            weight = "bold" if place in (0, last) else "normal"
            offset = {"xytext": (5, 0), "textcoords": "offset points"}
            self.ax_.annotate(text, (edge, place), **offset, va="center", fontsize=7.5, color=BLACK, weight=weight)

    def _finish(self) -> None:
        """Add the line between two classes, axis label, and room for the numbers."""
        self.ax_.use_sticky_edges = False
        self.ax_.margins(x=0.12)
        what = f"log-odds of {self.labels[1]}" if self.labels[1] else "log-odds"
        if self.labels[0]:
            self.ax_.axvline(0, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
            what = f"← {self.labels[0]}     log-odds     {self.labels[1]} →"
        self.ax_.set_xlabel(what, **AS_WRITTEN)


def _shown(columns: Columns, j: int, code: float) -> str:
    """Return the coded value of a column as text; numbers have few digits."""
    is_number = not (j in columns.categories or j in columns.ranks or j in columns.dates or np.isnan(code))
    return f"{code:.4g}" if is_number else common.bounded(value_text(columns, j, float(code)))


def _column(explanation: Explanation, row: int, class_label: Any) -> tuple[int, tuple[str, str], int]:
    """The column of the log-odds that is shown, what negative and positive values favour, and the class."""
    if not -len(explanation.labels) <= row < len(explanation.labels):
        raise ValueError(f"row={row}, but there are {len(explanation.labels)} rows.")
    if len(explanation.base) == 1:
        return 0, (common.bounded(explanation.classes[0]), common.bounded(explanation.classes[1])), 1
    label = explanation.labels[row] if class_label is None else class_label
    code = class_index_of(explanation.classes, label, "class_label")
    return code, ("", common.bounded(label)), code


@dataclass(eq=False)
class ChangeDisplay:
    """A row and its nearest change of class: for each feature that changes, an arrow from its value to the new one.

    Features are shown in units of their standard deviations from their means; levels of a category at their scores.
    Create the plot with :meth:`from_estimator`.

    Parameters
    ----------
    names : list of str
        Names of the features shown.
    before : ndarray of shape (n_shown,)
        Their values in the row: of categories the scores of the levels.
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
    texts : list of pairs of str, default=None
        The values before and after as they are written; by default as numbers.

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
    texts: list[tuple[str, str]] | None = field(default=None, repr=False)

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
        **limits: Any,
    ) -> "ChangeDisplay":
        """Plot the nearest change of class of a row; see :func:`melc.explain.nearest_change`.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline that ends in one, or a fitted search for one.
        X : {array-like, sparse matrix, frame} of shape (n_rows, n_features)
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
        **limits : dict
            What may change and how far, as :func:`melc.explain.nearest_change` takes it: ``fixed``, ``bounds``,
            ``integers`` and ``levels``.

        Returns
        -------
        display : ChangeDisplay
        """
        model, rows, names = common.unwrapped(estimator, X, feature_names=feature_names)
        model, rows = common.plain_rows(model, rows)
        if not -rows.shape[0] <= row < rows.shape[0]:
            raise ValueError(f"row={row}, but there are {rows.shape[0]} rows.")
        one = rows_of(rows, np.array([row % rows.shape[0]]))
        change = nearest_change(model, one, features=features, to=to, feature_names=names, **limits)
        if not change.found[0]:
            raise ValueError("No change of these features was found that leads to another class: allow more changes.")
        order = largest_first(change.standardised[0])
        shown = order[:max_features]
        codes = change.before[0], change.rows[0]
        before, after = model.columns_.quantities(np.stack(codes), model.feature_mean_)
        display = cls(
            [names[j] for j in shown],
            before[shown],
            after[shown],
            model.feature_mean_[shown],
            np.where(model.feature_spread_ > 0, model.feature_spread_, 1.0)[shown],
            float(change.distance[0]),
            (common.bounded(model.predict(one)[0]), common.bounded(change.labels[0])),
            len(order) - len(shown),
            [(_shown(change.columns, j, codes[0][j]), _shown(change.columns, j, codes[1][j])) for j in shown.tolist()],
        )
        return display.plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "ChangeDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_, self.figure_ = common.axes(ax)
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
        values = zip(self.before, self.after, strict=True)
        texts = self.texts or [(f"{old:.4g}", f"{new:.4g}") for old, new in values]
        for place, (middle, (old, new)) in enumerate(zip(0.5 * (before + after), texts, strict=True)):
            text = f"{old} → {new}"
            offset = {"xytext": (0, 6), "textcoords": "offset points"}
            behind = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
            self.ax_.annotate(
                text, (middle, place), **offset, ha="center", fontsize=7.5, color=BLACK, bbox=behind, **AS_WRITTEN
            )

    def _finish(self, title: str | None) -> None:
        """Add names, axis label, grid, legend, title and the note on features that are not shown."""
        common.finish_bars(self.ax_, common.shortened(self.names), title, pad=24)
        self.ax_.set_ylim(len(self.names) - 0.4, -0.8)
        self.ax_.margins(x=0.12)
        self.ax_.axvline(0, color=BLACK, linewidth=0.8, zorder=0)
        note = f"; {self.n_hidden} features that change less not shown" if self.n_hidden else ""
        self.ax_.set_xlabel(f"standard deviations from the mean\nlength of the change: {self.distance:.3g}{note}")
        legend = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2, "frameon": False, "fontsize": 8}
        common.with_names_as_written(self.ax_.legend(**legend))
