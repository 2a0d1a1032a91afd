"""Read tables from CSV, TSV, Parquet and libSVM files, plain or compressed, or from standard input.

``read_table`` reads a whole table, to fit a model. ``read_blocks`` reads given columns block by block, to predict on
files larger than memory. Both return Arrow columns of either numbers (doubles) or text (strings).
"""

import contextlib
import io
import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from melc.arrays import Floats
from melc.tables.csv_files import Kind, check_names, check_present, csv_blocks, layout_of, read_csv
from melc.tables.source import Source, TableError, arrow, errors_of, is_unpacked, opened

# Name given to the labels, the first column of libSVM files.
LIBSVM_TARGET = "label"

_BLOCK_BYTES = 4 * 2**20
# Blocks of rows have at most this many numbers, which take 32 MiB.
_BLOCK_NUMBERS = 2**22
# Bounds of libSVM files: their text if read whole, and the table of all their features.
_MOST_LIBSVM_BYTES, _MOST_LIBSVM_FEATURES, _MOST_DENSE_BYTES = 2**30, 100_000, 4 * 2**30


def read_table(source: Source) -> Any:
    """Return a whole table as a ``pyarrow.Table`` with columns of doubles and strings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from melc.tables import Source, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("size,colour\\n1,red\\n2,NA\\n")
    ...     table = read_table(Source(str(path)))
    >>> table.column("size").to_pylist(), table.column("colour").to_pylist()
    ([1.0, 2.0], ['red', None])
    """
    with errors_of(source), opened(source) as (stream, format):
        if format == "parquet":
            table = arrow().parquet.read_table(_with_random_access(stream))
        elif format == "libsvm":
            table = _libsvm_table(stream)
        else:
            table = read_csv(stream, source, format)
        check_names(table.column_names)
        if table.num_rows == 0:
            raise TableError("the file has a header but no rows.")
        return arrow().table(plain_columns(table))


def read_blocks(source: Source, kinds: Mapping[str, Kind]) -> Iterator[Any]:
    """Yield blocks of rows with the named columns, each read as numbers or text, as tables of bounded memory.

    Other columns are skipped.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from melc.tables import Source, read_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("size,colour\\n1,red\\n2,NA\\n")
    ...     [block.num_rows for block in read_blocks(Source(str(path)), {"size": "number"})]
    [2]
    """
    with errors_of(source), opened(source) as (stream, format):
        if format == "parquet":
            blocks = _parquet_blocks(stream, kinds)
        elif format == "libsvm":
            blocks = _libsvm_blocks(stream, kinds)
        else:
            blocks = csv_blocks(stream, source, format, kinds)
        n = rows_in_block(len(kinds))
        with contextlib.closing(blocks):  # also if not all of them are wanted
            for block in blocks:
                table = arrow().Table.from_batches([block]) if isinstance(block, arrow().RecordBatch) else block
                yield from (table.slice(a, n) for a in range(0, table.num_rows, n))


def first_rows(source: Source, kinds: Mapping[str, Kind], n: int) -> Any:
    """Return the first n rows with the named columns, as :func:`read_blocks` reads them; fewer if there are fewer."""
    blocks, found = [], 0
    for block in read_blocks(source, kinds):
        blocks.append(block.slice(0, n - found))
        found += blocks[-1].num_rows
        if found >= n:
            break
    if not found:
        raise TableError(f"{source.name}: the table has no rows to explain.")
    return arrow().concat_tables(blocks)


def rows_in_block(n_columns: int) -> int:
    """Return the number of rows whose numbers take bounded memory."""
    return max(1, _BLOCK_NUMBERS // max(n_columns, 64))


def written_blocks(source: Source, drop: Collection[str] = ()) -> Iterator[tuple[Any, bool]]:
    """Yield blocks of rows of a CSV or Parquet file, and whether the values are texts as written in the file.

    A block has all columns except those to drop. Unlike :func:`read_blocks`, it need not be told which columns of a CSV
    file hold numbers.
    """
    with errors_of(source), opened(source) as (stream, format):
        if format == "parquet":
            file = parquet_file(stream)
            names = [name for name in file.schema_arrow.names if name not in drop]
            for batch in file.iter_batches(rows_in_block(len(names)), columns=names):
                yield batch, False
        else:
            for batch in csv_blocks(stream, source, format, None, drop):
                yield batch, True


def column_names(source: Source) -> list[str]:
    """Return the names of the columns of a CSV or Parquet file; of a libSVM file that of the labels alone."""
    with errors_of(source), opened(source) as (stream, format):
        if format == "libsvm":
            return [LIBSVM_TARGET]
        if format == "parquet":
            return list(parquet_file(stream).schema_arrow.names)
        return layout_of(stream, source, format).names


def plain_columns(block: Any) -> dict[str, Any]:
    """Return the columns of a block, each as doubles or strings."""
    return {name: _plain_column(block.column(name), name) for name in block.schema.names}


# Parquet


def _parquet_blocks(stream: Any, kinds: Mapping[str, Kind]) -> Generator[Any, None, None]:
    file = parquet_file(stream)
    check_present(file.schema_arrow.names, kinds)
    for batch in file.iter_batches(rows_in_block(len(kinds)), columns=list(kinds)):
        yield _cast(batch, kinds)


def parquet_file(stream: Any) -> Any:
    """Return the Parquet file in a stream."""
    # A buffer filled in advance would keep all that has been read until the file is closed.
    file = arrow().parquet.ParquetFile(_with_random_access(stream), pre_buffer=False)
    check_names(file.schema_arrow.names)
    return file


def _with_random_access(stream: Any) -> Any:
    """Return a stream in which going back takes no time, as Parquet needs: the file itself, or its bytes in memory."""
    return io.BytesIO(stream.read()) if is_unpacked(stream) else stream


def _cast(block: Any, kinds: Mapping[str, Kind]) -> Any:
    """Return the named columns of a block as doubles or strings."""
    pa = arrow()
    columns = {}
    for name, kind in kinds.items():
        given = block.column(name)
        if kind == "text" and pa.types.is_integer(given.type):  # all digits, however many
            columns[name] = given.cast(pa.string())
            continue
        column = _plain_column(given, name)
        if kind == "number" and not pa.types.is_floating(column.type):
            raise TableError(f"the column {name!r} must contain numbers, but its type is {given.type}.")
        columns[name] = column if kind == "number" else column.cast(pa.string())
    return pa.table(columns)


# libSVM text


def _libsvm_table(stream: Any) -> Any:
    """Return a libSVM file as columns ``label``, ``f1``, ``f2``, ..., with ``f0`` if it counts from zero."""
    content = stream.read(_MOST_LIBSVM_BYTES + 1)
    if len(content) > _MOST_LIBSVM_BYTES:
        raise TableError(
            f"libSVM files are read into memory, so they may have at most {_MOST_LIBSVM_BYTES >> 20:,} MiB of text; "
            "convert the table to Parquet or CSV, which may have any size."
        )
    X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    return _dense_columns(X, y, range(0 if _counts_from_zero(X) else 1, X.shape[1]))


def _libsvm_blocks(stream: Any, kinds: Mapping[str, Kind]) -> Generator[Any, None, None]:
    features = [name for name in kinds if name != LIBSVM_TARGET]
    foreign = [name for name in features if not re.fullmatch(r"f(0|[1-9]\d{0,8})", name)]
    if foreign:
        raise TableError(f"the model needs the column {foreign[0]!r}, but libSVM files have only f1, f2, ...")
    numbers = [int(name[1:]) for name in features]
    while block := stream.readlines(_BLOCK_BYTES):
        X, y = load_svmlight_file(io.BytesIO(b"".join(block)), zero_based=True)
        if _counts_from_zero(X) and 0 not in numbers:
            raise TableError("the file counts features from 0, the model from 1; add 1 to the numbers in the file.")
        yield _dense_columns(X, y, numbers)


def _counts_from_zero(X: Any) -> bool:
    """Whether a row, read with features counted from zero, has feature number zero."""
    return bool(np.any(X.indices == 0))


def _dense_columns(X: Any, y: Floats, numbers: Sequence[int]) -> Any:
    """Return the labels and the features with the given numbers as a table; features that no row has are zero."""
    n_rows, n_features = X.shape[0], len(numbers)
    if n_features > _MOST_LIBSVM_FEATURES or n_rows * n_features * 8 > _MOST_DENSE_BYTES:
        raise TableError(
            f"{n_rows:,} rows of {n_features:,} features are too large for a dense table, which may have "
            f"{_MOST_LIBSVM_FEATURES:,} features and {_MOST_DENSE_BYTES >> 20:,} MiB; use fewer features or rows."
        )
    by_column = X.tocsc()
    columns = {LIBSVM_TARGET: y}
    for k in numbers:
        columns[f"f{k}"] = by_column[:, [k]].toarray().ravel() if k < X.shape[1] else np.zeros(X.shape[0])
    return arrow().table(columns)


# Columns


def _plain_column(column: Any, name: str) -> Any:
    """Return a column of any type as doubles or strings."""
    pa = arrow()
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain_column(column.cast(kind.value_type), name)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return column.cast(pa.float64(), safe=False)
    if pa.types.is_duration(kind):
        return column.cast(pa.int64()).cast(pa.float64(), safe=False)
    if pa.types.is_timestamp(kind):  # with as many digits as can be read back
        return column.cast(pa.timestamp("us", None if kind.tz is None else "UTC"), safe=False).cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise TableError(f"the column {name!r} has type {kind}, which is neither numbers nor text; leave it out.")
    return column.cast(pa.string())
