"""Columns of tables as they come: numbers, dates and labels, from pandas and polars frames or arrays.

This is the only module that knows pandas and polars; it imports neither unless a frame of it is given.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats

# A label of a category. Other kinds (dates, intervals) become texts.
Label = str | int | float | bool
_LABEL_TYPES = str, int, float, bool
# The code of a missing label.
MISSING = -1

_NUMBERS = {"integer", "floating", "mixed-integer-float", "decimal"}
_DATES = {"date", "datetime", "datetime64"}
MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class NumberColumn:
    """Numbers, shape (n,), NaN where they are missing. Dates and durations are numbers of days (since 1970)."""

    values: Floats
    is_date: bool = False


@dataclass(frozen=True)
class LabelColumn:
    """Labels by number: ``labels[codes]``, shape (n,), with code −1 where they are missing. ``ordered`` ones ascend."""

    codes: NDArray[np.int64]
    labels: tuple[Label, ...]
    ordered: bool = False


Column = NumberColumn | LabelColumn


def is_frame(X: Any) -> bool:
    """Return whether X is a pandas or polars frame."""
    return _is_pandas(X) or _is_polars(X)


def has_numbers_only(X: Any) -> bool:
    """Return whether all columns of a frame have numeric types, so that it is a matrix with names."""
    if _is_polars(X):
        return all(dtype.is_numeric() for dtype in X.dtypes)
    return all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in X.dtypes)


def read_columns(X: Any, categorical: Sequence[bool]) -> list[Column]:
    """Return the columns of a frame or of a matrix of numbers.

    Columns that are ``categorical`` become labels, whatever their type.
    """
    if not is_frame(X):
        return [_number_or_label(X[:, j], each) for j, each in enumerate(categorical)]
    if _is_polars(X):
        return [_polars_column(X[:, j], each) for j, each in enumerate(categorical)]
    return [_pandas_column(X.iloc[:, j], each) for j, each in enumerate(categorical)]


def rows_of(X: Any, index: NDArray[np.integer]) -> Any:
    """Return some rows of a frame or matrix, by their indices."""
    return X.iloc[index] if _is_pandas(X) else X[index]


def _is_pandas(X: Any) -> bool:
    return "pandas" in sys.modules and isinstance(X, sys.modules["pandas"].DataFrame)


def _is_polars(X: Any) -> bool:
    return "polars" in sys.modules and isinstance(X, sys.modules["polars"].DataFrame)


def _number_or_label(values: Any, categorical: bool) -> Column:
    numbers = np.asarray(values, dtype=np.float64)
    return _labels_of_numbers(numbers) if categorical else NumberColumn(numbers)


def _labels_of_numbers(numbers: Floats) -> LabelColumn:
    """Return numbers as labels; whole ones become integers, as they are in a table without missing values."""
    if np.isinf(numbers).any():
        raise ValueError(
            "Input X contains infinity: a categorical feature holds it. Replace it by a number, or by NaN."
        )
    known, codes = np.unique(numbers, return_inverse=True)  # NaN is the last, if there is one
    labels = [int(value) if value == np.floor(value) else float(value) for value in known[~np.isnan(known)]]
    return LabelColumn(np.where(np.isnan(numbers), MISSING, codes), tuple(labels))


# ------------------------------------------------------------------------------------------------------------- pandas


def _pandas_column(series: Any, categorical: bool) -> Column:
    import pandas as pd  # installed, because X is a pandas frame

    types, dtype = pd.api.types, series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _of_categories(series.cat.codes.to_numpy(), series.cat.categories.tolist(), series.cat.ordered)
    if types.is_bool_dtype(dtype):
        return _factorized(series)
    if types.is_numeric_dtype(dtype):
        _check_real(dtype.kind, series.name)
        return _number_or_label(series.to_numpy(dtype=np.float64, na_value=np.nan), categorical)
    if types.is_datetime64_any_dtype(dtype):
        return NumberColumn(_days_of(series.to_numpy(dtype="datetime64[us]")), is_date=True)
    if types.is_timedelta64_dtype(dtype):
        return NumberColumn(_days_of(series.to_numpy(dtype="timedelta64[us]")))
    return _object_column(series, categorical)


def _object_column(series: Any, categorical: bool) -> Column:
    """Return a column of texts, or of Python objects that may be numbers or dates."""
    import pandas as pd

    content = pd.api.types.infer_dtype(series, skipna=True)
    if content in _NUMBERS:
        return _number_or_label(pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan), categorical)
    if content in _DATES:
        return NumberColumn(_days_of(pd.to_datetime(series, utc=True).to_numpy(dtype="datetime64[us]")), is_date=True)
    return _factorized(series)


def _days_of(times: NDArray[Any]) -> Floats:
    """Return times, since 1970 if they are dates, as numbers of days; NaN where they are missing."""
    numbers = times.astype(np.int64) / MICROSECONDS_PER_DAY
    return np.where(np.isnat(times), np.nan, numbers)


def _factorized(series: Any) -> LabelColumn:
    try:
        codes, labels = series.factorize()
    except TypeError:
        example = next(each for each in series if not isinstance(each, _LABEL_TYPES))
        raise ValueError(
            f"Column {series.name!r} holds {type(example).__name__} objects, which are neither numbers, dates nor "
            "texts. Drop the column, or convert it to numbers or texts."
        ) from None
    return LabelColumn(np.asarray(codes, dtype=np.int64), _as_labels(labels.tolist()))


def _of_categories(codes: NDArray[Any], labels: list[Any], ordered: bool) -> LabelColumn:
    """Return a categorical column: all labels if it is ordered, otherwise those that occur."""
    codes = codes.astype(np.int64)
    if ordered:
        return LabelColumn(codes, _as_labels(labels), ordered=True)
    found = np.unique(codes[codes != MISSING])
    known = codes != MISSING
    codes[known] = np.searchsorted(found, codes[known])
    return LabelColumn(codes, _as_labels([labels[code] for code in found]))


def _as_labels(values: list[Any]) -> tuple[Label, ...]:
    return tuple(value if isinstance(value, _LABEL_TYPES) else str(value) for value in values)


def _check_real(kind: str, name: Any) -> None:
    if kind == "c":
        raise ValueError(f"Column {name!r} holds complex numbers. Split them into real and imaginary parts.")


# ------------------------------------------------------------------------------------------------------------- polars


def _polars_column(series: Any, categorical: bool) -> Column:
    import polars as pl  # installed, because X is a polars frame

    dtype = series.dtype
    if dtype.is_numeric():
        return _number_or_label(series.cast(pl.Float64).to_numpy(), categorical)
    if dtype in (pl.Date, pl.Datetime):
        stamps = series.cast(pl.Datetime("us")).dt.timestamp("us")
        return NumberColumn(_polars_days(stamps), is_date=True)
    if dtype == pl.Duration:
        return NumberColumn(_polars_days(series.dt.total_microseconds()))
    if dtype == pl.Boolean:
        numbers = series.cast(pl.Float64).to_numpy()
        codes = np.where(np.isnan(numbers), MISSING, np.nan_to_num(numbers)).astype(np.int64)
        return LabelColumn(codes, (False, True))
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        texts = series.cast(pl.String)
        labels = texts.drop_nulls().unique().sort().to_list()
        codes = texts.cast(pl.Enum(labels)).to_physical().cast(pl.Int64).fill_null(MISSING)
        return LabelColumn(codes.to_numpy(), tuple(labels))
    raise ValueError(
        f"Column {series.name!r} has the type {dtype}, which is neither a number, a date nor a text. Drop the column, "
        "or convert it to numbers or texts."
    )


def _polars_days(microseconds: Any) -> Floats:
    import polars as pl

    return np.asarray(microseconds.cast(pl.Float64).to_numpy() / MICROSECONDS_PER_DAY)
