"""Write a fitted model as JSON and read it back. A file has a format name and a version and is checked when read."""

import json
from typing import Any

import numpy as np

from melc.additive import AdditiveMELC
from melc.base import GAMMA_RANGE
from melc.classifier import MELC
from melc.export.fields import (
    LARGEST_LOG_ODDS,
    class_labels,
    columns_in,
    columns_out,
    features_out,
    labels_out,
    line_out,
    lines_in,
    parameters_out,
    set_features,
    with_parameters,
)
from melc.export.files import encodable
from melc.export.reading import Reader, parse
from melc.model.units import fitted_model

MODEL_FORMAT, MODEL_VERSION = "melc-model", 1

# A model takes kilobytes, or a few megabytes with many features and classes. Larger texts are refused.
MOST_BYTES = 256 * 2**20
# Weights of all lines, zeros included: a short document must not ask for more memory than a long one takes.
_MOST_WEIGHTS = 2**25

_CLASSIFIERS: dict[str, type[MELC] | type[AdditiveMELC]] = {"MELC": MELC, "AdditiveMELC": AdditiveMELC}
_FIELDS = (
    "format",
    "version",
    "classifier",
    "parameters",
    "classes",
    "n_features",
    "feature_names",
    "feature_mean",
    "feature_spread",
    "columns",
    "intercepts",
    "lines",
)
# What only a MELC has: the search for its directions.
_SEARCH = ("divergence", "n_iter", "gamma")


def to_json(model: Any, *, indent: int | None = None) -> str:
    """Return the fitted model as JSON text.

    The text contains the parameters, the directions and curves of the lines, the training rows counted in their
    intervals, the means and standard deviations of the features, the levels of categories, and class densities for
    pictures. It has no rows, but the curves begin and end at the outermost projections of training rows, and may have
    knots at others; with a single feature, these are its values. Numbers are written in full precision, so that the
    model read back predicts exactly the same.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; for a search, the best estimator is
        used.
    indent : int, default=None
        Number of spaces per level of indentation. By default the text has a single line.

    Returns
    -------
    text : str

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import from_json, to_json
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> from_json(to_json(model)).predict([[0.2], [4.7]])
    array(['low', 'high'], dtype='<U4')
    """
    return encodable(json.dumps(to_document(model), indent=indent, allow_nan=False, ensure_ascii=False), "JSON")


def from_json(text: str | bytes, *, max_bytes: int = MOST_BYTES) -> MELC | AdditiveMELC:
    """Return the model written by :func:`to_json`.

    Safe for text from untrusted sources: nothing in it is executed. Files that ``melc fit`` has written are such texts.

    Parameters
    ----------
    text : str or bytes
        JSON text.
    max_bytes : int, default=2**28
        Longer texts are refused.

    Returns
    -------
    model : MELC or AdditiveMELC
        The fitted model, without the record of its runs (``results_``).

    Raises
    ------
    ValueError
        If anything in the text is wrong; the message says what and where.

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import from_json, to_json
    >>> model = MELC(n_init=1, random_state=0).fit(np.arange(8.0)[:, None], [0, 0, 1, 1, 1, 1, 0, 0])
    >>> copy = from_json(to_json(model))
    >>> bool(np.all(copy.thresholds_ == model.thresholds_))
    True
    """
    model: MELC | AdditiveMELC = from_document(parse(text, "melc model", max_bytes=max_bytes))
    return model


def to_document(model: Any) -> dict[str, Any]:
    """Return the fitted model as dictionaries, lists, strings and numbers."""
    model = fitted_model(model)
    return {
        "format": MODEL_FORMAT,
        "version": MODEL_VERSION,
        "classifier": next(name for name, kind in _CLASSIFIERS.items() if isinstance(model, kind)),
        "parameters": parameters_out(model),
        "classes": labels_out(model.classes_),
        **features_out(model),
        "columns": columns_out(model.columns_),
        "intercepts": model.intercepts_.tolist(),
        "lines": [line_out(line) for line in model.lines_],
        **(_search_out(model) if isinstance(model, MELC) else {}),
    }


def from_document(reader: Reader) -> Any:
    """Return the model in a parsed document, after checking every part of it."""
    format = reader.entries().get("format", Reader(None, "")).value
    if format != MODEL_FORMAT:
        raise ValueError(f"Not a melc model: its 'format' should be {MODEL_FORMAT!r}, found {format!r:.60}.")
    # Before the other keys are read: in a newer version they may differ.
    version = reader.fields(["version"], reader.value)["version"].integer(1, 2**31)
    if version > MODEL_VERSION:
        raise ValueError(
            f"The model has format version {version}, but this release of melc reads versions up to {MODEL_VERSION}. "
            "Upgrade melc to read it."
        )
    # Which fields there are depends on the classifier.
    kind = reader.fields(["classifier"], reader.value)["classifier"].choice(*_CLASSIFIERS)
    of_command_line = ["target", "reading"]
    fields = reader.fields(_FIELDS + _SEARCH if kind == "MELC" else _FIELDS, of_command_line)
    classes = class_labels(fields["classes"])
    n_features = fields["n_features"].integer(1, max(1, _MOST_WEIGHTS // max(1, len(fields["lines"].items()))))
    model = with_parameters(_CLASSIFIERS[kind], fields["parameters"], classes, n_features)
    set_features(model, fields, n_features)
    model.columns_ = columns_in(fields["columns"], model.n_features_in_)
    model.classes_ = classes
    _set_lines(model, fields)
    if isinstance(model, MELC):
        _set_search(model, fields)
    return model


def _set_lines(model: Any, fields: dict[str, Reader]) -> None:
    """Give a model its intercepts and lines."""
    n_classes = len(model.classes_)
    model.intercepts_ = fields["intercepts"].numbers(1 if n_classes == 2 else n_classes)
    if np.abs(model.intercepts_).max() > LARGEST_LOG_ODDS:
        fields["intercepts"].fail(f"numbers from {-LARGEST_LOG_ODDS:g} to {LARGEST_LOG_ODDS:g}")
    # Before the lines are read, which takes a millisecond for each.
    if isinstance(model, MELC) and len(fields["lines"].items()) not in (0, len(model.intercepts_)):
        fields["lines"].fail("a single line" if n_classes == 2 else f"{n_classes} lines, one for each class")
    model.lines_ = lines_in(fields["lines"], model)
    model.n_iter_ = len(model.lines_)


def _search_out(model: MELC) -> dict[str, Any]:
    divergence = np.atleast_1d(model.divergence_).tolist()
    return {"divergence": divergence, "n_iter": int(model.n_iter_), "gamma": float(model.gamma_)}


def _set_search(model: MELC, fields: dict[str, Reader]) -> None:
    """Give a model what is known of the search for its directions, except the record of its runs."""
    divergence = fields["divergence"].numbers(len(model.lines_))
    model.divergence_ = divergence if len(divergence) > 1 else float(divergence[0])
    model.n_iter_ = fields["n_iter"].integer(1, 2**31)
    model.gamma_ = fields["gamma"].number()
    if not GAMMA_RANGE[0] <= model.gamma_ <= GAMMA_RANGE[1]:
        fields["gamma"].fail(f"a number from {GAMMA_RANGE[0]:g} to {GAMMA_RANGE[1]:g}")
