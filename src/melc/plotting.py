"""Pictures of a fitted model, in the manner of scikit-learn's displays.

``from_estimator`` computes what is to be drawn, ``plot`` draws it and returns the display; the artists are
its attributes that end in an underscore. Colours are Okabe and Ito's, which the colour-blind can tell apart;
line styles and hatching carry the same information for a print in grey.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from melc.density import Decision, Density
from melc.names import feature_names_of
from melc.sums.base import Floats

BLUE, ORANGE, BLACK, GREY = "#0072B2", "#E69F00", "#000000", "#6E6E6E"
CLASS_COLOURS = (BLUE, ORANGE)
CLASS_LINES: tuple[Any, Any] = ("solid", (0, (5, 1.6)))
CLASS_HATCHES = ("", "////")

_GRID_POINTS = 1001
# Up to this many rows each gets a tick of its own; more are shown as a histogram.
_MOST_RUG_TICKS = 1000
# The picture spans all of the two densities but this much of their mass at either end.
_MASS_LEFT_OUT = 5e-4

Data = Literal["auto", "rug", "histogram"]


def _pyplot() -> Any:
    """The one door to matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'melc[plot]'") from error
    return plt


def _axes(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    return _pyplot().subplots(layout="constrained")[1] if ax is None else ax


@dataclass(eq=False)
class ProjectionDisplay:
    """The class densities along a projection, the thresholds, and the decision of every interval.

    It is recommended to use :meth:`from_estimator`.

    Attributes
    ----------
    grid, heights
        The curves: points along the projection, and the two densities there, shape (2, n). Densities are
        multiplied by the priors where these differ, so that they cross at the thresholds.
    thresholds, codes
        Where the decision changes, and the class, 0 or 1, of each interval in between.
    labels
        The names of the two classes. For one of several classes, the others are ``rest``.
    points, targets
        Projections of data and their class codes, if any were given.
    ax_, figure_, lines_, threshold_lines_
        The artists, once drawn.

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

    grid: Floats
    heights: Floats
    thresholds: Floats
    codes: NDArray[np.int8]
    labels: tuple[str, str]
    priors: tuple[float, float] = (1.0, 1.0)
    points: Floats | None = None
    targets: NDArray[np.int8] | None = None

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
    ) -> "ProjectionDisplay":
        """Draw a fitted model, with data or without.

        Parameters
        ----------
        estimator : MELC or a Pipeline that ends in one
        X : array-like, default=None
            Rows to show along the projection. The model keeps none of its own.
        y : array-like, default=None
            Their labels; the misclassified are marked.
        class_label : default=None
            Of several classes, the one whose projection is drawn; with two there is only one projection.
        data : {"auto", "rug", "histogram"}, default="auto"
            One tick a row, or a histogram; "auto" takes ticks up to 1000 rows.
        title : str, default=None
        ax : matplotlib axes, default=None
        """
        model, X = _final_step(estimator, X)
        index = _projection_index(model, class_label)
        decision = model.decisions_[index]
        points, targets = _project(model, index, X, y)
        grid = _grid(decision)
        priors = _priors(decision)
        heights = np.array([p * np.exp(f.log(grid)) for p, f in zip(priors, decision.densities, strict=True)])
        display = cls(
            grid,
            heights,
            decision.thresholds,
            decision.codes,
            _side_labels(model, index),
            priors,
            points,
            targets,
        )
        return display.plot(ax=ax, data=data, title=title)

    def plot(self, ax: Any = None, *, data: Data = "auto", title: str | None = None) -> "ProjectionDisplay":
        """Draw on ``ax``, or on a new figure."""
        _check_data_style(data)
        self.ax_ = _axes(ax)
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
        """A wash of the class's colour over each interval, and a named band along the top."""
        edges = np.clip(np.concatenate([[-np.inf], self.thresholds, [np.inf]]), self.grid[0], self.grid[-1])
        visible = self.grid[-1] - self.grid[0]
        for left, right, code in zip(edges[:-1], edges[1:], self.codes, strict=True):
            if left == right:
                continue
            self.ax_.axvspan(left, right, color=CLASS_COLOURS[code], alpha=0.10, linewidth=0, zorder=0)
            band = self.ax_.axvspan(left, right, ymin=0.935, zorder=3, linewidth=0)
            band.set(facecolor=CLASS_COLOURS[code], alpha=0.55, hatch=CLASS_HATCHES[code], edgecolor="white")
            share = (right - left) / visible
            if share > 0.02 + 0.015 * len(self.labels[code]):
                self._name_band((left + right) / 2, self.labels[code])

    def _name_band(self, middle: float, label: str) -> None:
        style = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        place = self.ax_.get_xaxis_transform()
        self.ax_.text(
            middle, 0.9675, label, transform=place, ha="center", va="center", fontsize=8, bbox=style, zorder=4
        )

    def _draw_data(self, data: Data) -> None:
        assert self.points is not None
        if data == "auto":
            data = "rug" if len(self.points) <= _MOST_RUG_TICKS else "histogram"
        (self._draw_rug if data == "rug" else self._draw_histogram)()

    def _groups(self) -> list[tuple[Floats, Floats, Any, str]]:
        """Right and wrong points of each class, with colour and hatching; unlabelled ones all right, grey."""
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
        """A row of ticks a class below the axis, the misclassified as crosses."""
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
        """A histogram a class on the scale of the densities, the misclassified part of it in dark."""
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
        """An entry for the legend, with the count; an artist that shows nothing carries it."""
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
        inside = (self.thresholds > self.grid[0]) & (self.thresholds < self.grid[-1])
        name = "threshold" if inside.sum() == 1 else "thresholds"
        self.threshold_lines_ = [
            self.ax_.axvline(t, color=BLACK, linewidth=1, linestyle=":", label=name if k == 0 else None)
            for k, t in enumerate(self.thresholds[inside])
        ]
        self._note_far_thresholds(int(np.sum(self.thresholds <= self.grid[0])), "left")
        self._note_far_thresholds(int(np.sum(self.thresholds >= self.grid[-1])), "right")

    def _note_far_thresholds(self, count: int, side: Literal["left", "right"]) -> None:
        if not count:
            return
        words = f"{count} threshold{'s' if count > 1 else ''} further out"
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
        """Limits that leave room for the band, and words on the axes."""
        highest = max(self.heights.max(), self.ax_.dataLim.y1)
        self.ax_.set_ylim(self._floor, 1.2 * highest)
        self.ax_.set_yticks([t for t in self.ax_.get_yticks() if 0 <= t < 1.1 * highest])
        equal = self.priors[0] == self.priors[1]
        self.ax_.set(xlabel="projection z = x · v", ylabel="density" if equal else "prior × density")
        if title:
            self.ax_.set_title(title, pad=22)  # above the legend
        self.ax_.spines[["top", "right"]].set_visible(False)
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.99), "ncols": 4}
        self.ax_.legend(**above, frameon=False, fontsize=8, handlelength=2.6, columnspacing=1.4)


@dataclass(eq=False)
class WeightsDisplay:
    """What each feature contributes to the projection, the strongest first.

    It is recommended to use :meth:`from_estimator`.

    Attributes
    ----------
    names, weights
        Features and their part in v, by falling size.
    scaled : bool
        Whether the weights are multiplied by the features' standard deviations, which makes features of
        different units comparable.
    n_hidden : int
        How many weaker features are not shown.
    ax_, figure_, bars_
        The artists, once drawn.

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

    names: list[str]
    weights: Floats
    scaled: bool = False
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
        """Draw the weights of a fitted model.

        Parameters
        ----------
        estimator : MELC or a Pipeline that ends in one
        X : array-like, default=None
            With data, every weight is multiplied by the standard deviation of its feature.
        class_label : default=None
            Of several classes, the one whose projection is drawn.
        feature_names : list of str, default=None
            Names to use where the model has seen none.
        max_features : int, default=15
            Most features to show.
        title : str, default=None
        ax : matplotlib axes, default=None
        """
        model, X = _final_step(estimator, X)
        names = _feature_names(estimator, model, feature_names)
        index = _projection_index(model, class_label)
        weights = np.asarray(model.coef_[index], dtype=np.float64)
        if X is not None:
            weights = weights * _standard_deviations(_checked_rows(model, X))
        order = np.argsort(-np.abs(weights), kind="stable")[:max_features]
        display = cls(
            [names[i] for i in order],
            weights[order],
            X is not None,
            len(weights) - len(order),
            _side_labels(model, index),
        )
        return display.plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "WeightsDisplay":
        """Draw on ``ax``, or on a new figure."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        raises = (self.weights >= 0).astype(int)
        self.bars_ = self.ax_.barh(
            np.arange(len(self.names)),
            self.weights,
            height=0.72,
            color=[CLASS_COLOURS[k] for k in raises],
            hatch=[CLASS_HATCHES[k] for k in raises],
            edgecolor="white",
        )
        self.ax_.set_yticks(np.arange(len(self.names)), [_shorten(name) for name in self.names], fontsize=8)
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color=BLACK, linewidth=0.8)
        self._finish(title)
        return self

    def _finish(self, title: str | None) -> None:
        what = "weight × standard deviation" if self.scaled else "weight in v"
        towards = [f"← {self.labels[0]}", f"{self.labels[1]} →"] if any(self.labels) else ["", ""]
        self.ax_.set_xlabel("     ".join(part for part in (towards[0], what, towards[1]) if part))
        self.ax_.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
        if title:
            self.ax_.set_title(title)
        if self.n_hidden:
            note = f"{self.n_hidden} weaker feature{'s' if self.n_hidden > 1 else ''} not shown"
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


@dataclass(eq=False)
class ConvergenceDisplay:
    """The divergence over the iterations of every start.

    It is recommended to use :meth:`from_estimator`.

    Attributes
    ----------
    histories : list of arrays
        The divergence after each iteration, one array a start.
    ax_, figure_, lines_
        The artists, once drawn.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from melc import MELC
    >>> from melc.plotting import ConvergenceDisplay
    >>> X, species = load_iris(return_X_y=True)
    >>> model = MELC(n_init=3, random_state=0).fit(X, species == 2)
    >>> len(ConvergenceDisplay.from_estimator(model).lines_)
    3
    """

    histories: list[Floats]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, class_label: Any = None, title: str | None = None, ax: Any = None
    ) -> "ConvergenceDisplay":
        """Draw the runs of a fitted model.

        Parameters
        ----------
        estimator : MELC or a Pipeline that ends in one
        class_label : default=None
            Of several classes, the one whose runs are drawn.
        title : str, default=None
        ax : matplotlib axes, default=None
        """
        model, _ = _final_step(estimator, None)
        runs = _runs(model, _projection_index(model, class_label))
        histories = [np.asarray(run.history or (run.divergence,), dtype=np.float64) for run in runs]
        return cls(histories).plot(ax=ax, title=title)

    def plot(self, ax: Any = None, *, title: str | None = None) -> "ConvergenceDisplay":
        """Draw on ``ax``, or on a new figure."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        best = int(np.argmax([history[-1] for history in self.histories]))
        self.lines_ = [self._draw(k, history, k == best) for k, history in enumerate(self.histories)]
        self.ax_.set(xlabel="iteration", ylabel="divergence D")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.ax_.set_xlim(left=0)
        self.ax_.spines[["top", "right"]].set_visible(False)
        if title:
            self.ax_.set_title(title)
        self.ax_.legend(frameon=False, fontsize=8, loc="lower right")
        return self

    def _draw(self, k: int, history: Floats, is_best: bool) -> Any:
        """One run, its end marked: the best in front and in colour, the others in grey behind."""
        n_others = len(self.histories) - 1
        first_other = 1 if np.argmax([h[-1] for h in self.histories]) == 0 else 0
        label = f"best start (D = {history[-1]:.4g})" if is_best else None
        if not is_best and k == first_other:
            label = f"{n_others} other start{'s' if n_others > 1 else ''}"
        iterations = np.arange(1, len(history) + 1)
        style = (
            {"color": BLUE, "linewidth": 2.2, "zorder": 4}
            if is_best
            else {"color": GREY, "linewidth": 1, "alpha": 0.7, "linestyle": "--"}
        )
        (line,) = self.ax_.plot(iterations, history, label=label, marker="o", markevery=[-1], markersize=5, **style)
        return line


def _final_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The model itself, and X as the steps before it hand it over."""
    if isinstance(estimator, Pipeline):
        model = estimator[-1]
        check_is_fitted(model)
        return model, X if X is None or len(estimator) == 1 else estimator[:-1].transform(X)
    check_is_fitted(estimator)
    return estimator, X


def _projection_index(model: Any, class_label: Any) -> int:
    """Which of the model's projections belongs to a class."""
    if len(model.decisions_) == 1:
        return 0
    known = list(model.classes_)
    if class_label is None:
        raise ValueError(f"The model has one projection a class; choose class_label out of {known}.")
    if class_label not in known:
        raise ValueError(f"class_label={class_label!r} is none of the model's classes {known}.")
    return known.index(class_label)


def _side_labels(model: Any, index: int) -> tuple[str, str]:
    """What the two densities of a projection are called."""
    if len(model.decisions_) == 1:
        return str(model.classes_[0]), str(model.classes_[1])
    return "rest", str(model.classes_[index])


def _project(model: Any, index: int, X: Any, y: Any) -> tuple[Floats, NDArray[np.int8]] | tuple[Floats | None, None]:
    """Projections of the rows along one direction, and their class codes if there are labels."""
    if X is None:
        if y is not None:
            raise ValueError("y was given without X: pass the rows that the labels belong to.")
        return None, None
    points = np.asarray(_checked_rows(model, X) @ model.coef_[index], dtype=np.float64)
    if y is None:
        return points, None
    return points, _codes(model, index, np.asarray(y), len(points))


def _codes(model: Any, index: int, y: NDArray[Any], n: int) -> NDArray[np.int8]:
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}, but X has {n} rows: pass one label a row.")
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(f"y holds {unknown[0]!r}, which is none of the classes {list(model.classes_)}.")
    positive = model.classes_[1] if len(model.decisions_) == 1 else model.classes_[index]
    return np.asarray(y == positive, dtype=np.int8)


def _checked_rows(model: Any, X: Any) -> Any:
    return validate_data(model, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])


def _standard_deviations(X: Any) -> Floats:
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X) if hasattr(X, "multiply") else np.square(X - mean)
    offset = mean**2 if hasattr(X, "multiply") else 0.0
    return np.sqrt(np.maximum(np.asarray(squares.mean(axis=0)).ravel() - offset, 0))


def _feature_names(estimator: Any, model: Any, given: Any) -> list[str]:
    """Names given, those that come out of the pipeline's earlier steps, or what the model calls them."""
    if given is None and isinstance(estimator, Pipeline) and len(estimator) > 1:
        try:
            return [str(name) for name in estimator[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):  # a step that does not name its output
            pass
    return feature_names_of(model, given)


def _runs(model: Any, index: int) -> Any:
    """The runs of one projection."""
    runs = getattr(model, "results_", None)
    if not runs:
        raise ValueError("The model holds no record of its runs (it was not fitted here but read from a file).")
    return runs[index] if isinstance(runs[0], (list, tuple)) else runs


def _priors(decision: Decision) -> tuple[float, float]:
    """Factors on the densities that make them cross at the thresholds; one where the priors are equal."""
    if decision.log_prior_ratio == 0:
        return 1.0, 1.0
    second = 1 / (1 + np.exp(-decision.log_prior_ratio))
    return float(1 - second), float(second)


def _grid(decision: Decision) -> Floats:
    """The stretch of the line worth seeing: nearly all of both densities, and thresholds close to it."""
    spans = [_span(density) for density in decision.densities]
    low, high = min(a for a, _ in spans), max(b for _, b in spans)
    margin = 0.1 * (high - low)
    near = decision.thresholds[(decision.thresholds > low - margin) & (decision.thresholds < high + margin)]
    pad = 0.03 * (high - low)
    low, high = min([low, *near - pad]), max([high, *near + pad])
    return np.linspace(low, high, _GRID_POINTS)


def _span(density: Density) -> tuple[float, float]:
    cumulative = np.cumsum(density.weights)
    first, last = np.searchsorted(cumulative, [_MASS_LEFT_OUT, 1 - _MASS_LEFT_OUT])
    last = min(int(last), len(density.support) - 1)
    reach = 3 * density.bandwidth
    return float(density.support[first]) - reach, float(density.support[last]) + reach


def _check_data_style(data: str) -> None:
    if data not in ("auto", "rug", "histogram"):
        raise ValueError(f"data={data!r} is not known; choose 'auto', 'rug' or 'histogram'.")


def _shorten(name: str, most: int = 32) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
