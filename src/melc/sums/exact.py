"""The double sum over all pairs, with memory proportional to the number of points."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums.base import DoubleSum, Side

# Pairs that one compiled call sums, in some tenths of a second; then Python can react to Ctrl-C.
_PAIRS_AT_ONCE = 200_000_000


@dataclass(frozen=True)
class Exact:
    """S = Σ_ij a_i b_j exp(−(x_i − y_j)²/2V) over all pairs. There is no error to accept: ``eps`` is ignored."""

    eps: float = 0.0

    smooth: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    distributes: ClassVar[bool] = False
    has_grid: ClassVar[bool] = False
    default_eps: ClassVar[float | None] = 0.0

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        return Side(values, weights)

    def within(self, x: Side, variance: float) -> DoubleSum:
        return sum_within(x, variance)

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        nearest = nearest_distance(np.sort(x.values), np.sort(y.values))
        return sum_across(x, y, variance, nearest)


def sum_within(x: Side, variance: float, reach: float = math.inf) -> DoubleSum:
    """Return the sum over the pairs of one class at most ``reach`` apart. If it is finite, x must be sorted."""
    dx, place = np.zeros(len(x.values)), np.zeros(2, dtype=np.int64)
    total, count = _stretch_by_stretch(
        place, len(dx), lambda: kernels.add_self_pairs(x.values, x.weights, variance, reach, place, _PAIRS_AT_ONCE, dx)
    )
    dx *= x.weights * (2 / (variance * total))
    return DoubleSum(math.log(total), _restored(x, dx), None, count)


def sum_across(x: Side, y: Side, variance: float, nearest: float, reach: float = math.inf) -> DoubleSum:
    """Return the sum over the pairs of two classes at most ``reach`` apart. If it is finite, x and y must be sorted.

    ``nearest`` is the smallest distance of any pair; its exponent is taken out of the sum to avoid underflow.
    """
    dx, dy, place = np.empty(len(x.values)), np.zeros(len(y.values)), np.zeros(3, dtype=np.int64)
    sides = x.values, x.weights, y.values, y.weights
    total, count = _stretch_by_stretch(
        place,
        len(dx),
        lambda: kernels.add_cross_pairs(*sides, variance, nearest, reach, place, _PAIRS_AT_ONCE, dx, dy),
    )
    dx /= total
    dy *= y.weights / (variance * total)
    log_value = math.log(total) - 0.5 * nearest * nearest / variance
    return DoubleSum(log_value, _restored(x, dx), _restored(y, dy), count)


def nearest_distance(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the smallest |x_i − y_j| of two sorted arrays (points or bin numbers)."""
    after = np.searchsorted(y, x)
    above, below = y[np.minimum(after, len(y) - 1)], y[np.maximum(after - 1, 0)]
    return float(min(np.abs(x - above).min(), np.abs(x - below).min()))


def _restored(side: Side, derivative: Floats) -> Floats:
    """Return an array given in the order of ``side.values``, shape (n,), in the original order of the points."""
    if side.order is None:
        return derivative
    restored = np.empty_like(derivative)
    restored[side.order] = derivative
    return restored


def _stretch_by_stretch(
    place: NDArray[np.int64], end: int, advance: Callable[[], tuple[float, int]]
) -> tuple[float, int]:
    """Call ``advance`` until ``place[0]`` reaches ``end``. Return the total of its sums and of its exponentials.

    Between two compiled calls Python can react to Ctrl-C.
    """
    total, count = 0.0, 0
    while place[0] < end:
        value, spent = advance()
        total += value
        count += spent
    return total, count
