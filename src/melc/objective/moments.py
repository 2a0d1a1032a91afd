"""The divergence by moment bins: two products with X and a little more, with a certified error.

Formula. With the projections z = Xv in bins, and S the double sums over pairs of bins (:mod:`melc.sums.moments`),

    D(v)  = log S_xx + log S_yy − 2 log S_xy + log (V_x + V_y) − ½ log 2V_x − ½ log 2V_y
    ∇D(v) = Σ_i w_i x_i,    w_i = weight_i · p_bin(i)(u_i)

where p is a polynomial of the coordinate u ∈ [−1, 1) within the bin, one for every bin of either class: the derivative
of D by the place of a point.

One evaluation: guess the kernel widths from a sample, and with them a layout of bins; project and bin in one pass; read
the true class variances off the moments; sum over neighbouring bins, and where the classes lie apart over narrow bins
at the rims of the gap; check the certificate, and bin again, finer, should it fail; turn the sums into polynomials, and
pull back in a second pass, unless the moments of the features came with the first.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.data.points import Binned, Extra, Points
from melc.data.sample import spread_samples
from melc.data.source import Rows
from melc.kernels import ORDER
from melc.objective.base import VARIANCE_FLOOR, Evaluation
from melc.objective.gap import bins_at_rims, rims_of, sum_at_rims
from melc.objective.occupied import Occupied, layout_over, occupied, spread_of_bins
from melc.objective.shrinkage import Shrinkage
from melc.sums import bounds
from melc.sums.bins import Bins, Layout, Merged, merge
from melc.sums.moments import BinnedSum, sum_across, sum_within
from melc.sums.rims import RimBins, Rims, RimSlopes

# Rows of each class from which widths and range along v are guessed.
_GUESS_ROWS = 1024
_MOST_REFINEMENTS = 12
# Of a mean of many numbers, relative to these.
_ROUNDING = 2.0**-40


@dataclass(frozen=True)
class _Rimmed:
    """What a sum across was taken over where classes lie apart."""

    rims: Rims
    bins: RimBins
    outliers: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # which of either class are among it


@dataclass(frozen=True)
class _Sums:
    """The three sums, each on bins as wide as it allows."""

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
        """Return ∂(log S_cc − 2 log S_xy)/∂z for the bins of a class, the rims left out if there are any."""
        own = self.within[c].carry_back((self.xx, self.yy)[c].polynomials[0])
        return own if self.rimmed is not None else own - 2 * self.across[c].carry_back(self.xy.polynomials[c])

    def slopes_at_rims(self) -> RimSlopes | None:
        """Return −2 ∂ log S_xy/∂z where that sum was taken over the rims of a gap."""
        if self.rimmed is None:
            return None
        x, y = (-2 * each for each in self.xy.polynomials)
        keys = self.rimmed.bins.keys
        return RimSlopes(self.rimmed.rims, (keys[0], keys[1]), (x, y))


@dataclass(frozen=True)
class _Line:
    """What an evaluation found along a direction."""

    layout: Layout
    binned: Binned
    classes: tuple[Occupied, Occupied]
    spread: kernels.Spread
    variances: tuple[float, float]  # of the kernels
    sums: _Sums


class MomentsDivergence:
    """D with an error of at most ``eps``, in time proportional to the rows. See the module for the formula."""

    def __init__(self, rows: Rows, gamma: float, eps: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.eps, self.shrinkage = rows, gamma, eps, shrinkage
        self._samples = spread_samples(rows, _GUESS_ROWS)
        # Bins are anchored at the projection of this point: they move with the data as v turns.
        self._centre = np.mean([np.asarray(X.mean(axis=0), dtype=np.float64).ravel() for X, _ in self._samples], axis=0)
        # The nearest pair may be the lightest of all, however heavy the bins that it lies in.
        log_pairs = sum(math.log(rows.total_weights[c] / rows.lightest[c]) for c in (0, 1))
        self._exponents = log_pairs + math.log(100 / eps)
        self._bin_per_bandwidth = bounds.moment_bin_width(ORDER, 1.0, eps / 4)

    def evaluate(self, v: Floats) -> Evaluation:
        """Return D and its gradient along v."""
        shrunk = kernels.AS_THEY_ARE if self.shrinkage is None else self.shrinkage.along(v)
        line = self._look(v, shrunk)
        if line is None:
            return Evaluation(0.0, np.zeros(len(v)), 0, True, 0.0)
        if line.sums.error > self.eps:
            raise FloatingPointError(_no_certificate(line.sums.error, self.eps))
        xx, yy, xy = line.sums.xx, line.sums.yy, line.sums.xy
        divergence, by_vx, by_vy = kernels.assemble_divergence(
            xx.log_value, yy.log_value, xy.log_value, *line.variances, xx.slope, yy.slope, xy.slope
        )
        own_x, own_y, pooled, *by_added = kernels.variance_pull(
            line.spread, shrunk, self.gamma, VARIANCE_FLOOR, by_vx, by_vy
        )
        floored = kernels.is_floored(line.spread, shrunk, VARIANCE_FLOOR)
        gradient = self._gradient(v, line, (own_x, own_y), pooled)
        if self.shrinkage is not None:
            gradient += self.shrinkage.pull(v, by_added)
        count = xx.n_exponentials + yy.n_exponentials + xy.n_exponentials
        return Evaluation(divergence, gradient, count, floored, line.sums.error)

    # ------------------------------------------------------------------------------------------------- the sums

    def _look(self, v: Floats, shrunk: kernels.Shrunk) -> _Line | None:
        """The sums along v, in bins that a sample suggests or in finer ones if these fail; None if nothing varies."""
        layout = self._guess(v, shrunk)
        for attempt in range(_MOST_REFINEMENTS):
            halvings = max(0, attempt - 1)  # the second attempt has the true variances, which may be enough
            binned = self.rows.bin(v, layout)
            classes = occupied(layout, binned, 0), occupied(layout, binned, 1)
            spread = spread_of_bins(classes[0].bins, classes[1].bins, layout.origin)
            if _nothing_varies(spread, layout.origin):
                return None
            variances = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
            sums = self._sum(layout, classes, variances, halvings)
            if _needs_rims(sums, self.eps):
                sums = self._with_rims(v, layout, classes, sum(variances), binned, sums)
            line = _Line(layout, binned, classes, spread, variances, sums)
            if sums.error <= self.eps:
                break
            widths = self._widths(variances, attempt)
            layout = layout_over(layout.origin, classes[0].bins, classes[1].bins, widths)
        return line

    def _guess(self, v: Floats, shrunk: kernels.Shrunk) -> Layout:
        """Bins for the widths and the range that a sample of either class shows."""
        samples = [X @ v for X, _ in self._samples]
        (mean_x, variance_x, low_x, high_x), (mean_y, variance_y, low_y, high_y) = (
            kernels.sample_spread(z, weights) for z, (_, weights) in zip(samples, self._samples, strict=True)
        )
        guess = kernels.Spread(*self.rows.total_weights, mean_x, mean_y, variance_x, variance_y)
        origin = float(v @ self._centre)
        if kernels.total_variance(guess) == 0:  # nothing to go by: any width, refined later
            guess = guess._replace(variance_x=max(abs(origin), 1.0), variance_y=max(abs(origin), 1.0))
        variances = kernels.kernel_variances(guess, shrunk, self.gamma, VARIANCE_FLOOR)
        widths = self._widths(variances, 0)
        ranges = (low_x, high_x), (low_y, high_y)
        return Layout.around(origin, widths, ranges, lambda c: float(np.median(samples[c])))

    def _widths(self, variances: tuple[float, float], halvings: int) -> tuple[float, float]:
        """For either class, bins fine enough for both sums that it takes part in."""
        across = variances[0] + variances[1]
        return (
            self._width(min(2 * variances[0], across), halvings),
            self._width(min(2 * variances[1], across), halvings),
        )

    def _width(self, variance: float, halvings: int) -> float:
        """The largest power of two that keeps the error, halved some more times."""
        _, exponent = math.frexp(self._bin_per_bandwidth * math.sqrt(variance))
        return math.ldexp(0.5, exponent - halvings)

    def _sum(
        self, layout: Layout, classes: tuple[Occupied, Occupied], variances: tuple[float, float], halvings: int
    ) -> _Sums:
        x, y = classes[0].bins, classes[1].bins
        across_variance = variances[0] + variances[1]
        width_xx, width_yy, width_xy = (
            self._width(variance, halvings) for variance in (2 * variances[0], 2 * variances[1], across_variance)
        )
        width_xy = max(width_xy, *layout.widths)
        within = merge(x, max(width_xx, x.width)), merge(y, max(width_yy, y.width))
        across = merge(x, width_xy), merge(y, width_xy)
        xx = sum_within(within[0].bins, 2 * variances[0], self.eps)
        yy = sum_within(within[1].bins, 2 * variances[1], self.eps)
        xy = sum_across(across[0].bins, across[1].bins, across_variance, self.eps)
        return _Sums(within, across, xx, yy, xy)

    def _with_rims(
        self,
        v: Floats,
        layout: Layout,
        classes: tuple[Occupied, Occupied],
        variance: float,
        binned: Binned,
        sums: _Sums,
    ) -> _Sums:
        """The sums with the one across taken over the rims of the gap: few points decide it."""
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

    def _gradient(self, v: Floats, line: _Line, own: tuple[float, float], pooled: float) -> Floats:
        """Σ_i w_i x_i over all rows, from one polynomial for every bin.

        ``own`` and ``pooled`` are what the class variances add: see :func:`melc.kernels.variance_pull`.
        """
        layout, outside = line.layout, line.binned.outside
        slopes = line.sums.slopes_at_rims()
        table, extras = np.zeros((layout.n_bins, ORDER - 1)), []
        drift = 0.0 if slopes is None else _drift_at_rims(line.sums, slopes)
        for c, side in enumerate(line.classes):
            polynomials = line.sums.polynomials(c) + _variance_slopes(line, c, own[c], pooled)
            drift += float(np.sum(polynomials * side.bins.moments))
            table[side.slots] = polynomials[side.in_table, : ORDER - 1]
            if outside is not None:
                mine = outside[outside.codes == c]
                extras.append(_outliers(line, c, mine, polynomials, slopes))
        gradient = self._pull_back(v, line, table, extras, slopes)
        # The weights of D itself add up to zero, for moving all points changes nothing. Those of the bins do so only to
        # the order of their error, which far from zero the rows would multiply; but the bins move along.
        return gradient - drift * self._centre

    def _pull_back(
        self, v: Floats, line: _Line, table: Floats, extras: list[Extra], slopes: RimSlopes | None
    ) -> Floats:
        """The sum of all rows, each times the polynomial of its bin and plus what it has at a rim or extra."""
        features = line.binned.features
        known = [(extra.weights, extra.features) for extra in extras if extra.features is not None]
        if features is None or slopes is not None or len(known) < len(extras):
            return self.rows.pull_back_binned(v, line.layout, table, _joined(extras), slopes)
        # No BLAS, whose threads might add in another order.
        gradient = np.einsum("bj,bdj->d", table, features)
        for weights, rows in known:
            gradient += np.einsum("i,id->d", weights, rows)
        return np.asarray(gradient)


def _needs_rims(sums: _Sums, eps: float) -> bool:
    """Whether ordinary bins keep the sums within the classes, but not the one across, which is then all tail."""
    return sums.xx.error + sums.yy.error <= eps / 2 and 2 * sums.xy.error > eps / 2


def _drift_at_rims(sums: _Sums, slopes: RimSlopes) -> float:
    """What the weights of all points at the rims add up to."""
    assert sums.rimmed is not None
    return sum(float(np.sum(slopes.polynomials[c] * sums.rimmed.bins.moments[c])) for c in (0, 1))


def _variance_slopes(line: _Line, c: int, own: float, pooled: float) -> Floats:
    """What the kernel variances add to the weight of a point: own (z − mean_c) + pooled (z − mean), in u."""
    spread, bins = line.spread, line.classes[c].bins
    share = spread.weight_y / (spread.weight_x + spread.weight_y)
    centre = spread.mean_x + share * (spread.mean_y - spread.mean_x)
    middle = line.layout.origin + (bins.keys + 0.5) * bins.width
    slopes = np.zeros(bins.moments.shape)
    slopes[:, 0] = own * (middle - (spread.mean_x, spread.mean_y)[c]) + pooled * (middle - centre)
    slopes[:, 1] = (own + pooled) * bins.width / 2
    return slopes


def _outliers(line: _Line, c: int, mine: Points, polynomials: Floats, slopes: RimSlopes | None) -> Extra:
    """The weights of the points of a class that lie in no bin of the table."""
    chosen = polynomials[line.classes[c].of_outside]
    local = line.layout.locate(mine.z, mine.codes)[1]
    values = np.polynomial.polynomial.polyval(local, chosen.T, tensor=False)
    if slopes is not None and line.sums.rimmed is not None:
        near = line.sums.rimmed.outliers[c]
        values[near] += slopes.at(mine.z[near], mine.codes[near])
    return Extra(mine.rows, mine.weights * values, mine.features)


def _joined(extras: list[Extra]) -> Extra | None:
    """All in one, in the order of the rows."""
    if not extras:
        return None
    rows, weights = np.concatenate([e.rows for e in extras]), np.concatenate([e.weights for e in extras])
    order = np.argsort(rows, kind="stable")
    return Extra(rows[order], weights[order])


def _nothing_varies(spread: kernels.Spread, origin: float) -> bool:
    """Whether the variance of all points is no more than the rounding of means."""
    farthest = max(abs(spread.mean_x - origin), abs(spread.mean_y - origin))
    return bool(kernels.total_variance(spread) <= (_ROUNDING * farthest) ** 2)


def _no_certificate(error: float, eps: float) -> str:
    return (
        f"Moment bins reached a certified error of {error:.3g} only, not eps={eps:g}. Accept a larger eps, or use "
        'method="exact".'
    )
