"""The double sum by binning: the points of each bin are replaced by their mean. Theorem 2 gives the bin width."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.exact import Exact


@dataclass(frozen=True)
class _Binned:
    """The means of the occupied bins as weighted points, and the bin of each original point."""

    bins: Side
    members: NDArray[np.int64]  # index of the bin of each point
    share: Floats  # weight of each point divided by the weight of its bin

    def per_point(self, derivative: Floats) -> Floats:
        """Return derivatives by the original points, shape (n,), from derivatives by the bin means, shape (n_bins,)."""
        return derivative[self.members] * self.share  # ∂ mean/∂ point = share


class Bin:
    """S = Σ_kl A_k B_l exp(−(x̄_k − ȳ_l)²/2V) over bins with weights A_k, B_l and means x̄_k, ȳ_l.

    The bins have the width of :func:`melc.sums.bounds.bin_width`, so the error of each information potential is at most
    ``eps``. The derivatives are exact for points that stay in their bins.
    """

    smooth: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False
    distributes: ClassVar[bool] = False
    has_grid: ClassVar[bool] = False
    default_eps: ClassVar[float | None] = None

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
        # Bins start at the lowest point, so that translating the data changes nothing.
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
