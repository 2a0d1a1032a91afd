"""L-BFGS along the unit sphere, in steps of one evaluation, and a whole ascent on the grid.

The state of one ascent is a table of vectors, a few numbers and counts, the curvatures of the last pairs of steps and
changes of the gradient, and the values so far. Each step updates it with the value and the gradient at the trial point.

Plain loops throughout, over rows of the one table: expressions of arrays take numba several times as long to compile.
"""

import math

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE, PART, inlined
from melc.kernels.grid import divergence_on_grid, workspace

# Number of pairs that an ascent keeps.
PAIRS = 10
# Rows of the table: the point, its gradient in the tangent plane, the search direction, the trial point and the
# gradient there; then the steps and the changes of the (negative) gradient. They are NumPy integers, since numba would
# compile a function again for each literal that is passed to it.
POINT, GRADIENT, DIRECTION, TRIAL, NEW, FIRST_STEP = (np.int64(row) for row in range(6))
FIRST_CHANGE = np.int64(FIRST_STEP + PAIRS)
# The numbers: the value at the point, and the slope and the step length of the line search.
VALUE, SLOPE, STEP = range(3)
# The counts: steps tried along the line, pairs kept, position of the next pair, iterations, evaluations, iterations in
# a row without progress, and the status.
TRIES, KEPT, NEXT, ITERATIONS, EVALUATIONS, IDLE, STATUS = range(7)
# The values of the status. HANDED_OVER: the grid has no value at the trial point.
RUNNING, CONVERGED, SETTLED, STALLED, LIMITED, HANDED_OVER = range(6)

_ARMIJO = 1e-4  # a step must gain at least this part of what the slope predicts
_MOST_TRIES = 12  # of step lengths along one search direction
# The longest step, in radians, and the first one.
_MOST_ANGLE, _FIRST_ANGLE = 0.5, 0.2
# Least curvature of a pair that is kept, relative to the change of the gradient.
_LEAST_CURVATURE = 1e-10


@njit(**COMPILE)
def _dot(table, a, b):
    total = 0.0
    for j in range(table.shape[1]):
        total += table[a, j] * table[b, j]
    return total


@njit(**COMPILE)
def _add(table, a, factor, b, shrink):
    """Replace row a by shrink · a + factor · b."""
    for j in range(table.shape[1]):
        table[a, j] = shrink * table[a, j] + factor * table[b, j]


def keep_pair(table, counts, curvatures):
    """Keep the last step and the change of the (negative) gradient along it, unless the curvature is not positive."""
    product, square = 0.0, 0.0
    for j in range(table.shape[1]):
        change = table[GRADIENT, j] - table[NEW, j]
        product += (table[TRIAL, j] - table[POINT, j]) * change
        square += change * change
    if product > _LEAST_CURVATURE * square:
        k = counts[NEXT]
        for j in range(table.shape[1]):
            table[FIRST_STEP + k, j] = table[TRIAL, j] - table[POINT, j]
            table[FIRST_CHANGE + k, j] = table[GRADIENT, j] - table[NEW, j]
        curvatures[0, k] = 1 / product
        counts[NEXT] = (k + 1) % PAIRS
        counts[KEPT] = min(counts[KEPT] + 1, PAIRS)


def choose_direction(table, counts, curvatures):
    """Write the search direction, by the two-loop recursion of L-BFGS in the tangent plane."""
    kept, end = counts[KEPT], counts[NEXT]
    factor = _FIRST_ANGLE / math.sqrt(_dot(table, GRADIENT, GRADIENT))
    _add(table, DIRECTION, 1.0, GRADIENT, 0.0)
    for back in range(kept):
        k = (end - back - 1) % PAIRS
        curvatures[1, k] = curvatures[0, k] * _dot(table, FIRST_STEP + k, DIRECTION)
        _add(table, DIRECTION, -curvatures[1, k], FIRST_CHANGE + k, 1.0)
        if back == 0:
            factor = 1 / (curvatures[0, k] * _dot(table, FIRST_CHANGE + k, FIRST_CHANGE + k))
    _add(table, DIRECTION, 0.0, DIRECTION, factor)
    for forth in range(kept):
        k = (end - kept + forth) % PAIRS
        missing = curvatures[1, k] - curvatures[0, k] * _dot(table, FIRST_CHANGE + k, DIRECTION)
        _add(table, DIRECTION, missing, FIRST_STEP + k, 1.0)
    _add(table, DIRECTION, -_dot(table, DIRECTION, POINT), POINT, 1.0)


_keep_pair, _choose_direction = inlined(keep_pair), inlined(choose_direction)


@njit(**PART)
def _advance(value, table, numbers, counts, curvatures, history, tol, progress):
    """Update an ascent with the value and the gradient at the trial point, and choose the next trial point.

    An ascent has converged when no component of the gradient in the tangent plane is above ``tol``, and has settled
    when two iterations in a row gained less than ``progress`` of the value. ``history`` takes the value after every
    iteration; its length is the limit of iterations.
    """
    before, slope, step, iterations = numbers[VALUE], numbers[SLOPE], numbers[STEP], counts[ITERATIONS]
    counts[EVALUATIONS] += 1
    if iterations >= 0 and not value >= before + _ARMIJO * step * slope:
        counts[TRIES] += 1
        if counts[TRIES] > _MOST_TRIES:
            counts[STATUS] = STALLED
        # The maximum of the parabola through both values and the slope.
        missing = 2 * (slope * step - (value - before))
        best = slope * step * step / missing if missing > 0 else 0.5 * step
        step = min(max(best, 0.1 * step), 0.5 * step)
    else:
        _add(table, NEW, -_dot(table, NEW, TRIAL), TRIAL, 1.0)
        if iterations >= 0:
            _keep_pair(table, counts, curvatures)
            history[iterations] = value
            counts[IDLE] = counts[IDLE] + 1 if value - before <= progress * max(abs(value), 1.0) else 0
        _add(table, POINT, 1.0, TRIAL, 0.0)
        _add(table, GRADIENT, 1.0, NEW, 0.0)
        largest = 0.0
        for j in range(table.shape[1]):
            largest = max(largest, abs(table[GRADIENT, j]))
        numbers[VALUE] = value
        counts[ITERATIONS] = iterations + 1
        if largest <= tol:
            counts[STATUS] = CONVERGED
        elif counts[IDLE] >= 2:
            counts[STATUS] = SETTLED
        elif iterations + 1 >= len(history):
            counts[STATUS] = LIMITED
        else:
            _choose_direction(table, counts, curvatures)
            slope = _dot(table, DIRECTION, GRADIENT)
            if not slope > 0:  # the pairs mislead: steepest ascent instead
                counts[KEPT] = 0
                _add(table, DIRECTION, 1.0, GRADIENT, 0.0)
                slope = _dot(table, GRADIENT, GRADIENT)
            numbers[SLOPE], counts[TRIES] = slope, 0
            step = min(1.0, _MOST_ANGLE / math.sqrt(_dot(table, DIRECTION, DIRECTION)))
    if counts[STATUS] == RUNNING:
        numbers[STEP] = step
        # The point that the step leads to, back on the sphere.
        _add(table, TRIAL, 1.0, POINT, 0.0)
        _add(table, TRIAL, step, DIRECTION, 1.0)
        _add(table, TRIAL, 0.0, TRIAL, 1 / math.sqrt(_dot(table, TRIAL, TRIAL)))


@njit(**COMPILE)
def run_ascent(
    XT, n_x, weights, totals, factors, cells, local, moments, lines, sums, point, z, w, limits,
    table, numbers, counts, curvatures, history,
):  # fmt: skip
    """Run an ascent on the grid or, without rows, make a single step with the given value and gradient.

    Both are one kernel, so that everything an ascent needs is compiled only once.
    """
    n_features, n_rows = XT.shape
    while counts[STATUS] == RUNNING:
        value, tol = limits[2], limits[0]
        if n_rows > 0:
            for j in range(n_features):
                point[j] = table[TRIAL, j]
            np.dot(point, XT, z)
            value = divergence_on_grid(z, n_x, weights, totals, factors, cells, local, moments, lines, sums, w)
            if not value == value:
                counts[STATUS] = HANDED_OVER
                break
            for j in range(n_features):
                column, total = XT[j], 0.0  # in double precision, so that the order of rows does not matter
                for i in range(n_rows):
                    total += w[i] * column[i]
                table[NEW, j] = total
            tol *= min(1.0, max(value, 1e-4))
        _advance(value, table, numbers, counts, curvatures, history, tol, limits[1])
        if n_rows == 0:
            break


def climb(XT, n_x, weights, totals, factors, state, tol, progress):
    """Run an ascent on the grid from the trial point to its end, over rows whose features are the rows of XT.

    ``state`` are the arrays of the ascent. The tolerance of the gradient is relative to D where that is below one.
    """
    n_features, n_rows = XT.shape
    point, z, w = np.empty(n_features, XT.dtype), np.empty(n_rows, XT.dtype), np.empty(n_rows, XT.dtype)
    limits, space = np.array([tol, progress, 0.0]), workspace(n_rows, XT.dtype)
    run_ascent(XT, n_x, weights, totals, factors, *space, point, z, w, limits, *state)


def grid_divergence(z, n_x, weights, totals, factors, w):
    """Return D of points on the line, and write the weight of every point in its gradient to w, both of shape (n,).

    See :func:`melc.kernels.grid.divergence_on_grid`. An ascent of no iterations computes it, without another kernel.
    """
    state, space = initial_state(np.ones(1), 0), workspace(len(z), z.dtype)
    point, along = np.empty(1, z.dtype), np.empty_like(z)
    run_ascent(z[None], n_x, weights, totals, factors, *space, point, along, w, np.zeros(3), *state)
    _, numbers, counts, *_ = state
    return math.nan if counts[STATUS] == HANDED_OVER else numbers[VALUE]


# Arguments of an ascent without rows; the types are the same as with rows, so that nothing is compiled again.
_NOTHING, _NO_NUMBERS = np.empty(0, np.float32), np.empty(0)
_NO_ROWS = np.empty((1, 0), np.float32), 0, _NOTHING, _NO_NUMBERS, _NO_NUMBERS, *workspace(0, np.float32)


def advance(value, gradient, state, tol, progress):
    """Make one step of an ascent, whose arrays are ``state``, with the value and the gradient at its trial point."""
    state[0][NEW] = gradient
    run_ascent(*_NO_ROWS, _NOTHING, _NOTHING, _NOTHING, np.array([tol, progress, value]), *state)


def initial_state(start, max_iter):
    """Return the arrays of an ascent from ``start``, a vector of length one.

    They are the table, the numbers, the counts, the curvatures (the second row is for the recursion of L-BFGS), and
    the history.
    """
    table, counts = np.zeros((FIRST_CHANGE + PAIRS, len(start))), np.zeros(7, dtype=np.int64)
    table[TRIAL] = table[POINT] = start
    counts[ITERATIONS] = -1
    return table, np.zeros(3), counts, np.zeros((2, PAIRS)), np.zeros(max_iter)
