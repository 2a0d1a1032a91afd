"""Plot of the curves of lines, with the class densities under them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.line import Line
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, CLASS_COLOURS, CLASS_HATCHES, CLASS_LINES, GREY, NAME_LENGTH

_COLUMNS = 3
# The part of a panel that the densities take, below the curve.
_STRIP = 0.26
_BINS = 40
# Share of the rows that may lie outside a histogram, at either end.
_ROWS_LEFT_OUT = 0.005


@dataclass(frozen=True)
class Panel:
    """One line as it is plotted.

    ``sides`` are the names of the others and of the class that the line is for. ``edges``, of shape (n + 1,) or (n,),
    are where the ``heights`` under the curve are: histograms of rows in n bins, or densities in n places. ``scale`` is
    what the values of the curve are.
    """

    line: Line
    title: str
    sides: tuple[str, str]
    edges: Floats = field(repr=False)
    heights: list[Floats] = field(repr=False)
    scale: str = "adds to the log-odds"
    labelled: bool = True  # whether the heights are those of the two sides, or of all rows


@dataclass(eq=False)
class LinesDisplay:
    """Small plots of the lines of a model, the most important first.

    Each shows what the line adds to the log-odds, in the colour of the class that it speaks for, with the thresholds
    where that changes, and the densities of the classes below. The intercept is part of the curve of a line that
    decides alone. All have the same scale. Create it with :meth:`from_estimator`.

    Parameters
    ----------
    panels : list of Panel
        The lines shown.
    n_hidden : int, default=0
        Number of less important lines that are not shown.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_panels,)
        Axes with the plots.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    curves_ : list of matplotlib Line2D
        One curve per line.
    threshold_lines_ : list of lists of matplotlib Line2D
        The thresholds of each line.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import AdditiveMELC
    >>> from melc.plotting import LinesDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = AdditiveMELC(random_state=0).fit(X, species == 1)
    >>> display = LinesDisplay.from_estimator(model, max_lines=2)
    >>> len(display.curves_)
    2
    """

    panels: list[Panel] = field(repr=False)
    n_hidden: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        class_label: Any = None,
        max_lines: int = 9,
        feature_names: Any = None,
        title: str | None = None,
        ax: Any = None,
    ) -> "LinesDisplay":
        """Plot the lines of a fitted model and, optionally, rows of data.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline whose last step is one, or a search for one.
        X : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
            Rows to show under the curves, as histograms. By default the densities of the training rows are shown.
        y : array-like of shape (n_rows,), default=None
            Labels of these rows, for one histogram per class.
        class_label : default=None
            Class whose lines are plotted. By default those of all classes.
        max_lines : int, default=9
            Maximum number of lines to show.
        feature_names : list of str, default=None
            Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
        title : str, default=None
            Title of the figure.
        ax : array of matplotlib Axes, or empty matplotlib Figure, default=None
            Axes to plot on, one for each line shown, or a figure to fill. If None, a new figure is created.

        Returns
        -------
        display : LinesDisplay
        """
        model, rows, names = common.opened(estimator, X, y, feature_names)
        if max_lines < 1:
            raise ValueError(f"max_lines={max_lines}; it must be at least 1.")
        chosen = common.lines_of(model, class_label)
        shown = chosen[:max_lines]
        short = common.short_names([line for _, line in shown], names)
        panels = [_panel(model, number, line, short, rows, y) for number, line in shown]
        return cls(panels, len(chosen) - len(shown)).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "LinesDisplay":
        """Plot on an array of axes, in an empty figure, or in a new one if it is None, and return the display."""
        n = len(self.panels)
        self.axes_ = common.panel_axes(ax, n, figure_size(n), min(_COLUMNS, n), sharey=True)
        self.figure_ = self.axes_[0].figure
        self.curves_: list[Any] = []
        self.threshold_lines_: list[list[Any]] = []
        values = np.concatenate([panel.line.decisive.log_odds for panel in self.panels])
        low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
        for axes, panel in zip(self.axes_, self.panels, strict=True):
            self._draw(axes, panel, low, high)
        self._add_legend(own_figure=common.is_figure(ax))
        if title:
            self.figure_.suptitle(title, **AS_WRITTEN)
        return self

    def _draw(self, ax: Any, panel: Panel, low: float, high: float) -> None:
        """Draw one line; ``low`` and ``high`` are the ends of the common scale."""
        curve, thresholds = panel.line.decisive, panel.line.thresholds
        margin = 0.04 * (panel.edges[-1] - panel.edges[0]) or 1.0
        left, right = panel.edges[0] - margin, panel.edges[-1] + margin
        # The thresholds are among the points, so that the colours change exactly there.
        z = np.unique(np.concatenate([[left], curve.knots, thresholds, [right]]))
        values = curve.at(z)
        for code, part in enumerate((np.minimum(values, 0), np.maximum(values, 0))):
            style = {"facecolor": CLASS_COLOURS[code], "hatch": CLASS_HATCHES[code], "edgecolor": "white"}
            ax.fill_between(z, part, alpha=0.45, linewidth=0, **style)
        ax.axhline(0, color=GREY, linewidth=0.8)
        self.curves_ += ax.plot(z, values, color=BLACK, linewidth=1.6)
        dotted = {"color": BLACK, "linewidth": 1, "linestyle": ":"}
        self.threshold_lines_.append([ax.axvline(t, **dotted) for t in thresholds])
        room = (high - low or 1.0) * 1.06
        ax.set_ylim(high - room / (1 - _STRIP), high + 0.06 * (high - low))
        ax.set_yticks([t for t in ax.get_yticks() if low <= t <= high])
        ax.set_xlim(left, right)
        ax.set_title(panel.title, fontsize=8, **AS_WRITTEN)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
        if ax.get_subplotspec() is None or ax.get_subplotspec().is_first_col():
            ax.set_ylabel(panel.scale, fontsize=8)
        self._draw_heights(ax, panel)

    def _draw_heights(self, ax: Any, panel: Panel) -> None:
        """Draw the densities, or histograms of rows, in a strip at the bottom."""
        strip = ax.inset_axes([0, 0, 1, _STRIP], sharex=ax)
        strip.set_axis_off()
        for code, heights in enumerate(panel.heights):
            colour = CLASS_COLOURS[code] if panel.labelled else GREY
            style = {"color": colour, "linestyle": CLASS_LINES[code], "linewidth": 1.2}
            if len(panel.edges) == len(heights):
                strip.plot(panel.edges, heights, **style)
                strip.fill_between(panel.edges, heights, color=colour, alpha=0.15, linewidth=0)
            else:
                strip.stairs(heights, panel.edges, **style)
                strip.stairs(heights, panel.edges, fill=True, color=colour, alpha=0.15)
        strip.set_ylim(0, 1.12 * max(float(heights.max()) for heights in panel.heights) or 1.0)

    def _add_legend(self, own_figure: bool) -> None:
        """Explain the colours once: below all panels of a figure of our own, otherwise in the first panel."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        one_pair = len({panel.sides for panel in self.panels}) == 1
        names = common.shortened(list(self.panels[0].sides), NAME_LENGTH) if one_pair else ["the rest", "the class"]
        handles: list[Any] = [
            Patch(facecolor=CLASS_COLOURS[code], hatch=CLASS_HATCHES[code], alpha=0.45, edgecolor="white")
            for code in (0, 1)
        ]
        labels = [f"speaks for {name}" for name in names]
        if any(self.threshold_lines_):
            handles.append(Line2D([], [], color=BLACK, linewidth=1, linestyle=":"))
            labels.append("threshold")
        handles.append(Line2D([], [], color=CLASS_COLOURS[0] if self.panels[0].labelled else GREY, linewidth=1.2))
        labels.append("density of the rows")
        below: dict[str, Any] = {"loc": "outside lower center", "ncols": min(4, 2 * len(self.panels)), "fontsize": 8}
        holder, place = (self.figure_, below) if own_figure else (self.axes_[0], {"loc": "upper right", "fontsize": 6})
        legend = common.with_names_as_written(holder.legend(handles, labels, frameon=False, **place))
        if self.n_hidden:
            legend.set_title(f"{self.n_hidden} less important line{'s' if self.n_hidden > 1 else ''} not shown")
            legend.get_title().set(fontsize=7, color=GREY)


def figure_size(n_lines: int) -> tuple[float, float]:
    """Return width and height in inches of a figure of so many lines."""
    columns = min(_COLUMNS, n_lines)
    return max(3.6 * columns, 5.0), 2.7 * -(-n_lines // columns) + 0.5


def _panel(model: Any, number: int, line: Line, names: dict[int, str], X: Any, y: Any) -> Panel:
    """Return the panel of a line, with histograms of the rows if there are any, otherwise with its densities."""
    title, scale = common.title_of(model, number, line, names), common.scale_of(model, line)
    sides = common.names_of_sides(model, line)
    z, codes = common.projected(model, line, X, y)
    if z is None:
        return Panel(line, title, sides, line.places, list(line.densities), scale)
    low, high = np.quantile(z, [_ROWS_LEFT_OUT, 1 - _ROWS_LEFT_OUT])
    edges = np.linspace(min(low, line.places[0]), max(high, line.places[-1]), _BINS + 1)
    groups = [z] if codes is None else [z[codes == code] for code in (0, 1)]
    heights = [np.histogram(group, edges)[0] / max(len(group), 1) for group in groups]
    return Panel(line, title, sides, edges, heights, scale, labelled=codes is not None)
