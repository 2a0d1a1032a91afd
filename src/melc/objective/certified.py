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
from melc.sums.bins import Bins
from melc.sums.moments import sum_across, sum_within

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
        keys, moments = np.arange(n_bins), np.zeros((2 * n_bins, kernels.ORDER))
        kernels.bin_uniformly(*points, origin, width, low, self._places, self._local, moments)
        x, y = (Bins(keys, of_class, width) for of_class in (moments[:n_bins], moments[n_bins:]))
        xx, yy = sum_within(x, 2 * vx, self.eps), sum_within(y, 2 * vy, self.eps)
        xy = sum_across(x, y, vx + vy, self.eps)
        error = xx.error + yy.error + 2 * xy.error
        if not error <= self.eps:
            return self._general.evaluate(v)
        logs, slopes = zip(*((each.log_value, each.slope) for each in (xx, yy, xy)), strict=True)
        combined = combine_sums(spread, shrunk, self.gamma, logs, slopes)
        polynomials = np.concatenate([xx.polynomials[0], yy.polynomials[0]])
        polynomials -= 2 * np.concatenate(xy.polynomials)
        kernels.weigh_binned(*points, self._places, self._local, polynomials, combined.linear, self._w)
        # The bins move along with the centre, so the weights of D add up to zero only together with it.
        gradient = self.rows.pull_back(self._w) - float(self._w.sum()) * self._centre
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, combined.by_added)
        count = xx.n_exponentials + yy.n_exponentials + xy.n_exponentials
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
