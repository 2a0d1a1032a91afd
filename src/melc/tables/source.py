"""Open the file of a table: plain or compressed, or standard input; and recognise its format."""

import bz2
import csv
import errno
import gzip
import io
import lzma
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from melc.tables.arrow import arrow
from melc.tables.pipes import interruptible

Format = Literal["auto", "csv", "tsv", "parquet", "libsvm"]

HEADER_BYTES = 2**20

# A compressed file may unpack to this many bytes, or if that is more, to _MOST_UNPACKED times its own size.
_ALWAYS_UNPACKED, _MOST_UNPACKED = 2**30, 200
_PIECE = 2**20
_LARGEST_PIPED_ZIP = 2**28
_LIBSVM_LINE = re.compile(rb"[-+]?[\d.]+(e[-+]?\d+)?(,[-+\d.]+)*(\s+\d+:\S+)+\s*(#.*)?", re.IGNORECASE)
_PACKINGS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_ZIP, _ZSTD = b"PK\x03\x04", b"\x28\xb5\x2f\xfd"

_READING_ERRORS = (
    *(ValueError, LookupError, EOFError, OverflowError, OSError, RuntimeError),
    *(csv.Error, lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)


class TableError(ValueError):
    """A table cannot be read or used. The message is one line that says what to do.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from melc.tables import Roles, TableError, problem_of
    >>> try:
    ...     problem_of(pa.table({"size": [1.0, 2.0]}), Roles(target="colour"))
    ... except TableError as error:
    ...     print(error)
    There is no column 'colour'; the columns are 'size'.
    """


@dataclass(frozen=True)
class Source:
    """Path and format of a table. The path "-" means standard input; the format "auto" means that it is detected.

    The other fields are for CSV files: the ``delimiter`` between columns, detected if None; the ``encoding`` of the
    text; the ``decimal`` point; and texts besides the usual ones, such as "NA", that stand for missing values.
    ``shown`` is the name in messages, if it is not the path.

    Examples
    --------
    >>> from melc.tables import Source
    >>> Source("measured.txt", "csv", delimiter=";", decimal=",").name
    'measured.txt'
    """

    path: str
    format: Format = "auto"
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    na_values: tuple[str, ...] = ()
    shown: str | None = None

    @property
    def name(self) -> str:
        """Name of the source in messages."""
        return self.shown or ("standard input" if self.path == "-" else self.path)


@contextmanager
def errors_of(source: Source) -> Iterator[None]:
    """Turn every error of a reader into a ``TableError`` of one line that starts with the name of the file."""
    pa = arrow()
    try:
        yield
    except TableError as error:
        raise TableError(f"{source.name}: {error}") from None
    except (*_READING_ERRORS, pa.ArrowException) as error:
        raise _as_table_error(source, error) from None


def _as_table_error(source: Source, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno:  # from the operating system: no such file, no permission
        return error
    line = " ".join(str(error).split())[:300]
    hint = "; name the encoding of the file with --encoding, for example --encoding latin-1" if "UTF8" in line else ""
    return TableError(f"{source.name} cannot be read: {line}{hint}")


@contextmanager
def opened(source: Source) -> Iterator[tuple["Peekable", Format]]:
    """Yield the decompressed bytes of a source as a stream, and its format."""
    raw = sys.stdin.buffer if source.path == "-" else open(source.path, "rb")  # noqa: SIM115
    try:
        with interruptible(raw) as bytes_of_source:
            packed = Peekable(bytes_of_source)
            stream = _unpacked(packed)
            head = stream.peek(HEADER_BYTES)
            if stream is not packed and head.startswith((_ZIP, _ZSTD, *_PACKINGS)):
                raise TableError("it is compressed more than once; unpack it first.")
            if not head.strip():
                raise TableError("the file is empty.")
            yield stream, _format_of(source, head)
    finally:
        if source.path != "-":
            raw.close()


@contextmanager
def as_plain_file(source: Source, folder: Path) -> Iterator[Source]:
    """Yield a source of the same table that can be read more than once: itself, or an unpacked copy in a folder."""
    with errors_of(source), opened(source) as (stream, _):
        if isinstance(stream.inner, io.BufferedReader) and source.path != "-" and Path(source.path).is_file():
            plain = source
        else:
            plain = replace(source, path=str(folder / Path(source.path).stem), shown=source.name)
            with writing_temporary_file(), open(plain.path, "wb") as copy:
                shutil.copyfileobj(stream, copy, _PIECE)
    yield plain


@contextmanager
def writing_temporary_file() -> Iterator[None]:
    """Say of a full disk that it is the one with the temporary files, and how to use another."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        advice = "no space left for temporary files; set the environment variable TMPDIR to a folder with more"
        raise OSError(error.errno, advice, tempfile.gettempdir()) from None


class Peekable(io.RawIOBase):
    """A stream of bytes whose beginning can be read without consuming it."""

    def __init__(self, inner: Any) -> None:
        self.inner, self._head = inner, b""

    def peek(self, size: int) -> bytes:
        """Return at least the next ``size`` bytes, or all that are left, without consuming them."""
        while len(self._head) < size and (more := self.inner.read(size - len(self._head))):
            self._head += more
        return self._head

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            head, self._head = self._head, b""
            return head + self.inner.read()
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return bytes(self.inner.read(size))

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Counting(io.RawIOBase):
    """A stream that counts the bytes read from it."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.count = inner, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class _Bounded:
    """Decompressed bytes; more of them than any honest file of the packed size contains are refused."""

    def __init__(self, unpacked: Any, packed_size: Callable[[], int]) -> None:
        self._unpacked, self._packed_size, self._count = unpacked, packed_size, 0

    def read(self, size: int = -1) -> bytes:
        pieces = []
        while size and (piece := self._unpacked.read(_PIECE if size < 0 else min(size, _PIECE))):
            pieces.append(piece)
            self._count += len(piece)
            size -= len(piece) if size > 0 else 0
            if self._count > max(_ALWAYS_UNPACKED, _MOST_UNPACKED * self._packed_size()):
                raise TableError(
                    f"it unpacks to more than {_MOST_UNPACKED} times its size; unpack it first, if you trust it."
                )
        return b"".join(pieces)


def _unpacked(stream: Peekable) -> Peekable:
    """Return the stream itself, or the decompressed bytes of a compressed one."""
    head = stream.peek(6)
    if head[:4] == _ZSTD:
        raise TableError("it is compressed with Zstandard; unpack it first.")
    if head[:4] == _ZIP:
        return _unzipped(stream)
    unpack = next((unpack for start, unpack in _PACKINGS.items() if head.startswith(start)), None)
    if unpack is None:
        return stream
    packed = _Counting(stream)
    return Peekable(_Bounded(unpack(io.BufferedReader(packed)), lambda: packed.count))


def _unzipped(stream: Peekable) -> Peekable:
    """Return the bytes of the only file in a zip archive. Of a file only the part being unpacked is in memory."""
    packed, size = _with_random_access(stream)
    archive = zipfile.ZipFile(packed)
    names = [entry.filename for entry in archive.infolist() if not entry.is_dir() and not _is_hidden(entry.filename)]
    if "[Content_Types].xml" in names:
        raise TableError("it is an Office document; save the table as CSV first.")
    if len(names) != 1:
        raise TableError(f"the zip archive has {len(names)} files; unpack it and name the one with the table.")
    return Peekable(_Bounded(archive.open(names[0]), lambda: size))


def _with_random_access(stream: Peekable) -> tuple[Any, int]:
    """Return a zip archive that can be read at any place, and its size: the file itself, or the bytes of a pipe."""
    if isinstance(stream.inner, io.BufferedReader) and stream.inner.seekable():
        return stream.inner, stream.inner.seek(0, io.SEEK_END)
    content = stream.peek(_LARGEST_PIPED_ZIP + 1)
    if len(content) > _LARGEST_PIPED_ZIP:
        raise TableError(
            f"a zip archive from a pipe may have at most {_LARGEST_PIPED_ZIP >> 20} MiB, because its list of files is "
            "at the end; save it as a file, or unpack it first."
        )
    return io.BytesIO(content), len(content)


def _is_hidden(name: str) -> bool:
    """Whether a file in an archive only describes another one, as those that macOS adds."""
    return name.startswith("__MACOSX/")


def _format_of(source: Source, head: bytes) -> Format:
    if source.format != "auto":
        return source.format
    if head[:4] == b"PAR1":
        return "parquet"
    first = next((line for line in head.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    if _LIBSVM_LINE.fullmatch(first.strip()):
        return "libsvm"
    return "tsv" if re.search(r"\.(tsv|tab)(\.(gz|bz2|xz|zip))?$", source.path, re.IGNORECASE) else "csv"
