"""Read CSV files, whole or block by block. Columns that Arrow would parse as anything but numbers are read as text."""

import codecs
import csv
import io
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from melc.tables.source import HEADER_BYTES, Format, Source, TableError, arrow, first_bytes, listed, wrong_encoding

Kind = Literal["number", "text"]

_BLOCK_BYTES = 4 * 2**20
_LONGEST_HEADER = 16 * 2**20
_BASE_16 = re.compile(r"[ \t]*[+-]?0[xX]")
_BYTES_OF_BASE_16 = re.compile(rb"0\0*[xX]")  # with zeros in between in UTF-16
_DELIMITERS = ",;\t|"
# The delimiter is guessed from this many lines.
_LINES_FOR_DELIMITER = 50


@dataclass(frozen=True)
class Layout:
    """How a CSV file is written: the names of its columns, how many lines they end after, and the delimiter.

    ``nameless`` are the names that were made up, because the first line has none.
    """

    names: list[str]
    n_lines: int
    delimiter: str
    nameless: tuple[str, ...] = ()


def layout_of(stream: Any, source: Source, format: Format) -> Layout:
    """Return the layout of a CSV file, from its beginning. Columns without a name are named."""
    text = _beginning(stream, source.encoding)
    text = "".join(text.splitlines(keepends=True)[source.skip_rows :])
    if "\0" in text:
        raise TableError("the file contains binary data; expected text in columns.")
    delimiter = source.delimiter or ("\t" if format == "tsv" else _guessed_delimiter(text))
    if not source.skip_rows and _common_width(text, delimiter) == 1:
        _refuse_title(text, source.delimiter or _DELIMITERS)
    n_lines, names = _first_line(text, delimiter)
    layout = _named(names, n_lines + source.skip_rows, delimiter)
    check_names(layout.names)
    return layout


def _beginning(stream: Any, encoding: str) -> str:
    """Return the first complete lines of a file."""
    head = _with_first_line(stream)
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    try:
        text = decoder.decode(head, final=len(head) < HEADER_BYTES)
    except UnicodeDecodeError as error:
        raise wrong_encoding(f"byte {error.start} is not valid {encoding.upper()}", head) from None
    return text[: text.rfind("\n") + 1] or text


def _with_first_line(stream: Any) -> bytes:
    """Return the first bytes of a file, with the whole of its first line."""
    size = HEADER_BYTES
    while len(head := first_bytes(stream, size)) >= size and b"\n" not in head and b"\r" not in head:
        size *= 2
        if size > _LONGEST_HEADER:
            raise TableError(
                f"the first line, with the names of the columns, is longer than {_LONGEST_HEADER >> 20} MiB; shorten "
                "the names, or convert the table to Parquet."
            )
    return head


def _guessed_delimiter(text: str) -> str:
    """Return the character that divides the first lines into the same number of columns, at least two; else a comma."""
    return max(_DELIMITERS, key=lambda mark: _common_width(text, mark))


def _common_width(text: str, delimiter: str) -> int:
    """Return the number of columns that all of the first lines have, or 1 if they differ. Empty lines do not count."""
    widths = set(_widths(text, delimiter)) - {0}
    return widths.pop() if len(widths) == 1 else 1


def _widths(text: str, delimiter: str) -> list[int]:
    """Return the number of columns of each of the first lines; nothing if they are no CSV."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        return [len(line) for line in itertools.islice(lines, _LINES_FOR_DELIMITER)]
    except csv.Error:
        return []


def _refuse_title(text: str, delimiters: str) -> None:
    """Raise ``TableError`` if the table begins below other lines, such as a title."""
    for mark in delimiters:
        widths = _widths(text, mark)
        common = widths[-1] if widths else 0
        n_other = max((k + 1 for k, width in enumerate(widths) if width != common), default=0)
        if common > 1 and max(widths[:n_other], default=common) < common and n_other < len(widths) / 2:
            after, them = ("one other line", "it") if n_other == 1 else (f"{n_other} other lines", "them")
            what = f"the table seems to begin after {after}; skip {them} with --skip-rows {n_other}."
            raise TableError(what, ["--skip-rows", str(n_other)])


def _first_line(text: str, delimiter: str) -> tuple[int, list[str]]:
    """Return the first line that is not empty as a list of cells, and how many lines end with it."""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return next(((k, line) for k, line in enumerate(lines, 1) if line), (1, [""]))


def _named(names: list[str], n_lines: int, delimiter: str) -> Layout:
    """Return the layout with names for the columns that have none, as the index that pandas writes has none."""
    if not any(name.strip() for name in names):
        raise TableError("the first line is empty; it must contain the names of the columns.")
    made_up = {k: f"column {k + 1}" for k, name in enumerate(names) if not name.strip()}
    return Layout([made_up.get(k, name) for k, name in enumerate(names)], n_lines, delimiter, tuple(made_up.values()))


def note_nameless(layout: Layout) -> None:
    """Warn of columns without a name."""
    if layout.nameless:
        first, more = layout.nameless[0], len(layout.nameless) - 1
        warnings.warn(
            f"{first} has no name and is called {first!r}{f', and so are {more} more' * (more > 0)}; if it only counts "
            f"the rows, leave it out with --drop {first!r}",
            stacklevel=2,
        )


def check_names(names: list[str]) -> None:
    """Raise ``TableError`` if a column name is empty or occurs twice."""
    twice = sorted((name, count) for name, count in Counter(names).items() if count > 1)
    if twice:
        raise TableError(f"the column name {twice[0][0]!r} occurs {twice[0][1]} times; rename the columns.")
    if any(not name.strip() for name in names):
        nameless = [not name.strip() for name in names].index(True) + 1
        raise TableError(f"column {nameless} has no name; name it in the first line.")


def read_csv(stream: Any, source: Source, format: Format) -> Any:
    """Return the whole file, with columns of numbers and strings.

    Columns that Arrow would parse as anything else, such as dates, are read as strings; so are numbers in base 16,
    which it knows in whole columns of integers alone.
    """
    pa = arrow()
    layout = layout_of(stream, source, format)
    note_nameless(layout)
    content = stream.read()
    table = pa.csv.read_csv(io.BytesIO(content), **_options(source, layout, {}, None))
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_null)
    others = {field.name: pa.string() for field in table.schema if not any(test(field.type) for test in plain)}
    if _BYTES_OF_BASE_16.search(content):
        others |= {field.name: pa.string() for field in table.schema if _is_base_16(content, field, source, layout)}
    if others:
        table = pa.csv.read_csv(io.BytesIO(content), **_options(source, layout, others, None))
    return table


def _is_base_16(content: bytes, field: Any, source: Source, layout: Layout) -> bool:
    """Whether a column that was read as integers has some in base 16."""
    pa = arrow()
    if not pa.types.is_integer(field.type):
        return False
    options = _options(source, layout, {field.name: pa.string()}, [field.name])
    texts = pa.csv.read_csv(io.BytesIO(content), **options).column(0).drop_null()
    return any(_BASE_16.match(text.as_py()) for text in texts)


def csv_blocks(
    stream: Any,
    source: Source,
    format: Format,
    kinds: Mapping[str, Kind] | None,
    drop: Collection[str] = (),
) -> Generator[Any, None, None]:
    """Yield blocks of rows with the columns named in ``kinds``, each read as numbers or text.

    Without ``kinds``, all columns except those to drop are read as texts, as they are written in the file.
    """
    pa = arrow()
    layout = layout_of(stream, source, format)
    if kinds is None:
        note_nameless(layout)
        kinds = dict.fromkeys([name for name in layout.names if name not in drop], "text")
    check_present(layout.names, kinds)
    types = {name: pa.float64() if kind == "number" else pa.string() for name, kind in kinds.items()}
    try:
        yield from pa.csv.open_csv(stream, **_options(source, layout, types, list(kinds)))
    except pa.ArrowInvalid as error:
        if "Expected" in str(error):
            raise  # a row with too few or too many columns
        raise TableError(_with_column_name(str(error), layout.names)) from None


def _options(source: Source, layout: Layout, types: dict[str, Any], include: list[str] | None) -> dict[str, Any]:
    pa = arrow()
    made_up = {"column_names": layout.names, "skip_rows_after_names": layout.n_lines} if layout.nameless else {}
    skipped = {} if layout.nameless else {"skip_rows": source.skip_rows}
    missing = [*pa.csv.ConvertOptions().null_values, *source.na_values]
    return {
        "read_options": pa.csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=source.encoding, **made_up, **skipped),
        "parse_options": pa.csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        "convert_options": pa.csv.ConvertOptions(
            column_types=types,
            include_columns=include,
            strings_can_be_null=True,
            null_values=missing,
            decimal_point=source.decimal or ".",
        ),
    }


def _with_column_name(message: str, names: list[str]) -> str:
    """Return Arrow's message with column numbers replaced by names, on one line; or a better one."""
    if "straddling object" in message:
        return (
            f"a row is longer than {_BLOCK_BYTES >> 20} MiB; perhaps a quotation mark is not closed, or the file is no "
            "CSV file."
        )
    wrong = re.search(r"In CSV column #(\d+): .*conversion error to double: invalid value '(.*)'", message, re.DOTALL)
    if wrong:
        return (
            f"the column {names[int(wrong[1])]!r} must contain numbers, and contains {wrong[2][:40]!r}. If it stands "
            "for a missing value, say so with --na-values; if numbers are written in another way, with --decimal or "
            "--thousands."
        )
    named = re.sub(r"CSV column #(\d+)", lambda match: f"column {names[int(match[1])]!r}", message)
    return " ".join(named.split())[:300]


def check_present(names: list[str], wanted: Mapping[str, Kind]) -> None:
    """Raise ``TableError`` if a wanted column is missing."""
    present = set(names)
    missing = [name for name in wanted if name not in present]
    if missing:
        what, are = ("columns", "are") if len(missing) > 1 else ("column", "is")
        raise TableError(f"the file has no {what} {listed(missing, 5)}, which {are} needed{delimiter_hint(names)}.")


def delimiter_hint(names: list[str]) -> str:
    """Return a hint if the file seems to have only one column because of a wrong delimiter."""
    if len(names) != 1:
        return ""
    other = next((mark for mark in ";\t|," if mark in names[0]), None)
    return (
        f"; the file seems to have only one column: is the delimiter {other!r}? Set it with --delimiter"
        if other
        else ""
    )
