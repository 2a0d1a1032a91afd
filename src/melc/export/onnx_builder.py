"""Builds ONNX graphs: names nodes and constants, and checks the result."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc._version import __version__

# Fixed, so that older runtimes can read the graph.
_OPSET, _IR_VERSION = 18, 9

_INPUT_TYPES = ("float64", "float32")


def _onnx() -> Any:
    """Return the onnx package. The only place where it is imported, so that the rest works without it."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError("Export to ONNX needs onnx: pip install 'melc[export]'") from error
    return onnx


class Builder:
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
        """Add an array."""
        name = f"constant_{len(self.constants)}"
        array = np.asarray(values)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        """Add a number, as a double."""
        return self.constant(np.float64(value))

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


def labels_of(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in a type that ONNX has: strings, 64-bit integers, doubles or booleans."""
    if classes.dtype.kind in "UTO":
        return np.array([str(label) for label in classes], dtype=object)
    return classes.astype({"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}[classes.dtype.kind])


def logistic(builder: Builder, x: str) -> str:
    """Return 1 / (1 + exp(−x)), of the shape of x. The Sigmoid of the runtimes has fewer digits."""
    one = builder.number(1)
    return builder.node("Div", [one, builder.node("Add", [builder.node("Exp", [builder.node("Neg", [x])]), one])])
