"""A fitted model as JSON and back: plain data with a format name and a version, checked when read."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from melc.arrays import Floats
from melc.classifier import MELC
from melc.density import Decision, Density
from melc.reading import Reader, parse

FORMAT, VERSION = "melc-model", 1

# A model holds kilobytes, some megabytes with many features and classes. What is far larger is none.
MOST_BYTES = 256 * 2**20

_TEXT_TYPES = ("str", "object")
_NUMBER_TYPES = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)
_LABEL_TYPES = (*_TEXT_TYPES, "bool", *_NUMBER_TYPES)


def to_json(model: MELC, *, indent: int | None = None) -> str:
    """The fitted model as JSON text. It holds parameters, directions and densities, and no row of the data.

    Numbers are written so that they read back to the same bits: predictions are the same.

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


def from_json(text: str | bytes, *, max_bytes: int = MOST_BYTES) -> MELC:
    """The model that :func:`to_json` wrote. Safe with text from strangers: nothing in it is executed.

    Whatever is wrong with the text, from a missing brace to a threshold out of order, is a ``ValueError``
    that says what and where.
    """
    return from_document(parse(text, "melc model", max_bytes=max_bytes))


def to_document(model: MELC) -> dict[str, Any]:
    """The fitted model as dictionaries, lists, texts and numbers."""
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "classes": _labels_out(model.classes_),
        "feature_names": None if names is None else [str(name) for name in names],
        "coef": model.coef_.tolist(),
        "divergence": np.atleast_1d(model.divergence_).tolist(),
        "n_iter": int(model.n_iter_),
        "decisions": [_decision_out(decision) for decision in model.decisions_],
    }


def from_document(reader: Reader) -> MELC:
    """The model in a document that was read."""
    _check_format(reader)
    fields = reader.fields(
        ["format", "version", "parameters", "classes", "coef", "divergence", "n_iter", "decisions"],
        ["feature_names"],
    )
    model = _with_parameters(fields["parameters"])
    classes = _labels_in(fields["classes"])
    n_projections = 1 if len(classes) == 2 else len(classes)
    coef = _matrix_in(fields["coef"], n_projections)
    decisions = [_decision_in(item) for item in fields["decisions"].items(n_projections)]
    divergence = fields["divergence"].numbers(n_projections)
    n_iter = fields["n_iter"].integer(1, 2**31)
    names = fields["feature_names"].optional() if "feature_names" in fields else None
    if names is not None:
        model.feature_names_in_ = np.array(_distinct(names, coef.shape[1]), dtype=object)
    _restore(model, classes, coef, decisions, divergence, n_iter)
    return model


def _check_format(reader: Reader) -> None:
    """Tell a foreign file and a newer version apart from a damaged one."""
    entries = reader.entries()
    if "format" not in entries or entries["format"].value != FORMAT:
        raise ValueError(f"This is no melc model: its 'format' should be {FORMAT!r}.")
    if "version" not in entries:
        raise ValueError(f"{reader.place}: the key 'version' is missing.")
    version = entries["version"].integer(1, 2**31)
    if version > VERSION:
        raise ValueError(
            f"The model has version {version} of the format, but this release reads up to {VERSION}. "
            "Upgrade melc to read it."
        )


def _with_parameters(reader: Reader) -> MELC:
    known = MELC().get_params()
    values = {name: entry.value for name, entry in reader.fields([], known).items()}
    model = MELC(**values)
    try:
        model._validate_params()
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{reader.place}: {error}") from None
    return model


def _restore(
    model: MELC,
    classes: NDArray[Any],
    coef: Floats,
    decisions: list[Decision],
    divergence: Floats,
    n_iter: int,
) -> None:
    """Set what ``fit`` sets, but for the record of its runs."""
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


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it; a generator of random numbers is left out."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (np.ndarray, Sequence)):
        return np.asarray(value).tolist()
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    raise ValueError(f"A parameter is {value!r}, which JSON cannot hold.")


def _labels_out(classes: NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    kind = "str" if classes.dtype.kind in "UT" else classes.dtype.name
    if kind not in _LABEL_TYPES or (kind == "object" and not all(isinstance(v, str) for v in values)):
        raise ValueError(
            f"The labels {values[:3]} of type {kind} cannot be written: use texts, whole numbers, floats or "
            "booleans as labels."
        )
    return {"type": kind, "values": values}


def _labels_in(reader: Reader) -> NDArray[Any]:
    fields = reader.fields(["type", "values"])
    kind = fields["type"].choice(*_LABEL_TYPES)
    items = fields["values"].items()
    if kind in _TEXT_TYPES:
        labels = np.array([item.text() for item in items], dtype=None if kind == "str" else object)
    elif kind == "bool":
        labels = np.array([item.boolean() for item in items])
    elif kind.startswith("float"):
        labels = np.array([item.number() for item in items]).astype(kind)
    else:
        limits = np.iinfo(kind)
        labels = np.array([item.integer(limits.min, limits.max) for item in items], dtype=kind)
    if len(labels) < 2 or not np.array_equal(labels, np.unique(labels)):
        fields["values"].fail("two or more different labels in order")
    return labels


def _matrix_in(reader: Reader, n_rows: int) -> Floats:
    rows = reader.items(n_rows)
    width = len(rows[0].items())
    if width == 0:
        reader.fail("at least one weight")
    return np.array([row.numbers(width) for row in rows])


def _distinct(reader: Reader, length: int) -> list[str]:
    names = reader.texts(length)
    if len(set(names)) < len(names):
        reader.fail("names that differ")
    return names


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
        fields["codes"].fail("codes that take turns")
    first, second = (_density_in(item) for item in fields["densities"].items(2))
    counts = fields["counts"].optional() if "counts" in fields else None
    return Decision(
        densities=(first, second),
        log_prior_ratio=fields["log_prior_ratio"].number(),
        thresholds=thresholds,
        codes=np.array(codes, dtype=np.int8),
        counts=None if counts is None else _counts_in(counts, len(codes)),
    )


def _counts_in(reader: Reader, n_intervals: int) -> Floats:
    counts = np.array([row.numbers(2) for row in reader.items(n_intervals)])
    if np.any(counts < 0):
        reader.fail("counts of zero or more")
    return counts


def _density_in(reader: Reader) -> Density:
    fields = reader.fields(["support", "weights", "variance"])
    support = fields["support"].ascending()
    weights = fields["weights"].numbers(len(support))
    if len(support) == 0 or np.any(weights <= 0) or abs(weights.sum() - 1) > 1e-9:
        fields["weights"].fail("positive weights with sum one")
    return Density(support, weights, fields["variance"].positive())
