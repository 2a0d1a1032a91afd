"""D from three double sums, the same for all methods: the result of an evaluation, and the formula behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats

# For a class that does not vary along v, the bandwidth would be zero and D infinite. The variance of a class is
# therefore taken to be at least this fraction of the variance of all points along v. As a ratio of standard deviations
# it is 1e-9, well above the rounding errors of a constant.
VARIANCE_FLOOR = 1e-18


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


def measure(z: Floats, codes: NDArray[np.int8], weights: Floats, step: int) -> list[list[float]]:
    """Return pairs over the classes: their weights, means and variances, and their smallest and largest points."""
    spread = np.zeros((2, 5))
    spread[:, 3:] = math.inf, -math.inf
    kernels.measure_classes(z, codes, weights, step, spread)
    pairs: list[list[float]] = spread.T.tolist()
    return pairs


def combine_sums(
    spread: kernels.Spread, shrunk: kernels.Shrunk, gamma: float, logs: Sequence[float], slopes: Sequence[float]
) -> Combined:
    """Return D from log S within class x, within class y and across, and the derivative of each by its variance."""
    variances = kernels.kernel_variances(spread, shrunk, gamma, VARIANCE_FLOOR)
    divergence, by_vx, by_vy = kernels.assemble_divergence(*logs, *variances, *slopes)
    own_x, own_y, pooled, *by_added = kernels.variance_pull(spread, shrunk, gamma, VARIANCE_FLOOR, by_vx, by_vy)
    share = spread.weight_y / (spread.weight_x + spread.weight_y)
    mean = spread.mean_x + share * (spread.mean_y - spread.mean_x)
    linear = [
        (mean_c, own + pooled, pooled * (mean_c - mean))
        for mean_c, own in ((spread.mean_x, own_x), (spread.mean_y, own_y))
    ]
    floored = kernels.is_floored(spread, shrunk, VARIANCE_FLOOR)
    return Combined(divergence, linear, by_added, floored)
