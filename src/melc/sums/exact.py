"""The double sum over all pairs, in memory proportional to the points."""

import math

import numpy as np

from melc import kernels
from melc.arrays import Floats
from melc.sums.base import DoubleSum, Side


class Exact:
    """Every pair, once: S = Σ_ij a_i b_j exp(−(x_i − y_j)²/2V)."""

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        return Side(values, weights)

    def within(self, x: Side, variance: float) -> DoubleSum:
        return sum_within(x, variance)

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        nearest = kernels.nearest_distance(np.sort(x.values), np.sort(y.values))
        return sum_across(x, y, variance, nearest)


def sum_within(x: Side, variance: float, reach: float = math.inf) -> DoubleSum:
    """The pairs of one class that lie within ``reach`` (sorted values, unless it is infinite)."""
    dx = np.empty(len(x.values))
    total, count = kernels.self_sum(x.values, x.weights, variance, reach, dx)
    dx /= total
    return DoubleSum(math.log(total), x.restore(dx), None, count)


def sum_across(x: Side, y: Side, variance: float, nearest: float, reach: float = math.inf) -> DoubleSum:
    """The pairs of two classes within ``reach``; ``nearest`` is the smallest distance of any pair."""
    dx, dy = np.empty(len(x.values)), np.empty(len(y.values))
    total, count = kernels.cross_sum(x.values, x.weights, y.values, y.weights, variance, nearest, reach, dx, dy)
    dx /= total
    dy /= total
    log_value = math.log(total) - 0.5 * nearest * nearest / variance
    return DoubleSum(log_value, x.restore(dx), y.restore(dy), count)
