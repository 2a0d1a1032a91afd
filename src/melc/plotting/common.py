"""What the displays share: colours, axes, the model and its rows, names, and several lines one below the other."""

import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from melc._sklearn import check_no_masks
from melc.arrays import Floats
from melc.base import projections
from melc.data.frames import is_frame
from melc.fit.intake import check_no_infinity, coded_rows
from melc.model.html import CLASS_COLOURS
from melc.model.line import Line, decides_alone
from melc.model.names import by_contribution, feature_names_of, line_name, terms_of
from melc.model.places import name_in_sum
from melc.model.units import fitted_model, folds, nameless, without_search

BLUE, ORANGE, BLACK, GREY = *CLASS_COLOURS[:2], "#000000", "#6E6E6E"
# How lines are broken, areas hatched and points marked, so that classes can be told apart without colours.
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.6)), (0, (1, 1.2)), (0, (5, 1.4, 1, 1.4)))
_HATCHES = ("", "////", "....", "xxxx")
_MARKERS = ("o", "^", "s", "D")
# Most classes that a legend names.
_MOST_IN_LEGEND = 12

# Options of a text that is drawn as it is, dollar signs included, which would begin a formula.
AS_WRITTEN = {"parse_math": False}

# Most lines in one figure: more would take minutes, and gigabytes.
_MOST_PANELS = 50
# Share of the rows that may lie outside a plot or histogram, at either end.
ROWS_LEFT_OUT = 0.005
# Features named in a title, and the most characters of their names and of the names of classes, and of lines.
_NAMED_IN_TITLE, NAME_LENGTH, LINE_NAME_LENGTH = 2, 22, 48
# Longer titles are broken after the first feature.
_TITLE_LENGTH = 44


@dataclass(frozen=True)
class ClassStyle:
    """How a class is drawn."""

    colour: str
    dashes: Any
    hatch: str
    marker: str

    @property
    def area(self) -> dict[str, Any]:
        """Options of an area of the class."""
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": "white"}


def class_style(code: int) -> ClassStyle:
    """Return the style of the class of a number. The first forty classes have different ones."""
    kind = (code + code // len(CLASS_COLOURS)) % len(_DASHES)
    return ClassStyle(CLASS_COLOURS[code % len(CLASS_COLOURS)], _DASHES[kind], _HATCHES[kind], _MARKERS[kind])


def in_legend(handles: list[Any], names: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Return handles and names of classes for a legend: all of them, or the first and how many more there are."""
    if len(names) <= _MOST_IN_LEGEND:
        return handles, list(names)
    from matplotlib.lines import Line2D

    nothing, hidden = Line2D([], [], linestyle="none"), len(names) - _MOST_IN_LEGEND
    return [*handles[:_MOST_IN_LEGEND], nothing], [*names[:_MOST_IN_LEGEND], f"and {hidden} more classes"]


def legend_columns(n_entries: int, most: int) -> int:
    """Return a number of columns, at most ``most``, with which the rows of a legend are about equally long."""
    n_rows = -(-n_entries // most)
    return -(-n_entries // n_rows)


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``."""
    return _matplotlib("pyplot")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of the given size in inches. pyplot does not keep it, so it need not be closed."""
    return _matplotlib("figure").Figure(figsize=(width, height), layout="constrained")


def _matplotlib(module: str) -> Any:
    """Return a module of matplotlib. It is imported only when something is drawn, so that the rest works without it."""
    try:
        return import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'melc[plot]'") from error


def is_figure(ax: Any) -> bool:
    """Return whether a display has a figure for itself: ``ax`` is None, which stands for a new one, or a figure."""
    return ax is None or hasattr(ax, "subplots")


def axes(ax: Any) -> tuple[Any, Any]:
    """Return ``ax``, or the only axes of the figure ``ax``, or of a new one if it is None; and its figure."""
    if is_figure(ax):
        ax = (pyplot().figure(layout="constrained") if ax is None else ax).subplots()
    return ax, ax.figure


def finish_bars(ax: Any, names: list[str], title: str | None, *, pad: float | None = None) -> None:
    """Write names beside the rows of a plot of horizontal bars, 0, 1, …, and add a grid and the title."""
    ax.set_yticks(range(len(names)), names, fontsize=8, **AS_WRITTEN)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if title:
        ax.set_title(title, pad=pad, **AS_WRITTEN)


def legend_above(ax: Any, handles: list[Any], names: list[str], most: int, **style: Any) -> int:
    """Draw a legend above a plot, where it covers nothing, with at most so many columns; return its number of lines."""
    columns = legend_columns(len(names), most)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.99), "ncols": columns}
    with_names_as_written(ax.legend(handles, names, **place, frameon=False, fontsize=8, columnspacing=1.4, **style))
    return -(-len(names) // columns)


def with_names_as_written(legend: Any) -> Any:
    """Return a legend whose entries are drawn as they are, dollar signs included."""
    for text in legend.get_texts():
        text.set(**AS_WRITTEN)
    return legend


def unwrapped(estimator: Any, X: Any = None, y: Any = None, feature_names: Any = None) -> tuple[Any, Any, list[str]]:
    """Return the fitted model in an estimator, ``X`` as the model takes it, and the names of its columns.

    Scalers in a pipeline become part of the weights. If it has other steps, the model is that of its last step, and
    ``X`` and the names are what the steps before return. Without ``X`` there must be no labels ``y`` either.
    """
    estimator = without_search(estimator)
    if isinstance(estimator, Pipeline) and not folds(estimator):
        before = estimator[:-1]
        if feature_names is None:
            with suppress(AttributeError, ValueError):  # a step without output names
                feature_names = before.get_feature_names_out()
        return unwrapped(estimator[-1], None if X is None else before.transform(X), y, feature_names)
    model = fitted_model(estimator)
    if X is None and y is not None:
        raise ValueError("y was given without X; pass the rows X that the labels belong to.")
    return model, X, feature_names_of(model, feature_names)


def projected(model: Any, X: Any, y: Any) -> tuple[Floats | None, NDArray[np.int64] | None]:
    """Return the projections of rows on all lines, shape (n_rows, n_lines), and the numbers of their classes.

    Lines that read codes have these (:func:`melc.base.projections`). None for what is None.
    """
    if X is None:
        return None, None
    coded = coded_rows(model, X)
    return projections(model, coded), class_codes(model, y, coded.shape[0])


def quantities_of(model: Any, X: Any) -> Any:
    """Return the numbers that lines of several columns read, shape (n_rows, n_columns); sparse rows stay sparse."""
    coded = coded_rows(model, X)
    check_no_infinity(coded)
    return coded if issparse(coded) else model.columns_.quantities(coded, model.feature_mean_)


def plain_rows(model: Any, X: Any) -> tuple[Any, Any]:
    """Return a model and rows of shape (n_rows, n_columns) that it takes: a frame, or a checked matrix.

    The model of a matrix has no names of columns, so that it does not warn that the matrix has none.
    """
    check_no_masks(X)
    if is_frame(X):
        return model, X
    checks: dict[str, Any] = {"accept_sparse": ["csr", "csc"], "dtype": [np.float64, np.float32]}
    rows = validate_data(model, X, reset=False, ensure_all_finite=False, **checks)
    check_no_infinity(rows)
    return nameless(model), rows


def class_codes(model: Any, y: Any, n_rows: int) -> NDArray[np.int64] | None:
    """Return the labels as numbers of classes, shape (n_rows,); None without any."""
    if y is None:
        return None
    check_no_masks(y=y)
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise ValueError(f"y has shape {y.shape}, but X has {n_rows} rows; pass one label per row.")
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()[0]!r}, which is not one of the model's classes {model.classes_.tolist()}."
        )
    return np.searchsorted(model.classes_, y)


def bounded(name: Any, most: int = 40) -> str:
    """Return the name of a class, or another one, cut in the middle if it is too long to be drawn."""
    return shortened([str(name)], most)[0]


def class_names(model: Any) -> list[str]:
    """Return the names of the classes, cut in the middle if they are too long to be drawn."""
    return [bounded(label) for label in model.classes_]


def on_one_line(name: str) -> str:
    """Return a name with line breaks, control characters and marks of direction escaped."""
    return "".join(c if _is_drawn(c) else c.encode("unicode_escape").decode() for c in name)


def _is_drawn(character: str) -> bool:
    """Whether a character has a shape or a width; Python counts spaces other than the plain one as not printable."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def shortened(names: list[str], most: int = 32) -> list[str]:
    """Return the names, cut in the middle to about ``most`` characters so that those which differ still do."""
    # The cut is as near to the middle as the differences allow; where they allow none, cut names are numbered.
    for head in sorted(range(most), key=lambda head: abs(2 * head + 1 - most)):
        cut = [on_one_line(_cut(name, head, most)) for name in names]
        if len(set(cut)) == len(set(names)):
            return cut
    cut = [on_one_line(_cut(name, most // 2, most)) for name in names]
    return [
        f"{short} ({k})" if len(name) > most else short
        for k, (name, short) in enumerate(zip(names, cut, strict=True), 1)
    ]


def _cut(name: str, head: int, most: int) -> str:
    return name if len(name) <= most else name[:head] + "…" + name[len(name) - (most - 1 - head) :]


@dataclass(eq=False)
class LinePanels:
    """Plots of several lines, one below the other.

    Displays of a single line return this object if the model has several lines and you did not choose one.

    Parameters
    ----------
    displays : list of displays
        One for each line, in the order of ``lines_``. Minor lines are not among them.
    headings : list of str
        Their titles.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_lines,)
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
    ('LinePanels', 3)
    """

    displays: list[Any] = field(repr=False)
    headings: list[str] = field(repr=False)

    def plot(self, ax: Any = None, *, title: str | None = None, **options: Any) -> "LinePanels":
        """Plot on an array of axes, in an empty figure, or in a new one if it is None, and return the panels.

        ``options`` are those of the displays.
        """
        # As many inches as the names of features need, or the densities and runs.
        heights = [1.1 + 0.28 * len(display.names) if hasattr(display, "names") else 3.9 for display in self.displays]
        self.axes_ = panel_axes(ax, len(heights), (6.4, sum(heights)), height_ratios=heights)
        for display, axes, heading in zip(self.displays, self.axes_, self.headings, strict=True):
            display.plot(axes, title=heading, **options)
            axes.title.set_fontsize(9)
        self.figure_ = self.axes_[0].figure
        if title:
            self.figure_.suptitle(title, **AS_WRITTEN)
        return self


def plotted(displays: list[Any], headings: list[str], ax: Any, title: str | None, **options: Any) -> Any:
    """Plot a single display, or several as panels, and return it, or the panels."""
    shown = displays[0] if len(displays) == 1 else LinePanels(displays, headings)
    return shown.plot(ax=ax, title=title, **options)


def panel_axes(ax: Any, n: int, size: tuple[float, float], columns: int = 1, **options: Any) -> NDArray[Any]:
    """Return n axes: those given as an array, or made in the figure ``ax``, or in a new one of the given size."""
    if is_figure(ax):
        figure = pyplot().figure(figsize=size, layout="constrained") if ax is None else ax
        made = figure.subplots(-(-n // columns), columns, squeeze=False, **options).ravel()
        for unused in made[n:]:
            figure.delaxes(unused)
        return np.asarray(made[:n])
    given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(given) != n:
        raise ValueError(
            f"{n} lines are shown, but ax has {len(given)} axes: pass one for each, or an empty figure, or show fewer "
            "lines."
        )
    return given


def chosen(minor: Sequence[Any], number: int | None) -> list[int]:
    """Return the number of the chosen line in a list, or those of all that are not minor, if they fit in a figure.

    ``minor`` says of each line whether it is. If all are minor, they are returned.
    """
    if number is not None:
        return [checked_line(number, len(minor))]
    numbers = [k for k, each in enumerate(minor, start=1) if not each or all(minor)]
    if len(numbers) > _MOST_PANELS:
        raise ValueError(
            f"There are {len(numbers)} lines, and at most {_MOST_PANELS} are plotted together; set line to the number "
            f"of one, from 1 to {len(minor)}."
        )
    return numbers


def checked_line(number: int, n_lines: int) -> int:
    """Return the number of a line; raise ``ValueError`` if there is none."""
    if number not in range(1, n_lines + 1):
        raise ValueError(f"line={number!r}, but there are the lines 1 to {n_lines}.")
    return number


def scale_of(model: Any) -> str:
    """Return what the values of the curves are: with a single line, they have the intercept."""
    return "log-odds" if decides_alone(model) else "adds to the log-odds"


def name_of(model: Any, number: int) -> str:
    """Return the number of a line, and the class that it was found for, if it was found for one."""
    return bounded(line_name(model, number - 1), LINE_NAME_LENGTH)


def title_of(model: Any, number: int, names: dict[int, str]) -> str:
    """Return the only column or the sum of several, in two lines of text if it is long, the number and the importance.

    ``names`` are those of :func:`short_names`.
    """
    line = model.lines_[number - 1]
    summed = _sum_of(model, line, names)
    return f"{summed}\n{name_of(model, number)}, importance {line.importance:.2g}"


def _sum_of(model: Any, line: Line, names: dict[int, str]) -> str:
    """Return what the places on a line are: the values of its only column, or a sum."""
    if len(line.features) == 1 and line.direction.sum() > 0:
        return names[int(line.features[0])]
    in_sum = {j: name_in_sum(model.columns_, j, name) for j, name in names.items()}
    terms = terms_of(line, in_sum, _NAMED_IN_TITLE, 2)
    summed = " ".join(terms)
    return f"z = {summed}" if len(summed) <= _TITLE_LENGTH else "\n".join([f"z = {terms[0]}", " ".join(terms[1:])])


def short_names(lines: Sequence[Line], names: list[str]) -> dict[int, str]:
    """Return names of the columns that are named in titles, cut so that those which differ still do."""
    named = sorted({j for line in lines for j in by_contribution(line)[: _NAMED_IN_TITLE + 1]})
    return dict(zip(named, shortened([names[j] for j in named], NAME_LENGTH), strict=True))
