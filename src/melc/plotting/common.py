"""Colours, axes and access to a fitted model, shared by the displays."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

BLUE, ORANGE, BLACK, GREY = "#0072B2", "#E69F00", "#000000", "#6E6E6E"
CLASS_COLOURS = (BLUE, ORANGE)
CLASS_LINES: tuple[Any, Any] = ("solid", (0, (5, 1.6)))
CLASS_HATCHES = ("", "////")


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


def names_as_they_are() -> Any:
    """Return a context in which dollar signs in texts are drawn and do not begin a formula."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'melc[plot]'") from error
    return rc_context({"text.parse_math": False})


def axes(ax: Any) -> Any:
    """Return ``ax``, or the axes of a new figure if it is None."""
    return pyplot().subplots(layout="constrained")[1] if ax is None else ax


def final_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline and ``X`` transformed by the steps before it; other estimators unchanged."""
    if isinstance(estimator, Pipeline):
        model = estimator[-1]
        check_is_fitted(model)
        return model, X if X is None or len(estimator) == 1 else estimator[:-1].transform(X)
    check_is_fitted(estimator)
    return estimator, X


def projection_index(model: Any, class_label: Any) -> int:
    """Return the index of the projection of a class; 0 for a model of two classes."""
    if len(model.decisions_) == 1:
        return 0
    known = list(model.classes_)
    if class_label is None:
        raise ValueError(f"The model has one projection per class: set class_label to one of {known}.")
    if class_label not in known:
        raise ValueError(f"class_label={class_label!r} is not a class of the model; choose one of {known}.")
    return known.index(class_label)


def side_labels(model: Any, index: int) -> tuple[str, str]:
    """Return the names of the two densities of a projection; with more than two classes the first is "rest"."""
    if len(model.decisions_) == 1:
        return _bounded(model.classes_[0]), _bounded(model.classes_[1])
    return "rest", _bounded(model.classes_[index])


def _bounded(label: Any, most: int = 40) -> str:
    """Return the name of a class, cut in the middle if it is too long to be drawn."""
    name = str(label)
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-most // 2 + 1 :]}"


def checked_rows(model: Any, X: Any) -> Any:
    """Return ``X``, shape (n_rows, n_features), dense or sparse, after checking it against the fitted model."""
    return validate_data(model, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
