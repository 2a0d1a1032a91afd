"""D from three double sums, the same for all methods: the result of an evaluation, and the formulas behind it.

:mod:`melc.objective.penalised` states the formulas. The classes are called x and y.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from melc.arrays import Floats
from melc.data.points import Spread
from melc.sums.bins import Bins

# For a class that does not vary along v, the bandwidth would be zero and D infinite. The variance of a class is
# therefore taken to be at least this fraction of the variance of all points along v. As a ratio of standard deviations
# it is 1e-9, well above the rounding errors of a constant.
VARIANCE_FLOOR = 1e-18


class Shrunk(NamedTuple):
    """Shrinkage of each class variance along v: σ² becomes keep · σ² + add."""

    keep_x: float
    keep_y: float
    add_x: float
    add_y: float


NO_SHRINKAGE = Shrunk(1.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True)
class Shrinkage:
    """Shrinkage of the class variances, for data in which a class hardly varies in some direction.

    With the features' scales s, of shape (n_features,) and zero for ignored features, and an intensity λ_c in [0, 1],

    ``σ_c²(v)  ←  (1 − λ_c) σ_c²(v) + λ_c t_c ‖s∘v‖²``

    where the target t_c is the mean variance of the scaled features within the class. This shrinks the covariance of
    the standardised features of the class towards a multiple of the identity. The bandwidth along a direction in which
    a class does not vary is then not zero, and D stays moderate. :mod:`melc.fit.coordinates` estimates λ and t.
    """

    intensities: tuple[float, float]
    targets: tuple[float, float]
    scale: Floats

    def along(self, v: Floats) -> Shrunk:
        """Return the factor and the summand of the shrunk variance of each class along v."""
        length = float(np.sum((self.scale * v) ** 2))
        added = [intensity * target * length for intensity, target in zip(self.intensities, self.targets, strict=True)]
        return Shrunk(1 - self.intensities[0], 1 - self.intensities[1], added[0], added[1])

    def pull(self, v: Floats, by_added: Sequence[float]) -> Floats:
        """Return the part of ∇D, shape (n_features,), that comes from the summands λ_c t_c ‖s∘v‖².

        ``by_added`` holds the derivatives of D by these summands.
        """
        factors = zip(by_added, self.intensities, self.targets, strict=True)
        return 2 * sum(by * intensity * target for by, intensity, target in factors) * self.scale * (self.scale * v)


def shrunk_along(shrinkage: Shrinkage | None, v: Floats) -> Shrunk:
    """Return what shrinkage, if there is any, does to the class variances along v."""
    return NO_SHRINKAGE if shrinkage is None else shrinkage.along(v)


@dataclass(frozen=True)
class Evaluation:
    """D at one direction, its gradient of shape (n_features,), and the number of exponentials computed.

    ``floored`` tells whether the variance of a class along the direction is below the floor. ``error`` is the certified
    error of D, apart from rounding, or None if no error of D is certified (by ``PairwiseDivergence``).
    """

    divergence: float
    gradient: Floats
    n_exponentials: int
    floored: bool
    error: float | None = None


class Divergence(Protocol):
    """A way to compute D and its gradient for a direction in the units of the features."""

    def evaluate(self, v: Floats) -> Evaluation: ...


class Combined(NamedTuple):
    """D, and what the class variances contribute to its gradient.

    The gradient weight of a row of class c with projection z gets a linear function of z added, times the weight of the
    row. ``linear[c]`` holds the mean of the class, the slope of that function, and its value at the mean. ``by_added``
    are the derivatives of D by the summands of shrinkage.
    """

    divergence: float
    linear: list[tuple[float, float, float]]
    by_added: list[float]
    floored: bool


def spread_of(points: Sequence[Floats], weights: Sequence[Floats]) -> Spread:
    """Return the weight, weighted mean and weighted variance (without Bessel's correction) of each class."""
    totals, means, variances = [], [], []
    for z, w in zip(points, weights, strict=True):
        total, away = float(w.sum()), z - z[0]  # differences are exact where points are close to each other
        shift = _product(w, away) / total
        away -= shift
        totals.append(total)
        means.append(float(z[0]) + shift)
        variances.append(_product(w, away, away) / total)
    return Spread(*totals, *means, *variances)


def _product(*vectors: Floats) -> float:
    """Return Σ_i a_i b_i … without BLAS, whose threads take several times as long for some thousand points."""
    return float(np.einsum(",".join("i" * len(vectors)) + "->", *vectors))


def combine_sums(
    spread: Spread, shrunk: Shrunk, gamma: float, logs: Sequence[float], slopes: Sequence[float]
) -> Combined:
    """Return D from ``logs``, log S within x, within y and across, and their derivatives by V, ``slopes``."""
    variances = kernel_variances(spread, shrunk, gamma)
    divergence, by_vx, by_vy = _assemble_divergence(logs, variances, slopes)
    own_x, own_y, pooled, *by_added = _variance_pull(spread, shrunk, gamma, by_vx, by_vy)
    share = spread.weight_y / (spread.weight_x + spread.weight_y)
    mean = spread.mean_x + share * (spread.mean_y - spread.mean_x)
    linear = [
        (mean_c, own + pooled, pooled * (mean_c - mean))
        for mean_c, own in ((spread.mean_x, own_x), (spread.mean_y, own_y))
    ]
    floored = is_floored(spread, shrunk)
    return Combined(divergence, linear, by_added, floored)


def total_variance(spread: Spread) -> float:
    """Return the variance of all points along v, both classes together."""
    total = spread.weight_x + spread.weight_y
    a, b = spread.weight_x / total, spread.weight_y / total
    shift = spread.mean_y - spread.mean_x
    return a * spread.variance_x + b * spread.variance_y + a * b * (shift * shift)


def is_floored(spread: Spread, shrunk: Shrunk) -> bool:
    """Return whether a class variance along v is at the floor or below it."""
    return min(shrunk_variances(spread, shrunk)) <= VARIANCE_FLOOR * total_variance(spread)


def silverman_factor(weight: float, gamma: float) -> float:
    """Return the kernel variance divided by the class variance: (γ (4/(3n))^(1/5))², with n the class weight."""
    return (gamma * (4.0 / (3.0 * weight)) ** 0.2) ** 2


def shrunk_variances(spread: Spread, shrunk: Shrunk) -> tuple[float, float]:
    """Return the class variances along v after shrinkage."""
    return (
        shrunk.keep_x * spread.variance_x + shrunk.add_x,
        shrunk.keep_y * spread.variance_y + shrunk.add_y,
    )


def kernel_variances(spread: Spread, shrunk: Shrunk, gamma: float) -> tuple[float, float]:
    """Return the kernel variances (V_x, V_y), from class variances that are raised to the floor if below it."""
    least = VARIANCE_FLOOR * total_variance(spread)
    variance_x, variance_y = shrunk_variances(spread, shrunk)
    return (
        silverman_factor(spread.weight_x, gamma) * max(variance_x, least),
        silverman_factor(spread.weight_y, gamma) * max(variance_y, least),
    )


def _assemble_divergence(
    logs: Sequence[float], variances: tuple[float, float], slopes: Sequence[float]
) -> tuple[float, float, float]:
    """Return (D, ∂D/∂V_x, ∂D/∂V_y) from the three log sums and the derivative of each by its own variance.

    D = log S_xx + log S_yy − 2 log S_xy + log(V_x + V_y) − ½ log 2V_x − ½ log 2V_y. The factors 2π and W_a W_b cancel
    between the three terms.
    """
    (log_xx, log_yy, log_xy), (slope_xx, slope_yy, slope_xy), (vx, vy) = logs, slopes, variances
    divergence = log_xx + log_yy - 2 * log_xy
    divergence += math.log(vx + vy) - 0.5 * (math.log(2 * vx) + math.log(2 * vy))
    shared = 1 / (vx + vy) - 2 * slope_xy
    return divergence, 2 * slope_xx - 0.5 / vx + shared, 2 * slope_yy - 0.5 / vy + shared


def _variance_pull(
    spread: Spread, shrunk: Shrunk, gamma: float, by_vx: float, by_vy: float
) -> tuple[float, float, float, float, float]:
    """Return the part of the gradient that comes from the kernel variances: (own_x, own_y, pooled, by_add_x, by_add_y).

    The gradient weight of a row of class x at z gets ``own_x (z − mean_x) + pooled (z − mean)`` added, times the weight
    of the row; likewise for y. ``pooled`` is not zero where a class variance is below the floor, which is a fraction of
    the variance of all points. by_add_x and by_add_y are the derivatives of D by ``shrunk.add_x`` and ``shrunk.add_y``.
    """
    least = VARIANCE_FLOOR * total_variance(spread)
    variance_x, variance_y = shrunk_variances(spread, shrunk)
    by_variance_x = by_vx * silverman_factor(spread.weight_x, gamma)
    by_variance_y = by_vy * silverman_factor(spread.weight_y, gamma)
    own_x, own_y, pooled, by_add_x, by_add_y = 0.0, 0.0, 0.0, 0.0, 0.0
    total = spread.weight_x + spread.weight_y
    if variance_x > least:
        own_x = 2 * by_variance_x * shrunk.keep_x / spread.weight_x
        by_add_x = by_variance_x
    else:
        pooled += 2 * by_variance_x * VARIANCE_FLOOR / total
    if variance_y > least:
        own_y = 2 * by_variance_y * shrunk.keep_y / spread.weight_y
        by_add_y = by_variance_y
    else:
        pooled += 2 * by_variance_y * VARIANCE_FLOOR / total
    return own_x, own_y, pooled, by_add_x, by_add_y


def add_linear(polynomials: Floats, linear: tuple[float, float, float], bins: Bins, origin: float) -> None:
    """Add a linear function of z to the polynomials in u of the bins, shape (n_bins, P) or (n_bins, P − 1).

    ``linear`` holds a point, the slope, and the value at the point.
    """
    point, slope, value = linear
    polynomials[:, 0] += value + slope * (origin + (bins.keys + 0.5) * bins.width - point)
    polynomials[:, 1] += slope * bins.width / 2
