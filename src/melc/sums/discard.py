"""Sort and discard: pairs farther apart than Theorem 1's threshold are left out."""

import math

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.exact import sum_across, sum_within

# Where the threshold would leave no pair at all, pairs are kept down to this fraction of the largest
# term instead: an absolute error on ip says nothing of its logarithm.
_KEPT_WHEN_EMPTY = 1e-9

# Moves that insertion sort may spend per point before a fresh sort is cheaper.
_MOVES_PER_POINT = 8


class Discard:
    """A window of half-width T(V, eps) slides along the sorted points.

    The permutation found for a class is where the next evaluation starts from: between two steps of an
    optimiser the order hardly changes, and insertion sort mends it in about linear time.
    """

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
        nearest = kernels.nearest_distance(x.values, y.values)
        reach = bounds.discarding_threshold(variance, self.eps)
        if nearest > reach:
            reach = math.sqrt(nearest**2 - 2 * variance * math.log(_KEPT_WHEN_EMPTY))
        return sum_across(x, y, variance, nearest, reach)


def sorted_order(values: Floats, previous: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The permutation that sorts ``values``, found from the previous one where there is one."""
    if previous is not None and len(previous) == len(values):
        order = previous.copy()
        budget = _MOVES_PER_POINT * len(values)
        if kernels.insertion_sort(values[order], order, budget) >= 0:
            return order
    return np.argsort(values)
