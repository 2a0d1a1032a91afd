"""The likelihood of the classes along a direction, with every row left out of its own density.

It tells what a further line would add to the lines so far, and chooses among the directions that a search has found.

Every class has the total target one half, so that both count equally. The *mass* of a row is the part of its target
that the lines so far leave unexplained, ``target · P(the other class)``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit

from melc import kernels
from melc.arrays import Floats
from melc.fit.coordinates import Coordinates
from melc.objective.base import silverman_factor

# Rows of each class that the background of a curve stands for.
PSEUDO_ROWS = 5.0
# Log-odds are clipped to ± this, so that their exponentials are finite, also times the ratio of two densities.
_MOST_LOG_ODDS = 300.0
# If the rows other than one have less than this part of the mass of a class, nothing is left without that row.
_LEAST_REST = 1e-7

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


@dataclass(frozen=True)
class Prospect:
    """What a further line is judged by: arguments of the kernels."""

    codes: NDArray[np.int8]
    targets: Floats
    masses: Floats
    own: Floats  # the masses of single copies of the rows
    growth: Floats  # factor on the rest of a class that restores its total mass when a copy of the row is left out
    log_odds: Floats
    factor: float
    pseudo_mass: float
    n_rows: float  # their total weight
    n_effective: float  # the same, or if one class is rarer, twice the harmonic mean of both

    @cached_property
    def arguments(self) -> tuple[NDArray[np.int8], Floats, Floats, Floats, Floats, Floats, float, float]:
        against = np.where(self.codes == 1, -self.log_odds, self.log_odds)
        odds = np.exp(np.clip(against, -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
        rows = self.codes, self.targets, self.masses, self.own, self.growth, odds
        return *rows, self.factor, self.pseudo_mass

    def likelihood(self, z: Floats) -> float:
        """Return the likelihood with a line along which the rows have projections z, each row left out of its curve."""
        table = np.empty((kernels.TABLE_ROWS, kernels.MOST_NODES))
        return float(kernels.line_evidence(np.ascontiguousarray(z), *self.arguments, table))


class Standing:
    """The rows of two classes: their targets, and their log-odds by the lines so far, all of shape (n,)."""

    def __init__(self, codes: NDArray[np.int8], weights: Floats | None, gamma: float) -> None:
        """Take codes 0 and 1, and weights: a row of weight k counts as k rows."""
        self.codes, self.gamma = codes, gamma
        self.weights = np.ones(len(codes)) if weights is None else weights
        self.totals = np.bincount(codes, self.weights, 2)
        self.targets = 0.5 * self.weights / self.totals[codes]
        self.log_odds = np.zeros(len(codes))
        self._copies = np.maximum(self.weights, 1.0)

    @property
    def n_effective(self) -> float:
        """The number of rows; if one class is rarer, twice the harmonic mean of both."""
        return float(4 / np.sum(1 / self.totals))

    @property
    def likelihood(self) -> float:
        """The likelihood of the lines so far, at most zero: ``Σ target · log P(class)``."""
        margins = np.where(self.codes == 1, self.log_odds, -self.log_odds)
        return float(self.targets @ -np.logaddexp(0, -margins))

    def prospect(self) -> Prospect:
        """Return what a further line is judged by."""
        masses = self.targets * expit(np.where(self.codes == 1, -self.log_odds, self.log_odds))
        own, totals = masses / self._copies, np.bincount(self.codes, masses, 2)
        rest = 1 - own / totals[self.codes]
        growth = 1 / np.where(rest > _LEAST_REST, rest, 1.0)
        numbers = totals**2 / np.bincount(self.codes, masses * own, 2)
        factor = silverman_factor(2 / np.sum(1 / numbers), self.gamma)
        pseudo_mass = PSEUDO_ROWS * masses.sum() / self.n_effective
        known = self.codes, self.targets, masses, own, growth, self.log_odds
        rows = float(self.totals.sum()), self.n_effective
        return Prospect(*known, float(np.sqrt(factor)), float(pseudo_mass), *rows)


class Judge:
    """Compares directions by their penalised likelihood, with every row left out of its own density.

    The highest divergence is not always the best classifier. Where there are many optima, more starts find higher
    divergences and worse classifiers, and outliers alone can make a divergence large. So the optima of the search, and
    linear directions beside them, are compared on the sample of some coordinates by

    ``Σ_i target_i log P(class_i)  −  0.7 (d / n) min(‖u‖² / uᵀ Σ u, 3)``.

    u are the weights of the scaled features, Σ is the covariance of these features, both classes counting equally. The
    second term penalises directions along which features cancel each other: with few rows there are many of them, and
    some separate the classes by chance. Distance between the classes counts as variance. The penalty is bounded because
    the features of a good direction may cancel as well: indicators of the values of a column do.
    """

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

        They come from logistic regression or, with many features, are linear discriminants, which cost less.
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
        weights, found = np.zeros(rows.shape[1]), []
        for ridge in ridges:
            weights = logistic_regression(rows, codes, targets, ridge, weights, _NEWTON_STEPS, _SMALL_STEP)
            found.append(weights[:-1])
        return found


def logistic_regression(
    rows: Floats, codes: NDArray[Any], targets: Floats, ridge: float, start: Floats, most_steps: int, small_step: float
) -> Floats:
    """Return the weights of a logistic regression with a ridge, shape (d,), by Newton's method from ``start``.

    The last column of ``rows``, of shape (n, d), is constant; its weight has no ridge. The search ends with a step that
    is relatively smaller than ``small_step``.
    """
    weights, penalty = start, np.append(np.full(len(start) - 1, ridge), 0.0)
    for _ in range(most_steps):
        probability = expit(rows @ weights)
        slope = rows.T @ (targets * (codes - probability)) - penalty * weights
        curvature = (rows * (targets * probability * (1 - probability))[:, None]).T @ rows
        curvature[np.diag_indices_from(curvature)] += penalty + _DIAGONAL_SHIFT
        step = linalg.solve(curvature, slope, assume_a="pos", check_finite=False)
        weights = weights + step
        if np.abs(step).max() < small_step * np.abs(weights).max():
            break
    return weights


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
