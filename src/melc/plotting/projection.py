"""Plot of the class densities along a line."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from melc.arrays import Floats
from melc.fit.validation import prior_shares
from melc.model.line import Line, decides_alone
from melc.model.places import Scale, missing_code, scale_along
from melc.plotting import common
from melc.plotting.common import AS_WRITTEN, BLACK, GREY, ClassStyle, class_style
from melc.plotting.levels import Levels, draw_shares, levels_of, name_levels, show_scale

_PLACES_ALONG_LINE = 501
# data="auto" draws one tick per row up to this many rows, and a histogram for more.
_MOST_RUG_TICKS = 1000
# More thresholds than this are not drawn one by one: they could not be told apart.
_MOST_THRESHOLDS_DRAWN = 200
# Most characters of a class name above the plot, and the least distance of upright names, as a share of the width.
_MOST_IN_BAND, _NAMES_APART = 24, 0.03
# Most characters and entries of a legend in one line.
_MOST_IN_LINE, _MOST_ENTRIES = 60, 4
# The height of a line of ticks, as a part of the densities, and the most of all of them.
_RUG_LINE, _MOST_OF_RUG = 0.055, 0.4

Data = Literal["auto", "rug", "histogram"]


@dataclass(eq=False)
class ProjectionDisplay:
    """Plot of the class densities along a line, with the thresholds and the class of every interval.

    If a model has several lines, each favours one class in each of its intervals, and the sum of all lines decides. For
    the line of a category, bars show the share of each level in the rows of each class. Create the plot with
    :meth:`from_estimator`.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Points along the line, ascending.
    heights : ndarray of shape (n_classes, n_points)
        Densities of the classes on the grid. If the line decides alone and the priors differ, each is multiplied by its
        prior, so that the curves cross near the thresholds.
    thresholds : ndarray of shape (n_thresholds,)
        Points at which the line begins to favour another class.
    codes : ndarray of shape (n_thresholds + 1,)
        Number of the class of each interval between the thresholds.
    labels : list of str
        Names of the classes.
    priors : ndarray of shape (n_classes,), default=None
        Factors by which the densities were multiplied, or None if they are all equal.
    points : ndarray of shape (n_rows,), default=None
        Projections of the rows to show.
    targets : ndarray of shape (n_rows,), default=None
        Numbers of the classes of these rows.
    decides : bool, default=True
        Whether rows in an interval of another class are misclassified, because the line decides alone.
    scale : Scale, default=None
        What the places on the line mean: sums, or values of a single column. By default sums.
    levels : Levels, default=None
        The levels of a line of a category, which is not drawn with densities.
    missing_code : int, default=None
        Number of the class that the line favours if the value of its only column is missing, if it has one for that.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D or BarContainer
        Curves of the densities, one for each class, or bars of the levels.
    threshold_lines_ : list of matplotlib Line2D
        Lines of the thresholds inside the plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import ProjectionDisplay
    >>> X, species = load_iris(return_X_y=True)
    >>> y = species == 2
    >>> model = MELC(n_init=1, random_state=0).fit(X, y)
    >>> display = ProjectionDisplay.from_estimator(model, X, y)
    >>> display.figure_.savefig("densities.png")  # doctest: +SKIP
    """

    grid: Floats = field(repr=False)
    heights: Floats = field(repr=False)
    thresholds: Floats = field(repr=False)
    codes: NDArray[np.int64] = field(repr=False)
    labels: list[str]
    priors: Floats | None = field(default=None, repr=False)
    points: Floats | None = field(default=None, repr=False)
    targets: NDArray[np.int64] | None = field(default=None, repr=False)
    decides: bool = field(default=True, repr=False)
    scale: Scale | None = field(default=None, repr=False)
    levels: Levels | None = field(default=None, repr=False)
    missing_code: int | None = field(default=None, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        line: int | None = None,
        data: Data = "auto",
        feature_names: Any = None,
        title: str | None = None,
        ax: Any = None,
    ) -> "ProjectionDisplay | common.LinePanels":
        """Plot the densities along the lines of a fitted model and, optionally, rows of data.

        Parameters
        ----------
        estimator : MELC, AdditiveMELC, Pipeline or fitted search
            A fitted model, a pipeline that ends in one, or a fitted search for one.
        X : {array-like, sparse matrix, frame} of shape (n_rows, n_features), default=None
            Rows to show along the line. The model does not store its training rows.
        y : array-like of shape (n_rows,), default=None
            Labels of these rows. Rows in an interval of another class are marked.
        line : int, default=None
            Number of the line to plot, from 1. By default all lines except minor ones, one below the other. Those of a
            :class:`melc.MELC` with more than two classes are the directions found for each class, in their order.
        data : {"auto", "rug", "histogram"}, default="auto"
            Show the rows as one tick each ("rug") or as a histogram; "auto" draws ticks for up to 1000 rows. Levels of
            a category have bars in any case.
        feature_names : list of str, default=None
            Names of the features in titles. By default those seen in ``fit``, or "x0", "x1", ...
        title : str, default=None
            Title of the plot. By default, if there are several lines, the sums of their features.
        ax : matplotlib Axes, array of Axes, or empty Figure, default=None
            Axes to plot on, one for each line, or a figure to fill. If None, a new figure is created.

        Returns
        -------
        display : ProjectionDisplay or LinePanels
        """
        model, rows, names = common.unwrapped(estimator, X, y, feature_names)
        numbers = common.chosen([each.minor for each in model.lines_], line)
        lines = [model.lines_[k - 1] for k in numbers]
        short = common.short_names(lines, names)
        headings = [common.title_of(model, k, short) for k in numbers]
        z, targets = common.projected(model, rows, y)
        displays = [cls._of_line(model, k, names, None if z is None else z[:, k - 1], targets) for k in numbers]
        return common.plotted(displays, headings, ax, title, data=data)

    @classmethod
    def _of_line(cls, model: Any, number: int, names: list[str], points: Any, targets: Any) -> "ProjectionDisplay":
        """Return the display of a line, not yet plotted."""
        line = model.lines_[number - 1]
        known: dict[str, Any] = {
            "labels": common.class_names(model),
            "points": points,
            "targets": targets,
            "decides": decides_alone(model),
            "scale": scale_along(model, line, names),
        }
        if line.levels:
            return cls._of_levels(levels_of(line, points, targets), known)
        priors = _density_factors(model, line)
        grid = np.union1d(line.places, np.linspace(line.places[0], line.places[-1], _PLACES_ALONG_LINE))
        with np.errstate(over="ignore"):  # in 1 / slope, where a density ends
            smooth = PchipInterpolator(line.places, line.densities, axis=1)  # stays between neighbouring places
        return cls(
            grid=grid,
            heights=smooth(grid) * (1.0 if priors is None else priors[:, None]),
            thresholds=line.thresholds,
            codes=line.codes,
            priors=priors,
            missing_code=missing_code(line),
            **known,
        )

    @classmethod
    def _of_levels(cls, levels: Levels, known: dict[str, Any]) -> "ProjectionDisplay":
        """Return the display of a line of a category: its levels are at 0, 1, …"""
        changes = np.flatnonzero(np.diff(levels.codes))
        return cls(
            grid=np.array([-0.6, len(levels.codes) - 0.4]),
            heights=levels.shares,
            thresholds=np.asarray(changes + 0.5, dtype=np.float64),
            codes=levels.codes[np.append(0, changes + 1)],
            levels=levels,
            **known,
        )

    def plot(self, ax: Any = None, *, data: Data = "auto", title: str | None = None) -> "ProjectionDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        if data not in ("auto", "rug", "histogram"):
            raise ValueError(f"data must be 'auto', 'rug' or 'histogram'; got {data!r}.")
        self.ax_, self.figure_ = common.axes(ax)
        self.ax_.set_xlim(self.grid[0], self.grid[-1])
        self._floor = 0.0
        self._shade_decisions()
        if self.levels is None:
            self._draw_densities()
            self._draw_thresholds()
            if self.points is not None:
                few = len(self.points) <= _MOST_RUG_TICKS
                (self._draw_rug if data == "rug" or (data == "auto" and few) else self._draw_histogram)()
            self._note_missing()
        else:
            self._draw_levels(self.levels)
        self._finish(title)
        return self

    def _shade_decisions(self) -> None:
        """Shade each interval in the colour of its class, and draw a band with the class name along the top."""
        thresholds, codes = self._drawn()
        edges = np.clip(np.concatenate([[-np.inf], thresholds, [np.inf]]), self.grid[0], self.grid[-1])
        visible = self.grid[-1] - self.grid[0]
        last_narrow = -np.inf
        for left, right, code in zip(edges[:-1], edges[1:], codes, strict=True):
            if left == right:
                continue
            style = class_style(int(code))
            self.ax_.axvspan(left, right, color=style.colour, alpha=0.10, linewidth=0, zorder=0)
            self.ax_.axvspan(left, right, ymin=0.935, zorder=3, linewidth=0).set(alpha=0.55, **style.area)
            middle = (left + right) / 2
            label = common.bounded(self.labels[code], _MOST_IN_BAND)
            if (right - left) / visible > 0.02 + 0.015 * len(label):
                self._write(middle, 0.9675, label, va="center")
            elif middle - last_narrow > _NAMES_APART * visible:  # upright, where it does not cover another one
                self._write(middle, 0.92, label, va="top", rotation=90)
                last_narrow = middle

    def _write(self, x: float, height: float, text: str, **style: Any) -> None:
        """Write a class name at x and a fraction of the height of the plot."""
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        place = self.ax_.get_xaxis_transform()
        self.ax_.text(
            x, height, text, transform=place, ha="center", fontsize=8, bbox=box, zorder=6, **style, **AS_WRITTEN
        )

    def _draw_levels(self, levels: Levels) -> None:
        """Draw the shares of the levels; those of rows at levels that favour another class are dark."""
        self.threshold_lines_: list[Any] = []
        labelled = self.points is None or self.targets is not None
        self.lines_ = draw_shares(self.ax_, levels, labelled)
        if self.points is not None and self.targets is not None:
            dark = {"color": BLACK, "alpha": 0.45}
            for code, bars in enumerate(self.lines_):
                for bar in (bar for bar, own in zip(bars, levels.codes, strict=True) if own != code):
                    self.ax_.bar(bar.get_x(), bar.get_height(), bar.get_width(), align="edge", **dark)
            self._name_wrong(self.ax_.bar, [0], [0], **dark)
        name_levels(self.ax_, levels, 8, room=70)

    def _predicted(self) -> NDArray[np.int64]:
        """The numbers of the classes that the line favours at the rows."""
        assert self.points is not None
        found = self.codes[np.searchsorted(self.thresholds, self.points, side="right")]
        return found if self.missing_code is None else np.where(np.isnan(self.points), self.missing_code, found)

    def _groups(self) -> list[tuple[Floats, Floats, ClassStyle]]:
        """Return, for each class, its points in its intervals, the others, and its style; without labels all, grey.

        Rows without a value have no point.
        """
        assert self.points is not None
        known = ~np.isnan(self.points)
        if self.targets is None:
            return [(self.points[known], self.points[:0], ClassStyle(GREY, "solid", "", "o"))]
        wrong = self.targets != self._predicted()
        return [
            (self.points[own & ~wrong], self.points[own & wrong], class_style(code))
            for code, own in ((code, known & (self.targets == code)) for code in range(len(self.labels)))
        ]

    def _draw_rug(self) -> None:
        """Draw one line of ticks per class below the axis, with crosses for rows in intervals of another class."""
        groups = self._groups()
        step = min(_RUG_LINE, _MOST_OF_RUG / len(groups)) * self.heights.max()
        for row, (right, wrong, style) in enumerate(groups):
            level = -(row + 0.75) * step
            self.ax_.plot(right, np.full(len(right), level), "|", color=style.colour, markersize=8, alpha=0.6)
            self.ax_.plot(wrong, np.full(len(wrong), level), "x", color=BLACK, markersize=5, zorder=5)
        self._name_wrong(self.ax_.plot, [], [], "x", color=BLACK, markersize=5)
        self.ax_.axhline(0, color=GREY, linewidth=0.6)
        self._floor = -(len(groups) + 0.5) * step

    def _draw_histogram(self) -> None:
        """Draw one histogram per class on the scale of its density, with the part in other intervals in dark."""
        edges = np.linspace(self.grid[0], self.grid[-1], 61)
        dark = {"fill": True, "color": BLACK, "alpha": 0.55}
        factors = np.ones(len(self.labels)) if self.priors is None else self.priors
        for (right, wrong, style), prior in zip(self._groups(), factors, strict=False):
            scale = prior / ((len(right) + len(wrong)) * (edges[1] - edges[0]) or 1)
            both = np.histogram(np.concatenate([right, wrong]), edges)[0] * scale
            self.ax_.stairs(both, edges, fill=True, alpha=0.3, **style.area)
            self.ax_.stairs(np.histogram(wrong, edges)[0] * scale, edges, **dark)
        self._name_wrong(self.ax_.stairs, [0], [0, 0], **dark)

    def _name_wrong(self, draw: Any, *nothing: Any, **style: Any) -> None:
        """Add the number of rows in other intervals to the legend, by drawing an empty artist with that label."""
        if self.targets is not None:
            where = "in an interval" if self.levels is None else "at a level"
            name = "misclassified" if self.decides else f"{where} of another class"
            wrong = int(np.sum(self.targets != self._predicted())) if self.levels is None else self.levels.n_wrong
            draw(*nothing, **style, label=f"{name} ({wrong} of {len(self.targets)})")

    def _draw_densities(self) -> None:
        self.lines_ = []
        for code, height in enumerate(self.heights):
            style = class_style(code)
            self.lines_ += self.ax_.plot(
                self.grid, height, color=style.colour, linestyle=style.dashes, linewidth=2, zorder=4
            )

    def _draw_thresholds(self) -> None:
        drawn, _ = self._drawn()
        inside = (drawn > self.grid[0]) & (drawn < self.grid[-1])
        name = "threshold" if inside.sum() == 1 else "thresholds"
        if len(drawn) < len(self.thresholds):
            name = f"some of {len(self.thresholds)} thresholds"
        self.threshold_lines_ = [
            self.ax_.axvline(t, color=BLACK, linewidth=1, linestyle=":", label=name if k == 0 else None)
            for k, t in enumerate(drawn[inside])
        ]
        self._note_far_thresholds(int(np.sum(self.thresholds <= self.grid[0])), "left")
        self._note_far_thresholds(int(np.sum(self.thresholds >= self.grid[-1])), "right")

    def _drawn(self) -> tuple[Floats, NDArray[np.int64]]:
        """Return the thresholds to draw and the classes between them: all, or those of cells if there are very many."""
        if len(self.thresholds) <= _MOST_THRESHOLDS_DRAWN:
            return self.thresholds, self.codes
        edges = np.linspace(self.grid[0], self.grid[-1], _MOST_THRESHOLDS_DRAWN + 1)
        codes = self.codes[np.searchsorted(self.thresholds, (edges[:-1] + edges[1:]) / 2, side="right")]
        changes = np.flatnonzero(np.diff(codes)) + 1
        return edges[changes], codes[np.concatenate([[0], changes])]

    def _note_far_thresholds(self, count: int, side: Literal["left", "right"]) -> None:
        """Write at one side how many thresholds lie outside the plot."""
        if not count:
            return
        words = f"{count} threshold{'s' if count > 1 else ''} outside the plot"
        arrow = f"← {words}" if side == "left" else f"{words} →"
        style = {"transform": self.ax_.transAxes, "ha": side, "va": "center", "fontsize": 7, "color": GREY}
        self.ax_.text(0.01 if side == "left" else 0.99, 0.905, arrow, **style)

    def _note_missing(self) -> None:
        """Write what the line says of rows where its only column is missing."""
        if self.missing_code is None:
            return
        n = None if self.points is None else int(np.isnan(self.points).sum())
        rows = "" if n is None else f" ({n:,} row{'s'[: n != 1]})"
        words = f"where missing{rows}: {common.bounded(self.labels[self.missing_code], _MOST_IN_BAND)}"
        style = {"transform": self.ax_.transAxes, "ha": "right", "va": "center", "fontsize": 7, "color": BLACK}
        self.ax_.text(0.99, 0.86, words, **style, **AS_WRITTEN)

    def _axis_labels(self) -> tuple[str, str]:
        """Return what is along the line, and what the heights are."""
        across = "projection z = x · v"
        if self.scale is not None and self.scale.kind != "sum" and self.scale.sign > 0:
            across = common.bounded(self.scale.name)
        if self.levels is not None:
            of_all = self.points is not None and self.targets is None
            note = f"\n{self.levels.note}" if self.levels.note else ""
            return f"{across}{note}", "share of the rows" if of_all else "share of the rows of a class"
        return across, "density" if self.priors is None else "prior × density"

    def _finish(self, title: str | None) -> None:
        """Set the limits, leaving room for the band at the top, and add axis labels, title and legend."""
        highest = max(self.heights.max(), self.ax_.dataLim.y1)
        self.ax_.set_ylim(self._floor, 1.2 * highest)
        self.ax_.set_yticks([t for t in self.ax_.get_yticks() if 0 <= t < 1.1 * highest])
        if self.scale is not None:
            show_scale(self.ax_.xaxis, self.scale)
        across, up = self._axis_labels()
        self.ax_.set_xlabel(across, **AS_WRITTEN)
        self.ax_.set_ylabel(up)
        handles, names = common.in_legend(self.lines_, self.labels if len(self.lines_) > 1 else ["all rows"])
        others, texts = self.ax_.get_legend_handles_labels()
        handles, names = handles + others, names + texts
        short = sum(map(len, names)) <= _MOST_IN_LINE * -(-len(names) // _MOST_ENTRIES)
        n_lines = common.legend_above(self.ax_, handles, names, _MOST_ENTRIES if short else 2, handlelength=2.6)
        if title:
            self.ax_.set_title(title, pad=8 + 14 * n_lines, **AS_WRITTEN)  # above the legend
        self.ax_.spines[["top", "right"]].set_visible(False)


def _density_factors(model: Any, line: Line) -> Floats | None:
    """Return the factors that make the densities cross near the thresholds: the priors, shape (n_classes,).

    None if they are equal, or if the line does not decide alone.
    """
    if model.priors is None or not decides_alone(model):
        return None
    totals = line.counts.sum(axis=0)  # the weights of the training rows
    if len(line.missing_counts):
        totals = totals + line.missing_counts
    priors = prior_shares(model.priors, model.classes_, totals)
    return priors / priors.sum() if np.ptp(priors) > 0 else None
