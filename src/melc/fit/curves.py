"""The curves of all lines, fitted together as one penalised logistic model.

Curves are piecewise linear: β are their values at knots, and a row b of the basis has two entries for each line
(:mod:`melc.kernels.hats`). With weights w, by which all classes count equally, the fit maximises

``Σ w_i log P(y_i | b_i β) − ½ Σ_l λ_l β_lᵀ R_l β_l − ½ ρ ‖β‖²``.

R_l sums up squared second differences of neighbouring values, so a large λ_l makes curve l rise or fall evenly from
knot to knot, which is a straight line if the knots are equally far apart. The levels of a category are coefficients as
well, one for each; there R_l is the identity, so a large λ_l draws all levels towards zero, those of few rows most.
Each curve has a λ of its own, estimated from the data by the update of Fellner and Schall (Wood and Fasiolo, Biometrics
73, 2017),

``λ_l ← λ_l (rank(R_l) / λ_l − tr(V R_l)) / (β_lᵀ R_l β_l)``,

between Newton steps; V is the inverse of the penalised Hessian. With two classes there is one block of coefficients.
With more, each class has its own curves along all lines: each block then has its own V, and between updates of λ all
blocks are improved together by L-BFGS, in coordinates in which the Hessian of each block is near the identity.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from melc.arrays import Floats
from melc.data.hats import CurveSums, HatBasis

# The ridge ρ on all coefficients, in rows: with one block, and with several.
_RIDGE = 0.3, 0.05
# The λ from which the estimate starts, and its range, in units of the curve's share of the information in the data.
_FIRST_STRENGTH, _STRENGTHS = 1.0, (1e-4, 1e6)
# The most rounds of a Newton step and an update of λ, and the changes of log λ (which count less for nearly straight
# curves) and of coefficients below which they end.
_MOST_ROUNDS, _SETTLED_STRENGTH, _SETTLED = 30, 0.3, 0.05
# The Hessian is recomputed when coefficients have moved by more than this: until then the old one is good enough, since
# λ needs several steps anyway. In the last steps, when they have moved by more than this many times the tolerance.
_OUTDATED, _OUTDATED_AT_LAST = 0.5, 100
# With several blocks: rounds, the change of coefficients below which they end, and steps of L-BFGS in a round.
_MOST_BLOCK_ROUNDS, _BLOCKS_SETTLED, _BLOCK_STEPS, _LAST_BLOCK_STEPS = 4, 0.1, 15, 60
# Least degrees of freedom of a curve beyond those of a straight line; smaller values are rounding errors.
_LEAST_FREEDOM = 1e-6
# Least distance of two knots: as a fraction of the lower quartile of these distances; of the range, because features
# that cancel each other leave differences that are only rounding; and of the largest absolute value.
_LEAST_GAP, _ROUNDED, _SPACING = 0.02, 1e-9, 1e-14
# Projections that are closer count as equal: as a fraction of the range, and of the largest absolute value. Less than
# above, so that among thousands of different rows hardly any two count as equal by chance.
_SAME, _SAME_SUM = 1e-12, 2e-15
# A step is halved until the penalised likelihood no longer falls by more than rounding.
_LEAST_STEP, _ROUNDING = 1e-3, 1e-9

# summed(basis, beta, block) returns the sums over all rows, with the Hessian of a block unless that is None.
Summed = Callable[[HatBasis, Floats, int | None], CurveSums]


@dataclass(frozen=True)
class Shape:
    """Penalty and constraint of a curve: the matrix R of the penalty, its rank, and the sign of the slope.

    ``sign`` is 1 for a curve that must not fall, −1 for one that must not rise, else 0. If ``with_missing``, the last
    coefficient is for rows where the value is missing. The levels of a category are not ``smooth``.
    """

    penalty: Floats
    rank: int
    sign: int = 0
    with_missing: bool = False
    smooth: bool = True


def smooth_shape(size: int, information: float, sign: int = 0, with_missing: bool = False) -> Shape:
    """Return the shape of a curve with ``size`` coefficients, whose second differences are penalised.

    The penalty is proportional to ``information``, the result of :func:`information_of`.
    """
    penalty, inner = np.zeros((size, size)), size - with_missing
    penalty[:inner, :inner] = _roughness(inner, information)
    return Shape(penalty, max(inner - 2, 0), sign, with_missing)


def levels_shape(size: int) -> Shape:
    """Return the shape for the levels of a category: λ is the inverse of the variance of their values."""
    return Shape(np.eye(size), size, smooth=False)


@dataclass(frozen=True)
class Curves:
    """Curves along some lines: coefficients ``beta`` of shape (n_blocks, p), and what they were fitted with.

    ``strengths``, of shape (n_blocks, n_lines), are the λ; ``covariances``, of shape (n_blocks, p, p), the matrices V.
    """

    basis: HatBasis
    shapes: tuple[Shape, ...]
    beta: Floats
    strengths: Floats
    covariances: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def with_line(self, knots: Floats, shape: Shape) -> "Curves":
        """Return the curves with a further one, whose coefficients are zero."""
        n_blocks, size = len(self.beta), len(knots)
        return replace(
            self,
            basis=self.basis.with_knots(knots),
            shapes=(*self.shapes, shape),
            beta=np.hstack([self.beta, np.zeros((n_blocks, size))]),
            strengths=np.hstack([self.strengths, np.full((n_blocks, 1), _FIRST_STRENGTH)]),
        )

    def part(self, line: int) -> slice:
        """Return the slice of beta with the coefficients of a line."""
        return slice(1 + self.basis.starts[line], 1 + self.basis.starts[line + 1])

    def penalty(self, block: int) -> Floats:
        """Return the matrix of the penalty of a block, shape (p, p)."""
        matrix = np.diag(np.append(0.0, np.full(self.beta.shape[1] - 1, _RIDGE[len(self.beta) > 1])))
        for line, (strength, shape) in enumerate(zip(self.strengths[block], self.shapes, strict=True)):
            matrix[self.part(line), self.part(line)] += strength * shape.penalty
        return matrix


def no_curves(n_blocks: int) -> Curves:
    """Return a model without lines."""
    basis = HatBasis(np.empty(0), np.zeros(1, dtype=np.int64))
    return Curves(basis, (), np.zeros((n_blocks, 1)), np.empty((n_blocks, 0)))


def fit_curves(
    curves: Curves, summed: Summed, smoothing: float = 1.0, tol: float | None = None, for_hessian: Summed | None = None
) -> Curves:
    """Return the curves fitted together; λ is the estimate times ``smoothing``.

    The fit starts with the coefficients and λ of ``curves``. Without ``tol`` it stops early, which is enough while
    lines are added. Otherwise it continues with fixed λ until no coefficient changes by more than ``tol``. Hessians may
    come from ``for_hessian``, a cheaper approximation of ``summed``; with one block, the last steps use ``summed``.
    """
    if len(curves.beta) > 1:
        return _fit_blocks(curves, summed, for_hessian or summed, smoothing, tol is not None)
    fit = _Newton(curves, summed, for_hessian or summed)
    for round_number in range(_MOST_ROUNDS):
        moved = fit.step()
        fit.curves, changed = with_estimated_strengths(fit.curves, 0, fit.covariance, smoothing)
        if round_number > 0 and changed < _SETTLED_STRENGTH and moved < _SETTLED:
            break
    if tol is not None:
        fit.for_hessian, fit.moved, fit.outdated = summed, np.inf, _OUTDATED_AT_LAST * tol
        for _ in range(_MOST_ROUNDS):
            if fit.step() < tol:
                break
    return replace(fit.curves, beta=_exactly_monotone(fit.curves), covariances=fit.covariance[None])


class _Newton:
    """Newton's method for a single block of coefficients: the present curves, and the sums over rows there."""

    def __init__(self, curves: Curves, summed: Summed, for_hessian: Summed) -> None:
        self.curves, self.summed, self.for_hessian = curves, summed, for_hessian
        self.sums = summed(curves.basis, curves.beta, None)
        self.hessian, self.covariance = np.empty(0), np.empty(0)
        # How far coefficients have moved since the Hessian was computed, and how far they may move.
        self.moved, self.outdated = np.inf, _OUTDATED

    def step(self) -> float:
        """Make a step, halved until the penalised likelihood does not fall; return the largest change in beta."""
        curves, beta, sums = self.curves, self.curves.beta[0], self.sums
        if self.moved > self.outdated:
            self.hessian, self.moved = symmetric(self.for_hessian(curves.basis, curves.beta, 0).hessian), 0.0
        penalty = curves.penalty(0)
        slope = sums.gradient[0] - penalty @ beta
        step, self.covariance = newton_step(self.hessian + penalty, slope, beta, curves)
        size, value = 1.0, sums.likelihood - 0.5 * beta @ penalty @ beta
        while True:
            trial = beta + size * step
            self.sums = self.summed(curves.basis, trial[None], None)
            reached = self.sums.likelihood - 0.5 * trial @ penalty @ trial
            if reached >= value - _ROUNDING * max(1.0, abs(value)) or size < _LEAST_STEP:
                break
            size *= 0.5
        self.curves = replace(curves, beta=trial[None])
        moved = float(np.abs(size * step).max())
        self.moved += moved
        return moved


def _fit_blocks(curves: Curves, summed: Summed, for_hessian: Summed, smoothing: float, until_converged: bool) -> Curves:
    """Return the curves with several blocks of coefficients, which share a likelihood, fitted together."""
    blocks = range(len(curves.beta))
    for round_number in range(_MOST_BLOCK_ROUNDS):
        before, hessians = curves.beta, _hessians(curves, for_hessian)
        for block in blocks if round_number > 0 else ():
            covariance = inverse(hessians[block] + curves.penalty(block))
            curves, _ = with_estimated_strengths(curves, block, covariance, smoothing)
        curves = _climb(curves, summed, hessians, _BLOCK_STEPS)
        if round_number > 0 and np.abs(curves.beta - before).max() < _BLOCKS_SETTLED:
            break
    hessians = _hessians(curves, for_hessian)
    if until_converged:
        curves = _climb(curves, summed, hessians, _LAST_BLOCK_STEPS)
    covariances = [inverse(hessians[block] + curves.penalty(block)) for block in blocks]
    return replace(curves, covariances=np.stack(covariances))


def _hessians(curves: Curves, for_hessian: Summed) -> list[Floats]:
    return [symmetric(for_hessian(curves.basis, curves.beta, block).hessian) for block in range(len(curves.beta))]


def _climb(curves: Curves, summed: Summed, hessians: list[Floats], n_steps: int) -> Curves:
    """Return the curves after up to ``n_steps`` of L-BFGS on all blocks, with fixed λ.

    The coordinates u of a block are ``Lᵀ β`` with ``L Lᵀ`` its penalised Hessian.
    """
    penalties = [curves.penalty(block) for block in range(len(curves.beta))]
    factors = [linalg.cholesky(h + s, lower=True) for h, s in zip(hessians, penalties, strict=True)]

    def coefficients(u: Floats) -> Floats:
        parts = zip(factors, u.reshape(curves.beta.shape), strict=True)
        return np.stack([linalg.blas.dtrsv(factor, each, lower=True, trans=True) for factor, each in parts])

    def loss(u: Floats) -> tuple[float, Floats]:
        beta = coefficients(u)
        sums = summed(curves.basis, beta, None)
        pulls = np.stack([s @ each for s, each in zip(penalties, beta, strict=True)])
        slopes = zip(factors, pulls - sums.gradient, strict=True)
        slope = np.stack([linalg.blas.dtrsv(factor, each, lower=True) for factor, each in slopes])
        return 0.5 * float(np.sum(beta * pulls)) - sums.likelihood, slope.ravel()

    start = np.stack([factor.T @ each for factor, each in zip(factors, curves.beta, strict=True)])
    options = {"maxiter": n_steps, "gtol": 1e-4, "ftol": 1e-9}
    found = optimize.minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return replace(curves, beta=coefficients(found.x))


def with_estimated_strengths(curves: Curves, block: int, covariance: Floats, smoothing: float) -> tuple[Curves, float]:
    """Return the curves with the λ of a block updated, and the largest change of their logarithms.

    A change is multiplied by the degrees of freedom beyond a straight line, if these are less than one: a straight
    curve remains straight whatever its λ.
    """
    strengths, changed = curves.strengths.copy(), 0.0
    for line, shape in enumerate(curves.shapes):
        if shape.rank > 0:
            part, rough = curves.part(line), shape.penalty
            before, beta = strengths[block, line], curves.beta[block, part]
            freedom = max(shape.rank - before * float(np.vdot(covariance[part, part], rough)), _LEAST_FREEDOM)
            estimate = min(max(freedom / max(float(beta @ rough @ beta), 1e-10), _STRENGTHS[0]), _STRENGTHS[1])
            factor = smoothing if shape.smooth else 1.0
            after = min(factor * estimate, _STRENGTHS[1])  # beyond, matrices would lose their digits
            changed = max(changed, abs(log(after / before)) * min(1.0, freedom))
            strengths[block, line] = after
    return replace(curves, strengths=strengths), changed


def newton_step(hessian: Floats, slope: Floats, beta: Floats, curves: Curves) -> tuple[Floats, Floats]:
    """Return the step that maximises ``slope · s − ½ sᵀ hessian s``, and the inverse of the Hessian.

    Curves with a sign stay monotone: the increments between their knots are bounded by zero. Increments that are zero
    after the step are taken to be fixed, with variance zero.
    """
    if not any(shape.sign for shape in curves.shapes):
        covariance = inverse(hessian)
        return covariance @ slope, covariance
    change, bounded = _increments_to_values(curves)
    turned = change.T @ hessian @ change
    factor = linalg.cholesky(turned, lower=True)
    right = linalg.solve_triangular(factor, change.T @ slope, lower=True)
    start = linalg.solve(change, beta)
    low = np.where(bounded, -np.maximum(start, 0.0), -np.inf)
    found = optimize.lsq_linear(factor.T, right, (low, np.full(len(low), np.inf)), method="bvls").x
    free = np.flatnonzero(~bounded | (found > low + 1e-12))
    covariance = np.zeros_like(turned)
    covariance[np.ix_(free, free)] = inverse(turned[np.ix_(free, free)])
    return change @ found, change @ covariance @ change.T


def _exactly_monotone(curves: Curves) -> Floats:
    """Return the coefficients, with rounding errors removed that make monotone curves fall or rise; (n_blocks, p)."""
    beta = curves.beta.copy()
    for line, shape in enumerate(curves.shapes):
        if shape.sign:
            part = _known_part(curves, line)
            beta[:, part] = shape.sign * np.maximum.accumulate(shape.sign * beta[:, part], axis=1)
    return beta


def _known_part(curves: Curves, line: int) -> slice:
    """Return the slice of the coefficients of a line, without the one for missing values."""
    part = curves.part(line)
    return slice(part.start, part.stop - curves.shapes[line].with_missing)


def _increments_to_values(curves: Curves) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the matrix from increments of monotone curves to values, (p, p), and which of them are bounded, (p,)."""
    n = curves.beta.shape[1]
    change, bounded = np.eye(n), np.zeros(n, dtype=bool)
    for line, shape in enumerate(curves.shapes):
        if shape.sign:
            part = _known_part(curves, line)
            size = part.stop - part.start
            change[part, part] = np.tril(np.ones((size, size))) * np.append(1.0, np.full(size - 1, shape.sign))
            bounded[part.start + 1 : part.stop] = True
    return change, bounded


def inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive definite matrix."""
    factor, _ = linalg.lapack.dpotrf(matrix, lower=True)
    found, _ = linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)
    return symmetric(found)


def symmetric(lower: Floats) -> Floats:
    """Return the symmetric matrix with the given lower triangle; the argument is zero above the diagonal."""
    whole = lower + lower.T
    np.fill_diagonal(whole, np.diagonal(lower))
    return np.asarray(whole)


def _roughness(size: int, information: float) -> Floats:
    """Return the matrix of squared second differences of ``size`` values, scaled to a quarter of ``information``."""
    if size < 3:
        return np.zeros((size, size))
    differences = np.diff(np.eye(size), 2, axis=0)
    matrix = differences.T @ differences
    return np.asarray(matrix * (0.25 * information / np.trace(matrix)))


def knots_of(z: Floats, most: int) -> Floats:
    """Return up to ``most`` knots for projections z: half are quantiles of the rows, half of the distinct values.

    So a feature with mostly equal values has knots among its other values too. Quantiles are denser towards both ends,
    where a curve often bends most and would otherwise be straight over a twelfth of the rows. Knots much closer than
    most would make steps, and are thinned out. (Closer than most, not than a fraction of the range: a single outlier
    may be a million times farther away than all other rows.) The knots of −z are those of z with the other sign.
    """
    width, size = float(np.ptp(z)), float(np.abs(z).max())
    same, least = max(_SAME * width, _SAME_SUM * size), max(_ROUNDED * width, _SPACING * size)
    if np.median(z) - z.mean() > same:  # skewed to the left
        return -knots_of(-z, most)[::-1]
    ascending = np.sort(z)
    if width <= same:
        return _knots_of_a_point(ascending[0], ascending[-1])
    rows, values = _joined(ascending, same)
    if len(values) > most:
        shares = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0, 1, most // 2 + 1))
        quantiles = [each[np.rint(shares * (len(each) - 1)).astype(np.int64)] for each in (rows, values)]
        values = np.unique(np.concatenate(quantiles))
    least = max(least, _LEAST_GAP * float(np.quantile(np.diff(values), 0.25, method="lower")))
    kept = [values[0]]
    for value in values[1:]:
        if value - kept[-1] > least:
            kept.append(value)
    return np.array(kept) if len(kept) > 1 else ascending[[0, -1]]


def _knots_of_a_point(low: float, high: float) -> Floats:
    """Return two knots for rows between ``low`` and ``high``, which are equal up to rounding."""
    return np.array([low, high]) if low < high else low + max(0.5, _SPACING * abs(low)) * np.array([-1.0, 1.0])


def _joined(ascending: Floats, same: float) -> tuple[Floats, Floats]:
    """Return ascending values, those closer than ``same`` replaced by the lowest of them; and the distinct ones.

    Sums of the same numbers in another order differ by rounding. If they counted as different values, the order of the
    features would decide how many values there are, and which of them are quantiles. Values that lie densely over more
    than ``same`` are divided into parts of that width.
    """
    first = np.append(True, np.diff(ascending) > same)
    starts = ascending[first][np.cumsum(first) - 1]
    first[1:] |= np.diff(np.floor((ascending - starts) / same)) > 0
    values = ascending[first]
    return values[np.cumsum(first) - 1], values


def information_of(z: Floats, knots: Floats, weights: Floats) -> float:
    """Return the sum of weight times squared entries in the basis, which measures how much data a curve has."""
    part = HatBasis(knots, np.array([0, len(knots)])).entries(z[None]).part[0]
    return float(weights @ (part**2 + (1 - part) ** 2))
