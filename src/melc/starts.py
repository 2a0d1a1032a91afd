"""Where the search begins: the discriminant direction and random ones."""

from typing import Any

import numpy as np

from melc.arrays import Floats, unit
from melc.rows import Rows
from melc.scaling import mean_and_deviation, span_projection, standardised

# Beyond this many features the discriminant takes the features one by one: a full covariance would cost more
# than the training that it starts.
_FULL_COVARIANCE_FEATURES = 500

# Ridge on the within-class covariance, relative to its diagonal: directions in which a class does not vary
# at all (fewer rows than features) must not swallow the start.
_RIDGE = 1e-3


def starting_directions(sample: Rows, n: int, scale: Floats, rng: np.random.RandomState) -> list[Floats]:
    """The discriminant first, then n − 1 random directions, all in the span of the rows and of length one in the
    features' units."""
    into_span = span_projection(sample, scale)
    every = [_discriminant(sample, scale), *rng.normal(size=(n - 1, len(scale)))]
    return [unit(into_span(u) / scale) for u in every]


def _discriminant(sample: Rows, scale: Floats) -> Floats:
    """Fisher's direction Σ⁻¹(μ₊ − μ₋) of the scaled features, Σ the covariances of both classes and a little ridge."""
    weights = sample.all_weights()
    spread_of = _covariance if len(scale) <= _FULL_COVARIANCE_FEATURES else _variance
    first, second = (sample.codes == code for code in (0, 1))
    (mean, spread), (other_mean, other_spread) = (
        spread_of(sample.X[members], weights[members], scale) for members in (first, second)
    )
    difference, spread = other_mean - mean, spread + other_spread
    if not np.any(difference):  # equal means tell nothing: any direction will do, if not one that no data vary along
        difference = np.random.RandomState(0).normal(size=len(scale))
    if spread.ndim == 1:
        return np.asarray(difference / (spread + _RIDGE * max(float(spread.mean()), np.finfo(float).tiny)))
    ridge = _RIDGE * max(float(np.trace(spread)) / len(scale), np.finfo(float).tiny)
    return np.asarray(np.linalg.solve(spread + ridge * np.eye(len(scale)), difference), dtype=np.float64)


def _covariance(X: Any, weights: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the scaled features of one class."""
    rows = standardised(X, weights, scale)
    return mean_and_deviation(X, weights)[0] / scale, rows.T @ rows


def _variance(X: Any, weights: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean and variances of the scaled features of one class, taken one by one."""
    mean, deviation = mean_and_deviation(X, weights)
    return mean / scale, (deviation / scale) ** 2
