"""Export of a fitted model as an ONNX graph, in double precision.

The graph projects the rows, evaluates the curves of all lines at once, and adds them up. It has a few dozen nodes
however many lines there are, and a few for each column of a table. Functions that add nodes to the graph return the
name of the result.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.export.files import encodable, label_error
from melc.export.onnx_parts import Builder, projection_nodes
from melc.model.curve import Curve
from melc.model.line import LogOdds, log_odds_of
from melc.model.names import feature_names_of
from melc.model.units import fitted_model


def to_onnx(model: Any, *, dtype: str = "float64", feature_names: Any = None) -> Any:
    """Return the fitted model as an ONNX graph.

    If all features are numbers, the input ``X`` has shape (n_rows, n_features). Otherwise there is an input of shape
    (n_rows,) for each column that a line uses, with the name of the column: text as strings, booleans as 0 and 1,
    dates as days since 1970-01-01. NaN and infinities are missing numbers. A missing text is the empty string, or, if
    that is a level of the column, "(missing)". An input's ``doc_string`` says what it holds.

    There are three outputs, all computed in double precision: ``label`` is the result of ``predict``, shape (n_rows,);
    ``decision`` is the result of ``decision_function``, shape (n_rows,) with two classes and (n_rows, n_classes) with
    more; ``probabilities`` is the result of ``predict_proba`` up to rounding, shape (n_rows, n_classes).

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; for a search, the best estimator is
        used.
    dtype : {"float64", "float32"}, default="float64"
        Type of the numbers in the inputs.
    feature_names : list of str, default=None
        Names of the inputs, in the order of the features, if there is one for each column. By default those seen in
        ``fit``.

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
    builder, labels = Builder(dtype), _labels_of(model.classes_)
    z = projection_nodes(builder, model, feature_names_of(model, feature_names))
    odds = _log_odds_nodes(builder, z, log_odds_of(model))
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
    return builder.model(labels)


def _labels_of(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in a type that ONNX has: strings, 64-bit integers, doubles or booleans."""
    if classes.dtype.kind in "UTO":
        return np.array([encodable(str(label), "ONNX") for label in classes], dtype=object)
    known = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
    if classes.dtype.kind not in known:
        raise label_error(classes, "ONNX")
    if classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max:
        raise ValueError(
            f"The label {classes.max()} cannot be written as ONNX, whose labels end at {np.iinfo(np.int64).max}; use "
            "smaller numbers, or strings."
        )
    return classes.astype(known[classes.dtype.kind])


def _logistic(builder: Builder, x: str, output: str) -> str:
    """Return 1 / (1 + exp(−x)), of the shape of x. The Sigmoid of the runtimes has fewer digits."""
    one = builder.constant(1.0)
    below = builder.node("Add", [builder.node("Exp", [builder.node("Neg", [x])]), one])
    return builder.node("Div", [one, below], output)


def _log_odds_nodes(builder: Builder, z: str, formulas: list[LogOdds]) -> str:
    """Return the log-odds of rows with projections z on all lines, shape (rows, n_formulas)."""
    lines = [[formula.curves[k] for formula in formulas] for k in range(len(formulas[0].curves))]
    values = _with_missing(builder, z, lines, _curve_values(builder, z, lines))
    sums = builder.node("ReduceSum", [values, builder.constant([1])], keepdims=0)
    return builder.node("Add", [sums, builder.constant([[formula.constant for formula in formulas]])])


def _with_missing(builder: Builder, z: str, lines: list[list[Curve]], values: str) -> str:
    """Return the values of curves, shape (rows, n_lines, n_curves), with those of missing values where z is NaN."""
    missing = np.array([[curve.missing for curve in curves] for curves in lines], dtype=np.float64)
    if np.isnan(missing).all():  # no line reads codes
        return values
    is_missing = builder.node("Unsqueeze", [builder.node("IsNaN", [z]), builder.constant([2])])
    return builder.node("Where", [is_missing, builder.constant(missing[None]), values])


def _curve_values(builder: Builder, z: str, lines: list[list[Curve]]) -> str:
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


def _within_knots(builder: Builder, z: str, knots: list[Floats]) -> str:
    """Clip z to the outermost knots, beyond which curves are constant: infinity times zero is no number."""
    lowest, highest = (builder.constant(np.array([[each[k] for each in knots]])) for k in (0, -1))
    return builder.node("Min", [builder.node("Max", [z, lowest]), highest])
