"""What the displays share: colours, axes, and the parts of a fitted model."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

BLUE, ORANGE, BLACK, GREY = "#0072B2", "#E69F00", "#000000", "#6E6E6E"
CLASS_COLOURS = (BLUE, ORANGE)
CLASS_LINES: tuple[Any, Any] = ("solid", (0, (5, 1.6)))
CLASS_HATCHES = ("", "////")


def pyplot() -> Any:
    """The one door to matplotlib."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'melc[plot]'") from error
    return plt


def axes(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    return pyplot().subplots(layout="constrained")[1] if ax is None else ax


def final_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The model itself, and X as the steps before it hand it over."""
    if isinstance(estimator, Pipeline):
        model = estimator[-1]
        check_is_fitted(model)
        return model, X if X is None or len(estimator) == 1 else estimator[:-1].transform(X)
    check_is_fitted(estimator)
    return estimator, X


def projection_index(model: Any, class_label: Any) -> int:
    """Which of the model's projections belongs to a class."""
    if len(model.decisions_) == 1:
        return 0
    known = list(model.classes_)
    if class_label is None:
        raise ValueError(f"The model has one projection a class; choose class_label out of {known}.")
    if class_label not in known:
        raise ValueError(f"class_label={class_label!r} is none of the model's classes {known}.")
    return known.index(class_label)


def side_labels(model: Any, index: int) -> tuple[str, str]:
    """What the two densities of a projection are called."""
    if len(model.decisions_) == 1:
        return str(model.classes_[0]), str(model.classes_[1])
    return "rest", str(model.classes_[index])


def checked_rows(model: Any, X: Any) -> Any:
    return validate_data(model, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
