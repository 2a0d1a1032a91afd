"""The X of a user, checked: a matrix of numbers, or the columns of a table with labels and missing values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite, check_X_y
from sklearn.utils.validation import validate_data

from melc.data.frames import (
    Column,
    LabelColumn,
    NumberColumn,
    has_numbers_only,
    is_frame,
    names_of_columns,
    read_columns,
)
from melc.model.columns import check_finite

_PASS_A_FRAME = "Pass a pandas or polars frame, whose columns may be texts, dates and categories."
_CHECKS = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}


@dataclass(frozen=True)
class Table:
    """Training rows: a matrix of numbers without missing values, or columns with their names."""

    matrix: Any = None
    columns: list[Column] | None = None
    names: Sequence[str] = ()

    @property
    def n_bytes(self) -> int:
        """The size of the numbers in memory."""
        if self.columns is not None:
            return sum(8 * len(_values(column)) for column in self.columns)
        return int((self.matrix.data if sparse.issparse(self.matrix) else self.matrix).nbytes)

    def rows(self, chosen: NDArray[np.bool_]) -> "Table":
        """Return some of the rows."""
        if self.columns is None:
            return Table(self.matrix[chosen])
        return Table(columns=[_chosen(column, chosen) for column in self.columns], names=self.names)


def training_table(model: Any, X: Any, y: Any) -> tuple[Table, NDArray[Any]]:
    """Check the training data of a model, and return its rows and labels."""
    wanted = model.categorical_features
    if is_frame(X) and (wanted is not None or not has_numbers_only(X)):
        validate_data(model, X, skip_check_array=True)
        names = [str(name) for name in names_of_columns(X)]
        columns = read_columns(X, _categorical(wanted, names_of_columns(X)))
        check_finite(columns, names)
        _, y = check_X_y(np.zeros((len(X), 1)), y, ensure_min_samples=2)
        return Table(columns=columns, names=names), y
    try:
        X, y = validate_data(model, X, y, ensure_min_samples=2, **_CHECKS)
        has_missing = False
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"X is an array that holds texts ({error}). {_PASS_A_FRAME}") from None
        if "NaN" not in str(error) or sparse.issparse(X):
            raise
        X, y = validate_data(model, X, y, ensure_min_samples=2, ensure_all_finite="allow-nan", **_CHECKS)
        has_missing = True
    if not has_missing and wanted is None:
        return Table(X), y
    if sparse.issparse(X):
        raise ValueError("categorical_features need a dense array or a frame, but X is sparse. Use X.toarray().")
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
    return Table(columns=read_columns(X, _categorical(wanted, list(names))), names=list(names)), y


def _categorical(wanted: Any, names: Sequence[Any]) -> list[bool]:
    """Return which columns are categories, whatever their type: ``categorical_features`` as a list of truth values."""
    if wanted is None:
        return [False] * len(names)
    listed = list(wanted)
    if listed and all(isinstance(each, bool | np.bool_) for each in listed):
        if len(listed) != len(names):
            raise ValueError(
                f"categorical_features has {len(listed)} truth values, but X has {len(names)} columns. Give one for "
                "each column, or the names of the categorical ones."
            )
        return [bool(each) for each in listed]
    chosen = set()
    for each in listed:
        if each in names:
            chosen.add(list(names).index(each))
        elif isinstance(each, int | np.integer) and 0 <= each < len(names):
            chosen.add(int(each))
        else:
            raise ValueError(
                f"categorical_features names {each!r}, which is no column of X. Its columns are {list(names)[:10]}."
            )
    return [j in chosen for j in range(len(names))]


def coded_rows(model: Any, X: Any) -> Any:
    """Check the rows that a fitted model is asked about, and return them coded: see :mod:`melc.model.columns`.

    Infinity is refused. Sparse rows stay sparse; they hold numbers only.
    """
    columns = model.columns_
    if columns.are_numbers and not (is_frame(X) and not has_numbers_only(X)):
        return validate_data(model, X, reset=False, ensure_all_finite=False, **_CHECKS)
    if not is_frame(X):
        X = validate_data(model, X, reset=False, ensure_all_finite="allow-nan", dtype=np.float64)
    else:
        validate_data(model, X, reset=False, skip_check_array=True)
    names = [str(name) for name in getattr(model, "feature_names_in_", range(X.shape[1]))]
    read = read_columns(X, [j in columns.categories for j in range(X.shape[1])])
    check_finite(read, names)
    return columns.coded(read, names)


def check_no_infinity(coded: Any) -> None:
    """Raise an error if a matrix holds infinity; a sparse one must not hold NaN either."""
    assert_all_finite(coded, allow_nan=not sparse.issparse(coded), input_name="X")


def _values(column: Column) -> NDArray[Any]:
    return column.values if isinstance(column, NumberColumn) else column.codes


def _chosen(column: Column, rows: NDArray[np.bool_]) -> Column:
    """Return some rows of a column; of labels, those that remain."""
    if isinstance(column, NumberColumn):
        return NumberColumn(column.values[rows], column.is_date)
    codes = column.codes[rows]
    if column.ordered:
        return LabelColumn(codes, column.labels, ordered=True)
    found, numbers = np.unique(codes, return_inverse=True)
    first = int(found[0] < 0)  # missing is −1
    return LabelColumn(numbers - first, tuple(column.labels[code] for code in found[first:]))
