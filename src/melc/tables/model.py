"""A fitted model together with the encoding of the columns, so that it can be applied to tables in files."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from melc.arrays import Floats
from melc.base import LineClassifier
from melc.export.document import MODEL_FORMAT, MOST_BYTES, check_version, format_of, from_document, to_document
from melc.export.reading import parse
from melc.export.sql import query
from melc.export.sql_parts import column, literal
from melc.export.text import export_text
from melc.model.names import feature_names_of
from melc.model.units import nameless
from melc.tables.csv_files import Kind
from melc.tables.encoding import Column, Encoding, encoding_in, encoding_out
from melc.tables.read import read_blocks, with_numbers
from melc.tables.source import Source

FORMAT, VERSION = "melc-table-model", 1


@dataclass(frozen=True)
class TableModel:
    """A fitted model, the encoding of the columns as its features, and the name of the target column.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from melc import MELC
    >>> from melc.tables import Roles, fit_table, problem_of
    >>> size = np.arange(40.0)
    >>> table = pa.table({"size": size, "outcome": np.where(abs(size - 20) < 10, "well", "ill")})
    >>> fitted = fit_table(*problem_of(table, Roles(target="outcome")), MELC(random_state=0))
    >>> print(fitted.to_text(digits=3))
    z is the sum of weight × feature:
      1  size
    class by the interval of z, with the training rows in it:
      z < 9.73           ill   (10 ill, 0 well)
      9.73 <= z < 30.4   well  (2 ill, 19 well)
      30.4 <= z          ill   (9 ill, 0 well)
    """

    model: LineClassifier
    encoding: Encoding
    target: str

    def to_json(self, *, indent: int | None = None) -> str:
        """Return model and encoding as JSON text, to be read by :func:`table_model_from_json`."""
        return json.dumps(self.to_document(), indent=indent, allow_nan=False, ensure_ascii=False)

    def to_document(self) -> dict[str, Any]:
        """Return model and encoding as dictionaries, lists, strings and numbers."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "target": self.target,
            "columns": encoding_out(self.encoding),
            "model": to_document(self.model),
        }

    def to_text(self, *, digits: int | None = None, odds: bool = False) -> str:
        """Return the rule as text, with the reference of every text column; see :func:`melc.export.export_text`."""
        rule = export_text(self.model, self.encoding.feature_names, digits=digits, odds=odds)
        references = [f"  {c.name}={c.categories[0]}" for c in self.encoding.columns if c.categories is not None]
        if not references:
            return rule
        return "\n".join([rule, "categories without a weight of their own, which count as zero:", *references])

    def to_sql(self, table: str = "data", *, odds: bool = False) -> str:
        """Return the query of :func:`melc.export.to_sql`, with missing values filled and text columns encoded in it.

        An added column whose name a column of the table has already, such as ``prediction``, ends with an underscore.
        """
        features = [expression for c in self.encoding.columns for expression in _expressions(c)]
        names = [c.name for c in self.encoding.columns]
        added = {name: _unused(name, names) for name in ("prediction", "projection", "log_odds")}
        return query(self.model, features, names, table, odds=odds, **added)

    def predictions(self, source: Source, *, proba: bool = False, keep: Sequence[str] = ()) -> Iterator["Predictions"]:
        """Yield the predictions for a file block by block, in the order of its rows.

        The columns named in ``keep`` are returned with them, as they are written in the file.
        """
        kinds: dict[str, Kind] = {**self.encoding.kinds, **dict.fromkeys(keep, "text")}
        for block in read_blocks(source, kinds, len(self.encoding.feature_names)):
            kept = tuple(_one_piece(block.column(name)) for name in keep)
            for name in set(keep) & {name for name, kind in self.encoding.kinds.items() if kind == "number"}:
                block = with_numbers(block, name, source)
            encoded = self.encoding.encode(block)
            probabilities = self.model.predict_proba(encoded.X) if proba else None
            yield Predictions(self.model.predict(encoded.X), probabilities, encoded.n_unseen, kept)


def _unused(name: str, taken: Sequence[str]) -> str:
    """Return the name, with underscores at its end until it differs from those taken, also if a number follows."""
    while any(other.casefold().rstrip("0123456789") == name for other in taken):  # SQL ignores case
        name += "_"
    return name


@dataclass(frozen=True)
class Predictions:
    """Predictions for a block of rows.

    ``labels`` has shape (n_rows,); ``probabilities`` has shape (n_rows, n_classes) or is None; ``n_unseen`` is the
    number of unknown values per text column. ``kept`` are Arrow arrays of texts, one for each column kept.
    """

    labels: NDArray[Any]
    probabilities: Floats | None
    n_unseen: dict[str, int]
    kept: tuple[Any, ...] = ()


def _one_piece(values: Any) -> Any:
    """Return a column as an Arrow array in one piece."""
    return values.combine_chunks() if hasattr(values, "combine_chunks") else values


def table_model_from_json(text: str | bytes, *, max_bytes: int = MOST_BYTES) -> TableModel:
    """Return the model written by :meth:`TableModel.to_json` or :func:`melc.export.to_json`.

    Anything else raises a ``ValueError`` that says what is wrong and where.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> from melc import MELC
    >>> from melc.tables import Roles, fit_table, problem_of, table_model_from_json
    >>> size = np.arange(40.0)
    >>> table = pa.table({"size": size, "outcome": np.where(abs(size - 20) < 10, "well", "ill")})
    >>> fitted = fit_table(*problem_of(table, Roles(target="outcome")), MELC(random_state=0))
    >>> table_model_from_json(fitted.to_json()).target
    'outcome'
    """
    reader = parse(text, "melc model", max_bytes=max_bytes)
    format = format_of(reader)
    if format == MODEL_FORMAT:
        return _of_plain_model(from_document(reader))
    if format != FORMAT:
        known = f"{FORMAT!r} or {MODEL_FORMAT!r}"
        raise ValueError(f"Not a melc model: its 'format' should be {known}, found {format!r:.60}.")
    check_version(reader, VERSION)
    fields = reader.fields(["format", "version", "target", "columns", "model"])
    encoding, model = encoding_in(fields["columns"]), from_document(fields["model"])
    if len(encoding.feature_names) != model.n_features_in_:
        raise ValueError(
            f"{reader.place}: the columns are encoded as {len(encoding.feature_names)} features, but the model has "
            f"{model.n_features_in_}; the file is damaged."
        )
    return TableModel(nameless(model), encoding, fields["target"].text())


def _of_plain_model(model: LineClassifier) -> TableModel:
    """Return the table model of a model that was fitted in Python; its features are columns of numbers."""
    columns = tuple(Column(name) for name in feature_names_of(model))
    return TableModel(nameless(model), Encoding(columns), "prediction")


def _expressions(c: Column) -> list[str]:
    """Return the features of a column as SQL expressions."""
    if c.is_date:
        raise ValueError(
            f"The column {c.name!r} holds dates, which every database counts differently. Replace it in the file by a "
            "column of numbers, or leave it out with --drop, and fit again."
        )
    raw = column(c.name) if c.fill is None else f"COALESCE({column(c.name)}, {literal(c.fill)})"
    if c.categories is None:
        return [raw]
    # NULL stays NULL; it must not be encoded as a value of another category.
    return [
        f"CASE WHEN {raw} = {literal(category)} THEN 1.0 WHEN {raw} IS NULL THEN NULL ELSE 0.0 END"
        for category in c.shown_categories
    ]
