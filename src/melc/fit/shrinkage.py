"""Intensity and target of the shrinkage of class variances: Ledoit and Wolf's estimate, or the user's intensity.

:mod:`melc.objective.shrinkage` has the formula of shrinkage and its effect on the divergence.
"""

import math

import numpy as np

from melc.arrays import Floats
from melc.data.sample import samples_of_classes
from melc.data.source import Rows
from melc.fit.coordinates import gram
from melc.objective.shrinkage import Shrinkage

# Number of rows of a class from which the intensity is estimated.
_ESTIMATE_ROWS = 2000
# A difference smaller than this, relative to its terms, is a rounding error.
_DIFFERENCE_ROUNDING = 1e-13


def estimate_shrinkage(rows: Rows, wish: float | str | None, scale: Floats) -> Shrinkage | None:
    """Return the shrinkage that ``MELC(shrinkage=wish)`` stands for, or None for no shrinkage.

    ``scale``, of shape (d,), are the scales of the features, infinite for constant ones.
    """
    if wish is None or wish == 0:
        return None
    varies = np.isfinite(scale)
    (first, first_target), (second, second_target) = (
        ledoit_wolf(gram(X, weights, scale), weights, int(np.count_nonzero(varies)), total)
        for (X, weights), total in zip(samples_of_classes(rows, _ESTIMATE_ROWS), rows.total_weights, strict=True)
    )
    intensities = (first, second) if isinstance(wish, str) else (float(wish), float(wish))
    return Shrinkage(intensities, (first_target, second_target), np.where(varies, scale, 0.0))


def ledoit_wolf(products: Floats, weights: Floats, n_features: int, total_weight: float) -> tuple[float, float]:
    """Return the intensity λ and target t for which (1 − λ) S + λ t I is the best estimate of a covariance matrix.

    S is the sample covariance (Ledoit and Wolf 2004). ``products``, of shape (n, n), is ZZᵀ, with Z the centred rows,
    each times the square root of its share of ``weights``. The formula needs only the trace and the norm of S = ZᵀZ,
    and ZZᵀ has the same. The rows may be a sample of a class of ``total_weight``. The variance of the estimate is then
    smaller for the whole class, by the ratio of the weights.

    Two rows have the same deviation from their mean up to the sign, so the formula would estimate a variance of zero.
    For a class of two rows λ is therefore at least P/(4 (P − 1)), with P features. This is what the same criterion
    gives for a normal distribution (Chen, Wiesel, Eldar and Hero 2010, "Shrinkage algorithms for MMSE covariance
    estimation", their Rao-Blackwell estimator for n = 2).
    """
    share = weights / weights.sum()
    lengths = np.diagonal(products)
    target = float(lengths.sum()) / n_features
    if target <= 0 or n_features == 1:  # a single variance is its own target
        return 0.0, target
    square = float(np.sum((products / target) ** 2))  # divided by the target first, because its square might underflow
    uncertainty = (float(np.sum((lengths / target) ** 2 / share)) - square) / weights.sum()
    distance = square - n_features
    if uncertainty < _DIFFERENCE_ROUNDING * square:
        uncertainty = 0.0
    uncertainty = min(uncertainty, max(distance, 0.0))
    left = uncertainty * float(weights.sum()) / total_weight
    whole = distance - uncertainty + left
    least = n_features / (4 * (n_features - 1)) if total_weight <= 2 else 0.0
    return max(least, left / whole if whole > 0 and math.isfinite(whole) else 0.0), target
