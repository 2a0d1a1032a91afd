"""The result of a bootstrap as text."""

from typing import TYPE_CHECKING, Any

import numpy as np

from melc.model.names import column_width

if TYPE_CHECKING:
    from melc.inference.bootstrap import Bootstrap

# Features of a line that are listed.
_MOST = 20


def summary(result: "Bootstrap") -> str:
    """Return the intervals of a bootstrap as text."""
    text = [
        f"{result.confidence:.0%} intervals from {result.n} resamples",
        f"balanced accuracy on new rows: {_numbers(result.accuracy)}",
        *_divergences(result),
        f"same optimum: {result.same_optimum:.0%} of the resamples",
    ]
    for k in range(len(result.coef.estimate)):
        text += ["", *_line(result, k)]
    return "\n".join(text)


def _divergences(result: "Bootstrap") -> list[str]:
    estimates, lows, highs = (np.atleast_1d(each) for each in vars(result.divergence).values())
    names = [""] if len(estimates) == 1 else [f" of class {label}" for label in result.classes.tolist()]
    return [
        f"divergence{name}, less its bias: {estimate:.4g} ({low:.4g} to {high:.4g})"
        for name, estimate, low, high in zip(names, estimates, lows, highs, strict=True)
    ]


def _line(result: "Bootstrap", k: int) -> list[str]:
    weights, low, high = (each[k] for each in vars(result.coef).values())
    shown = np.flatnonzero(weights)
    hidden = max(0, len(shown) - _MOST)
    shown = shown[:_MOST]
    width = column_width(result.feature_names[j] for j in shown)
    text = [_head(result, k)]
    text += [f"  {result.feature_names[j]:<{width}}  {weights[j]:.4g} ({_limits(low[j], high[j])})" for j in shown]
    if hidden:
        text.append(f"  and {hidden} more")
    for each in result.thresholds[k]:
        text.append(f"  threshold {each.value:.4g} ({_limits(each.low, each.high)}), in {each.share:.0%}")
    return text


def _head(result: "Bootstrap", k: int) -> str:
    n_lines = len(result.coef.estimate)
    if n_lines == 1:
        return "weights"
    if n_lines == len(result.classes) > 2:
        return f"class {result.classes[k]} against the rest"
    return f"line {k + 1}, in {result.line_shares[k]:.0%} of the resamples"


def _limits(low: float, high: float) -> str:
    """The limits of an interval; infinite ones are those of what too few resamples have."""
    return f"{low:.4g} to {high:.4g}" if np.isfinite(high - low) else "no interval"


def _numbers(interval: Any) -> str:
    return f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})"
