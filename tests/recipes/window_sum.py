"""The double sum over the pairs of points that are at most ``eps`` apart."""

from typing import ClassVar

import numpy as np

from melc.arrays import Floats
from melc.sums.base import DoubleSum, Side
from melc.sums.exact import nearest_distance, sum_across, sum_within


class Window:
    """S = Σ a_i b_j exp(−(x_i − y_j)²/2V) over the pairs with |x_i − y_j| ≤ ``eps``; at least the nearest pair."""

    smooth: ClassVar[bool] = False  # the sum jumps when a pair enters or leaves the window
    scale_free: ClassVar[bool] = False  # eps is in the units of the projections
    distributes: ClassVar[bool] = False  # all projections are needed in one place
    has_grid: ClassVar[bool] = False
    default_eps: ClassVar[float | None] = None  # the user has to choose eps, because it has units

    def __init__(self, eps: float) -> None:
        self.eps = eps

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        order = np.argsort(values)
        return Side(values[order], weights[order], order)

    def within(self, x: Side, variance: float) -> DoubleSum:
        return sum_within(x, variance, self.eps)

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        nearest = nearest_distance(x.values, y.values)
        return sum_across(x, y, variance, nearest, max(nearest, self.eps))
