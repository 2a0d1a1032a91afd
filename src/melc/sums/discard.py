"""The double sum by sort and discard: pairs farther apart than the threshold of Theorem 1 are left out."""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.exact import nearest_distance, sum_across, sum_within

# If the threshold would leave no pair, all pairs down to this fraction of the largest term are kept instead. D needs
# the logarithm of ip, on which an absolute error of ip sets no bound.
_KEPT_WHEN_EMPTY = 1e-9

# Maximum number of moves of insertion sort for each point. Beyond it, sorting from scratch is cheaper.
_MOVES_PER_POINT = 8


class Discard:
    """S = Σ a_i b_j exp(−(x_i − y_j)²/2V) over the pairs with |x_i − y_j| ≤ T.

    T is :func:`melc.sums.bounds.discarding_threshold` of V and ``eps``. The points are sorted, and a window of
    half-width T slides along them. Each class keeps its sorting permutation: between two steps of an optimiser the
    order hardly changes, and insertion sort updates the permutation in about linear time.
    """

    smooth: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False
    distributes: ClassVar[bool] = False
    has_grid: ClassVar[bool] = False
    default_eps: ClassVar[float | None] = None

    def __init__(self, eps: float) -> None:
        self.eps = eps
        self._orders: dict[int, NDArray[np.int64]] = {}

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        order = sorted_order(values, self._orders.get(label))
        self._orders[label] = order
        return Side(values[order], weights[order], order)

    def within(self, x: Side, variance: float) -> DoubleSum:
        return sum_within(x, variance, bounds.discarding_threshold(variance, self.eps))

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        nearest = nearest_distance(x.values, y.values)
        reach = bounds.discarding_threshold(variance, self.eps)
        if nearest > reach:
            reach = math.sqrt(nearest**2 - 2 * variance * math.log(_KEPT_WHEN_EMPTY))
        return sum_across(x, y, variance, nearest, reach)


def sorted_order(values: Floats, previous: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the permutation that sorts ``values``, shape (n,), starting from the previous one if there is one."""
    if previous is not None and len(previous) == len(values):
        order = previous.copy()
        budget = _MOVES_PER_POINT * len(values)
        if kernels.insertion_sort(values[order], order, budget) >= 0:
            return order
    return np.argsort(values)
