"""The user's data as checked, labelled rows: from a matrix of numbers, or a table with labels and missing values.

Data in memory are the general case. Any other storage is an entry of ``STORAGES``: how its data are recognised, and how
they become rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite, check_X_y
from sklearn.utils.validation import validate_data

from melc._sklearn import check_no_masks, check_weights, n_threads_for
from melc.arrays import Floats
from melc.data.dask import collections as dask_collections
from melc.data.frames import (
    Column,
    LabelColumn,
    NumberColumn,
    has_numbers_only,
    is_frame,
    read_columns,
)
from melc.data.hashing import Hashes, RowHashes, merge_equal_rows
from melc.data.memory import MemoryRows
from melc.data.source import Collected, Rows
from melc.fit import validation
from melc.fit.advice import warn_of_weights
from melc.fit.columns import Design, learn_columns
from melc.fit.search import MANY_ROWS
from melc.model.columns import Columns, check_finite
from melc.sums import SUMS

_PASS_A_FRAME = "Pass a pandas or polars frame, whose columns may be texts, dates and categories."
_CHECKS = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}

# Matrices with up to this many elements are made dense, and stored row by row.
_WORTH_DENSE = 1 << 22


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
            return sum((c.values if isinstance(c, NumberColumn) else c.codes).nbytes for c in self.columns)
        return int((self.matrix.data if sparse.issparse(self.matrix) else self.matrix).nbytes)

    def rows(self, chosen: NDArray[np.bool_]) -> "Table":
        """Return a table of the rows at which ``chosen``, of shape (n,), is True."""
        if self.columns is None:
            return Table(self.matrix[chosen])
        return Table(columns=[_chosen(column, chosen) for column in self.columns], names=self.names)


def training_table(model: Any, X: Any, y: Any) -> tuple[Table, NDArray[Any]]:
    """Check the training data of a model, and return its rows and labels."""
    validation.check_labels(y)
    check_no_masks(X)
    wanted = model.categorical_features
    if is_frame(X) and (wanted is not None or not has_numbers_only(X)):
        validate_data(model, X, skip_check_array=True)
        names = [str(name) for name in X.columns]
        columns = read_columns(X, _categorical(wanted, list(X.columns)))
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
                f"categorical_features names {each!r}, which is not a column of X. Its columns are {list(names)[:10]}."
            )
    return [j in chosen for j in range(len(names))]


def coded_rows(model: Any, X: Any) -> Any:
    """Check the rows that a fitted model is asked about, and return them coded: see :mod:`melc.model.columns`.

    Infinity is refused. Sparse rows stay sparse; they hold numbers only.
    """
    check_no_masks(X)
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


def _chosen(column: Column, rows: NDArray[np.bool_]) -> Column:
    """Return the chosen rows of a column, and of an unordered one only the labels that they have."""
    if isinstance(column, NumberColumn):
        return NumberColumn(column.values[rows], column.is_date)
    codes = column.codes[rows]
    if column.ordered:
        return LabelColumn(codes, column.labels, ordered=True)
    found, numbers = np.unique(codes, return_inverse=True)
    first = int(found[0] < 0)  # missing is −1
    return LabelColumn(numbers - first, tuple(column.labels[code] for code in found[first:]))


@dataclass(frozen=True)
class Labelled:
    """Rows with class numbers as codes, the labels, the total weight of each class, and what the columns hold.

    ``design`` says which columns the rows have: the quantities of the table's columns, and axes of single ones.
    """

    rows: Rows
    classes: NDArray[Any]
    totals: Floats
    columns: Columns
    design: Design


@dataclass(frozen=True)
class Storage:
    """Data that are not in memory.

    ``holds(X, y, sample_weight)`` recognises them. ``collect(model, X, y, sample_weight, few)`` returns the rows and
    their classes, or None if ``few(n_rows, n_features)`` says that they belong in memory; ``gather(X, y,
    sample_weight)`` then brings them there.
    """

    holds: Callable[..., bool]
    collect: Callable[..., Collected | None]
    gather: Callable[..., tuple[Any, Any, Any]]


STORAGES = [Storage(dask_collections.is_lazy, dask_collections.collect, dask_collections.gather)]


def labelled_rows(model: Any, X: Any, y: Any, sample_weight: Any, with_axes: bool = False) -> Labelled:
    """Return the checked rows, their classes and columns, wherever the data are.

    If ``with_axes``, the rows have the axes of single columns as well.
    """
    for storage in STORAGES:
        if storage.holds(X, y, sample_weight):
            data = storage.collect(model, X, y, sample_weight, _belong_in_memory)
            if data is not None:
                return _checked_classes(model, data)
            X, y, sample_weight = storage.gather(X, y, sample_weight)
    return _labelled_in_memory(model, X, y, sample_weight, with_axes)


def _belong_in_memory(n_rows: int, n_features: int) -> bool:
    """Return whether data are so small that a cluster would only slow the fit down."""
    return n_rows <= MANY_ROWS or n_rows * n_features <= validation.MOST_SORTED_NUMBERS


def _checked_classes(model: Any, data: Collected) -> Labelled:
    method = getattr(model, "method", None)  # the additive classifier has none
    if method is not None and not SUMS[method].distributes:
        others = " or ".join(f'method="{name}"' for name in SUMS if SUMS[name].distributes)
        raise ValueError(
            f"method={method!r} needs all projections in one place. Use {others}, or bring the data into memory: "
            "X, y = dask.compute(X, y)"
        )
    n_rows = int(data.counts.sum())
    validation.check_number_of_classes(len(data.classes), n_rows, 8 * n_rows * data.rows.n_features)
    validation.check_classes(data.classes, data.counts, data.totals)
    warn_of_weights(data.classes, data.counts, data.totals)
    validation.check_varies(data.varies, n_rows, data.rows.n_features)
    return Labelled(data.rows, data.classes, data.totals, Columns(), Design(data.rows.n_features))


def _labelled_in_memory(model: Any, X: Any, y: Any, sample_weight: Any, with_axes: bool) -> Labelled:
    table, y = training_table(model, X, y)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, len(y))
        if not np.all(weights):
            table, y, weights = table.rows(weights > 0), y[weights > 0], weights[weights > 0]
    classes = validation.labels_in(y, table.n_bytes)
    index = validation.class_numbers(y, classes)
    counts, totals = validation.counts_and_totals(index, weights, len(classes))
    validation.check_classes(classes, counts, totals)
    if weights is not None:
        squares = None
        if not validation.are_counts(weights):
            _, squares = validation.counts_and_totals(index, weights**2, len(classes))
        warn_of_weights(classes, counts, totals, squares)
    X, columns, design, known = _as_matrix(model, table, index, weights, len(classes), with_axes)
    validation.check_varies(validation.varies(X), *X.shape)
    X, index, weights, hashes = _canonical(X, index, weights, design.n_columns, known)
    # Summed again in the canonical order, so that the totals are the same to the last bit for any order of rows.
    _, totals = validation.counts_and_totals(index, weights, len(classes))
    rows = MemoryRows(X, index, weights, n_threads_for(model.n_jobs), hashes=hashes)
    return Labelled(rows, classes, totals, columns, design)


def _as_matrix(
    model: Any, table: Table, index: NDArray[Any], weights: Floats | None, n_classes: int, with_axes: bool
) -> tuple[Any, Columns, Design, Hashes | None]:
    """Return the rows of a table as a matrix of numbers, what the table's columns hold, and the matrix's columns.

    The last item is the hashes of the rows, if they are not those of the matrix.
    """
    if table.columns is not None:
        whole_scores = getattr(model, "whole_weights", None) is not None
        limit = getattr(model, "max_features", None)
        of_all = limit is None or limit >= len(table.columns)
        one_direction = of_all and not with_axes and not whole_scores
        learned = learn_columns(table.columns, table.names, index, weights, n_classes, whole_scores, one_direction)
        design = learned.design() if with_axes else Design(len(table.columns))
        return learned.matrix(design), learned.columns, design, learned.hashes
    X = table.matrix
    if X.shape[0] * X.shape[1] <= _WORTH_DENSE:  # one memory layout, so that fits agree to the last bit
        X = X.toarray(order="C") if sparse.issparse(X) else np.ascontiguousarray(X)
    return X, Columns(), Design(X.shape[1]), None


def _canonical(
    X: Any, index: NDArray[Any], weights: Floats | None, n_columns: int, known: Hashes | None
) -> tuple[Any, NDArray[Any], Floats | None, RowHashes]:
    """Return the rows without repetitions, and their hashes.

    Small data are also sorted by their contents, so that the order of the rows does not matter; of larger data only
    samples are sorted, later on. Data of more than four million elements are returned unchanged. ``n_columns`` are the
    columns of the table: data do not count as larger because the matrix has more.
    """
    if X.shape[0] * n_columns <= validation.MOST_SORTED_NUMBERS:
        X, index, weights = validation.canonical(X, index, weights)
        return X, index, weights, RowHashes(X, weights, canonical=True)
    distinct = X.shape[0] * X.shape[1] <= _WORTH_DENSE
    if distinct:
        X, index, weights, known = merge_equal_rows(X, index, weights, MANY_ROWS, known)
        if X.shape[0] * n_columns <= validation.MOST_SORTED_NUMBERS:
            return _canonical(X, index, weights, n_columns, known)
    canonical = distinct and len(index) <= MANY_ROWS
    return X, index, weights, RowHashes(X, weights, distinct, canonical, known)
