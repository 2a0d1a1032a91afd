"""Binning: the points of a bin are replaced by their mean, with the width of Theorem 2."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.exact import Exact


@dataclass(frozen=True)
class _Binned:
    """Occupied bins as points of their own, and which of them each original point belongs to."""

    bins: Side
    members: NDArray[np.int64]
    share: Floats  # a point's part in the mean of its bin

    def per_point(self, derivative: Floats) -> Floats:
        """A bin's mean moves by a point's share of that point's move."""
        return derivative[self.members] * self.share


class Bin:
    """The exact sum of the bins' means; its gradient is exact for the bins as they stand."""

    def __init__(self, eps: float) -> None:
        self.eps = eps
        self._exact = Exact()

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        return Side(values, weights)

    def within(self, x: Side, variance: float) -> DoubleSum:
        binned = self._bin(x, variance, x.values.min())
        result = self._exact.within(binned.bins, variance)
        return DoubleSum(result.log_value, binned.per_point(result.dx), None, result.n_exponentials)

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        # Anchored at the data, so that translating them changes nothing.
        origin = min(x.values.min(), y.values.min())
        binned_x, binned_y = self._bin(x, variance, origin), self._bin(y, variance, origin)
        result = self._exact.across(binned_x.bins, binned_y.bins, variance)
        assert result.dy is not None
        return DoubleSum(
            result.log_value,
            binned_x.per_point(result.dx),
            binned_y.per_point(result.dy),
            result.n_exponentials,
        )

    def _bin(self, side: Side, variance: float, origin: float) -> _Binned:
        width = bounds.bin_width(variance, self.eps)
        n = len(side.values)
        weights, means, members = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        n_bins = kernels.bin_means(side.values, side.weights, origin, 1 / width, weights, means, members)
        weights, means = weights[:n_bins], means[:n_bins]
        return _Binned(Side(means, weights), members, side.weights / weights[members])
