"""The JSON document of a fitted :class:`melc.AdditiveMELC`."""

from typing import Any

import numpy as np

from melc.additive import AdditiveMELC
from melc.arrays import Floats
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
from melc.export.reading import Reader
from melc.model.line import Line, sign_changes

FORMAT, VERSION = "melc-additive-model", 1

# Curves are logarithms of ratios of positive floating-point numbers, which are no larger than this.
_LARGEST_LOG_ODDS = 1500.0
# Weights of all lines, zeros included: a short document must not ask for more memory than a long one takes.
_MOST_WEIGHTS = 2**25

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


def to_document(model: AdditiveMELC) -> dict[str, Any]:
    """Return the fitted model as dictionaries, lists, strings and numbers."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "parameters": parameters_out(model),
        "classes": labels_out(model.classes_),
        "n_features": int(model.coef_.shape[1]),
        "feature_names": names_out(model),
        **features_out(model),
        "intercept": model.intercept_.tolist(),
        "lines": [_line_out(line) for line in model.lines_],
    }


def from_document(reader: Reader) -> AdditiveMELC:
    """Return the model in a parsed document, after checking every part of it."""
    fields = reader.fields(
        ["format", "version", "parameters", "classes", "n_features", "intercept", "lines"], ["feature_names", *FEATURES]
    )
    classes = labels_in(fields["classes"])
    model = with_parameters(AdditiveMELC, fields["parameters"], classes)
    items = fields["lines"].items()
    n_features = fields["n_features"].integer(1, max(1, _MOST_WEIGHTS // max(1, len(items))))
    # With two classes all lines are for the second.
    shown = range(1, 2) if len(classes) == 2 else range(len(classes))
    intercept = fields["intercept"].numbers(len(shown))
    lines = [_line_in(item, n_features, shown) for item in items]
    by_class = [[line for line in lines if line.class_index == k] for k in shown]
    if not all(by_class):
        fields["lines"].fail(f"lines with every class_index from {shown[0]} to {shown[-1]}")
    set_names(model, fields, n_features)
    set_features(model, fields, n_features)
    model.n_features_in_ = n_features
    model._store(classes, intercept, by_class)
    return model


def _line_out(line: Line) -> dict[str, Any]:
    """Return a line; of its weights only those that are not zero."""
    return {
        "class_index": int(line.class_index),
        "features": line.features.tolist(),
        "weights": line.coef[line.features].tolist(),
        "knots": line.knots.tolist(),
        "log_odds": line.log_odds.tolist(),
        "counts": line.counts.tolist(),
        "importance": float(line.importance),
        "feature_importances": line.feature_importances[line.features].tolist(),
        "places": line.places.tolist(),
        "densities": line.densities.tolist(),
    }


def _line_in(reader: Reader, n_features: int, class_indices: range) -> Line:
    fields = reader.fields(_LINE_FIELDS)
    features = _features_in(fields["features"], n_features)
    weights = fields["weights"].numbers(len(features))
    if not np.all(weights):
        fields["weights"].fail("weights other than zero")
    check_weights_of_direction(weights, fields["weights"])
    knots, log_odds = _curve_in(fields["knots"], fields["log_odds"])
    places = fields["places"].ascending()
    shares = _not_negative(fields["feature_importances"], len(features))
    return Line(
        coef=_at(features, weights, n_features),
        knots=knots,
        log_odds=log_odds,
        class_index=fields["class_index"].integer(class_indices[0], class_indices[-1]),
        importance=fields["importance"].number(),
        feature_importances=_at(features, shares, n_features),
        counts=counts_in(fields["counts"], len(sign_changes(knots, log_odds)) + 1),
        places=places,
        densities=np.array([_not_negative(item, len(places)) for item in fields["densities"].items(2)]),
    )


def _features_in(reader: Reader, n_features: int) -> list[int]:
    """Return indices of features, at least one, ascending."""
    features = [item.integer(0, n_features - 1) for item in reader.items()]
    if not features or sorted(set(features)) != features:
        reader.fail("ascending indices of one or more features")
    return features


def _curve_in(knots_in: Reader, log_odds_in: Reader) -> tuple[Floats, Floats]:
    """Return the knots of a curve and its values there, both of shape (n_knots,)."""
    knots = knots_in.ascending()
    if len(knots) == 0:
        knots_in.fail("at least one knot")
    log_odds = log_odds_in.numbers(len(knots))
    if np.abs(log_odds).max() > _LARGEST_LOG_ODDS:
        log_odds_in.fail(f"numbers from {-_LARGEST_LOG_ODDS:g} to {_LARGEST_LOG_ODDS:g}")
    with np.errstate(over="ignore"):
        widths = np.diff(knots)
        usable = np.isfinite(widths) & np.isfinite(_LARGEST_LOG_ODDS / widths)
    if not usable.all():
        knots_in.fail("knots whose distances are neither tiny nor huge")
    return knots, log_odds


def _at(features: list[int], values: Floats, n_features: int) -> Floats:
    """Return an array of shape (n_features,) with the values at the given indices and zeros elsewhere."""
    array = np.zeros(n_features)
    array[features] = values
    return array


def _not_negative(reader: Reader, length: int) -> Floats:
    values = reader.numbers(length)
    if np.any(values < 0):
        reader.fail("numbers that are not negative")
    return values
