"""Colours, axes and access to a fitted model, shared by the displays."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from melc.arrays import Floats
from melc.model.line import Line
from melc.model.names import feature_names_of
from melc.model.units import fitted_model, folds, without_search

BLUE, ORANGE, BLACK, GREY = "#0072B2", "#E69F00", "#000000", "#6E6E6E"
CLASS_COLOURS = (BLUE, ORANGE)
CLASS_LINES: tuple[Any, Any] = ("solid", (0, (5, 1.6)))
CLASS_HATCHES = ("", "////")

# Options of a text that is drawn as it is, dollar signs included, which would begin a formula.
AS_WRITTEN = {"parse_math": False}


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


def axes(ax: Any) -> Any:
    """Return ``ax``, or the only axes of the figure ``ax``, or of a new figure if it is None."""
    if ax is None:
        return pyplot().subplots(layout="constrained")[1]
    return ax.subplots() if is_figure(ax) else ax


def finish_bars(ax: Any, names: list[str], title: str | None, *, pad: float | None = None) -> None:
    """Write names beside the rows of a plot of horizontal bars, 0, 1, …, and add a grid and the title."""
    ax.set_yticks(range(len(names)), names, fontsize=8, **AS_WRITTEN)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if title:
        ax.set_title(title, pad=pad, **AS_WRITTEN)


def with_names_as_written(legend: Any) -> Any:
    """Return a legend whose entries are drawn as they are, dollar signs included."""
    for text in legend.get_texts():
        text.set(**AS_WRITTEN)
    return legend


def final_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the fitted model in an estimator and ``X`` as the features of this model.

    Scalers in a pipeline become part of the weights. If it has other steps, the model is that of its last step, and
    ``X`` is transformed by the steps before.
    """
    estimator = without_search(estimator)
    if isinstance(estimator, Pipeline) and not folds(estimator):
        return final_step(estimator[-1], None if X is None else estimator[:-1].transform(X))
    return fitted_model(estimator), X


def feature_names_for(estimator: Any, model: Any, given: Any) -> list[str]:
    """Return the names given, else those that the earlier steps of the pipeline produce, else the model's."""
    estimator = without_search(estimator)
    if given is None and isinstance(estimator, Pipeline) and not folds(estimator):
        try:
            return [str(name) for name in estimator[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):  # a step without output names
            pass
    return feature_names_of(model, given)


def checked_rows(model: Any, X: Any, y: Any = None) -> Any:
    """Return ``X``, shape (n_rows, n_features), dense or sparse, after checking it against the fitted model.

    None without ``X``; then there must be no labels ``y`` either.
    """
    if X is None:
        if y is not None:
            raise ValueError("y was given without X; pass the rows X that the labels belong to.")
        return None
    return validate_data(model, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])


def projected(model: Any, line: Line, X: Any, y: Any) -> tuple[Floats | None, NDArray[np.int8] | None]:
    """Return the projections of checked rows on a line, shape (n_rows,), and their codes; None for what is None."""
    if X is None:
        return None, None
    return np.asarray(X @ line.direction, dtype=np.float64), class_codes(model, y, X.shape[0], line)


def class_codes(model: Any, y: Any, n_rows: int, line: Line) -> NDArray[np.int8] | None:
    """Return the labels as codes, shape (n_rows,): 1 for the class of the line, 0 for the others; None without any."""
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise ValueError(f"y has shape {y.shape}, but X has {n_rows} rows; pass one label per row.")
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()[0]!r}, which is not one of the model's classes {model.classes_.tolist()}."
        )
    return np.asarray(y == model.classes_[line.class_index], dtype=np.int8)


def bounded(label: Any) -> str:
    """Return the name of a class, cut in the middle if it is too long to be drawn."""
    return shortened([str(label)], 40)[0]


def on_one_line(name: str) -> str:
    """Return a name with line breaks, control characters and marks of direction escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


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
