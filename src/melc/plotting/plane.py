"""Plot of a line of two features in the plane of these features."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from melc.arrays import Floats
from melc.model.columns import Category
from melc.model.line import Line
from melc.model.names import class_index_of, numbers_by_importance
from melc.model.places import Scale, scale_of_column
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, BLUE, GREY, ORANGE, class_style
from melc.plotting.levels import show_scale, show_scores

_PLACES_PER_AXIS = 300
# How far rows of the same level are drawn from each other, as a part of the axis.
_SCATTER = 0.012
# Classes in a row of the legend.
_MOST_IN_LINE = 4


@dataclass(eq=False)
class PlaneDisplay:
    """Plot of a line of two features in their plane: the background colour is what the line adds to the log-odds.

    With more than two classes, the background has the colour of the class that the line favours, stronger if its curve
    is further above the next one, or it shows what the line adds to the log-odds of one class. Thresholds are straight
    lines. A category is an axis of the scores of its levels, labelled with the levels; a missing number is drawn at the
    value that replaces it. Create it with :meth:`from_estimator`.

    Parameters
    ----------
    line : Line
        A line with weights of two features.
    limits : tuple of two pairs of float
        The ends of the plot along either feature.
    names : tuple of two str
        Names of the features.
    labels : list of str
        Names of the classes.
    heading : str
        The sum of the features, and the importance of the line.
    scale : str, default="adds to the log-odds"
        What the values of the curves are.
    code : int, default=None
        With more than two classes, the number of the class whose curve is shown, or None for that of the highest curve.
    points : ndarray of shape (n_points, 2), default=None
        The two features of the rows to show.
    targets : ndarray of shape (n_points,), default=None
        Numbers of the classes of these rows.
    scales : tuple of two Scale or Category, default=None
        What the two features are, for their axes. By default numbers.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    image_ : matplotlib AxesImage
        The background.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import AdditiveMELC
    >>> from melc.plotting import PlaneDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = AdditiveMELC(random_state=0).fit(X, species == 1)
    >>> display = PlaneDisplay.from_estimator(model, X, species == 1)
    >>> len(display.names)
    2
    """

    line: Line = field(repr=False)
    limits: tuple[tuple[float, float], tuple[float, float]] = field(repr=False)
    names: tuple[str, str]
    labels: list[str]
    heading: str = field(repr=False)
    scale: str = field(default="adds to the log-odds", repr=False)
    code: int | None = field(default=None, repr=False)
    points: Floats | None = field(default=None, repr=False)
    targets: NDArray[np.int64] | None = field(default=None, repr=False)
    scales: tuple[Scale | Category, Scale | Category] | None = field(default=None, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        line: int | None = None,
        class_label: Any = None,
        max_rows: int = 1000,
        feature_names: Any = None,
        title: str | None = None,
        ax: Any = None,
    ) -> "PlaneDisplay":
        """Plot a line of a fitted model and, optionally, rows of data.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline that ends in one, or a fitted search for one.
        X : {array-like, sparse matrix, frame} of shape (n_rows, n_features), default=None
            Rows to show as points; they also determine which part of the plane is shown. Without rows, it is a part
            around the mean of the training rows in which the line has all of its values.
        y : array-like of shape (n_rows,), default=None
            Labels of these rows.
        line : int, default=None
            Number of the line, from 1. By default the most important line of two features.
        class_label : default=None
            With more than two classes, the class whose curve is shown. By default the class of the highest curve is.
        max_rows : int, default=1000
            Maximum number of points; if there are more rows, a random sample is shown.
        feature_names : list of str, default=None
            Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
        title : str, default=None
            Title of the plot. By default the sum of the features, and the importance of the line.
        ax : matplotlib Axes, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        display : PlaneDisplay
        """
        model, rows, names = common.unwrapped(estimator, X, y, feature_names)
        if max_rows < 0:
            raise ValueError(f"max_rows={max_rows}; it must not be negative.")
        number, drawn = _line_to_plot(model, line)
        code = None if class_label is None else class_index_of(model.classes_, class_label, "class_label")
        first, second = common.shortened([names[j] for j in drawn.features])
        limits, points, targets = _limits_without_rows(model, drawn), None, None
        if rows is not None:
            columns = _two_features(common.quantities_of(model, rows), drawn)
            limits = _axis_limits(columns)
            points, targets = _rows_to_show(columns, common.class_codes(model, y, len(columns)), max_rows)
        heading = common.title_of(model, number, common.short_names([drawn], names))
        known = (first, second), common.class_names(model), heading, common.scale_of(model), code
        scales = [
            model.columns_.categories.get(int(j)) or scale_of_column(model.columns_, int(j)) for j in drawn.features
        ]
        return cls(drawn, limits, *known, points, targets, (scales[0], scales[1])).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "PlaneDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_, self.figure_ = common.axes(ax)
        self._draw_background()
        if self.points is not None:
            self._draw_points()
        self.ax_.set(xlim=self.limits[0], ylim=self.limits[1])
        self._show_scales()
        self.ax_.set_xlabel(self.names[0], **AS_WRITTEN)
        self.ax_.set_ylabel(self.names[1], **AS_WRITTEN)
        legend = self.ax_.get_legend()
        n_lines = 0 if legend is None else -(-len(legend.get_texts()) // _MOST_IN_LINE)
        self.ax_.set_title(title or self.heading, fontsize=9, pad=6 + 14 * n_lines, **AS_WRITTEN)  # above the legend
        return self

    def _show_scales(self) -> None:
        """Write dates, and names of ranks and levels, at the axes."""
        axes = (self.ax_.xaxis, self.ax_.yaxis), self.scales or (), self.limits
        for axis, scale, limits in zip(*axes, strict=False):  # without scales nothing
            if isinstance(scale, Category):
                show_scores(axis, scale, limits)
            else:
                show_scale(axis, scale)
        if self.scales and isinstance(self.scales[0], Category):
            self.ax_.tick_params(axis="x", rotation=90)

    def _draw_background(self) -> None:
        """Draw what the line says as colours, and the thresholds as lines."""
        across, up = (np.linspace(low, high, _PLACES_PER_AXIS) for low, high in self.limits)
        weights = self.line.direction[self.line.features]
        z = weights[0] * across[None, :] + weights[1] * up[:, None]
        if len(self.labels) > 2 and self.code is None:
            self._draw_leading(z)
        else:
            self._draw_curve(z)
        inside = [t for t in self.line.thresholds if z.min() < t < z.max()]
        if inside:
            self.ax_.contour(across, up, z, levels=inside, colors=BLACK, linewidths=1, linestyles=":")

    def _draw_curve(self, z: Floats) -> None:
        """Draw the curve of the second of two classes, or of one of more, with its scale beside it."""
        from matplotlib.colors import LinearSegmentedColormap

        two = len(self.labels) == 2
        code = 1 if two or self.code is None else self.code
        curve = self.line.decisive[0 if two else code]
        largest = float(np.abs(curve.log_odds).max()) or 1.0
        ends = [BLUE, "white", ORANGE] if two else [GREY, "white", class_style(code).colour]
        colours = LinearSegmentedColormap.from_list("melc", ends)
        values = curve.at(z.ravel()).reshape(z.shape)
        self._draw_image(values, cmap=colours, vmin=-largest, vmax=largest, interpolation="bilinear")
        names = common.shortened(self.labels, 18)
        what = f"{self.scale}\n← {names[0]}     {names[1]} →" if two else f"{self.scale} of {names[code]}"
        self.figure_.colorbar(self.image_, ax=self.ax_).set_label(what, fontsize=8, **AS_WRITTEN)

    def _draw_leading(self, z: Floats) -> None:
        """Draw the class of the highest curve in its colour, the stronger the further that is above the next curve."""
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        values = np.sort([curve.at(z.ravel()) for curve in self.line.decisive], axis=0)
        lead = values[-1] - values[-2]
        codes = self.line.codes[np.searchsorted(self.line.thresholds, z.ravel(), side="right")]
        colours = np.array([to_rgb(class_style(code).colour) for code in range(len(self.labels))])
        strength = (lead / (lead.max() or 1.0))[:, None]
        self._draw_image((1 - strength * (1 - colours[codes])).reshape(*z.shape, 3), interpolation="nearest")
        if self.targets is None:  # otherwise the points are in the legend
            names = common.shortened(self.labels, 18)
            shown = [code for code in range(len(names)) if code in codes]
            handles = [Patch(facecolor=class_style(code).colour) for code in shown]
            self._draw_legend(handles, [f"favours {names[code]}" for code in shown])

    def _draw_image(self, values: Floats, **options: Any) -> None:
        extent = (*self.limits[0], *self.limits[1])
        self.image_ = self.ax_.imshow(values, extent=extent, origin="lower", aspect="auto", alpha=0.75, **options)

    def _draw_points(self) -> None:
        """Draw the rows, in the colours and with the markers of their classes; grey without labels."""
        assert self.points is not None
        style = {"s": 18, "edgecolors": BLACK, "linewidths": 0.4, "zorder": 3}
        points = self.points + self._scattered(len(self.points))
        if self.targets is None:
            self.ax_.scatter(*points.T, color=GREY, **style)
            return
        handles = []
        for code, name in enumerate(self.labels):
            mine, kind = points[self.targets == code], class_style(code)
            handles.append(self.ax_.scatter(*mine.T, color=kind.colour, marker=kind.marker, label=name, **style))
        self._draw_legend(handles, common.shortened(self.labels, 18))

    def _draw_legend(self, handles: list[Any], names: list[str]) -> None:
        """Draw the legend above the plane, where it covers no rows."""
        common.legend_above(self.ax_, *common.in_legend(handles, names), _MOST_IN_LINE)

    def _scattered(self, n: int) -> Floats:
        """Return small steps along axes of levels, shape (n, 2), so that not all rows of a level are one point."""
        widths = np.array([_SCATTER * (high - low) for low, high in self.limits])
        is_level = [isinstance(scale, Category) or scale.kind == "rank" for scale in self.scales or ()]
        return np.random.default_rng(0).uniform(-1, 1, (n, 2)) * widths * (is_level or [False, False])


def _line_to_plot(model: Any, number: int | None) -> tuple[int, Line]:
    """Return the number of the line to plot, and the line, which has weights of two features."""
    two = [k for k in numbers_by_importance(model) if len(model.lines_[k - 1].features) == 2]
    if number is None:
        if not two:
            raise ValueError("No line of the model has two features; LinesDisplay plots any lines.")
        return two[0], model.lines_[two[0] - 1]
    line = model.lines_[common.checked_line(number, len(model.lines_)) - 1]
    n_features = len(line.features)
    if n_features != 2:
        others = f"choose one of {sorted(two)}" if two else "LinesDisplay plots it"
        raise ValueError(
            f"Line {number} has {n_features} feature{'s'[: n_features > 1]}, and a plane needs two: {others}."
        )
    return number, line


def _two_features(X: Any, line: Line) -> Floats:
    """Return the two features of a line as a dense array of shape (n_rows, 2)."""
    columns = X[:, line.features]
    return np.asarray(columns.toarray() if issparse(columns) else columns, dtype=np.float64)


def _rows_to_show(columns: Floats, codes: Any, most: int) -> tuple[Floats, Any]:
    """Return at most so many rows, drawn at random but always the same, and their codes."""
    if len(columns) <= most:
        return columns, codes
    drawn = np.sort(np.random.default_rng(0).choice(len(columns), most, replace=False))
    return columns[drawn], None if codes is None else codes[drawn]


def _axis_limits(columns: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return intervals of both features that contain nearly all rows, with a margin."""
    lows, highs = np.quantile(columns, [common.ROWS_LEFT_OUT, 1 - common.ROWS_LEFT_OUT], axis=0)
    margins = np.where(highs > lows, 0.06 * (highs - lows), 1.0)
    return _pairs(lows - margins, highs + margins)


def _limits_without_rows(model: Any, line: Line) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return intervals around the means, in proportion to the spreads, in which z takes all values on the line."""
    weights, centre = line.direction[line.features], model.feature_mean_[line.features]
    half = model.feature_spread_[line.features]
    half = half * np.abs(line.places[[0, -1]] - centre @ weights).max() / (half @ np.abs(weights))
    return _pairs(centre - half, centre + half)


def _pairs(lows: Floats, highs: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    first, second = zip(lows.tolist(), highs.tolist(), strict=True)
    return first, second
