"""Plot of a line of two features in the plane of these features."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from melc.arrays import Floats
from melc.model.line import Line
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, BLUE, CLASS_COLOURS, GREY, ORANGE

_MARKERS = ("o", "^")
_GRID_POINTS = 300
# Share of the rows that may lie outside the plot, at either end of a feature.
_ROWS_LEFT_OUT = 0.005


@dataclass(eq=False)
class PlaneDisplay:
    """Plot of a line of two features: what it adds to the log-odds as the background of the plane of its features.

    Thresholds are straight lines there. Create it with :meth:`from_estimator`.

    Parameters
    ----------
    line : Line
        A line with weights of two features.
    limits : tuple of two pairs of float
        The ends of the plot along either feature.
    names : tuple of two str
        Names of the features.
    sides : tuple of two str
        Names of the two sides: the other classes, and the class that the line is for.
    heading : str
        The sum of the features, and the importance of the line.
    scale : str, default="adds to the log-odds"
        What the values of the background are.
    points : ndarray of shape (n_points, 2), default=None
        The two features of the rows to show.
    targets : ndarray of shape (n_points,), default=None
        Codes of these rows: 1 for the class that the line is for.

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
    sides: tuple[str, str]
    heading: str = field(repr=False)
    scale: str = field(default="adds to the log-odds", repr=False)
    points: Floats | None = field(default=None, repr=False)
    targets: NDArray[np.int8] | None = field(default=None, repr=False)

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
            A fitted model, a pipeline whose last step is one, or a search for one.
        X : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
            Rows to show as points; they also determine which part of the plane is shown. Without rows, it is a part
            around the mean of the training rows in which the line has all of its values.
        y : array-like of shape (n_rows,), default=None
            Labels of these rows.
        line : int, default=None
            Number of the line, from 1. By default the most important line of two features.
        class_label : default=None
            Class whose most important line is plotted, if ``line`` is not given. By default that of all classes.
        max_rows : int, default=1000
            Maximum number of points; of more rows a random sample is shown.
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
        model, rows, names = common.opened(estimator, X, y, feature_names)
        if max_rows < 0:
            raise ValueError(f"max_rows={max_rows}; it must not be negative.")
        number, drawn = _chosen(model, line, class_label)
        first, second = common.shortened([names[j] for j in drawn.features])
        limits, points, targets = _limits_without_rows(model, drawn), None, None
        if rows is not None:
            columns = _columns(rows, drawn)
            limits = _limits(columns)
            points, targets = _sample(columns, common.class_codes(model, y, len(columns), drawn), max_rows)
        heading = common.title_of(model, number, drawn, common.short_names([drawn], names))
        known = (first, second), common.names_of_sides(model, drawn), heading, common.scale_of(model, drawn)
        return cls(drawn, limits, *known, points, targets).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "PlaneDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        self.ax_ = common.axes(ax)
        self.figure_ = self.ax_.figure
        self._draw_background()
        if self.points is not None:
            self._draw_points()
        self.ax_.set(xlim=self.limits[0], ylim=self.limits[1])
        self.ax_.set_xlabel(self.names[0], **AS_WRITTEN)
        self.ax_.set_ylabel(self.names[1], **AS_WRITTEN)
        self.ax_.set_title(title or self.heading, fontsize=9, **AS_WRITTEN)
        return self

    def _draw_background(self) -> None:
        """Draw what the line adds as colours, with the scale beside it, and the thresholds as lines."""
        from matplotlib.colors import LinearSegmentedColormap

        across, up = (np.linspace(low, high, _GRID_POINTS) for low, high in self.limits)
        weights, curve = self.line.direction[self.line.features], self.line.decisive
        z = weights[0] * across[None, :] + weights[1] * up[:, None]
        largest = float(np.abs(curve.log_odds).max()) or 1.0
        colours = LinearSegmentedColormap.from_list("melc", [BLUE, "white", ORANGE])
        self.image_ = self.ax_.imshow(
            curve.at(z.ravel()).reshape(z.shape),
            cmap=colours,
            vmin=-largest,
            vmax=largest,
            extent=(*self.limits[0], *self.limits[1]),
            origin="lower",
            aspect="auto",
            interpolation="bilinear",
            alpha=0.75,
        )
        against = common.shortened(list(self.sides), 18)
        scale = self.figure_.colorbar(self.image_, ax=self.ax_)
        scale.set_label(f"{self.scale}\n← {against[0]}     {against[1]} →", fontsize=8, **AS_WRITTEN)
        inside = [t for t in self.line.thresholds if z.min() < t < z.max()]
        if inside:
            self.ax_.contour(across, up, z, levels=inside, colors=BLACK, linewidths=1, linestyles=":")

    def _draw_points(self) -> None:
        """Draw the rows, in the colours and with the markers of their sides; grey without labels."""
        assert self.points is not None
        style = {"s": 18, "edgecolors": BLACK, "linewidths": 0.4, "zorder": 3}
        if self.targets is None:
            self.ax_.scatter(*self.points.T, color=GREY, **style)
            return
        for code, name in enumerate(common.shortened(list(self.sides), 18)):
            mine = self.points[self.targets == code]
            self.ax_.scatter(*mine.T, color=CLASS_COLOURS[code], marker=_MARKERS[code], label=name, **style)
        common.with_names_as_written(self.ax_.legend(fontsize=8, framealpha=0.85))


def _chosen(model: Any, number: int | None, class_label: Any) -> tuple[int, Line]:
    """Return the number of the line to plot, and the line, which has weights of two features."""
    two = [(k, line) for k, line in common.lines_of(model, class_label) if len(line.features) == 2]
    if number is None:
        if not two:
            raise ValueError("No line of the model has two features; LinesDisplay plots any lines.")
        return two[0]
    (_, line), *_ = common.chosen(common.numbered_lines(model), number)
    n_features = len(line.features)
    if n_features != 2:
        others = f"choose one of {sorted(k for k, _ in two)}" if two else "LinesDisplay plots it"
        raise ValueError(
            f"Line {number} has {n_features} feature{'s'[: n_features > 1]}, and a plane needs two: {others}."
        )
    return number, line


def _columns(X: Any, line: Line) -> Floats:
    """Return the two features of a line as a dense array of shape (n_rows, 2)."""
    columns = X[:, line.features]
    return np.asarray(columns.toarray() if issparse(columns) else columns, dtype=np.float64)


def _sample(columns: Floats, codes: Any, most: int) -> tuple[Floats, Any]:
    """Return at most so many rows, drawn at random but always the same, and their codes."""
    if len(columns) <= most:
        return columns, codes
    drawn = np.sort(np.random.default_rng(0).choice(len(columns), most, replace=False))
    return columns[drawn], None if codes is None else codes[drawn]


def _limits(columns: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return intervals of both features that contain nearly all rows, with a margin."""
    lows, highs = np.quantile(columns, [_ROWS_LEFT_OUT, 1 - _ROWS_LEFT_OUT], axis=0)
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
