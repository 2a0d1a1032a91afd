"""Export of a fitted model as an ONNX graph, in double precision.

With two classes the graph projects the rows, counts the thresholds at or below each projection and looks up the label.
With more it computes the log odds of every class against the rest and returns the class with the largest.

Functions that add nodes to the graph return the name of the result, of shape (rows, 1) unless stated otherwise.
"""

from typing import Any

import numpy as np

from melc.classifier import MELC
from melc.export import additive_onnx
from melc.export.onnx_builder import Builder, labels_of, logistic
from melc.model.decision import SMALLEST_DECISION, Decision
from melc.model.density import Density
from melc.model.units import fitted_model, is_additive


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
    builder = Builder(dtype)
    if is_additive(model):
        return additive_onnx.graph(builder, model)
    labels = labels_of(model.classes_)
    odds = [_odds(builder, model, k) for k in range(len(model.decisions_))]
    if len(odds) == 1:
        z = _projection(builder, model, 0)
        code = _interval_code(builder, z, model.decisions_[0])
        builder.node("Reshape", [odds[0], builder.constant([-1])], "decision")
        code = builder.node("Reshape", [code, builder.constant([-1])])
        both = [logistic(builder, builder.node("Neg", odds)), logistic(builder, odds[0])]
        builder.node("Concat", both, "probabilities", axis=1)
    else:
        builder.node("Concat", odds, "decision", axis=1)
        code = builder.node("ArgMax", ["decision"], axis=1, keepdims=0)
        shares = logistic(builder, "decision")
        total = builder.node("ReduceSum", [shares, builder.constant([1])], keepdims=1)
        builder.node("Div", [shares, total], "probabilities")
    builder.node("Gather", [builder.constant(labels), code], "label", axis=0)
    return builder.model(model.coef_.shape[1], labels, len(odds))


def _projection(builder: Builder, model: MELC, index: int) -> str:
    """Project the rows: z = Xv."""
    return builder.node("MatMul", [builder.rows, builder.constant(model.coef_[index][:, None].astype(np.float64))])


def _interval_code(builder: Builder, z: str, decision: Decision) -> str:
    """Return the class code, 0 or 1, of the interval of z. Its index is the number of thresholds at or below z."""
    # An infinite last threshold, because a model may have none and ONNX compares with at least one.
    thresholds = builder.constant(np.append(decision.thresholds, np.inf)[None, :])
    reached = builder.node("GreaterOrEqual", [z, thresholds])
    counted = builder.node("Cast", [reached], to=builder.onnx.TensorProto.INT64)
    interval = builder.node("ReduceSum", [counted, builder.constant([1])], keepdims=1)
    # z = +inf reaches that one too, so the last code is repeated.
    codes = np.append(decision.codes, decision.codes[-1]).astype(np.int64)
    return builder.node("Gather", [builder.constant(codes), interval], axis=0)


def _sign(builder: Builder, code: str) -> str:
    """Return 1 where the code is 1, and −1 where it is 0."""
    zero_or_one = builder.node("Cast", [code], to=builder.onnx.TensorProto.DOUBLE)
    doubled = builder.node("Mul", [zero_or_one, builder.number(2)])
    return builder.node("Sub", [doubled, builder.number(1)])


def _with_sign(builder: Builder, values: str, least: str, sign: str) -> str:
    """Return sign · max(sign · values, least)."""
    towards = builder.node("Mul", [sign, values])
    return builder.node("Mul", [sign, builder.node("Max", [towards, least])])


def _within_reach(builder: Builder, z: str, decision: Decision) -> str:
    """Clip z to the interval in which its square does not overflow."""
    low, high = (builder.number(edge) for edge in decision.reach)
    return builder.node("Min", [builder.node("Max", [z, low]), high])


def _odds(builder: Builder, model: MELC, index: int) -> str:
    """Return the log odds of a class against the rest, as in :meth:`melc.model.decision.Decision.log_odds`."""
    z, decision = _projection(builder, model, index), model.decisions_[index]
    near = _within_reach(builder, z, decision)
    background = _log_background(builder, near, decision)
    first, second = (
        builder.node("Sub", [_log_density(builder, near, density, log_prior), background])
        for density, log_prior in zip(decision.densities, decision.log_priors, strict=True)
    )
    odds = builder.node("Sub", [_softplus(builder, second), _softplus(builder, first)])
    sign = _sign(builder, _interval_code(builder, z, decision))
    return _with_sign(builder, odds, _least_odds(builder, first, second, sign), sign)


def _least_odds(builder: Builder, first: str, second: str, sign: str) -> str:
    """Return the smallest absolute value of the log odds, 1e-15 (1 + log(1 + max(sign · (second − first), 0)))."""
    towards = builder.node("Mul", [sign, builder.node("Sub", [second, first])])
    difference = builder.node("Max", [towards, builder.number(0)])
    growing = builder.node("Log", [builder.node("Add", [difference, builder.number(1)])])
    return builder.node("Mul", [builder.node("Add", [growing, builder.number(1)]), builder.number(SMALLEST_DECISION)])


def _softplus(builder: Builder, x: str) -> str:
    """Return log(1 + exp(x)), accurate also where it is tiny; the Softplus of the runtimes is not.

    It is max(x, 0) + log(1 + t) with t = exp(−|x|). In floating point u = 1 + t is rounded, but log(u) and u − 1 then
    have the same relative error, so log(1 + t) = log(u) t / (u − 1) (Kahan); it is t where u = 1.
    """
    one = builder.number(1)
    t = builder.node("Exp", [builder.node("Neg", [builder.node("Abs", [x])])])
    u = builder.node("Add", [t, one])
    added = builder.node("Sub", [u, one])
    log = builder.node("Div", [builder.node("Mul", [builder.node("Log", [u]), t]), added])
    small = builder.node("Where", [builder.node("Equal", [u, one]), t, log])
    return builder.node("Add", [builder.node("Max", [x, builder.number(0)]), small])


def _log_background(builder: Builder, z: str, decision: Decision) -> str:
    """Return log_height − log(1 + u²) with u = (z − centre) / scale, the logarithm of the background density."""
    background = decision.background()
    distance = builder.node("Sub", [z, builder.number(background.centre)])
    u = builder.node("Div", [distance, builder.number(background.scale)])
    tail = builder.node("Log", [builder.node("Add", [builder.node("Mul", [u, u]), builder.number(1)])])
    return builder.node("Sub", [builder.number(background.log_height), tail])


def _log_density(builder: Builder, z: str, density: Density, log_factor: float) -> str:
    """Return log Σ_k w_k N(z; s_k, V) + log_factor. The constant of the Gaussian is added to log w_k."""
    offset = np.log(density.weights) - 0.5 * np.log(2 * np.pi * density.variance) + log_factor
    distance = builder.node("Sub", [z, builder.constant(density.support[None, :])])
    squared = builder.node("Mul", [distance, distance])
    scaled = builder.node("Mul", [squared, builder.number(-0.5 / density.variance)])
    exponents = builder.node("Add", [scaled, builder.constant(offset[None, :])])
    return builder.node("ReduceLogSumExp", [exponents, builder.constant([1])], keepdims=1)
