"""Input and output files of the commands."""

import codecs
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import typer

from melc.cli.console import printable
from melc.cli.options import CsvOptions, TableOptions


def table_source(data: str, options: CsvOptions, fitted: Any = None) -> Any:
    """Return the :class:`melc.tables.Source` that the command-line arguments describe.

    What they do not say is as in the table that the model ``fitted`` has learned from, if given.
    """
    from melc.tables.source import Source

    character = {r"\t": "\t", "tab": "\t"}.get(options.delimiter or "", options.delimiter)
    marks = {"--delimiter": character, "--decimal": options.decimal, "--thousands": options.thousands}
    for option, given in marks.items():
        if given is not None and len(given) != 1:
            raise typer.BadParameter(f"{given!r} is not a single character.", param_hint=option)
    if options.decimal is not None and options.decimal == options.thousands:
        raise typer.BadParameter(f"{options.decimal!r} is the decimal mark already.", param_hint="--thousands")
    encoding = options.encoding or "utf-8"
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise typer.BadParameter(f"{encoding!r} is not a known encoding.", param_hint="--encoding") from None
    format: Any = options.format.value if isinstance(options, TableOptions) else "auto"
    source = Source(
        data,
        format,
        character,
        encoding,
        options.decimal,
        tuple(options.na_values or ()),
        thousands=options.thousands,
        date_format=options.date_format,
        skip_rows=options.skip_rows or 0,
    )
    return source if fitted is None else fitted.reads(source)


def load_model(path: Path) -> Any:
    """Return the :class:`melc.tables.model_file.StoredModel` in a file."""
    from melc.export.document import MOST_BYTES
    from melc.tables.model_file import read_model

    with open(path, "rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    try:
        return read_model(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_output(path: Path, force: bool) -> None:
    """Raise ``ValueError`` if a file cannot or must not be written; called before any work is done.

    Pipes and devices are written to and never replaced, so they need no ``force``.
    """
    from melc.export.files import check_writable

    if is_standard_output(path):
        return
    if path.is_file() and not force:
        raise ValueError(f"{path} already exists; use --force to overwrite it.")
    check_writable(path)


def is_standard_output(path: Path) -> bool:
    """Whether an output path is "-", which means standard output."""
    return str(path) == "-"


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Yield a stream to standard output, or to a file that is written completely or not at all.

    A terminal gets what it can show; files and pipes get the bytes as they are.
    """
    from melc.export.files import replacing

    if is_standard_output(path):
        yield cast(BinaryIO, _Terminal()) if sys.stdout.isatty() else sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with replacing(path) as draft, open(draft, "wb") as stream:
            yield stream


class _Terminal:
    """Standard output that shows characters of names and labels which a terminal would obey."""

    def write(self, text: bytes) -> int:
        """Write a text in UTF-8 that ends with a whole character."""
        return sys.stdout.buffer.write(printable(text.decode()).encode())


def write_binary(path: Path, content: bytes, what: str) -> None:
    """Write bytes that are no text; a terminal is refused."""
    if is_standard_output(path) and sys.stdout.isatty():
        raise ValueError(f"{what} is binary and cannot be shown on a terminal; write it to a file with -o.")
    with writing(path) as stream:
        stream.write(content)


def write_text(path: Path, content: str) -> None:
    """Write a text. On standard output it ends with a line break."""
    with writing(path) as stream:
        stream.write(content.encode())
        if is_standard_output(path):
            stream.write(b"\n")
