"""The inputs of an ONNX graph: one tensor of numbers, or one for each column of a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.data.frames import Label
from melc.export.onnx_builder import Builder, written_text
from melc.model.columns import Columns


def projections(builder: Builder, model: Any, names: Sequence[str]) -> str:
    """Add the inputs of a model, and return the projections of the rows on its lines, shape (rows, n_lines).

    They are NaN where a line that reads the codes of its column has a missing value or an unknown level.
    """
    inputs = _Tensor(builder, model) if model.columns_.are_numbers else _Table(builder, model, names)
    coding = [k for k, line in enumerate(model.lines_) if line.reads_codes]
    summing = [k for k, line in enumerate(model.lines_) if not line.reads_codes]
    found = []
    if summing:
        used = np.flatnonzero(model.directions_[summing].any(axis=0)).tolist()
        weights = np.ascontiguousarray(model.directions_[np.ix_(summing, used)].T)
        z = builder.node("MatMul", [inputs.quantities(used), builder.constant(weights)])
        found.append(builder.where_nan(z, 0.0))  # where numbers overflow to different infinities, as in ``predict``
    if coding:
        found.append(inputs.codes([int(model.lines_[k].features[0]) for k in coding]))
    if len(found) == 1:
        return found[0]
    order = np.argsort([*summing, *coding])
    return builder.node("Gather", [builder.node("Concat", found, axis=1), builder.constant(order)], axis=1)


def text_of_missing(labels: Sequence[Label]) -> str:
    """Return the text that stands for a missing one, none of the labels: in ONNX, texts cannot be missing."""
    text = ""
    while text in labels:
        text = f"{text}_" if text else "(missing)"
    return text


class _Tensor:
    """A model of numbers: one input, of shape (rows, n_features)."""

    def __init__(self, builder: Builder, model: Any) -> None:
        self.builder, self.n_features = builder, model.n_features_in_
        self.x = builder.numbers_input("X", ["rows", self.n_features], "numbers, NaN if missing")
        self.fillers = np.array([[_filler(model, j) for j in range(self.n_features)]])

    def quantities(self, features: list[int]) -> str:
        """Return what lines of several columns read, shape (rows, n)."""
        return self._chosen(self.builder.where_nan(self.x, self.fillers), features)

    def codes(self, features: list[int]) -> str:
        """Return what lines of single columns read, shape (rows, n)."""
        return self._chosen(self.x, features)

    def _chosen(self, x: str, features: list[int]) -> str:
        if features == list(range(self.n_features)):
            return x
        return self.builder.node("Gather", [x, self.builder.constant(np.array(features))], axis=1)


class _Table:
    """A model of a table: an input of shape (rows,) for each column that a line uses."""

    def __init__(self, builder: Builder, model: Any, names: Sequence[str]) -> None:
        self.builder, self.model = builder, model
        used = np.flatnonzero(model.directions_.any(axis=0)).tolist()
        # The numbers of a column, or if it has labels, places in :func:`_codes_of_labels`.
        self.columns = {j: self._column(j, names[j]) for j in used}

    def quantities(self, features: list[int]) -> str:
        """Return what lines of several columns read, shape (rows, n)."""
        return self._side_by_side([self._quantity(j) for j in features])

    def codes(self, features: list[int]) -> str:
        """Return what lines of single columns read, shape (rows, n)."""
        return self._side_by_side([self._code(j) for j in features])

    def _column(self, j: int, name: str) -> str:
        """Add the input of a column."""
        builder, columns = self.builder, self.model.columns_
        if not _has_labels(columns, j):
            unit = "days since 1970-01-01" if j in columns.dates else "numbers"
            return builder.numbers_input(name, ["rows"], f"{unit}, NaN if missing")
        labels = _labels_of(columns, j)
        if any(isinstance(label, str) for label in labels):
            missing = text_of_missing(labels)
            x = builder.texts_input(name, ["rows"], f"texts, {missing!r} if missing")
            return _place_of_text(builder, x, labels, missing)
        x = builder.numbers_input(name, ["rows"], "numbers (1 for true, 0 for false), NaN if missing")
        return _place_of_number(builder, x, labels)

    def _quantity(self, j: int) -> str:
        columns, filler = self.model.columns_, _filler(self.model, j)
        if not _has_labels(columns, j):
            return self.builder.where_nan(self.columns[j], filler)
        codes = _codes_of_labels(columns, j)
        of_category = j in columns.categories
        table = columns.categories[j].scores_of(codes) if of_category else np.where(np.isnan(codes), filler, codes)
        return self._looked_up(j, table)

    def _code(self, j: int) -> str:
        has_labels = _has_labels(self.model.columns_, j)
        return self._looked_up(j, _codes_of_labels(self.model.columns_, j)) if has_labels else self.columns[j]

    def _looked_up(self, j: int, table: Floats) -> str:
        return self.builder.node("Gather", [self.builder.constant(table), self.columns[j]], axis=0)

    def _side_by_side(self, columns: list[str]) -> str:
        axis = self.builder.constant([1])
        return self.builder.node("Concat", [self.builder.node("Unsqueeze", [x, axis]) for x in columns], axis=1)


def _filler(model: Any, j: int) -> float:
    """Return the number that stands for a missing one in lines of several columns."""
    return float(model.columns_.places.get(j, model.feature_mean_[j]))


def _has_labels(columns: Columns, j: int) -> bool:
    return j in columns.categories or j in columns.ranks


def _labels_of(columns: Columns, j: int) -> list[Label]:
    """Return the labels of a category, or the ranks, without that of missing values."""
    levels = columns.categories[j].levels if j in columns.categories else columns.ranks[j]
    return [level for level in levels if level is not None]


def _codes_of_labels(columns: Columns, j: int) -> Floats:
    """Return the codes of the labels of a column, and after them those of an unknown and of a missing label."""
    if j in columns.ranks:
        return np.append(np.arange(float(len(columns.ranks[j]))), [np.nan, np.nan])
    category = columns.categories[j]
    numbers = {level: float(number) for number, level in enumerate(category.levels)}
    unknown = float(len(category.levels)) if category.others else np.nan
    missing = numbers.pop(None, unknown)
    return np.array([*numbers.values(), unknown, missing])


def _place_of_text(builder: Builder, x: str, labels: Sequence[Label], missing: str) -> str:
    """Return the place of each text among the labels, or that of an unknown or of a missing one; shape (rows,)."""
    n, texts = len(labels), [written_text(str(label)) for label in labels]
    if len(set(texts)) < n:
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"Two levels of the column {x!r} are written {twice!r}; rename one of them before the fit.")
    return builder.node(
        "LabelEncoder",
        [x],
        domain="ai.onnx.ml",
        keys_strings=[*texts, missing],
        values_int64s=[*range(n), n + 1],
        default_int64=n,
    )


def _place_of_number(builder: Builder, x: str, labels: Sequence[Label]) -> str:
    """Return the place of each number among the labels, or that of an unknown or of a missing one; shape (rows,)."""
    column = builder.node("Unsqueeze", [x, builder.constant([1])])
    matches = builder.node("Equal", [column, builder.constant(np.array([labels], dtype=np.float64))])
    missing = builder.node("IsNaN", [column])
    cases = builder.node("Concat", [matches, builder.node("Not", [missing]), missing], axis=1)
    cases = builder.node("Cast", [cases], to=builder.onnx.TensorProto.FLOAT)
    return builder.node("ArgMax", [cases], axis=1, keepdims=0)  # the first that is true
