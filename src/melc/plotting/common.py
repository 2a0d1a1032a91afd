"""Colours, axes and access to a fitted model, shared by the displays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from melc.model.names import feature_names_of
from melc.model.units import fitted_model, folds, is_additive, without_search

BLUE, ORANGE, BLACK, GREY = "#0072B2", "#E69F00", "#000000", "#6E6E6E"
CLASS_COLOURS = (BLUE, ORANGE)
CLASS_LINES: tuple[Any, Any] = ("solid", (0, (5, 1.6)))
CLASS_HATCHES = ("", "////")

# Options of a text that is drawn as it is, dollar signs included, which would begin a formula.
AS_WRITTEN = {"parse_math": False}


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``. The only place where it is imported, so that the rest works without it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'melc[plot]'") from error
    return plt


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of the given size in inches. pyplot does not keep it, so it need not be closed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'melc[plot]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def axes(ax: Any) -> Any:
    """Return ``ax``, or the axes of a new figure if it is None."""
    return pyplot().subplots(layout="constrained")[1] if ax is None else ax


def with_names_as_written(legend: Any) -> Any:
    """Return a legend whose entries are drawn as they are, dollar signs included."""
    for text in legend.get_texts():
        text.set(**AS_WRITTEN)
    return legend


def final_step(estimator: Any, X: Any, *, additive: bool | None = False) -> tuple[Any, Any]:
    """Return the fitted model in an estimator and ``X`` as the features of this model.

    Scalers in a pipeline become part of the weights. If it has other steps, the model is that of its last step, and
    ``X`` is transformed by the steps before. ``additive`` says which kind of model is expected; None means either.
    """
    estimator = without_search(estimator)
    if isinstance(estimator, Pipeline) and not folds(estimator):
        return final_step(estimator[-1], None if X is None else estimator[:-1].transform(X), additive=additive)
    model = fitted_model(estimator)
    if additive is False and is_additive(model):
        raise ValueError("An additive model has no single projection: plot it with LinesDisplay or PlaneDisplay.")
    if additive and not is_additive(model):
        raise ValueError(f"{type(model).__name__} has a projection and no lines: plot it with ProjectionDisplay.")
    return model, X


def feature_names_for(estimator: Any, model: Any, given: Any) -> list[str]:
    """Return the names given, else those that the earlier steps of the pipeline produce, else the model's."""
    estimator = without_search(estimator)
    if given is None and isinstance(estimator, Pipeline) and not folds(estimator):
        try:
            return [str(name) for name in estimator[:-1].get_feature_names_out()]
        except (AttributeError, ValueError):  # a step without output names
            pass
    return feature_names_of(model, given)


def projection_index(model: Any, class_label: Any) -> int:
    """Return the index of the projection of a class; 0 for a model of two classes."""
    if len(model.decisions_) == 1:
        return 0
    if class_label is None:
        known = model.classes_.tolist()
        raise ValueError(f"The model has one projection per class: set class_label to one of {known}.")
    return class_index_of(model, class_label)


def class_index_of(model: Any, class_label: Any) -> int:
    """Return the index of a class in ``classes_``."""
    known = model.classes_.tolist()
    if class_label not in known:
        raise ValueError(f"class_label={class_label!r} is not a class of the model; choose one of {known}.")
    return int(known.index(class_label))


def class_codes(model: Any, y: Any, n_rows: int, class_index: int) -> NDArray[np.int8]:
    """Return the labels as codes, shape (n_rows,): 1 for the class of the given index, 0 for the others."""
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise ValueError(f"y has shape {y.shape}, but X has {n_rows} rows; pass one label per row.")
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()[0]!r}, which is not one of the model's classes {model.classes_.tolist()}."
        )
    return np.asarray(y == model.classes_[class_index], dtype=np.int8)


def side_labels(model: Any, index: int) -> tuple[str, str]:
    """Return the names of the two densities of a projection; with more than two classes the first is "rest"."""
    if len(model.decisions_) == 1:
        return bounded(model.classes_[0]), bounded(model.classes_[1])
    return "rest", bounded(model.classes_[index])


def bounded(label: Any, most: int = 40) -> str:
    """Return the name of a class, cut in the middle if it is too long to be drawn."""
    name = str(label)
    return on_one_line(name if len(name) <= most else f"{name[: most // 2]}…{name[-most // 2 + 1 :]}")


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


def checked_rows(model: Any, X: Any) -> Any:
    """Return ``X``, shape (n_rows, n_features), dense or sparse, after checking it against the fitted model."""
    return validate_data(model, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
