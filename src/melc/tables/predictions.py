"""Write predictions as CSV, block by block."""

import csv
import io
from typing import Any, BinaryIO

import numpy as np

from melc.tables.arrow import arrow
from melc.tables.model import Predictions, TableModel
from melc.tables.read import Source, TableError


def write_predictions(fitted: TableModel, source: Source, proba: bool, stream: BinaryIO) -> dict[str, int]:
    """Write one line per row of the source; return the number of unknown values per text column."""
    classes = fitted.model.classes_
    header = ["prediction", *(f"probability_{label}" for label in classes)] if proba else ["prediction"]
    rendered = arrow().array([_csv_line([str(label)]).rstrip("\n") for label in classes])
    unseen: dict[str, int] = {}
    n_rows = 0
    for block in fitted.predictions(source, proba=proba):
        if n_rows == 0:  # not earlier, so that nothing is written for a file that cannot be read
            stream.write(_csv_line(header).encode())
        stream.write(_lines(block, classes, rendered))
        n_rows += len(block.labels)
        for name, count in block.n_unseen.items():
            unseen[name] = unseen.get(name, 0) + count
    if n_rows == 0:
        raise TableError(f"{source.name}: the file has a header but no rows.")
    return unseen


def _csv_line(cells: list[str]) -> str:
    """Return the cells as a line of CSV, quoted where needed."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _lines(block: Predictions, classes: Any, rendered: Any) -> bytes:
    """Return the lines of a block, joined by Arrow because a loop over rows takes longer than reading them."""
    pa = arrow()
    texts = rendered.take(pa.array(np.searchsorted(classes, block.labels)))
    if block.probabilities is not None:
        numbers = [pa.array(np.ascontiguousarray(p)).cast(pa.string()) for p in block.probabilities.T]
        texts = pa.compute.binary_join_element_wise(texts, *numbers, ",")
    return ("\n".join(texts.to_pylist()) + "\n").encode()
