"""Input and output files of the commands."""

from pathlib import Path
from typing import Any

import typer

from melc.cli.options import TableFormat


def table_source(data: str, format: TableFormat, delimiter: str | None) -> Any:
    """Return the :class:`melc.tables.Source` that the command-line arguments describe."""
    from melc.tables.read import Source

    character = {r"\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
    if character is not None and len(character) != 1:
        raise typer.BadParameter(f"{delimiter!r} is not a single character.", param_hint="--delimiter")
    return Source(data, format.value, character)


def read_data(data: str, format: TableFormat, delimiter: str | None) -> Any:
    """Return the whole input table as a ``pyarrow.Table``."""
    from melc.tables.read import read_table

    return read_table(table_source(data, format, delimiter))


def load_model(path: Path) -> Any:
    """Return the :class:`melc.tables.TableModel` stored in a file."""
    from melc.export.document import MOST_BYTES
    from melc.tables.model import table_model_from_json

    with open(path, "rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    try:
        return table_model_from_json(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def check_output(path: Path, force: bool) -> None:
    """Raise ``ValueError`` if a file cannot or must not be written; called before any work is done."""
    if path.exists() and not force:
        raise ValueError(f"{path} already exists; use --force to overwrite it.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: the folder {path.absolute().parent} does not exist; create it first.")


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all."""
    from melc.export.files import replacing

    with replacing(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
