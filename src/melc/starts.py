"""Where the search begins: the discriminant direction and random ones."""

import numpy as np

from melc.rows import Rows
from melc.sums.base import Floats

# Beyond this many features the discriminant takes the features one by one: a full covariance would cost more
# than the training that it starts.
_FULL_COVARIANCE_FEATURES = 500

# Ridge on the within-class covariance, relative to its diagonal: directions in which a class does not vary
# at all (constant features, fewer rows than features) must not swallow the start.
_RIDGE = 1e-3


def feature_scale(sample: Rows) -> Floats:
    """Weighted standard deviation of every feature; one for a feature that is constant."""
    weights = sample.all_weights()
    mean = weights @ sample.X / weights.sum()
    scale = np.sqrt(weights @ (sample.X - mean) ** 2 / weights.sum())
    # What rounding leaves of a constant is no scale.
    return np.where(scale > 1e-12 * np.abs(mean), scale, 1.0)


def starting_directions(sample: Rows, n: int, scale: Floats, rng: np.random.RandomState) -> list[Floats]:
    """The discriminant first, then n − 1 random directions, all of length one in the features' units."""
    return [discriminant_direction(sample, scale), *random_directions(n - 1, scale, rng)]


def random_directions(n: int, scale: Floats, rng: np.random.RandomState) -> list[Floats]:
    """Directions spread evenly where every feature counts by its own scale."""
    return [_unit(u / scale) for u in rng.normal(size=(n, len(scale)))]


def discriminant_direction(sample: Rows, scale: Floats) -> Floats:
    """Fisher's direction Σ⁻¹(μ₊ − μ₋), Σ the mean of the two class covariances with a little ridge."""
    weights = sample.all_weights()
    means, spreads = [], []
    full = len(scale) <= _FULL_COVARIANCE_FEATURES
    for code in (0, 1):
        members = sample.codes == code
        w = weights[members] / weights[members].sum()
        points = sample.X[members] / scale
        mean = w @ points
        centred = (points - mean) * np.sqrt(w)[:, None]
        means.append(mean)
        spreads.append(centred.T @ centred if full else np.sum(centred**2, axis=0))
    difference, spread = means[1] - means[0], spreads[0] + spreads[1]
    if not np.any(difference):  # equal means tell nothing
        difference = np.ones(len(scale))
    if full:
        ridge = _RIDGE * max(float(np.trace(spread)) / len(scale), np.finfo(float).tiny)
        direction = np.linalg.solve(spread + ridge * np.eye(len(scale)), difference)
    else:
        direction = difference / (spread + _RIDGE * max(float(spread.mean()), np.finfo(float).tiny))
    return _unit(direction / scale)


def _unit(v: Floats) -> Floats:
    return np.asarray(v / np.linalg.norm(v))
