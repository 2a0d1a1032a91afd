"""The parts of ONNX graphs: their nodes, and their inputs, which are one tensor of numbers, or one for each column.

This is the only module that imports onnx.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc._version import __version__
from melc.arrays import Floats
from melc.data.frames import Label
from melc.export.files import encodable
from melc.model.columns import Columns

# Fixed, so that older runtimes can read the graph.
_OPSETS, _IR_VERSION = {"": 18, "ai.onnx.ml": 2}, 9
_INPUT_TYPES = ("float64", "float32")
_OUTPUTS = "label", "decision", "probabilities"


def _onnx() -> Any:
    """Return the onnx package, without which the rest of the exports works."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError("Export to ONNX needs onnx: pip install 'melc[export]'") from error
    return onnx


class Builder:
    """Collects the inputs, nodes and constants of a graph and names them. Methods that add something return its name.

    All numbers are doubles.
    """

    def __init__(self, dtype: str) -> None:
        """Begin a graph whose numbers come in the given type."""
        if dtype not in _INPUT_TYPES:
            raise ValueError(f"dtype={dtype!r} is not a type of rows; choose one of {_INPUT_TYPES}.")
        self.onnx = onnx = _onnx()
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.input_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def numbers_input(self, name: str, shape: list[Any], note: str) -> str:
        """Add an input of numbers, and return it as doubles; infinities, which ``predict`` refuses, become NaN."""
        self._input(name, self.input_type, shape, note)
        x = self.node("Cast", [name], to=self.onnx.TensorProto.DOUBLE)
        return self.node("Where", [self.node("IsInf", [x]), self.constant(np.nan), x])

    def texts_input(self, name: str, shape: list[Any], note: str) -> str:
        """Add an input of texts."""
        self._input(name, self.onnx.TensorProto.STRING, shape, note)
        return name

    def _input(self, name: str, kind: int, shape: list[Any], note: str) -> None:
        # Names that the graph has made up itself begin with a slash, or are those of the outputs.
        if not name or name.startswith("/") or name in _OUTPUTS or name in {each.name for each in self.inputs}:
            raise ValueError(
                f"The column name {name!r} cannot be that of an input of the graph: it is empty, begins with a slash, "
                f"occurs twice, or is one of {', '.join(_OUTPUTS)}. Pass other names as feature_names=."
            )
        self.inputs.append(self.onnx.helper.make_tensor_value_info(encodable(name, "ONNX"), kind, shape, note))

    def constant(self, values: Any) -> str:
        """Add an array or a number."""
        name = f"/constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, whose name is made up if not given."""
        output = output or f"/{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def where_nan(self, x: str, values: Any) -> str:
        """Replace what is no number by the given values."""
        return self.node("Where", [self.node("IsNaN", [x]), self.constant(values), x])

    def model(self, labels: NDArray[Any]) -> Any:
        """Return the checked ``onnx.ModelProto`` of all nodes added."""
        helper, proto = self.onnx.helper, self.onnx.TensorProto
        label_type = proto.STRING if labels.dtype == object else helper.np_dtype_to_tensor_dtype(labels.dtype)
        shapes = [["rows"], ["rows"] if len(labels) == 2 else ["rows", len(labels)], ["rows", len(labels)]]
        outputs = zip(_OUTPUTS, [label_type, proto.DOUBLE, proto.DOUBLE], shapes, strict=True)
        described = [helper.make_tensor_value_info(*output) for output in outputs]
        graph = helper.make_graph(self.nodes, "melc", self.inputs, described, self.constants)
        domains = {node.domain for node in self.nodes} | {""}
        opsets = [helper.make_opsetid(domain, _OPSETS[domain]) for domain in sorted(domains)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        model.producer_name, model.producer_version = "melc", __version__
        self.onnx.checker.check_model(model, full_check=True)
        return model


def projection_nodes(builder: Builder, model: Any, names: Sequence[str]) -> str:
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
    n, texts = len(labels), [encodable(str(label), "ONNX") for label in labels]
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
