"""Write predictions as CSV or JSON, block by block."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from melc.tables.arrow import arrow
from melc.tables.model import Predictions, TableModel
from melc.tables.source import Source, TableError


@dataclass(frozen=True)
class Wanted:
    """What to write: the probabilities of the classes, columns of the source to carry through, and CSV or JSON."""

    proba: bool = False
    keep: tuple[str, ...] = ()
    as_json: bool = False


def write_predictions(fitted: TableModel, source: Source, wanted: Wanted, stream: BinaryIO) -> dict[str, int]:
    """Write one line per row of the source; return the number of unknown values per text column."""
    classes = fitted.model.classes_
    header = [*wanted.keep, "prediction", *(f"probability_{label}" for label in classes if wanted.proba)]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise TableError(f"The output would have two columns {twice!r}; keep it once, or rename it in the file.")
    begin, between, lines_of, end = _json_parts() if wanted.as_json else _csv_parts(header)
    unseen: dict[str, int] = {}
    n_rows = 0
    for block in fitted.predictions(source, proba=wanted.proba, keep=wanted.keep):
        stream.write(between if n_rows else begin)  # not earlier, so that nothing is written for an unreadable file
        stream.write(lines_of(block, classes, header))
        n_rows += len(block.labels)
        for name, count in block.n_unseen.items():
            unseen[name] = unseen.get(name, 0) + count
    if n_rows == 0:
        raise TableError(f"{source.name}: the file has a header but no rows.")
    stream.write(end)
    return unseen


# What is written before the first block, between blocks, for a block, and after the last one.
_Parts = tuple[bytes, bytes, Callable[[Predictions, Any, list[str]], bytes], bytes]


def _csv_parts(header: list[str]) -> _Parts:
    return _csv_line(header).encode(), b"", _csv_lines, b""


def _json_parts() -> _Parts:
    return b"[\n", b",\n", _json_lines, b"\n]\n"


def _csv_line(cells: list[str]) -> str:
    """Return the cells as a line of CSV, quoted where needed."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _csv_lines(block: Predictions, classes: Any, header: list[str]) -> bytes:
    """Return the lines of a block, joined by Arrow because a loop over rows takes longer than reading them."""
    pa = arrow()
    rendered = pa.array([_csv_line([str(label)]).rstrip("\n") for label in classes])
    cells = [_csv_cells(values) for values in block.kept]
    cells.append(rendered.take(pa.array(np.searchsorted(classes, block.labels))))
    if block.probabilities is not None:
        cells += [pa.array(np.ascontiguousarray(p)).cast(pa.string()) for p in block.probabilities.T]
    texts = pa.compute.binary_join_element_wise(*cells, ",") if len(cells) > 1 else cells[0]
    return ("\n".join(texts.to_pylist()) + "\n").encode()


def _csv_cells(values: Any) -> Any:
    """Return texts as cells of CSV: missing ones are empty, and those that need it are quoted."""
    pa = arrow()
    different = values.dictionary_encode()
    cells = [_csv_line([text, ""])[:-2] if text else "" for text in different.dictionary.to_pylist()]
    return pa.array(cells, pa.string()).take(different.indices).fill_null("")


def _json_lines(block: Predictions, classes: Any, header: list[str]) -> bytes:
    """Return the rows of a block as objects, one per line, with labels as they are in the model."""
    columns = [values.to_pylist() for values in block.kept]
    columns.append(classes[np.searchsorted(classes, block.labels)].tolist())
    if block.probabilities is not None:
        columns += block.probabilities.T.tolist()
    rows = (dict(zip(header, row, strict=True)) for row in zip(*columns, strict=True))
    return ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
