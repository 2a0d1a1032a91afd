"""The scalar formulas of the objective for two classes x and y, shared by all methods. Not compiled: there is no loop.

:mod:`melc.objective.penalised` states the formulas.
"""

import math
from collections import namedtuple

Spread = namedtuple("Spread", ["weight_x", "weight_y", "mean_x", "mean_y", "variance_x", "variance_y"])
Spread.__doc__ = "Total weight, mean and variance of the projections of each class."

Shrunk = namedtuple("Shrunk", ["keep_x", "keep_y", "add_x", "add_y"])
Shrunk.__doc__ = "Shrinkage of each class variance along v: σ² becomes keep · σ² + add."
NO_SHRINKAGE = Shrunk(1.0, 1.0, 0.0, 0.0)


def total_variance(spread):
    """Return the variance of all points along v, both classes together."""
    total = spread.weight_x + spread.weight_y
    a, b = spread.weight_x / total, spread.weight_y / total
    shift = spread.mean_y - spread.mean_x
    return a * spread.variance_x + b * spread.variance_y + a * b * (shift * shift)


def is_floored(spread, shrunk, floor):
    """Return whether a class variance along v is at most ``floor`` times the total variance."""
    return min(shrunk_variances(spread, shrunk)) <= floor * total_variance(spread)


def silverman_factor(weight, gamma):
    """Return the kernel variance divided by the class variance: (γ (4/(3n))^(1/5))², with n the class weight."""
    return (gamma * (4.0 / (3.0 * weight)) ** 0.2) ** 2


def shrunk_variances(spread, shrunk):
    """Return the class variances along v after shrinkage."""
    return (
        shrunk.keep_x * spread.variance_x + shrunk.add_x,
        shrunk.keep_y * spread.variance_y + shrunk.add_y,
    )


def kernel_variances(spread, shrunk, gamma, floor):
    """Return the kernel variances (V_x, V_y). A class variance is taken to be at least ``floor`` · total variance."""
    least = floor * total_variance(spread)
    variance_x, variance_y = shrunk_variances(spread, shrunk)
    return (
        silverman_factor(spread.weight_x, gamma) * max(variance_x, least),
        silverman_factor(spread.weight_y, gamma) * max(variance_y, least),
    )


def assemble_divergence(log_xx, log_yy, log_xy, vx, vy, slope_xx, slope_yy, slope_xy):
    """Return (D, ∂D/∂V_x, ∂D/∂V_y) from the three log sums and the derivative of each by its own variance.

    D = log S_xx + log S_yy − 2 log S_xy + log(V_x + V_y) − ½ log 2V_x − ½ log 2V_y. The factors 2π and W_a W_b cancel
    between the three terms.
    """
    divergence = log_xx + log_yy - 2 * log_xy
    divergence += math.log(vx + vy) - 0.5 * (math.log(2 * vx) + math.log(2 * vy))
    shared = 1 / (vx + vy) - 2 * slope_xy
    return divergence, 2 * slope_xx - 0.5 / vx + shared, 2 * slope_yy - 0.5 / vy + shared


def variance_pull(spread, shrunk, gamma, floor, by_vx, by_vy):
    """Return the part of the gradient that comes from the kernel variances: (own_x, own_y, pooled, by_add_x, by_add_y).

    The gradient weight of a row of class x at z gets ``own_x (z − mean_x) + pooled (z − mean)`` added, times the weight
    of the row; likewise for y. ``pooled`` is not zero where a class variance is below the floor, which is a fraction of
    the variance of all points. by_add_x and by_add_y are the derivatives of D by ``shrunk.add_x`` and ``shrunk.add_y``.
    """
    least = floor * total_variance(spread)
    variance_x, variance_y = shrunk_variances(spread, shrunk)
    by_variance_x = by_vx * silverman_factor(spread.weight_x, gamma)
    by_variance_y = by_vy * silverman_factor(spread.weight_y, gamma)
    own_x, own_y, pooled, by_add_x, by_add_y = 0.0, 0.0, 0.0, 0.0, 0.0
    total = spread.weight_x + spread.weight_y
    if variance_x > least:
        own_x = 2 * by_variance_x * shrunk.keep_x / spread.weight_x
        by_add_x = by_variance_x
    else:
        pooled += 2 * by_variance_x * floor / total
    if variance_y > least:
        own_y = 2 * by_variance_y * shrunk.keep_y / spread.weight_y
        by_add_y = by_variance_y
    else:
        pooled += 2 * by_variance_y * floor / total
    return own_x, own_y, pooled, by_add_x, by_add_y
