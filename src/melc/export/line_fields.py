"""The lines of a model in a JSON document."""

from collections import Counter
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.export.reading import Reader
from melc.model.curve import Curve
from melc.model.line import Line

# Curves and intercepts are logarithms of ratios of positive floating-point numbers, which are no larger than this.
LARGEST_LOG_ODDS = 1500.0
# How far from one the length of a direction may be by rounding.
_ROUNDING = 1e-9

_FIELDS = (
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
    items = [item.fields(_FIELDS) for item in reader.items()]
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
