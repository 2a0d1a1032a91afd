"""A fitted model as an ONNX graph, in double precision throughout.

Two classes: project, count the thresholds at or below, look the label up. More: the log ratio of the
densities on every projection, and the largest wins.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from melc._version import __version__
from melc.classifier import MELC
from melc.density import Density

# Fixed, so that runtimes of some years ago read the graph: ReduceLogSumExp takes its axes as input since 18.
_OPSET, _IR_VERSION = 18, 9


def _onnx() -> Any:
    """The one door to onnx."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError("Export to ONNX needs onnx: pip install 'melc[export]'") from error
    return onnx


def to_onnx(model: MELC) -> Any:
    """An ``onnx.ModelProto`` with input ``X`` (rows, features; doubles) and outputs ``label``, ``decision``.

    ``label`` holds what ``predict`` gives, ``decision`` the log ratio of the densities that
    ``decision_function`` gives (of every class against the rest if there are more than two).

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import to_onnx
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> graph = to_onnx(MELC(n_init=1, random_state=0).fit(X, ["low", "low", "high", "high"]))
    >>> [output.name for output in graph.graph.output]
    ['label', 'decision']
    """
    check_is_fitted(model)
    onnx = _onnx()
    builder = _Builder(onnx)
    labels = _labels(model.classes_)
    decisions = [_log_ratio(builder, model, k) for k in range(len(model.decisions_))]
    if len(decisions) == 1:
        code = _interval_code(builder, model)
        builder.node("Reshape", [decisions[0], builder.constant([-1])], "decision")
        shape: list[Any] = ["rows"]
    else:
        builder.node("Concat", decisions, "decision", axis=1)
        code = builder.node("ArgMax", ["decision"], axis=1, keepdims=0)
        shape = ["rows", len(decisions)]
    builder.node("Gather", [builder.constant(labels), code], "label", axis=0)
    return builder.model(model.coef_.shape[1], labels, shape)


class _Builder:
    """Collects the nodes and constants of a graph and makes up names for what lies in between."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        array = np.asarray(values)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def model(self, n_features: int, labels: NDArray[Any], decision_shape: list[Any]) -> Any:
        helper, proto = self.onnx.helper, self.onnx.TensorProto
        label_type = proto.STRING if labels.dtype == object else helper.np_dtype_to_tensor_dtype(labels.dtype)
        graph = helper.make_graph(
            self.nodes,
            "melc",
            [helper.make_tensor_value_info("X", proto.DOUBLE, ["rows", n_features])],
            [
                helper.make_tensor_value_info("label", label_type, ["rows"]),
                helper.make_tensor_value_info("decision", proto.DOUBLE, decision_shape),
            ],
            self.constants,
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        model.producer_name, model.producer_version = "melc", __version__
        self.onnx.checker.check_model(model, full_check=True)
        return model


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels as ONNX holds them: texts, whole numbers, doubles or booleans."""
    if classes.dtype.kind in "UTO":
        return np.array([str(label) for label in classes], dtype=object)
    return classes.astype({"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}[classes.dtype.kind])


def _projection(builder: _Builder, model: MELC, index: int) -> str:
    """z as a column, (rows, 1)."""
    return builder.node("MatMul", ["X", builder.constant(model.coef_[index][:, None].astype(np.float64))])


def _interval_code(builder: _Builder, model: MELC) -> str:
    """The class code of the interval that z lies in: as many thresholds as are at or below z."""
    decision = model.decisions_[0]
    # A last threshold that no number reaches, so that there always is one to compare with.
    thresholds = builder.constant(np.append(decision.thresholds, np.inf)[None, :])
    reached = builder.node("GreaterOrEqual", [_projection(builder, model, 0), thresholds])
    counted = builder.node("Cast", [reached], to=builder.onnx.TensorProto.INT64)
    interval = builder.node("ReduceSum", [counted, builder.constant([1])], keepdims=0)
    # z = +inf reaches the last one too; codes end with the class of the interval it belongs to.
    codes = np.append(decision.codes, decision.codes[-1]).astype(np.int64)
    return builder.node("Gather", [builder.constant(codes), interval], axis=0)


def _log_ratio(builder: _Builder, model: MELC, index: int) -> str:
    """log f₊ − log f₋ and that of the priors, (rows, 1)."""
    decision = model.decisions_[index]
    z = _projection(builder, model, index)
    first, second = (_log_density(builder, z, density) for density in decision.densities)
    difference = builder.node("Sub", [second, first])
    return builder.node("Add", [difference, builder.constant(np.float64(decision.log_prior_ratio))])


def _log_density(builder: _Builder, z: str, density: Density) -> str:
    """log Σ_k w_k N(z; s_k, V), with the factor of the Gaussian folded into the weights."""
    offset = np.log(density.weights) - 0.5 * np.log(2 * np.pi * density.variance)
    distance = builder.node("Sub", [z, builder.constant(density.support[None, :])])
    squared = builder.node("Mul", [distance, distance])
    scaled = builder.node("Mul", [squared, builder.constant(np.float64(-0.5 / density.variance))])
    exponents = builder.node("Add", [scaled, builder.constant(offset[None, :])])
    return builder.node("ReduceLogSumExp", [exponents, builder.constant([1])], keepdims=1)
