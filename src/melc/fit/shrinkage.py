"""How far class variances are shrunk, and towards what: Ledoit and Wolf's estimate, or a number from the user.

What shrinkage does to the divergence is in :mod:`melc.objective.shrinkage`.
"""

import math
from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.data.sample import spread_samples
from melc.data.source import Rows
from melc.fit.coordinates import gram
from melc.objective.shrinkage import Shrinkage

# Rows of a class from which the intensity is estimated.
_ROWS = 2000
# What is left of a difference of equal numbers.
_ROUNDING = 1e-13


def estimate_shrinkage(rows: Rows, wish: float | str | None, scale: Floats) -> Shrinkage | None:
    """Return what ``MELC(shrinkage=wish)`` means for rows whose features have the given scales (inf: constant)."""
    if wish is None or wish == 0:
        return None
    finite = np.where(np.isfinite(scale), scale, 0.0)
    samples = spread_samples(rows, _ROWS)
    found = [_estimate(*samples[c], rows.total_weights[c], scale) for c in (0, 1)]
    intensities = [intensity if isinstance(wish, str) else float(wish) for intensity, _ in found]
    return Shrinkage((intensities[0], intensities[1]), (found[0][1], found[1][1]), finite)


def _estimate(X: Any, weights: Floats, total_weight: float, scale: Floats) -> tuple[float, float]:
    """Return Ledoit and Wolf's intensity for a class, from some of its rows, and its target."""
    n_features = int(np.count_nonzero(np.isfinite(scale)))
    return ledoit_wolf(gram(X, weights, scale), weights, n_features, total_weight)


def ledoit_wolf(products: Floats, weights: Floats, n_features: int, total_weight: float) -> tuple[float, float]:
    """Return intensity λ and target t with (1 − λ) S + λ t I the best estimate of a covariance (Ledoit and Wolf 2004).

    All that the formula needs is in the products ZZᵀ of the rows, each centred and times the root of its share p: then
    S = ZᵀZ has the trace of ZZᵀ and its norm. The rows may be a sample of a class of ``total_weight``: what is
    uncertain in their covariance is smaller in that of all by the ratio of the weights.

    Two rows lie on a line through their mean, and either gives the same product: the formula takes that for certainty.
    For them λ is at least P/(4 (P − 1)), what the same criterion gives under normality (Chen, Wiesel, Eldar and Hero
    2010, "Shrinkage algorithms for MMSE covariance estimation", their Rao-Blackwell estimator for n = 2).
    """
    share = weights / weights.sum()
    lengths = np.diagonal(products)
    target = float(lengths.sum()) / n_features
    if target <= 0 or n_features == 1:  # a single variance is its own target
        return 0.0, target
    square = float(np.sum((products / target) ** 2))  # in units of the target, whose square might underflow
    uncertainty = (float(np.sum((lengths / target) ** 2 / share)) - square) / weights.sum()
    distance = square - n_features
    if uncertainty < _ROUNDING * square:
        uncertainty = 0.0
    uncertainty = min(uncertainty, max(distance, 0.0))
    left = uncertainty * float(weights.sum()) / total_weight
    whole = distance - uncertainty + left
    least = n_features / (4 * (n_features - 1)) if total_weight <= 2 else 0.0
    return max(least, left / whole if whole > 0 and math.isfinite(whole) else 0.0), target
