"""Plot of the curves of lines, with the class densities under them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.model.line import Line
from melc.model.names import class_index_of, numbers_by_importance
from melc.model.places import Scale, scale_along
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, GREY, NAME_LENGTH, class_style
from melc.plotting.levels import (
    Levels,
    draw_bars,
    draw_errors,
    draw_leading,
    draw_points,
    draw_shares,
    levels_of,
    name_levels,
    offsets_of,
    show_scale,
)

_COLUMNS = 3
# The part of a panel that the densities take, below the curves.
_STRIP = 0.26
_HISTOGRAM_BINS = 40
# Half the width of a band in standard errors; how far bands may reach beyond all curves, as a part of their height; and
# the most curves of a panel that have bands: more would cover each other.
_ERRORS, _BEYOND, _MOST_BANDS = 1.96, 0.15, 4
# The part of a panel, right of the curve, that shows what a missing value adds; and inches for the names of levels.
_SIDE, _FOR_NAMES = 0.16, 0.7

# What is drawn of a line: its curves, their bands, points of missing values, and thresholds.
Artists = tuple[list[Any], list[Any], list[Any], list[Any]]


@dataclass(frozen=True)
class Panel:
    """One line as it is plotted.

    ``edges``, of shape (n + 1,) or (n,), are where the ``heights`` under the curves are: histograms of rows in n bins,
    or densities in n places. The line of a category has ``levels`` in their place. ``n_missing`` is the number of rows
    without a value in the only column of a line.
    """

    line: Line
    title: str
    edges: Floats = field(repr=False)
    heights: list[Floats] = field(repr=False)
    labelled: bool = True  # whether the heights are those of the classes, or of all rows
    scale: Scale = field(default_factory=lambda: Scale("sum"), repr=False)
    levels: Levels | None = field(default=None, repr=False)
    n_missing: float = 0.0


@dataclass(eq=False)
class LinesDisplay:
    """Small plots of the lines of a model, the most important first.

    Each plot shows what a line adds to the log-odds, the thresholds at which it begins to favour another class, and the
    densities of the classes below. With two classes there is one curve, with areas in the colours of the classes that
    it favours. With more classes, each class has a curve in its colour, and a band along the top has the colour of the
    highest curve. Bands around the curves are ± 1.96 standard errors, if the model has them; with more than four curves
    they are left out. If a model has a single line, its curves include the intercept. All plots have the same scale.
    Create it with :meth:`from_estimator`.

    The line of a category is drawn as bars, or as points with more than two classes, one for each level, with its
    number of rows. If there are very many levels, the 25 most frequent ones are shown. If a column has missing values,
    a point to the right of its curve shows what these add.

    Parameters
    ----------
    panels : list of Panel
        The lines shown.
    labels : list of str
        Names of the classes.
    scale : str, default="adds to the log-odds"
        What the values of the curves are.
    code : int, default=None
        With more than two classes, the number of the class whose curves are shown, or None for all.
    n_hidden : int, default=0
        Number of less important lines that are not shown.
    n_minor : int, default=0
        Number of minor lines that are not shown.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_panels,)
        Axes with the plots.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    curves_ : list of lists of matplotlib Line2D or BarContainer
        The curves of each line: one for two classes, or one for each class shown; for a category, the bars or points.
    bands_ : list of lists of matplotlib PolyCollection or LineCollection
        The bands around these curves, or the error bars of levels; empty lists where there are none.
    missing_ : list of lists of matplotlib Line2D
        The points of missing values of each line.
    threshold_lines_ : list of lists of matplotlib Line2D
        The thresholds of each line.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import AdditiveMELC
    >>> from melc.plotting import LinesDisplay
    >>> X, species = load_iris(return_X_y=True, as_frame=True)
    >>> model = AdditiveMELC(random_state=0).fit(X, species)
    >>> display = LinesDisplay.from_estimator(model, max_lines=1)
    >>> [len(curves) for curves in display.curves_]
    [3]
    """

    panels: list[Panel] = field(repr=False)
    labels: list[str]
    scale: str = field(default="adds to the log-odds", repr=False)
    code: int | None = field(default=None, repr=False)
    n_hidden: int = 0
    n_minor: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        line: int | None = None,
        class_label: Any = None,
        max_lines: int = 9,
        minor: bool = False,
        feature_names: Any = None,
        title: str | None = None,
        ax: Any = None,
    ) -> "LinesDisplay":
        """Plot the lines of a fitted model and, optionally, rows of data.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline that ends in one, or a fitted search for one.
        X : {array-like, sparse matrix, frame} of shape (n_rows, n_features), default=None
            Rows to show under the curves, as histograms. By default the densities of the training rows are shown.
        y : array-like of shape (n_rows,), default=None
            Labels of these rows, for one histogram per class.
        line : int, default=None
            Number of the line to plot, from 1. By default the most important ones.
        class_label : default=None
            With more than two classes, the class whose curves are shown. By default those of all classes.
        max_lines : int, default=9
            Maximum number of lines to show.
        minor : bool, default=False
            Whether minor lines are shown as well, after the others: small ones, each of one feature.
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
        model, rows, names = common.unwrapped(estimator, X, y, feature_names)
        if max_lines < 1:
            raise ValueError(f"max_lines={max_lines}; it must be at least 1.")
        shown, n_hidden, n_minor = lines_to_show(model, max_lines, minor)
        if line is not None:
            shown, n_hidden, n_minor = [common.checked_line(line, len(model.lines_))], 0, 0
        short = common.short_names([model.lines_[k - 1] for k in shown], names)
        z, targets = common.projected(model, rows, y)
        panels = [_line_panel(model, k, names, short, None if z is None else z[:, k - 1], targets) for k in shown]
        code = None if class_label is None else class_index_of(model.classes_, class_label, "class_label")
        known = common.class_names(model), common.scale_of(model), code
        return cls(panels, *known, n_hidden, n_minor).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "LinesDisplay":
        """Plot on an array of axes, in an empty figure, or in a new one if it is None, and return the display."""
        n = len(self.panels)
        size = figure_size(n, any(panel.levels for panel in self.panels))
        self.axes_ = common.panel_axes(ax, n, size, min(_COLUMNS, n), sharey=True)
        self.figure_ = self.axes_[0].figure
        low, high = self._limits()
        drawn = [self._draw(axes, panel, low, high) for axes, panel in zip(self.axes_, self.panels, strict=True)]
        self.curves_, self.bands_, self.missing_, self.threshold_lines_ = map(list, zip(*drawn, strict=True))
        self._add_legend(own_figure=common.is_figure(ax))
        if title:
            self.figure_.suptitle(title, **AS_WRITTEN)
        return self

    @property
    def _codes(self) -> Sequence[int]:
        """The numbers of the curves that are shown."""
        every = range(1 if len(self.labels) == 2 else len(self.labels))
        return every if self.code is None or len(every) == 1 else [self.code]

    def _has_bands(self, line: Line) -> bool:
        return len(line.errors) > 0 and len(self._codes) <= _MOST_BANDS

    def _limits(self) -> tuple[float, float]:
        """Return the ends of the common scale: all curves, zero, and the bands as far as there is room for them."""
        shown = [(panel.line, code) for panel in self.panels for code in self._codes]
        missing = [line.decisive[code].missing or 0.0 for line, code in shown if not line.levels]
        values = np.concatenate([[0.0], missing, *(line.decisive[code].log_odds for line, code in shown)])
        halves = [_ERRORS * (line.errors[code] if self._has_bands(line) else 0.0) for line, code in shown]
        low, high = float(values.min()), float(values.max())
        beyond = _BEYOND * (high - low)
        ends = [(line.decisive[code].log_odds, half) for (line, code), half in zip(shown, halves, strict=True)]
        lowest = min(float((values - half).min()) for values, half in ends)
        highest = max(float((values + half).max()) for values, half in ends)
        return max(min(low, lowest), low - beyond), min(max(high, highest), high + beyond)

    def _draw(self, ax: Any, panel: Panel, low: float, high: float) -> Artists:
        """Draw one line; ``low`` and ``high`` are the ends of the common scale."""
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.tick_params(labelsize=7)
        if panel.levels is None:
            drawn = self._draw_line(ax, panel, low, high)
        else:
            drawn = self._draw_levels(ax, panel.levels, (low, high))
        room = (high - low or 1.0) * 1.06
        ax.set_ylim(high - room / (1 - _STRIP), high + 0.06 * (high - low))
        ax.set_yticks([t for t in ax.get_yticks() if low <= t <= high])
        ax.set_title(panel.title, fontsize=8, **AS_WRITTEN)
        ax.spines[["top", "right"]].set_visible(False)
        if ax.get_subplotspec() is None or ax.get_subplotspec().is_first_col():
            ax.set_ylabel(self.scale, fontsize=8)
        self._draw_heights(ax, panel)
        return drawn

    def _draw_line(self, ax: Any, panel: Panel, low: float, high: float) -> Artists:
        """Draw the curves of a line of numbers with its thresholds, and what missing values add."""
        margin = 0.04 * (panel.edges[-1] - panel.edges[0]) or 1.0
        left, right = panel.edges[0] - margin, panel.edges[-1] + margin
        if len(self.labels) == 2:
            self._fill_sides(ax, panel.line, left, right)
        else:
            ends = np.clip(np.concatenate([[left], panel.line.thresholds, [right]]), left, right)
            draw_leading(ax, ends, panel.line.codes)
        curves, bands = self._draw_curves(ax, panel.line, (left, right), (low, high))
        dotted = {"color": BLACK, "linewidth": 1, "linestyle": ":"}
        thresholds = [ax.axvline(t, **dotted) for t in panel.line.thresholds]
        show_scale(ax.xaxis, panel.scale)
        ax.set_xlim(left, right)
        missing = self._draw_missing(ax, panel, left, right) if panel.line.reads_codes else []
        return curves, bands, missing, thresholds

    def _draw_missing(self, ax: Any, panel: Panel, left: float, right: float) -> list[Any]:
        """Draw, right of the curves, points at what missing values add."""
        width = _SIDE * (right - left)
        # The text of a tick at the right end would overlap that of the missing values.
        ticks = [tick for tick in ax.get_xticks() if left <= tick <= right - 0.5 * width]
        texts = ax.xaxis.get_major_formatter().format_ticks(ticks)
        ax.set_xticks(ticks, texts, **AS_WRITTEN)
        ax.set_xlim(left, right + width)
        ax.axvspan(right, right + width, color=GREY, alpha=0.1, linewidth=0, zorder=0)
        points = []
        places = right + width * (0.5 + offsets_of(len(self._codes))[0])
        for place, code in zip(places, self._codes, strict=True):
            style, value = class_style(code), panel.line.decisive[code].missing or 0.0
            colour = class_style(int(value > 0)).colour if len(self.labels) == 2 else style.colour
            look = {"color": colour, "marker": style.marker if len(self.labels) > 2 else "D", "markersize": 5}
            points += ax.plot([place], [value], linestyle="none", markeredgecolor=BLACK, **look)
        where = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "top", "fontsize": 6, "color": BLACK}
        ax.text(right + width / 2, -0.025, f"missing\n({panel.n_missing:,.0f})", **where)
        return points

    def _draw_levels(self, ax: Any, levels: Levels, limits: tuple[float, float]) -> Artists:
        """Draw what the levels of a category add: bars of two classes, points of more."""
        marks = draw_bars(ax, levels) if len(self.labels) == 2 else draw_points(ax, levels, self._codes)
        errors = []
        if levels.errors is not None and len(self._codes) <= _MOST_BANDS:
            errors = draw_errors(ax, levels, _ERRORS * levels.errors, self._codes, limits)
        name_levels(ax, levels, 7, room=32)
        return marks, errors, [], []

    def _fill_sides(self, ax: Any, line: Line, left: float, right: float) -> None:
        """Fill the area between the curve of two classes and zero in the colour of the class that it favours."""
        z = _drawn_places(line, 0, left, right)
        values = line.decisive[0].at(z)
        for code, part in enumerate((np.minimum(values, 0), np.maximum(values, 0))):
            ax.fill_between(z, part, alpha=0.45, linewidth=0, **class_style(code).area)

    def _draw_curves(
        self, ax: Any, line: Line, ends: tuple[float, float], limits: tuple[float, float]
    ) -> tuple[list[Any], list[Any]]:
        """Draw the curves, with bands that end at the limits of the scale."""
        curves, bands = [], []
        for code in self._codes:
            z, curve = _drawn_places(line, code, *ends), line.decisive[code]
            style = class_style(code)
            colour, dashes = (BLACK, "solid") if len(self.labels) == 2 else (style.colour, style.dashes)
            values = curve.at(z)
            if self._has_bands(line):
                half = _ERRORS * np.interp(z, curve.knots, line.errors[code])
                band = np.clip(values - half, *limits), np.clip(values + half, *limits)
                bands.append(ax.fill_between(z, *band, color=colour, alpha=0.16, linewidth=0))
            curves += ax.plot(z, values, color=colour, linestyle=dashes, linewidth=1.6)
        return curves, bands

    def _draw_heights(self, ax: Any, panel: Panel) -> None:
        """Draw the densities, or histograms of rows, in a strip at the bottom."""
        strip = ax.inset_axes([0, 0, 1, _STRIP], sharex=ax)
        strip.set_axis_off()
        if panel.levels is not None:
            draw_shares(strip, panel.levels, panel.labelled)
            strip.set_ylim(0, 1.12 * float(panel.levels.shares.max()) or 1.0)
            return
        for code, heights in enumerate(panel.heights):
            colour = class_style(code).colour if panel.labelled else GREY
            style = {"color": colour, "linestyle": class_style(code).dashes, "linewidth": 1.2}
            if len(panel.edges) == len(heights):
                strip.plot(panel.edges, heights, **style)
                strip.fill_between(panel.edges, heights, color=colour, alpha=0.15, linewidth=0)
            else:
                strip.stairs(heights, panel.edges, **style)
                strip.stairs(heights, panel.edges, fill=True, color=colour, alpha=0.15)
        strip.set_ylim(0, 1.12 * max(float(heights.max()) for heights in panel.heights) or 1.0)

    def _add_legend(self, own_figure: bool) -> None:
        """Explain the colours once: below all panels of a figure of our own, otherwise in the first panel."""
        handles, labels = self._class_entries()
        further = self._further_entries()
        handles, labels = [*handles, *further.values()], [*labels, *further]
        columns = common.legend_columns(len(labels), min(6, 2 * len(self.panels)))
        below: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "fontsize": 8}
        holder, place = (self.figure_, below) if own_figure else (self.axes_[0], {"loc": "upper right", "fontsize": 6})
        legend = common.with_names_as_written(holder.legend(handles, labels, frameon=False, **place))
        if self._note():
            legend.set_title(self._note())
            legend.get_title().set(fontsize=7, color=GREY)

    def _class_entries(self) -> tuple[list[Any], list[str]]:
        """Return handles and names of the classes: areas of two, curves of more."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        names = common.shortened(self.labels, NAME_LENGTH)
        styles = [class_style(code) for code in range(len(names))]
        if len(names) == 2:
            return [Patch(alpha=0.45, **style.area) for style in styles], [f"favours {name}" for name in names]
        curves = [Line2D([], [], color=s.colour, linestyle=s.dashes, linewidth=1.6) for s in styles]
        return common.in_legend(curves, names)

    def _further_entries(self) -> dict[str, Any]:
        """Return the handles of what is not a class, by their names."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        found: dict[str, Any] = {}
        if any(self.threshold_lines_):
            found["threshold"] = Line2D([], [], color=BLACK, linewidth=1, linestyle=":")
        if any(self.bands_):
            found["± 1.96 standard errors"] = Patch(facecolor=BLACK, alpha=0.16)
        if len(self.labels) == 2 or not self.panels[0].labelled:
            colour = class_style(0).colour if self.panels[0].labelled else GREY
            found["density of the rows"] = Line2D([], [], color=colour, linewidth=1.2)
        return found

    def _note(self) -> str:
        """Return how many lines are not shown."""
        kinds = ((self.n_hidden, "less important"), (self.n_minor, "minor"))
        counts = [f"{n} {kind} line{'s'[: n > 1]}" for n, kind in kinds if n]
        return f"{' and '.join(counts)} not shown" if counts else ""


def lines_to_show(model: Any, most: int, minor: bool) -> tuple[list[int], int, int]:
    """Return the numbers of the lines to show, the most important first, and how many others and minor ones are not.

    If a model has minor lines only, they count as the others.
    """
    numbers, lines = numbers_by_importance(model), model.lines_
    main = numbers if minor or all(line.minor for line in lines) else [k for k in numbers if not lines[k - 1].minor]
    return main[:most], len(main[most:]), len(numbers) - len(main)


def figure_size(n_lines: int, has_levels: bool = False) -> tuple[float, float]:
    """Return width and height in inches of a figure of so many lines, with room for the names of levels, if any."""
    columns = min(_COLUMNS, n_lines)
    return max(3.6 * columns, 5.0), (2.7 + _FOR_NAMES * has_levels) * -(-n_lines // columns) + 0.5


def _drawn_places(line: Line, code: int, left: float, right: float) -> Floats:
    """Return the places at which a curve is drawn. The thresholds are among them, so that colours change there."""
    return np.unique(np.concatenate([[left], line.curves[code].knots, line.thresholds, [right]]))


def _line_panel(model: Any, number: int, names: list[str], short: dict[int, str], z: Any, targets: Any) -> Panel:
    """Return the panel of a line, with histograms of rows at projections z if there are any, else with densities."""
    line, title = model.lines_[number - 1], common.title_of(model, number, short)
    scale = scale_along(model, line, names)
    labelled = z is None or targets is not None
    if line.levels:
        return Panel(line, title, line.places, [], labelled, scale, levels_of(line, z, targets))
    if z is None:
        n_missing = float(line.missing_counts.sum())
        return Panel(line, title, line.places, list(line.densities), labelled, scale, None, n_missing)
    known = z[~np.isnan(z)]
    low, high = np.quantile(known if len(known) else line.places, [common.ROWS_LEFT_OUT, 1 - common.ROWS_LEFT_OUT])
    edges = np.linspace(min(low, line.places[0]), max(high, line.places[-1]), _HISTOGRAM_BINS + 1)
    groups = [z] if targets is None else [z[targets == code] for code in range(len(model.classes_))]
    heights = [np.histogram(group[~np.isnan(group)], edges)[0] / max(len(group), 1) for group in groups]
    return Panel(line, title, edges, heights, labelled, scale, None, float(np.isnan(z).sum()))
