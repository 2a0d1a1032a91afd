"""An additive model as an SQL query.

Projections and log-odds are named in subqueries without FROM and with ``LIMIT 1``, as in ``sql_odds.py``. So they are
evaluated once, and cannot be confused with columns of the table, which are not known here.

A curve is a tree of CASE expressions that halves the knots, so that a row takes about six comparisons for forty knots.
A table of knots, joined by intervals, took seventy times as long in SQLite, which has no index on it.
"""

import numpy as np

from melc.additive import AdditiveMELC
from melc.arrays import Floats
from melc.export.quoting import identifier, literal
from melc.export.sql_parts import check_names, sum_of, weighted_sum
from melc.model.line import Line

# Most knots of all curves together. SQLite takes about ten seconds to read so many, and four times as long for twice as
# many; far larger queries it refuses.
MOST_KNOTS = 10_000


def query(
    model: AdditiveMELC, features: list[str], columns: list[str], table: str, prediction: str, log_odds: str
) -> str:
    """Return the query for features that are SQL expressions over the columns of the table."""
    _check_size(model)
    shown = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    names = [log_odds] if len(shown) == 1 else [f"{log_odds}{k}" for k in shown]
    check_names(columns, [*names, prediction])
    sums = [_log_odds(model, class_index, features) for class_index in shown]
    named = ", ".join(f"{each} AS o{k}" for k, each in enumerate(sums))
    return "\n".join(
        [
            "SELECT r.*,",
            *(f"  {each} AS {identifier(name)}," for each, name in zip(sums, names, strict=True)),
            f"  (SELECT {_decided(model)} FROM (SELECT {named} LIMIT 1) AS o) AS {identifier(prediction)}",
            f"FROM {identifier(table)} AS r",
        ]
    )


def _check_size(model: AdditiveMELC) -> None:
    n_knots = sum(len(line.knots) for line in model.lines_)
    if n_knots > MOST_KNOTS:
        raise ValueError(
            f"The {len(model.lines_)} curves have {n_knots} knots together, and a query can have at most {MOST_KNOTS}; "
            f"raise gamma (now {model.gamma:g}), lower max_lines (now {model.max_lines}), or export to ONNX."
        )


def _log_odds(model: AdditiveMELC, class_index: int, features: list[str]) -> str:
    """Return the intercept of a class and the sum of its curves."""
    lines = [line for line in model.lines_ if line.class_index == class_index]
    intercept = model.intercept_[0 if len(model.classes_) == 2 else class_index]
    # The intercept is added to the sum, as in decision_function.
    total = f"{sum_of([_curve(f'p.z{k}', line) for k, line in enumerate(lines)])} + {literal(float(intercept))}"
    named = ", ".join(f"{_projection(line, features)} AS z{k}" for k, line in enumerate(lines))
    return f"(SELECT {total} FROM (SELECT {named} LIMIT 1) AS p)"


def _projection(line: Line, features: list[str]) -> str:
    """Return z, from the features that the line uses."""
    return weighted_sum([features[j] for j in line.features], line.coef[line.features].tolist())


def _curve(z: str, line: Line) -> str:
    """Return what a line adds; NULL if z is NULL."""
    slopes = np.append(np.diff(line.log_odds) / np.diff(line.knots), 0.0)
    first = f"WHEN {z} < {_number(line.knots[0])} THEN {_number(line.log_odds[0])}"
    return f"CASE WHEN {z} IS NULL THEN NULL {first} ELSE {_pieces(z, line, slopes, 0, len(line.knots))} END"


def _pieces(z: str, line: Line, slopes: Floats, start: int, stop: int) -> str:
    """Return the curve for z from the knot ``start`` on, to before the knot ``stop``."""
    if stop - start == 1:
        value, slope = _number(line.log_odds[start]), slopes[start]
        return value if slope == 0 else f"{value} + {_number(slope)} * ({z} - {_number(line.knots[start])})"
    middle = (start + stop) // 2
    below, above = _pieces(z, line, slopes, start, middle), _pieces(z, line, slopes, middle, stop)
    return f"CASE WHEN {z} < {_number(line.knots[middle])} THEN {below} ELSE {above} END"


def _decided(model: AdditiveMELC) -> str:
    """Return the label by the log-odds o0, o1, ...; NULL if any of them is NULL.

    With more than two classes it is that of the first class whose log-odds are at least those of all classes after it,
    which is the largest, and the first of equals.
    """
    labels = [literal(label) for label in model.classes_.tolist()]
    if len(labels) == 2:
        return f"CASE WHEN o.o0 > 0 THEN {labels[1]} WHEN o.o0 <= 0 THEN {labels[0]} END"
    numbers = range(len(labels))
    cases = [
        f"WHEN {' AND '.join(f'o.o{k} >= o.o{other}' for other in numbers[k + 1 :])} THEN {labels[k]}"
        for k in numbers[:-1]
    ]
    missing = f"WHEN {sum_of([f'o.o{k}' for k in numbers])} IS NULL THEN NULL"
    return " ".join(["CASE", missing, *cases, f"ELSE {labels[-1]} END"])


def _number(value: float) -> str:
    return literal(float(value))
