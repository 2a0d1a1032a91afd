"""From the columns of a table to the numbers of a matrix, the same way every time.

Numbers stay as they are. A column of texts becomes columns of zeros and ones, one a text ("one-hot") but for the most
frequent: the others are measured against it, for otherwise any constant could be added to all of their weights.
What was learned is plain data, so it can be kept beside a model.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.reading import Reader
from melc.tables.arrow import arrow
from melc.tables.read import Kind, TableError

# A column with more different texts is taken for an identifier.
MOST_CATEGORIES = 1000


@dataclass(frozen=True)
class Column:
    """One column of the table: its categories if it holds texts, and what stands in for missing values.

    The first category has no feature: it is where all of them are zero, as for a text never seen.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None

    @property
    def kind(self) -> Kind:
        return "number" if self.categories is None else "text"

    @property
    def shown_categories(self) -> tuple[str, ...]:
        return (self.categories or ())[1:]

    @property
    def feature_names(self) -> list[str]:
        return [self.name] if self.categories is None else [f"{self.name}={c}" for c in self.shown_categories]


@dataclass(frozen=True)
class Encoded:
    """A matrix with a row for every row of a block, and how many texts in it were never seen before."""

    X: Floats
    n_unseen: dict[str, int]


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features.

    Examples
    --------
    >>> import pyarrow as pa
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
        return [name for column in self.columns for name in column.feature_names]

    @property
    def kinds(self) -> dict[str, Kind]:
        return {column.name: column.kind for column in self.columns}

    def encode(self, block: Any) -> Encoded:
        """The features of every row. Missing values without a stand-in and infinite ones are refused."""
        X = np.empty((block.num_rows, len(self.feature_names)))
        n_unseen: dict[str, int] = {}
        place = 0
        for column in self.columns:
            values = block.column(column.name)
            if column.fill is not None:
                values = values.fill_null(column.fill)
            _refuse_missing({column.name: values.null_count}, block.num_rows)
            if column.categories is None:
                X[:, place] = _finite(values, column.name)
            else:
                unseen = _one_hot(values, column, X[:, place : place + len(column.shown_categories)])
                n_unseen |= {column.name: unseen} if unseen else {}
            place += len(column.feature_names)
        return Encoded(X, n_unseen)


def learn_encoding(table: Any, names: Iterable[str], *, impute: bool = False) -> Encoding:
    """Look at the columns of a table: which are numbers, which texts occur, what may stand in for a gap.

    With ``impute`` a missing number becomes the median, a missing text the most frequent one; without, any
    missing value is refused.
    """
    names = list(names)
    if not names:
        raise TableError("No column is left to learn from.")
    empty = [name for name in names if table.column(name).null_count == table.num_rows]
    if empty:
        raise TableError(f"The column {empty[0]!r} holds no values at all; leave it out with --drop.")
    if not impute:
        _refuse_missing({name: table.column(name).null_count for name in names}, table.num_rows)
    encoding = Encoding(tuple(_learn_column(table.column(name), name, impute) for name in names))
    if not encoding.feature_names:
        raise TableError("Every column holds one text only, so there is nothing to tell classes apart by.")
    return encoding


def _learn_column(values: Any, name: str, impute: bool) -> Column:
    pa = arrow()
    if pa.types.is_floating(values.type):
        fill = float(np.median(_finite(values.drop_null(), name))) if impute else None
        return Column(name, None, fill)
    counts = pa.compute.value_counts(values.drop_null()).to_pylist()
    if len(counts) > MOST_CATEGORIES:
        raise TableError(
            f"The column {name!r} has {len(counts)} different texts, more than {MOST_CATEGORIES}: an identifier? "
            "Leave it out with --drop."
        )
    first = min(counts, key=lambda entry: (-entry["counts"], entry["values"]))["values"]
    others = sorted(entry["values"] for entry in counts if entry["values"] != first)
    return Column(name, (first, *others), first if impute else None)


def _refuse_missing(counts: dict[str, int], n_rows: int) -> None:
    found = [f"{name!r} ({count} of {n_rows})" for name, count in counts.items() if count]
    if found:
        more = f" and {len(found) - 5} more columns" if len(found) > 5 else ""
        raise TableError(
            f"Values are missing in {', '.join(found[:5])}{more}. Fill them in, leave the column out with --drop, "
            "or fit with --impute median."
        )


def _finite(values: Any, name: str) -> Floats:
    numbers = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    if not np.all(np.isfinite(numbers)):
        raise TableError(f"The column {name!r} holds {numbers[~np.isfinite(numbers)][0]}, which is no finite number.")
    return numbers


def _one_hot(values: Any, column: Column, out: Floats) -> int:
    """Write ones where the categories occur; the number of texts that are no category."""
    pa = arrow()
    codes = pa.compute.index_in(values, value_set=pa.array(column.categories, pa.string()))
    unseen = int(codes.null_count)
    codes = codes.fill_null(0).to_numpy(zero_copy_only=False)
    out[:] = codes[:, None] == np.arange(1, out.shape[1] + 1)
    return unseen


def encoding_out(encoding: Encoding) -> list[dict[str, Any]]:
    """As plain data."""
    return [
        {"name": c.name, "categories": None if c.categories is None else list(c.categories), "fill": c.fill}
        for c in encoding.columns
    ]


def encoding_in(reader: Reader) -> Encoding:
    """From plain data, checked."""
    columns = tuple(_column_in(item) for item in reader.items())
    if not columns or len({column.name for column in columns}) < len(columns):
        reader.fail("columns with different names")
    return Encoding(columns)


def _column_in(reader: Reader) -> Column:
    fields = reader.fields(["name", "categories", "fill"])
    categories, fill = fields["categories"].optional(), fields["fill"].optional()
    if categories is None:
        return Column(fields["name"].text(), None, None if fill is None else fill.number())
    texts = categories.texts()
    if not texts or len(set(texts)) < len(texts):
        categories.fail("different texts")
    if fill is not None and fill.text() not in texts:
        fill.fail("one of the categories")
    return Column(fields["name"].text(), tuple(texts), None if fill is None else fill.text())
