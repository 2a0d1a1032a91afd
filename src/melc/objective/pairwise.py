"""The divergence by the methods that need all projections of a class in memory at once."""

import numpy as np

from melc import kernels
from melc.arrays import Floats
from melc.data.source import Rows
from melc.objective.base import VARIANCE_FLOOR, Evaluation
from melc.objective.shrinkage import Shrinkage
from melc.sums import Method, Side


class ExactDivergence:
    """D and its gradient over all pairs, with one call for all sums: for small data the overhead of calls dominates.

    The formula is in :mod:`melc.objective.penalised`.
    """

    def __init__(self, rows: Rows, gamma: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.shrinkage = rows.in_memory(), gamma, shrinkage
        self._members = [self.rows.members(c) for c in (0, 1)]
        self._weights = [self.rows.all_weights()[members] for members in self._members]

    def evaluate(self, v: Floats) -> Evaluation:
        z = self.rows.project(v)
        x, y = (z[members] for members in self._members)
        a, b = self._weights
        weight_x, mean_x, variance_x = kernels.centre_points(x, a)
        weight_y, mean_y, variance_y = kernels.centre_points(y, b)
        spread = kernels.Spread(weight_x, weight_y, mean_x, mean_y, variance_x, variance_y)
        if kernels.total_variance(spread) == 0:  # all points coincide along v, so the densities are equal
            return Evaluation(0.0, np.zeros(len(v)), 0, True, 0.0)
        shrunk = kernels.AS_THEY_ARE if self.shrinkage is None else self.shrinkage.along(v)
        vx, vy = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
        shift = mean_y - mean_x
        dx, dy = np.empty(len(x)), np.empty(len(y))
        log_x, log_y, log_xy, slope_x, slope_y, slope_xy, count = kernels.exact_sums(
            x, a, y, b, weight_x * weight_y, shift, vx, vy, dx, dy
        )
        divergence, by_vx, by_vy = kernels.assemble_divergence(log_x, log_y, log_xy, vx, vy, slope_x, slope_y, slope_xy)
        own_x, own_y, pooled, *by_added = kernels.variance_pull(
            spread, shrunk, self.gamma, VARIANCE_FLOOR, by_vx, by_vy
        )
        centre = shift * weight_y / (weight_x + weight_y)
        z[self._members[0]] = dx + a * ((own_x + pooled) * x - pooled * centre)
        z[self._members[1]] = dy + b * (own_y * (y - shift) + pooled * (y - centre))
        gradient = self.rows.pull_back(z)
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, by_added)
        floored = kernels.is_floored(spread, shrunk, VARIANCE_FLOOR)
        return Evaluation(divergence, gradient, count, floored, 0.0)


class PairwiseDivergence:
    """D and its gradient by any method of the double sum: "discard", "bin", and "exact" on many rows.

    The formula is in :mod:`melc.objective.penalised`.
    """

    def __init__(self, rows: Rows, gamma: float, method: Method, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.method, self.shrinkage = rows.in_memory(), gamma, method, shrinkage
        self._members = [self.rows.members(c) for c in (0, 1)]
        self._weights = [self.rows.all_weights()[members] for members in self._members]

    def evaluate(self, v: Floats) -> Evaluation:
        z = self.rows.project(v)
        points = [z[members] for members in self._members]
        spread = spread_of(points, self._weights)
        if kernels.total_variance(spread) == 0:  # all points coincide along v, so the densities are equal
            return Evaluation(0.0, np.zeros(len(v)), 0, True)
        share = spread.weight_y / (spread.weight_x + spread.weight_y)
        centre = spread.mean_x + share * (spread.mean_y - spread.mean_x)
        # Sums depend only on differences; subtracting the mean of all points reduces rounding errors.
        sides = [self.method.prepare(points[c] - centre, self._weights[c], c) for c in (0, 1)]
        shrunk = kernels.AS_THEY_ARE if self.shrinkage is None else self.shrinkage.along(v)
        divergence, row_weights, by_added, count = self._weigh(sides, spread, shrunk, centre)
        w = np.empty(len(z))
        for c in (0, 1):
            w[self._members[c]] = row_weights[c]
        gradient = self.rows.pull_back(w)
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, by_added)
        return Evaluation(divergence, gradient, count, kernels.is_floored(spread, shrunk, VARIANCE_FLOOR))

    def _weigh(
        self, sides: list[Side], spread: kernels.Spread, shrunk: kernels.Shrunk, centre: float
    ) -> tuple[float, list[Floats], list[float], int]:
        """Return D, the gradient weights of the rows of each class, [∂D/∂add_x, ∂D/∂add_y], and the exponentials.

        add_x and add_y are the summands of shrinkage, and the last item is the number of exponentials computed.
        """
        vx, vy = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
        xx, yy = self.method.within(sides[0], 2 * vx), self.method.within(sides[1], 2 * vy)
        xy = self.method.across(sides[0], sides[1], vx + vy)
        assert xy.dy is not None
        x, y = (side.restore(side.values) for side in sides)
        # A function of z/√V only is homogeneous, so that ∂/∂V = −(1/2V) Σ z ∂/∂z.
        slopes = -(x @ xx.dx) / (4 * vx), -(y @ yy.dx) / (4 * vy), -(x @ xy.dx + y @ xy.dy) / (2 * (vx + vy))
        divergence, by_vx, by_vy = kernels.assemble_divergence(
            xx.log_value, yy.log_value, xy.log_value, vx, vy, *slopes
        )
        own_x, own_y, pooled, *by_added = kernels.variance_pull(
            spread, shrunk, self.gamma, VARIANCE_FLOOR, by_vx, by_vy
        )
        weights = [
            sum_.dx - 2 * cross + mass * (own * (z + centre - mean) + pooled * z)
            for sum_, cross, mass, own, z, mean in (
                (xx, xy.dx, self._weights[0], own_x, x, spread.mean_x),
                (yy, xy.dy, self._weights[1], own_y, y, spread.mean_y),
            )
        ]
        return divergence, weights, by_added, xx.n_exponentials + yy.n_exponentials + xy.n_exponentials


def spread_of(points: list[Floats], weights: list[Floats]) -> kernels.Spread:
    """Return the weight, weighted mean and weighted variance (without Bessel's correction) of each class."""
    totals = [float(w.sum()) for w in weights]
    means = [float(w @ z) / total for w, z, total in zip(weights, points, totals, strict=True)]
    variances = [
        float(w @ (z - mean) ** 2) / total for w, z, mean, total in zip(weights, points, means, totals, strict=True)
    ]
    return kernels.Spread(*totals, *means, *variances)
