"""A fitted model as a query: the projection as arithmetic, the decision as ``CASE WHEN``."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from melc.classifier import MELC
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

    Parameters
    ----------
    model : MELC
        A fitted model of two classes.
    table : str, default="data"
    feature_names : list of str, default=None
        The columns, in the order of the features; by default the names that the model saw.
    prediction, projection : str
        Names of the columns added.

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
    if len(model.decisions_) > 1:
        raise ValueError(
            f"SQL is written for models of two classes; this one has {len(model.classes_)}. Export it as "
            "ONNX or JSON, or fit one model a class."
        )
    _check_names(columns, prediction, projection)
    weights = model.coef_[0].tolist()
    terms = [f"{feature} * {literal(w)}" for feature, w in zip(features, weights, strict=True)]
    inner = f"SELECT *, {_sum(terms)} AS {_identifier(projection)} FROM {_identifier(table)} AS r"
    z = f"p.{_identifier(projection)}"
    return "\n".join(
        [
            "SELECT *, CASE",
            f"    WHEN {z} IS NULL THEN NULL",
            *_branches(model, z),
            f"  END AS {_identifier(prediction)}",
            f"FROM ({inner}) AS p",
        ]
    )


def _branches(model: MELC, z: str) -> list[str]:
    labels = [literal(label) for label in model.interval_classes_.tolist()]
    below = [
        f"    WHEN {z} < {literal(t)} THEN {label}"
        for t, label in zip(model.thresholds_.tolist(), labels, strict=False)
    ]
    return [*below, f"    ELSE {labels[-1]}"]


def _sum(terms: list[str]) -> str:
    """The terms in pairs of pairs: SQLite takes no chain of more than a thousand, and rounding is less."""
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    halves = (terms[:middle], terms[middle:])
    return "(" + " + ".join(half[0] if len(half) == 1 else _sum(half) for half in halves) + ")"


def _check_names(names: list[str], prediction: str, projection: str) -> None:
    # SQL tells "A" from "a" nowhere.
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        twice = next(name for name in names if folded.count(name.casefold()) > 1)
        raise ValueError(f"The feature {twice!r} occurs twice among the columns (SQL ignores case).")
    for added in (prediction, projection):
        if added.casefold() in folded:
            raise ValueError(
                f"The added column {added!r} is also a feature; choose another name for it by prediction= or "
                "projection=."
            )
    if prediction.casefold() == projection.casefold():
        raise ValueError(f"prediction and projection are both {prediction!r}; they need different names.")


def column(name: str) -> str:
    """A column by its quoted name.

    SQLite takes a quoted name that it does not know for a text; with the table's name before it, it is an error,
    as it should be.
    """
    return f"r.{_identifier(name)}"


def _identifier(name: str) -> str:
    _refuse_nul(name)
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        if not np.isfinite(value):
            raise ValueError(f"{value!r} has no literal in SQL.")
        return repr(value)
    text = str(value)
    _refuse_nul(text)
    return "'" + text.replace("'", "''") + "'"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL character, which SQL cannot hold; rename it.")
