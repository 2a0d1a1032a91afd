"""The divergence by the methods that need all projections of a class in memory at once."""

import numpy as np

from melc.arrays import Floats
from melc.data.source import Rows
from melc.objective.base import (
    NO_SHRINKAGE,
    Evaluation,
    combine_sums,
    kernel_variances,
    spread_of,
    total_variance,
)
from melc.objective.shrinkage import Shrinkage
from melc.sums import Exact, Method


class PairwiseDivergence:
    """D and its gradient by a method of the double sum: "exact", "discard" or "bin".

    The formula is in :mod:`melc.objective.penalised`.
    """

    def __init__(self, rows: Rows, gamma: float, method: Method, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.method, self.shrinkage = rows.in_memory(), gamma, method, shrinkage
        self._members, self._weights = self.rows.by_class()

    def evaluate(self, v: Floats) -> Evaluation:
        z = self.rows.project(v)
        points = [z[members] for members in self._members]
        spread = spread_of(points, self._weights)
        if total_variance(spread) == 0:  # all points coincide along v, so the densities are equal
            return Evaluation(0.0, np.zeros(len(v)), 0, True)
        shrunk = NO_SHRINKAGE if self.shrinkage is None else self.shrinkage.along(v)
        vx, vy = kernel_variances(spread, shrunk, self.gamma)
        share = spread.weight_y / (spread.weight_x + spread.weight_y)
        centre = spread.mean_x + share * (spread.mean_y - spread.mean_x)
        # Sums depend only on differences; subtracting the mean of all points reduces rounding errors.
        sides = [self.method.prepare(points[c] - centre, self._weights[c], c) for c in (0, 1)]
        xx, yy = self.method.within(sides[0], 2 * vx), self.method.within(sides[1], 2 * vy)
        xy = self.method.across(sides[0], sides[1], vx + vy)
        assert xy.dy is not None
        # A function of z/√V only is homogeneous, so that ∂/∂V = −(1/2V) Σ z ∂/∂z.
        x, y = points[0] - spread.mean_x, points[1] - spread.mean_y
        across = (points[0] - centre) @ xy.dx + (points[1] - centre) @ xy.dy
        slopes = -float(x @ xx.dx) / (4 * vx), -float(y @ yy.dx) / (4 * vy), -float(across) / (2 * (vx + vy))
        logs = xx.log_value, yy.log_value, xy.log_value
        combined = combine_sums(spread, shrunk, self.gamma, logs, slopes)
        for c, (own, cross) in enumerate(((xx.dx, xy.dx), (yy.dx, xy.dy))):
            _, slope, value = combined.linear[c]
            z[self._members[c]] = own - 2 * cross + self._weights[c] * (value + slope * (x, y)[c])
        gradient = self.rows.pull_back(z)
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, combined.by_added)
        error = 0.0 if isinstance(self.method, Exact) else None
        count = xx.n_exponentials + yy.n_exponentials + xy.n_exponentials
        return Evaluation(combined.divergence, gradient, count, combined.floored, error)
