"""Plot of the class densities along a projection."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.decision import Decision
from melc.model.density import Density
from melc.plotting.common import (
    AS_WRITTEN,
    BLACK,
    CLASS_COLOURS,
    CLASS_HATCHES,
    CLASS_LINES,
    GREY,
    axes,
    checked_rows,
    class_codes,
    final_step,
    projection_index,
    pyplot,
    shortened,
    side_labels,
    with_names_as_written,
)

_GRID_POINTS = 1001
# data="auto" draws one tick per row up to this many rows, and a histogram for more.
_MOST_RUG_TICKS = 1000
# More thresholds than this are not drawn one by one: they could not be told apart.
_MOST_THRESHOLDS = 200
# Probability mass of each density that may lie outside the plot, at either end.
_MASS_LEFT_OUT = 5e-4

# Most characters of a class name above the plot, and the least distance of upright names, as a share of the width.
_MOST_IN_BAND, _NAMES_APART = 24, 0.03
# Most projections in one figure: more would take minutes, and gigabytes.
_MOST_PANELS = 50
# Most characters of a legend in one line.
_MOST_IN_LINE = 60

Data = Literal["auto", "rug", "histogram"]


@dataclass(eq=False)
class ProjectionDisplay:
    """Plot of the class densities along a projection, with the thresholds and the class of every interval.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Points along the projection, ascending.
    heights : ndarray of shape (2, n_points)
        Densities of the two classes on the grid. If the priors differ, each is multiplied by its prior, so that the
        curves cross at the thresholds.
    thresholds : ndarray of shape (n_thresholds,)
        Points where the predicted class changes.
    codes : ndarray of shape (n_thresholds + 1,)
        Class, 0 or 1, of each interval between the thresholds.
    labels : tuple of two str
        Names of the two classes. With more than two classes the first is "rest", all other classes together.
    priors : tuple of two float, default=(1.0, 1.0)
        Factors by which the densities were multiplied.
    points : ndarray of shape (n_rows,), default=None
        Projections of the rows to show.
    targets : ndarray of shape (n_rows,), default=None
        Class codes of these rows.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of two matplotlib Line2D
        Curves of the densities.
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
    codes: NDArray[np.int8] = field(repr=False)
    labels: tuple[str, str]
    priors: tuple[float, float] = (1.0, 1.0)
    points: Floats | None = field(default=None, repr=False)
    targets: NDArray[np.int8] | None = field(default=None, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        class_label: Any = None,
        data: Data = "auto",
        title: str | None = None,
        ax: Any = None,
    ) -> "ProjectionDisplay | ProjectionDisplays":
        """Plot a fitted model and, optionally, rows of data.

        Parameters
        ----------
        estimator : MELC, Pipeline or fitted search
            A fitted model, a pipeline whose last step is one, or a search for one.
        X : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
            Rows to show along the projection. The model does not store its training rows.
        y : array-like of shape (n_rows,), default=None
            Labels of these rows. Misclassified rows are marked.
        class_label : default=None
            Class whose projection is plotted. By default, with more than two classes, all projections are plotted, one
            below the other; with more than 50 classes one has to be chosen.
        data : {"auto", "rug", "histogram"}, default="auto"
            Show the rows as one tick each ("rug") or as a histogram; "auto" draws ticks for up to 1000 rows.
        title : str, default=None
            Title of the plot.
        ax : matplotlib Axes, or array of Axes, default=None
            Axes to plot on; an array with one for each projection if there are several. If None, a new figure is
            created.

        Returns
        -------
        display : ProjectionDisplay or ProjectionDisplays
            The latter if there are several projections.
        """
        model, X = final_step(estimator, X)
        if class_label is None and len(model.decisions_) > 1:
            if len(model.decisions_) > _MOST_PANELS:
                raise ValueError(
                    f"The model has {len(model.decisions_)} projections, and at most {_MOST_PANELS} are plotted "
                    f"together; set class_label to one class, such as {model.classes_.tolist()[0]!r:.60}."
                )
            displays = [cls._of_projection(model, index, X, y) for index in range(len(model.decisions_))]
            return ProjectionDisplays(displays).plot(ax=ax, data=data, title=title)
        display = cls._of_projection(model, projection_index(model, class_label), X, y)
        return display.plot(ax=ax, data=data, title=title)

    @classmethod
    def _of_projection(cls, model: Any, index: int, X: Any, y: Any) -> "ProjectionDisplay":
        """Return the display of one projection, not yet plotted."""
        decision = model.decisions_[index]
        points, targets = _project(model, index, X, y)
        grid = _grid(decision)
        priors = _priors(decision)
        heights = np.array([p * np.exp(f.log(grid)) for p, f in zip(priors, decision.densities, strict=True)])
        labels = side_labels(model, index)
        return cls(grid, heights, decision.thresholds, decision.codes, labels, priors, points, targets)

    def plot(self, ax: Any = None, *, data: Data = "auto", title: str | None = None) -> "ProjectionDisplay":
        """Plot on ``ax``, or on a new figure if it is None, and return the display."""
        _check_data_style(data)
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        self.ax_.set_xlim(self.grid[0], self.grid[-1])
        self._floor = 0.0
        self._shade_decisions()
        self._draw_densities()
        self._draw_thresholds()
        if self.points is not None:
            self._draw_data(data)
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
            self.ax_.axvspan(left, right, color=CLASS_COLOURS[code], alpha=0.10, linewidth=0, zorder=0)
            band = self.ax_.axvspan(left, right, ymin=0.935, zorder=3, linewidth=0)
            band.set(facecolor=CLASS_COLOURS[code], alpha=0.55, hatch=CLASS_HATCHES[code], edgecolor="white")
            middle = (left + right) / 2
            label = shortened([self.labels[code]], _MOST_IN_BAND)[0]
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

    def _draw_data(self, data: Data) -> None:
        assert self.points is not None
        if data == "auto":
            data = "rug" if len(self.points) <= _MOST_RUG_TICKS else "histogram"
        (self._draw_rug if data == "rug" else self._draw_histogram)()

    def _groups(self) -> list[tuple[Floats, Floats, Any, str]]:
        """Return (correct points, misclassified points, colour, hatching) per class; one grey group without labels."""
        assert self.points is not None
        if self.targets is None:
            return [(self.points, self.points[:0], GREY, "")]
        decided = self.codes[np.searchsorted(self.thresholds, self.points, side="right")]
        groups = []
        for code in (0, 1):
            mine, wrong = self.targets == code, self.targets != decided
            groups.append(
                (
                    self.points[mine & ~wrong],
                    self.points[mine & wrong],
                    CLASS_COLOURS[code],
                    CLASS_HATCHES[code],
                )
            )
        return groups

    def _draw_rug(self) -> None:
        """Draw one line of ticks per class below the axis, with crosses for misclassified rows."""
        groups = self._groups()
        step = 0.055 * self.heights.max()
        for row, (right, wrong, colour, _) in enumerate(groups):
            level = -(row + 0.75) * step
            self.ax_.plot(right, np.full(len(right), level), "|", color=colour, markersize=8, alpha=0.6)
            self.ax_.plot(wrong, np.full(len(wrong), level), "x", color=BLACK, markersize=5, zorder=5)
        self._name_misclassified(self.ax_.plot, [], [], "x", color=BLACK, markersize=5)
        self.ax_.axhline(0, color=GREY, linewidth=0.6)
        self._floor = -(len(groups) + 0.5) * step

    def _draw_histogram(self) -> None:
        """Draw one histogram per class on the scale of its density, with the misclassified part in dark."""
        assert self.points is not None
        edges = np.linspace(self.grid[0], self.grid[-1], 61)
        dark = {"fill": True, "color": BLACK, "alpha": 0.55}
        for (right, wrong, colour, hatch), prior in zip(self._groups(), self.priors, strict=False):
            scale = prior / ((len(right) + len(wrong)) * (edges[1] - edges[0]) or 1)
            both = np.histogram(np.concatenate([right, wrong]), edges)[0] * scale
            self.ax_.stairs(both, edges, fill=True, facecolor=colour, alpha=0.3, hatch=hatch, edgecolor="white")
            self.ax_.stairs(np.histogram(wrong, edges)[0] * scale, edges, **dark)
        self._name_misclassified(self.ax_.stairs, [0], [0, 0], **dark)

    def _name_misclassified(self, draw: Any, *nothing: Any, **style: Any) -> None:
        """Add the number of misclassified rows to the legend, by drawing an empty artist with that label."""
        if self.targets is not None:
            wrong = sum(len(wrong) for _, wrong, _, _ in self._groups())
            draw(*nothing, **style, label=f"misclassified ({wrong} of {len(self.targets)})")

    def _draw_densities(self) -> None:
        self.lines_ = [
            self.ax_.plot(
                self.grid,
                self.heights[code],
                color=CLASS_COLOURS[code],
                linestyle=CLASS_LINES[code],
                linewidth=2,
                zorder=4,
                label=self.labels[code],
            )[0]
            for code in (0, 1)
        ]

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

    def _drawn(self) -> tuple[Floats, NDArray[np.int8]]:
        """Return the thresholds to draw and the classes between them: all, or those of cells if there are very many."""
        if len(self.thresholds) <= _MOST_THRESHOLDS:
            return self.thresholds, self.codes
        edges = np.linspace(self.grid[0], self.grid[-1], _MOST_THRESHOLDS + 1)
        codes = self.codes[np.searchsorted(self.thresholds, (edges[:-1] + edges[1:]) / 2, side="right")]
        changes = np.flatnonzero(np.diff(codes)) + 1
        return edges[changes], codes[np.concatenate([[0], changes])]

    def _note_far_thresholds(self, count: int, side: Literal["left", "right"]) -> None:
        """Write at one side how many thresholds lie outside the plot."""
        if not count:
            return
        words = f"{count} threshold{'s' if count > 1 else ''} outside the plot"
        arrow = f"← {words}" if side == "left" else f"{words} →"
        self.ax_.text(
            0.01 if side == "left" else 0.99,
            0.905,
            arrow,
            transform=self.ax_.transAxes,
            ha=side,
            va="center",
            fontsize=7,
            color=GREY,
        )

    def _finish(self, title: str | None) -> None:
        """Set the limits, leaving room for the band at the top, and add axis labels, title and legend."""
        highest = max(self.heights.max(), self.ax_.dataLim.y1)
        self.ax_.set_ylim(self._floor, 1.2 * highest)
        self.ax_.set_yticks([t for t in self.ax_.get_yticks() if 0 <= t < 1.1 * highest])
        equal = self.priors[0] == self.priors[1]
        self.ax_.set(xlabel="projection z = x · v", ylabel="density" if equal else "prior × density")
        n_lines = 1 if sum(map(len, self.ax_.get_legend_handles_labels()[1])) <= _MOST_IN_LINE else 2
        if title:
            self.ax_.set_title(title, pad=8 + 14 * n_lines, **AS_WRITTEN)  # above the legend
        self.ax_.spines[["top", "right"]].set_visible(False)
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.99), "ncols": 4 // n_lines}
        legend = self.ax_.legend(**above, frameon=False, fontsize=8, handlelength=2.6, columnspacing=1.4)
        with_names_as_written(legend)


@dataclass(eq=False)
class ProjectionDisplays:
    """Plots of all projections of a model with more than two classes, one below the other.

    Create it with :meth:`ProjectionDisplay.from_estimator`.

    Parameters
    ----------
    displays : list of ProjectionDisplay
        One for each class against the rest, in the order of ``classes_``.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_classes,)
        Axes with the plots.
    figure_ : matplotlib Figure
        Figure that contains the axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import ProjectionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MELC(n_init=1, random_state=0).fit(X, y)
    >>> plots = ProjectionDisplay.from_estimator(model, X, y)
    >>> type(plots).__name__, len(plots.displays)
    ('ProjectionDisplays', 3)
    """

    displays: list[ProjectionDisplay]

    def plot(self, ax: Any = None, *, data: Data = "auto", title: str | None = None) -> "ProjectionDisplays":
        """Plot on an array of axes, or on a new figure if it is None, and return the displays."""
        n = len(self.displays)
        if ax is None:
            ax = pyplot().subplots(n, figsize=(6.4, 3.6 * n), layout="constrained")[1]
        self.axes_ = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(self.axes_) != n:
            raise ValueError(
                f"The model has {n} projections, but ax has {len(self.axes_)} axes: pass one for each, "
                "figure.subplots(n_classes), or set class_label to plot one projection."
            )
        for each, panel in zip(self.displays, self.axes_, strict=True):
            each.plot(panel, data=data, title=f"{each.labels[1]} against the rest")
        self.figure_ = self.axes_[0].figure
        if title:
            self.figure_.suptitle(title, **AS_WRITTEN)
        return self


def _project(model: Any, index: int, X: Any, y: Any) -> tuple[Floats, NDArray[np.int8]] | tuple[Floats | None, None]:
    """Return the projections z = Xv, shape (n_rows,), and the class codes of the rows; None for what was not given."""
    if X is None:
        if y is not None:
            raise ValueError("y was given without X; pass the rows X that the labels belong to.")
        return None, None
    points = np.asarray(checked_rows(model, X) @ model.coef_[index], dtype=np.float64)
    if y is None:
        return points, None
    return points, class_codes(model, y, len(points), 1 if len(model.decisions_) == 1 else index)


def _priors(decision: Decision) -> tuple[float, float]:
    """Return the factors that make the densities cross at the thresholds: the priors, or (1, 1) if they are equal."""
    if decision.log_prior_ratio == 0:
        return 1.0, 1.0
    second = 1 / (1 + np.exp(-decision.log_prior_ratio))
    return float(1 - second), float(second)


def _grid(decision: Decision) -> Floats:
    """Return the points of the plot: an interval with nearly all mass of both densities and the thresholds near it."""
    spans = [_span(density) for density in decision.densities]
    low, high = min(a for a, _ in spans), max(b for _, b in spans)
    margin = 0.1 * (high - low)
    near = decision.thresholds[(decision.thresholds > low - margin) & (decision.thresholds < high + margin)]
    pad = 0.03 * (high - low)
    low, high = min([low, *near - pad]), max([high, *near + pad])
    return np.linspace(low, high, _GRID_POINTS)


def _span(density: Density) -> tuple[float, float]:
    """Return the ends of an interval that contains all but ``_MASS_LEFT_OUT`` of the density at either end."""
    cumulative = np.cumsum(density.weights)
    first, last = np.searchsorted(cumulative, [_MASS_LEFT_OUT, 1 - _MASS_LEFT_OUT])
    last = min(int(last), len(density.support) - 1)
    reach = 3 * density.bandwidth
    return float(density.support[first]) - reach, float(density.support[last]) + reach


def _check_data_style(data: str) -> None:
    if data not in ("auto", "rug", "histogram"):
        raise ValueError(f"data must be 'auto', 'rug' or 'histogram'; got {data!r}.")
