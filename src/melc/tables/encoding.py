"""Encoding of the columns of a table as a numeric matrix.

Columns of numbers are used as they are, and dates as the number of days since 1970-01-01. A text column is one-hot
encoded: one feature of zeros and ones per category, except for the most frequent one, the reference. (With a feature
for every category, a constant could be added to all of their weights without changing the model.) An encoding is plain
data and can be stored with a model.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.export.reading import Reader
from melc.tables.csv_files import Kind
from melc.tables.source import TableError, arrow
from melc.tables.survey import Survey, days_of, finite, note_dates


@dataclass(frozen=True)
class Column:
    """One column: its categories if it is a text column, and the value that replaces missing values, if any.

    A column of dates is read as text and used as a number; its ``fill`` is a number of days. The first category is the
    reference and has no feature: all features of the column are zero for it, and for values that are not among the
    categories.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    is_date: bool = False

    @property
    def kind(self) -> Kind:
        """Whether the column is read as numbers or text."""
        return "number" if self.categories is None and not self.is_date else "text"

    @property
    def shown_categories(self) -> tuple[str, ...]:
        """Categories that have a feature: all but the reference."""
        return (self.categories or ())[1:]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features: the column name, or "column=category" for text."""
        if self.is_date:
            return [f"{self.name} in days since 1970-01-01"]
        return [self.name] if self.categories is None else [f"{self.name}={c}" for c in self.shown_categories]


@dataclass(frozen=True)
class Encoded:
    """Features of a block, shape (n_rows, n_features), and the number of unknown values per text column."""

    X: Floats
    n_unseen: dict[str, int]


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table are turned into features.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from melc.tables import learn_encoding
    >>> table = pa.table({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    >>> encoding = learn_encoding(table, table.column_names)
    >>> encoding.feature_names
    ['size', 'colour=blue']
    >>> encoding.encode(table).X
    array([[1., 0.],
           [2., 1.],
           [3., 0.]])
    """

    columns: tuple[Column, ...]

    @property
    def feature_names(self) -> list[str]:
        """Names of all features, in order."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def kinds(self) -> dict[str, Kind]:
        """Columns that are needed, and whether each is read as numbers or text."""
        return {column.name: column.kind for column in self.columns}

    def framed(self, X: Floats) -> Any:
        """Return features as a data frame, without a copy, so that warnings of a fit name them."""
        import pandas as pd

        return pd.DataFrame(X, columns=self.feature_names, copy=False)

    def encode(self, block: Any, *, missing_as_nan: bool = False) -> Encoded:
        """Return the features of the rows of a block; raise ``TableError`` for infinite or unfilled missing values.

        With ``missing_as_nan`` missing numbers become NaN.
        """
        X = np.empty((block.num_rows, len(self.feature_names)))
        n_unseen: dict[str, int] = {}
        place = 0
        for column in self.columns:
            values = _dates(block.column(column.name), column) if column.is_date else block.column(column.name)
            if column.fill is not None:
                values = values.fill_null(column.fill)
            if column.categories is None and missing_as_nan:
                finite(values.drop_null(), column.name)
                X[:, place] = values.to_numpy(zero_copy_only=False)
                place += 1
                continue
            refuse_missing({column.name: values.null_count}, block.num_rows)
            if column.categories is None:
                X[:, place] = finite(values, column.name)
            else:
                unseen = _one_hot(values, column, X[:, place : place + len(column.shown_categories)])
                n_unseen |= {column.name: unseen} if unseen else {}
            place += len(column.feature_names)
        return Encoded(X, n_unseen)


def learn_encoding(
    table: Any, names: Iterable[str], *, impute: bool = False, kinds_of: Encoding | None = None
) -> Encoding:
    """Return the encoding of the named columns of a ``pyarrow.Table``.

    What the columns hold, numbers, dates or categories, is learned too, and columns that are most likely misread are
    refused; with ``kinds_of`` it is taken from the encoding of a larger table.

    With ``impute`` missing numbers are replaced by the median and missing text by the most frequent value. Without it,
    missing values raise a ``TableError``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from melc.tables import learn_encoding
    >>> table = pa.table({"size": [1.0, None, 4.0], "colour": ["red", "blue", "red"]})
    >>> learn_encoding(table, ["size", "colour"], impute=True).feature_names
    ['size', 'colour=blue']
    """
    names = list(names)
    if not names:
        raise TableError("No columns are left to use as features; leave out fewer with --drop.")
    empty = [name for name in names if table.column(name).null_count == table.num_rows]
    if empty:
        raise TableError(f"The column {empty[0]!r} has no values; leave it out with --drop.")
    if not impute:
        refuse_missing({name: table.column(name).null_count for name in names}, table.num_rows)
    known = {} if kinds_of is None else {column.name: column for column in kinds_of.columns}
    return encoding_of([_learn_column(table.column(name), name, impute, known.get(name)) for name in names])


def encoding_of(columns: list[Column]) -> Encoding:
    """Return the encoding of columns; raise ``TableError`` if they have no features."""
    encoding = Encoding(tuple(columns))
    if not encoding.feature_names:
        raise TableError("Every column has the same text in all rows: there is nothing to separate the classes by.")
    return encoding


def _learn_column(values: Any, name: str, impute: bool, known: Column | None) -> Column:
    """Return the encoding of one column. What it holds is taken from ``known``, if given."""
    survey = Survey(name)
    survey.add(values)
    column = column_of(survey, impute, known)
    if not impute or column.categories is not None:
        return column
    known = values.drop_null()
    numbers = finite(_dates(known, column) if column.is_date else known, name)
    return replace(column, fill=float(np.median(numbers)))


def column_of(survey: Survey, impute: bool, known: Column | None = None) -> Column:
    """Return the encoding of a surveyed column; the ``fill`` of a column of numbers is left to the caller."""
    if survey.holds_numbers:
        return Column(survey.name)
    if known is None and survey.holds_dates:
        note_dates(survey.name)
    if survey.holds_dates if known is None else known.is_date:
        return Column(survey.name, is_date=True)
    if known is None:
        survey.refuse_misread_texts()
    categories = survey.categories()
    return Column(survey.name, categories, categories[0] if impute else None)


def _dates(values: Any, column: Column) -> Any:
    """Return a column of dates as days since 1970-01-01, an Arrow array of doubles."""
    days = days_of(values)
    if days is None:
        wrong = next(text for text in values.to_pylist() if text is not None and days_of(arrow().array([text])) is None)
        raise TableError(f"The column {column.name!r} contains {wrong!r}; dates must be written as 2024-12-31.")
    return days


def refuse_missing(counts: dict[str, int], n_rows: int) -> None:
    """Raise ``TableError`` if a column has missing values; ``counts`` has their number per column."""
    found = [f"{name!r} ({count} of {n_rows})" for name, count in counts.items() if count]
    if found:
        more = f" and {len(found) - 5} more columns" if len(found) > 5 else ""
        raise TableError(
            f"Values are missing in {', '.join(found[:5])}{more}. Fill them in, leave the column out with --drop, "
            "or fit with --impute median."
        )


def _one_hot(values: Any, column: Column, out: Floats) -> int:
    """Write the one-hot features to ``out``, shape (n_rows, n_categories − 1); return the number of unknown values."""
    pa = arrow()
    codes = pa.compute.index_in(values, value_set=pa.array(column.categories, pa.string()))
    unseen = int(codes.null_count)
    codes = codes.fill_null(0).to_numpy(zero_copy_only=False)
    out[:] = codes[:, None] == np.arange(1, out.shape[1] + 1)
    return unseen


def encoding_out(encoding: Encoding) -> list[dict[str, Any]]:
    """Return the encoding as plain data for JSON."""
    return [
        {"name": c.name, "categories": None if c.categories is None else list(c.categories), "fill": c.fill}
        | ({"date": True} if c.is_date else {})
        for c in encoding.columns
    ]


def encoding_in(reader: Reader) -> Encoding:
    """Return the encoding read from JSON, after checking it."""
    columns = tuple(_column_in(item) for item in reader.items())
    if not columns or len({column.name for column in columns}) < len(columns):
        reader.fail("one or more columns with different names")
    return Encoding(columns)


def _column_in(reader: Reader) -> Column:
    fields = reader.fields(["name", "categories", "fill"], ["date"])
    is_date = "date" in fields and fields["date"].boolean()
    categories, fill = fields["categories"].optional(), fields["fill"].optional()
    if categories is None:
        return Column(fields["name"].text(), None, None if fill is None else fill.number(), is_date)
    if is_date:
        categories.fail("null, because the column holds dates")
    texts = categories.texts()
    if not texts or len(set(texts)) < len(texts):
        categories.fail("one or more different strings")
    if fill is not None and fill.text() not in texts:
        fill.fail("one of the categories")
    return Column(fields["name"].text(), tuple(texts), None if fill is None else fill.text())
