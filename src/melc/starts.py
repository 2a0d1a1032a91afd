"""Where the search begins: the discriminant direction and random ones."""

import numpy as np

from melc.arrays import Floats, unit
from melc.rows import Rows
from melc.scaling import mean_and_deviation, span_projection, within_covariance

# Beyond this many features the discriminant takes the features one by one: a full covariance would cost more
# than the training that it starts.
_FULL_COVARIANCE_FEATURES = 500

# Ridge on the within-class covariance, relative to its diagonal: directions in which a class does not vary
# at all (fewer rows than features) must not swallow the start.
_RIDGE = 1e-3
# Where no class varies at all, the ridge is still something to divide by.
_LEAST_SPREAD = 1e-30


def starting_directions(sample: Rows, n: int, scale: Floats, rng: np.random.RandomState) -> list[Floats]:
    """The discriminant first, then n − 1 random directions, all in the span of the rows and of length one in the
    features' units."""
    into_span = span_projection(sample, scale)
    every = [_discriminant(sample, scale), *rng.normal(size=(n - 1, len(scale)))]
    return [unit(into_span(u) / scale) for u in every]


def _discriminant(sample: Rows, scale: Floats) -> Floats:
    """Fisher's direction Σ⁻¹(μ₊ − μ₋) of the scaled features, Σ the covariance within classes and a little ridge."""
    weights = sample.all_weights()
    members = [sample.members(code) for code in (0, 1)]
    (mean, deviation), (other_mean, other_deviation) = (mean_and_deviation(sample.X[m], weights[m]) for m in members)
    difference = (other_mean - mean) / scale
    if not np.any(difference):  # equal means tell nothing: any direction will do, if not one that no data vary along
        difference = np.random.RandomState(0).normal(size=len(scale))
    if len(scale) > _FULL_COVARIANCE_FEATURES:
        variances = ((deviation / scale) ** 2 + (other_deviation / scale) ** 2) / 2
        return np.asarray(difference / (variances + _ridge(variances)))
    covariance = within_covariance(sample, scale)
    ridge = _ridge(np.diagonal(covariance)) * np.eye(len(scale))
    return np.asarray(np.linalg.solve(covariance + ridge, difference), dtype=np.float64)


def _ridge(variances: Floats) -> float:
    return _RIDGE * max(float(variances.mean()), _LEAST_SPREAD)
