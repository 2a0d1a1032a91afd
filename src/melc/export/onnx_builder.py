"""A builder of ONNX graphs; the only module that imports onnx."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc._version import __version__

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


def written_text(text: str) -> str:
    """Return a text, or raise ``ValueError`` if UTF-8, in which ONNX writes all texts, cannot express it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{text!r:.200} contains half of a character, which ONNX cannot express; rename it before the fit."
        ) from None
    return text


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

    def numbers_input(self, name: str, shape: list[Any], note: str = "") -> str:
        """Add an input of numbers, and return it as doubles; infinities, which ``predict`` refuses, become NaN."""
        self._input(name, self.input_type, shape, note)
        x = self.node("Cast", [name], to=self.onnx.TensorProto.DOUBLE)
        return self.node("Where", [self.node("IsInf", [x]), self.constant(np.nan), x])

    def texts_input(self, name: str, shape: list[Any], note: str = "") -> str:
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
        self.inputs.append(self.onnx.helper.make_tensor_value_info(written_text(name), kind, shape, note))

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
