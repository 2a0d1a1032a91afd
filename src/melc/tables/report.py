"""A page about a table model, on the rows of a file of any size."""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.report.fields import MOST_CHOICES, MOST_FIELDS, Field, by_importance, number_field
from melc.report.page import page_of
from melc.report.subject import subject_of
from melc.tables.apply import labelled_blocks
from melc.tables.encoding import Column, Encoding
from melc.tables.model import TableModel
from melc.tables.source import Source, TableError, writing_temporary_file

# How often a report says what it is doing.
STEPS = 7
_MOST_COLUMNS_NAMED = 12


@dataclass(frozen=True)
class TableRows:
    """The rows of a file as features, in a mapped file, with the codes of their classes; missing and unknown values."""

    X: Floats
    codes: NDArray[Any]
    n_missing: dict[str, int]
    n_unseen: dict[str, int]
    source: Source


@contextmanager
def open_rows(fitted: TableModel, source: Source, target: str | None = None) -> Iterator[TableRows]:
    """Yield the rows of a file, encoded for a model, with the classes in its column ``target``.

    The file is read once, block by block. The rows are in a temporary file until the end of the block.
    """
    n_features = len(fitted.encoding.feature_names)
    missing, unseen, codes = Counter[str](), Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="melc-") as folder:
        path = Path(folder) / "rows"
        with writing_temporary_file(), open(path, "wb") as stream:
            for block, encoded, block_codes in labelled_blocks(fitted, source, target or fitted.target):
                missing.update({name: block.column(name).null_count for name in fitted.encoding.kinds})
                unseen.update(encoded.n_unseen)
                codes.append(block_codes)
                stream.write(encoded.X.data)
        if not sum(map(len, codes)):
            raise TableError(f"{source.name}: there are no rows to report on.")
        all_codes = np.concatenate(codes)
        X = np.memmap(path, dtype=np.float64, mode="r", shape=(len(all_codes), n_features))
        yield TableRows(X, all_codes, dict(missing), dict(unseen), source)


def table_report(
    fitted: TableModel,
    table: TableRows,
    title: str | None,
    step: Callable[[str], None],
    *,
    max_rows: int,
    **options: Any,
) -> str:
    """Return the page about a table model as HTML text; the options are those of :func:`melc.report.page.page_of`."""
    subject = subject_of(
        fitted.model,
        table.X,
        None,
        max_rows=max_rows,
        seed=options["seed"],
        codes=table.codes,
        fields=lambda model, names, some: fields_of(fitted.encoding, model, some),
        feature_names=fitted.encoding.feature_names,
        about=_about(fitted, table),
        export=fitted,
    )
    return page_of(subject, title or f"Model of {fitted.target}", step, **options)


def fields_of(encoding: Encoding, model: Any, rows: Floats) -> list[Field]:
    """Return a field for each column of the table; of very many, for those that matter most.

    ``rows`` are the features of some rows.
    """
    fields, place = [], 0
    for column in encoding.columns:
        if column.categories is not None:
            fields.append(_category_field(column, place, model, rows))
        else:
            fill = None if column.fill is None else float(column.fill)
            fields.append(number_field(model, column.name, place, rows[:, place], is_date=column.is_date, fill=fill))
        place += len(column.feature_names)
    return by_importance(model, fields)[:MOST_FIELDS]


def _category_field(column: Column, place: int, model: Any, rows: Floats) -> Field:
    """Return the field of a text column: the reference, and the categories that matter most."""
    categories = column.categories or ()
    n = len(column.shown_categories)
    chosen = np.sort(np.argsort(-model.importances_[place : place + n], kind="stable")[: MOST_CHOICES - 1])
    shares = rows[:, place : place + n].mean(axis=0)
    shown = [0, *(chosen + 1).tolist()]
    frequency = [1 - shares.sum(), *shares[chosen]]
    return Field(
        column.name,
        "category",
        (-1, *(place + int(k) for k in chosen)),
        float(np.argmax(frequency)),
        categories=tuple(categories[k] for k in shown),
        n_hidden=len(categories) - len(shown),
    )


def _about(fitted: TableModel, rows: TableRows) -> dict[str, str]:
    """Return what the model card says of the file."""
    about = {"Data": rows.source.name, "Target": fitted.target}
    path = Path(rows.source.path)
    if path.is_file():
        with open(path, "rb") as stream:
            about["Hash of the file"] = f"SHA-256 {hashlib.file_digest(stream, 'sha256').hexdigest()}"
    filled = [f"{name} {count:,}" for name, count in rows.n_missing.items() if count]
    about["Missing values"] = f"{_listed(filled)}; filled as in the fit" if filled else "none"
    unseen = [f"{name} {count:,}" for name, count in rows.n_unseen.items()]
    if unseen:
        about["Unknown categories"] = f"{_listed(unseen)}; taken for the most frequent one of the fit"
    return about


def _listed(texts: list[str]) -> str:
    more = len(texts) - _MOST_COLUMNS_NAMED
    return ", ".join(texts[:_MOST_COLUMNS_NAMED]) + (f" and {more} more columns" if more > 0 else "")
