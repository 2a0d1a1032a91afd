"""The scalar formulas of the objective, compiled so that every method shares them.

``melc.objective`` states them; here is what they come to for two classes x and y.
"""

from collections import namedtuple

import numpy as np
from numba import njit

Spread = namedtuple("Spread", ["weight_x", "weight_y", "mean_x", "mean_y", "variance_x", "variance_y"])
Spread.__doc__ = "Total weight, mean and variance of the projections of either class."

Shrunk = namedtuple("Shrunk", ["keep_x", "keep_y", "add_x", "add_y"])
Shrunk.__doc__ = "What the variance of either class is multiplied by, and what is added to it."
AS_THEY_ARE = Shrunk(1.0, 1.0, 0.0, 0.0)


@njit(cache=True, nogil=True)
def total_variance(spread):
    """Variance of all points along v, both classes together."""
    total = spread.weight_x + spread.weight_y
    a, b = spread.weight_x / total, spread.weight_y / total
    between = a * b * (spread.mean_y - spread.mean_x) ** 2
    return a * spread.variance_x + b * spread.variance_y + between


@njit(cache=True, nogil=True)
def is_floored(spread, shrunk, floor):
    """Whether a class varies too little along v for a kernel of its own."""
    return min(shrunk_variances(spread, shrunk)) <= floor * total_variance(spread)


@njit(cache=True, nogil=True)
def silverman_factor(weight, gamma):
    """Kernel variance over class variance: (γ (4/(3n))^(1/5))²."""
    return (gamma * (4.0 / (3.0 * weight)) ** 0.2) ** 2


@njit(cache=True, nogil=True)
def shrunk_variances(spread, shrunk):
    """The class variances that count."""
    return (
        shrunk.keep_x * spread.variance_x + shrunk.add_x,
        shrunk.keep_y * spread.variance_y + shrunk.add_y,
    )


@njit(cache=True, nogil=True)
def kernel_variances(spread, shrunk, gamma, floor):
    """V of both classes, with the floor under a class that does not vary."""
    least = floor * total_variance(spread)
    variance_x, variance_y = shrunk_variances(spread, shrunk)
    return (
        silverman_factor(spread.weight_x, gamma) * max(variance_x, least),
        silverman_factor(spread.weight_y, gamma) * max(variance_y, least),
    )


@njit(cache=True, nogil=True)
def assemble_divergence(log_xx, log_yy, log_xy, vx, vy, slope_xx, slope_yy, slope_xy):
    """D, ∂D/∂V_x and ∂D/∂V_y from the log sums and the derivatives of each by its own variance.

    The factors 2π and W_a W_b cancel between the three terms.
    """
    divergence = log_xx + log_yy - 2 * log_xy
    divergence += np.log(vx + vy) - 0.5 * (np.log(2 * vx) + np.log(2 * vy))
    shared = 1 / (vx + vy) - 2 * slope_xy
    return divergence, 2 * slope_xx - 0.5 / vx + shared, 2 * slope_yy - 0.5 / vy + shared


@njit(cache=True, nogil=True)
def variance_pull(spread, shrunk, gamma, floor, by_vx, by_vy):
    """What the kernel variances add to the gradient, as (own_x, own_y, pooled, by_add_x, by_add_y).

    A row of class x at z counts ``own_x (z − mean_x) + pooled (z − mean)``: its class variance is its own, unless
    the floor holds it up, which is a share of the variance of all points. The last two are ∂D by what shrinkage adds.
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
