"""The decision along a direction: which of the two class densities is higher, and by how much."""

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from melc import kernels
from melc.arrays import Floats
from melc.model.crossings import find_crossings
from melc.model.density import Density, stretches

# Points farther than this many bandwidths from the data are treated as if they were at this distance.
_REACH = 1e150

# Weight of the background density in the odds.
_BACKGROUND = 1e-12

# Smallest absolute value of a decision, so that its sign always agrees with the thresholds. It is large enough to make
# a probability differ from one half.
SMALLEST_DECISION = 1e-15


@dataclass(frozen=True)
class Decision:
    """The class with the higher density in each interval of the line.

    ``thresholds``, of shape (n,), are the points where the decision changes, in ascending order. ``codes``, of shape
    (n + 1,), are the classes (0 or 1) of the intervals between them; a threshold belongs to the interval above it.
    ``counts``, of shape (n + 1, 2), is the number of training rows of each class in each interval (their total weight,
    if they are weighted).
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

    def log_ratio(self, z: Floats) -> Floats:
        """Return log f₁ − log f₀ plus the log ratio of the priors, shape (n_points,).

        Rounding cannot change its sign: it is positive exactly where :meth:`classify` returns 1.
        """
        return self._with_sign(log_ratio(self.densities, self.log_prior_ratio, z), SMALLEST_DECISION, z)

    def log_odds(self, z: Floats) -> Floats:
        """Return the log odds of class 1 against class 0, shape (n_points,).

        ``log(1 + f₁/b) − log(1 + f₀/b)``, where f₀ and f₁ are the densities times the priors and b is a faint
        background density that is positive everywhere. Near the data b changes the odds very little, and it never
        changes the decision. Far outside, where f₁/f₀ only compares the tails of two kernels, it makes the odds tend to
        one.

        The absolute value is at least ``1e-15 (1 + log(1 + |log f₁ − log f₀|))``. This is very small, but where the
        odds of several classes are all one, it still ranks the classes by their tails.
        """
        near = np.clip(z, *self.reach)
        background = self.background().log(near)
        first, second = (
            density.log(near) + log_prior - background
            for density, log_prior in zip(self.densities, self.log_priors, strict=True)
        )
        least = SMALLEST_DECISION * (1 + np.log1p(np.abs(second - first)))
        return self._with_sign(np.logaddexp(0, second) - np.logaddexp(0, first), least, z)

    def _with_sign(self, values: Floats, least: Floats | float, z: Floats) -> Floats:
        """Return the values with the sign given by the thresholds and an absolute value of at least ``least``."""
        sign = 2.0 * self.classify(z) - 1
        return np.asarray(sign * np.maximum(sign * values, least))

    @property
    def log_priors(self) -> tuple[float, float]:
        """Logarithms of the prior probabilities of the two classes."""
        return float(log_expit(-self.log_prior_ratio)), float(log_expit(self.log_prior_ratio))

    @property
    def reach(self) -> tuple[float, float]:
        """The interval in which both log densities are finite; beyond it, the squares in them overflow."""
        return _reach(self.densities)

    def background(self) -> "Background":
        """Return the background: a Cauchy density as wide as the data, times a small weight."""
        centres = [float(d.support @ d.weights) for d in self.densities]
        centre = 0.5 * (centres[0] + centres[1])
        squares = [float((d.support - centre) ** 2 @ d.weights) + d.variance for d in self.densities]
        scale = 3 * math.sqrt(0.5 * (squares[0] + squares[1]))
        return Background(centre, scale, math.log(_BACKGROUND / math.pi / scale))


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
    """Return the decision between two densities: all their crossings, inside and outside the range of the data."""

    ratio = functools.partial(_log_ratio, densities, log_prior_ratio, _reach(densities))
    thresholds, codes = find_crossings(densities, ratio)
    return Decision(densities, log_prior_ratio, thresholds, codes)
