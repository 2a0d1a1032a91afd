"""A model together with the columns it was fitted on: it takes tables as they come out of files."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.classifier import MELC
from melc.density import Decision, Density
from melc.export.document import FORMAT as MODEL_FORMAT
from melc.export.document import MOST_BYTES, from_document, to_document
from melc.export.quoting import column, literal
from melc.export.sql import query
from melc.export.text import export_text
from melc.names import feature_names_of
from melc.reading import Reader, parse
from melc.tables.encoding import Column, Encoding, encoding_in, encoding_out
from melc.tables.read import Source, read_blocks

FORMAT, VERSION = "melc-table-model", 1


@dataclass(frozen=True)
class TableModel:
    """A fitted model, how columns become its features, and the name of the column it predicts."""

    model: MELC
    encoding: Encoding
    target: str

    def to_json(self, *, indent: int | None = None) -> str:
        document = {
            "format": FORMAT,
            "version": VERSION,
            "target": self.target,
            "columns": encoding_out(self.encoding),
            "model": to_document(self.model),
        }
        return json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)

    def to_text(self, *, digits: int | None = None, odds: bool = False) -> str:
        return export_text(self.model, self.encoding.feature_names, digits=digits, odds=odds)

    def to_sql(self, table: str = "data") -> str:
        """A query over the raw columns: gaps filled and texts turned into numbers within it."""
        features = [expression for c in self.encoding.columns for expression in _expressions(c)]
        return query(self.model, features, [c.name for c in self.encoding.columns], table)

    def predictions(self, source: Source, *, proba: bool = False) -> Iterator["Predictions"]:
        """Predictions for a file, block by block, in the order of its rows."""
        for block in read_blocks(source, self.encoding.kinds):
            if block.num_rows == 0:
                continue
            encoded = self.encoding.encode(block)
            probabilities = self.model.predict_proba(encoded.X) if proba else None
            yield Predictions(self.model.predict(encoded.X), probabilities, encoded.n_unseen)


@dataclass(frozen=True)
class Predictions:
    """Labels of a block of rows, their probabilities if wanted, and texts that the model never saw."""

    labels: NDArray[Any]
    probabilities: Floats | None
    n_unseen: dict[str, int]


def table_model_from_json(text: str | bytes, *, max_bytes: int = MOST_BYTES) -> TableModel:
    """What :meth:`TableModel.to_json` or :func:`melc.export.to_json` wrote; anything else is a ``ValueError``."""
    reader = parse(text, "melc model", max_bytes=max_bytes)
    format = reader.entries().get("format")
    if format is not None and format.value == MODEL_FORMAT:
        return _of_plain_model(from_document(reader))
    if format is None or format.value != FORMAT:
        raise ValueError(f"This is no melc model: its 'format' should be {FORMAT!r} or {MODEL_FORMAT!r}.")
    _check_version(reader)
    fields = reader.fields(["format", "version", "target", "columns", "model"])
    encoding, model = encoding_in(fields["columns"]), from_document(fields["model"])
    if len(encoding.feature_names) != model.n_features_in_:
        raise ValueError(
            f"{reader.place}: the columns make {len(encoding.feature_names)} features, but the model has "
            f"{model.n_features_in_}."
        )
    return TableModel(_nameless(model), encoding, fields["target"].text())


def _check_version(reader: Reader) -> None:
    version = reader.entries().get("version")
    number = Reader(None if version is None else version.value, f"{reader.place}.version").integer(1, 2**31)
    if number > VERSION:
        raise ValueError(
            f"The model has version {number} of the format, but this release reads up to {VERSION}. "
            "Upgrade melc to read it."
        )


def _of_plain_model(model: MELC) -> TableModel:
    """A model fitted in Python: its features are columns of numbers."""
    columns = tuple(Column(name) for name in feature_names_of(model))
    return TableModel(_nameless(model), Encoding(columns), "prediction")


def _nameless(model: MELC) -> MELC:
    """Names are the encoding's business; the model sees bare matrices and must not miss them there."""
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return model


def _expressions(c: Column) -> list[str]:
    """The features of a column in SQL."""
    raw = column(c.name) if c.fill is None else f"COALESCE({column(c.name)}, {literal(c.fill)})"
    if c.categories is None:
        return [raw]
    # A missing text must not pass for another one.
    return [
        f"CASE WHEN {raw} = {literal(category)} THEN 1.0 WHEN {raw} IS NULL THEN NULL ELSE 0.0 END"
        for category in c.shown_categories
    ]


def in_units_of(model: MELC, mean: Floats, scale: Floats) -> MELC:
    """The model fitted on ``(X − mean) / scale``, rewritten for X itself; its directions have length one again.

    With u = v/scale, ``z = ((X − mean)/scale)·v = X·u − mean·u``: supports and thresholds move by mean·u, and all
    of it is divided by ‖u‖. The divergence stays the same.
    """
    directions = model.coef_ / scale
    norms = np.linalg.norm(directions, axis=1)
    shifts = directions @ mean
    model.coef_ = directions / norms[:, None]
    model.decisions_ = [
        _moved(decision, shift, norm) for decision, shift, norm in zip(model.decisions_, shifts, norms, strict=True)
    ]
    thresholds: Any = [decision.thresholds for decision in model.decisions_]
    model.thresholds_ = thresholds[0] if len(thresholds) == 1 else thresholds
    return model


def _moved(decision: Decision, shift: float, norm: float) -> Decision:
    first, second = (
        Density((density.support + shift) / norm, density.weights, density.variance / norm**2)
        for density in decision.densities
    )
    return replace(decision, densities=(first, second), thresholds=(decision.thresholds + shift) / norm)
