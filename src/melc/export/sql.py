"""Export of a fitted model as an SQL query: the projection as arithmetic, the decision as ``CASE WHEN``."""

from typing import Any

from melc.classifier import MELC
from melc.export.quoting import column, identifier, literal
from melc.export.sql_odds import class_by_odds, support_tables
from melc.model.names import feature_names_of
from melc.model.units import fitted_model


def to_sql(
    model: Any,
    table: str = "data",
    *,
    feature_names: Any = None,
    prediction: str = "prediction",
    projection: str = "projection",
) -> str:
    """Return an SQL query that adds the projection and the predicted class to the rows of a table.

    The query runs on SQLite, DuckDB and PostgreSQL. The prediction is NULL where a feature is NULL. Names and labels
    are quoted, so they may contain any character except NUL.

    With two classes the query is plain arithmetic and fast. With more, a row that lies in the intervals of no class or
    of several needs one exponential for every support point of every class. SQLite must then be 3.35 or newer and have
    its mathematical functions, as nearly all builds do; otherwise it reports "no such function: exp". PostgreSQL must
    be 12 or newer.

    Parameters
    ----------
    model : MELC, Pipeline or fitted search
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
        the order of ``classes_``: ``projection0``, ``projection1``, ...

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
    return query(model, [column(name) for name in names], names, table, prediction, projection)


def query(
    model: MELC,
    features: list[str],
    columns: list[str],
    table: str,
    prediction: str = "prediction",
    projection: str = "projection",
) -> str:
    """Return the query of :func:`to_sql` for features that are SQL expressions over the columns of the table."""
    several = len(model.decisions_) > 1
    projections = [f"{projection}{k}" for k in range(len(model.decisions_))] if several else [projection]
    _check_names(columns, prediction, projections)
    # Written twice: a name given to the sum could be that of a column of the table, which is not known here.
    sums = [_weighted_sum(features, weights) for weights in model.coef_.tolist()]
    prefix = _unused_prefix(table)
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


def _unused_prefix(table: str) -> str:
    """Return a prefix for the names of auxiliary tables with which the name of the table does not begin."""
    prefix = "melc"
    while table.casefold().startswith(prefix):
        prefix += "_"
    return prefix


def _weighted_sum(features: list[str], weights: list[float]) -> str:
    """Return the expression of Σ_j weight_j feature_j, as a float even if the features are integers or decimals."""
    summands = [f"{feature} * {literal(w)}" for feature, w in zip(features, weights, strict=True)]
    return f"CAST({_sum(summands)} AS DOUBLE PRECISION)"


def _class_by_interval(model: MELC, projection: str) -> str:
    """Return the label of the interval that the projection lies in, as a ``CASE`` expression."""
    labels = [literal(label) for label in model.interval_classes_.tolist()]
    below = [
        f"    WHEN z < {literal(t)} THEN {label}" for t, label in zip(model.thresholds_.tolist(), labels, strict=False)
    ]
    cases = ["(SELECT CASE", "    WHEN z IS NULL THEN NULL", *below, f"    ELSE {labels[-1]}"]
    return "\n".join([*cases, f"  END FROM (SELECT {projection} AS z) AS p)"])


def _sum(terms: list[str]) -> str:
    """Return the sum of the terms, split into halves again and again.

    SQLite refuses a chain of more than 1000 terms, and this order has smaller rounding errors.
    """
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    halves = (terms[:middle], terms[middle:])
    return "(" + " + ".join(half[0] if len(half) == 1 else _sum(half) for half in halves) + ")"


def _check_names(names: list[str], prediction: str, projections: list[str]) -> None:
    """Raise ``ValueError`` if two columns of the result would have the same name; SQL ignores case."""
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        twice = next(name for name in names if folded.count(name.casefold()) > 1)
        raise ValueError(f"The feature name {twice!r} occurs twice (SQL ignores case); rename one of them.")
    for added in (prediction, *projections):
        if added.casefold() in folded:
            raise ValueError(
                f"The added column {added!r} is also a feature; choose another name with prediction= or projection=."
            )
    if prediction.casefold() in [name.casefold() for name in projections]:
        raise ValueError(f"prediction and projection are both named {prediction!r}; choose different names.")
