"""Columns that do not belong in a model: those that alone tell the class of every row."""

import shlex
from typing import Any

import numpy as np
from numpy.typing import NDArray

# So few rows prove nothing.
_FEWEST_ROWS, _FEWEST_OF_A_CLASS = 20, 5
# Rows that a column is tried on before all are.
_ROWS_TO_TRY = 10_000
_MOST_NAMED = 3


def deciding_columns(X: Any, codes: NDArray[Any]) -> list[str]:
    """Return the columns of a frame each of which alone tells the class of every row, as a copy of the target does.

    Either every value occurs in one class only, or one cut for each further class divides the sorted values.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> codes = np.arange(40) % 2
    >>> deciding_columns(pd.DataFrame({"x": np.arange(40) % 7, "copy": np.where(codes, "yes", "no")}), codes)
    ['copy']
    """
    sizes = np.bincount(codes)
    if len(codes) < _FEWEST_ROWS or sizes[sizes > 0].min() < _FEWEST_OF_A_CLASS:
        return []
    some = slice(None, None, max(1, len(codes) // _ROWS_TO_TRY))
    return [
        name for name in X if _decides(X[name].iloc[some], codes[some]) and _decides(X[name], codes)
    ]  # most columns need a look at some rows only


def said_of_deciding(names: list[str]) -> str:
    """Return a warning about columns that alone tell the class of every row."""
    shown = ", ".join(map(repr, names[:_MOST_NAMED])) + (f" and {len(names) - _MOST_NAMED} more") * (
        len(names) > _MOST_NAMED
    )
    columns = f"The column {shown} alone tells" if len(names) == 1 else f"Each of the columns {shown} alone tells"
    return (
        f"{columns} the class of every row. If it is not known when a class is to be predicted, leave it out with "
        f"{shlex.join(['--drop', names[0]])}."
    )


def _decides(column: Any, codes: NDArray[Any]) -> bool:
    """Whether a column tells the class of the rows in which it is there, if it is in most."""
    import pandas as pd

    levels, different = pd.factorize(column, sort=column.dtype != "category")
    there = levels >= 0
    levels, codes = levels[there], codes[there]
    if len(levels) < len(there) / 2 or len(different) < 2:
        return False
    order = np.argsort(levels, kind="stable")
    by_value = codes[order]
    changes = np.flatnonzero(np.diff(by_value))
    at_ties = np.diff(levels[order])[changes] == 0
    if at_ties.any():  # a value that occurs in two classes
        return False
    return len(different) <= len(levels) / 10 or len(changes) == len(np.unique(codes)) - 1
