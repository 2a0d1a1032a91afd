"""Candidate directions for a further line of the additive model: of one feature, of two, or of all of them.

They are compared by the likelihood of the model with that line (:mod:`melc.fit.evidence`), minus a penalty for the
number of weights that were fitted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit

from melc.arrays import Floats
from melc.data.hashing import RowHashes
from melc.data.memory import MemoryRows
from melc.fit.coordinates import Coordinates, UnitsError, mean_and_deviation
from melc.fit.evidence import Prospect
from melc.fit.grid_search import Mapped
from melc.fit.validation import MOST_SORTED_NUMBERS, column_order
from melc.kernels import best_angle, pair_gains

# With more features than this, only those whose class means differ most are searched.
MOST_FEATURES = 1_000
# The number of best single features among which pairs are formed, of those that are tried with their best partner, and
# of further pairs that are tried.
_PAIRED, _BEST_SINGLES, _BEST_PAIRS = 60, 2, 4
# Angles tried for a pair, and how often their step is halved around the best one.
_ANGLES, _HALVINGS = 8, 5
# Rows used in the quick comparison of pairs, and the pseudo-rows added to each of its bins.
_QUICK_ROWS, _QUICK_RIDGE = 4_000, 2.0
# Penalties in units of 1 / number of rows. For each fitted weight: of linear directions, which have a ridge, and of
# other directions. For the squared length of the weights, times the number of features: of a pair, and of all features.
_RIDGED_WEIGHT, WEIGHT, _PAIR_SIZE, _FULL_SIZE = 0.5, 2.0, 0.1, 1.0
# Ridges of the linear directions, in units of the number of features / number of rows, and the least ridge, in units of
# the sum of variances: with huge sample weights, features could otherwise cancel each other up to rounding.
_RIDGES, _LEAST_RIDGE = (0.03, 0.3, 3.0), 1e-12

# Class means whose relative difference is below this are equal up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Candidate:
    """A direction for scaled features, shape (d,), and the penalised likelihood of the model with a line along it."""

    likelihood: float
    direction: Floats


class Candidates:
    """Finds the best directions of each kind for a further line, on the given rows."""

    def __init__(self, rows: MemoryRows, mapped: Mapped, single: NDArray[np.bool_]) -> None:
        """Take rows, a map that may use threads, and which features must not be combined with others, shape (d,)."""
        self.n_features, self.mapped = rows.n_features, mapped
        self.chosen = _features_to_search(rows)
        X = rows.X if len(self.chosen) == rows.n_features else rows.X[:, self.chosen]
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        if dense.size <= MOST_SORTED_NUMBERS:  # so that ties do not depend on the order of the features
            order, _ = column_order(dense, rows.codes, rows.all_weights())
            self.chosen, dense = self.chosen[order], np.ascontiguousarray(dense[:, order])
        hashes = RowHashes(dense, rows.weights, canonical=rows.canonical, known=rows.hashes.known)
        self.rows = MemoryRows(dense, rows.codes, rows.weights, rows.n_threads, hashes=hashes)
        try:
            self.coordinates = Coordinates(self.rows)
        except UnitsError as error:
            raise UnitsError(int(self.chosen[error.feature]), error.deviation) from None
        self.columns = np.ascontiguousarray(self.coordinates.scaled(dense).T)
        deviation = np.sqrt(np.diagonal(self.coordinates.within_covariance))
        # Deviations within the classes; a feature that varies only between them keeps its overall deviation of one.
        self.scale = np.where(deviation > 1e-6, deviation, 1.0)
        self.columns /= self.scale[:, None]
        self.within = self.coordinates.within_covariance / np.outer(self.scale, self.scale)
        self.varying = np.flatnonzero(np.isfinite(self.coordinates.scale))
        self.combined = self.varying[~single[self.chosen][self.varying]]

    def in_units(self, scaled: Floats) -> tuple[Floats, Floats]:
        """Return a direction of length one in the units of all features, and the features' shares, both (n_features,).

        ``scaled`` is for scaled features. Its sign is chosen so that the largest contribution has a positive weight.
        """
        direction, shares = np.zeros(self.n_features), np.zeros(self.n_features)
        sign = np.sign(scaled[np.argmax(np.abs(scaled))])
        direction[self.chosen] = sign * self.coordinates.direction_of(scaled / self.scale)
        shares[self.chosen] = np.abs(scaled) / np.abs(scaled).sum()
        return direction, shares

    def scaled(self, direction: Floats) -> Floats:
        """Return a direction in the units of the chosen features as a direction for scaled features, shape (d,)."""
        return np.asarray(direction * self.coordinates.finite_scale * self.scale)

    def single(self, prospect: Prospect) -> Candidate:
        """Return the best direction of one feature."""
        return self._best_single(prospect, self._single_likelihoods(prospect))

    def best_features(self, prospect: Prospect, most: int) -> list[int]:
        """Return up to ``most`` features that vary, by decreasing likelihood of a line along each."""
        order = np.argsort(-self._single_likelihoods(prospect), kind="stable")[: min(most, len(self.varying))]
        return [int(feature) for feature in self.chosen[order]]

    def _best_single(self, prospect: Prospect, values: Floats) -> Candidate:
        best = int(np.argmax(values))
        return Candidate(values[best] - WEIGHT / prospect.n_rows, self._with_weights({best: 1.0}))

    def pair(self, prospect: Prospect) -> Candidate:
        """Return the best direction of at most two features; a quick comparison chooses the pairs that are tried."""
        values, n = self._single_likelihoods(prospect), prospect.n_rows
        pairs = list(self._promising_pairs(prospect, values))
        if not pairs:
            return self._best_single(prospect, values)
        ridge = _PAIR_SIZE * len(self.columns) / n

        def best_of(pair: tuple[int, int]) -> tuple[float, float, float]:
            i, j = pair
            plane = self.columns[i], self.columns[j], self.within[i, j], ridge
            return best_angle(*plane, *prospect.arguments, _ANGLES, _HALVINGS)

        found = list(self.mapped(best_of, pairs))
        best = int(np.argmax([value for value, *_ in found]))
        value, *weights = found[best]
        size = ridge * (weights[0] ** 2 + weights[1] ** 2)
        direction = self._with_weights(dict(zip(pairs[best], weights, strict=True)))
        pair = Candidate(value + size - 2 * WEIGHT / n, direction)
        values[self.combined] = -np.inf  # pairs cover these already
        return max(pair, self._best_single(prospect, values), key=lambda candidate: candidate.likelihood)

    def full(self, prospect: Prospect, others: Iterable[Floats] = ()) -> Candidate:
        """Return the best direction of all features, among linear ones and ``others`` for scaled features."""
        per_row, mask = len(self.combined) / prospect.n_rows, self._with_weights(dict.fromkeys(self.combined, 1.0))
        directions = [(direction, _RIDGED_WEIGHT) for direction in self._linear(prospect) if direction.any()]
        directions += [(mask * direction, WEIGHT) for direction in others if (mask * direction).any()]
        if not directions:  # the class means agree in every feature, so any direction is as good
            directions.append((mask, 0.0))
        found = []
        for direction, weight in directions:
            spread = np.sqrt(max(direction @ self.within @ direction, 1e-12 * (direction @ direction)))
            size = float(direction @ direction) / spread**2
            value = prospect.likelihood(direction @ self.columns) - weight * per_row
            found.append((value - _FULL_SIZE * size * per_row, Candidate(value, direction / spread)))
        return max(found, key=lambda each: each[0])[1]

    def _with_weights(self, weights: dict[int, float]) -> Floats:
        direction = np.zeros(len(self.columns))
        direction[list(weights)] = list(weights.values())
        return direction

    def _single_likelihoods(self, prospect: Prospect) -> Floats:
        """Return the likelihood along each feature, shape (d,); −∞ for features that do not vary."""
        values = np.full(len(self.columns), -np.inf)
        values[self.varying] = list(self.mapped(lambda j: prospect.likelihood(self.columns[j]), self.varying))
        return values

    def _promising_pairs(self, prospect: Prospect, singles: Floats) -> Iterator[tuple[int, int]]:
        """Yield pairs of features to try: the best features with their best partner, and the best pairs of all."""
        order = self.combined[np.argsort(-singles[self.combined], kind="stable")[:_PAIRED]]
        if len(order) < 2:
            return
        features = np.sort(order)
        gains = self._quick_gains(prospect, features)
        pairs = [(int(j), int(features[np.argmax(gains[np.searchsorted(features, j)])])) for j in order[:_BEST_SINGLES]]
        first, second = np.triu_indices(len(features), 1)
        best = np.argsort(-gains[first, second], kind="stable")[:_BEST_PAIRS]
        pairs += [(int(features[first[k]]), int(features[second[k]])) for k in best]
        yield from dict.fromkeys((min(pair), max(pair)) for pair in pairs)

    def _quick_gains(self, prospect: Prospect, features: NDArray[np.int64]) -> Floats:
        """Return estimates, from some of the rows, of what each pair of features adds to the likelihood: (m, m)."""
        some = slice(None, None, -(-len(prospect.codes) // _QUICK_ROWS))
        probability = expit(prospect.log_odds[some])
        residuals = np.where(prospect.codes[some] == 1, prospect.masses[some], -prospect.masses[some])
        curvatures = prospect.targets[some] * probability * (1 - probability)
        gains = np.zeros((len(features), len(features)))
        columns = np.ascontiguousarray(self.columns[:, some]) if some.step > 1 else self.columns
        pair_gains(columns, features, residuals, curvatures, _QUICK_RIDGE / prospect.n_effective, gains)
        np.fill_diagonal(gains, -np.inf)  # no feature is its own partner
        return gains

    def _linear(self, prospect: Prospect) -> Iterator[Floats]:
        """Yield linear directions: Newton steps of logistic regression, and discriminants weighted by the masses."""
        all_combined = len(self.combined) == len(self.columns)
        columns = self.columns if all_combined else self.columns[self.combined]
        probability = expit(prospect.log_odds)
        curvatures = prospect.targets * probability * (1 - probability)
        residuals = np.where(prospect.codes == 1, prospect.masses, -prospect.masses)
        centred = columns - (columns @ prospect.targets)[:, None]
        hessian, slope = (centred * curvatures) @ centred.T, centred @ residuals
        shares = prospect.masses / np.bincount(prospect.codes, prospect.masses, 2)[prospect.codes]
        means = np.stack([columns @ np.where(prospect.codes == c, shares, 0.0) for c in (0, 1)], axis=1)
        around = columns - means[:, prospect.codes]
        scatter, apart = 0.5 * (around * shares) @ around.T, means[:, 1] - means[:, 0]
        for ridge in _RIDGES:
            added = ridge * len(columns) / prospect.n_effective
            for weights in (_ridge_solution(hessian, 0.25 * added, slope), _ridge_solution(scatter, added, apart)):
                yield weights if all_combined else self._with_weights(dict(zip(self.combined, weights, strict=True)))


def _ridge_solution(matrix: Floats, ridge: float, right: Floats) -> Floats:
    """Return (matrix + ridge I)⁻¹ right, scaled to length one, or zero if ``right`` is zero; shape (d,)."""
    ridge = max(ridge, _LEAST_RIDGE * float(np.trace(matrix)))
    factor = linalg.cho_factor(matrix + ridge * np.eye(len(matrix)), check_finite=False)
    solved = linalg.cho_solve(factor, right, check_finite=False)
    return np.asarray(solved / max(np.linalg.norm(solved), 1e-300))


def _features_to_search(rows: MemoryRows) -> NDArray[np.int64]:
    """Return the features to search, ascending: all of them, or those whose class means differ most."""
    if rows.n_features <= MOST_FEATURES:
        return np.arange(rows.n_features)
    weights = rows.all_weights()
    (mean, deviation), (other_mean, other_deviation) = (
        mean_and_deviation(rows.X[rows.members(c)], weights[rows.members(c)]) for c in (0, 1)
    )
    spread, difference = np.hypot(deviation, other_deviation), np.abs(other_mean - mean)
    # A feature that varies only between the classes ranks first, one that does not vary at all ranks last.
    apart = difference > _ROUNDING * np.maximum(np.abs(mean), np.abs(other_mean))
    distance = np.divide(difference, spread, out=np.where(apart, np.inf, 0.0), where=spread > 0)
    return np.sort(np.argsort(-distance, kind="stable")[:MOST_FEATURES])
