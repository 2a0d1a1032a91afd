"""What must hold of an additive model, whatever the data."""

import pickle
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.cases import FORMS, Case, Floats
from melc import MELC, AdditiveMELC
from melc.export import export_text, from_json, to_json, to_sql
from melc.export.sql import MOST_POINTS
from melc.model.line import Line

# Settings that MELC has as well, and values of its own.
_SHARED = ("gamma", "random_state", "n_jobs", "priors")
_OWN: dict[str, tuple[Any, ...]] = {
    "features_per_line": (2, 1, None),
    "full_lines": ("auto", "first", "never"),
    "other_features": (False, True),
}


# Columns that SQLite takes in one expression for certain, and a difference of probabilities that no rounding bridges.
_SQLITE_COLUMNS, _CLEARLY = 200, 1e-6


def faults(case: Case) -> Iterator[str]:
    """Fit lines to the data of a case, and tell what is wrong with them."""
    model = fitted_lines(case)
    for line in model.lines_:
        yield from faults_of_line(line)
        yield from _faults_of_monotone(line, model.monotone)
    yield from _faults_of_predictions(model, case)
    yield from faults_of_exports(model, case.X[:100])
    if case.X.size <= 200_000:
        order = np.random.default_rng(len(case.y)).permutation(len(case.y))
        other = fitted_lines(case.with_rows(order))
        if not np.array_equal(other.directions_, model.directions_):
            yield f"directions_ {model.directions_} became {other.directions_} with other rows first"


def faults_of_line(line: Line) -> Iterator[str]:
    """Tell what is wrong with a line of either classifier."""
    numbers = [line.direction, line.places, line.densities, line.counts, line.feature_importances, line.offsets]
    numbers += [each for curve in line.curves for each in (curve.knots, curve.log_odds)] + list(line.errors)
    if not all(np.isfinite(each).all() for each in numbers):
        yield f"a line is not finite: {line}"
    if abs(np.linalg.norm(line.direction) - 1) > 1e-12:
        yield f"a direction of length {np.linalg.norm(line.direction)}"
    for curve in line.curves:
        if np.any(np.diff(curve.knots) <= 0) or not np.isfinite(curve.pieces.slopes).all():
            yield f"knots do not ascend: {curve.knots}"
    for curve, errors in zip(line.curves, line.errors, strict=False):
        if errors.shape != curve.knots.shape or errors.min() < 0:
            yield f"{len(curve.knots)} knots, but standard errors {errors}"
    if np.any(np.diff(line.thresholds) <= 0):
        yield f"thresholds do not ascend: {line.thresholds}"
    if not len(line.codes) == len(line.counts) == len(line.thresholds) + 1:
        yield f"{len(line.thresholds)} thresholds, but {len(line.codes)} and {len(line.counts)} intervals"
    n_classes = line.counts.shape[1]
    if len(line.curves) != (1 if n_classes == 2 else n_classes) or len(line.densities) != n_classes:
        yield f"{n_classes} classes, but {len(line.curves)} curves and {len(line.densities)} densities"
    if n_classes > 2 and len(line.curves) == n_classes:
        yield from _faults_of_several(line)


def _faults_of_monotone(line: Line, monotone: list[str | None] | None) -> Iterator[str]:
    """Tell which curve falls though it must not, or rises."""
    wishes = [monotone[feature] for feature in line.features.tolist() if monotone[feature]] if monotone else []
    if wishes and len(line.features) > 1:
        yield f"a feature that must be monotone is combined with others: {line.features}"
    elif wishes and np.any(np.diff(line.curves[0].log_odds) * (1 if wishes[0] == "increasing" else -1) < 0):
        yield f"a curve is not {wishes[0]}: {line.curves[0].log_odds}"


def _faults_of_several(line: Line) -> Iterator[str]:
    """Tell what is wrong with the curves of more than two classes, each of which has one."""
    knots = line.curves[0].knots
    values = np.stack([curve.at(knots) for curve in line.curves])
    if not np.allclose(values.sum(axis=0), 0, rtol=0, atol=1e-9 * (1 + np.abs(values).max())):
        yield f"curves do not add up to zero: {values.sum(axis=0)}"
    if np.any(np.diff(line.codes) == 0) or line.codes.min() < 0 or line.codes.max() >= len(line.curves):
        yield f"the intervals belong to {line.codes}"


def fitted_lines(case: Case) -> AdditiveMELC:
    rng = np.random.default_rng(case.settings["random_state"])
    shape: dict[str, Any] = {name: values[int(rng.integers(len(values)))] for name, values in _OWN.items()}
    settings = {name: case.settings[name] for name in _SHARED if name in case.settings}
    if len(np.unique(case.y)) == 2 and rng.random() < 0.3:
        wishes = ("increasing", "decreasing", None)
        shape["monotone"] = [wishes[int(rng.integers(3))] for _ in range(case.X.shape[1])]
    return AdditiveMELC(max_lines=int(rng.choice([1, 4, 40])), **shape, **settings).fit(
        case.features(), case.y, case.weights
    )


def _faults_of_predictions(model: AdditiveMELC, case: Case) -> Iterator[str]:
    largest = np.finfo(np.float32).max if case.form == "float32" else 1e300
    edge = np.full((1, case.X.shape[1]), largest)
    X = FORMS[case.form](np.concatenate([case.X[:200], edge, -edge, 0 * edge]))
    proba, decision, labels = model.predict_proba(X), model.decision_function(X), model.predict(X)
    if not (np.isfinite(decision).all() and np.isfinite(model.predict_log_proba(X)).all()):
        yield f"decisions are not finite: {decision}"
    if not np.allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-12):
        yield "probabilities do not add up to one"
    if not np.array_equal(labels, model.classes_[np.argmax(proba, axis=1)]):
        yield "predict is not the most likely class"
    total = model.line_log_odds(X).sum(axis=1) + (model.intercepts_ if decision.ndim > 1 else model.intercepts_[0])
    if not np.allclose(decision, total, rtol=1e-9, atol=1e-9):
        yield "lines do not add up to the decision"


def faults_of_exports(model: MELC | AdditiveMELC, X: Floats) -> Iterator[str]:
    """Tell which export of a model does not predict what the model predicts for some rows."""
    proba = model.predict_proba(X)
    for name, other in (("JSON", from_json(to_json(model))), ("pickle", pickle.loads(pickle.dumps(model)))):
        if not np.array_equal(other.predict_proba(X), proba):
            yield f"probabilities differ after {name}"
    if "nan" in export_text(model):
        yield f"a text with nan: {export_text(model)}"
    if X.shape[1] > _SQLITE_COLUMNS or sum(len(c.knots) for line in model.lines_ for c in line.curves) > MOST_POINTS:
        return
    predicted = np.array(_by_sqlite(model, X))
    # SQLite adds up a projection in another order, so only rows that no rounding can move are compared.
    best = np.sort(proba, axis=1)
    clear = best[:, -1] - best[:, -2] > _CLEARLY
    if not np.array_equal(predicted[clear], model.predict(X)[clear]) and not rounding_decides(model, X):
        yield f"SQL predicts {predicted[clear]}, not {model.predict(X)[clear]}"


def _by_sqlite(model: MELC | AdditiveMELC, X: Any) -> list[Any]:
    names = [f"x{j}" for j in range(X.shape[1])]
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE data ({', '.join(f'{name} DOUBLE' for name in names)})")
        connection.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(names))})", X.tolist())
        return [row[-1] for row in connection.execute(to_sql(model))]


def rounding_decides(model: MELC | AdditiveMELC, X: Any) -> bool:
    """Whether rounding of a projection is no small part of the distance of two knots."""
    return any(
        len(curve.knots) > 1
        and 1e-14 * float(np.max(np.nan_to_num(np.abs(X)) @ np.abs(line.direction)))
        > 1e-3 * float(np.min(np.diff(curve.knots)))
        for line in model.lines_
        for curve in line.curves
    )
