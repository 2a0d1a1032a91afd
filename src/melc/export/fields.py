"""The fields of JSON documents: parameters, labels, features, columns of a table, and lines."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from melc.arrays import Floats
from melc.data.frames import Label
from melc.export.files import encodable, label_error
from melc.export.reading import Reader
from melc.fit.validation import log_prior_ratios, monotone_signs, priors_in_order
from melc.model.columns import Category, Columns
from melc.model.curve import Curve
from melc.model.line import Line, whole_proportions

_TEXT_TYPES = ("str", "object")
_INTEGER_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_LABEL_TYPES = (*_TEXT_TYPES, "bool", *_INTEGER_TYPES, "float32", "float64")

# The square of a standard deviation is a float.
_LARGEST_SPREAD = 1e154

# Curves and intercepts are logarithms of ratios of positive floating-point numbers, which are no larger than this.
LARGEST_LOG_ODDS = 1500.0
# How far from one the length of a direction may be by rounding.
_LENGTH_ROUNDING = 1e-9
# Characters of an error about a parameter that are shown: it repeats a value, which may be of any length.
_LONGEST_MESSAGE = 300

_LINE_FIELDS = (
    "features",
    "weights",
    "knots",
    "log_odds",
    "errors",
    "counts",
    "importance",
    "feature_importances",
    "places",
    "densities",
    "minor",
    "missing",
    "missing_counts",
    "units",
)

# The fields of a column of each kind, besides its number and its kind.
_COLUMN_FIELDS = {
    "categories": ("levels", "scores", "others"),
    "ranks": ("levels", "place"),
    "dates": ("place",),
    "numbers": ("place",),
}

Model = TypeVar("Model", bound=BaseEstimator)


def parameters_out(model: BaseEstimator) -> dict[str, Any]:
    """Return the parameters of a model as JSON values."""
    values = model.get_params(deep=False)
    values["priors"] = priors_in_order(values["priors"], model.classes_)
    if values.get("monotone") is not None:  # names and numbers of features alike become a sign for each feature
        names = getattr(model, "feature_names_in_", None)
        values["monotone"] = monotone_signs(values["monotone"], model.n_features_in_, names, model.classes_).tolist()
    if values["categorical_features"] is not None:  # names and numbers stay what they are
        values["categorical_features"] = [_plain(each) for each in values["categorical_features"]]
    return {name: _plain(value) for name, value in values.items()}


def with_parameters(kind: type[Model], reader: Reader, classes: NDArray[Any], n_features: int) -> Model:
    """Return an unfitted model of the given class with the parameters in the document."""
    entries = reader.fields([], kind().get_params())
    columns = entries.pop("categorical_features", None)
    model = kind(**{name: _parameter_in(entry) for name, entry in entries.items()})
    if columns is not None and columns.optional():
        model.set_params(categorical_features=[_column_name(item) for item in columns.items()])
    try:
        model._validate_params()
        log_prior_ratios(model.priors, classes, np.ones(len(classes)))
        monotone_signs(getattr(model, "monotone", None), n_features, None, classes)
    except (TypeError, ValueError, OverflowError) as error:
        message = str(error)
        shown = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]} …"
        raise ValueError(f"{reader.place}: {shown}") from None
    return model


def _parameter_in(reader: Reader) -> Any:
    """Return the value of a parameter: null, true, false, a string, a finite number, or a list of finite numbers."""
    value = reader.value
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, list):
        return reader.numbers().tolist()
    return reader.integer(-(2**63), 2**63 - 1) if isinstance(value, int) else reader.number()


def _column_name(reader: Reader) -> str | int | bool:
    """Return what names a column in ``categorical_features``: a string, an index, true or false."""
    if isinstance(reader.value, (str, bool)):
        return reader.value
    return reader.integer(0, 2**31)


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
        raise label_error(classes, "JSON")
    return {"type": kind, "values": _encodable(values)}


def _encodable(values: Sequence[Any]) -> list[Any]:
    """Return a list of the values; raise ``ValueError`` if one of them is a text that JSON cannot express."""
    return [encodable(value, "JSON") if isinstance(value, str) else value for value in values]


def class_labels(reader: Reader) -> NDArray[Any]:
    """Return the class labels, shape (n_classes,), sorted and with their original type."""
    fields = reader.fields(["type", "values"])
    kind = fields["type"].choice(*_LABEL_TYPES)
    items = fields["values"].items()
    if kind in _TEXT_TYPES:
        labels = np.array([item.text() for item in items], dtype=None if kind == "str" else object)
    elif kind == "bool":
        labels = np.array([item.boolean() for item in items])
    elif kind.startswith("float"):
        with np.errstate(over="ignore"):
            labels = np.array([item.number() for item in items]).astype(kind)
        if not np.isfinite(labels).all():
            fields["values"].fail(f"numbers in the range of {kind}")
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
        "feature_names": None if names is None else _encodable([str(name) for name in names]),
        "feature_mean": model.feature_mean_.tolist(),
        "feature_spread": model.feature_spread_.tolist(),
    }


def set_features(model: Any, fields: dict[str, Reader], n_features: int) -> None:
    """Give a model what a document has of the features."""
    model.n_features_in_ = n_features
    names = fields["feature_names"].optional()
    if names is not None:
        texts = [name.text() for name in names.items(model.n_features_in_)]
        if len(set(texts)) < len(texts):
            names.fail("different names")
        model.feature_names_in_ = np.array(texts, dtype=object)
    model.feature_mean_ = fields["feature_mean"].numbers(model.n_features_in_)
    model.feature_spread_ = fields["feature_spread"].numbers(model.n_features_in_)
    if not np.all((model.feature_spread_ >= 0) & (model.feature_spread_ <= _LARGEST_SPREAD)):
        fields["feature_spread"].fail(f"standard deviations from 0 to {_LARGEST_SPREAD:g}")


def columns_out(columns: Columns) -> list[dict[str, Any]]:
    """Return the columns that are not plain numbers, in their order, as JSON values."""
    features = sorted({*columns.categories, *columns.ranks, *columns.dates, *columns.places})
    return [{"feature": j, **_column_out(columns, j)} for j in features]


def _column_out(columns: Columns, j: int) -> dict[str, Any]:
    if j in columns.categories:
        category = columns.categories[j]
        scores, levels = category.scores.tolist(), _labels_out(category.levels)
        return {"holds": "categories", "levels": levels, "scores": scores, "others": category.others}
    place = columns.places.get(j)
    if j in columns.ranks:
        return {"holds": "ranks", "levels": _labels_out(columns.ranks[j]), "place": place}
    return {"holds": "dates" if j in columns.dates else "numbers", "place": place}


def _labels_out(labels: Sequence[Label | None]) -> list[Any]:
    """Return levels as JSON values; raise ``ValueError`` if a number among them is not finite."""
    for label in labels:
        Reader(label, "A level of a category cannot be written as JSON").label()
    return _encodable(labels)


def columns_in(reader: Reader, n_features: int) -> Columns:
    """Return the columns in a document."""
    categories: dict[int, Category] = {}
    ranks: dict[int, tuple[Label, ...]] = {}
    dates, places, last = set(), {}, -1
    for item in reader.items():
        kind = item.fields(["holds"], item.value)["holds"].choice(*_COLUMN_FIELDS)
        fields = item.fields(["feature", "holds", *_COLUMN_FIELDS[kind]])
        last = fields["feature"].integer(last + 1, n_features - 1)
        if kind == "categories":
            categories[last] = _category_in(fields)
            continue
        if kind == "ranks":
            ranks[last] = tuple(label for label in _labels_in(fields["levels"]) if label is not None)
            if len(ranks[last]) < len(fields["levels"].items()):
                fields["levels"].fail("levels without null")
        elif kind == "dates":
            dates.add(last)
        place = fields["place"] if kind == "numbers" else fields["place"].optional()
        if place is not None:
            places[last] = place.number()
    return Columns(categories, ranks, tuple(dates), places)


def _category_in(fields: dict[str, Reader]) -> Category:
    levels, others = _labels_in(fields["levels"]), fields["others"].boolean()
    if not levels and not others:
        fields["levels"].fail("one or more levels")
    return Category(levels, fields["scores"].numbers(len(levels) + others), others)


def _labels_in(reader: Reader) -> tuple[Label | None, ...]:
    """Return levels that all differ."""
    labels = tuple(item.label() for item in reader.items())
    if len(set(labels)) < len(labels):
        reader.fail("different levels")
    return labels


def line_out(line: Line) -> dict[str, Any]:
    """Return a line as JSON values; of its weights only those that are not zero.

    The curves of a line have the same knots, so these are written once.
    """
    return {
        "features": line.features.tolist(),
        "weights": line.direction[line.features].tolist(),
        "knots": line.curves[0].knots.tolist(),
        "log_odds": [curve.log_odds.tolist() for curve in line.curves],
        "errors": [errors.tolist() for errors in line.errors],
        "counts": line.counts.tolist(),
        "importance": float(line.importance),
        "feature_importances": line.feature_importances[line.features].tolist(),
        "places": line.places.tolist(),
        "densities": line.densities.tolist(),
        "minor": bool(line.minor),
        "missing": [curve.missing for curve in line.curves] if line.reads_codes else None,
        "missing_counts": line.missing_counts.tolist() if len(line.missing_counts) else None,
        "units": line.units[line.features].tolist() if len(line.units) else None,
    }


def lines_in(reader: Reader, model: Any) -> list[Line]:
    """Return the lines in a document, at least one, of a model that has its classes, features and intercepts.

    The intercepts, one for each curve that a line has, are the offsets of a single line.
    """
    items = [item.fields(_LINE_FIELDS) for item in reader.items()]
    if not items:
        reader.fail("one or more lines")
    offsets = model.intercepts_ if len(items) == 1 else np.zeros(len(model.intercepts_))
    return [_line_in(item, model, offsets) for item in items]


def _line_in(fields: dict[str, Reader], model: Any, offsets: Floats) -> Line:
    n_features, n_classes = model.n_features_in_, len(model.classes_)
    features = _features_in(fields["features"], n_features)
    weights = _weights_in(fields["weights"], len(features))
    places = fields["places"].ascending()
    shares = fields["feature_importances"].numbers(len(features), negative=False)
    curves = _curves_in(fields["knots"], fields["log_odds"], fields["missing"].optional(), len(offsets))
    n_errors = len(curves) if fields["errors"].items() else 0  # those of each curve, or none
    line = Line(
        direction=_at(features, weights, n_features),
        curves=curves,
        importance=fields["importance"].number(negative=False),
        feature_importances=_at(features, shares, n_features),
        counts=np.empty((0, n_classes)),
        places=places,
        densities=_rows_in(fields["densities"], n_classes, len(places)),
        offsets=offsets,
        errors=tuple(_rows_in(fields["errors"], n_errors, len(curves[0].knots))),
        minor=fields["minor"].boolean(),
        units=_units_in(fields["units"].optional(), features, weights, n_features),
        **_codes_in(fields, features, weights, model),
    )
    # How many intervals are counted depends on the curves.
    return replace(line, counts=_rows_in(fields["counts"], len(line.levels or line.codes), n_classes))


def _codes_in(fields: dict[str, Reader], features: list[int], weights: Floats, model: Any) -> dict[str, Any]:
    """Return what a line has that reads the codes of a single column: names of levels, or counts of missing rows."""
    columns: Columns = model.columns_
    missing = fields["missing"].optional()
    if missing is None:
        if fields["missing_counts"].optional():
            fields["missing_counts"].fail("null, as for 'missing'")
        return {}
    (feature, *further) = features
    if further or weights[0] != 1 or not (feature in columns.categories or feature in columns.places):
        missing.fail("null, except in a line of weight 1 along a single category or a column with missing values")
    if feature not in columns.categories:
        return {"missing_counts": fields["missing_counts"].numbers(len(model.classes_), negative=False)}
    names = tuple(columns.categories[feature].names)
    for name in ("knots", "places"):
        if fields[name].numbers().tolist() != list(range(len(names))):
            fields[name].fail(f"the numbers of the levels, from 0 to {len(names) - 1}")
    if fields["missing_counts"].optional():
        fields["missing_counts"].fail("null in a line along a category")
    return {"levels": names}


def _rows_in(reader: Reader, n_rows: int, n_columns: int) -> Floats:
    """Return a table of numbers that are not negative, shape (n_rows, n_columns)."""
    return np.array([row.numbers(n_columns, negative=False) for row in reader.items(n_rows)])


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
    if not np.all(weights) or largest > 2 or abs(np.linalg.norm(weights) - 1) > _LENGTH_ROUNDING:
        reader.fail("weights other than zero whose squares add up to one")
    return weights


def _units_in(reader: Reader | None, features: list[int], weights: Floats, n_features: int) -> Floats:
    """Return the units of the features of a line with whole-number weights, shape (n_features,); empty without."""
    if reader is None:
        return np.empty(0)
    units = reader.numbers(len(features), negative=False)
    if not np.all((units > 0) & (units <= _LARGEST_SPREAD)) or whole_proportions(weights * units) is None:
        reader.fail("positive units, in which the weights are in proportion to whole numbers up to 100")
    found = np.ones(n_features)
    found[features] = units
    return found


def _curves_in(knots_in: Reader, log_odds_in: Reader, missing_in: Reader | None, n_curves: int) -> tuple[Curve, ...]:
    """Return the curves of a line, which have the same knots, and all of them or none a value for missing ones."""
    knots = knots_in.ascending()
    log_odds = [each.numbers(len(knots)) for each in log_odds_in.items(n_curves)]
    missing = None if missing_in is None else missing_in.numbers(n_curves)
    for reader, values in ((log_odds_in, np.array(log_odds)), (missing_in, missing)):
        if reader is not None and values is not None and np.abs(values).max() > LARGEST_LOG_ODDS:
            reader.fail(f"numbers from {-LARGEST_LOG_ODDS:g} to {LARGEST_LOG_ODDS:g}")
    with np.errstate(over="ignore"):
        widths = np.diff(knots)
        usable = np.isfinite(widths) & np.isfinite(2 * LARGEST_LOG_ODDS / widths)
    if not usable.all():
        knots_in.fail("knots whose distances are neither tiny nor huge")
    of_missing = [None] * n_curves if missing is None else missing.tolist()
    return tuple(Curve(knots, *pair) for pair in zip(log_odds, of_missing, strict=True))


def _at(features: list[int], values: Floats, n_features: int) -> Floats:
    """Return an array of shape (n_features,) with the values at the given indices and zeros elsewhere."""
    array = np.zeros(n_features)
    array[features] = values
    return array
