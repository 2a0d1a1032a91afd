"""Apply a fitted model to the rows of a file of any size: predictions, scores, and explanations of the first rows."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.explain import explain, nearest_change
from melc.tables.csv_files import Kind
from melc.tables.encoding import Encoded
from melc.tables.fit import labels_of, weights_of
from melc.tables.model import Predictions, TableModel
from melc.tables.read import read_blocks
from melc.tables.source import Source, TableError, arrow

_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)  # as in sklearn.metrics.log_loss

# Predictions


def write_predictions(
    fitted: TableModel,
    source: Source,
    stream: BinaryIO,
    *,
    proba: bool = False,
    keep: tuple[str, ...] = (),
    as_json: bool = False,
) -> dict[str, int]:
    """Write one line per row of the source, as CSV or JSON; return the number of unknown values per text column.

    ``keep`` are columns of the source to carry through; ``proba`` adds the probabilities of the classes.
    """
    classes = fitted.model.classes_
    header = [*keep, "prediction", *(f"probability_{label}" for label in classes if proba)]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise TableError(f"The output would have two columns {twice!r}; keep it once, or rename it in the file.")
    begin, between, end = (b"[\n", b",\n", b"\n]\n") if as_json else (_csv_line(header).encode(), b"", b"")
    unseen: Counter[str] = Counter()
    n_rows = 0
    for block in fitted.predictions(source, proba=proba, keep=keep):
        stream.write(between if n_rows else begin)  # not earlier, so that nothing is written for an unreadable file
        stream.write(_json_lines(block, classes, header) if as_json else _csv_lines(block, classes))
        n_rows += len(block.labels)
        unseen.update(block.n_unseen)
    if n_rows == 0:
        raise TableError(f"{source.name}: the file has a header but no rows.")
    stream.write(end)
    return dict(unseen)


def _csv_line(cells: list[str]) -> str:
    """Return the cells as a line of CSV, quoted where needed."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _csv_lines(block: Predictions, classes: Any) -> bytes:
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


# Scores


@dataclass(frozen=True)
class Scores:
    """Scores of a model. ``confusion`` has a row for each true class and a column for each predicted one."""

    classes: list[Any]
    confusion: Floats
    log_loss: float
    n_rows: int
    n_unseen: dict[str, int]  # values of text columns that do not occur in the training data

    @property
    def balanced_accuracy(self) -> float:
        """Mean over the classes that occur of the share of their rows that is predicted correctly."""
        totals = self.confusion.sum(axis=1)
        occur = totals > 0
        return float(np.mean(np.diag(self.confusion)[occur] / totals[occur]))

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "rows": self.n_rows,
            "classes": self.classes,
            "confusion": self.confusion.tolist(),
            "balanced_accuracy": self.balanced_accuracy,
            "log_loss": self.log_loss,
        }


def score_file(fitted: TableModel, source: Source, target: str | None = None, weights: str | None = None) -> Scores:
    """Return the scores of a model on the rows of a file, read block by block.

    ``target`` is the column with the true classes, by default that of the model; ``weights`` one of sample weights.
    """
    classes = fitted.model.classes_
    confusion, loss, n_rows = np.zeros((len(classes), len(classes))), 0.0, 0
    unseen: Counter[str] = Counter()
    for block, encoded, truth in labelled_blocks(fitted, source, target or fitted.target, weights):
        unseen.update(encoded.n_unseen)
        mass = np.ones(len(truth)) if weights is None else weights_of(block.column(weights), weights)
        found = np.searchsorted(classes, fitted.model.predict(encoded.X))
        np.add.at(confusion, (truth, found), mass)
        own = fitted.model.predict_proba(encoded.X)[np.arange(len(truth)), truth]
        loss -= float(mass @ np.log(np.maximum(own, _SMALLEST_PROBABILITY)))
        n_rows += len(truth)
    if not confusion.sum():
        raise TableError(f"{source.name}: there are no rows to score the model on.")
    return Scores(classes.tolist(), confusion, loss / float(confusion.sum()), n_rows, dict(unseen))


def labelled_blocks(
    fitted: TableModel, source: Source, target: str, weights: str | None = None
) -> Iterator[tuple[Any, Encoded, NDArray[np.int64]]]:
    """Yield the blocks of a file, each with its features and the numbers of the classes in the column ``target``.

    A block has the columns of the model and the target and, if given, the column ``weights``.
    """
    kind: Kind = "number" if fitted.model.classes_.dtype.kind in "iu" else "text"
    kinds = fitted.encoding.kinds | {target: kind} | ({} if weights is None else {weights: "number"})
    for block in read_blocks(source, kinds, len(fitted.encoding.feature_names)):
        yield block, fitted.encoding.encode(block), _codes_in(fitted, block.column(target), target)


def _codes_in(fitted: TableModel, column: Any, name: str) -> Any:
    """Return the numbers of the classes in a column."""
    truth = _known_labels(fitted, labels_of(column, name))
    names = fitted.model.classes_.astype(str)
    order = np.argsort(names)
    places = np.minimum(np.searchsorted(names, truth, sorter=order), len(names) - 1)
    codes = order[places]
    unknown = truth[names[codes] != truth]
    if len(unknown):
        raise TableError(
            f"The target {name!r} contains {str(unknown[0])!r}, which is not a class of the model; its classes are "
            f"{', '.join(names[:8])}."
        )
    return codes


def _known_labels(fitted: TableModel, labels: Any) -> Any:
    """Return labels as texts that the model knows: in a model of "a" against "not a", all others become "not a"."""
    classes = fitted.model.classes_
    texts = labels.astype(str)
    opposite = [str(c) for c in classes if str(c).startswith("not ")]
    if len(classes) == 2 and opposite and opposite[0][4:] in map(str, classes):
        texts = np.where(texts == opposite[0][4:], texts, opposite[0])
    return texts


# Explanations


def explained_rows(fitted: TableModel, source: Source, n: int, most: int = 10) -> str:
    """Return the parts of the features in the first n rows of a file, and the nearest change of class of each, as text.

    Only columns of numbers and dates change: a text cannot change a little.
    """
    columns, names = fitted.encoding.columns, fitted.encoding.feature_names
    changeable = [name for c in columns if c.categories is None for name in c.feature_names]
    blocks, found = [], 0
    for block in read_blocks(source, fitted.encoding.kinds, len(names)):
        blocks.append(fitted.encoding.encode(block.slice(0, n - found)).X)
        found += len(blocks[-1])
        if found >= n:
            break
    if not found:
        raise ValueError(f"{source.name}: the table has no rows to explain.")
    X = np.concatenate(blocks)
    parts = explain(fitted.model, X, feature_names=names)
    change = nearest_change(fitted.model, X, features=changeable, feature_names=names)
    return "\n\n".join(
        f"row {i + 1}: {parts.summary(i, most=most)}\nnearest change: {change.summary(i, most=most)}"
        for i in range(found)
    )
