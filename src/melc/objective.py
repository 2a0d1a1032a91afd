"""The Cauchy-Schwarz divergence of two projected classes, with its gradient, and the penalty.

Formula. With projections z = Xv, class weights W_c (a class's rows, or the sum of their weights), and the
kernel variances ``V_c = (γ (4/(3 W_c))^(1/5))² σ_c²``,

    ip(a, b) = S(a, b; V_a + V_b) / (√(2π(V_a + V_b)) W_a W_b)
    D(v)     = log ip(−,−) + log ip(+,+) − 2 log ip(−,+)

where S is the Gaussian double sum of ``melc.sums``. The gradient is one product ``Xᵀw`` with one weight a
row: every S depends on v through the projections only, and so do the class variances, whose own
gradient ``(2/W_c) Xᵀ(z − z̄_c)`` folds into the same weights. Nothing of size pairs × d is formed.

Out of the sphere, an optimiser sees ``D(v) − (‖v‖² − 1)²``: D ignores the length of v, the second term
holds it near one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from melc.rows import Rows
from melc.sums import Bin, Discard, DoubleSum, Exact, Method, Side
from melc.sums.base import Floats

METHODS: dict[str, Callable[[float], Method]] = {
    "exact": lambda eps: Exact(),
    "discard": Discard,
    "bin": Bin,
}

# A class that does not vary along v would have a kernel of no width and D would be infinite. Its variance is
# taken to be at least this fraction of the variance of all points along v (a standard deviation ratio of
# 1e-9, well above what rounding makes of a constant).
VARIANCE_FLOOR = 1e-18


@dataclass(frozen=True)
class Spread:
    """Weight, mean and variance along v: of the two classes, and of all points together."""

    weights: tuple[float, float]
    means: tuple[float, float]
    variances: tuple[float, float]

    @property
    def total_weight(self) -> float:
        return self.weights[0] + self.weights[1]

    @property
    def total_mean(self) -> float:
        share = self.weights[1] / self.total_weight
        return self.means[0] + share * (self.means[1] - self.means[0])

    @property
    def total_variance(self) -> float:
        a, b = self.weights[0] / self.total_weight, self.weights[1] / self.total_weight
        between = a * b * (self.means[1] - self.means[0]) ** 2
        return a * self.variances[0] + b * self.variances[1] + between

    @property
    def floored(self) -> tuple[bool, bool]:
        """Which classes vary too little along v for a kernel of their own."""
        floor = VARIANCE_FLOOR * self.total_variance
        return self.variances[0] <= floor, self.variances[1] <= floor


@dataclass(frozen=True)
class VariancePull:
    """What the kernel variances add to the weight of a row of class c:
    ``w_i (own[c] (z_i − mean_c) + pooled (z_i − mean))``."""

    own: tuple[float, float]
    pooled: float


@dataclass(frozen=True)
class Evaluation:
    """D at one direction, its gradient, and what it cost."""

    divergence: float
    gradient: Floats
    n_exponentials: int
    floored: bool


def silverman_factor(weight: float, gamma: float) -> float:
    """Kernel variance over class variance: (γ (4/(3n))^(1/5))²."""
    return float((gamma * (4 / (3 * weight)) ** 0.2) ** 2)


def kernel_variances(spread: Spread, gamma: float) -> tuple[float, float]:
    """V of both classes, with the floor under a class that does not vary."""
    floor = VARIANCE_FLOOR * spread.total_variance
    return (
        silverman_factor(spread.weights[0], gamma) * max(spread.variances[0], floor),
        silverman_factor(spread.weights[1], gamma) * max(spread.variances[1], floor),
    )


def variance_pull(spread: Spread, gamma: float, slopes: tuple[float, float]) -> VariancePull:
    """Turn ∂D/∂V_c into what each row contributes through the variances."""
    own, pooled = [0.0, 0.0], 0.0
    for c in (0, 1):
        pull = 2 * slopes[c] * silverman_factor(spread.weights[c], gamma)
        if spread.floored[c]:
            pooled += pull * VARIANCE_FLOOR / spread.total_weight
        else:
            own[c] = pull / spread.weights[c]
    return VariancePull((own[0], own[1]), pooled)


def assemble_divergence(
    log_sums: tuple[float, float, float],
    variances: tuple[float, float],
    sum_slopes: tuple[float, float, float],
) -> tuple[float, tuple[float, float]]:
    """D and ∂D/∂V_c from the three log sums (−−, ++, −+) and their derivatives by their own V.

    The factors 2π and W_a W_b cancel between the three terms.
    """
    within = 2 * variances[0], 2 * variances[1]
    across = variances[0] + variances[1]
    divergence = log_sums[0] + log_sums[1] - 2 * log_sums[2]
    divergence += math.log(across) - 0.5 * (math.log(within[0]) + math.log(within[1]))
    shared = -2 * sum_slopes[2] + 1 / across
    slopes = (2 * sum_slopes[0] - 1 / within[0] + shared, 2 * sum_slopes[1] - 1 / within[1] + shared)
    return divergence, slopes


class PairwiseDivergence:
    """D by a method that wants all projections of a class in one place: exact, discard, bin."""

    def __init__(self, rows: Rows, gamma: float, method: Method) -> None:
        self.rows, self.gamma, self.method = rows, gamma, method
        self._members = [np.flatnonzero(rows.codes == c) for c in (0, 1)]
        self._weights = [rows.weights_of(members) for members in self._members]

    def evaluate(self, v: Floats) -> Evaluation:
        z = self.rows.project(v)
        points = [z[members] for members in self._members]
        spread = spread_of(points, self._weights)
        if spread.total_variance == 0:  # all points coincide along v: so do the densities
            return Evaluation(0.0, np.zeros(len(v)), 0, True)
        centre = spread.total_mean  # sums depend on differences only; a centre near them saves digits
        sides = [self.method.prepare(points[c] - centre, self._weights[c], c) for c in (0, 1)]
        value, row_weights, count = self._weigh(sides, spread, [points[c] - spread.means[c] for c in (0, 1)])
        w = np.empty(len(z))
        for c in (0, 1):
            w[self._members[c]] = row_weights[c]
        return Evaluation(value, self.rows.pull_back(w), count, any(spread.floored))

    def _weigh(
        self, sides: list[Side], spread: Spread, deviations: list[Floats]
    ) -> tuple[float, list[Floats], int]:
        """D, the weight of every row of each class, and the number of exponentials."""
        variances = kernel_variances(spread, self.gamma)
        within = [self.method.within(sides[c], 2 * variances[c]) for c in (0, 1)]
        across = self.method.across(sides[0], sides[1], variances[0] + variances[1])
        assert across.dy is not None
        positions = [sides[c].restore(sides[c].values) for c in (0, 1)]
        sum_slopes = (
            -float(positions[0] @ within[0].dx) / (4 * variances[0]),
            -float(positions[1] @ within[1].dx) / (4 * variances[1]),
            -float(positions[0] @ across.dx + positions[1] @ across.dy) / (2 * (variances[0] + variances[1])),
        )
        value, slopes = assemble_divergence(_log_values(within, across), variances, sum_slopes)
        pull = variance_pull(spread, self.gamma, slopes)
        shifts = [spread.means[c] - spread.total_mean for c in (0, 1)]
        weights = [
            within[c].dx
            - 2 * derivative
            + self._weights[c] * (pull.own[c] * deviations[c] + pull.pooled * (deviations[c] + shifts[c]))
            for c, derivative in enumerate((across.dx, across.dy))
        ]
        return value, weights, sum(s.n_exponentials for s in (*within, across))


def _log_values(within: list[DoubleSum], across: DoubleSum) -> tuple[float, float, float]:
    return within[0].log_value, within[1].log_value, across.log_value


def spread_of(points: list[Floats], weights: list[Floats]) -> Spread:
    """Weighted mean and variance of both classes (no Bessel correction)."""
    totals = [float(w.sum()) for w in weights]
    means = [float(w @ z) / total for w, z, total in zip(weights, points, totals, strict=True)]
    variances = [
        float(w @ (z - mean) ** 2) / total
        for w, z, mean, total in zip(weights, points, means, totals, strict=True)
    ]
    return Spread((totals[0], totals[1]), (means[0], means[1]), (variances[0], variances[1]))


class Objective:
    """``D(v) − penalty (‖u‖² − 1)²`` in the optimiser's coordinates u, with counters.

    ``v = u / scale``: with the features' standard deviations as scale, the search is the same whatever
    units the features come in. With no scale u is v itself, as in the paper.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        gamma: float = 1.0,
        method: str = "exact",
        eps: float | None = None,
        penalty: bool = True,
        scale: Floats | None = None,
    ) -> None:
        self.rows = rows
        self.penalty = penalty
        self.scale = np.ones(rows.n_features) if scale is None else scale
        self._divergence = divergence_by(rows, gamma, method, eps)
        self.n_evaluations = 0
        self.n_exponentials = 0

    def evaluate(self, u: Floats) -> Evaluation:
        """D and its gradient by u, without the penalty."""
        evaluation = self._divergence.evaluate(u / self.scale)
        self.n_evaluations += 1
        self.n_exponentials += evaluation.n_exponentials
        return Evaluation(
            evaluation.divergence,
            evaluation.gradient / self.scale,
            evaluation.n_exponentials,
            evaluation.floored,
        )

    def penalise(self, u: Floats, evaluation: Evaluation) -> tuple[float, Floats]:
        """What an unconstrained optimiser maximises, and its gradient."""
        if not self.penalty:
            return evaluation.divergence, evaluation.gradient
        excess = float(u @ u) - 1
        return evaluation.divergence - excess**2, evaluation.gradient - 4 * excess * u


def divergence_by(rows: Rows, gamma: float, method: str, eps: float | None) -> PairwiseDivergence:
    """The evaluator for a method's name."""
    return PairwiseDivergence(rows, gamma, METHODS[method](eps if eps is not None else math.nan))
