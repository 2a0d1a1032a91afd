"""Export of a fitted model as an ONNX graph, in double precision.

The graph projects the rows, evaluates the curves of all lines at once, and adds them up. It has a few dozen nodes
however many lines there are. Functions that add nodes to the graph return the name of the result.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc._version import __version__
from melc.arrays import Floats
from melc.model.curve import Curve
from melc.model.line import LogOdds, log_odds_of
from melc.model.units import fitted_model

# Fixed, so that older runtimes can read the graph.
_OPSET, _IR_VERSION = 18, 9
_INPUT_TYPES = ("float64", "float32")


def to_onnx(model: Any, *, dtype: str = "float64") -> Any:
    """Return the fitted model as an ONNX graph.

    The input ``X`` has shape (n_rows, n_features). There are three outputs, all computed in double precision: ``label``
    is the result of ``predict``, shape (n_rows,); ``decision`` is the result of ``decision_function``, shape (n_rows,)
    with two classes and (n_rows, n_classes) with more; ``probabilities`` is the result of ``predict_proba`` up to
    rounding, shape (n_rows, n_classes).

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
        used.
    dtype : {"float64", "float32"}, default="float64"
        Type of the numbers in ``X``.

    Returns
    -------
    graph : onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import to_onnx
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> graph = to_onnx(MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"]))
    >>> [output.name for output in graph.graph.output]
    ['label', 'decision', 'probabilities']
    """
    model = fitted_model(model)
    builder, labels = _Builder(dtype), _labels_of(model.classes_)
    odds = _log_odds_nodes(builder, model.directions_, log_odds_of(model))
    if len(labels) == 2:
        builder.node("Reshape", [odds, builder.constant([-1])], "decision")
        positive = builder.node("Greater", ["decision", builder.constant(0.0)])
        code = builder.node("Cast", [positive], to=builder.onnx.TensorProto.INT64)
        both = builder.node("Concat", [builder.node("Neg", [odds]), odds], axis=1)
        _logistic(builder, both, "probabilities")
    else:
        builder.node("Identity", [odds], "decision")
        code = builder.node("ArgMax", [odds], axis=1, keepdims=0)
        # The largest is subtracted, so that no exponential overflows.
        below = builder.node("Sub", [odds, builder.node("ReduceMax", [odds, builder.constant([1])], keepdims=1)])
        shares = builder.node("Exp", [below])
        total = builder.node("ReduceSum", [shares, builder.constant([1])], keepdims=1)
        builder.node("Div", [shares, total], "probabilities")
    builder.node("Gather", [builder.constant(labels), code], "label", axis=0)
    return builder.model(model.n_features_in_, labels)


def _onnx() -> Any:
    """Return the onnx package. The only place where it is imported, so that the rest works without it."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError("Export to ONNX needs onnx: pip install 'melc[export]'") from error
    return onnx


class _Builder:
    """Collects the nodes and constants of a graph and names them. Methods that add something return its name."""

    def __init__(self, dtype: str) -> None:
        """Begin a graph whose rows have the given type."""
        if dtype not in _INPUT_TYPES:
            raise ValueError(f"dtype={dtype!r} is not a type of rows; choose one of {_INPUT_TYPES}.")
        self.onnx = onnx = _onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.input_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        # The rows as doubles; without effect if they are.
        self.rows = self.node("Cast", ["X"], to=onnx.TensorProto.DOUBLE)

    def constant(self, values: Any) -> str:
        """Add an array or a number."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, whose name is made up if not given."""
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def model(self, n_features: int, labels: NDArray[Any]) -> Any:
        """Return the checked ``onnx.ModelProto`` of all nodes added."""
        helper, proto = self.onnx.helper, self.onnx.TensorProto
        label_type = proto.STRING if labels.dtype == object else helper.np_dtype_to_tensor_dtype(labels.dtype)
        decision_shape = ["rows"] if len(labels) == 2 else ["rows", len(labels)]
        graph = helper.make_graph(
            self.nodes,
            "melc",
            [helper.make_tensor_value_info("X", self.input_type, ["rows", n_features])],
            [
                helper.make_tensor_value_info("label", label_type, ["rows"]),
                helper.make_tensor_value_info("decision", proto.DOUBLE, decision_shape),
                helper.make_tensor_value_info("probabilities", proto.DOUBLE, ["rows", len(labels)]),
            ],
            self.constants,
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        model.producer_name, model.producer_version = "melc", __version__
        self.onnx.checker.check_model(model, full_check=True)
        return model


def _labels_of(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in a type that ONNX has: strings, 64-bit integers, doubles or booleans."""
    if classes.dtype.kind in "UTO":
        return np.array([str(label) for label in classes], dtype=object)
    return classes.astype({"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}[classes.dtype.kind])


def _logistic(builder: _Builder, x: str, output: str) -> str:
    """Return 1 / (1 + exp(−x)), of the shape of x. The Sigmoid of the runtimes has fewer digits."""
    one = builder.constant(1.0)
    below = builder.node("Add", [builder.node("Exp", [builder.node("Neg", [x])]), one])
    return builder.node("Div", [one, below], output)


def _log_odds_nodes(builder: _Builder, directions: Floats, formulas: list[LogOdds]) -> str:
    """Return the log-odds, shape (rows, n_formulas)."""
    z = builder.node("MatMul", [builder.rows, builder.constant(np.ascontiguousarray(directions.T))])
    # 0 where numbers overflow to different infinities, as in ``predict``.
    z = builder.node("Where", [builder.node("IsNaN", [z]), builder.constant(0.0), z])
    lines = [[formula.curves[k] for formula in formulas] for k in range(len(directions))]
    sums = builder.node("ReduceSum", [_curve_values(builder, z, lines), builder.constant([1])], keepdims=0)
    return builder.node("Add", [sums, builder.constant([[formula.constant for formula in formulas]])])


def _curve_values(builder: _Builder, z: str, lines: list[list[Curve]]) -> str:
    """Return the values of the curves at z, of shape (rows, n_lines); shape (rows, n_lines, n_curves).

    ``lines`` has the curves of each line, which have the same knots. The pieces of all lines are in one table, each
    line padded to the same number, a power of two. A binary search, for all lines at once, finds the piece in which
    each projection lies.
    """
    knots = [curves[0].knots for curves in lines]
    padded = 1 << max(len(each) for each in knots).bit_length()
    starts = builder.constant(_table([np.append(-np.inf, each) for each in knots], padded, np.inf))
    piece = builder.constant(padded * np.arange(len(lines))[None, :])  # the first of each line
    step = padded // 2
    while step:
        further = builder.node("Add", [piece, builder.constant(np.int64(step))])
        reached = builder.node("GreaterOrEqual", [z, builder.node("Gather", [starts, further], axis=0)])
        piece = builder.node("Where", [reached, further, piece])
        step //= 2
    # An infinite projection reaches the end of the table, so the last piece is repeated up to there.
    value, slope, anchor = (
        builder.node("Gather", [builder.constant(_piece_table(lines, part, padded)), piece], axis=0)
        for part in ("values", "slopes", "anchors")
    )
    inside = builder.node("Unsqueeze", [_within_knots(builder, z, knots), builder.constant([2])])
    rise = builder.node("Mul", [slope, builder.node("Sub", [inside, anchor])])
    return builder.node("Add", [value, rise])


def _piece_table(lines: list[list[Curve]], part: str, padded: int) -> Floats:
    """Return a part of the pieces of all lines, shape (n_lines * padded, n_curves)."""
    columns = zip(*lines, strict=True)
    return np.stack([_table([getattr(curve.pieces, part) for curve in column], padded) for column in columns], axis=1)


def _table(rows: list[Floats], padded: int, filler: float | None = None) -> Floats:
    """Return the rows one after the other, each filled up to the same length, by default with its last number."""
    return np.concatenate(
        [np.append(row, np.full(padded - len(row), row[-1] if filler is None else filler)) for row in rows]
    )


def _within_knots(builder: _Builder, z: str, knots: list[Floats]) -> str:
    """Clip z to the outermost knots, beyond which curves are constant: infinity times zero is no number."""
    lowest, highest = (builder.constant(np.array([[each[k] for each in knots]])) for k in (0, -1))
    return builder.node("Min", [builder.node("Max", [z, lowest]), highest])
