"""Write a fitted model as JSON and read it back. A file has a format name and a version and is checked when read."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.additive import AdditiveMELC
from melc.arrays import Floats
from melc.classifier import GAMMAS, MELC
from melc.export import additive_document
from melc.export.fields import (
    FEATURES,
    check_weights_of_direction,
    counts_in,
    features_out,
    labels_in,
    labels_out,
    names_out,
    parameters_out,
    set_features,
    set_names,
    with_parameters,
)
from melc.export.reading import Reader, parse
from melc.model.decision import Decision
from melc.model.density import LEAST_VARIANCE, Density
from melc.model.units import fitted_model, is_additive

FORMAT, VERSION = "melc-model", 1
FORMATS = (FORMAT, additive_document.FORMAT)

# A model takes kilobytes, or a few megabytes with many features and classes. Larger texts are refused.
MOST_BYTES = 256 * 2**20


def to_json(model: Any, *, indent: int | None = None) -> str:
    """Return the fitted model as JSON text.

    The text contains the parameters, directions, thresholds and densities. The densities of a ``MELC`` contain the
    projections of the training rows if a class has no more than 2048 different ones (with a single feature, these are
    its values), and of larger classes the outermost. Numbers are written in full precision, so that the model read back
    predicts exactly the same.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
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
    return json.dumps(to_document(model), indent=indent, allow_nan=False, ensure_ascii=False)


def from_json(text: str | bytes, *, max_bytes: int = MOST_BYTES) -> MELC | AdditiveMELC:
    """Return the model written by :func:`to_json`.

    Safe for text from untrusted sources: nothing in it is executed. Files that ``melc fit`` has written are read by
    :func:`melc.tables.table_model_from_json`.

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
    if is_additive(model):
        return additive_document.to_document(model)
    return {
        "format": FORMAT,
        "version": VERSION,
        "parameters": parameters_out(model),
        "classes": labels_out(model.classes_),
        "feature_names": names_out(model),
        **features_out(model),
        "gamma": getattr(model, "gamma_", None),
        "coef": model.coef_.tolist(),
        "divergence": np.atleast_1d(model.divergence_).tolist(),
        "n_iter": int(model.n_iter_),
        "decisions": [_decision_out(decision) for decision in model.decisions_],
    }


def from_document(reader: Reader) -> Any:
    """Return the model in a parsed document, after checking every part of it."""
    format = format_of(reader)
    if format not in FORMATS:
        known = " or ".join(repr(name) for name in FORMATS)
        remedy = " Read it with melc.tables.table_model_from_json." if format == "melc-table-model" else ""
        raise ValueError(f"Not a melc model: its 'format' should be {known}, found {format!r:.60}.{remedy}")
    if format == additive_document.FORMAT:
        check_version(reader, additive_document.VERSION)
        return additive_document.from_document(reader)
    check_version(reader, VERSION)
    fields = reader.fields(
        ["format", "version", "parameters", "classes", "coef", "divergence", "n_iter", "decisions"],
        ["feature_names", *FEATURES, "gamma"],
    )
    classes = labels_in(fields["classes"])
    model = with_parameters(MELC, fields["parameters"], classes)
    n_projections = 1 if len(classes) == 2 else len(classes)
    coef = _matrix_in(fields["coef"], n_projections)
    decisions = [_decision_in(item) for item in fields["decisions"].items(n_projections)]
    divergence = fields["divergence"].numbers(n_projections)
    n_iter = fields["n_iter"].integer(1, 2**31)
    set_names(model, fields, coef.shape[1])
    set_features(model, fields, coef.shape[1])
    gamma = fields["gamma"].optional() if "gamma" in fields else None
    if gamma is not None:
        model.gamma_ = gamma.number()
        if not GAMMAS[0] <= model.gamma_ <= GAMMAS[1]:
            gamma.fail(f"a number from {GAMMAS[0]:g} to {GAMMAS[1]:g}")
    _restore(model, classes, coef, decisions, divergence, n_iter)
    return model


def format_of(reader: Reader) -> Any:
    """Return the format name of a document, or None if it has none."""
    entries = reader.entries()
    return entries["format"].value if "format" in entries else None


def check_version(reader: Reader, newest: int) -> None:
    """Raise ``ValueError`` if the version of a document is missing or above ``newest``.

    Called before the other keys are read: in a newer version they may differ.
    """
    entries = reader.entries()
    if "version" not in entries:
        raise ValueError(f"{reader.place}: the key 'version' is missing.")
    version = entries["version"].integer(1, 2**31)
    if version > newest:
        raise ValueError(
            f"The model has format version {version}, but this release of melc reads versions up to {newest}. "
            "Upgrade melc to read it."
        )


def _restore(
    model: MELC,
    classes: NDArray[Any],
    coef: Floats,
    decisions: list[Decision],
    divergence: Floats,
    n_iter: int,
) -> None:
    """Set the attributes that ``fit`` sets, except the record of its runs."""
    fitted: dict[str, Any] = {
        "classes_": classes,
        "coef_": coef,
        "decisions_": decisions,
        "n_features_in_": coef.shape[1],
        "n_iter_": n_iter,
    }
    if len(decisions) == 1:
        fitted |= {
            "thresholds_": decisions[0].thresholds,
            "interval_classes_": classes[decisions[0].codes],
            "divergence_": float(divergence[0]),
        }
    else:
        fitted |= {
            "thresholds_": [decision.thresholds for decision in decisions],
            "interval_classes_": [decision.codes.astype(bool) for decision in decisions],
            "divergence_": divergence,
        }
    for name, value in fitted.items():
        setattr(model, name, value)


def _matrix_in(reader: Reader, n_rows: int) -> Floats:
    """Return a list of equally long lists as an array of shape (n_rows, n_columns)."""
    rows = reader.items(n_rows)
    width = len(rows[0].items())
    if width == 0:
        reader.fail("at least one weight")
    matrix = np.array([row.numbers(width) for row in rows])
    if not np.all(np.any(matrix, axis=1)):
        reader.fail("weights that are not all zero")
    check_weights_of_direction(matrix, reader)
    return matrix


def _decision_out(decision: Decision) -> dict[str, Any]:
    return {
        "thresholds": decision.thresholds.tolist(),
        "codes": decision.codes.tolist(),
        "counts": None if decision.counts is None else decision.counts.tolist(),
        "log_prior_ratio": float(decision.log_prior_ratio),
        "densities": [
            {
                "support": density.support.tolist(),
                "weights": density.weights.tolist(),
                "variance": float(density.variance),
            }
            for density in decision.densities
        ],
    }


def _decision_in(reader: Reader) -> Decision:
    fields = reader.fields(["thresholds", "codes", "log_prior_ratio", "densities"], ["counts"])
    thresholds = fields["thresholds"].ascending()
    codes = [item.integer(0, 1) for item in fields["codes"].items(len(thresholds) + 1)]
    if any(a == b for a, b in pairwise(codes)):
        fields["codes"].fail("alternating codes")
    first, second = (_density_in(item) for item in fields["densities"].items(2))
    counts = fields["counts"].optional() if "counts" in fields else None
    decision = Decision(
        densities=(first, second),
        log_prior_ratio=fields["log_prior_ratio"].number(),
        thresholds=thresholds,
        codes=np.array(codes, dtype=np.int8),
        counts=None if counts is None else counts_in(counts, len(codes)),
    )
    _check_numbers(decision, fields["densities"])
    return decision


def _check_numbers(decision: Decision, reader: Reader) -> None:
    """Raise ``ValueError`` if the decision overflows at its own support points or far away from them."""
    places = np.concatenate([*(density.support[[0, -1]] for density in decision.densities), decision.reach])
    try:
        with np.errstate(all="ignore"):
            values = [places, decision.log_ratio(places), decision.log_odds(places)]
    except (ValueError, OverflowError):  # the logarithm of a number that is zero or infinite
        values = [np.array([np.nan])]
    if not np.isfinite(np.concatenate(values)).all():
        reader.fail("supports and variances whose squares do not overflow")


def _density_in(reader: Reader) -> Density:
    fields = reader.fields(["support", "weights", "variance"])
    support = fields["support"].ascending()
    weights = fields["weights"].numbers(len(support))
    if len(support) == 0 or np.any(weights <= 0) or abs(weights.sum() - 1) > 1e-9:
        fields["weights"].fail("positive weights that sum to 1")
    variance = fields["variance"].number()
    if not LEAST_VARIANCE <= variance <= 1 / LEAST_VARIANCE:
        fields["variance"].fail(f"a positive number from {LEAST_VARIANCE:g} to {1 / LEAST_VARIANCE:g}")
    return Density(support, weights, variance)
