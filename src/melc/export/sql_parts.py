"""Sums and names in SQL queries."""

from melc.export.quoting import literal


def weighted_sum(features: list[str], weights: list[float]) -> str:
    """Return the expression of Σ_j weight_j feature_j, as a float even if the features are integers or decimals."""
    summands = [f"{feature} * {literal(w)}" for feature, w in zip(features, weights, strict=True)]
    return f"CAST({sum_of(summands)} AS DOUBLE PRECISION)"


def sum_of(terms: list[str]) -> str:
    """Return the sum of the terms, split into halves again and again.

    SQLite refuses a chain of more than 1000 terms, and this order has smaller rounding errors.
    """
    if len(terms) == 1:
        return f"({terms[0]})"
    middle = len(terms) // 2
    halves = (terms[:middle], terms[middle:])
    return "(" + " + ".join(half[0] if len(half) == 1 else sum_of(half) for half in halves) + ")"


def unused_prefix(table: str) -> str:
    """Return a prefix for the names of auxiliary tables with which the name of the table does not begin."""
    prefix = "melc"
    while table.casefold().startswith(prefix):
        prefix += "_"
    return prefix


def check_names(names: list[str], added: list[str]) -> None:
    """Raise ``ValueError`` if two features, or a feature and an added column, have the same name; SQL ignores case."""
    folded = [name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        twice = next(name for name in names if folded.count(name.casefold()) > 1)
        raise ValueError(f"The feature name {twice!r} occurs twice (SQL ignores case); rename one of them.")
    seen: set[str] = set()
    for name in added:
        if name.casefold() in folded:
            raise ValueError(
                f"The added column {name!r} is also a feature; choose another name with prediction=, projection= or "
                "log_odds=."
            )
        if name.casefold() in seen:
            raise ValueError(f"Two of the added columns are both named {name!r}; choose different names.")
        seen.add(name.casefold())
