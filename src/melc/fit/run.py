"""A run of a solver: what it minimises, what it has seen, and its result."""

from dataclasses import dataclass

import numpy as np

from melc.arrays import Floats
from melc.objective import Objective

# Smallest relative change of the objective that counts as progress (SciPy's default for L-BFGS-B).
SCIPY_PROGRESS = 2.2e-9

STALLED = "stalled: the line search found no better point"
BY_GRADIENT = "converged: the gradient is below tol"
BY_PROGRESS = "converged: the divergence no longer changes"
BY_LIKELIHOOD = "chosen by likelihood: a linear direction"


def limit_reached(max_iter: int) -> str:
    """Return the reason of a run that ended at its limit."""
    return f"stopped: the limit of {max_iter} iterations was reached"


@dataclass(frozen=True)
class Result:
    """The result of one run of a solver from one start.

    ``direction``, of shape (n_features,), has length one in the units of the features. ``norm`` is the length of the
    final u in the coordinates of the optimiser. ``history`` is the best divergence after each iteration, and ``reason``
    says why the run ended.
    """

    direction: Floats
    divergence: float
    norm: float
    n_iter: int
    n_evaluations: int
    n_exponentials: int
    converged: bool
    reason: str
    history: tuple[float, ...]


class Trace:
    """The function that a solver minimises. It records the best point, which is the result even if a line search fails.

    With a ``curvature`` matrix R, of shape (d, d), the solver works in coordinates p with u = origin + R p.
    """

    def __init__(self, objective: Objective, start: Floats, curvature: Floats | None = None) -> None:
        self.objective = objective
        self.curvature = curvature
        self.origin = start
        self.best_value = -np.inf
        self.best_u = np.empty(0)
        self.best_divergence = -np.inf
        self.history: list[float] = []
        self._evaluations_before = objective.n_evaluations
        self._exponentials_before = objective.n_exponentials

    @property
    def start(self) -> Floats:
        return self.origin if self.curvature is None else np.zeros(len(self.origin))

    def __call__(self, p: Floats) -> tuple[float, Floats]:
        """Return the negated objective and its gradient with respect to p, shape (d,)."""
        u = p if self.curvature is None else self.origin + self.curvature @ p
        evaluation = self.objective.evaluate(u)
        value, gradient = self.objective.penalise(u, evaluation)
        if value > self.best_value:
            self.best_value, self.best_u, self.best_divergence = value, u.copy(), evaluation.divergence
        return -value, -gradient if self.curvature is None else -(self.curvature.T @ gradient)

    def note_iteration(self, _: object) -> None:
        self.history.append(self.best_divergence)

    def has_settled(self) -> bool:
        """Return whether the last iteration increased the divergence by less than SciPy counts as progress."""
        if len(self.history) < 2:
            return False
        gain = self.history[-1] - self.history[-2]
        return gain <= SCIPY_PROGRESS * max(abs(self.history[-1]), 1.0)

    def result(self, n_iter: int, converged: bool, reason: str) -> Result:
        return Result(
            direction=self.objective.direction_of(self.best_u),
            divergence=self.best_divergence,
            norm=float(np.linalg.norm(self.best_u)),
            n_iter=n_iter,
            n_evaluations=self.objective.n_evaluations - self._evaluations_before,
            n_exponentials=self.objective.n_exponentials - self._exponentials_before,
            converged=converged,
            reason=reason,
            history=tuple(self.history),
        )
