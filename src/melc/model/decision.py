"""The decision along a direction: which of two projected class densities is higher, and by how much."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit

from melc import kernels
from melc.arrays import Floats
from melc.model.crossings import find_crossings
from melc.model.density import Density, stretches

# Bandwidths from the data beyond which everything looks alike.
_REACH = 1e150

# Weight of the background under both densities in probabilities.
_BACKGROUND = 1e-12

# What |decision| is at least, so that its sign and the thresholds always tell the same class: enough to show in a
# probability next to one half.
SMALLEST_DECISION = 1e-15


@dataclass(frozen=True)
class Decision:
    """Where along the line which of two densities is higher.

    ``thresholds`` are the points where the decision changes, ``codes`` the class (0 or 1) of the
    ``len(thresholds) + 1`` intervals between them; a point on a threshold belongs to the interval above.
    ``counts``, of shape (n_intervals, 2), tells how many training rows of either class (their weights, if
    weighted) lie in each interval.
    """

    densities: tuple[Density, Density]
    log_prior_ratio: float
    thresholds: Floats
    codes: NDArray[np.int8]
    counts: Floats | None = None

    def interval(self, z: Floats) -> NDArray[np.int64]:
        """The number of the interval that every point lies in."""
        counts = np.empty(len(z), dtype=np.int64)
        for part in stretches(len(z)):
            kernels.count_not_above(z[part], self.thresholds, counts[part])
        return counts

    def classify(self, z: Floats) -> NDArray[np.int8]:
        """The class of every point."""
        return self.codes[self.interval(z)]

    def log_ratio(self, z: Floats) -> Floats:
        """log f₊ − log f₋ (plus that of the priors), with the sign that the thresholds give."""
        return self._with_sign(log_ratio(self.densities, self.log_prior_ratio, z), SMALLEST_DECISION, z)

    def log_odds(self, z: Floats) -> Floats:
        """Log odds of class 1 against class 0, for somebody who has to bet on them.

        Both densities f get the same faint background b that reaches everywhere:
        ``log(1 + f₁/b) − log(1 + f₀/b)``. It changes next to nothing where the data are, and not the decision
        anywhere, but far outside, where the densities only compare which of two tails is the thicker, it takes the
        odds to one: nothing is known there.

        Their size is at least ``1e-15 (1 + log(1 + |log f₁ − log f₀|))``. Next to nothing as well, but where nothing
        is known along several lines, it still tells for which of them the tails speak most.
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
        """Values of at least that size whose sign follows the thresholds to the last digit."""
        sign = 2.0 * self.classify(z) - 1
        return np.asarray(sign * np.maximum(sign * values, least))

    @property
    def log_priors(self) -> tuple[float, float]:
        """Logarithms of how likely the two classes are beforehand."""
        return float(log_expit(-self.log_prior_ratio)), float(log_expit(self.log_prior_ratio))

    @property
    def reach(self) -> tuple[float, float]:
        """Between which points the logarithms of both densities are numbers: beyond, the squares in them overflow."""
        return _reach(self.densities)

    def background(self) -> "Background":
        """A Cauchy density as wide as the data, times its small weight."""
        centres = [float(d.support @ d.weights) for d in self.densities]
        centre = 0.5 * (centres[0] + centres[1])
        squares = [float((d.support - centre) ** 2 @ d.weights) + d.variance for d in self.densities]
        scale = 3 * math.sqrt(0.5 * (squares[0] + squares[1]))
        return Background(centre, scale, math.log(_BACKGROUND / math.pi / scale))


@dataclass(frozen=True)
class Background:
    """What both densities share far outside: ``exp(log_height) / (1 + ((z − centre) / scale)²)``."""

    centre: float
    scale: float
    log_height: float

    def log(self, z: Floats) -> Floats:
        # hypot does not overflow where a square would.
        return np.asarray(self.log_height - 2 * np.log(np.hypot(1, (z - self.centre) / self.scale)))


def log_ratio(densities: tuple[Density, Density], log_prior_ratio: float, t: ArrayLike) -> Floats:
    near = np.clip(np.asarray(t, dtype=np.float64), *_reach(densities))
    return densities[1].log(near) - densities[0].log(near) + log_prior_ratio


def _reach(densities: tuple[Density, Density]) -> tuple[float, float]:
    reach = _REACH * min(density.bandwidth for density in densities)
    lowest, highest = (float(edge([d.support[end] for d in densities])) for edge, end in ((min, 0), (max, -1)))
    return lowest - reach, highest + reach


def decide(densities: tuple[Density, Density], log_prior_ratio: float = 0.0) -> Decision:
    """Find every crossing of the two densities, inside and outside the data."""

    def ratio(t: ArrayLike) -> Floats:
        return log_ratio(densities, log_prior_ratio, t)

    thresholds, codes = find_crossings(densities, ratio)
    return Decision(densities, log_prior_ratio, thresholds, codes)
