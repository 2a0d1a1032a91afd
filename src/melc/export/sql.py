"""Export of a fitted model as an SQL query: the projection as arithmetic, the decision as ``CASE WHEN``."""

from typing import Any

from melc.classifier import MELC
from melc.export import additive_sql
from melc.export.quoting import column, identifier, literal
from melc.export.sql_odds import class_by_odds, support_tables
from melc.export.sql_parts import check_names, unused_prefix, weighted_sum
from melc.model.names import feature_names_of
from melc.model.units import fitted_model, is_additive


def to_sql(
    model: Any,
    table: str = "data",
    *,
    feature_names: Any = None,
    prediction: str = "prediction",
    projection: str = "projection",
    log_odds: str = "log_odds",
) -> str:
    """Return an SQL query that adds the projection and the predicted class to the rows of a table.

    The query runs on SQLite, DuckDB and PostgreSQL. The prediction is NULL where a feature is NULL. Names and labels
    are quoted, so they may contain any character except NUL.

    With two classes the query is plain arithmetic and fast. With more, a row that lies in the intervals of no class or
    of several needs one exponential for every support point of every class. SQLite must then be 3.35 or newer and have
    its mathematical functions, as nearly all builds do; otherwise it reports "no such function: exp". PostgreSQL must
    be 12 or newer.

    The query of an ``AdditiveMELC`` is plain arithmetic for any number of classes. It adds the log-odds of the second
    class, or of each if there are more than two, in place of projections. It needs only the columns that a line uses;
    the prediction is NULL where one of these is NULL.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
        used.
    table : str, default="data"
        Name of the table.
    feature_names : list of str, default=None
        Columns of the table in the order of the features. By default the names seen in ``fit``, or "x0", "x1", ...
    prediction : str, default="prediction"
        Name of the column with the predicted class, the last of the result. If the table has a column of this name
        already, the result has two.
    projection : str, default="projection"
        Name of the column with the projection, before the last. With more than two classes there is one per class, in
        the order of ``classes_``: ``projection0``, ``projection1``, ... Not used for an additive model.
    log_odds : str, default="log_odds"
        Name of the column with the log-odds of an additive model, before the last. With more than two classes there is
        one per class: ``log_odds0``, ``log_odds1``, ...

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
      CAST((r."dose" * -1.0e0) AS DOUBLE PRECISION) AS "projection",
      (SELECT CASE
        WHEN z IS NULL THEN NULL
        WHEN z < -2.5e0 THEN 'high'
        ELSE 'low'
      END FROM (SELECT CAST((r."dose" * -1.0e0) AS DOUBLE PRECISION) AS z) AS p) AS "prediction"
    FROM "scans" AS r
    """
    model = fitted_model(model)
    names = feature_names_of(model, feature_names)
    return query(model, [column(name) for name in names], names, table, prediction, projection, log_odds)


def query(
    model: Any,
    features: list[str],
    columns: list[str],
    table: str,
    prediction: str = "prediction",
    projection: str = "projection",
    log_odds: str = "log_odds",
) -> str:
    """Return the query of :func:`to_sql` for features that are SQL expressions over the columns of the table."""
    if is_additive(model):
        return additive_sql.query(model, features, columns, table, prediction, log_odds)
    several = len(model.decisions_) > 1
    projections = [f"{projection}{k}" for k in range(len(model.decisions_))] if several else [projection]
    check_names(columns, [*projections, prediction])
    # Written twice: a name given to the sum could be that of a column of the table, which is not known here.
    sums = [weighted_sum(features, weights) for weights in model.coef_.tolist()]
    prefix = unused_prefix(table)
    return "\n".join(
        [
            *([support_tables(model, prefix)] if several else []),
            "SELECT r.*,",
            *(f"  {z} AS {identifier(name)}," for z, name in zip(sums, projections, strict=True)),
            f"  {class_by_odds(model, sums, prefix) if several else _class_by_interval(model, sums[0])}"
            f" AS {identifier(prediction)}",
            f"FROM {identifier(table)} AS r",
        ]
    )


def _class_by_interval(model: MELC, projection: str) -> str:
    """Return the label of the interval that the projection lies in, as a ``CASE`` expression."""
    labels = [literal(label) for label in model.interval_classes_.tolist()]
    below = [
        f"    WHEN z < {literal(t)} THEN {label}" for t, label in zip(model.thresholds_.tolist(), labels, strict=False)
    ]
    cases = ["(SELECT CASE", "    WHEN z IS NULL THEN NULL", *below, f"    ELSE {labels[-1]}"]
    return "\n".join([*cases, f"  END FROM (SELECT {projection} AS z) AS p)"])
