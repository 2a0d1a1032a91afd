"""Where the search begins: the discriminant direction and random ones."""

from typing import Any

import numpy as np
from scipy import sparse

from melc.arrays import Floats
from melc.rows import Rows

# Beyond this many features the discriminant takes the features one by one: a full covariance would cost more
# than the training that it starts.
_FULL_COVARIANCE_FEATURES = 500

# Ridge on the within-class covariance, relative to its diagonal: directions in which a class does not vary
# at all (constant features, fewer rows than features) must not swallow the start.
_RIDGE = 1e-3


def feature_scale(sample: Rows) -> Floats:
    """Weighted standard deviation of every feature; one for a feature that is constant."""
    mean, variance = _mean_and_variance(sample.X, sample.all_weights())
    # What rounding leaves of a constant is no scale.
    scale = np.sqrt(np.maximum(variance, 0))
    return np.where(scale > 1e-12 * np.abs(mean), scale, 1.0)


def _mean_and_variance(X: Any, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted, feature by feature; sparse features stay sparse."""
    share = weights / weights.sum()
    mean = np.asarray(X.T @ share)
    if sparse.issparse(X):
        return mean, np.asarray(X.multiply(X).T @ share) - mean**2
    return mean, np.asarray(((X - mean) ** 2).T @ share)


def starting_directions(sample: Rows, n: int, scale: Floats, rng: np.random.RandomState) -> list[Floats]:
    """The discriminant first, then n − 1 random directions, all of length one in the features' units."""
    return [discriminant_direction(sample, scale), *random_directions(n - 1, scale, rng)]


def random_directions(n: int, scale: Floats, rng: np.random.RandomState) -> list[Floats]:
    """Directions spread evenly where every feature counts by its own scale."""
    return [_unit(u / scale) for u in rng.normal(size=(n, len(scale)))]


def discriminant_direction(sample: Rows, scale: Floats) -> Floats:
    """Fisher's direction Σ⁻¹(μ₊ − μ₋), Σ the mean of the two class covariances with a little ridge."""
    weights = sample.all_weights()
    spread_of = _covariance if len(scale) <= _FULL_COVARIANCE_FEATURES else _variance
    first, second = (sample.codes == code for code in (0, 1))
    (mean, spread), (other_mean, other_spread) = (
        spread_of(sample.X[members], weights[members], scale) for members in (first, second)
    )
    difference, spread = other_mean - mean, spread + other_spread
    if not np.any(difference):  # equal means tell nothing
        difference = np.ones(len(scale))
    if spread.ndim == 1:
        ridge = _RIDGE * max(float(spread.mean()), np.finfo(float).tiny)
        return _unit(difference / (spread + ridge) / scale)
    ridge = _RIDGE * max(float(np.trace(spread)) / len(scale), np.finfo(float).tiny)
    return _unit(np.linalg.solve(spread + ridge * np.eye(len(scale)), difference) / scale)


def _covariance(X: Any, weights: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of the scaled features of one class."""
    points = (X.toarray() if sparse.issparse(X) else X) / scale
    mean = weights @ points / weights.sum()
    centred = (points - mean) * np.sqrt(weights / weights.sum())[:, None]
    return mean, centred.T @ centred


def _variance(X: Any, weights: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean and variances of the scaled features of one class, taken one by one."""
    mean, variance = _mean_and_variance(X, weights)
    return mean / scale, variance / scale**2


def _unit(v: Floats) -> Floats:
    return np.asarray(v / np.linalg.norm(v))
