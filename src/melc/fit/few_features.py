"""Directions of few features, and directions with whole-number weights: rules that a person can apply with a pencil.

Features are added one at a time. For each remaining feature, the best direction in the plane of the direction so far
and this feature is searched, and the best of all is taken. Then the weights are improved one by one in such planes.
Finally, single features are replaced by others until no replacement gives a better direction.

Some of many directions separate the rows at hand by chance. So a direction found by likelihood is used only if it is
clearly more likely than the linear discriminant of as many features. The features of the discriminant are added and
replaced likewise, until no replacement increases the distance between the class means.

Whole-number weights are for features in handy units: 1, 2 or 5 times a power of ten near the standard deviation. The
real weights are multiplied by several factors and rounded. From each of these rules the search moves to the best
neighbour, which differs by one in one or two weights, until none is better.

Directions are compared by a score: the likelihood of the classes with every row left out of its own density
(:mod:`melc.fit.evidence`), or the divergence.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc.arrays import Floats, unit
from melc.data.memory import MemoryRows
from melc.fit.candidates import Candidates
from melc.fit.coordinates import Coordinates
from melc.fit.evidence import Standing
from melc.fit.search import Problem
from melc.kernels import best_angle
from melc.objective.grid import GridRows

# Angles tried in a plane, and how often their step is halved around the best one: while features are chosen, and for
# the weights of the chosen ones.
_ANGLES, _HALVINGS, _FINE_HALVINGS = 8, 5, 12
# A direction is better than another if its score is higher by more than this, which is well above rounding.
_BETTER = 1e-9
# Larger correlations of two features are replaced by this: they would not span a plane up to rounding.
_MOST_CORRELATION = 0.999
# What each weight of a searched direction must add to the likelihood, in units of 1 / number of rows, as in the AIC.
_PRICE = 1.0
# Class means of a scaled feature that differ by less are the same up to rounding.
_SAME_MEANS = 1e-12
# Smaller variances along a direction of scaled features are replaced by this.
_LEAST_VARIANCE = 1e-12
# The most sweeps over the weights, after which hardly anything is left to gain.
_MOST_SWEEPS = 10
# With up to this many weights, neighbours of a rule differ in one or two weights, otherwise in one.
_FEW_WEIGHTS = 12
# Real weights are scaled so that the largest is a whole number, from this fraction of the limit up to the limit.
_LEAST_LARGEST = 0.3

# A weight below the first would be rounded to zero; its feature gets a unit in which the weight is about the second.
_ROUNDED_TO_ZERO, _ENLARGED = 0.5, 0.7

Score = Callable[[Floats], float]


@dataclass(frozen=True)
class Found:
    """Weights of scaled features, of shape (d,), and their score."""

    score: float
    weights: Floats

    def or_better(self, other: "Found") -> "Found":
        return other if other.score > self.score + _BETTER else self


class FewFeatures:
    """The search, on some rows, for a direction of at most ``most`` features."""

    def __init__(self, rows: MemoryRows, problem: Problem, most: int) -> None:
        self.candidates = Candidates(rows, map, np.zeros(rows.n_features, dtype=bool))
        self.most = most
        self.prospect = None if problem.judge is None else Standing(rows.codes, rows.weights, problem.gamma).prospect()
        self.objective, self.gamma = problem.objective(rows), problem.gamma
        self.grid = None
        if self.prospect is None and problem.shrinkage is None and problem.settings.has_grid:
            scaled, scale = self.candidates.coordinates.scaled, self.candidates.scale
            self.grid = GridRows(self.candidates.rows, lambda X: scaled(X) / scale, len(scale))
        self._ridged_within = self.candidates.within + (1 - _MOST_CORRELATION) * np.eye(len(self.candidates.within))
        apart = self.candidates.coordinates.class_covariances[2] / self.candidates.scale
        self._apart = np.where(np.abs(apart) > _SAME_MEANS, apart, 0.0)

    def score(self, weights: Floats) -> float:
        """Return the score of weights of scaled features: the likelihood or, without a judge, the divergence.

        The divergence is that of a grid, where there is one: exact enough to compare directions by, and much cheaper.
        """
        if self.prospect is None:
            value = np.nan if self.grid is None else self.grid.evaluate(weights, self.gamma)[0]
            if not np.isnan(value):
                return value
            direction, _ = self.candidates.in_units(weights)
            return self.objective.evaluate(self.objective.coordinates_of(direction)).divergence
        return self.prospect.likelihood(self._projected(weights))

    def _projected(self, weights: Floats) -> Floats:
        used = np.flatnonzero(weights)
        return weights[used] @ self.candidates.columns[used]

    def best_direction(self, others: Iterable[Floats]) -> Floats:
        """Return the best direction that the search finds, of shape (d,) and length one, in the units of the features.

        It starts from a single feature, and from the main features of each of ``others``, directions of all features.
        Unless its likelihood is clearly higher, the linear discriminant of few features is returned instead.
        """
        chosen = self.candidates.chosen
        starts = [self._best_single(), *(self._largest(self.candidates.scaled(each[chosen])) for each in others)]
        found = max((self.improved(start) for start in starts), key=lambda each: each.score)
        return self.candidates.in_units(self._or_discriminant(found).weights)[0]

    def _or_discriminant(self, searched: Found) -> Found:
        """Return what was searched if its likelihood is worth its weights, otherwise the linear discriminant."""
        weights = self.discriminant()
        if self.prospect is None or not weights.any():
            return searched
        linear = Found(self.score(weights), weights)
        price = _PRICE * np.count_nonzero(searched.weights) / self.prospect.n_rows
        return searched if searched.score - price > linear.score else linear

    def discriminant(self) -> Floats:
        """Return the linear discriminant of few features, shape (d,), for scaled ones; zero if the means agree.

        Features are added one by one. After each, all of them in turn are exchanged for the feature with which the
        distance between the means of the classes, in units of the variance within them, is largest.
        """
        used: list[int] = []
        while len(used) < min(self.most, len(self.candidates.varying)):
            used.append(int(np.argmax(self._distance_added(used))))
            n_kept = 0
            while n_kept < len(used):
                first, *rest = used
                added = self._distance_added(rest)
                best = int(np.argmax(added))
                exchanged = added[best] > (1 + _BETTER) * added[first]
                used, n_kept = [*rest, best if exchanged else first], 0 if exchanged else n_kept + 1
        weights = np.zeros(len(self.candidates.columns))
        weights[used] = np.linalg.solve(self._ridged_within[np.ix_(used, used)], self._apart[used])
        return weights

    def _distance_added(self, used: list[int]) -> Floats:
        """Return what each feature would add to the squared distance between the means, shape (d,); −∞ if it cannot."""
        across = self._ridged_within[:, used]
        explained = np.linalg.solve(across[used], across.T)
        added = self._apart - self._apart[used] @ explained
        variance = np.diagonal(self._ridged_within) - np.einsum("js,sj->j", across, explained)
        squares = np.full(len(added), -np.inf)
        others = np.setdiff1d(self.candidates.varying, used)
        squares[others] = added[others] ** 2 / np.maximum(variance[others], _LEAST_VARIANCE)
        return squares

    def whole_direction(self, direction: Floats, units: Floats, largest: int) -> Floats:
        """Return a direction of length one, near another, whose weights in ``units`` have whole-number proportions."""
        chosen = self.candidates.chosen
        per_unit = self.candidates.scaled(1 / units[chosen])  # scaled weights of features in their units
        whole = whole_weights((direction * units)[chosen], largest, lambda w: self.score(w * per_unit))
        found = np.zeros(len(direction))
        found[chosen] = whole / units[chosen]
        return unit(found)

    def _best_single(self) -> Found:
        return max((self._found({j: 1.0}) for j in self.candidates.varying.tolist()), key=lambda each: each.score)

    def _largest(self, weights: Floats) -> Found:
        """Return a direction restricted to the features that contribute most to it."""
        kept = np.argsort(-np.abs(weights), kind="stable")[: self.most]
        return self._found({int(j): float(weights[j]) for j in kept})

    def improved(self, found: Found) -> Found:
        """Return a direction with features added and replaced until no change of a single feature improves it."""
        while True:
            found = self.reweighted(found)
            better = next((each for each in self._neighbours(found) if found.or_better(each) is each), None)
            if better is None:
                return found
            found = better

    def reweighted(self, found: Found) -> Found:
        """Return the direction with its weights improved one by one, as long as that helps."""
        for _ in range(_MOST_SWEEPS):
            before = found
            for j in np.flatnonzero(found.weights).tolist():
                rest = _without(found.weights, j)
                if rest.any():
                    found = found.or_better(self._best_in_plane(rest, j, _FINE_HALVINGS))
            if found is before:
                break
        return found

    def _neighbours(self, found: Found) -> Iterator[Found]:
        """Yield the best direction with a further feature, if allowed, and the best ones with each feature replaced.

        The feature that contributes least is replaced first: that is most likely to help.
        """
        used = np.flatnonzero(found.weights)
        kept = [found.weights] if len(used) < self.most else []
        kept += [_without(found.weights, j) for j in used[np.argsort(np.abs(found.weights[used]))]]
        others = np.setdiff1d(self.candidates.varying, used).tolist()
        for rest in kept if others else []:
            trials = (self._best_in_plane(rest, j, _HALVINGS) if rest.any() else self._found({j: 1.0}) for j in others)
            yield max(trials, key=lambda each: each.score)

    def _found(self, weights: dict[int, float]) -> Found:
        w = np.zeros(len(self.candidates.columns))
        w[list(weights)] = list(weights.values())
        return Found(self.score(w), w)

    def _best_in_plane(self, weights: Floats, j: int, halvings: int) -> Found:
        """Return the best direction in the plane of a direction and feature j, which has weight zero in it."""
        within, used = self.candidates.within, np.flatnonzero(weights)
        size = np.sqrt(max(float(weights[used] @ within[np.ix_(used, used)] @ weights[used]), _LEAST_VARIANCE))
        along = weights / size
        correlation = float(np.clip(along[used] @ within[used, j], -_MOST_CORRELATION, _MOST_CORRELATION))
        if self.prospect is not None:  # the same search, compiled
            plane = self._projected(along), self.candidates.columns[j], correlation, 0.0
            score, first, second = best_angle(*plane, *self.prospect.arguments, _ANGLES, halvings)
            along *= first
            along[j] = second
            return Found(score, along)
        height = np.sqrt(1 - correlation**2)
        across = -correlation / height * along
        across[j] += 1 / height

        def at(angle: float) -> Found:
            w = np.cos(angle) * along + np.sin(angle) * across
            return Found(self.score(w), w)

        return _best_angle(at, halvings)


def _best_angle(at: Callable[[float], Found], halvings: int) -> Found:
    """Return the best direction over half a turn: on a grid of angles, then with smaller steps around the best."""
    step = np.pi / _ANGLES
    angle, found = max(((k * step, at(k * step)) for k in range(_ANGLES)), key=lambda each: each[1].score)
    for _ in range(halvings):
        step *= 0.5
        beside = [(angle, found), *((other, at(other)) for other in (angle - step, angle + step))]
        angle, found = max(beside, key=lambda each: each[1].score)
    return found


def _without(weights: Floats, j: int) -> Floats:
    rest = weights.copy()
    rest[j] = 0.0
    return rest


def handy_units(coordinates: Coordinates, coded: NDArray[np.bool_] | None, direction: Floats, largest: int) -> Floats:
    """Return units of the features near their standard deviations, shape (d,), for weights up to ``largest``.

    Features that hold only whole numbers have units of at least one, and ``coded`` columns have the unit one. Where a
    weight of ``direction`` is so small that it would be rounded to zero, the unit is larger.
    """
    whole = _holds_whole_numbers(coordinates.sample.X)
    units = _handy(coordinates.finite_scale)
    units = np.where(whole, np.maximum(units, 1.0), units)
    size = np.abs(direction * units)
    size *= largest / size.max()
    small = (size > 0) & (size < _ROUNDED_TO_ZERO)
    units[small] = _handy(units[small] * _ENLARGED / size[small])
    return units if coded is None else np.where(coded, 1.0, units)


def _handy(sizes: Floats) -> Floats:
    """Return the nearest of 1, 2 and 5 times powers of ten to positive numbers, shape (n,); one where they are zero."""
    known = np.where(sizes > 0, sizes, 1.0)
    candidates = np.array([[1.0], [2.0], [5.0], [10.0]]) * 10.0 ** np.floor(np.log10(known))
    return np.asarray(candidates[np.argmin(np.abs(np.log(candidates / known)), axis=0), np.arange(len(known))])


def _holds_whole_numbers(X: Any) -> NDArray[np.bool_]:
    """Return for each column whether it holds whole numbers only, shape (d,)."""
    if sparse.issparse(X):
        fractions = X.copy()
        fractions.data = (X.data != np.floor(X.data)).astype(np.float64)
        return np.asarray(fractions.sum(axis=0)).ravel() == 0
    return np.asarray((np.floor(X) == X).all(axis=0))


def whole_weights(real: Floats, largest: int, score: Score) -> NDArray[np.int64]:
    """Return whole numbers from −largest to largest near real weights, shape (d,), that have the best score.

    ``score`` takes whole weights. Weights that are zero remain so.
    """
    known: dict[bytes, float] = {}

    def value(whole: NDArray[np.int64]) -> float:
        key = whole.tobytes()
        if key not in known:
            known[key] = score(whole.astype(np.float64)) if whole.any() else -np.inf
        return known[key]

    def climbed(whole: NDArray[np.int64]) -> NDArray[np.int64]:
        while True:
            better = max(_whole_neighbours(whole, used, largest), key=value)
            if not value(better) > value(whole) + _BETTER:
                return whole
            whole = better

    used, scaled = np.flatnonzero(real).tolist(), real / np.abs(real).max()
    least = max(1, int(np.ceil(_LEAST_LARGEST * largest)))
    starts = {tuple(np.rint(scaled * top).astype(int).tolist()) for top in range(largest, least - 1, -1)}
    best = max((climbed(np.array(start)) for start in sorted(starts)), key=value)
    return np.asarray(best // np.gcd.reduce(best))


def _whole_neighbours(whole: NDArray[np.int64], used: list[int], largest: int) -> Iterator[NDArray[np.int64]]:
    """Yield weights that differ by one in one of the ``used`` weights or, if these are few, in one or two."""
    steps = [(j, step) for j in used for step in (-1, 1)]
    changes = [[each] for each in steps]
    if len(used) <= _FEW_WEIGHTS:
        changes += [[first, second] for first, second in combinations(steps, 2) if first[0] != second[0]]
    for change in changes:
        other = whole.copy()
        for j, step in change:
            other[j] += step
        if np.abs(other).max() <= largest:
            yield other
