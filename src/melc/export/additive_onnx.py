"""An additive model as an ONNX graph. It has the same few dozen nodes however many lines there are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.additive import AdditiveMELC
from melc.arrays import Floats
from melc.export.onnx_builder import Builder, labels_of, logistic
from melc.model.line import Line


def graph(builder: Builder, model: AdditiveMELC) -> Any:
    """Return the graph with the outputs ``label``, ``decision`` and ``probabilities``."""
    n_classes = len(model.classes_)
    odds = _log_odds(builder, model)
    if n_classes == 2:
        builder.node("Reshape", [odds, builder.constant([-1])], "decision")
        positive = builder.node("Greater", ["decision", builder.number(0)])
        code = builder.node("Cast", [positive], to=builder.onnx.TensorProto.INT64)
        parts = [logistic(builder, builder.node("Neg", [odds])), logistic(builder, odds)]
        builder.node("Concat", parts, "probabilities", axis=1)
    else:
        builder.node("Identity", [odds], "decision")
        code = builder.node("ArgMax", [odds], axis=1, keepdims=0)
        # P(class) / Σ P, by way of logarithms, which do not underflow.
        builder.node("Softmax", [_log_logistic(builder, odds)], "probabilities", axis=1)
    labels = labels_of(model.classes_)
    builder.node("Gather", [builder.constant(labels), code], "label", axis=0)
    return builder.model(model.coef_.shape[1], labels, len(model.intercept_))


def _log_odds(builder: Builder, model: AdditiveMELC) -> str:
    """Return the log-odds of each class, shape (rows, n_classes); with two classes those of the second, (rows, 1)."""
    shown = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    belongs = np.array([[line.class_index == k for k in shown] for line in model.lines_], dtype=np.float64)
    sums = builder.node("MatMul", [_curves(builder, model), builder.constant(belongs)])
    return builder.node("Add", [sums, builder.constant(model.intercept_[None, :])])


def _curves(builder: Builder, model: AdditiveMELC) -> str:
    """Return what each line adds, shape (rows, n_lines).

    The knots of all lines are in one table, each line padded to the same number, a power of two. A binary search, for
    all lines at once, finds the last knot at or below each projection.
    """
    lines = model.lines_
    padded = 1 << (max(len(line.knots) for line in lines) - 1).bit_length()
    z = _within_knots(builder, _projections(builder, model), lines)
    knots = builder.constant(_table([line.knots for line in lines], padded, np.inf))
    place = builder.constant(padded * np.arange(len(lines))[None, :])  # the first knot of each line
    step = padded // 2
    while step:
        further = builder.node("Add", [place, builder.constant(np.int64(step))])
        reached = builder.node("GreaterOrEqual", [z, builder.node("Gather", [knots, further], axis=0)])
        place = builder.node("Where", [reached, further, place])
        step //= 2
    return _interpolated(builder, z, place, knots, lines, padded)


def _projections(builder: Builder, model: AdditiveMELC) -> str:
    """Return z, shape (rows, n_lines); 0 where numbers overflow to different infinities, as in ``predict``."""
    z = builder.node("MatMul", [builder.rows, builder.constant(np.ascontiguousarray(model.coef_.T))])
    return builder.node("Where", [builder.node("IsNaN", [z]), builder.number(0), z])


def _within_knots(builder: Builder, z: str, lines: list[Line]) -> str:
    """Clip z to the outermost knots, beyond which curves are constant."""
    lowest, highest = (builder.constant(np.array([[line.knots[k] for line in lines]])) for k in (0, -1))
    return builder.node("Min", [builder.node("Max", [z, lowest]), highest])


def _interpolated(builder: Builder, z: str, place: str, knots: str, lines: list[Line], padded: int) -> str:
    """Return value + slope · (z − knot) at the places in the tables."""
    slopes = [np.append(np.diff(line.log_odds) / np.diff(line.knots), 0.0) for line in lines]
    values = builder.constant(_table([line.log_odds for line in lines], padded, 0.0))
    value, slope, knot = (
        builder.node("Gather", [table, place], axis=0)
        for table in (values, builder.constant(_table(slopes, padded, 0.0)), knots)
    )
    rise = builder.node("Mul", [slope, builder.node("Sub", [z, knot])])
    return builder.node("Add", [value, rise])


def _table(rows: list[Floats], padded: int, filler: float) -> NDArray[np.float64]:
    """Return the rows one after the other, each filled up to the same length."""
    return np.concatenate([np.append(row, np.full(padded - len(row), filler)) for row in rows])


def _log_logistic(builder: Builder, x: str) -> str:
    """Return log(1 / (1 + exp(−x))) = min(x, 0) − log(1 + exp(−|x|))."""
    t = builder.node("Exp", [builder.node("Neg", [builder.node("Abs", [x])])])
    log = builder.node("Log", [builder.node("Add", [t, builder.number(1)])])
    return builder.node("Sub", [builder.node("Min", [x, builder.number(0)]), log])
