"""A fitted model as a query: the projection as arithmetic, the decision as ``CASE WHEN``."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from melc.classifier import MELC
from melc.export.quoting import column, identifier, literal
from melc.export.sql_odds import class_by_odds, support_tables
from melc.names import feature_names_of


def to_sql(
    model: MELC,
    table: str = "data",
    *,
    feature_names: Any = None,
    prediction: str = "prediction",
    projection: str = "projection",
) -> str:
    """A query that adds projection and predicted class to the rows of a table. It runs on SQLite.

    A row in which a feature is NULL gets NULL. Names and labels are quoted, whatever they contain.

    For two classes it is plain SQL, as fast as the projection. For more, a row that is claimed by no class, or by
    several, costs an exponential for every support point of every class. SQLite (3.35 or newer) then needs its
    mathematical functions, as nearly all builds have them; one without says "no such function: exp".

    Parameters
    ----------
    model : MELC
        A fitted model.
    table : str, default="data"
    feature_names : list of str, default=None
        The columns, in the order of the features; by default the names that the model saw.
    prediction, projection : str
        Names of the columns added, which the table must not have. For more than two classes there is a projection for
        each, in the order of the classes, with a number after its name: ``projection0``, ``projection1``, ...

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import to_sql
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> model = MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> print(to_sql(model, "scans", feature_names=["dose"]))
    SELECT *, CASE
        WHEN p."projection" IS NULL THEN NULL
        WHEN p."projection" < -2.5 THEN 'high'
        ELSE 'low'
      END AS "prediction"
    FROM (SELECT *, (r."dose" * -1.0) AS "projection" FROM "scans" AS r) AS p
    """
    check_is_fitted(model)
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
    """The query for features that are expressions over columns of the table."""
    several = len(model.decisions_) > 1
    projections = [f"{projection}{k}" for k in range(len(model.decisions_))] if several else [projection]
    _check_names(columns, prediction, projections)
    added = [
        f"{_projection(features, weights)} AS {identifier(name)}"
        for name, weights in zip(projections, model.coef_.tolist(), strict=True)
    ]
    z = [f"p.{identifier(name)}" for name in projections]
    prefix = _unlike(table)
    return "\n".join(
        [
            *([support_tables(model, prefix)] if several else []),
            f"SELECT *, {class_by_odds(model, z, prefix) if several else _class_by_interval(model, z[0])}"
            f" AS {identifier(prediction)}",
            f"FROM (SELECT *, {', '.join(added)} FROM {identifier(table)} AS r) AS p",
        ]
    )


def _unlike(table: str) -> str:
    """A beginning for the names of other tables that the table's own name does not have."""
    prefix = "melc"
    while table.casefold().startswith(prefix):
        prefix += "_"
    return prefix


def _projection(features: list[str], weights: list[float]) -> str:
    return _sum([f"{feature} * {literal(w)}" for feature, w in zip(features, weights, strict=True)])


def _class_by_interval(model: MELC, z: str) -> str:
    labels = [literal(label) for label in model.interval_classes_.tolist()]
    below = [
        f"    WHEN {z} < {literal(t)} THEN {label}"
        for t, label in zip(model.thresholds_.tolist(), labels, strict=False)
    ]
    return "\n".join(["CASE", f"    WHEN {z} IS NULL THEN NULL", *below, f"    ELSE {labels[-1]}", "  END"])


def _sum(terms: list[str]) -> str:
    """The terms in pairs of pairs: SQLite takes no chain of more than a thousand, and rounding is less."""
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    halves = (terms[:middle], terms[middle:])
    return "(" + " + ".join(half[0] if len(half) == 1 else _sum(half) for half in halves) + ")"


def _check_names(names: list[str], prediction: str, projections: list[str]) -> None:
    # SQL tells "A" from "a" nowhere.
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        twice = next(name for name in names if folded.count(name.casefold()) > 1)
        raise ValueError(f"The feature {twice!r} occurs twice among the columns (SQL ignores case).")
    for added in (prediction, *projections):
        if added.casefold() in folded:
            raise ValueError(
                f"The added column {added!r} is also a feature; choose another name for it by prediction= or "
                "projection=."
            )
    if prediction.casefold() in [name.casefold() for name in projections]:
        raise ValueError(f"prediction and projection are both {prediction!r}; they need different names.")
