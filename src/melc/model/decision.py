"""The decision along a direction: which of the two class densities is higher, and by how much."""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from melc import kernels
from melc.arrays import Floats
from melc.model.crossings import find_crossings
from melc.model.density import Density, stretches

# Points farther than this many bandwidths from the data are treated as if they were at this distance.
_REACH = 1e150

# Rows of each class that the background density in the odds stands for, and its weight where rows were not counted.
_PSEUDO_ROWS = 5.0
_UNCOUNTED = 1e-12

# Smallest absolute value of a decision, so that its sign always agrees with the thresholds. It is large enough to make
# a probability differ from one half.
SMALLEST_DECISION = 1e-15


@dataclass(frozen=True)
class Decision:
    """The class of each interval of the line: the one with the higher density, where there are training rows.

    ``thresholds``, of shape (n,), are the points where the decision changes, in ascending order. ``codes``, of shape
    (n + 1,), are the classes (0 or 1) of the intervals between them; a threshold belongs to the interval above it.
    ``counts``, of shape (n + 1, 2), is the number of training rows of each class in each interval (their total weight,
    if they are weighted). With counts, no interval is empty: see :meth:`with_counts`.
    """

    densities: tuple[Density, Density]
    log_prior_ratio: float
    thresholds: Floats
    codes: NDArray[np.int8]
    counts: Floats | None = None

    def interval(self, z: Floats) -> NDArray[np.int64]:
        """Return the index of the interval of each point, shape (n_points,)."""
        counts = np.empty(len(z), dtype=np.int64)
        for part in stretches(len(z)):
            kernels.count_not_above(z[part], self.thresholds, counts[part])
        return counts

    def classify(self, z: Floats) -> NDArray[np.int8]:
        """Return the class (0 or 1) of each point, shape (n_points,)."""
        return self.codes[self.interval(z)]

    def with_counts(self, counts: Floats) -> "Decision":
        """Return the decision without the intervals that contain no training row, by ``counts`` of shape (n + 1, 2).

        Between two rows, and beyond the outermost ones, densities may cross only because one kernel is wider than the
        other. So the neighbours of an empty interval are joined: an interval at either end goes to the class next to
        it, one between two intervals of a class goes to that class. Between different classes one crossing remains,
        the one at which the densities are highest.
        """
        occupied = np.flatnonzero(counts.sum(axis=1) > 0)
        changes = np.flatnonzero(np.diff(self.codes[occupied]))
        between = [self.thresholds[occupied[i] : occupied[i + 1] : 2] for i in changes]
        kept = np.array([crossings[np.argmax(self.densities[0].log(crossings))] for crossings in between], dtype=float)
        first = np.concatenate([[0], changes + 1])
        joined = np.add.reduceat(counts[occupied], first, axis=0)
        return replace(self, thresholds=kept, codes=self.codes[occupied[first]], counts=joined)

    def log_ratio(self, z: Floats) -> Floats:
        """Return log f₁ − log f₀ plus the log ratio of the priors, shape (n_points,).

        Its sign is that of the thresholds: it is positive exactly where :meth:`classify` returns 1. Where the densities
        say otherwise, by rounding or in a part of the line without training rows, its absolute value is 1e-15.
        """
        return self._with_sign(log_ratio(self.densities, self.log_prior_ratio, z), SMALLEST_DECISION, z)

    def log_odds(self, z: Floats) -> Floats:
        """Return the log odds of class 1 against class 0, shape (n_points,).

        ``log(1 + f₁/b) − log(1 + f₀/b)``, where f₀ and f₁ are the densities times the priors and b is a background
        density that stands for a few rows and is positive everywhere. It never changes the decision. Where there are
        few rows, and f₁/f₀ only compares the tails of two kernels, it makes the odds tend to one.

        The sign s is that of the thresholds. The absolute value is at least ``1e-15 (1 + log(1 + d))``, where d is the
        positive part of ``s (log f₁ − log f₀)``. This is very small, but where the odds of several classes are all
        one, it still ranks the classes by their tails.
        """
        first, second = self.above_background(z)
        least = SMALLEST_DECISION * (1 + np.log1p(np.maximum(self._sign(z) * (second - first), 0)))
        return self._with_sign(np.logaddexp(0, second) - np.logaddexp(0, first), least, z)

    def above_background(self, z: Floats) -> tuple[Floats, Floats]:
        """Return log f₀/b and log f₁/b, of the densities times the priors; both of shape (n_points,)."""
        near = np.clip(z, *self.reach)
        background = self.background().log(near)
        first, second = (
            density.log(near) + log_prior - background
            for density, log_prior in zip(self.densities, self.log_priors, strict=True)
        )
        return first, second

    def _with_sign(self, values: Floats, least: Floats | float, z: Floats) -> Floats:
        """Return the values with the sign given by the thresholds and an absolute value of at least ``least``."""
        sign = self._sign(z)
        return np.asarray(sign * np.maximum(sign * values, least))

    def _sign(self, z: Floats) -> Floats:
        return np.where(self.classify(z) == 1, 1.0, -1.0)

    @property
    def log_priors(self) -> tuple[float, float]:
        """Logarithms of the prior probabilities of the two classes."""
        return float(log_expit(-self.log_prior_ratio)), float(log_expit(self.log_prior_ratio))

    @property
    def reach(self) -> tuple[float, float]:
        """The interval in which both log densities are finite; beyond it, the squares in them overflow."""
        return _reach(self.densities)

    def background(self) -> "Background":
        """Return the background: a Cauchy density as wide as the data, with the weight of some pseudo-rows.

        It says how far a few rows can be trusted: without it, the odds between the outermost rows of two classes would
        be as extreme as the tails of their kernels.
        """
        centres = [float(d.support @ d.weights) for d in self.densities]
        centre = 0.5 * (centres[0] + centres[1])
        squares = [float((d.support - centre) ** 2 @ d.weights) + d.variance for d in self.densities]
        scale = 3 * math.sqrt(0.5 * (squares[0] + squares[1]))
        return Background(centre, scale, math.log(self._background_weight / math.pi / scale))

    @property
    def _background_weight(self) -> float:
        """The part of all rows that the pseudo-rows are; of the rarer class, if one is rarer."""
        if self.counts is None:
            return _UNCOUNTED
        first, second = (float(total) for total in self.counts.sum(axis=0))
        # 1 / n + 1 / m, without division by zero
        return min(1.0, 0.5 * _PSEUDO_ROWS * (first + second) / max(first * second, 1e-300))


@dataclass(frozen=True)
class Background:
    """The background of the odds: ``b(z) = exp(log_height) / (1 + ((z − centre) / scale)²)``."""

    centre: float
    scale: float
    log_height: float

    def log(self, z: Floats) -> Floats:
        """Return log b(z), of the shape of z."""
        # hypot does not overflow where a square would.
        return np.asarray(self.log_height - 2 * np.log(np.hypot(1, (z - self.centre) / self.scale)))


def log_ratio(densities: tuple[Density, Density], log_prior_ratio: float, t: ArrayLike) -> Floats:
    """Return log f₁(t) − log f₀(t) + log_prior_ratio, of the shape of t."""
    return _log_ratio(densities, log_prior_ratio, _reach(densities), t)


def _log_ratio(
    densities: tuple[Density, Density], log_prior_ratio: float, reach: tuple[float, float], t: ArrayLike
) -> Floats:
    near = np.minimum(np.maximum(t, reach[0]), reach[1])
    return densities[1].log(near) - densities[0].log(near) + log_prior_ratio


def _reach(densities: tuple[Density, Density]) -> tuple[float, float]:
    reach = _REACH * min(density.bandwidth for density in densities)
    lowest, highest = (float(edge([d.support[end] for d in densities])) for edge, end in ((min, 0), (max, -1)))
    return lowest - reach, highest + reach


def decide(densities: tuple[Density, Density], log_prior_ratio: float = 0.0) -> Decision:
    """Return the decision between two densities by the paper's rule: the higher one wins, everywhere on the line."""

    ratio = functools.partial(_log_ratio, densities, log_prior_ratio, _reach(densities))
    thresholds, codes = find_crossings(densities, ratio)
    return Decision(densities, log_prior_ratio, thresholds, codes)
