"""The Cauchy-Schwarz divergence of two projected classes, with its gradient, and the penalty.

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

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse

from melc.arrays import Floats, unit
from melc.data.source import Rows
from melc.objective.base import Divergence, Evaluation
from melc.objective.certified import CertifiedDivergence
from melc.objective.moments import MomentsDivergence
from melc.objective.pairwise import PairwiseDivergence
from melc.objective.shrinkage import Shrinkage
from melc.sums import SUMS, Exact

Make = Callable[[Rows, float, float, Shrinkage | None], Divergence]

# Up to this many rows all pairs are summed: an evaluation takes 0.12 to 0.28 ms. By bins of one width it takes 0.25 ms,
# and 1.5 to 2.1 ms where these cannot certify the error, as often with fewer rows than features.
_FEW_ROWS = 400
# Up to this many rows, dense and in memory, all projections are computed in one call.
_MAX_ROWS_PER_CALL = 20_000


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
