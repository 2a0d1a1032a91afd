"""The divergence of dense rows in memory by moment bins of one width: a short way with a certified error.

The formula is that of :mod:`melc.objective.moments`. Where bins of one width cannot keep the error small (classes far
apart, heavy tails), that module takes over.
"""

import functools
import math

import numpy as np

from melc import kernels
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.objective.base import VARIANCE_FLOOR, Evaluation, combine_sums
from melc.objective.moments import MomentsDivergence
from melc.objective.shrinkage import Shrinkage
from melc.sums import bounds
from melc.sums.moments import node_tables

# Largest number of bins that the points may spread over, and largest distance from the origin, in bins.
_MOST_BINS, _FAR = 512, 2.0**40


class CertifiedDivergence:
    """D with an error of at most ``eps``, for so few rows that all projections are computed in one call."""

    def __init__(self, rows: MemoryRows, gamma: float, eps: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.eps, self.shrinkage = rows, gamma, eps, shrinkage
        self._weights, self._step = rows.weights_and_step()
        # Bins are anchored at the projection of this point: they move with the data as v turns.
        self._centre = np.asarray(rows.X.mean(axis=0, dtype=np.float64)) - (0.0 if rows.centre is None else rows.centre)
        self._bin_per_bandwidth = bounds.moment_bin_width(kernels.ORDER, 1.0, eps / 4)
        self._w, self._local = np.empty(rows.n_rows), np.empty(rows.n_rows)
        self._places = np.empty(rows.n_rows, np.int64)

    @functools.cached_property
    def _general(self) -> MomentsDivergence:
        return MomentsDivergence(self.rows, self.gamma, self.eps, self.shrinkage)

    def evaluate(self, v: Floats) -> Evaluation:
        """Return D and its gradient along v."""
        shrunk = kernels.NO_SHRINKAGE if self.shrinkage is None else self.shrinkage.along(v)
        points = self.rows.project(v), self.rows.codes, self._weights, self._step
        origin = float(v @ self._centre)
        *numbers, least, largest = kernels.measure(*points)
        spread = kernels.Spread(*numbers)
        vx, vy = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
        bins = self._bins(min(vx, vy), least - origin, largest - origin)
        if bins is None:
            return self._general.evaluate(v)
        width, low, n_bins = bins
        sums, polynomials = np.zeros((3, 3)), np.zeros((2 * n_bins, kernels.ORDER))
        count = kernels.bin_sums(
            *points, origin, width, low, (2 * vx, 2 * vy, vx + vy), self.eps, *node_tables(kernels.ORDER), self._places,
            self._local, polynomials, sums,
        )  # fmt: skip
        error = _error(sums)
        if not error <= self.eps:
            return self._general.evaluate(v)
        values, by_variance = sums[0].tolist(), sums[1].tolist()
        slopes = [slope / value for slope, value in zip(by_variance, values, strict=True)]
        combined = combine_sums(spread, shrunk, self.gamma, [math.log(value) for value in values], slopes)
        kernels.weigh_binned(*points, self._places, self._local, polynomials, combined.linear, self._w)
        # The bins move along with the centre, so the weights of D add up to zero only together with it.
        gradient = self.rows.pull_back(self._w) - float(self._w.sum()) * self._centre
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, combined.by_added)
        return Evaluation(combined.divergence, gradient, count, combined.floored, error)

    def _bins(self, variance: float, least: float, largest: float) -> tuple[float, float, int] | None:
        """Return the bin width (a power of two), the number of the first bin and the number of bins; None if too many.

        ``least`` and ``largest`` are the outermost points relative to the origin of the bins.
        """
        if not 0 < variance < math.inf:
            return None
        width = 2.0 ** math.floor(math.log2(self._bin_per_bandwidth * math.sqrt(2 * variance)))
        if not (abs(least) < _FAR * width and largest - least < _MOST_BINS * width):
            return None
        low = math.floor(least / width)
        return width, float(low), math.floor(largest / width) - low + 1


def _error(sums: Floats) -> float:
    """Return how far D may be off, from the values, slopes and errors of the three sums; infinite if they are unknown.

    The columns of ``sums``, shape (3, 3), are those within class x, within class y and across, which counts twice.
    """
    values, _, errors = sums.tolist()
    if not all(0 <= error < value for value, error in zip(values, errors, strict=True)):
        return math.inf
    within_x, within_y, across = (-math.log1p(-error / value) for value, error in zip(values, errors, strict=True))
    return within_x + within_y + 2 * across
