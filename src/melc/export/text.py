"""Export of a fitted model as text: the weights of the features and the class of every interval between thresholds.

For more than two classes the text can also contain the numbers from which the odds are computed.
"""

from typing import Any

import numpy as np

from melc.classifier import MELC
from melc.export import additive_text
from melc.export.wording import counts_of, intervals_of, number, quoted
from melc.model.decision import SMALLEST_DECISION, Decision
from melc.model.density import Density
from melc.model.names import column_width, contributions_of, feature_names_of
from melc.model.units import fitted_model, is_additive

_ALONE = "Where one rule alone names its class, that class is predicted. Where none or several do, the best odds decide"
_WITHOUT_ODDS = f"{_ALONE}: odds=True (--odds on the command line) adds the numbers to compute them."
_WITH_ODDS = f"""{_ALONE}, the first of equals.
Log odds of a class at its z, with natural logarithms:
  t is z, but no lower than the lowest t and no higher than the highest
  log f1 is log prior - log(2 pi variance) / 2 + log(sum of weight × exp(-(t - place)² / (2 variance))) of the class
  log f0 is the same of the rest
  log b is log height - log(1 + ((t - centre) / scale)²) of the background
  s is 1 where the interval of z names the class, and -1 elsewhere
  d is s × (log f1 - log f0), or 0 if that is negative
  log odds = s × max(s × (log(1 + f1 / b) - log(1 + f0 / b)), {SMALLEST_DECISION} × (1 + log(1 + d)))"""


def export_text(model: Any, feature_names: Any = None, *, digits: int | None = None, odds: bool = False) -> str:
    """Return the rule of a fitted model as text.

    The rule consists of the weights of the features, whose weighted sum is the projection z, and the class of every
    interval of z. The features are in the order of their contribution, weight × standard deviation. With more than two
    classes there is one rule per class against the rest. If exactly one rule gives its class, that class is predicted;
    otherwise the class with the best odds.

    The text of an :class:`melc.AdditiveMELC` has the lines of each class, the most important first: what z is, and the
    least and the most that the line adds to the log-odds in every interval of z.

    Parameters
    ----------
    model : MELC, AdditiveMELC, Pipeline or fitted search
        A fitted model. Scalers before it in a pipeline become part of the weights; of a search the best estimator is
        used.
    feature_names : list of str, default=None
        Names of the features. By default those seen in ``fit``, or "x0", "x1", ...
    digits : int, default=None
        Significant digits of the numbers. By default they are written in full, so that the printed rule predicts
        what the model predicts, up to the rounding of the sum; the text of an additive model, from which predictions
        cannot be computed without ``odds``, then has three.
    odds : bool, default=False
        Whether to add, for more than two classes, the formulas and numbers of the odds: one line per support point of
        the densities. For an additive model all weights and all points of the curves are added. The text is then
        sufficient to compute every prediction.

    Returns
    -------
    text : str

    Examples
    --------
    >>> import numpy as np
    >>> from melc import MELC
    >>> from melc.export import export_text
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.where(np.abs(X[:, 0]) < 1, "well", "ill")
    >>> model = MELC(n_init=1, random_state=0).fit(X, y)
    >>> print(export_text(model, ["pulse", "noise"], digits=2))
    z is the sum of weight × feature:
         1  pulse
      0.01  noise
    class by the interval of z, with the training rows in it:
      z < -0.96           ill   (56 ill, 2 well)
      -0.96 <= z < 0.98   well  (0 ill, 195 well)
      0.98 <= z           ill   (47 ill, 0 well)
    """
    model = fitted_model(model)
    names = feature_names_of(model, feature_names)
    if is_additive(model):
        return additive_text.export_text(model, names, digits, odds)
    if len(model.decisions_) == 1:
        labels = [quoted(str(label)) for label in model.classes_]
        return _block(model, 0, names, labels, digits)
    parts = []
    for k, label in enumerate(model.classes_):
        name = '"rest"' if str(label) == "rest" else quoted(str(label))
        lines = [f"Class {name} against the rest", _block(model, k, names, ["rest", name], digits)]
        parts.append("\n".join(lines + (_odds_lines(model.decisions_[k], digits) if odds else [])))
    return "\n\n".join([*parts, _WITH_ODDS if odds else _WITHOUT_ODDS])


def _block(model: MELC, index: int, names: list[str], labels: list[str], digits: int | None) -> str:
    """Return the rule of one projection: weights, the largest contribution first, and intervals."""
    weights = model.coef_[index]
    order = np.argsort(-np.abs(contributions_of(model, index)), kind="stable")
    shown = [number(weights[i], digits) for i in order]
    width = max(len(number) for number in shown)
    lines = ["z is the sum of weight × feature:"]
    lines += [f"  {number:>{width}}  {quoted(names[i])}" for number, i in zip(shown, order, strict=True)]
    lines.append("class by the interval of z, with the training rows in it:")
    return "\n".join(lines + _interval_lines(model.decisions_[index], labels, digits))


def _interval_lines(decision: Decision, labels: list[str], digits: int | None) -> list[str]:
    """Return one line per interval: its limits, its class and its training rows."""
    intervals = intervals_of([number(t, digits) for t in decision.thresholds])
    interval_width = max(len(text) for text in intervals)
    label_width = column_width(labels)
    return [
        f"  {text:<{interval_width}}   {labels[code]:<{label_width}}{_support(decision, k, labels)}".rstrip()
        for k, (text, code) in enumerate(zip(intervals, decision.codes, strict=True))
    ]


def _support(decision: Decision, interval: int, labels: list[str]) -> str:
    """Return the number (or total weight) of the training rows of either class in an interval."""
    if decision.counts is None:
        return ""
    return f"  ({counts_of(decision.counts[interval], labels)})"


def _odds_lines(decision: Decision, digits: int | None) -> list[str]:
    """Return the numbers from which the log odds of a class are computed, one per line."""
    background, (lowest, highest) = decision.background(), decision.reach
    named = {
        "lowest t": lowest,
        "highest t": highest,
        "background centre": background.centre,
        "background scale": background.scale,
        "background log height": background.log_height,
    }
    lines = ["odds of the class:", *(f"  {name}  {number(value, digits)}" for name, value in named.items())]
    for name, density, log_prior in zip(("rest", "class"), decision.densities, decision.log_priors, strict=True):
        lines += _density_lines(name, density, log_prior, digits)
    return lines


def _density_lines(name: str, density: Density, log_prior: float, digits: int | None) -> list[str]:
    points = zip(density.support, density.weights, strict=True)
    return [
        f"  {name} log prior  {number(log_prior, digits)}",
        f"  {name} variance  {number(density.variance, digits)}",
        f"  {name} places and weights:",
        *(f"    {number(place, digits)}  {number(weight, digits)}" for place, weight in points),
    ]
