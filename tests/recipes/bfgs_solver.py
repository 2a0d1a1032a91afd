"""BFGS of SciPy as a solver."""

from scipy.optimize import minimize

from melc.fit.solvers import BY_GRADIENT, NO_BETTER_POINT, Result, Trace, limit_reached


def bfgs(trace: Trace, max_iter: int, tol: float, progress: float) -> Result:
    """Run SciPy's BFGS, which stops by the gradient only and ignores ``progress``."""
    options = {"maxiter": max_iter, "gtol": tol}
    found = minimize(trace, trace.start, jac=True, method="BFGS", callback=trace.note_iteration, options=options)
    reason = {0: BY_GRADIENT, 1: limit_reached(max_iter)}.get(found.status, NO_BETTER_POINT)
    return trace.result(int(found.nit), found.status == 0, reason)
