"""Sums over rows for curves that are fitted together.

A curve is a sum of hat functions: ``β_j`` is its value at knot j, and it is linear between knots. So a row has two
entries for each line: with its projection a part t of the way from knot j to the next, ``1 − t`` at j and t at j + 1.
Coefficient 0 is a constant, whose entry is one. With two classes there is one block of coefficients, for the log-odds
of the second; with more, each class has a block, and probabilities are the softmax.
"""

from math import exp, log, log1p

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

# Rows that are processed together, so that their scores and weights stay in the cache.
_ROWS = 500
# Least p (1 − p) of a row: curvatures stay positive where the model is certain.
_LEAST_CURVATURE = 1e-6


@njit(**COMPILE)
def find_entries(z, knots, starts, at, part):
    """Write the entries of rows with projections z, all of shape (n_lines, n): ``1 − part`` at coefficient ``at``.

    The entry at the next coefficient is ``part``. The knots of line l are ``knots[starts[l] : starts[l + 1]]``, its
    coefficients begin with ``1 + starts[l]``; beyond the outermost knots, a curve is constant.
    """
    passed = np.empty(_ROWS, np.int64)
    for line in range(len(z)):
        own = knots[starts[line] : starts[line + 1]]
        inner = np.full((len(own) + 1) // 4 * 4, np.inf)  # padded, because four comparisons at once are the fastest
        for k in range(1, len(own) - 1):
            inner[k - 1] = own[k]
        for start in range(0, z.shape[1], _ROWS):
            n = min(_ROWS, z.shape[1] - start)
            count_passed(z[line], start, n, inner, passed)
            for r in range(n):
                below = passed[r]
                place = min(max(z[line, start + r], own[0]), own[-1])
                part[line, start + r] = (place - own[below]) / (own[below + 1] - own[below])
                at[line, start + r] = 1 + starts[line] + below


@njit(**COMPILE)
def count_passed(z, start, n, knots, passed):
    """Write how many knots are no higher than each of n projections. Few knots are counted faster than searched."""
    for r in range(n):
        passed[r] = 0
    for k in range(0, len(knots), 4):
        first, second, third, fourth = knots[k], knots[k + 1], knots[k + 2], knots[k + 3]
        for r in range(n):
            place = z[start + r]
            passed[r] += (place >= first) + (place >= second) + (place >= third) + (place >= fourth)


@njit(**COMPILE)
def write_scores(at, part, start, n, beta, scores):
    """Write the log-odds of the rows start … start + n − 1 by each block of coefficients."""
    for b in range(len(beta)):
        for r in range(n):
            scores[b, r] = beta[b, 0]
        for line in range(len(at)):
            for r in range(n):
                j = at[line, start + r]
                scores[b, r] += beta[b, j] + part[line, start + r] * (beta[b, j + 1] - beta[b, j])


@njit(**COMPILE)
def to_probabilities(scores, r, code):
    """Replace the log-odds of row r by the probability of the class of each block; return log P(its own class)."""
    if len(scores) == 1:
        score = scores[0, r]
        less = exp(-abs(score))  # the odds of the less probable class
        scores[0, r] = (1.0 if score >= 0 else less) / (1 + less)
        return min(score if code == 1 else -score, 0.0) - log1p(less)
    highest, own, total = scores[0, r], scores[code, r], 0.0
    for b in range(1, len(scores)):
        highest = max(highest, scores[b, r])
    for b in range(len(scores)):
        scores[b, r] = exp(scores[b, r] - highest)
        total += scores[b, r]
    for b in range(len(scores)):
        scores[b, r] /= total
    return own - highest - log(total)


@njit(**COMPILE)
def add_curve_sums(at, part, codes, weights, step, factors, beta, gradient, hessian, block):
    """Return the log-likelihood of rows with the given entries, and add its gradient and, for one block, its curvature.

    The weight of row i is ``weights[i · step] · factors[its class]``. ``gradient`` has the shape of ``beta``,
    (n_blocks, p). ``hessian`` has shape (p, p), of which the lower triangle is used, or (0, 0) if it is not wanted.
    """
    (n_lines, n_rows), n_blocks = at.shape, len(beta)
    scores, row_weights, residuals = np.empty((n_blocks, _ROWS)), np.empty(_ROWS), np.empty(_ROWS)
    likelihood = 0.0
    for start in range(0, n_rows, _ROWS):
        n = min(_ROWS, n_rows - start)
        write_scores(at, part, start, n, beta, scores)
        for r in range(n):
            code = codes[start + r]
            row_weights[r] = weights[(start + r) * step] * factors[code]
            likelihood += row_weights[r] * to_probabilities(scores, r, code)
        for b in range(n_blocks):
            chosen = 1 if n_blocks == 1 else b
            for r in range(n):
                residuals[r] = row_weights[r] * ((codes[start + r] == chosen) - scores[b, r])
                gradient[b, 0] += residuals[r]
            for line in range(n_lines):
                for r in range(n):
                    j, above = at[line, start + r], residuals[r] * part[line, start + r]
                    gradient[b, j] += residuals[r] - above
                    gradient[b, j + 1] += above
        if len(hessian):
            for r in range(n):
                row_weights[r] *= max(scores[block, r] * (1 - scores[block, r]), _LEAST_CURVATURE)
            add_curvatures(at, part, start, n, row_weights, hessian)
    return likelihood


@njit(**COMPILE)
def add_curvatures(at, part, start, n, curvatures, hessian):
    """Add ``Σ curvature · entry · entry`` over n rows to the lower triangle of ``hessian``."""
    below, above = np.empty(n), np.empty(n)
    for r in range(n):
        hessian[0, 0] += curvatures[r]
    for line in range(len(at)):
        for r in range(n):
            j, t = at[line, start + r], part[line, start + r]
            above[r] = curvatures[r] * t
            below[r] = curvatures[r] - above[r]
            hessian[j, 0] += below[r]
            hessian[j + 1, 0] += above[r]
            hessian[j, j] += below[r] * (1 - t)
            hessian[j + 1, j] += below[r] * t
            hessian[j + 1, j + 1] += above[r] * t
        for other in range(line):
            for r in range(n):
                j, k, t = at[line, start + r], at[other, start + r], part[other, start + r]
                lower, upper = hessian[j], hessian[j + 1]
                # All four are read before one is written: otherwise each would wait for the one before.
                first, second = lower[k] + below[r] * (1 - t), lower[k + 1] + below[r] * t
                third, fourth = upper[k] + above[r] * (1 - t), upper[k + 1] + above[r] * t
                lower[k], lower[k + 1], upper[k], upper[k + 1] = first, second, third, fourth


@njit(**COMPILE)
def left_out_scores(at, part, codes, weights, step, factors, beta, covariances, out):
    """Write the log-odds of each row by the curves fitted without it, to first order; ``out`` has shape (n_blocks, n).

    With leverage ``h = bᵀ V b``, weight w and curvature W, leaving the row out lowers its log-odds by
    ``h w (y − p) / (1 − W h)``. ``covariances``, of shape (n_blocks, p, p), are the matrices V. Of a row of weight k,
    which is k copies, one copy is left out.
    """
    n_rows, n_blocks = at.shape[1], len(beta)
    scores, leverages = np.empty((n_blocks, _ROWS)), np.empty(_ROWS)
    for start in range(0, n_rows, _ROWS):
        n = min(_ROWS, n_rows - start)
        write_scores(at, part, start, n, beta, scores)
        for b in range(n_blocks):
            for r in range(n):
                out[b, start + r] = scores[b, r]
        for r in range(n):
            to_probabilities(scores, r, codes[start + r])
        for b in range(n_blocks):
            write_leverages(at, part, start, n, covariances[b], leverages)
            chosen = 1 if n_blocks == 1 else b
            for r in range(n):
                code, probability = codes[start + r], scores[b, r]
                single = weights[(start + r) * step] * factors[code] / max(weights[(start + r) * step], 1.0)
                curvature = single * max(probability * (1 - probability), _LEAST_CURVATURE)
                lowered = leverages[r] * single * ((code == chosen) - probability)
                out[b, start + r] -= lowered / (1 - min(curvature * leverages[r], 0.9))


@njit(**COMPILE)
def write_leverages(at, part, start, n, covariance, leverages):
    """Write ``bᵀ V b`` of n rows with the given entries."""
    for r in range(n):
        leverages[r] = covariance[0, 0]
    for line in range(len(at)):
        for r in range(n):
            j, t = at[line, start + r], part[line, start + r]
            twice = 2 * covariance[j, 0] + (1 - t) * covariance[j, j] + 2 * t * covariance[j + 1, j]
            leverages[r] += (1 - t) * twice + t * (2 * covariance[j + 1, 0] + t * covariance[j + 1, j + 1])
        for other in range(line):
            for r in range(n):
                j, t = at[line, start + r], part[line, start + r]
                k, u = at[other, start + r], part[other, start + r]
                below = covariance[j, k] * (1 - u) + covariance[j, k + 1] * u
                above = covariance[j + 1, k] * (1 - u) + covariance[j + 1, k + 1] * u
                leverages[r] += 2 * ((1 - t) * below + t * above)
