"""A page about a model, on the rows of a file of any size."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from melc.report.page import page_of
from melc.report.subject import subject_of
from melc.tables.apply import labelled_blocks
from melc.tables.frames import FrameRows, MappedRows, contents_of, named_for
from melc.tables.model_file import StoredModel
from melc.tables.roles import weights_of
from melc.tables.source import Source, TableError
from melc.tables.training import Training

# How often a report says what it is doing.
STEPS = 7


@contextmanager
def open_rows(
    fitted: StoredModel, source: Source, target: str | None = None, weights: str | None = None
) -> Iterator[Training]:
    """Yield the rows of a file for a model, with the classes in its column ``target`` and perhaps their ``weights``.

    The file is read once, block by block. Rows of numbers are in a temporary file until the end of the block.
    """
    contents, target = contents_of(fitted.model), fitted.target_or(target)
    codes, found = [], []
    with tempfile.TemporaryDirectory(prefix="melc-") as folder:
        are_numbers = set(contents.values()) == {"number"}
        rows = MappedRows(list(contents), Path(folder), source) if are_numbers else FrameRows(contents, source)
        for block, block_codes in labelled_blocks(fitted, source, target, weights):
            codes.append(block_codes)
            if weights is not None:
                found.append(weights_of(block.column(weights), weights))
            rows.add(block)
        if not sum(map(len, codes)):
            raise TableError(f"{source.name}: there are no rows to report on.")
        given = np.concatenate(found) if found else None
        X = named_for(fitted.model, rows.frame())
        yield Training(X, fitted.classes, np.concatenate(codes), given, target, source)


def table_report(
    fitted: StoredModel,
    table: Training,
    title: str | None,
    step: Callable[[str], None],
    *,
    max_rows: int,
    **options: Any,
) -> str:
    """Return the page about a model as HTML text; the options are those of :func:`melc.report.page.page_of`."""
    about, seed = _about(fitted, table), options["seed"]
    given: dict[str, Any] = {"codes": table.codes, "sample_weight": table.weights, "about": about}
    subject = subject_of(fitted.model, table.X, None, max_rows=max_rows, seed=seed, **given)
    name = f"Model of {fitted.target}" if fitted.target else f"{type(fitted.model).__name__} report"
    return page_of(subject, title or name, step, **options)


def _about(fitted: StoredModel, rows: Training) -> dict[str, str]:
    """Return what the model card says of the file."""
    about = {"Data": rows.source.name} | ({"Target": fitted.target} if fitted.target else {})
    path = Path(rows.source.path)
    if path.is_file():
        with open(path, "rb") as stream:
            about["Hash of the file"] = f"SHA-256 {hashlib.file_digest(stream, 'sha256').hexdigest()}"
    return about
