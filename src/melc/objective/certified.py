"""The divergence of dense rows in memory: three compiled calls between the two products, certified.

The formula is that of :mod:`melc.objective.moments`. Where this short way does not keep the error (classes that lie
apart, heavy tails) the general one takes over.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from melc import kernels
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.objective.base import VARIANCE_FLOOR, Evaluation
from melc.objective.moments import MomentsDivergence
from melc.objective.shrinkage import Shrinkage
from melc.sums import bounds
from melc.sums.moments import node_tables

# Bins that the points may spread over: more are rather looked up, and left to the general way. Largest number of a bin.
_MOST_BINS, _FAR = 512, 2.0**40


class _Sums(NamedTuple):
    """The three sums by bins: log S, ∂ log S/∂V, the error that they make in D, and the slopes of D within the bins."""

    logs: list[float]
    slopes: list[float]
    error: float
    n_exponentials: int
    polynomials: Floats


class CertifiedDivergence:
    """D with an error of at most ``eps``, for rows that are few enough to be worked on at once."""

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
        shrunk = kernels.AS_THEY_ARE if self.shrinkage is None else self.shrinkage.along(v)
        points = self.rows.project(v), self.rows.codes, self._weights, self._step
        origin = float(v @ self._centre)
        *numbers, least, largest = kernels.measure(*points)
        spread = kernels.Spread(*numbers)
        vx, vy = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
        bins = self._bins(min(vx, vy), least - origin, largest - origin)
        sums = None if bins is None else self._sum(points, origin, bins, (2 * vx, 2 * vy, vx + vy))
        if sums is None:
            return self._general.evaluate(v)
        log_x, log_y, log_xy = sums.logs
        divergence, by_vx, by_vy = kernels.assemble_divergence(log_x, log_y, log_xy, vx, vy, *sums.slopes)
        own_x, own_y, pooled, *by_added = kernels.variance_pull(
            spread, shrunk, self.gamma, VARIANCE_FLOOR, by_vx, by_vy
        )
        share = spread.weight_y / (spread.weight_x + spread.weight_y)
        centre = spread.mean_x + share * (spread.mean_y - spread.mean_x)
        lines = [
            (mean, own + pooled, pooled * (mean - centre))
            for mean, own in ((spread.mean_x, own_x), (spread.mean_y, own_y))
        ]
        w = self._w
        kernels.weigh_binned(*points, self._places, self._local, sums.polynomials, np.array(lines), w)
        # The bins move along with the centre, so the weights of D add up to zero only together with it.
        gradient = self.rows.pull_back(w) - float(w.sum()) * self._centre
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, by_added)
        floored = kernels.is_floored(spread, shrunk, VARIANCE_FLOOR)
        return Evaluation(divergence, gradient, sums.n_exponentials, floored, sums.error)

    def _sum(
        self, points: tuple[Any, ...], origin: float, bins: tuple[float, float, int], variances: tuple[float, ...]
    ) -> _Sums | None:
        """Return the sums within class x, within class y and across; None if their error is too large."""
        width, low, n_bins = bins
        found, polynomials = np.zeros((3, 3)), np.zeros((2 * n_bins, kernels.ORDER))
        count = kernels.bin_sums(
            *points, origin, width, low, variances, self.eps, *node_tables(kernels.ORDER), self._places, self._local,
            polynomials, found,
        )  # fmt: skip
        sums = found.T.tolist()
        if not all(0 <= error < value for value, _, error in sums):
            return None
        xx, yy, xy = (-math.log1p(-error / value) for value, _, error in sums)
        error = xx + yy + 2 * xy
        if not error <= self.eps:
            return None
        logs, slopes = [math.log(value) for value, _, _ in sums], [slope / value for value, slope, _ in sums]
        return _Sums(logs, slopes, error, count, polynomials)

    def _bins(self, variance: float, least: float, largest: float) -> tuple[float, float, int] | None:
        """Return the width of bins, the number of the first and how many there are; None if that is too many.

        The width is a power of two. ``least`` and ``largest`` are the outermost points, from the origin of the bins.
        """
        if not 0 < variance < math.inf:
            return None
        width = 2.0 ** math.floor(math.log2(self._bin_per_bandwidth * math.sqrt(2 * variance)))
        if not (abs(least) < _FAR * width and largest - least < _MOST_BINS * width):
            return None
        low = math.floor(least / width)
        return width, float(low), math.floor(largest / width) - low + 1
