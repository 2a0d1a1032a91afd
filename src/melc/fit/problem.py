"""What is maximised, and how: objectives made from rows, and a solver with its tolerances."""

from collections.abc import Callable
from dataclasses import dataclass

from melc.arrays import Floats
from melc.data.source import Rows
from melc.fit.run import SCIPY_PROGRESS, Result
from melc.fit.solvers import LONG_RUN, best_of, maximise, sharpen
from melc.fit.validation import MOST_SORTED_NUMBERS
from melc.objective import Objective

# The optimum of a sample differs from that of the next, so neither its search nor its sums need high accuracy.
COARSE_TOL, COARSE_EPS = 1e-2, 1e-3
# Smallest relative change of a smooth objective that counts as progress, a little more than its rounding.
_LEAST_PROGRESS = 1e-11
# With more features than this, the steps that make a result more accurate would be too many.
_MOST_SHARPENED_FEATURES = 200


@dataclass(frozen=True)
class Problem:
    """How to make an objective from rows, ``objective(rows, gamma, least_eps)``, and how to maximise it."""

    objective: Callable[[Rows, float, float], Objective]
    gamma: float
    solver: str
    max_iter: int
    tol: float
    smooth: bool  # False for objectives with jumps, which have no useful curvature
    whitening: Callable[[], Floats | None] = lambda: None  # coordinates of the search, made when they are needed
    choose: Callable[[list[Floats]], int] | None = None  # the index of the best of some directions; None: by divergence

    def best_of(self, runs: list[Result]) -> Result:
        """Return the best of some runs."""
        return best_of(runs) if self.choose is None else runs[self.choose([run.direction for run in runs])]

    def solve(self, objective: Objective, start: Floats, tol: float | None = None) -> Result:
        """Maximise the objective from one start, to the tolerance of the problem or to a larger ``tol``.

        Without ``tol`` a smooth objective is maximised until the gradient is small enough: when its value hardly
        changes any more, the direction can still change by 1e-5.
        """
        to_the_end = tol is None and self.smooth
        return maximise(
            objective,
            start,
            solver=self.solver,
            max_iter=self.max_iter,
            tol=self.tol if tol is None else max(tol, self.tol),
            progress=_LEAST_PROGRESS if to_the_end else SCIPY_PROGRESS,
            curvature=self.whitening(),
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

    def gamma_for(self, sample: Rows, rows: Rows) -> float:
        """Return the gamma with which the kernels of a sample are as wide as those of all rows."""
        return self.gamma * (sum(sample.total_weights) / sum(rows.total_weights)) ** 0.2

    def roughly(self, sample: Rows, rows: Rows, width: float = 1.0) -> Objective:
        """Return the objective of a sample, with ``width`` times the bandwidth of all rows."""
        return self.objective(sample, width * self.gamma_for(sample, rows), COARSE_EPS)
