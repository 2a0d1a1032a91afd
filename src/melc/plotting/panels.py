"""The lines that a display shows, their names, and displays of several lines one below the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.model.line import Line, sides_of
from melc.model.names import by_contribution, terms_of
from melc.plotting.common import AS_WRITTEN, bounded, is_figure, pyplot, shortened

# Most lines in one figure: more would take minutes, and gigabytes.
_MOST_PANELS = 50
# Features named in a title, and the most characters of their names and of the names of classes.
_MOST_NAMED, NAME_LENGTH = 2, 22
# Longer titles are broken after the first feature.
_TITLE_LENGTH = 44


@dataclass(eq=False)
class LinePanels:
    """The same display of several lines, one below the other.

    The displays of a single line return it if a model has several lines and none was chosen.

    Parameters
    ----------
    displays : list of displays
        One for each line, in the order of ``lines_``.
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


def lines_of(model: Any, class_label: Any) -> list[tuple[int, Line]]:
    """Return the lines of a class, or of all, with their numbers from 1, the most important first."""
    return sorted(numbered_lines(model, class_label), key=lambda numbered: -numbered[1].importance)


def numbered_lines(model: Any, class_label: Any = None) -> list[tuple[int, Line]]:
    """Return the lines of a class, or of all, with their numbers from 1. Of two classes, both have all lines."""
    numbered = list(enumerate(model.lines_, start=1))
    if class_label is None:
        return numbered
    known = model.classes_.tolist()
    if class_label not in known:
        raise ValueError(f"class_label={class_label!r} is not a class of the model; choose one of {known}.")
    two, index = len(known) == 2, known.index(class_label)
    return [(k, line) for k, line in numbered if two or line.class_index == index]


def chosen(numbered: list[tuple[int, Any]], number: int | None) -> list[tuple[int, Any]]:
    """Return the line of a number, or all of them if it is None and they are not too many for a figure."""
    if number is not None:
        found = [(k, line) for k, line in numbered if k == number]
        if not found:
            raise ValueError(f"line={number!r}, but there are the lines {numbered[0][0]} to {numbered[-1][0]}.")
        return found
    if len(numbered) > _MOST_PANELS:
        raise ValueError(
            f"There are {len(numbered)} lines, and at most {_MOST_PANELS} are plotted together; set line to the number "
            f"of one, from {numbered[0][0]} to {numbered[-1][0]}."
        )
    return numbered


def is_alone(model: Any, line: Line) -> bool:
    """Return whether a line is the only one of its class, so that its thresholds are where the decision changes."""
    return sum(other.class_index == line.class_index for other in model.lines_) == 1


def scale_of(model: Any, line: Line) -> str:
    """Return what the values of a line's curve are."""
    return "log-odds" if is_alone(model, line) else "adds to the log-odds"


def names_of_sides(model: Any, line: Line) -> tuple[str, str]:
    """Return the names of the two sides of a line, cut if they are too long to be drawn."""
    others, mine = sides_of(model, line)
    return bounded(others), bounded(mine)


def name_of(model: Any, number: int, line: Line) -> str:
    """Return the number of a line, and its class if there are more than two."""
    return f"line {number}{owner_of(model.classes_, line.class_index)}"


def owner_of(classes: NDArray[Any], index: int) -> str:
    """Return the class of a line in brackets, if there are more than two classes."""
    return f" ({shortened([str(classes[index])], NAME_LENGTH)[0]} against the rest)" if len(classes) > 2 else ""


def title_of(model: Any, number: int, line: Line, names: dict[int, str]) -> str:
    """Return the sum of the features, in several lines of text if it is long, the line's number and its importance."""
    terms = terms_of(line, names, _MOST_NAMED, 2)
    summed = " ".join(terms)
    if len(summed) > _TITLE_LENGTH:
        summed = "\n".join([terms[0], " ".join(terms[1:])])
    return f"z = {summed}\n{name_of(model, number, line)}, importance {line.importance:.2g}"


def short_names(lines: Sequence[Line], names: list[str]) -> dict[int, str]:
    """Return names of the features that are named in titles, cut so that those which differ still do."""
    named = sorted({j for line in lines for j in by_contribution(line)[: _MOST_NAMED + 1]})
    return dict(zip(named, shortened([names[j] for j in named], NAME_LENGTH), strict=True))
