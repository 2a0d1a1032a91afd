"""The solvers, the function that they minimise, and the result of a run."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from melc.arrays import Floats
from melc.objective import Objective

# Smallest relative change of the objective that counts as progress (SciPy's default for L-BFGS-B).
SCIPY_PROGRESS = 2.2e-9
# Runs whose divergences differ by less than this, relatively, are taken to have reached the same optimum.
_SAME_OPTIMUM = 5e-10

# Armijo's condition: a step must gain at least this part of what the slope predicts; and the most halvings of a step.
_ARMIJO, _MOST_HALVINGS = 1e-4, 40
# Evaluations of L-BFGS-B for each iteration that it may make; it needs about one.
_EVALUATIONS_PER_ITERATION = 20

# Differences in rounding grow along a run, about tenfold in fifteen iterations. In runs shorter than this they stay
# below 1e-10.
LONG_RUN = 60
# Factor by which sharpen reduces the gradient after a long run, and the step of its finite differences.
_SHARPENED_GRADIENT = 1e-4
_DIFFERENCE = 1e-5

NO_BETTER_POINT = "stalled: the line search found no better point"
BY_GRADIENT = "converged: the gradient is below tol"
BY_PROGRESS = "converged: the divergence no longer changes"
BY_LIKELIHOOD = "chosen by likelihood: a linear direction"


def limit_reached(max_iter: int) -> str:
    """Return the reason for which a run ends at its limit of iterations."""
    return f"stopped: the limit of {max_iter} iterations was reached"


@dataclass(frozen=True)
class Result:
    """The result of one run of a solver from one start.

    ``direction``, of shape (n_features,), has length one in the units of the features. ``norm`` is the length of the
    final u in the coordinates of the optimiser. ``history`` is the best divergence after each iteration. ``reason``
    says why the run ended, and ``algorithm`` which algorithm made it.
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
    algorithm: str = ""


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


def _lbfgs(trace: Trace, max_iter: int, tol: float, progress: float) -> Result:
    """Run SciPy's L-BFGS-B, without bounds."""
    options = {"maxiter": max_iter, "maxfun": _EVALUATIONS_PER_ITERATION * max_iter, "gtol": tol, "ftol": progress}
    found = minimize(trace, trace.start, jac=True, method="L-BFGS-B", callback=trace.note_iteration, options=options)
    if found.status == 1 and trace.has_settled():  # the limit was reached, but by SciPy's default it has converged
        return trace.result(int(found.nit), True, BY_PROGRESS)
    by_gradient = "PROJECTED GRADIENT" in str(found.message).upper()
    converged = BY_GRADIENT if by_gradient else BY_PROGRESS
    reason = {0: converged, 1: limit_reached(max_iter)}.get(found.status, NO_BETTER_POINT)
    return trace.result(int(found.nit), found.status == 0, reason)


def _cg(trace: Trace, max_iter: int, tol: float, progress: float) -> Result:
    """Run SciPy's nonlinear conjugate gradients, which stop by the gradient only and ignore ``progress``."""
    options = {"maxiter": max_iter, "gtol": tol}
    found = minimize(trace, trace.start, jac=True, method="CG", callback=trace.note_iteration, options=options)
    reason = {0: BY_GRADIENT, 1: limit_reached(max_iter)}.get(found.status, NO_BETTER_POINT)
    return trace.result(int(found.nit), found.status == 0, reason)


def _sphere(trace: Trace, max_iter: int, tol: float, progress: float) -> Result:
    """Run gradient ascent on the unit sphere, with backtracking until Armijo's condition holds."""
    trace.curvature = None  # only in the original coordinates the constraint is a sphere
    u = trace.start
    value, gradient = trace(u)
    step = 1.0
    for n_iter in range(max_iter):
        tangent = gradient - (gradient @ u) * u
        if np.max(np.abs(tangent)) <= tol:
            return trace.result(n_iter, True, BY_GRADIENT)
        slope = float(tangent @ tangent)
        for _ in range(_MOST_HALVINGS):
            candidate = u - step * tangent
            candidate /= np.linalg.norm(candidate)
            new_value, new_gradient = trace(candidate)
            if new_value <= value - _ARMIJO * step * slope:
                break
            step /= 2
        else:
            return trace.result(n_iter, False, NO_BETTER_POINT)
        gain = value - new_value
        u, value, gradient = candidate, new_value, new_gradient
        trace.note_iteration(None)
        if gain <= progress * max(abs(value), 1.0):
            return trace.result(n_iter + 1, True, BY_PROGRESS)
        step *= 2
    return trace.result(max_iter, False, limit_reached(max_iter))


@dataclass(frozen=True)
class Solver:
    """A solver: its name in results, and the function that runs it.

    ``has_grid`` says whether the starts may be searched by :mod:`melc.fit.grid_search` in its place, where the method
    of the sums allows that.
    """

    algorithm: str
    run: Callable[[Trace, int, float, float], Result]
    has_grid: bool = False


# Every solver by its name, which ``MELC(solver=...)`` takes.
SOLVERS = {
    "lbfgs": Solver("L-BFGS-B of SciPy", _lbfgs, has_grid=True),
    "cg": Solver("nonlinear conjugate gradients of SciPy", _cg),
    "sphere": Solver("gradient ascent on the unit sphere", _sphere),
}


def maximise(
    objective: Objective,
    start: Floats,
    *,
    solver: str = "lbfgs",
    max_iter: int = 200,
    tol: float = 1e-5,
    progress: float = SCIPY_PROGRESS,
    curvature: Floats | None = None,
) -> Result:
    """Maximise the divergence from one start, a direction of shape (n_features,) in the units of the features.

    A run ends when no component of the gradient exceeds ``tol``, or when the relative change of the objective is below
    ``progress`` (not for "cg").

    ``curvature`` is a matrix R, of shape (n_features, n_features), with R Rᵀ about the inverse of the negative Hessian
    at the start. "lbfgs" and "cg" then work in coordinates in which the curvature is about the same in all directions.

    Examples
    --------
    >>> import numpy as np
    >>> from melc.objective import Objective
    >>> from melc.data.memory import MemoryRows
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 50).astype(np.int8)
    >>> X = rng.normal(size=(100, 2)) + 4 * codes[:, None] * [1, 0]
    >>> result = maximise(Objective(MemoryRows(X, codes)), np.array([1.0, 1.0]))
    >>> result.converged, bool(abs(result.direction[0]) > 0.9)
    (True, True)
    """
    trace = Trace(objective, objective.coordinates_of(start), curvature)
    return replace(SOLVERS[solver].run(trace, max_iter, tol, progress), algorithm=SOLVERS[solver].algorithm)


def sharpen(objective: Objective, found: Result, shortest: int = LONG_RUN) -> Result:
    """Return the result of a long converged run, made more accurate by Newton steps; other results unchanged.

    A run is long if it has at least ``shortest`` iterations.

    A run ends anywhere within its tolerance, and after many iterations rounding decides where: the same rows, dense and
    sparse, may end 1e-5 apart. Newton steps s with −H s = g reduce the gradient to 1e-4 of its size, with at most about
    as many evaluations as the run had. They use only gradients, because the objective itself changes by less than its
    rounding. The new evaluations are added to the count, the number of iterations stays the same.
    """
    if not found.converged or found.n_iter < shortest:
        return found
    before = objective.n_evaluations, objective.n_exponentials
    last = objective.n_evaluations + max(found.n_evaluations, LONG_RUN)
    u = found.norm * objective.coordinates_of(found.direction)
    evaluation = objective.evaluate(u)
    value, gradient = objective.penalise(u, evaluation)
    enough = _SHARPENED_GRADIENT * float(np.linalg.norm(gradient))
    while np.linalg.norm(gradient) > enough and objective.n_evaluations < last:
        moved = u + _newton_step(objective, u, gradient, 0.5 * enough, last)
        evaluation_there = objective.evaluate(moved)
        value_there, gradient_there = objective.penalise(moved, evaluation_there)
        lower = value_there < value - _SAME_OPTIMUM * max(abs(value), 1.0)
        if lower or not np.linalg.norm(gradient_there) < np.linalg.norm(gradient):
            break
        u, evaluation, value, gradient = moved, evaluation_there, value_there, gradient_there
    return replace(
        found,
        direction=objective.direction_of(u),
        divergence=evaluation.divergence,
        norm=float(np.linalg.norm(u)),
        n_evaluations=found.n_evaluations + objective.n_evaluations - before[0],
        n_exponentials=found.n_exponentials + objective.n_exponentials - before[1],
        history=(*found.history[:-1], evaluation.divergence),
    )


def _newton_step(objective: Objective, u: Floats, gradient: Floats, enough: float, last: int) -> Floats:
    """Return s, of shape (d,), with −H s = g, by conjugate gradients. Products with H are differences of the gradient.

    The iteration ends when the residual is at most ``enough``, when the objective has made ``last`` evaluations, or
    when the objective is not concave.
    """
    step, left = np.zeros(len(u)), gradient.copy()
    towards, square = left, float(left @ left)
    while np.sqrt(square) > enough and objective.n_evaluations < last:
        h = _DIFFERENCE / np.linalg.norm(towards)
        moved = u + h * towards
        product = (gradient - objective.penalise(moved, objective.evaluate(moved))[1]) / h
        curvature = float(towards @ product)
        if not curvature > 0:
            break
        length = square / curvature
        step += length * towards
        left = left - length * product
        square_before, square = square, float(left @ left)
        towards = left + square / square_before * towards
    return step


def best_run(results: list[Result]) -> Result:
    """Return the run with the highest divergence; among equal ones the first that converged, or else the first.

    Divergences that differ by no more than about rounding count as equal, because these runs ended at the same optimum.
    """
    highest = max(result.divergence for result in results)
    enough = highest - _SAME_OPTIMUM * max(abs(highest), 1.0)
    return min((r for r in results if r.divergence >= enough), key=lambda result: not result.converged)
