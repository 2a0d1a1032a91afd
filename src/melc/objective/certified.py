"""The divergence of dense rows in memory: one compiled call between the two products, certified.

The formula is that of :mod:`melc.objective.moments`. Where this short way does not keep the error (classes that lie
apart, heavy tails) the general one takes over.
"""

import functools

import numpy as np

from melc import kernels
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.objective.base import VARIANCE_FLOOR, Evaluation
from melc.objective.moments import MomentsDivergence
from melc.objective.shrinkage import Shrinkage
from melc.sums import bounds
from melc.sums.moments import node_tables


class CertifiedDivergence:
    """D with an error of at most ``eps``, for rows that are few enough to be worked on in one call."""

    def __init__(self, rows: MemoryRows, gamma: float, eps: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.eps, self.shrinkage = rows, gamma, eps, shrinkage
        self._weights, self._step = rows.weights_and_step()
        # Bins are anchored at the projection of this point: they move with the data as v turns.
        self._centre = np.asarray(rows.X.mean(axis=0, dtype=np.float64)) - (0.0 if rows.centre is None else rows.centre)
        self._bin_per_bandwidth = bounds.moment_bin_width(kernels.ORDER, 1.0, eps / 4)
        self._w = np.empty(rows.n_rows)

    @functools.cached_property
    def _general(self) -> MomentsDivergence:
        return MomentsDivergence(self.rows, self.gamma, self.eps, self.shrinkage)

    def evaluate(self, v: Floats) -> Evaluation:
        """Return D and its gradient along v."""
        shrunk = kernels.AS_THEY_ARE if self.shrinkage is None else self.shrinkage.along(v)
        z, w = self.rows.project(v), self._w
        tables = node_tables(kernels.ORDER)
        divergence, error, count, floored, *by_added = kernels.certified_divergence(
            z, self.rows.codes, self._weights, self._step, float(v @ self._centre), shrunk, self.gamma, VARIANCE_FLOOR,
            self.eps, self._bin_per_bandwidth, *tables, w,
        )  # fmt: skip
        if not error <= self.eps:
            return self._general.evaluate(v)
        # The bins move along with the centre, so the weights of D add up to zero only together with it.
        gradient = self.rows.pull_back(w) - float(w.sum()) * self._centre
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, by_added)
        return Evaluation(divergence, gradient, count, floored, error)
