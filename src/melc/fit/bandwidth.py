"""The kernel widths of the class densities along a direction."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.kernels import NO_SHRINKAGE, Shrunk, kernel_variances, shrunk_variances, silverman_factor, total_variance
from melc.objective.base import VARIANCE_FLOOR

# The central rows of a class: those between these quantiles, whose distance is so many standard deviations of a normal.
_QUANTILES, _NORMAL_DISTANCE = (0.1, 0.9), 2.563
# Shares of the rows that differ by less are the same up to rounding.
_SAME_SHARE = 1e-12
# Smallest ratio of the standard deviation of the central rows to that of all rows.
_LEAST_RATIO = 0.01


def density_variances(
    rule: float | str, gamma: float, spread: Any, shrunk: Shrunk, sample: MemoryRows, direction: Floats
) -> tuple[float, float]:
    """Return the kernel variances of both classes along a direction of shape (d,).

    ``rule`` is the parameter ``bandwidth`` of :class:`melc.MELC`, ``spread`` that of all rows along the direction, and
    ``sample`` some of the rows.
    """
    if rule in ("robust", "silverman"):
        first, second = kernel_variances(spread, shrunk, gamma, VARIANCE_FLOOR)
        if rule == "silverman":
            return first, second
        ratios = _robust_ratios(spread, sample, direction)
        return first * ratios[0] ** 2, second * ratios[1] ** 2
    if rule == "pooled":
        variance = 0.5 * sum(shrunk_variances(spread, shrunk))
        pooled = max(variance, VARIANCE_FLOOR * total_variance(spread))
        number = 2 / (1 / spread.weight_x + 1 / spread.weight_y)
        return (silverman_factor(number, gamma) * pooled,) * 2
    return ((gamma * float(rule)) ** 2,) * 2


def _robust_ratios(spread: Any, sample: MemoryRows, direction: Floats) -> list[float]:
    """Return the robust over the ordinary standard deviation of each class, at most one.

    The robust one follows from the distance of two quantiles. Outliers make the ordinary one large, and kernels of that
    width would blur all other rows. If the two quantiles are equal, the ratio is one.
    """
    z, weights, ratios = sample.project(direction), sample.all_weights(), []
    for c, variance in enumerate(shrunk_variances(spread, NO_SHRINKAGE)):
        low, high = _quantiles(z[sample.codes == c], weights[sample.codes == c])
        width = (high - low) / _NORMAL_DISTANCE
        ratio = width / np.sqrt(variance) if variance > 0 and width > 0 else 1.0
        ratios.append(float(np.clip(ratio, _LEAST_RATIO, 1.0)))
    return ratios


def _quantiles(z: Floats, weights: Floats) -> Floats:
    """Return the two quantiles of some points. A point of weight k counts as k points.

    A quantile at which one point ends and the next begins is the middle of both, so that those of −z are minus those
    of z: a direction and its opposite are one, and so are the two ways to number the classes.
    """
    order = np.argsort(z)
    reached = np.cumsum(weights[order])
    wanted = np.array(_QUANTILES) * reached[-1]
    below, above = (np.searchsorted(reached, wanted * (1 + side * _SAME_SHARE)) for side in (-1, 1))
    return np.asarray(0.5 * (z[order][below] + z[order][above]))
