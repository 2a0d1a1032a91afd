"""The divergence of dense rows in memory by moment bins of one width: a short way with a certified error.

The formula is in :mod:`melc.objective.moments`. Where bins of one width cannot keep the error small (classes far
apart, heavy tails), that module takes over.
"""

import functools
import math

import numpy as np

from melc import kernels
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.summary import Spread
from melc.objective.base import NO_SHRINKAGE, Evaluation, add_linear, combine_sums, kernel_variances
from melc.objective.moments import MomentsDivergence
from melc.objective.shrinkage import Shrinkage
from melc.sums import bounds
from melc.sums.bins import BinLayout, Bins
from melc.sums.moments import sum_bins_across, sum_bins_within

# Largest number of bins that the points may spread over, and largest distance from the origin, in bins.
_MOST_EQUAL_BINS, _FARTHEST = 512, 2.0**40


class CertifiedDivergence:
    """D with an error of at most ``eps``, for so few rows that all projections are computed in one call."""

    def __init__(self, rows: MemoryRows, gamma: float, eps: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.eps, self.shrinkage = rows, gamma, eps, shrinkage
        self._weights = rows.weights_and_step()
        # Bins are anchored at the projection of this point: they move with the data as v turns.
        self._centre = np.asarray(rows.X.mean(axis=0, dtype=np.float64)) - (0.0 if rows.centre is None else rows.centre)
        self._bin_per_bandwidth = bounds.moment_bin_width(kernels.ORDER, 1.0, eps / 4)

    @functools.cached_property
    def _general(self) -> MomentsDivergence:
        return MomentsDivergence(self.rows, self.gamma, self.eps, self.shrinkage)

    def evaluate(self, v: Floats) -> Evaluation:
        """Return D and its gradient along v."""
        shrunk = NO_SHRINKAGE if self.shrinkage is None else self.shrinkage.along(v)
        z, origin = self.rows.project(v), float(v @ self._centre)
        spread = self._spread(z)
        vx, vy = kernel_variances(spread, shrunk, self.gamma)
        layout = self._layout(min(vx, vy), origin, float(z.min()) - origin, float(z.max()) - origin)
        if layout is None:
            return self._general.evaluate(v)
        located = *layout.located(z, self.rows.codes), *self._weights
        moments = np.zeros((layout.n_bins, kernels.ORDER))
        kernels.bin_points(*located, moments)
        n, width = layout.count[0], layout.widths[0]
        keys = np.arange(layout.low[0], layout.low[0] + n)
        x, y = Bins(keys, moments[:n], width), Bins(keys, moments[n:], width)
        xx, yy = sum_bins_within(x, 2 * vx, self.eps), sum_bins_within(y, 2 * vy, self.eps)
        xy = sum_bins_across(x, y, vx + vy, self.eps, (self.eps - xx.error - yy.error) / 2)
        error = xx.error + yy.error + 2 * xy.error
        if not error <= self.eps:
            return self._general.evaluate(v)
        logs, slopes = (xx.log_value, yy.log_value, xy.log_value), (xx.slope, yy.slope, xy.slope)
        combined = combine_sums(spread, shrunk, self.gamma, logs, slopes)
        table = np.empty((layout.n_bins, kernels.ORDER - 1))
        for c, own in enumerate((xx, yy)):
            polynomials = table[c * n : (c + 1) * n]
            np.multiply(xy.polynomials[c][:, :-1], -2, out=polynomials)
            polynomials += own.polynomials[0][:, :-1]
            add_linear(polynomials, combined.linear[c], x, origin)  # the bins of both classes are the same
        kernels.weigh_points(*located, table, z)
        # The origin of the bins is v·centre, so the gradient of D as computed is Σ w_i (x_i − centre).
        gradient = self.rows.pull_back(z) - float(z.sum()) * self._centre
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, combined.by_added)
        count = xx.n_exponentials + yy.n_exponentials + xy.n_exponentials
        return Evaluation(combined.divergence, gradient, count, combined.floored, error)

    def _spread(self, z: Floats) -> Spread:
        """Return the weight, mean and variance of each class, in one compiled call: NumPy takes a dozen."""
        found = np.zeros((2, 3))
        kernels.add_spread(z, self.rows.codes, *self._weights, found)
        weights, means, squares = found.T
        return Spread(*weights.tolist(), *means.tolist(), *(squares / weights).tolist())

    def _layout(self, variance: float, origin: float, least: float, largest: float) -> BinLayout | None:
        """Return bins of one width (a power of two) for both classes, over all points; None if there are too many.

        ``least`` and ``largest`` are the outermost points relative to the origin of the bins.
        """
        if not 0 < variance < math.inf:
            return None
        width = 2.0 ** math.floor(math.log2(self._bin_per_bandwidth * math.sqrt(2 * variance)))
        if not (abs(least) < _FARTHEST * width and largest - least < _MOST_EQUAL_BINS * width):
            return None
        low = math.floor(least / width)
        count = math.floor(largest / width) - low + 1
        return BinLayout(origin, (width, width), (low, low), (count, count))
