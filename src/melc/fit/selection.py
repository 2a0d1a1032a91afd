"""The choice among directions by their likelihood: the highest divergence is not always the best classifier.

Where there are many optima, more starts find higher divergences and worse classifiers, and outliers alone can make a
divergence large. So the optima of the search, and linear directions beside them, are compared by the likelihood of the
classes along each of them,

``Σ_i target_i log P(class_i)  −  0.7 (d / n) min(‖u‖² / uᵀ Σ u, 3)``,

with every row left out of its own density. u are the weights of the scaled features, Σ is the covariance of these
features, both classes counting equally. The second term penalises directions along which features cancel each other:
with few rows there are many of them, and some separate the classes by chance. Distance between the classes counts as
variance. The penalty is bounded because the features of a good direction may cancel as well: indicators of the values
of a column do.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit

from melc.arrays import Floats
from melc.fit.coordinates import Coordinates
from melc.fit.evidence import Standing

# Rows of each class on which directions are compared.
_COMPARED_ROWS = 1_000
# A variance of zero along a direction is replaced by this, so that it can be divided by.
_LEAST_VARIANCE_ALONG = 1e-290
# Strength of the penalty in the likelihood, and the largest ratio of ‖u‖² to the variance that counts.
_PENALTY, _LARGEST_RATIO = 0.7, 3.0
# Ridges of the linear directions, in units of the number of features / number of rows; the Newton steps for each; and
# what is added to the diagonal of the Hessian, so that it can be inverted if a feature does not vary.
_JUDGED_RIDGES, _NEWTON_STEPS, _DIAGONAL_SHIFT = (1.0, 0.03), 5, 1e-10
# Steps end when they change no weight by more than this part of the largest.
_SMALL_STEP = 1e-2
# With more features than this, logistic regression would take longer than the search.
_MOST_REGRESSION_FEATURES = 200


class Judge:
    """Compares directions by their penalised likelihood on the sample of some coordinates."""

    def __init__(self, coordinates: Coordinates, gamma: float) -> None:
        sample, self.coordinates = coordinates.sample, coordinates
        chosen, weights = _systematic(sample.codes, sample.all_weights())
        X = sample.X[chosen]
        self._X = X.toarray() if sparse.issparse(X) and X.shape[1] <= _MOST_REGRESSION_FEATURES else X
        self._prospect = Standing(sample.codes[chosen], weights, gamma).prospect()

    def best(self, directions: Sequence[Floats]) -> int:
        """Return the index of the best of some directions, each of shape (d,), in the units of the features."""
        return int(np.argmax([self.likelihood(direction) for direction in directions]))

    def likelihood(self, direction: Floats) -> float:
        """Return the penalised likelihood along a direction."""
        prospect, coordinates = self._prospect, self.coordinates
        u = direction * coordinates.finite_scale
        z = self._X @ direction - coordinates.mean @ direction
        variance = float(prospect.targets @ (z - prospect.targets @ z) ** 2)
        ratio = min(float(u @ u) / max(variance, _LEAST_VARIANCE_ALONG), _LARGEST_RATIO)
        return prospect.likelihood(z) - _PENALTY * len(u) / prospect.n_effective * ratio

    def linear_directions(self) -> list[Floats]:
        """Return linear directions with ridges, of length one and in the units of the features.

        They are those of logistic regression or, with many features, linear discriminants, whose covariance is known.
        """
        coordinates = self.coordinates
        ridges = [ridge * len(coordinates.scale) / self._prospect.n_effective for ridge in _JUDGED_RIDGES]
        if len(coordinates.scale) > _MOST_REGRESSION_FEATURES:
            found = [coordinates.discriminant(ridge) for ridge in ridges]
        else:
            found = self._logistic(ridges)
        return [coordinates.direction_of(u) for u in found if np.any(u)]

    def _logistic(self, ridges: list[float]) -> list[Floats]:
        """Return the weights of logistic regression for scaled features, for each ridge, by Newton's method.

        The ridges decrease, and each solution is the start for the next.
        """
        codes, targets = self._prospect.codes, self._prospect.targets
        rows = np.column_stack([self.coordinates.scaled(self._X), np.ones(len(codes))])
        penalty = np.append(np.ones(rows.shape[1] - 1), 0.0)
        weights, found = np.zeros(rows.shape[1]), []
        for ridge in ridges:
            for _ in range(_NEWTON_STEPS):
                probability = expit(rows @ weights)
                slope = rows.T @ (targets * (codes - probability)) - ridge * penalty * weights
                curvature = (rows * (targets * probability * (1 - probability))[:, None]).T @ rows
                curvature[np.diag_indices_from(curvature)] += ridge * penalty + _DIAGONAL_SHIFT
                step = linalg.solve(curvature, slope, assume_a="pos", check_finite=False)
                weights = weights + step
                if np.abs(step).max() < _SMALL_STEP * np.abs(weights).max():
                    break
            found.append(weights[:-1])
        return found


def _systematic(codes: NDArray[np.int8], weights: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the indices of some rows of each class, and how often each was drawn.

    Systematic sampling: rows at equal steps of the cumulative weight, so that a row of weight k is drawn as often as k
    rows would be. All rows of a small class are returned.
    """
    numbers, drawn = [], []
    for c in (0, 1):
        members = np.flatnonzero(codes == c)
        ends = np.cumsum(weights[members])
        if ends[-1] <= _COMPARED_ROWS and len(members) <= _COMPARED_ROWS:
            numbers.append(members)
            drawn.append(weights[members])
        else:
            places = (np.arange(_COMPARED_ROWS) + 0.5) * ends[-1] / _COMPARED_ROWS
            hit, times = np.unique(np.searchsorted(ends, places, side="right"), return_counts=True)
            numbers.append(members[hit])
            drawn.append(times.astype(np.float64))
    return np.concatenate(numbers), np.concatenate(drawn)
