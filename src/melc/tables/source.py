"""Open the file of a table: plain or compressed, or standard input; and recognise its format."""

import bz2
import codecs
import csv
import errno
import gzip
import io
import lzma
import re
import select
import shutil
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

Format = Literal["auto", "csv", "tsv", "parquet", "libsvm"]

HEADER_BYTES = 2**20

# A compressed file may expand to this many bytes or, if that is more, to this many times its own size.
_ALLOWED_UNPACKED_BYTES, _MAX_UNPACKED_RATIO = 2**30, 200
_CHUNK_BYTES = 2**20
# Seconds to wait for a pipe before signals are looked for.
_PIPE_PATIENCE = 0.5
_LIBSVM_LINE = re.compile(rb"[-+]?[\d.]+(e[-+]?\d+)?(,[-+\d.]+)*(\s+\d+:\S+)+\s*(#.*)?", re.IGNORECASE)
_DECOMPRESSORS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_ZIP, _ZSTD = b"PK\x03\x04", b"\x28\xb5\x2f\xfd"

_READING_ERRORS = (
    *(ValueError, LookupError, EOFError, OverflowError, OSError, RuntimeError),
    *(csv.Error, lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)


class TableError(ValueError):
    """A table cannot be read or used. The message says what to do, and ``remedy`` in options of the command line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from melc.tables import Source, TableError, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("size,colour\\n")
    ...     try:
    ...         read_table(Source(str(path), shown="t.csv"))
    ...     except TableError as error:
    ...         print(error)
    t.csv: the file has a header but no rows.
    """

    def __init__(self, message: str, remedy: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.remedy = tuple(remedy)


def listed(names: Sequence[str], most: int) -> str:
    """Return names of columns for a message: the first of them, and how many more there are."""
    more = len(names) - most
    return ", ".join(map(repr, names[:most])) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Notation:
    """How numbers are written: the decimal mark, the mark between thousands, and the unit of measure, if there is one.

    Examples
    --------
    >>> str(Notation(",", "."))
    'decimal commas and thousands points'
    """

    decimal: str = "."
    thousands: str | None = None
    unit: str | None = None

    def __str__(self) -> str:
        names = {".": "points", ",": "commas", "'": "apostrophes", " ": "spaces"}
        decimal = f"decimal {names.get(self.decimal, self.decimal)}"
        return decimal + (f" and thousands {names.get(self.thousands, self.thousands)}" if self.thousands else "")


@dataclass(frozen=True)
class Source:
    """Path and format of a table. The path "-" means standard input; the format "auto" means that it is detected.

    The other fields are for CSV files: the ``delimiter`` between columns; the ``encoding`` of the text; the ``decimal``
    mark and that between ``thousands``; texts besides the usual ones, such as "NA", that stand for missing values; the
    ``date_format``, as in ``strptime``; and the number of lines to skip before the names of the columns. What is None
    is found out. ``shown`` is the name in messages, if it is not the path. ``numbers`` and ``dates`` tell of columns
    that are not written as usual; a fit finds them, and a model file keeps them.

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
    decimal: str | None = None
    na_values: tuple[str, ...] = ()
    shown: str | None = None
    thousands: str | None = None
    date_format: str | None = None
    skip_rows: int = 0
    numbers: Mapping[str, Notation] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the source in messages."""
        return self.shown or ("standard input" if self.path == "-" else self.path)

    def notation(self, name: str) -> Notation:
        """Return how the numbers of a column are written."""
        return self.numbers.get(name) or Notation(self.decimal or ".", self.thousands)


# What is known of rows that are in no file.
NO_FILE = Source("")


def arrow() -> Any:
    """Return pyarrow with the submodules used here. It is imported here alone, so that the rest works without it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Tables need pyarrow: pip install 'melc[cli]'") from error
    return pyarrow


@contextmanager
def errors_of(source: Source) -> Iterator[None]:
    """Turn every error of a reader into a ``TableError`` of one line that starts with the name of the file."""
    pa = arrow()
    try:
        yield
    except TableError as error:
        raise TableError(f"{source.name}: {error}", error.remedy) from None
    except (*_READING_ERRORS, pa.ArrowException) as error:
        raise _as_table_error(source, error) from None


def _as_table_error(source: Source, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno:  # from the operating system: no such file, no permission
        return error
    line = " ".join(str(error).split())[:300]
    if "UTF8" in line:
        return wrong_encoding(f"{source.name}: the file is not valid UTF-8", b"")
    ragged = re.search(r"Expected (\d+) columns, got (\d+): (.*)", line)
    if ragged:
        return TableError(
            f"{source.name}: the row {ragged[3][:40]!r} has {ragged[2]} columns, and the first line has {ragged[1]}. "
            "Correct the row; or name the character between the columns with --delimiter, or how many lines to skip "
            "before the names of the columns with --skip-rows."
        )
    return TableError(f"{source.name} cannot be read: {line}")


def wrong_encoding(what: str, head: bytes) -> TableError:
    """Return the error for a text that is not in the encoding assumed, with one to try."""
    other = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "cp1252"
    return TableError(f"{what}; name the encoding of the file, for example --encoding {other}.", ["--encoding", other])


@contextmanager
def opened(source: Source) -> Iterator[tuple[Any, Format]]:
    """Yield the decompressed bytes of a source as a stream that can be read at any position, and its format."""
    with _seekable(source) as packed:
        stream = _unpacked(packed)
        head = first_bytes(stream, HEADER_BYTES)
        if stream is not packed and head.startswith((_ZIP, _ZSTD, *_DECOMPRESSORS)):
            raise TableError("it is compressed more than once; unpack it first.")
        if not head.strip():
            raise TableError("the file is empty.")
        yield stream, _format_of(source, head)


@contextmanager
def _seekable(source: Source) -> Iterator[Any]:
    """Yield the bytes of a source as a binary file; a pipe is copied to a temporary file first.

    Arrow reads in threads of its own, and reads ahead. A pipe that another program keeps open would make them wait, and
    the program with them, without an answer to Ctrl-C. The copy is made in the main thread, which answers.
    """
    with ExitStack() as stack:
        raw: Any = sys.stdin.buffer if source.path == "-" else stack.enter_context(open(source.path, "rb"))
        if not (raw.seekable() and raw.tell() == 0):
            copy = stack.enter_context(tempfile.TemporaryFile(prefix="melc-"))
            with writing_temporary_file():
                copy.writelines(_chunks(raw))
                copy.seek(0)
            raw = copy
        yield raw


def _chunks(pipe: Any) -> Iterator[bytes]:
    """Yield what comes through a pipe.

    A signal that arrives just before a read begins would not be heard until the read ends, perhaps never. So a read
    begins only when there is something to read; Windows cannot tell, and has no such signals.
    """
    waiting = _poll(pipe)
    while True:
        while waiting is not None and not waiting.poll(1000 * _PIPE_PATIENCE):
            pass
        if not (chunk := pipe.read1(_CHUNK_BYTES)):
            return
        yield chunk


def _poll(pipe: Any) -> Any:
    """Return an object that waits for a pipe, or None if that is not possible."""
    if not hasattr(select, "poll"):
        return None
    waiting = select.poll()
    try:
        waiting.register(pipe, select.POLLIN)
    except (OSError, TypeError):  # not a file of the operating system
        return None
    return waiting


def first_bytes(stream: Any, size: int) -> bytes:
    """Return the first bytes of a stream, which is then at its beginning."""
    stream.seek(0)
    head = bytes(stream.read(size))
    stream.seek(0)
    return head


@contextmanager
def as_plain_file(source: Source, folder: Path) -> Iterator[Source]:
    """Yield a source of the same table that can be read more than once: itself, or an unpacked copy in a folder."""
    with errors_of(source), opened(source) as (stream, _):
        if Path(source.path).is_file() and not is_unpacked(stream):
            plain = source
        else:
            plain = replace(source, path=str(folder / Path(source.path).stem), shown=source.name)
            with writing_temporary_file(), open(plain.path, "wb") as copy:
                shutil.copyfileobj(stream, copy, _CHUNK_BYTES)
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


class _Unpacked(io.RawIOBase):
    """The decompressed bytes of a file. One that expands to implausibly many bytes is refused."""

    def __init__(self, unpacked: Any, packed_size: int) -> None:
        self._unpacked, self._most = unpacked, max(_ALLOWED_UNPACKED_BYTES, _MAX_UNPACKED_RATIO * packed_size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._unpacked.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        data = self._unpacked.read(len(buffer))
        buffer[: len(data)] = data
        if self._unpacked.tell() > self._most:
            raise TableError(
                f"it unpacks to more than {_MAX_UNPACKED_RATIO} times its size; unpack it first, if you trust it."
            )
        return len(data)


def is_unpacked(stream: Any) -> bool:
    """Whether a stream of :func:`opened` decompresses a file, so that going back in it takes long."""
    return isinstance(getattr(stream, "raw", None), _Unpacked)


def _unpacked(packed: Any) -> Any:
    """Return the stream itself, or a stream of the decompressed bytes of a compressed one."""
    decompressors = _DECOMPRESSORS | {_ZIP: _unzipped}
    size = packed.seek(0, io.SEEK_END)
    head = first_bytes(packed, 6)
    if head[:4] == _ZSTD:
        raise TableError("it is compressed with Zstandard; unpack it first.")
    unpack = next((unpack for start, unpack in decompressors.items() if head.startswith(start)), None)
    return packed if unpack is None else io.BufferedReader(_Unpacked(unpack(packed), size), _CHUNK_BYTES)


def _unzipped(packed: Any) -> Any:
    """Return a stream of the only file in a zip archive. Only the part being unpacked is in memory."""
    archive = zipfile.ZipFile(packed)
    # macOS adds hidden files that describe the others.
    files = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    names = [name for name in files if not name.startswith("__MACOSX/")]
    if "[Content_Types].xml" in names:
        if "xl/workbook.xml" not in names:
            raise TableError("it is an Office document; save the table as CSV first.")
        return _sheet_as_csv(packed, sum(entry.file_size for entry in archive.infolist()))
    if len(names) != 1:
        raise TableError(f"the zip archive has {len(names)} files; unpack it and name the one with the table.")
    return archive.open(names[0])


def _sheet_as_csv(packed: Any, size: int) -> Any:
    """Return a stream of the first sheet of an Excel file as CSV text; ``size`` is that of its unpacked parts."""
    try:
        import openpyxl  # noqa: F401
    except ImportError as error:
        advice = "pip install 'melc[excel]', or save the table as CSV"
        raise ImportError(f"Excel files need openpyxl: {advice}") from error
    import pandas as pd

    if size > max(_ALLOWED_UNPACKED_BYTES, _MAX_UNPACKED_RATIO * packed.seek(0, io.SEEK_END)):
        raise TableError("it unpacks to implausibly many bytes; save the table as CSV, if you trust it.")
    packed.seek(0)
    try:
        with pd.ExcelFile(packed, engine="openpyxl") as book:
            names = book.sheet_names
            cells = pd.read_excel(book, header=None, dtype=object, na_filter=False)
    except Exception as error:  # openpyxl raises errors of many types if a file is damaged
        why = " ".join(str(error).split())[:100]
        raise TableError(f"it is an Excel file that cannot be read ({why}); save the table as CSV.") from error
    if len(names) > 1:
        warnings.warn(f"of {len(names)} sheets, the first, {names[0]!r}, is read", stacklevel=2)
    return io.BytesIO(cells.to_csv(header=False, index=False).encode())


def _format_of(source: Source, head: bytes) -> Format:
    if source.format != "auto":
        return source.format
    if head[:4] == b"PAR1":
        return "parquet"
    first = next((line for line in head.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    if _LIBSVM_LINE.fullmatch(first.strip()):
        return "libsvm"
    return "tsv" if re.search(r"\.(tsv|tab)(\.(gz|bz2|xz|zip))?$", source.path, re.IGNORECASE) else "csv"
