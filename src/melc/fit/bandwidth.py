"""The kernel widths of the class densities along a direction."""

from typing import Any

import numpy as np

from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.kernels import AS_THEY_ARE, Shrunk, kernel_variances, shrunk_variances, silverman_factor, total_variance
from melc.objective.base import VARIANCE_FLOOR

# The bulk of a class: the rows between these quantiles, and how many standard deviations apart a normal class has them.
_BULK, _BULK_OF_NORMAL = (0.1, 0.9), 2.563
# The bulk counts as at least this part of the standard deviation.
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
        ratios = _ratios_of_the_bulk(spread, sample, direction)
        return first * ratios[0] ** 2, second * ratios[1] ** 2
    if rule == "pooled":
        variance = 0.5 * sum(shrunk_variances(spread, shrunk))
        pooled = max(variance, VARIANCE_FLOOR * total_variance(spread))
        number = 2 / (1 / spread.weight_x + 1 / spread.weight_y)
        return (silverman_factor(number, gamma) * pooled,) * 2
    return ((gamma * float(rule)) ** 2,) * 2


def _ratios_of_the_bulk(spread: Any, sample: MemoryRows, direction: Floats) -> list[float]:
    """For each class, the standard deviation that its bulk tells of, over that of all its rows; at most one.

    Outliers make the standard deviation large, and kernels of that width blur the others. Where the bulk is a single
    point, it tells of no width, and the ratio is one.
    """
    z, weights, ratios = sample.project(direction), sample.all_weights(), []
    for c, variance in enumerate(shrunk_variances(spread, AS_THEY_ARE)):
        low, high = _quantiles(z[sample.codes == c], weights[sample.codes == c])
        width = (high - low) / _BULK_OF_NORMAL
        ratio = width / np.sqrt(variance) if variance > 0 and width > 0 else 1.0
        ratios.append(float(np.clip(ratio, _LEAST_RATIO, 1.0)))
    return ratios


def _quantiles(z: Floats, weights: Floats) -> Floats:
    """The ends of the bulk of some points: a point of weight k counts as k points would."""
    order = np.argsort(z)
    reached = np.cumsum(weights[order])
    return z[order][np.searchsorted(reached, np.array(_BULK) * reached[-1])]
