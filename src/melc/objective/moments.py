"""The divergence by moment bins, with a certified error. It takes about the time of two products with X.

Formula. With the projections z = Xv in bins, and S the double sums over pairs of bins (:mod:`melc.sums.moments`),

    D(v)  = log S_xx + log S_yy − 2 log S_xy + log (V_x + V_y) − ½ log 2V_x − ½ log 2V_y
    ∇D(v) = Σ_i w_i x_i,    w_i = weight_i · p_bin(i)(u_i)

where p is the derivative of D by the position of a point. It is a polynomial of the coordinate u ∈ [−1, 1) within the
bin; there is one for each bin of each class.

The steps of an evaluation:

1. Estimate the bandwidths from a sample, and choose a layout of bins for them.
2. Project and bin all rows, in one pass.
3. Compute the class variances from the moments.
4. Sum over pairs of nearby bins. If the classes are far apart, sum across them over narrow bins at the rims of the gap.
5. If the certified error is too large, go back to step 2 with narrower bins.
6. Compute the polynomials from the sums, and the gradient in a second pass. If the moments of the features came with
   the first pass, the second is not needed.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.data.points import Binned, Extra, Points, Spread
from melc.data.sample import spread_samples
from melc.data.source import Rows
from melc.objective.base import (
    Evaluation,
    Shrinkage,
    Shrunk,
    add_linear,
    combine_sums,
    kernel_variances,
    shrunk_along,
    spread_of,
    total_variance,
)
from melc.objective.gap import bins_at_rims, rims_of, sum_at_rims
from melc.sums import bounds
from melc.sums.bins import BinLayout, Bins, Merged, merge
from melc.sums.moments import BinnedSum, sum_bins_across, sum_bins_within
from melc.sums.rims import RimBins, Rims, RimSlopes

# Rows of each class from which the bandwidths and the range along v are estimated.
_GUESS_ROWS = 1024
_MOST_REFINEMENTS = 12  # attempts with narrower bins before an evaluation fails
# Relative rounding error of a mean of many numbers.
_ROUNDING = 2.0**-40


@dataclass(frozen=True)
class _Rimmed:
    """The rims that the sum across the classes was taken over, and the moments of their points."""

    rims: Rims
    bins: RimBins
    outliers: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # for each class, which of its outliers are included


@dataclass(frozen=True)
class _Sums:
    """The three sums, each with bins as wide as its variance allows. ``rimmed`` is None unless xy is over rims."""

    within: tuple[Merged, Merged]
    across: tuple[Merged, Merged]
    xx: BinnedSum
    yy: BinnedSum
    xy: BinnedSum
    rimmed: _Rimmed | None = None

    @property
    def error(self) -> float:
        """Certified error of D."""
        return self.xx.error + self.yy.error + 2 * self.xy.error

    def polynomials(self, c: int) -> Floats:
        """Return the polynomials of ∂(log S_cc − 2 log S_xy)/∂z for the bins of class c, shape (n_bins, P).

        If S_xy is a sum over rims, its part is left out; see :meth:`slopes_at_rims`.
        """
        own = self.within[c].carry_back((self.xx, self.yy)[c].polynomials[0])
        return own.copy() if self.rimmed is not None else own - 2 * self.across[c].carry_back(self.xy.polynomials[c])

    def slopes_at_rims(self) -> RimSlopes | None:
        """Return −2 ∂ log S_xy/∂z if S_xy is a sum over the rims of a gap, otherwise None."""
        if self.rimmed is None:
            return None
        x, y = (-2 * each for each in self.xy.polynomials)
        keys = self.rimmed.bins.keys
        return RimSlopes(self.rimmed.rims, (keys[0], keys[1]), (x, y))


@dataclass(frozen=True)
class Occupied:
    """The occupied bins of one class, and how they correspond to rows of the table and to outliers."""

    bins: Bins
    in_table: NDArray[np.int64]  # index in bins of each occupied row of the table
    slots: NDArray[np.int64]  # these rows of the table
    of_outside: NDArray[np.int64]  # index in bins of each outlier


@dataclass(frozen=True)
class _Line:
    """The bins, variances and sums that an evaluation found along a direction."""

    layout: BinLayout
    binned: Binned
    classes: tuple[Occupied, Occupied]
    spread: Spread
    variances: tuple[float, float]  # of the kernels
    sums: _Sums


class MomentsDivergence:
    """D with an error of at most ``eps``, in time proportional to the number of rows.

    The formula and the steps of an evaluation are in the docstring of the module.
    """

    def __init__(self, rows: Rows, gamma: float, eps: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.eps, self.shrinkage = rows, gamma, eps, shrinkage
        self._samples = spread_samples(rows, _GUESS_ROWS)
        # The projection of this point is the origin of the bins, so that they move with the data when v changes.
        self._centre = np.mean([np.asarray(X.mean(axis=0), dtype=np.float64).ravel() for X, _ in self._samples], axis=0)
        # The nearest pair of points may be the lightest of all, whatever the weight of its bins.
        log_pairs = sum(math.log(rows.total_weights[c] / rows.smallest_weights[c]) for c in (0, 1))
        self._exponents = log_pairs + math.log(100 / eps)
        self._bin_per_bandwidth = bounds.moment_bin_width(kernels.ORDER, 1.0, eps / 4)

    def evaluate(self, v: Floats) -> Evaluation:
        """Return D and its gradient at v."""
        shrunk = shrunk_along(self.shrinkage, v)
        line = self._sums_along(v, shrunk)
        if line is None:
            return Evaluation(0.0, np.zeros(len(v)), 0, True, 0.0)
        if line.sums.error > self.eps:
            raise FloatingPointError(_no_certificate(line.sums.error, self.eps))
        xx, yy, xy = line.sums.xx, line.sums.yy, line.sums.xy
        logs, slopes = zip(*((each.log_value, each.slope) for each in (xx, yy, xy)), strict=True)
        combined = combine_sums(line.spread, shrunk, self.gamma, logs, slopes)
        gradient = self._gradient(v, line, combined.linear)
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, combined.by_added)
        count = xx.n_exponentials + yy.n_exponentials + xy.n_exponentials
        return Evaluation(combined.divergence, gradient, count, combined.floored, line.sums.error)

    # ------------------------------------------------------------------------------------------------- the sums

    def _sums_along(self, v: Floats, shrunk: Shrunk) -> _Line | None:
        """Return the sums along v, or None if the projections do not vary.

        The first bins are those that a sample suggests. They are made narrower until the certified error is at most
        ``eps`` or the number of attempts is used up.
        """
        layout = self._guess(v, shrunk)
        if layout is None:
            return None
        for attempt in range(_MOST_REFINEMENTS):
            halvings = max(0, attempt - 1)  # the second attempt uses the true variances, which may be enough
            binned = self.rows.bin(v, layout)
            classes = occupied(layout, binned, 0), occupied(layout, binned, 1)
            spread = spread_of_bins(classes[0].bins, classes[1].bins, layout.origin)
            if _nothing_varies(spread, layout.origin):
                return None
            variances = kernel_variances(spread, shrunk, self.gamma)
            sums = self._sum(layout, classes, variances, halvings)
            if _needs_rims(sums, self.eps):
                sums = self._with_rims(v, layout, classes, sum(variances), binned, sums)
            line = _Line(layout, binned, classes, spread, variances, sums)
            if sums.error <= self.eps:
                break
            widths = self._widths(variances, attempt)
            layout = layout_over(layout.origin, classes[0].bins, classes[1].bins, widths)
        return line

    def _guess(self, v: Floats, shrunk: Shrunk) -> BinLayout | None:
        """Return a layout for the bandwidths and the range of a sample of each class; None if all points are equal."""
        samples = [X @ v for X, _ in self._samples]
        weight_x, weight_y = self.rows.total_weights
        guess = spread_of(samples, [weights for _, weights in self._samples])
        guess = guess._replace(weight_x=weight_x, weight_y=weight_y)
        first, second = ((float(z.min()), float(z.max())) for z in samples)
        ranges = first, second
        if total_variance(guess) <= (_ROUNDING * np.abs(ranges).max()) ** 2:
            # The sample varies no more than the rounding of its mean. All rows are used then, which happens seldom.
            summary = self.rows.summarise(v)
            guess, ranges = summary.spread, (summary.classes[0].range, summary.classes[1].range)
            if np.ptp(ranges) == 0:
                return None
        variances = kernel_variances(guess, shrunk, self.gamma)
        widths = self._widths(variances, 0)
        origin = float(v @ self._centre)
        return BinLayout.around(origin, widths, ranges, lambda c: float(np.median(samples[c])))

    def _widths(self, variances: tuple[float, float], halvings: int) -> tuple[float, float]:
        """Return the bin width of each class, narrow enough for both sums that the class takes part in."""
        across = variances[0] + variances[1]
        return (
            self._width(min(2 * variances[0], across), halvings),
            self._width(min(2 * variances[1], across), halvings),
        )

    def _width(self, variance: float, halvings: int) -> float:
        """Return the largest power of two that should keep the error below eps, divided by 2**halvings."""
        _, exponent = math.frexp(self._bin_per_bandwidth * math.sqrt(variance))
        return math.ldexp(0.5, exponent - halvings)

    def _sum(
        self, layout: BinLayout, classes: tuple[Occupied, Occupied], variances: tuple[float, float], halvings: int
    ) -> _Sums:
        x, y = classes[0].bins, classes[1].bins
        across_variance = variances[0] + variances[1]
        width_xx, width_yy, width_xy = (
            self._width(variance, halvings) for variance in (2 * variances[0], 2 * variances[1], across_variance)
        )
        width_xy = max(width_xy, *layout.widths)
        within = merge(x, max(width_xx, x.width)), merge(y, max(width_yy, y.width))
        across = merge(x, width_xy), merge(y, width_xy)
        xx = sum_bins_within(within[0].bins, 2 * variances[0], self.eps)
        yy = sum_bins_within(within[1].bins, 2 * variances[1], self.eps)
        xy = sum_bins_across(across[0].bins, across[1].bins, across_variance, self.eps)
        return _Sums(within, across, xx, yy, xy)

    def _with_rims(
        self,
        v: Floats,
        layout: BinLayout,
        classes: tuple[Occupied, Occupied],
        variance: float,
        binned: Binned,
        sums: _Sums,
    ) -> _Sums:
        """Return the sums with the one across the classes taken over the rims of the gap."""
        chosen, gap = bins_at_rims(classes[0].bins, classes[1].bins, variance, self._exponents)
        in_table, extent = np.zeros(layout.n_bins, dtype=bool), 0.0
        for mine, side in zip(chosen, classes, strict=True):
            in_table[side.slots] = mine[side.in_table]
            extent = max(extent, float(np.abs(side.bins.keys[mine]).max() + 1) * side.bins.width)
        rims = rims_of(layout, in_table, extent, variance, gap, self._exponents, self.eps)
        found = self.rows.bin_at_rims(v, layout, rims)
        first, second = (mine[side.of_outside] for mine, side in zip(chosen, classes, strict=True))
        for c, mine in enumerate((first, second)):
            if binned.outside is not None:
                outliers = binned.outside[binned.outside.codes == c][mine]
                found.add(rims, outliers.z, outliers.codes, outliers.weights)
        x, y = (Bins(found.keys[c], found.moments[c], rims.width) for c in (0, 1))
        xy = sum_at_rims(rims, x, y, variance, self.eps)
        return replace(sums, xy=xy, rimmed=_Rimmed(rims, found, (first, second)))

    # ---------------------------------------------------------------------------------------------- the gradient

    def _gradient(self, v: Floats, line: _Line, linear: list[tuple[float, float, float]]) -> Floats:
        """Return Σ_i w_i x_i over all rows, shape (n_features,), from one polynomial for each bin.

        ``linear`` is what the class variances contribute: see :class:`melc.objective.base.Combined`.
        """
        layout, outside = line.layout, line.binned.outside
        slopes = line.sums.slopes_at_rims()
        table, extras = np.zeros((layout.n_bins, kernels.ORDER - 1)), []
        drift = 0.0 if slopes is None else _drift_at_rims(line.sums, slopes)
        for c, side in enumerate(line.classes):
            polynomials = line.sums.polynomials(c)
            add_linear(polynomials, linear[c], side.bins, layout.origin)
            drift += float(np.sum(polynomials * side.bins.moments))
            table[side.slots] = polynomials[side.in_table, : kernels.ORDER - 1]
            if outside is not None:
                mine = outside[outside.codes == c]
                extras.append(_outliers(line, c, mine, polynomials, slopes))
        gradient = self._pull_back(v, line, table, extras, slopes)
        # The weights of the exact D add up to zero, because translating all points changes nothing. Those from bins add
        # up to ``drift``, a small error that rows far from zero would magnify. The origin of the bins is v·centre, so
        # the gradient of D as computed is Σ w_i (x_i − centre).
        return gradient - drift * self._centre

    def _pull_back(
        self, v: Floats, line: _Line, table: Floats, extras: list[Extra], slopes: RimSlopes | None
    ) -> Floats:
        """Return Σ_i w_i x_i, shape (n_features,), from the moments of the features if possible, else in a new pass."""
        features = line.binned.features
        known = [(extra.weights, extra.features) for extra in extras if extra.features is not None]
        if features is None or slopes is not None or len(known) < len(extras):
            return self.rows.pull_back_binned(v, line.layout, table, _concatenated(extras), slopes)
        # Without BLAS, whose threads might add in a different order.
        gradient = np.einsum("bj,bdj->d", table, features)
        for weights, rows in known:
            gradient += np.einsum("i,id->d", weights, rows)
        return np.asarray(gradient)


def occupied(layout: BinLayout, binned: Binned, c: int) -> Occupied:
    """Return the occupied bins of class c."""
    table = binned.moments[layout.offset[c] : layout.offset[c] + layout.count[c]]
    filled = np.flatnonzero(table[:, 0])
    keys, mine, slots = filled + layout.low[c], table[filled], filled + layout.offset[c]
    width = layout.widths[c]
    if binned.outside is None:
        return Occupied(Bins(keys, mine, width), np.arange(len(keys)), slots, np.empty(0, dtype=np.int64))
    outside = binned.outside[binned.outside.codes == c]
    their_keys, local = layout.locate(outside.z, outside.codes)
    far_keys, inverse = np.unique(their_keys.astype(np.int64), return_inverse=True)
    far = np.zeros((len(far_keys), kernels.ORDER))
    kernels.add_point_moments(local, inverse, outside.weights, far)
    every = np.concatenate([keys, far_keys])
    order = np.argsort(every)
    position = np.empty(len(every), dtype=np.int64)
    position[order] = np.arange(len(every))
    bins = Bins(every[order], np.concatenate([mine, far])[order], width)
    return Occupied(bins, position[: len(keys)], slots, position[len(keys) :][inverse])


def layout_over(origin: float, x: Bins, y: Bins, widths: tuple[float, float]) -> BinLayout:
    """Return a layout with new widths that covers the given bins."""

    def median(c: int) -> float:
        bins = (x, y)[c]
        passed = np.cumsum(bins.moments[:, 0])
        return origin + float(bins.keys[np.searchsorted(passed, passed[-1] / 2)]) * bins.width

    ranges = tuple((origin + low[0], origin + high[-1]) for low, high in (x.edges, y.edges))
    return BinLayout.around(origin, widths, (ranges[0], ranges[1]), median)


def spread_of_bins(x: Bins, y: Bins, origin: float) -> Spread:
    """Return the weight, mean and variance of the projections of each class, exact up to rounding, from the moments."""
    weights, means, variances = [], [], []
    for bins in (x, y):
        m, half = bins.moments, bins.width / 2
        middle = (bins.keys + 0.5) * bins.width
        total = m[:, 0].sum()
        mean = (middle @ m[:, 0] + half * m[:, 1].sum()) / total
        away = middle - mean  # relative to the mean, which avoids cancellation
        second = away**2 @ m[:, 0] + 2 * half * (away @ m[:, 1]) + half**2 * m[:, 2].sum()
        weights.append(float(total))
        means.append(float(origin + mean))
        variances.append(max(0.0, float(second / total)))
    return Spread(*weights, *means, *variances)


def _needs_rims(sums: _Sums, eps: float) -> bool:
    """Return whether ordinary bins are accurate enough for the sums within the classes, but not for the one across.

    The terms of the sum across are then all in the tail of the Gaussian.
    """
    return sums.xx.error + sums.yy.error <= eps / 2 and 2 * sums.xy.error > eps / 2


def _drift_at_rims(sums: _Sums, slopes: RimSlopes) -> float:
    """Return the sum of the gradient weights of all points at the rims."""
    assert sums.rimmed is not None
    return sum(float(np.sum(slopes.polynomials[c] * sums.rimmed.bins.moments[c])) for c in (0, 1))


def _outliers(line: _Line, c: int, mine: Points, polynomials: Floats, slopes: RimSlopes | None) -> Extra:
    """Return the gradient weights of the outliers of class c, the points that lie in no bin of the table."""
    chosen = polynomials[line.classes[c].of_outside]
    local = line.layout.locate(mine.z, mine.codes)[1]
    values = np.polynomial.polynomial.polyval(local, chosen.T, tensor=False)
    if slopes is not None and line.sums.rimmed is not None:
        near = line.sums.rimmed.outliers[c]
        values[near] += slopes.at(mine.z[near], mine.codes[near])
    return Extra(mine.rows, mine.weights * values, mine.features)


def _concatenated(extras: list[Extra]) -> Extra | None:
    """Return all extra weights concatenated, in the order of the rows; None if there are none."""
    if not extras:
        return None
    rows, weights = np.concatenate([e.rows for e in extras]), np.concatenate([e.weights for e in extras])
    order = np.argsort(rows, kind="stable")
    return Extra(rows[order], weights[order])


def _nothing_varies(spread: Spread, origin: float) -> bool:
    """Return whether the variance of all points is no more than the rounding error of their means."""
    farthest = max(abs(spread.mean_x - origin), abs(spread.mean_y - origin))
    return bool(total_variance(spread) <= (_ROUNDING * farthest) ** 2)


def _no_certificate(error: float, eps: float) -> str:
    return (
        f"The certified error of the divergence is {error:.3g} even with the narrowest moment bins, larger than "
        f'eps={eps:g}. Use a larger eps, or method="exact".'
    )
