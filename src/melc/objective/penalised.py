"""The Cauchy-Schwarz divergence of two projected classes, with its gradient, and the penalty.

Formula. With projections z = Xv, class weights W_c (a class's rows, or the sum of their weights), and the
kernel variances ``V_c = (γ (4/(3 W_c))^(1/5))² σ_c²``,

    ip(a, b) = S(a, b; V_a + V_b) / (√(2π(V_a + V_b)) W_a W_b)
    D(v)     = log ip(−,−) + log ip(+,+) − 2 log ip(−,+)

where S is the Gaussian double sum of ``melc.sums``. The gradient is one product ``Xᵀw`` with one weight for every
row: every S depends on v through the projections only, and so do the class variances, whose own
gradient ``(2/W_c) Xᵀ(z − z̄_c)`` folds into the same weights. Nothing of size pairs × d is formed.

Out of the sphere, an optimiser sees ``D(v) − (‖v‖² − 1)²``: D ignores the length of v, the second term
holds it near one.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from melc.arrays import Floats, unit
from melc.data.source import Rows
from melc.objective.base import Divergence, Evaluation
from melc.objective.moments import MomentsDivergence
from melc.objective.pairwise import ExactDivergence, PairwiseDivergence
from melc.objective.shrinkage import Shrinkage
from melc.sums import Bin, Discard, Exact

# Up to this many rows the compiled sum over all pairs is faster than any detour.
_FEW_ROWS = 700
# Up to this many rows one compiled call for everything is over in a moment; beyond, it comes in stretches.
_A_MOMENT = 20_000

METHODS: dict[str, Callable[[Rows, float, float, Shrinkage | None], Divergence]] = {
    "moments": lambda rows, gamma, eps, shrinkage: (
        ExactDivergence(rows, gamma, shrinkage)
        if rows.n_rows <= _FEW_ROWS
        else MomentsDivergence(rows, gamma, eps, shrinkage)
    ),
    "exact": lambda rows, gamma, eps, shrinkage: (
        ExactDivergence(rows, gamma, shrinkage)
        if rows.n_rows <= _A_MOMENT
        else PairwiseDivergence(rows, gamma, Exact(), shrinkage)
    ),
    "discard": lambda rows, gamma, eps, shrinkage: PairwiseDivergence(rows, gamma, Discard(eps), shrinkage),
    "bin": lambda rows, gamma, eps, shrinkage: PairwiseDivergence(rows, gamma, Bin(eps), shrinkage),
}


class Objective:
    """``D(v) − penalty (‖u‖² − 1)²`` in the optimiser's coordinates u, with counters.

    ``v = u / scale``: with the features' standard deviations as scale, the search is the same whatever
    units the features come in, and a feature of infinite scale takes no part. With no scale u is v itself, as in the
    paper.
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
        shrinkage: Shrinkage | None = None,
    ) -> None:
        self.rows = rows
        self.penalty = penalty
        self.scale = np.ones(rows.n_features) if scale is None else scale
        self._divergence = METHODS[method](rows, gamma, np.nan if eps is None else eps, shrinkage)
        self.n_evaluations = 0
        self.n_exponentials = 0

    def searched_from(self, direction: Floats) -> Floats:
        """A direction in the units of the features, in coordinates of the optimiser and of length one there."""
        return unit(direction * np.where(np.isfinite(self.scale), self.scale, 0.0))

    def direction_of(self, u: Floats) -> Floats:
        """The direction of length one in the units of the features."""
        return unit(u / self.scale)

    def evaluate(self, u: Floats) -> Evaluation:
        """D and its gradient by u, without the penalty."""
        evaluation = self._divergence.evaluate(u / self.scale)
        self.n_evaluations += 1
        self.n_exponentials += evaluation.n_exponentials
        return replace(evaluation, gradient=evaluation.gradient / self.scale)

    def penalise(self, u: Floats, evaluation: Evaluation) -> tuple[float, Floats]:
        """What an unconstrained optimiser maximises, and its gradient."""
        if not self.penalty:
            return evaluation.divergence, evaluation.gradient
        excess = float(u @ u) - 1
        return evaluation.divergence - excess**2, evaluation.gradient - 4 * excess * u
