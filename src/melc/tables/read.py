"""Read tables from CSV, TSV, Parquet and libSVM files, plain or gzipped, or from standard input.

``read_table`` reads a whole table, to fit a model. ``read_blocks`` reads given columns block by block, to predict on
files larger than memory. Both return Arrow columns of either numbers (doubles) or text (strings).
"""

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.datasets import load_svmlight_file

from melc.tables.arrow import arrow

Format = Literal["auto", "csv", "tsv", "parquet", "libsvm"]
Kind = Literal["number", "text"]

# Name given to the labels, the first column of libSVM files.
LIBSVM_TARGET = "label"

_BLOCK_BYTES = 4 * 2**20
_BLOCK_ROWS = 65_536
_HEADER_BYTES = 2**20
_MOST_DENSE_BYTES = 4 * 2**30
_LIBSVM_LINE = re.compile(rb"[-+]?[\d.]+(e[-+]?\d+)?(,[-+\d.]+)*(\s+\d+:\S+)+\s*(#.*)?", re.IGNORECASE)


class TableError(ValueError):
    """A table cannot be read or used. The message is one line that says what to do."""


@dataclass(frozen=True)
class Source:
    """Path and format of a table. The path "-" means standard input; the format "auto" means that it is detected."""

    path: str
    format: Format = "auto"
    delimiter: str | None = None

    @property
    def name(self) -> str:
        """Name of the source in error messages."""
        return "standard input" if self.path == "-" else self.path


def read_table(source: Source) -> Any:
    """Return a whole table as a ``pyarrow.Table`` with columns of doubles and strings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("size,colour\\n1,red\\n2,NA\\n")
    ...     table = read_table(Source(str(path)))
    >>> table.column("size").to_pylist(), table.column("colour").to_pylist()
    ([1.0, 2.0], ['red', None])
    """
    with _errors_of(source), _opened(source) as (stream, format):
        if format == "parquet":
            table = arrow().parquet.read_table(_seekable(stream))
        elif format == "libsvm":
            table = _libsvm_table(stream.read(), None)
        else:
            table = _read_csv(stream, _delimiter(source, format))
        _check_names(table.column_names)
        if table.num_rows == 0:
            raise TableError("the file has a header but no rows.")
        return arrow().table({name: _plain_column(table.column(name), name) for name in table.column_names})


def read_blocks(source: Source, kinds: Mapping[str, Kind]) -> Iterator[Any]:
    """Yield blocks of rows with the named columns, each read as numbers or text. Other columns are skipped."""
    with _errors_of(source), _opened(source) as (stream, format):
        if format == "parquet":
            yield from _parquet_blocks(stream, kinds)
        elif format == "libsvm":
            yield from _libsvm_blocks(stream, kinds)
        else:
            yield from _csv_blocks(stream, _delimiter(source, format), kinds)


@contextmanager
def _errors_of(source: Source) -> Iterator[None]:
    """Turn every error of a reader into a ``TableError`` of one line that starts with the name of the file."""
    pa = arrow()
    try:
        yield
    except TableError as error:
        raise TableError(f"{source.name}: {error}") from None
    except (ValueError, EOFError, OverflowError, OSError, csv.Error, zlib.error, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:  # from the operating system: no such file, no permission
            raise
        line = " ".join(str(error).split())
        raise TableError(f"{source.name} cannot be read: {line[:300]}") from None


@contextmanager
def _opened(source: Source) -> Iterator[tuple[Any, Format]]:
    """Yield the decompressed bytes of a source as a stream, and its format."""
    raw = sys.stdin.buffer if source.path == "-" else open(source.path, "rb")  # noqa: SIM115
    try:
        stream: Any = _Peekable(raw)
        if stream.peek(2)[:2] == b"\x1f\x8b":
            stream = _Peekable(gzip.GzipFile(fileobj=stream))
        head = stream.peek(_HEADER_BYTES)
        if not head.strip():
            raise TableError("the file is empty.")
        yield stream, _format_of(source, head)
    finally:
        if source.path != "-":
            raw.close()


class _Peekable(io.RawIOBase):
    """A stream of bytes whose beginning can be read without consuming it."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._head = stream, b""

    def peek(self, size: int) -> bytes:
        """Return at least the next ``size`` bytes, or all that are left, without consuming them."""
        while len(self._head) < size and (more := self._stream.read(size - len(self._head))):
            self._head += more
        return self._head

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            head, self._head = self._head, b""
            return head + self._stream.read()
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return bytes(self._stream.read(size))

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _format_of(source: Source, head: bytes) -> Format:
    if source.format != "auto":
        return source.format
    if head[:4] == b"PAR1":
        return "parquet"
    first = next((line for line in head.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    if _LIBSVM_LINE.fullmatch(first.strip()):
        return "libsvm"
    return "tsv" if re.search(r"\.(tsv|tab)(\.gz)?$", source.path, re.IGNORECASE) else "csv"


def _delimiter(source: Source, format: Format) -> str:
    return source.delimiter or ("\t" if format == "tsv" else ",")


# CSV


def _header(stream: _Peekable, delimiter: str) -> list[str]:
    """Return the column names in the first line, after checking them."""
    head = stream.peek(_HEADER_BYTES)
    complete = head[: head.rfind(b"\n") + 1] or head
    try:
        text = complete.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(f"byte {error.start} is not valid UTF-8; convert the file to UTF-8 first.") from None
    if "\0" in text:
        raise TableError("the file contains binary data; expected text in columns.")
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    names = next((line for line in lines if line), [""])
    _check_names(names)
    return names


def _check_names(names: list[str]) -> None:
    """Raise ``TableError`` if a column name is empty or occurs twice."""
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise TableError(f"the column name {twice[0]!r} occurs {names.count(twice[0])} times; rename the columns.")
    if any(not name.strip() for name in names):
        nameless = [not name.strip() for name in names].index(True) + 1
        raise TableError(f"column {nameless} has no name; name it in the first line.")


def _csv_options(delimiter: str, types: dict[str, Any], include: list[str] | None) -> dict[str, Any]:
    pa = arrow()
    return {
        "read_options": pa.csv.ReadOptions(block_size=_BLOCK_BYTES),
        "parse_options": pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": pa.csv.ConvertOptions(column_types=types, include_columns=include, strings_can_be_null=True),
    }


def _read_csv(stream: _Peekable, delimiter: str) -> Any:
    """Return the whole file. Columns that Arrow would parse as anything else, such as dates, are read as strings."""
    pa = arrow()
    _header(stream, delimiter)
    content = stream.read()
    table = pa.csv.read_csv(io.BytesIO(content), **_csv_options(delimiter, {}, None))
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_null)
    others = {field.name: pa.string() for field in table.schema if not any(test(field.type) for test in plain)}
    if others:
        table = pa.csv.read_csv(io.BytesIO(content), **_csv_options(delimiter, others, None))
    return table


def _csv_blocks(stream: _Peekable, delimiter: str, kinds: Mapping[str, Kind]) -> Iterator[Any]:
    pa = arrow()
    names = _header(stream, delimiter)
    _check_present(names, kinds)
    types = {name: pa.float64() if kind == "number" else pa.string() for name, kind in kinds.items()}
    try:
        yield from pa.csv.open_csv(stream, **_csv_options(delimiter, types, list(kinds)))
    except pa.ArrowInvalid as error:
        raise TableError(_with_column_name(str(error), names)) from None


def _with_column_name(message: str, names: list[str]) -> str:
    """Return Arrow's message with column numbers replaced by names, on one line."""
    named = re.sub(r"CSV column #(\d+)", lambda match: f"column {names[int(match[1])]!r}", message)
    return " ".join(named.split())[:300]


# Parquet


def _parquet_blocks(stream: Any, kinds: Mapping[str, Kind]) -> Iterator[Any]:
    file = arrow().parquet.ParquetFile(_seekable(stream))
    _check_present(file.schema_arrow.names, kinds)
    for batch in file.iter_batches(_BLOCK_ROWS, columns=list(kinds)):
        yield _cast(batch, kinds)


def _seekable(stream: _Peekable) -> Any:
    """Return a stream with random access, as Parquet needs: the file itself, or its bytes in memory."""
    inner = stream._stream
    if isinstance(inner, io.BufferedReader) and inner.seekable():
        inner.seek(0)
        return inner
    return io.BytesIO(stream.read())


def _cast(block: Any, kinds: Mapping[str, Kind]) -> Any:
    """Return the named columns of a block as doubles or strings."""
    pa = arrow()
    columns = {}
    for name, kind in kinds.items():
        column = _plain_column(block.column(name), name)
        if kind == "number" and not pa.types.is_floating(column.type):
            raise TableError(f"the column {name!r} must contain numbers, but its type is {block.column(name).type}.")
        columns[name] = column if kind == "number" else column.cast(pa.string())
    return pa.table(columns)


# libSVM text


def _libsvm_table(content: bytes, n_features: int | None) -> Any:
    """Return the rows of a libSVM file as columns ``label``, ``f1``, ``f2``, ..."""
    X, y = load_svmlight_file(io.BytesIO(content), zero_based=False)
    width = X.shape[1] if n_features is None else n_features
    if X.shape[0] * width * 8 > _MOST_DENSE_BYTES:
        raise TableError(f"{X.shape[0]} rows of {width} features are too large for a dense table; use fewer features.")
    dense = np.zeros((X.shape[0], width))
    kept = X[:, :width].tocoo()
    dense[kept.row, kept.col] = kept.data
    columns = {LIBSVM_TARGET: y} | {f"f{j + 1}": dense[:, j] for j in range(width)}
    return arrow().table(columns)


def _libsvm_blocks(stream: Any, kinds: Mapping[str, Kind]) -> Iterator[Any]:
    foreign = [name for name in kinds if not re.fullmatch(r"f[1-9]\d{0,8}", name)]
    if foreign:
        raise TableError(f"the model needs the column {foreign[0]!r}, but libSVM files have only f1, f2, ...")
    width = max(int(name[1:]) for name in kinds)
    lines = io.BufferedReader(stream, _BLOCK_BYTES)
    while block := lines.readlines(_BLOCK_BYTES):
        yield _libsvm_table(b"".join(block), width)


# Columns


def _check_present(names: list[str], wanted: Mapping[str, Kind]) -> None:
    """Raise ``TableError`` if a wanted column is missing."""
    missing = [name for name in wanted if name not in set(names)]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise TableError(
            f"the file has no column{'s' if len(missing) > 1 else ''} {shown}{more}, which the model needs"
            f"{_delimiter_hint(names)}."
        )


def _delimiter_hint(names: list[str]) -> str:
    """Return a hint if the file seems to have only one column because of a wrong delimiter."""
    if len(names) > 1:
        return ""
    other = next((mark for mark in ";\t|," if mark in names[0]), None)
    return f"; it seems to have only one column: is the delimiter {other!r}? Set it with --delimiter" if other else ""


def _plain_column(column: Any, name: str) -> Any:
    """Return a column of any type as doubles or strings."""
    pa = arrow()
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain_column(column.cast(kind.value_type), name)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return column.cast(pa.float64(), safe=False)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise TableError(f"the column {name!r} has type {kind}, which is neither numbers nor text; leave it out.")
    return column.cast(pa.string())
