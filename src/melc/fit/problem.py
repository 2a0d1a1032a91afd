"""What is maximised, and how: the settings of a fit, objectives made from rows, and the tolerances of the solver."""

from dataclasses import dataclass

from melc.arrays import Floats
from melc.data.source import Rows
from melc.fit.coordinates import MOST_WHITENED_FEATURES, Coordinates
from melc.fit.selection import Judge
from melc.fit.solvers import LONG_RUN, SCIPY_PROGRESS, SOLVERS, Result, maximise, sharpen
from melc.fit.validation import MOST_SORTED_NUMBERS
from melc.objective import Objective
from melc.objective.shrinkage import Shrinkage
from melc.sums import SUMS

# The optimum of a sample differs from that of the next, so neither its search nor its sums need high accuracy.
_COARSE_TOL, _COARSE_EPS = 1e-2, 1e-3
# Smallest relative change of a smooth objective that counts as progress, a little more than its rounding.
LEAST_PROGRESS = 1e-11
# With more features than this, the steps that make a result more accurate would be too many.
_MOST_SHARPENED_FEATURES = 200


@dataclass(frozen=True)
class Settings:
    """The settings of a fit: parameters of :class:`melc.MELC` with the same names."""

    gamma: float = 1.0
    method: str = "moments"
    eps: float = 1e-6
    solver: str = "lbfgs"
    n_init: int = 10
    max_iter: int = 200
    tol: float = 1e-5
    shrinkage: float | str | None = None
    selection: str = "divergence"
    bandwidth: float | str = "silverman"
    max_features: int | None = None
    whole_weights: int | None = None

    @property
    def has_grid(self) -> bool:
        """Whether the starts may be searched on a grid: both the method and the solver must allow it."""
        return SUMS[self.method].has_grid and SOLVERS[self.solver].has_grid


@dataclass(frozen=True)
class Problem:
    """A search problem: how to make an objective from rows, and how to maximise it.

    With a ``judge``, the best direction is the one that it chooses; otherwise the one of the highest divergence.
    """

    settings: Settings
    coordinates: Coordinates
    shrinkage: Shrinkage | None = None
    judge: Judge | None = None

    @property
    def gamma(self) -> float:
        return self.settings.gamma

    @property
    def smooth(self) -> bool:
        """Whether the objective is smooth. Objectives with jumps have no useful curvature."""
        return SUMS[self.settings.method].smooth

    def objective(self, rows: Rows, gamma: float | None = None, coarse: bool = False) -> Objective:
        """Return the objective of some rows, with another ``gamma`` or with ``coarse`` sums if asked for.

        Only an error that does not depend on the scale of the data can be made larger.
        """
        settings = self.settings
        coarse = coarse and SUMS[settings.method].scale_free
        return Objective(
            rows,
            gamma=self.gamma if gamma is None else gamma,
            method=settings.method,
            eps=max(settings.eps, _COARSE_EPS) if coarse else settings.eps,
            scale=self.coordinates.scale,
            shrinkage=self.shrinkage,
        )

    def gamma_for(self, sample: Rows, rows: Rows) -> float:
        """Return the gamma with which the kernels of a sample are as wide as those of all rows."""
        return self.gamma * (sum(sample.total_weights) / sum(rows.total_weights)) ** 0.2

    def solve(self, objective: Objective, start: Floats, coarse: bool = False) -> Result:
        """Maximise the objective from one start, to the tolerance of the problem or, if ``coarse``, to a larger one.

        Unless ``coarse``, a smooth objective is maximised until the gradient is small enough: when its value hardly
        changes any more, the direction can still change by 1e-5.
        """
        settings, few_features = self.settings, len(self.coordinates.scale) <= MOST_WHITENED_FEATURES
        return maximise(
            objective,
            start,
            solver=settings.solver,
            max_iter=settings.max_iter,
            tol=max(_COARSE_TOL, settings.tol) if coarse else settings.tol,
            progress=LEAST_PROGRESS if self.smooth and not coarse else SCIPY_PROGRESS,
            curvature=self.coordinates.white.matrix if few_features else None,
        )

    def sharpen(self, objective: Objective, best: Result) -> Result:
        """Return the best run made more accurate by :func:`melc.fit.solvers.sharpen`, if the objective is smooth."""
        if not self.smooth:
            return best
        shortest = 0 if self.needs_sharpening(objective.rows) else LONG_RUN
        return sharpen(objective, best, shortest)

    def needs_sharpening(self, rows: Rows) -> bool:
        """Return whether a run may end at different bits for the same data.

        A run ends anywhere within its tolerance. Small data are searched in one order of rows and of memory, and end at
        the same bits. Larger ones may come in another order, as a sparse matrix or from a cluster, and the search may
        lead elsewhere by 1e-6. With very many features the steps that mend it cost too much.
        """
        return rows.n_rows * rows.n_features > MOST_SORTED_NUMBERS and rows.n_features <= _MOST_SHARPENED_FEATURES
