"""The Cauchy-Schwarz divergence of two projected classes, with its gradient, and the penalty.

D of rows in memory is computed here, over pairs of points or by bins of one width; that of any rows in
:mod:`melc.objective.moments`.

Formula. With projections z = Xv, class weights W_c (the number of rows of a class, or the sum of their weights), class
variances σ_c² along v, and kernel variances ``V_c = (γ (4/(3 W_c))^(1/5))² σ_c²``,

    ip(a, b) = S(a, b; V_a + V_b) / (√(2π(V_a + V_b)) W_a W_b)
    D(v)     = log ip(−,−) + log ip(+,+) − 2 log ip(−,+)

where S is the Gaussian double sum of ``melc.sums``. The gradient is a single product ``Xᵀw``, with one gradient weight
for each row. Each S depends on v only through the projections, and so do the class variances, whose gradient
``(2/W_c) Xᵀ(z − z̄_c)``, over the rows of class c, is included in the weights. No array of size pairs × d is formed.

Optimisers that do not stay on the unit sphere maximise ``D(v) − (‖v‖² − 1)²``. D does not depend on the length of v,
and the penalty keeps it near one.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse

from melc import kernels
from melc.arrays import Floats, unit
from melc.data.memory import MemoryRows
from melc.data.points import Spread
from melc.data.source import Rows
from melc.objective.base import (
    Divergence,
    Evaluation,
    Shrinkage,
    add_linear,
    combine_sums,
    kernel_variances,
    shrunk_along,
    spread_of,
    total_variance,
)
from melc.objective.moments import MomentsDivergence
from melc.sums import SUMS, Exact, Method, bounds
from melc.sums.bins import BinLayout, Bins
from melc.sums.moments import sum_bins_across, sum_bins_within

Make = Callable[[Rows, float, float, Shrinkage | None], Divergence]

# Up to this many rows all pairs are summed: an evaluation takes 0.12 to 0.28 ms. By bins of one width it takes 0.25 ms,
# and 1.5 to 2.1 ms where these cannot certify the error, as often with fewer rows than features.
_FEW_ROWS = 400
# Up to this many rows, dense and in memory, all projections are computed in one call.
_MAX_ROWS_PER_CALL = 20_000
# Largest number of bins that the points may spread over, and largest distance from the origin, in bins.
_MOST_EQUAL_BINS, _FARTHEST = 512, 2.0**40


class PairwiseDivergence:
    """D by the methods of the double sum that need all projections of a class at once: "exact", "discard" or "bin"."""

    def __init__(self, rows: Rows, gamma: float, method: Method, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.method, self.shrinkage = rows.in_memory(), gamma, method, shrinkage
        self._members, weights = [self.rows.members(0), self.rows.members(1)], self.rows.all_weights()
        self._weights = [weights[members] for members in self._members]

    def evaluate(self, v: Floats) -> Evaluation:
        z = self.rows.project(v)
        points = [z[members] for members in self._members]
        spread = spread_of(points, self._weights)
        if total_variance(spread) == 0:  # all points coincide along v, so the densities are equal
            return Evaluation(0.0, np.zeros(len(v)), 0, True)
        shrunk = shrunk_along(self.shrinkage, v)
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


class CertifiedDivergence:
    """D with an error of at most ``eps`` by moment bins of one width, for dense rows that one call can project.

    Where bins of one width cannot keep the error small (classes far apart, heavy tails), :class:`MomentsDivergence`
    takes over.
    """

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
        shrunk = shrunk_along(self.shrinkage, v)
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


def _pairwise(name: str) -> Make:
    return lambda rows, gamma, eps, shrinkage: PairwiseDivergence(rows, gamma, SUMS[name](eps), shrinkage)


def _moments(rows: Rows, gamma: float, eps: float, shrinkage: Shrinkage | None) -> Divergence:
    if rows.n_rows <= _FEW_ROWS:
        return PairwiseDivergence(rows, gamma, Exact(), shrinkage)
    if rows.n_rows <= _MAX_ROWS_PER_CALL and not rows.distributed and not sparse.issparse(rows.in_memory().X):
        return CertifiedDivergence(rows.in_memory(), gamma, eps, shrinkage)
    return MomentsDivergence(rows, gamma, eps, shrinkage)


# The divergence by every method of the double sum. "moments" needs no projections of all rows in one place.
METHODS: dict[str, Make] = {**{name: _pairwise(name) for name in SUMS}, "moments": _moments}


class Objective:
    """``D(u / scale) − (‖u‖² − 1)²`` in the optimiser's coordinates u, of shape (n_features,).

    The direction is v = u / scale. With the standard deviations of the features as ``scale``, of shape (n_features,),
    the search does not depend on the units of the features. A feature with infinite scale is ignored. Without a scale
    u = v, as in the paper. Without ``penalty`` the second term is left out. Evaluations and exponentials are counted.
    ``eps`` is the accepted error of the method; the exact sum has none.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        gamma: float = 1.0,
        method: str = "exact",
        eps: float = 0.0,
        penalty: bool = True,
        scale: Floats | None = None,
        shrinkage: Shrinkage | None = None,
    ) -> None:
        self.rows = rows
        self.penalty = penalty
        self.scale = np.ones(rows.n_features) if scale is None else scale
        self._divergence = METHODS[method](rows, gamma, eps, shrinkage)
        self.n_evaluations = 0
        self.n_exponentials = 0

    def coordinates_of(self, direction: Floats) -> Floats:
        """Return the coordinates u, of length one, of a direction in the units of the features."""
        return unit(direction * np.where(np.isfinite(self.scale), self.scale, 0.0))

    def direction_of(self, u: Floats) -> Floats:
        """Return the direction v, of length one, in the units of the features."""
        return unit(u / self.scale)

    def evaluate(self, u: Floats) -> Evaluation:
        """Return D and its gradient with respect to u, without the penalty."""
        evaluation = self._divergence.evaluate(u / self.scale)
        self.n_evaluations += 1
        self.n_exponentials += evaluation.n_exponentials
        return replace(evaluation, gradient=evaluation.gradient / self.scale)

    def penalise(self, u: Floats, evaluation: Evaluation) -> tuple[float, Floats]:
        """Return the objective that an unconstrained optimiser maximises, and its gradient, shape (n_features,)."""
        if not self.penalty:
            return evaluation.divergence, evaluation.gradient
        excess = float(u @ u) - 1
        return evaluation.divergence - excess**2, evaluation.gradient - 4 * excess * u
