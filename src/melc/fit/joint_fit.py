"""The joint fit of the curves of all lines: on a sample while lines are added, at last on all rows."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from melc import kernels
from melc._sklearn import one_blas_thread
from melc.arrays import Floats
from melc.data.hats import CurveRequest, CurveSums, Entries, HatBasis
from melc.data.memory import MemoryRows
from melc.data.sample import draw_sample
from melc.data.source import Rows
from melc.fit.columns import Axis, Design
from melc.fit.curves import Curves, Summed, fit_curves, information_of, knots_of, levels_shape, no_curves, smooth_shape
from melc.fit.tabulation import PICTURE_ERROR
from melc.model.columns import Columns
from melc.model.curve import Curve, simplified
from melc.model.line import Line

# Knots of a curve: with two classes, with more (each line has as many curves as there are classes), of minor lines.
_KNOTS, _KNOTS_OF_SEVERAL, _MINOR_KNOTS = 24, 16, 10
# Changes of coefficients at which the last fit ends: if the sample has all rows, and if there are more.
_LEAST_CHANGE, _LEAST_CHANGE_ON_MANY = 1e-7, 1e-3
# Rows on which knots are placed.
_SAMPLED_ROWS = 10_000
# Knots without which the log-odds change by less than this are left out.
_KNOT_ERROR = 0.002
# A factor on the bandwidth of a density corresponds to this power of it as a factor on λ (Silverman, Annals of
# Statistics 12, 1984), which stays in this range.
_POWER, _LEAST_SMOOTHING, _MOST_SMOOTHING = 4, 1e-12, 1e12
# The grid of densities in pictures, and how far it reaches beyond the rows in bandwidths.
_GRID, _BEYOND_ROWS = 257, 3.0
# Least step of that grid: the inverse, which is about the highest density, is a float.
_LEAST_GRID_STEP = 1e-300


@dataclass(frozen=True)
class CurvesAlong:
    """Curves along directions. ``directions``, and the features' ``shares`` in them, have shape (n_lines, d).

    z, of shape (n_lines, n), are the projections of the sample, and ``entries`` their entries in the basis of the
    curves: both stay the same while curves are fitted. ``minor`` says which lines are minor.
    """

    directions: Floats
    shares: Floats
    z: Floats
    entries: Entries
    curves: Curves
    minor: tuple[bool, ...] = ()

    def __len__(self) -> int:
        return len(self.directions)


class JointFit:
    """Fits the curves of lines to rows, with class numbers as codes, and to a sample on which lines are compared.

    The rows have the columns of a design; directions have a weight for each of its quantities.
    """

    def __init__(
        self,
        rows: Rows,
        sample: MemoryRows,
        n_classes: int,
        gamma: float,
        columns: Columns | None = None,
        design: Design | None = None,
    ) -> None:
        self.rows, self.sample, self.n_classes = rows, sample, n_classes
        self.columns, self.design = columns or Columns(), design or Design(rows.n_features)
        self.n_blocks = 1 if n_classes == 2 else n_classes
        self.weights, self.factors = sample.all_weights(), balancing_factors(sample.total_weights)
        self.balanced_weights = self.weights * self.factors[sample.codes]
        self.smoothing = float(np.clip(gamma**_POWER, _LEAST_SMOOTHING, _MOST_SMOOTHING))

    def without_lines(self) -> CurvesAlong:
        """Return a model without lines."""
        nothing = np.empty((0, self.design.n_columns))
        curves, z = no_curves(self.n_blocks), np.empty((0, self.sample.n_rows))
        return CurvesAlong(nothing, nothing, z, curves.basis.entries(z), curves)

    def with_line(
        self, found: CurvesAlong, direction: Floats, shares: Floats, sign: int = 0, minor: bool = False
    ) -> CurvesAlong:
        """Return the lines and a further one whose curves are zero. ``sign`` is ±1 if they must be monotone."""
        z = self.sample.project(self.design.extended(direction))
        axis, most = self.design.axis_along(direction), _KNOTS if self.n_blocks == 1 else _KNOTS_OF_SEVERAL
        knots = _knots_along(z, axis, _MINOR_KNOTS if minor else most)
        if axis is not None and axis.n_levels:
            shape = levels_shape(len(knots))
        else:
            shape = smooth_shape(len(knots), information_of(z, knots, self.balanced_weights), sign, axis is not None)
        curves = found.curves.with_line(knots, shape)
        return CurvesAlong(
            np.vstack([found.directions, direction]),
            np.vstack([found.shares, shares]),
            np.vstack([found.z, z]),
            found.entries.with_lines(curves.basis.entries(z[None])),
            curves,
            (*found.minor, minor),
        )

    def fitted(self, found: CurvesAlong) -> CurvesAlong:
        """Return the lines with all curves fitted to the sample."""
        return replace(found, curves=fit_curves(found.curves, self._summed_on_sample(found.entries), self.smoothing))

    def fitted_to_all_rows(self, found: CurvesAlong) -> CurvesAlong:
        """Return the lines with all curves fitted to all rows until they converge.

        While λ is estimated, steps use the gradient of all rows, but the Hessian of the sample, which is about
        proportional to theirs.
        """
        on_sample, rows = self._summed_on_sample(found.entries), self.rows
        if self.sample.n_rows == rows.n_rows:
            return replace(found, curves=fit_curves(found.curves, on_sample, self.smoothing, _LEAST_CHANGE))
        factors = balancing_factors(rows.total_weights)
        directions = np.stack([self.design.extended(direction) for direction in found.directions])
        grown = float(factors @ rows.total_weights) / float(self.factors @ self.sample.total_weights)
        shapes = [replace(s, penalty=grown * s.penalty) if s.smooth else s for s in found.curves.shapes]
        curves = replace(found.curves, shapes=tuple(shapes))

        def for_hessian(basis: HatBasis, beta: Floats, block: int | None) -> CurveSums:
            sums = on_sample(basis, beta, block)
            return replace(sums, hessian=grown * sums.hessian)

        def summed(basis: HatBasis, beta: Floats, block: int | None) -> CurveSums:
            return rows.sum_curves(directions, CurveRequest(basis, beta, factors, block))

        return replace(found, curves=fit_curves(curves, summed, self.smoothing, _LEAST_CHANGE_ON_MANY, for_hessian))

    def _summed_on_sample(self, entries: Entries) -> Summed:
        def summed(basis: HatBasis, beta: Floats, block: int | None) -> CurveSums:
            request = CurveRequest(basis, beta, self.factors, block)
            sums = request.zeros()
            sums.add(entries, self.sample.codes, (self.weights, 1), request)
            return sums

        return summed

    def left_out(self, found: CurvesAlong) -> Floats:
        """Return the log-odds of each row of the sample by curves fitted without it, to first order: (n_blocks, n)."""
        curves, out = found.curves, np.empty((self.n_blocks, self.sample.n_rows))
        rows = found.entries.at, found.entries.part, self.sample.codes, self.weights, 1, self.factors
        kernels.left_out_scores(*rows, curves.beta, curves.covariances, out)
        return out

    def scores_of(self, found: CurvesAlong, rows: MemoryRows) -> Floats:
        """Return the log-odds of some rows, shape (n_blocks, n)."""
        beta, curves = found.curves.beta, found.curves
        scores = np.repeat(beta[:, :1], rows.n_rows, axis=1)
        for k, direction in enumerate(found.directions):
            z, knots, part = rows.project(self.design.extended(direction)), curves.basis.of_line(k), curves.part(k)
            scores += [np.interp(z, knots, each[part]) for each in beta]
        return scores

    def likelihood(self, scores: Floats) -> float:
        """Return the log-likelihood of log-odds of shape (n_blocks, n), in nats, with balanced classes."""
        codes = self.sample.codes
        if self.n_blocks == 1:
            return float(self.balanced_weights @ -np.logaddexp(0, np.where(codes == 1, -scores[0], scores[0])))
        return float(self.balanced_weights @ (scores[codes, np.arange(len(codes))] - logsumexp(scores, axis=0)))

    def lines(self, found: CurvesAlong, log_priors: Floats) -> tuple[list[Line], Floats]:
        """Return the lines of a model, and its intercepts, shape (n_blocks,): fitted constants plus ``log_priors``."""
        curves, shares = found.curves, self.balanced_weights / self.balanced_weights.sum()
        beta = curves.beta - (curves.beta.mean(axis=0) if self.n_blocks > 1 else 0.0)
        intercepts, alone = beta[:, 0] + log_priors, len(found) == 1
        means_of_entries = found.entries.sums(shares, beta.shape[1])
        lines = []
        for k in range(len(found)):
            knots, part = curves.basis.of_line(k), curves.part(k)
            values = beta[:, part]
            means = values @ means_of_entries[part]
            errors = _errors(curves, k, means_of_entries[part], alone)
            intercepts = intercepts + means
            lines.append(self._line(found, k, knots, values - means[:, None], errors, means))
        if alone:
            lines = [_as_only_line(lines[0], intercepts)]
        return [self._with_counts(line) for line in lines], intercepts

    def _with_counts(self, line: Line) -> Line:
        """Return a line with the weight of the rows of each class in its intervals, or at its levels."""
        axis, direction = self.design.axis_along(line.direction), self.design.extended(line.direction)
        if axis is None:
            return replace(line, counts=self.rows.count(direction, line.thresholds, self.n_classes))
        if axis.n_levels:
            between = np.arange(0.5, axis.n_levels - 1)
            return replace(line, counts=self.rows.count(direction, between, self.n_classes))
        beyond = 0.5 * (axis.highest + axis.missing_at)
        counts = self.rows.count(direction, np.append(line.thresholds, beyond), self.n_classes)
        return replace(line, counts=counts[:-1], missing_counts=counts[-1])

    def _line(self, found: CurvesAlong, k: int, knots: Floats, values: Floats, errors: Floats, mean: Floats) -> Line:
        """Return line k with curves of the given values and standard errors at the knots, (n_blocks, n_knots).

        ``mean``, of shape (n_blocks,), has been subtracted from the values.
        """
        axis, z = self.design.axis_along(found.directions[k]), found.z[k]
        added = np.abs([np.interp(z, knots, each) for each in values])
        importance = float(np.mean(added @ self.balanced_weights)) / float(self.balanced_weights.sum())
        levels: tuple[str, ...] = ()
        there, missing = np.full(len(z), True), np.full(len(values), None)
        if axis is None:
            kept = simplified(knots, values.T, _KNOT_ERROR)
        elif axis.n_levels:
            category = self.columns.categories[axis.column]
            levels, kept = tuple(category.names), np.arange(axis.n_levels)
            missing = values[:, -1] if category.others else -mean  # of levels that are not known
        else:
            kept, missing = simplified(knots[:-1], values[:, :-1].T, _KNOT_ERROR), values[:, -1]
            there = z <= axis.highest
        rows = z[there], self.sample.codes[there], self.weights[there], self.n_classes
        places, densities = level_shares(*rows, len(levels)) if levels else class_densities(*rows)
        curves = zip(values, missing.tolist(), strict=True)
        return Line(
            direction=found.directions[k],
            curves=tuple(Curve(knots[kept], each[kept], if_missing) for each, if_missing in curves),
            importance=importance,
            feature_importances=importance * found.shares[k],
            counts=np.empty(0),
            places=places,
            densities=densities,
            offsets=np.zeros(self.n_blocks),
            errors=tuple(each[kept] for each in errors),
            minor=found.minor[k],
            levels=levels,
        )


@one_blas_thread
def lines_along(
    rows: Rows, directions: Floats, spread: Floats, log_priors: Floats, rng: np.random.RandomState
) -> tuple[list[Line], Floats]:
    """Return lines along known directions, shape (n_lines, d), and intercepts; rows have class numbers as codes.

    ``spread``, of shape (d,), are the standard deviations of the features.
    """
    joint = JointFit(rows, draw_sample(rows, _SAMPLED_ROWS, rng), len(rows.counts), gamma=1.0)
    found = joint.without_lines()
    for direction in directions:
        contributions = np.abs(direction) * spread
        found = joint.with_line(found, direction, contributions / contributions.sum())
    return joint.lines(joint.fitted_to_all_rows(found), log_priors)


def balancing_factors(totals: tuple[float, ...]) -> Floats:
    """Return factors on the weights of each class that make their totals equal, ``n_classes / Σ 1/total``."""
    sizes = np.array(totals)
    return np.asarray(len(sizes) / np.sum(1 / sizes) / sizes)


def log_odds_against_rest(scores: Floats, block: int) -> Floats:
    """Return the log-odds of a class against all others from scores of shape (n_blocks, n)."""
    if len(scores) == 1:
        return scores[0]
    return np.asarray(scores[block] - logsumexp(np.delete(scores, block, axis=0), axis=0))


def class_densities(z: Floats, codes: NDArray[np.int8], weights: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Return places along a line, shape (p,), and the density of each class there, (n_classes, p), for pictures.

    Kernels have Silverman's bandwidth of each class. The densities are computed on a grid.
    """
    chosen = [codes == c for c in range(n_classes)]
    widths = [_bandwidth(z[each], weights[each]) for each in chosen]
    # Rows may be equal, or a few floats apart; the points of the grid must differ nevertheless.
    finest = 2 * _GRID * max(float(np.spacing(np.abs(z).max())), _LEAST_GRID_STEP)
    margin = max(_BEYOND_ROWS * max(widths), finest)
    places = np.linspace(z.min() - margin, z.max() + margin, _GRID)
    step = places[1] - places[0]
    densities = np.empty((n_classes, _GRID))
    for c, (each, width) in enumerate(zip(chosen, widths, strict=True)):
        binned = np.histogram(z[each], _GRID, (places[0] - step / 2, places[-1] + step / 2), weights=weights[each])[0]
        reach = np.arange(-_GRID, _GRID + 1) * step
        kernel = np.exp(-0.5 * (reach / max(width, step)) ** 2)
        smooth = np.convolve(binned, kernel)[_GRID : 2 * _GRID]
        densities[c] = smooth / max(smooth.sum() * step, _LEAST_GRID_STEP)  # all rows of a class may be missing
    kept = simplified(places, densities.T, PICTURE_ERROR * float(densities.max()))
    return places[kept], densities[:, kept]


def level_shares(
    z: Floats, codes: NDArray[np.int8], weights: Floats, n_classes: int, n_levels: int
) -> tuple[Floats, Floats]:
    """Return the numbers of levels and the share of each in each class, shape (n_classes, n_levels), for pictures.

    z are the numbers of the levels of the rows.
    """
    cells = codes.astype(np.int64) * n_levels + z.astype(np.int64)
    totals = np.bincount(cells, weights, n_classes * n_levels).reshape(n_classes, n_levels)
    return np.arange(float(n_levels)), np.asarray(totals / totals.sum(axis=1, keepdims=True))


def _knots_along(z: Floats, axis: Axis | None, most: int) -> Floats:
    """Return knots for projections z: quantiles, or all levels, or quantiles and the place of missing values."""
    if axis is None:
        return knots_of(z, most)
    if axis.n_levels:
        return np.arange(float(axis.n_levels))
    known = knots_of(z[z <= axis.highest], most)
    return np.unique(np.append(known[known <= axis.highest], [axis.highest, axis.missing_at]))


def _bandwidth(z: Floats, weights: Floats) -> float:
    """Return Silverman's bandwidth of weighted values."""
    total = max(float(weights.sum()), _LEAST_GRID_STEP)
    middle = float(weights @ z) / total
    return float(np.sqrt(weights @ (z - middle) ** 2 / total)) * (4 / (3 * total)) ** 0.2


def _errors(curves: Curves, k: int, entries: Floats, alone: bool) -> Floats:
    """Return the standard errors of the curves of line k at its knots, shape (n_blocks, n_knots).

    They are for the curve minus its mean, given the mean ``entries`` of rows; if it is ``alone``, plus the constant.
    """
    part = curves.part(k)
    found = []
    for V in curves.covariances:
        own = V[part, part]
        if alone:
            variances = np.diagonal(own) + 2 * V[0, part] + V[0, 0]
        else:
            variances = np.diagonal(own) - 2 * own @ entries + entries @ own @ entries
        found.append(np.sqrt(np.maximum(variances, 0.0)))
    return np.array(found)


def _as_only_line(line: Line, intercepts: Floats) -> Line:
    """Return the only line of a model, whose thresholds are where the decision changes."""
    curves = line.curves
    if len(curves) == 1 and not line.levels:  # a knot at each threshold, so that all exports agree there
        curves = (curves[0].with_knots_at(-float(intercepts[0])),)
    pairs = zip(curves, line.curves, line.errors, strict=True)
    errors = tuple(np.interp(new.knots, old.knots, each) for new, old, each in pairs)
    return replace(line, curves=curves, errors=errors, offsets=intercepts)
