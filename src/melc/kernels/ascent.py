"""L-BFGS along the unit sphere, in steps of one evaluation, and a whole ascent on the grid.

The state of one ascent is four vectors (the point, its gradient in the tangent plane, the search direction, the trial
point), the last pairs of steps and changes of the gradient, and a few numbers. :func:`advance` updates it with the
value and the gradient at the trial point.

Plain loops throughout: expressions of arrays take numba several times as long to compile.
"""

import math

import numpy as np
from numba import njit

from melc.kernels.flags import UNCHECKED, inlined
from melc.kernels.grid import grid_divergence

# Number of pairs that an ascent keeps.
PAIRS = 10
# Rows of its vectors.
POINT, GRADIENT, DIRECTION, TRIAL = range(4)
# Its numbers: the value at the point, and the slope and the step length of the line search.
VALUE, SLOPE, STEP = range(3)
# Its counts: steps tried along the line, pairs kept, position of the next pair, iterations, evaluations, iterations in
# a row without progress, and the status.
TRIES, KEPT, NEXT, ITERATIONS, EVALUATIONS, IDLE, STATUS = range(7)
# The values of the status. HANDED_OVER: the grid has no value at the trial point.
RUNNING, CONVERGED, SETTLED, STALLED, LIMITED, HANDED_OVER = range(6)

_ARMIJO = 1e-4
_MOST_TRIES = 12
# The longest step, in radians, and the first one.
_MOST_ANGLE, _FIRST_ANGLE = 0.5, 0.2
# Least curvature of a pair that is kept, relative to the change of the gradient.
_LEAST_CURVATURE = 1e-10


@njit(**UNCHECKED)
def _dot(a, b):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit(**UNCHECKED)
def _add(a, factor, b):
    """a += factor · b."""
    for j in range(len(a)):
        a[j] += factor * b[j]


def keep_pair(vectors, gradient, pairs, curvatures, counts):
    """Keep the last step and the change of the (negative) gradient along it, unless the curvature is not positive."""
    point, before, trial = vectors[POINT], vectors[GRADIENT], vectors[TRIAL]
    product, square = 0.0, 0.0
    for j in range(len(gradient)):
        change = before[j] - gradient[j]
        product += (trial[j] - point[j]) * change
        square += change * change
    if not product > _LEAST_CURVATURE * square:
        return
    k = counts[NEXT]
    steps, changes = pairs[0, k], pairs[1, k]
    for j in range(len(gradient)):
        steps[j] = trial[j] - point[j]
        changes[j] = before[j] - gradient[j]
    curvatures[k] = 1 / product
    counts[NEXT] = (k + 1) % len(curvatures)
    counts[KEPT] = min(counts[KEPT] + 1, len(curvatures))


def choose_direction(vectors, pairs, curvatures, counts):
    """The two-loop recursion of L-BFGS, in the tangent plane."""
    point, gradient, direction, steps, changes = vectors[0], vectors[1], vectors[2], pairs[0], pairs[1]
    n, kept, end = len(curvatures), counts[KEPT], counts[NEXT]
    alphas = np.empty(n)
    factor = _FIRST_ANGLE / math.sqrt(_dot(gradient, gradient))
    for j in range(len(gradient)):
        direction[j] = gradient[j]
    for back in range(kept):
        k = (end - back - 1) % n
        alphas[k] = curvatures[k] * _dot(steps[k], direction)
        _add(direction, -alphas[k], changes[k])
        if back == 0:
            factor = 1 / (curvatures[k] * _dot(changes[k], changes[k]))
    for j in range(len(direction)):
        direction[j] *= factor
    for forth in range(kept):
        k = (end - kept + forth) % n
        _add(direction, alphas[k] - curvatures[k] * _dot(changes[k], direction), steps[k])
    _add(direction, -_dot(direction, point), point)


_keep_pair, _choose_direction = inlined(keep_pair), inlined(choose_direction)


@njit(**UNCHECKED)
def advance(value, gradient, vectors, numbers, counts, pairs, curvatures, history, tol, progress):
    """Take in the value and the gradient at the trial point, and choose the next one.

    An ascent has converged when no component of the gradient in the tangent plane is above ``tol``, and has settled
    when two iterations in a row gained less than ``progress`` of the value. ``history`` takes the value after every
    iteration; its length is the limit of iterations.
    """
    point, tangent, direction, trial = vectors[0], vectors[1], vectors[2], vectors[3]
    before, slope, step, iterations = numbers[VALUE], numbers[SLOPE], numbers[STEP], counts[ITERATIONS]
    counts[EVALUATIONS] += 1
    if iterations >= 0 and not value >= before + _ARMIJO * step * slope:
        counts[TRIES] += 1
        if counts[TRIES] > _MOST_TRIES:
            counts[STATUS] = STALLED
            return
        # The maximum of the parabola through both values and the slope.
        missing = 2 * (slope * step - (value - before))
        best = slope * step * step / missing if missing > 0 else 0.5 * step
        step = min(max(best, 0.1 * step), 0.5 * step)
    else:
        _add(gradient, -_dot(gradient, trial), trial)
        if iterations >= 0:
            _keep_pair(vectors, gradient, pairs, curvatures, counts)
            history[iterations] = value
            counts[IDLE] = counts[IDLE] + 1 if value - before <= progress * max(abs(value), 1.0) else 0
        largest = 0.0
        for j in range(len(gradient)):
            point[j], tangent[j] = trial[j], gradient[j]
            largest = max(largest, abs(gradient[j]))
        numbers[VALUE] = value
        counts[ITERATIONS] = iterations + 1
        if largest <= tol:
            counts[STATUS] = CONVERGED
        elif counts[IDLE] >= 2:
            counts[STATUS] = SETTLED
        elif iterations + 1 >= len(history):
            counts[STATUS] = LIMITED
        if counts[STATUS] != RUNNING:
            return
        _choose_direction(vectors, pairs, curvatures, counts)
        slope = _dot(direction, gradient)
        if not slope > 0:  # the pairs mislead: steepest ascent instead
            counts[KEPT] = 0
            for j in range(len(gradient)):
                direction[j] = gradient[j]
            slope = _dot(gradient, gradient)
        numbers[SLOPE], counts[TRIES] = slope, 0
        step = min(1.0, _MOST_ANGLE / math.sqrt(_dot(direction, direction)))
    numbers[STEP] = step
    # The point that the step leads to, back on the sphere.
    square = 0.0
    for j in range(len(trial)):
        trial[j] = point[j] + step * direction[j]
        square += trial[j] * trial[j]
    for j in range(len(trial)):
        trial[j] /= math.sqrt(square)


@njit(**UNCHECKED)
def climb(
    XT, n_x, weights, totals, factors, vectors, numbers, counts, pairs, curvatures, history, limits
):  # fmt: skip
    """A whole ascent on the grid from the trial point, over rows whose features are the rows of XT.

    ``limits`` are the tolerance of the gradient, relative to D where that is below one, and of progress.
    """
    n_features, n_rows = XT.shape
    z, w = np.empty(n_rows, XT.dtype), np.empty(n_rows, XT.dtype)
    point, gradient = np.empty(n_features, XT.dtype), np.empty(n_features)
    while counts[STATUS] == RUNNING:
        for j in range(n_features):
            point[j] = vectors[TRIAL, j]
        np.dot(point, XT, z)
        value = grid_divergence(z, n_x, weights, totals, factors, w)
        if not value == value:
            counts[STATUS] = HANDED_OVER
            return
        for j in range(n_features):
            column, total = XT[j], 0.0  # in double precision, so that the order of rows does not matter
            for i in range(n_rows):
                total += w[i] * column[i]
            gradient[j] = total
        tol = limits[0] * min(1.0, max(value, 1e-4))
        advance(value, gradient, vectors, numbers, counts, pairs, curvatures, history, tol, limits[1])
