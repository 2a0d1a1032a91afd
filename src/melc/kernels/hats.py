"""Sums over rows for curves that are fitted together.

A curve is a sum of hat functions: ``β_j`` is its value at knot j, and it is linear between knots. So a row has two
entries for each line: with its projection a part t of the way from knot j to the next, ``1 − t`` at j and t at j + 1.
Coefficient 0 is a constant, whose entry is one. Of two classes there is one block of coefficients, the log-odds of the
second; of more classes each has a block, and probabilities are the softmax.
"""

from math import exp, log, log1p

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE

# Rows that are worked on together: their entries stay in the cache.
_ROWS = 250
# Least p (1 − p) of a row: curvatures stay positive where the model is certain.
_LEAST_CURVATURE = 1e-6


@njit(**COMPILE)
def find_entries(z, start, n, knots, starts, beta, at, part, scores):
    """Find the entries of the rows start … start + n − 1, and their log-odds by each block of coefficients.

    z has shape (n_lines, n_rows). The knots of line l are ``knots[starts[l] : starts[l + 1]]``; beyond the outermost, a
    curve is constant. Row r has the entry ``1 − part[l, r]`` at coefficient ``at[l, r]``, and ``part[l, r]`` at the
    next one.
    """
    for b in range(len(beta)):
        for r in range(n):
            scores[b, r] = beta[b, 0]
    for line in range(len(z)):
        first, length = starts[line], starts[line + 1] - starts[line]
        lowest, highest = knots[first], knots[first + length - 1]
        for r in range(n):
            place = min(max(z[line, start + r], lowest), highest)
            below, left = first, length - 1  # halved without branches, which would be mispredicted
            while left > 1:
                half = left // 2
                below += half * (knots[below + half] <= place)
                left -= half
            at[line, r] = below + 1
            part[line, r] = (place - knots[below]) / (knots[below + 1] - knots[below])
        for b in range(len(beta)):
            for r in range(n):
                j = at[line, r]
                scores[b, r] += beta[b, j] + part[line, r] * (beta[b, j + 1] - beta[b, j])


@njit(**COMPILE)
def to_probabilities(scores, r, code):
    """Replace the log-odds of row r by the probability of the class of each block; return log P(its own class)."""
    if len(scores) == 1:
        margin = scores[0, r] if code == 1 else -scores[0, r]
        scores[0, r] = 1 / (1 + exp(-scores[0, r]))
        return min(margin, 0.0) - log1p(exp(-abs(margin)))
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
def add_curve_sums(z, codes, weights, step, factors, knots, starts, beta, gradient, hessian, block):
    """Return the log-likelihood of some rows, and add its gradient and, for one block, its curvature.

    The weight of row i is ``weights[i · step] · factors[its class]``. ``gradient`` has the shape of ``beta``,
    (n_blocks, p). ``hessian`` has shape (p, p), of which the lower triangle is used, or (0, 0) if it is not wanted.
    """
    (n_lines, n_rows), n_blocks = z.shape, len(beta)
    at, part, scores = np.empty((n_lines, _ROWS), np.uint32), np.empty((n_lines, _ROWS)), np.empty((n_blocks, _ROWS))
    row_weights, residuals = np.empty(_ROWS), np.empty(_ROWS)
    likelihood = 0.0
    for start in range(0, n_rows, _ROWS):
        n = min(_ROWS, n_rows - start)
        find_entries(z, start, n, knots, starts, beta, at, part, scores)
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
                    above = residuals[r] * part[line, r]
                    gradient[b, at[line, r]] += residuals[r] - above
                    gradient[b, at[line, r] + 1] += above
        if len(hessian):
            for r in range(n):
                row_weights[r] *= max(scores[block, r] * (1 - scores[block, r]), _LEAST_CURVATURE)
            add_curvatures(at, part, row_weights, n, hessian)
    return likelihood


@njit(**COMPILE)
def add_curvatures(at, part, curvatures, n, hessian):
    """Add ``Σ curvature · entry · entry`` over n rows to the lower triangle of ``hessian``."""
    for r in range(n):
        hessian[0, 0] += curvatures[r]
    for line in range(len(at)):
        for r in range(n):
            j, t = at[line, r], part[line, r]
            above = curvatures[r] * t
            below = curvatures[r] - above
            hessian[j, 0] += below
            hessian[j + 1, 0] += above
            hessian[j, j] += below * (1 - t)
            hessian[j + 1, j] += below * t
            hessian[j + 1, j + 1] += above * t
        for other in range(line):
            for r in range(n):
                j, k, t = at[line, r], at[other, r], part[other, r]
                above = curvatures[r] * part[line, r]
                below = curvatures[r] - above
                hessian[j, k] += below * (1 - t)
                hessian[j, k + 1] += below * t
                hessian[j + 1, k] += above * (1 - t)
                hessian[j + 1, k + 1] += above * t


@njit(**COMPILE)
def left_out_scores(z, codes, weights, step, factors, knots, starts, beta, covariances, out):
    """Write the log-odds of each row by the curves fitted without it, to first order; ``out`` has shape (n_blocks, n).

    With leverage ``h = bᵀ V b``, weight w and curvature W, leaving the row out lowers its log-odds by
    ``h w (y − p) / (1 − W h)``. ``covariances``, of shape (n_blocks, p, p), are the matrices V. Of a row of weight k,
    which is k copies, one copy is left out.
    """
    (n_lines, n_rows), n_blocks = z.shape, len(beta)
    at, part, scores = np.empty((n_lines, _ROWS), np.uint32), np.empty((n_lines, _ROWS)), np.empty((n_blocks, _ROWS))
    leverages = np.empty(_ROWS)
    for start in range(0, n_rows, _ROWS):
        n = min(_ROWS, n_rows - start)
        find_entries(z, start, n, knots, starts, beta, at, part, scores)
        for b in range(n_blocks):
            for r in range(n):
                out[b, start + r] = scores[b, r]
        for r in range(n):
            to_probabilities(scores, r, codes[start + r])
        for b in range(n_blocks):
            write_leverages(at, part, covariances[b], n, leverages)
            chosen = 1 if n_blocks == 1 else b
            for r in range(n):
                code, probability = codes[start + r], scores[b, r]
                single = weights[(start + r) * step] * factors[code] / max(weights[(start + r) * step], 1.0)
                curvature = single * max(probability * (1 - probability), _LEAST_CURVATURE)
                lowered = leverages[r] * single * ((code == chosen) - probability)
                out[b, start + r] -= lowered / (1 - min(curvature * leverages[r], 0.9))


@njit(**COMPILE)
def write_leverages(at, part, covariance, n, leverages):
    """Write ``bᵀ V b`` of n rows with the given entries."""
    for r in range(n):
        leverages[r] = covariance[0, 0]
    for line in range(len(at)):
        for r in range(n):
            j, t = at[line, r], part[line, r]
            twice = 2 * covariance[j, 0] + (1 - t) * covariance[j, j] + 2 * t * covariance[j + 1, j]
            leverages[r] += (1 - t) * twice + t * (2 * covariance[j + 1, 0] + t * covariance[j + 1, j + 1])
        for other in range(line):
            for r in range(n):
                j, k, t, u = at[line, r], at[other, r], part[line, r], part[other, r]
                below = covariance[j, k] * (1 - u) + covariance[j, k + 1] * u
                above = covariance[j + 1, k] * (1 - u) + covariance[j + 1, k + 1] * u
                leverages[r] += 2 * ((1 - t) * below + t * above)
