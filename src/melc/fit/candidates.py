"""Directions that a further line of the additive model may have: of one or two features, or of all of them.

All directions are compared by the likelihood that they would lead to (:mod:`melc.fit.evidence`), less a penalty for the
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

# Of more features than this, those whose class means differ most are searched.
MOST_FEATURES = 1_000
# The best single features that are paired, the very best of them that are tried with their best partner, and the other
# pairs that are tried.
_PAIRED, _BEST_SINGLES, _BEST_PAIRS = 60, 2, 4
# Angles tried for a pair, and how often their distance is halved around the best.
_ANGLES, _HALVINGS = 8, 5
# Rows that the quick comparison of pairs looks at, and the pseudo-rows in each of its bins.
_QUICK_ROWS, _QUICK_RIDGE = 4_000, 2.0
# Penalties in units of 1 / number of rows: for a weight that was fitted, with a ridge (linear directions of all
# features) and in free search; for the size of a pair's weights (times the number of features), and for those of a full
# line (times the number of features).
_RIDGED_WEIGHT, WEIGHT, _PAIR_SIZE, _FULL_SIZE = 0.5, 2.0, 0.1, 1.0
# Ridges of the linear directions, in units of the number of features / number of rows, and the least of them, in units
# of the sum of variances: with huge weights there seem to be so many rows that features could cancel up to rounding.
_RIDGES, _LEAST_RIDGE = (0.03, 0.3, 3.0), 1e-12

# Class means that differ by less than this fraction of them are the same up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Candidate:
    """A direction, of shape (d,), for scaled features, and the penalised likelihood that it would lead to."""

    likelihood: float
    direction: Floats


class Candidates:
    """The rows on which directions are searched, and the directions found best for a further line."""

    def __init__(self, rows: MemoryRows, mapped: Mapped, single: NDArray[np.bool_]) -> None:
        """Take rows, a map for work that can be done side by side, and which features may not be combined, (d,)."""
        self.n_features, self.mapped = rows.n_features, mapped
        self.chosen = _telling_features(rows)
        X = rows.X if len(self.chosen) == rows.n_features else rows.X[:, self.chosen]
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        if dense.size <= MOST_SORTED_NUMBERS:  # of candidates that are equally good the same one is the first
            order = column_order(dense)
            self.chosen, dense = self.chosen[order], np.ascontiguousarray(dense[:, order])
        hashes = RowHashes(dense, rows.weights, canonical=rows.canonical)
        self.rows = MemoryRows(dense, rows.codes, rows.weights, rows.n_threads, hashes=hashes)
        try:
            self.coordinates = Coordinates(self.rows)
        except UnitsError as error:
            raise UnitsError(int(self.chosen[error.feature]), error.deviation) from None
        self.columns = np.ascontiguousarray(self.coordinates.scaled(dense).T)
        deviation = np.sqrt(np.diagonal(self.coordinates.within_covariance))
        # The scale within the classes; that of all rows, which is one, where a feature varies between them only.
        self.scale = np.where(deviation > 1e-6, deviation, 1.0)
        self.columns /= self.scale[:, None]
        self.within = self.coordinates.within_covariance / np.outer(self.scale, self.scale)
        self.varying = np.flatnonzero(np.isfinite(self.coordinates.scale))
        self.combined = self.varying[~single[self.chosen][self.varying]]

    def described(self, scaled: Floats) -> tuple[Floats, Floats]:
        """Return a direction for scaled features in the units of all features, of length one, and the features' shares.

        A direction and its mirror are one: the feature that contributes most gets a positive weight.
        """
        direction, shares = np.zeros(self.n_features), np.zeros(self.n_features)
        sign = np.sign(scaled[np.argmax(np.abs(scaled))])
        direction[self.chosen] = sign * self.coordinates.direction_of(scaled / self.scale)
        shares[self.chosen] = np.abs(scaled) / np.abs(scaled).sum()
        return direction, shares

    def scaled(self, direction: Floats) -> Floats:
        """Return a direction in the units of the chosen features as one for scaled features."""
        return np.asarray(direction * self.coordinates.finite_scale * self.scale)

    def single(self, prospect: Prospect) -> Candidate:
        """Return the best direction of one feature."""
        return self._best_single(prospect, self._singles(prospect))

    def most_telling(self, prospect: Prospect, most: int) -> list[int]:
        """Return up to so many features that vary, those that would add most first."""
        order = np.argsort(-self._singles(prospect), kind="stable")[: min(most, len(self.varying))]
        return [int(feature) for feature in self.chosen[order]]

    def _best_single(self, prospect: Prospect, values: Floats) -> Candidate:
        best = int(np.argmax(values))
        return Candidate(values[best] - WEIGHT / prospect.n_rows, self._along({best: 1.0}))

    def pair(self, prospect: Prospect) -> Candidate:
        """Return the best direction of at most two features that a quick comparison of pairs leads to."""
        values, n = self._singles(prospect), prospect.n_rows
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
        direction = self._along(dict(zip(pairs[best], weights, strict=True)))
        pair = Candidate(value + size - 2 * WEIGHT / n, direction)
        values[self.combined] = -np.inf  # a pair may have one feature; the others are compared by themselves
        return max(pair, self._best_single(prospect, values), key=lambda candidate: candidate.likelihood)

    def full(self, prospect: Prospect, others: Iterable[Floats] = ()) -> Candidate:
        """Return the best of some directions of all features: linear ones, and others, for scaled features."""
        per_row, mask = len(self.combined) / prospect.n_rows, self._along(dict.fromkeys(self.combined, 1.0))
        directions = [(direction, _RIDGED_WEIGHT) for direction in self._linear(prospect) if direction.any()]
        directions += [(mask * direction, WEIGHT) for direction in others if (mask * direction).any()]
        if not directions:  # the means of what is unexplained agree in every feature: any direction is as good
            directions.append((mask, 0.0))
        found = []
        for direction, weight in directions:
            spread = np.sqrt(max(direction @ self.within @ direction, 1e-12 * (direction @ direction)))
            size = float(direction @ direction) / spread**2
            value = prospect.likelihood(direction @ self.columns) - weight * per_row
            found.append((value - _FULL_SIZE * size * per_row, Candidate(value, direction / spread)))
        return max(found, key=lambda each: each[0])[1]

    def _along(self, weights: dict[int, float]) -> Floats:
        direction = np.zeros(len(self.columns))
        direction[list(weights)] = list(weights.values())
        return direction

    def _singles(self, prospect: Prospect) -> Floats:
        """The likelihood along each feature, shape (d,); −∞ for features that do not vary."""
        values = np.full(len(self.columns), -np.inf)
        values[self.varying] = list(self.mapped(lambda j: prospect.likelihood(self.columns[j]), self.varying))
        return values

    def _promising_pairs(self, prospect: Prospect, singles: Floats) -> Iterator[tuple[int, int]]:
        """Pairs of features worth trying: the best singles with their best partner, and the best pairs of all."""
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
        """What each pair of some features seems able to add, shape (m, m), from some of the rows."""
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
        """Yield linear directions: Newton steps of logistic regression, and discriminants of what is unexplained."""
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
            for weights in (_solved(hessian, 0.25 * added, slope), _solved(scatter, added, apart)):
                yield weights if all_combined else self._along(dict(zip(self.combined, weights, strict=True)))


def _solved(matrix: Floats, ridge: float, right: Floats) -> Floats:
    """Return (matrix + ridge I)⁻¹ right, scaled to length one; zero if ``right`` is."""
    ridge = max(ridge, _LEAST_RIDGE * float(np.trace(matrix)))
    factor = linalg.cho_factor(matrix + ridge * np.eye(len(matrix)), check_finite=False)
    solved = linalg.cho_solve(factor, right, check_finite=False)
    return np.asarray(solved / max(np.linalg.norm(solved), 1e-300))


def _telling_features(rows: MemoryRows) -> NDArray[np.int64]:
    """The features that are searched: all, or those whose class means differ most; ascending."""
    if rows.n_features <= MOST_FEATURES:
        return np.arange(rows.n_features)
    weights = rows.all_weights()
    (mean, deviation), (other_mean, other_deviation) = (
        mean_and_deviation(rows.X[rows.members(c)], weights[rows.members(c)]) for c in (0, 1)
    )
    spread, difference = np.hypot(deviation, other_deviation), np.abs(other_mean - mean)
    # A feature that varies only between the classes tells most; one that does not vary at all, nothing.
    apart = difference > _ROUNDING * np.maximum(np.abs(mean), np.abs(other_mean))
    telling = np.divide(difference, spread, out=np.where(apart, np.inf, 0.0), where=spread > 0)
    return np.sort(np.argsort(-telling, kind="stable")[:MOST_FEATURES])
