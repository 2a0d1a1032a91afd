"""Export of a fitted model as an SQL query: projections as arithmetic, curves and decisions as ``CASE WHEN``.

Projections and log-odds are named in subqueries of one row with ``LIMIT 1``. So they are evaluated once, and cannot be
confused with columns of the table, which are not known here. Without the limit SQLite would copy a long expression to
every place where its name is used.
"""

from collections.abc import Iterable
from typing import Any

from melc.export.sql_parts import check_names, column, curve_at, identifier, literal, sum_of, weighted_sum
from melc.model.line import LogOdds, decides_alone, log_odds_of
from melc.model.names import feature_names_of
from melc.model.units import fitted_model

# Most knots of all curves together. SQLite takes about ten seconds to read so many, and four times as long for twice as
# many; far larger queries it refuses.
MOST_KNOTS = 10_000


def to_sql(
    model: Any,
    table: str = "data",
    *,
    feature_names: Any = None,
    odds: bool = False,
    prediction: str = "prediction",
    projection: str = "projection",
    log_odds: str = "log_odds",
) -> str:
    """Return an SQL query that adds the predicted class, and what it follows from, to the rows of a table.

    The query runs on SQLite, DuckDB and PostgreSQL, and is plain arithmetic. If every class has a single line, it adds
    the projections on these lines; otherwise, or with ``odds``, the log-odds: of two classes those of the second, of
    more those of each. It needs only the columns that a line uses; the prediction is NULL where one of these is NULL.
    Names and labels are quoted, so they may contain any character except NUL.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
        used.
    table : str, default="data"
        Name of the table.
    feature_names : list of str, default=None
        Columns of the table in the order of the features. By default the names seen in ``fit``, or "x0", "x1", ...
    odds : bool, default=False
        Whether to add the log-odds also if every class has a single line.
    prediction : str, default="prediction"
        Name of the column with the predicted class, the last of the result. If the table has a column of this name
        already, the result has two.
    projection : str, default="projection"
        Name of the column with the projection. With more than two classes there is one per class, in the order of
        ``classes_``: ``projection0``, ``projection1``, ...
    log_odds : str, default="log_odds"
        Name of the column with the log-odds, after the projections. With more than two classes there is one per class:
        ``log_odds0``, ``log_odds1``, ...

    Returns
    -------
    query : str

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import to_sql
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> print(to_sql(model, "scans", feature_names=["dose"]))
    SELECT r.*,
      (CAST(r."dose" AS DOUBLE PRECISION) * 1.0e0) AS "projection",
      (SELECT CASE
        WHEN z IS NULL THEN NULL
        WHEN z < 2.5e0 THEN 'low'
        ELSE 'high'
      END FROM (SELECT (CAST(r."dose" AS DOUBLE PRECISION) * 1.0e0) AS z LIMIT 1) AS p) AS "prediction"
    FROM "scans" AS r
    """
    model = fitted_model(model)
    names = feature_names_of(model, feature_names)
    added = {"prediction": prediction, "projection": projection, "log_odds": log_odds}
    return query(model, [column(name) for name in names], names, table, odds=odds, **added)


def query(
    model: Any,
    features: list[str],
    columns: list[str],
    table: str,
    *,
    odds: bool = False,
    prediction: str = "prediction",
    projection: str = "projection",
    log_odds: str = "log_odds",
) -> str:
    """Return the query of :func:`to_sql` for features that are SQL expressions over the columns of the table."""
    formulas, alone = log_odds_of(model), decides_alone(model)
    z = [weighted_sum([features[j] for j in line.features], line.direction[line.features]) for line in model.lines_]
    by_interval = alone and len(z) == 1
    if odds or not by_interval:
        _check_size(model)
    shown = _numbered(projection, z) if alone else []
    if odds or not alone:
        numbers = [f"(SELECT {_log_odds(formula)} FROM {_named(z, formula.lines)})" for formula in formulas]
        shown += _numbered(log_odds, numbers)
    # Numbers are written again where they decide: a name could be that of a column of the table.
    decided = _class_by_interval(model, z[0]) if by_interval else _class_by_odds(model, formulas, z)
    shown.append((prediction, decided))
    check_names(columns, [name for name, _ in shown])
    written = ",\n".join(f"  {value} AS {identifier(name)}" for name, value in shown)
    return f"SELECT r.*,\n{written}\nFROM {identifier(table)} AS r"


def _check_size(model: Any) -> None:
    n_knots = sum(len(line.curve.knots) for line in model.lines_)
    if n_knots > MOST_KNOTS:
        fewer = f"lower max_lines (now {model.max_lines}), " if hasattr(model, "max_lines") else ""
        raise ValueError(
            f"The {len(model.lines_)} curves have {n_knots} knots together, and a query can have at most {MOST_KNOTS}; "
            f"raise gamma (now {model.gamma}), {fewer}or export to ONNX."
        )


def _numbered(name: str, values: list[str]) -> list[tuple[str, str]]:
    """Return names and values of columns; if there are several, a number follows the name."""
    return [(name, values[0])] if len(values) == 1 else [(f"{name}{k}", value) for k, value in enumerate(values)]


def _log_odds(formula: LogOdds) -> str:
    """Return the log-odds of a class by the projections p.z0, p.z1, ... on the lines."""
    added = sum_of([curve_at(f"p.z{k}", curve) for k, curve in zip(formula.lines, formula.curves, strict=True)])
    # The constant is added to the sum, as in decision_function.
    return f"{added} + {literal(formula.constant)}" if formula.constant else added


def _named(z: list[str], lines: Iterable[int]) -> str:
    """Return the table p of one row with the projections on some lines."""
    return f"(SELECT {', '.join(f'{z[k]} AS z{k}' for k in lines)} LIMIT 1) AS p"


def _class_by_interval(model: Any, z: str) -> str:
    """Return the label of the interval that the projection on the only line lies in."""
    (line,) = model.lines_
    *labels, last = [literal(label) for label in model.classes_[line.codes].tolist()]
    below = [f"    WHEN z < {literal(t)} THEN {label}" for t, label in zip(line.thresholds, labels, strict=True)]
    cases = ["(SELECT CASE", "    WHEN z IS NULL THEN NULL", *below, f"    ELSE {last}"]
    return "\n".join([*cases, f"  END FROM (SELECT {z} AS z LIMIT 1) AS p)"])


def _class_by_odds(model: Any, formulas: list[LogOdds], z: list[str]) -> str:
    """Return the label by the log-odds; NULL if any of them is NULL.

    With more than two classes it is that of the first class whose log-odds are at least those of all classes after it,
    which is the largest, and the first of equals.
    """
    labels = [literal(label) for label in model.classes_.tolist()]
    if len(labels) == 2:
        decided = f"CASE WHEN o.o0 > 0 THEN {labels[1]} WHEN o.o0 <= 0 THEN {labels[0]} END"
    else:
        numbers = range(len(labels))
        cases = [
            f"WHEN {' AND '.join(f'o.o{k} >= o.o{other}' for other in numbers[k + 1 :])} THEN {labels[k]}"
            for k in numbers[:-1]
        ]
        missing = f"WHEN {sum_of([f'o.o{k}' for k in numbers])} IS NULL THEN NULL"
        decided = " ".join(["CASE", missing, *cases, f"ELSE {labels[-1]} END"])
    odds = ", ".join(f"{_log_odds(formula)} AS o{k}" for k, formula in enumerate(formulas))
    return f"(SELECT {decided} FROM (SELECT {odds} FROM {_named(z, range(len(z)))} LIMIT 1) AS o)"
