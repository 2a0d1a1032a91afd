"""What a fitted model says of the rows of a file of any size: predictions, scores, explanations; and its query."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.explain import explain, nearest_change
from melc.export.sql import to_sql
from melc.model.names import feature_names_of
from melc.tables.csv_files import Kind
from melc.tables.frames import kinds_for, one_piece, rows_for, unknown_levels
from melc.tables.model_file import StoredModel
from melc.tables.read import first_rows, read_blocks
from melc.tables.roles import labels_of, weights_of
from melc.tables.source import Source, TableError, arrow
from melc.tables.summary import shares

_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)  # as in sklearn.metrics.log_loss

# Predictions


@dataclass(frozen=True)
class Predictions:
    """Predictions for a block of rows.

    ``labels`` has shape (n_rows,); ``probabilities`` has shape (n_rows, n_classes) or is None; ``n_unseen`` is the
    number of unknown values per category. ``kept`` are Arrow arrays of texts, one for each column kept.
    """

    labels: NDArray[Any]
    probabilities: Floats | None
    n_unseen: dict[str, int]
    kept: tuple[Any, ...] = ()


def predictions(model: Any, source: Source, *, proba: bool = False, keep: Sequence[str] = ()) -> Iterator[Predictions]:
    """Yield the predictions for a file block by block, in the order of its rows.

    The columns named in ``keep`` are returned with them, as they are written in the file.
    """
    kinds: dict[str, Kind] = {**kinds_for(model, source), **dict.fromkeys(keep, "text")}
    for block in read_blocks(source, kinds):
        kept = tuple(one_piece(block.column(name)) for name in keep)
        frame = rows_for(model, block, source)
        probabilities = model.predict_proba(frame) if proba else None
        yield Predictions(model.predict(frame), probabilities, unknown_levels(model, frame), kept)


def write_predictions(
    model: Any,
    source: Source,
    stream: BinaryIO,
    *,
    proba: bool = False,
    keep: tuple[str, ...] = (),
    as_json: bool = False,
) -> dict[str, int]:
    """Write one line per row of the source, as CSV or JSON; return the number of unknown values per category.

    ``keep`` are columns of the source to carry through; ``proba`` adds the probabilities of the classes.
    """
    classes = model.classes_
    header = [*keep, "prediction", *(f"probability_{label}" for label in classes if proba)]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise TableError(f"The output would have two columns {twice!r}; keep it once, or rename it in the file.")
    begin, between, end = (b"[\n", b",\n", b"\n]\n") if as_json else (_csv_line(header).encode(), b"", b"")
    unseen: Counter[str] = Counter()
    n_rows = 0
    for block in predictions(model, source, proba=proba, keep=keep):
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
    n_unseen: dict[str, int]  # values of categories that do not occur in the training data

    @property
    def balanced_accuracy(self) -> float:
        """Mean over the classes that occur of the share of their rows that is predicted correctly."""
        return float(np.nanmean(shares(self.confusion, 1)))

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "rows": self.n_rows,
            "classes": self.classes,
            "confusion": self.confusion.tolist(),
            "balanced_accuracy": self.balanced_accuracy,
            "log_loss": self.log_loss,
        }


def score_file(fitted: StoredModel, source: Source, target: str | None = None, weights: str | None = None) -> Scores:
    """Return the scores of a model on the rows of a file, read block by block.

    ``target`` is the column with the true classes, by default that of the model; ``weights`` one of sample weights.
    """
    model, classes = fitted.model, fitted.classes
    confusion, loss, n_rows = np.zeros((len(classes), len(classes))), 0.0, 0
    unseen: Counter[str] = Counter()
    for block, truth in labelled_blocks(fitted, source, fitted.target_or(target), weights):
        frame = rows_for(model, block, source)
        unseen.update(unknown_levels(model, frame))
        mass = np.ones(len(truth)) if weights is None else weights_of(block.column(weights), weights)
        found = np.searchsorted(classes, model.predict(frame))
        np.add.at(confusion, (truth, found), mass)
        own = model.predict_proba(frame)[np.arange(len(truth)), truth]
        loss -= float(mass @ np.log(np.maximum(own, _SMALLEST_PROBABILITY)))
        n_rows += len(truth)
    if not confusion.sum():
        raise TableError(f"{source.name}: there are no rows to score the model on.")
    return Scores(classes.tolist(), confusion, loss / float(confusion.sum()), n_rows, dict(unseen))


def labelled_blocks(
    fitted: StoredModel, source: Source, target: str, weights: str | None = None
) -> Iterator[tuple[Any, NDArray[np.int64]]]:
    """Yield the blocks of a file, each with the numbers of the classes in the column ``target``.

    A block has the columns of the model and the target and, if given, the column ``weights``.
    """
    kind: Kind = "number" if fitted.classes.dtype.kind in "iu" else "text"
    kinds = kinds_for(fitted.model, source) | {target: kind}
    kinds |= {} if weights is None else {weights: "number"}
    for block in read_blocks(source, kinds):
        yield block, _codes_in(fitted.classes, block.column(target), target)


def _codes_in(classes: NDArray[Any], column: Any, name: str) -> Any:
    """Return the numbers of the classes in a column."""
    import pandas as pd

    truth, names = _known_labels(classes, labels_of(column, name)), classes.astype(str)
    codes = pd.Index(names).get_indexer(truth)
    unknown = truth[codes < 0]
    if len(unknown):
        raise TableError(
            f"The target {name!r} contains {str(unknown[0])!r}, which is not a class of the model; its classes are "
            f"{', '.join(names[:8])}."
        )
    return codes


def _known_labels(classes: NDArray[Any], labels: Any) -> Any:
    """Return labels as texts that the model knows: in a model of "a" against "not a", all others become "not a"."""
    texts = labels.astype(str)
    opposite = [str(c) for c in classes if str(c).startswith("not ")]
    if len(classes) == 2 and opposite and opposite[0][4:] in map(str, classes):
        texts = np.where(texts == opposite[0][4:], texts, opposite[0])
    return texts


# Explanations


def explained_rows(model: Any, source: Source, n: int, most: int = 10) -> str:
    """Return, as text, the parts of the features in the first n rows of a file, and the nearest change of each."""
    frame = rows_for(model, first_rows(source, kinds_for(model, source), n), source)
    parts, change = explain(model, frame), nearest_change(model, frame)
    return "\n\n".join(
        f"row {i + 1}: {parts.summary(i, most=most)}\nnearest change: {change.summary(i, most=most)}"
        for i in range(len(frame))
    )


def sql_of(model: Any, table: str, *, odds: bool = False) -> str:
    """Return the query of :func:`melc.export.to_sql`.

    An added column whose name a column of the table has already, such as ``prediction``, ends with an underscore.
    """
    taken = feature_names_of(model)
    added = {name: _unused(name, taken) for name in ("prediction", "projection", "log_odds")}
    return to_sql(model, table, odds=odds, **added)


def _unused(name: str, taken: Sequence[str]) -> str:
    """Return the name, with underscores at its end until it differs from those taken, also if a number follows."""
    while any(other.casefold().rstrip("0123456789") == name for other in taken):  # SQL ignores case
        name += "_"
    return name
