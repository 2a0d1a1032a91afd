"""L-BFGS along the unit sphere, as a machine that asks for a value and a gradient and is told them.

The state of one ascent is four vectors (the point, its gradient in the tangent plane, the direction searched, the point
to be tried), the last pairs of steps and changes of the gradient, and a few numbers. One function, :func:`advance`,
moves it on by one evaluation, so that an ascent can run inside compiled code, or by calls from Python.

Plain loops throughout: expressions of arrays take numba several times as long to compile.
"""

import math

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE
from melc.kernels.grid import GRID, grid_divergence
from melc.kernels.rows import project_columns, pull_columns

# Pairs that an ascent remembers.
PAIRS = 10
# Rows of its vectors.
POINT, GRADIENT, DIRECTION, TRIAL = range(4)
# Its numbers: the value at the point, and of the line search the slope and the length of the step.
VALUE, SLOPE, STEP = range(3)
# Its counts: steps tried along the line, pairs that are remembered, where the next one goes, iterations, evaluations,
# iterations in a row without progress, and how it stands.
TRIES, REMEMBERED, NEXT, ITERATIONS, EVALUATIONS, IDLE, STATUS = range(7)
# How it stands.
RUNNING, CONVERGED, SETTLED, STALLED, LIMITED, HANDED_OVER = range(6)

_ARMIJO = 1e-4
_MOST_TRIES = 12
# The longest step, in radians, and the first one.
_MOST_ANGLE, _FIRST_ANGLE = 0.5, 0.2
# Curvature that is worth remembering, relative to the change of the gradient.
_LEAST_CURVATURE = 1e-10


@njit(**COMPILE)
def _dot(a, b):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit(**COMPILE)
def _add(a, factor, b):
    """a += factor · b."""
    for j in range(len(a)):
        a[j] += factor * b[j]


@njit(**COMPILE)
def _put_trial(vectors, numbers):
    """The point that the step leads to, back on the sphere."""
    trial = vectors[TRIAL]
    for j in range(len(trial)):
        trial[j] = vectors[POINT, j]
    _add(trial, numbers[STEP], vectors[DIRECTION])
    length = math.sqrt(_dot(trial, trial))
    for j in range(len(trial)):
        trial[j] /= length


@njit(**COMPILE)
def remember(vectors, gradient, pairs, curvatures, counts):
    """Keep the last step and the change of the (negative) gradient that it made."""
    product, square = 0.0, 0.0
    for j in range(len(gradient)):
        change = vectors[GRADIENT, j] - gradient[j]
        product += (vectors[TRIAL, j] - vectors[POINT, j]) * change
        square += change * change
    if not product > _LEAST_CURVATURE * square:
        return
    k = counts[NEXT]
    for j in range(len(gradient)):
        pairs[0, k, j] = vectors[TRIAL, j] - vectors[POINT, j]
        pairs[1, k, j] = vectors[GRADIENT, j] - gradient[j]
    curvatures[k] = 1 / product
    counts[NEXT] = (k + 1) % len(curvatures)
    counts[REMEMBERED] = min(counts[REMEMBERED] + 1, len(curvatures))


@njit(**COMPILE)
def choose_direction(vectors, pairs, curvatures, counts):
    """The two-loop recursion of L-BFGS, in the tangent plane."""
    point, gradient, direction = vectors[POINT], vectors[GRADIENT], vectors[DIRECTION]
    n = len(curvatures)
    alphas = np.empty(n)
    for j in range(len(gradient)):
        direction[j] = gradient[j]
    for back in range(1, counts[REMEMBERED] + 1):
        k = (counts[NEXT] - back) % n
        alphas[k] = curvatures[k] * _dot(pairs[0, k], direction)
        _add(direction, -alphas[k], pairs[1, k])
    if counts[REMEMBERED] > 0:
        k = (counts[NEXT] - 1) % n
        factor = 1 / (curvatures[k] * _dot(pairs[1, k], pairs[1, k]))
    else:
        factor = _FIRST_ANGLE / math.sqrt(_dot(gradient, gradient))
    for j in range(len(direction)):
        direction[j] *= factor
    for back in range(counts[REMEMBERED], 0, -1):
        k = (counts[NEXT] - back) % n
        beta = curvatures[k] * _dot(pairs[1, k], direction)
        _add(direction, alphas[k] - beta, pairs[0, k])
    _add(direction, -_dot(direction, point), point)


@njit(**COMPILE)
def advance(value, gradient, vectors, numbers, counts, pairs, curvatures, history, tol, progress):
    """Take in the value and the gradient at the trial point, and decide on the next one.

    An ascent has converged when no component of the gradient in the tangent plane is above ``tol``, and has settled
    when two iterations in a row gained less than ``progress`` of the value. ``history`` takes the value after every
    iteration; its length is the limit of iterations.
    """
    counts[EVALUATIONS] += 1
    is_first = counts[ITERATIONS] < 0
    if not is_first and not value >= numbers[VALUE] + _ARMIJO * numbers[STEP] * numbers[SLOPE]:
        counts[TRIES] += 1
        if counts[TRIES] > _MOST_TRIES:
            counts[STATUS] = STALLED
            return
        # The maximum of the parabola through both values and the slope.
        step, slope = numbers[STEP], numbers[SLOPE]
        missing = 2 * (slope * step - (value - numbers[VALUE]))
        best = slope * step * step / missing if missing > 0 else 0.5 * step
        numbers[STEP] = min(max(best, 0.1 * step), 0.5 * step)
        _put_trial(vectors, numbers)
        return
    _add(gradient, -_dot(gradient, vectors[TRIAL]), vectors[TRIAL])
    if not is_first:
        remember(vectors, gradient, pairs, curvatures, counts)
        history[counts[ITERATIONS]] = value
        idle = value - numbers[VALUE] <= progress * max(abs(value), 1.0)
        counts[IDLE] = counts[IDLE] + 1 if idle else 0
    largest = 0.0
    for j in range(len(gradient)):
        vectors[POINT, j] = vectors[TRIAL, j]
        vectors[GRADIENT, j] = gradient[j]
        largest = max(largest, abs(gradient[j]))
    numbers[VALUE] = value
    counts[ITERATIONS] += 1
    if largest <= tol:
        counts[STATUS] = CONVERGED
    elif counts[IDLE] >= 2:
        counts[STATUS] = SETTLED
    elif counts[ITERATIONS] >= len(history):
        counts[STATUS] = LIMITED
    else:
        choose_direction(vectors, pairs, curvatures, counts)
        slope = _dot(vectors[DIRECTION], gradient)
        if not slope > 0:  # what is remembered misleads: steepest ascent
            counts[REMEMBERED] = 0
            for j in range(len(gradient)):
                vectors[DIRECTION, j] = gradient[j]
            slope = _dot(gradient, gradient)
        numbers[SLOPE], counts[TRIES] = slope, 0
        length = math.sqrt(_dot(vectors[DIRECTION], vectors[DIRECTION]))
        numbers[STEP] = min(1.0, _MOST_ANGLE / length)
        _put_trial(vectors, numbers)


@njit(**GRID)
def climb(
    XT, n_x, weights, step, totals, factors, coarsest, vectors, numbers, counts, pairs, curvatures, history, limits
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
        project_columns(XT, point, 0, n_rows, z)
        value = grid_divergence(z, n_x, weights, step, totals, factors, coarsest, w)
        if np.isnan(value):
            counts[STATUS] = HANDED_OVER
            return
        for j in range(n_features):
            gradient[j] = 0.0
        pull_columns(XT, w, 0, n_rows, gradient)
        tol = limits[0] * min(1.0, max(value, 1e-4))
        advance(value, gradient, vectors, numbers, counts, pairs, curvatures, history, tol, limits[1])
