"""The fields of JSON documents: parameters, labels, means and spreads of the features, and lines."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from melc.arrays import Floats
from melc.export.reading import Reader
from melc.fit.validation import log_prior_ratios
from melc.model.curve import Curve
from melc.model.line import Line

_TEXT_TYPES = ("str", "object")
_INTEGER_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_LABEL_TYPES = (*_TEXT_TYPES, "bool", *_INTEGER_TYPES, "float32", "float64")

# The square of a standard deviation is a float.
_LARGEST_SPREAD = 1e154

# Curves and intercepts are logarithms of ratios of positive floating-point numbers, which are no larger than this.
LARGEST_LOG_ODDS = 1500.0
# How far from one the length of a direction may be by rounding.
_ROUNDING = 1e-9

_LINE_FIELDS = (
    "class_index",
    "features",
    "weights",
    "knots",
    "log_odds",
    "counts",
    "importance",
    "feature_importances",
    "places",
    "densities",
)

Model = TypeVar("Model", bound=BaseEstimator)


def parameters_out(model: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of a model as JSON values."""
    return {name: _plain(value) for name, value in model.get_params(deep=False).items()}


def with_parameters(kind: type[Model], reader: Reader, classes: NDArray[Any]) -> Model:
    """Return an unfitted model of the given class with the parameters in the document."""
    entries = reader.fields([], kind().get_params())
    model = kind(**{name: _parameter_in(entry) for name, entry in entries.items()})
    try:
        model._validate_params()
        log_prior_ratios(model.priors, classes, np.ones(len(classes)))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{reader.place}: {error}") from None
    return model


def _parameter_in(reader: Reader) -> Any:
    """Return the value of a parameter: null, true, false, a string, a finite number, or a list of finite numbers."""
    value = reader.value
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, list):
        return reader.numbers().tolist()
    return reader.integer(-(2**63), 2**63 - 1) if isinstance(value, int) else reader.number()


def _plain(value: Any) -> Any:
    """Return a parameter as a JSON value; a random number generator becomes None."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (np.ndarray, Sequence)):
        return np.asarray(value).tolist()
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    raise ValueError(f"The parameter value {value!r} cannot be written as JSON; use a number, string, list or None.")


def labels_out(classes: NDArray[Any]) -> dict[str, Any]:
    """Return the class labels, shape (n_classes,), as their type and a list of values."""
    values = classes.tolist()
    kind = "str" if classes.dtype.kind in "UT" else classes.dtype.name
    if kind not in _LABEL_TYPES or (kind == "object" and not all(isinstance(v, str) for v in values)):
        raise ValueError(
            f"The labels {values[:3]} of type {kind} cannot be written as JSON: use strings, integers, floats or "
            "booleans as labels."
        )
    return {"type": kind, "values": values}


def labels_in(reader: Reader) -> NDArray[Any]:
    """Return the class labels, shape (n_classes,), sorted and with their original type."""
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
        fields["values"].fail("two or more different labels in ascending order")
    return labels


def features_out(model: Any) -> dict[str, Any]:
    """Return the number, names (or None), means and standard deviations of the features."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
        "feature_mean": model.feature_mean_.tolist(),
        "feature_spread": model.feature_spread_.tolist(),
    }


def set_features(model: Any, fields: dict[str, Reader], most: int) -> None:
    """Give a model what a document has of the features, at most so many."""
    model.n_features_in_ = fields["n_features"].integer(1, most)
    names = fields["feature_names"].optional()
    if names is not None:
        model.feature_names_in_ = np.array(_distinct(names, model.n_features_in_), dtype=object)
    model.feature_mean_ = fields["feature_mean"].numbers(model.n_features_in_)
    model.feature_spread_ = fields["feature_spread"].numbers(model.n_features_in_)
    if not np.all((model.feature_spread_ >= 0) & (model.feature_spread_ <= _LARGEST_SPREAD)):
        fields["feature_spread"].fail(f"standard deviations from 0 to {_LARGEST_SPREAD:g}")


def _distinct(reader: Reader, length: int) -> list[str]:
    """Return ``length`` strings that all differ."""
    names = reader.texts(length)
    if len(set(names)) < len(names):
        reader.fail("different names")
    return names


def line_out(line: Line) -> dict[str, Any]:
    """Return a line as JSON values; of its weights only those that are not zero."""
    return {
        "class_index": int(line.class_index),
        "features": line.features.tolist(),
        "weights": line.direction[line.features].tolist(),
        "knots": line.curve.knots.tolist(),
        "log_odds": line.curve.log_odds.tolist(),
        "counts": line.counts.tolist(),
        "importance": float(line.importance),
        "feature_importances": line.feature_importances[line.features].tolist(),
        "places": line.places.tolist(),
        "densities": line.densities.tolist(),
    }


def lines_in(reader: Reader, n_features: int, class_indices: range, intercepts: Floats) -> list[Line]:
    """Return the lines in a document. All classes must have one.

    ``intercepts`` has shape (len(class_indices),). That of a class with a single line is the offset of the line.
    """
    items = [item.fields(_LINE_FIELDS) for item in reader.items()]
    owners = [item["class_index"].integer(class_indices[0], class_indices[-1]) for item in items]
    if set(owners) != set(class_indices):
        reader.fail(f"lines with every class_index from {class_indices[0]} to {class_indices[-1]}")
    counted = Counter(owners)
    offsets = {k: float(each) for k, each in zip(class_indices, intercepts, strict=True) if counted[k] == 1}
    return [_line_in(item, n_features, k, offsets.get(k, 0.0)) for item, k in zip(items, owners, strict=True)]


def _line_in(fields: dict[str, Reader], n_features: int, class_index: int, offset: float) -> Line:
    features = _features_in(fields["features"], n_features)
    weights = _weights_in(fields["weights"], len(features))
    curve, places = _curve_in(fields["knots"], fields["log_odds"]), fields["places"].ascending()
    n_intervals = len(curve.plus(offset).thresholds) + 1
    shares = fields["feature_importances"].numbers(len(features), negative=False)
    return Line(
        direction=_at(features, weights, n_features),
        curve=curve,
        class_index=class_index,
        importance=fields["importance"].number(negative=False),
        feature_importances=_at(features, shares, n_features),
        counts=np.array([row.numbers(2, negative=False) for row in fields["counts"].items(n_intervals)]),
        places=places,
        densities=np.array([row.numbers(len(places), negative=False) for row in fields["densities"].items(2)]),
        offset=offset,
    )


def _features_in(reader: Reader, n_features: int) -> list[int]:
    """Return indices of features, at least one, ascending."""
    features = [item.integer(0, n_features - 1) for item in reader.items()]
    if not features or sorted(set(features)) != features:
        reader.fail("ascending indices of one or more features")
    return features


def _weights_in(reader: Reader, length: int) -> Floats:
    """Return the weights of a direction, of length one."""
    weights = reader.numbers(length)
    largest = np.abs(weights).max()  # squares of very large numbers are avoided
    if not np.all(weights) or largest > 2 or abs(np.linalg.norm(weights) - 1) > _ROUNDING:
        reader.fail("weights other than zero whose squares add up to one")
    return weights


def _curve_in(knots_in: Reader, log_odds_in: Reader) -> Curve:
    knots = knots_in.ascending()
    log_odds = log_odds_in.numbers(len(knots))
    if np.abs(log_odds).max() > LARGEST_LOG_ODDS:
        log_odds_in.fail(f"numbers from {-LARGEST_LOG_ODDS:g} to {LARGEST_LOG_ODDS:g}")
    with np.errstate(over="ignore"):
        widths = np.diff(knots)
        usable = np.isfinite(widths) & np.isfinite(2 * LARGEST_LOG_ODDS / widths)
    if not usable.all():
        knots_in.fail("knots whose distances are neither tiny nor huge")
    return Curve(knots, log_odds)


def _at(features: list[int], values: Floats, n_features: int) -> Floats:
    """Return an array of shape (n_features,) with the values at the given indices and zeros elsewhere."""
    array = np.zeros(n_features)
    array[features] = values
    return array
