"""The divergence by moment bins: two products with X and a little, with a certified error.

One evaluation: guess the kernel widths from a sample, and with them a layout of bins; project and bin in one
pass; read the true class variances off the moments; sum over neighbouring bins, and where the classes lie apart over
narrow bins at the rims of the gap; check the certificate, and bin the projections again, finer, should it fail; turn
the sums into one polynomial a bin, whose value is the weight of a row; pull back in a second pass, unless the features
were binned as well. Where a third pass would be too much, the rows bring a sketch instead, whose bins do in any case.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.evaluation import VARIANCE_FLOOR, Evaluation
from melc.gaps import bins_at_rims, foresee_rims, guess_rims, refit, rims_in, rims_of, sum_at_rims
from melc.kernels import ORDERS
from melc.layout import Layout
from melc.points import Binned, Extra
from melc.rim import RimBins, Rims, Slopes
from melc.rows import Rows
from melc.shrinkage import Shrinkage
from melc.sketch import Demand, Sketch
from melc.sums import bounds
from melc.sums.moments import BinnedSum, Bins, Merged, merge, sum_across, sum_within

# Rows of each class from which widths and range along v are guessed.
_GUESS_ROWS = 1024
# Bins that a class may have in the table; the points of any others are looked up one by one.
_MOST_BINS = 1 << 14
# The table reaches this fraction of a sample's range beyond it on either side.
_MARGIN = 0.5
# Nanoseconds per row (both passes) and per pair of neighbouring bins: their ratio decides the order.
_ROW_COST = {6: 6.0, 8: 7.5}
_PAIR_COST = {6: 22.0, 8: 34.0}
_WORTH_CHOOSING = 500_000
_MOST_REFINEMENTS = 12
# Of a mean of many numbers, relative to these.
_ROUNDING = 2.0**-40


@dataclass(frozen=True)
class _Class:
    """Occupied bins of one class, and where their rows stand in the table and among the outliers."""

    bins: Bins
    in_table: NDArray[np.int64]  # position of the bin for every occupied slot of the table
    slots: NDArray[np.int64]  # those slots
    of_outside: NDArray[np.int64]  # position of the bin of every outlier
    beyond: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # bins in no table


@dataclass(frozen=True)
class _AtRims:
    """What a sum across was taken over where classes lie apart."""

    rims: Rims
    bins: RimBins
    outliers: tuple[NDArray[np.bool_], NDArray[np.bool_]]  # which of either class are among it


@dataclass(frozen=True)
class _Sums:
    """The three sums, each on bins as wide as it allows."""

    merged: tuple[Merged, Merged, Merged, Merged]  # x for xx, y for yy, x for xy, y for xy
    xx: BinnedSum
    yy: BinnedSum
    xy: BinnedSum
    at_rims: _AtRims | None = None

    @property
    def error(self) -> float:
        """Certified error of D."""
        return self.xx.error + self.yy.error + 2 * self.xy.error


@dataclass(frozen=True)
class _Found:
    """What an evaluation found along a direction."""

    layout: Layout
    classes: list[_Class]
    spread: kernels.Spread
    variances: tuple[float, float]
    sums: _Sums
    binned: Binned


class BinnedDivergence:
    """D with an error of at most ``eps``, in time proportional to the rows."""

    def __init__(self, rows: Rows, gamma: float, eps: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.eps, self.shrinkage = rows, gamma, eps, shrinkage
        self._samples = rows.spread_samples(_GUESS_ROWS)
        # Bins are anchored at the projection of this point: they move with the data as v turns.
        self._centre = np.mean([np.asarray(X.mean(axis=0), dtype=np.float64).ravel() for X, _ in self._samples], axis=0)
        self._total_weights = rows.total_weights
        # The nearest pair may be the lightest of all, however heavy the bins that it lies in.
        log_pairs = sum(math.log(rows.total_weights[c] / rows.lightest[c]) for c in (0, 1))
        self._exponents = log_pairs + math.log(100 / eps)
        self.order = _cheapest_order(rows.n_rows, gamma, eps)

    def evaluate(self, v: Floats) -> Evaluation:
        shrunk = kernels.AS_THEY_ARE if self.shrinkage is None else self.shrinkage.along(v)
        found = self._look(v, shrunk)
        if found is None:
            return Evaluation(0.0, np.zeros(len(v)), 0, True, 0.0)
        if found.sums.error > self.eps:
            raise FloatingPointError(_no_certificate(found.sums.error, self.eps))
        evaluation, by_added = self._finish(v, shrunk, found)
        if self.shrinkage is None:
            return evaluation
        return replace(evaluation, gradient=evaluation.gradient + self.shrinkage.pull(v, by_added))

    def _look(self, v: Floats, shrunk: kernels.Shrunk) -> "_Found | None":
        """The sums along v; None if nothing varies there.

        Bins are chosen by a sample, and chosen again if they do not do, unless that is one pass too many.
        """
        layout, rims = self._guess(v, shrunk)
        return self._by_sketch(v, shrunk, layout) if self.rows.sketches else self._by_bins(v, shrunk, layout, rims)

    def _by_bins(self, v: Floats, shrunk: kernels.Shrunk, layout: Layout, rims: Rims | None) -> "_Found | None":
        """In the bins of a layout, or in finer ones should these not do."""
        binned = self.rows.bin(v, layout, self.rows.spares_a_pass(layout), rims)
        for attempt in range(_MOST_REFINEMENTS):
            halvings = max(0, attempt - 1)  # the first new attempt has the true variances, which may be enough
            classes = [_occupied(layout, binned, c) for c in (0, 1)]
            spread = _spread(classes, layout.origin)
            if _nothing_varies(spread, layout.origin):
                return None
            variances = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
            find_rims = functools.partial(self._find_rims, v, layout, classes, sum(variances), binned, rims)
            sums = self._sum(layout, classes, variances, halvings, find_rims)
            found = _Found(layout, classes, spread, variances, sums, binned)
            if sums.error <= self.eps:
                break
            layout = self._finer(layout, classes, variances, attempt)
            with_features = self.rows.spares_a_pass(layout, again=True)
            rims = self._foresee_rims(layout, classes, variances, sums, with_features)
            binned = self.rows.bin(v, layout, with_features, rims, True)
        return found

    def _by_sketch(self, v: Floats, shrunk: kernels.Shrunk, guess: Layout) -> "_Found | None":
        """In bins that the rows chose by themselves, fine enough for whatever they show.

        Joined to those that would be tried one after the other if passes cost little: the sums are then the same.
        """
        demand = Demand(
            guess.origin,
            guess.order,
            guess.widths,
            self._total_weights,
            shrunk,
            self.gamma,
            self.eps,
            self._exponents,
        )
        sketch = self.rows.sketch(v, demand)
        sketch.settle()
        spread = sketch.spread()
        if _nothing_varies(spread, guess.origin):
            return None
        variances = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
        tried = [(guess.order, guess.widths, 0)]
        tried += [(ORDERS[-1], self._widths(variances, ORDERS[-1], halvings), halvings) for halvings in range(5)]
        for order, widths, halvings in tried:
            x, y = (sketch.bins(c, widths[c], order) for c in (0, 1))
            layout = _layout_of(guess.origin, x, y, order)
            classes = [_within(layout, bins, c) for c, bins in enumerate((x, y))]
            find_rims = functools.partial(self._rims_in, sketch, layout, x, y, sum(variances))
            sums = self._sum(layout, classes, variances, halvings, find_rims)
            if sums.error <= self.eps:
                break
        return _Found(layout, classes, spread, variances, sums, Binned(np.empty((0, order))))

    def _guess(self, v: Floats, shrunk: kernels.Shrunk) -> tuple[Layout, Rims | None]:
        """Bins for the widths and the range that a sample of either class shows; narrow ones where it shows a gap."""
        samples = [X @ v for X, _ in self._samples]
        (mean_x, variance_x, low_x, high_x), (mean_y, variance_y, low_y, high_y) = (
            kernels.sample_spread(z, weights) for z, (_, weights) in zip(samples, self._samples, strict=True)
        )
        guess = kernels.Spread(*self._total_weights, mean_x, mean_y, variance_x, variance_y)
        origin = float(v @ self._centre)
        if kernels.total_variance(guess) == 0:  # nothing to go by: any width, refined later
            guess = guess._replace(variance_x=max(abs(origin), 1.0), variance_y=max(abs(origin), 1.0))
        variances = kernels.kernel_variances(guess, shrunk, self.gamma, VARIANCE_FLOOR)
        widths = self._widths(variances, self.order)

        def median(c: int) -> float:
            return float(np.median(samples[c]))

        layout = _layout(origin, widths, (low_x, low_y), (high_x, high_y), median, self.order)
        if self.rows.remembers or self.rows.sketches:
            return layout, None
        return layout, guess_rims(layout, samples, sum(variances), self._exponents, self.eps)

    def _widths(self, variances: tuple[float, float], order: int, halvings: int = 0) -> tuple[float, float]:
        """For either class, bins fine enough for both sums that it takes part in."""
        across = variances[0] + variances[1]
        first, second = (self._width(min(2 * v, across), order, halvings) for v in variances)
        return first, second

    def _width(self, variance: float, order: int, halvings: int) -> float:
        """Powers of two: bins of different widths then fit into each other, and layouts seldom change."""
        width = bounds.moment_bin_width(order, variance, self.eps / 4)
        return float(2.0 ** (math.floor(math.log2(width)) - halvings))

    def _sum(
        self,
        layout: Layout,
        classes: list[_Class],
        variances: tuple[float, float],
        halvings: int,
        find_rims: "Callable[[], _AtRims]",
    ) -> _Sums:
        order = layout.order
        wanted = [self._width(2 * variance, order, halvings) for variance in variances]
        within = [merge(classes[c].bins, max(wanted[c], layout.widths[c])) for c in (0, 1)]
        xx, yy = (sum_within(within[c].bins, 2 * variances[c], self.eps) for c in (0, 1))
        across_variance = variances[0] + variances[1]
        width = max(self._width(across_variance, order, halvings), *layout.widths)
        across = [merge(classes[c].bins, width) for c in (0, 1)]
        xy = sum_across(across[0].bins, across[1].bins, across_variance, self.eps)
        merged = within[0], within[1], across[0], across[1]
        if xx.error + yy.error > self.eps / 2 or 2 * xy.error <= self.eps / 2:
            return _Sums(merged, xx, yy, xy)
        # Bins this wide cannot keep the relative error of a sum that is all tail. Few points decide it.
        found = find_rims()
        x, y = (Bins(found.bins.keys[c], found.bins.moments[c], found.rims.width) for c in (0, 1))
        return _Sums(merged, xx, yy, sum_at_rims(found.rims, x, y, across_variance, self.eps), found)

    def _find_rims(
        self,
        v: Floats,
        layout: Layout,
        classes: list[_Class],
        variance: float,
        binned: Binned,
        guessed: Rims | None,
    ) -> _AtRims:
        """The rims of the gap that there is, and the points there: those that came with the bins if these will do."""
        x, y = classes[0].bins, classes[1].bins
        chosen, gap = bins_at_rims(x, y, variance, self._exponents)
        in_table, extent = np.zeros(layout.n_bins, dtype=bool), 0.0
        for mine, side in zip(chosen, classes, strict=True):
            in_table[side.slots] = mine[side.in_table]
            extent = max(extent, float(np.abs(side.bins.keys[mine]).max() + 1) * side.bins.width)
        rims = rims_of(layout, in_table, extent, variance, gap, self._exponents, self.eps)
        if guessed is not None and binned.at_rims is not None and guessed.cover(rims):
            found = refit(binned.at_rims, guessed, rims, layout)
        else:
            found = self._bin_at_rims(v, layout, rims, binned)
        first, second = (mine[side.of_outside] for mine, side in zip(chosen, classes, strict=True))
        for c, mine in enumerate((first, second)):
            outliers = binned.outside[binned.outside.codes == c][mine]
            found.add(rims, outliers.z, outliers.codes, outliers.weights)
        return _AtRims(rims, found, (first, second))

    def _rims_in(self, sketch: Sketch, layout: Layout, x: Bins, y: Bins, variance: float) -> _AtRims:
        rims, bins = rims_in(sketch, layout, x, y, variance, self._exponents, self.eps)
        return _AtRims(rims, bins, (np.empty(0, dtype=bool), np.empty(0, dtype=bool)))

    def _foresee_rims(
        self,
        layout: Layout,
        classes: list[_Class],
        variances: tuple[float, float],
        sums: _Sums,
        with_features: bool,
    ) -> Rims | None:
        """What to bin at once where the next layout is likely to need it."""
        if self.rows.remembers or 2 * sums.xy.error <= self.eps / 2:
            return None
        x, y = (side.bins for side in classes)
        rims = foresee_rims(layout, x, y, sum(variances), self._exponents, self.eps)
        return replace(rims, with_features=with_features)

    def _bin_at_rims(self, v: Floats, layout: Layout, rims: Rims, binned: Binned) -> RimBins:
        """With all that the gradient will need, which is put with ``binned``, where a third pass would be too much."""
        if not self.rows.spares_a_pass(layout, again=True):
            return self.rows.bin_at_rims(v, layout, rims)
        again = self.rows.bin(v, layout, True, replace(rims, with_features=True), True)
        binned.features, binned.outside = again.features, again.outside
        assert again.at_rims is not None
        return again.at_rims

    def _finer(self, layout: Layout, classes: list[_Class], variances: tuple[float, float], attempt: int) -> Layout:
        """The layout that the true variances ask for, of the highest order, finer with every attempt."""
        order = ORDERS[-1]
        x, y = (side.bins for side in classes)
        return _layout_of(layout.origin, x, y, order, self._widths(variances, order, attempt))

    def _finish(self, v: Floats, shrunk: kernels.Shrunk, found: "_Found") -> tuple[Evaluation, list[float]]:
        """D, and the gradient from one polynomial a bin; ∂D by what shrinkage adds to the class variances."""
        layout, classes, spread, variances = found.layout, found.classes, found.spread, found.variances
        sums, binned = found.sums, found.binned
        xx, yy, xy = sums.xx, sums.yy, sums.xy
        divergence, by_vx, by_vy = kernels.assemble_divergence(
            xx.log_value, yy.log_value, xy.log_value, *variances, xx.slope, yy.slope, xy.slope
        )
        own_x, own_y, pooled, *by_added = kernels.variance_pull(
            spread, shrunk, self.gamma, VARIANCE_FLOOR, by_vx, by_vy
        )
        share = spread.weight_y / (spread.weight_x + spread.weight_y)
        centre = spread.mean_x + share * (spread.mean_y - spread.mean_x)
        table = np.zeros((layout.n_bins, layout.order - 1))
        slopes, drift, extras, beyond = _slopes_at_rims(sums), 0.0, [], []
        for c, (own, mean) in enumerate(((own_x, spread.mean_x), (own_y, spread.mean_y))):
            bins = classes[c].bins
            polynomials = sums.merged[c].carry_back((xx, yy)[c].polynomials[0])
            if sums.at_rims is None:
                polynomials = polynomials - 2 * sums.merged[2 + c].carry_back(xy.polynomials[c])
            else:
                drift -= 2 * float(np.sum(xy.polynomials[c] * sums.at_rims.bins.moments[c]))
            middle = layout.origin + (bins.keys + 0.5) * bins.width
            polynomials[:, 0] += own * (middle - mean) + pooled * (middle - centre)
            polynomials[:, 1] += (own + pooled) * bins.width / 2
            drift += float(np.sum(polynomials * bins.moments))
            table[classes[c].slots] = polynomials[classes[c].in_table, : layout.order - 1]
            beyond.append((bins.keys[classes[c].beyond], polynomials[classes[c].beyond]))
            if len(binned.outside):
                mine = binned.outside[binned.outside.codes == c]
                chosen = polynomials[classes[c].of_outside]
                local = layout.locate(mine.z, mine.codes)[1]
                values = np.polynomial.polynomial.polyval(local, chosen.T, tensor=False)
                if slopes is not None and sums.at_rims is not None:
                    near = sums.at_rims.outliers[c]
                    values[near] += slopes.at(mine.z[near], mine.codes[near])
                extras.append(Extra(mine.rows, mine.weights * values, mine.features))
        # The weights of D itself add up to zero, for moving all points changes nothing. Those of the bins do so only to
        # the order of their error, which far from zero the rows would multiply; but the bins move along.
        at_rims = None if sums.at_rims is None else sums.at_rims.bins
        every = [each for each in (slopes, _slopes_beyond(layout, beyond)) if each is not None]
        gradient = self._pull_back(v, layout, table, extras, every, binned.features, at_rims)
        gradient -= drift * self._centre
        count = xx.n_exponentials + yy.n_exponentials + xy.n_exponentials
        floored = kernels.is_floored(spread, shrunk, VARIANCE_FLOOR)
        return Evaluation(divergence, gradient, count, floored, sums.error), by_added

    def _pull_back(
        self,
        v: Floats,
        layout: Layout,
        table: Floats,
        extras: list[Extra],
        slopes: list[Slopes],
        features: Floats | None,
        at_rims: RimBins | None,
    ) -> Floats:
        """The sum of all rows, each times the polynomial of its bin and plus what it has at a rim or extra."""
        known = [(extra.weights, extra.features) for extra in extras if extra.features is not None]
        unknown = at_rims is not None and not at_rims.has_features
        if features is None or unknown or len(known) < len(extras):
            return self.rows.pull_back_binned(v, layout, table, _joined(extras), slopes)
        # No BLAS, whose threads might add in another order.
        gradient = np.einsum("bj,bdj->d", table, features)
        for weights, rows in known:
            gradient += np.einsum("i,id->d", weights, rows)
        if at_rims is not None:
            for polynomials, mine in zip(slopes[0].polynomials, at_rims.features, strict=True):
                gradient += np.einsum("bj,bdj->d", polynomials[:, :-1], mine)
        return np.asarray(gradient)


def _cheapest_order(n_rows: int, gamma: float, eps: float) -> int:
    """More moments make a row dearer and the bins fewer. Reckoned for two normal classes of equal size.

    Few rows are cheap in any order, so they take the one that has been compiled for most.
    """
    if n_rows < _WORTH_CHOOSING:
        return ORDERS[-1]
    bandwidth = math.sqrt(2 * kernels.silverman_factor(n_rows / 2, gamma))

    def cost(order: int) -> float:
        width = bounds.moment_bin_width(order, bandwidth**2, eps / 4)
        n_bins, neighbours = 9 / width, 13 * bandwidth / width
        return _ROW_COST[order] * n_rows + _PAIR_COST[order] * 2 * n_bins * min(neighbours, n_bins)

    return min(ORDERS, key=cost)


def _layout(
    origin: float,
    widths: tuple[float, float],
    lows: tuple[float, float],
    highs: tuple[float, float],
    median: Callable[[int], float],
    order: int,
) -> Layout:
    """A table over the given range and a margin, cut to its largest size around the median of either class.

    Around the middle of the range, one point far out would leave all others without a bin.
    """
    low, count = [], []
    for c, (width, a, b) in enumerate(zip(widths, lows, highs, strict=True)):
        margin = _MARGIN * (b - a)
        first, last = math.floor((a - margin - origin) / width), math.floor((b + margin - origin) / width)
        if last - first >= _MOST_BINS:
            middle = math.floor((median(c) - origin) / width)
            first, last = middle - _MOST_BINS // 2, middle + _MOST_BINS // 2 - 1
        low.append(first)
        count.append(last - first + 1)
    return Layout(origin, widths, (low[0], low[1]), (count[0], count[1]), order)


def _layout_of(origin: float, x: Bins, y: Bins, order: int, widths: tuple[float, float] | None = None) -> Layout:
    """A table for the places of these bins, as wide as they are unless said otherwise."""
    lows = origin + x.keys[0] * x.width, origin + y.keys[0] * y.width
    highs = origin + (x.keys[-1] + 1) * x.width, origin + (y.keys[-1] + 1) * y.width

    def median(c: int) -> float:
        bins = (x, y)[c]
        passed = np.cumsum(bins.moments[:, 0])
        return origin + float(bins.keys[np.searchsorted(passed, passed[-1] / 2)]) * bins.width

    return _layout(origin, widths or (x.width, y.width), lows, highs, median, order)


def _occupied(layout: Layout, binned: Binned, c: int) -> _Class:
    """The bins of a class that hold points: those of the table, and those of its outliers."""
    begin = layout.offset[c]
    table = binned.moments[begin : begin + layout.count[c]]
    filled = np.flatnonzero(table[:, 0])
    keys, mine = filled + layout.low[c], table[filled]
    nobody = np.empty(0, dtype=np.int64)
    outside = binned.outside[binned.outside.codes == c] if len(binned.outside) else binned.outside
    if not len(outside):
        return _Class(Bins(keys, mine, layout.widths[c]), np.arange(len(keys)), filled + begin, nobody)
    their_keys, local = layout.locate(outside.z, outside.codes)
    far_keys, inverse = np.unique(their_keys.astype(np.int64), return_inverse=True)
    far = np.zeros((len(far_keys), layout.order))
    kernels.add_point_moments(local, inverse, outside.weights, far)
    every = np.concatenate([keys, far_keys])
    order = np.argsort(every)
    position = np.empty(len(every), dtype=np.int64)
    position[order] = np.arange(len(every))
    bins = Bins(every[order], np.concatenate([mine, far])[order], layout.widths[c])
    return _Class(bins, position[: len(keys)], filled + begin, position[len(keys) :][inverse])


def _spread(classes: list[_Class], origin: float) -> kernels.Spread:
    """Exact weights, means and variances of the projections, from the moments."""
    weights, means, variances = [], [], []
    for side in classes:
        m, half = side.bins.moments, side.bins.width / 2
        middle = (side.bins.keys + 0.5) * side.bins.width
        total = m[:, 0].sum()
        mean = (middle @ m[:, 0] + half * m[:, 1].sum()) / total
        away = middle - mean  # around the mean, so that nothing cancels
        second = away**2 @ m[:, 0] + 2 * half * (away @ m[:, 1]) + half**2 * m[:, 2].sum()
        weights.append(float(total))
        means.append(float(origin + mean))
        variances.append(max(0.0, float(second / total)))
    return kernels.Spread(*weights, *means, *variances)


def _within(layout: Layout, bins: Bins, c: int) -> _Class:
    """The bins of a class, where some are in the table of a layout and others beyond it."""
    places = bins.keys - layout.low[c]
    inside = (places >= 0) & (places < layout.count[c])
    in_table = np.flatnonzero(inside)
    nobody = np.empty(0, dtype=np.int64)
    return _Class(bins, in_table, places[in_table] + layout.offset[c], nobody, np.flatnonzero(~inside))


def _slopes_beyond(layout: Layout, beyond: list[tuple[NDArray[np.int64], Floats]]) -> Slopes | None:
    """The polynomials of bins that are in no table."""
    (keys_x, x), (keys_y, y) = beyond
    if not len(keys_x) + len(keys_y):
        return None
    chosen = np.zeros(layout.n_bins + 1, dtype=bool)
    chosen[-1] = True
    return Slopes(chosen, layout.origin, layout.widths, (keys_x, keys_y), (x, y))


def _nothing_varies(spread: kernels.Spread, origin: float) -> bool:
    """Whether the variance of all points is no more than the rounding of means."""
    farthest = max(abs(spread.mean_x - origin), abs(spread.mean_y - origin))
    return bool(kernels.total_variance(spread) <= (_ROUNDING * farthest) ** 2)


def _slopes_at_rims(sums: _Sums) -> Slopes | None:
    """−2 ∂ log S_xy/∂z where that sum was taken over the rims of a gap."""
    if sums.at_rims is None:
        return None
    x, y = (-2 * each for each in sums.xy.polynomials)
    rims, keys = sums.at_rims.rims, sums.at_rims.bins.keys
    return Slopes(rims.chosen, rims.origin, (rims.width, rims.width), (keys[0], keys[1]), (x, y))


def _joined(extras: list[Extra]) -> Extra | None:
    """All in one, in the order of the rows."""
    if not extras:
        return None
    rows, weights = np.concatenate([e.rows for e in extras]), np.concatenate([e.weights for e in extras])
    order = np.argsort(rows, kind="stable")
    return Extra(rows[order], weights[order])


def _no_certificate(error: float, eps: float) -> str:
    return (
        f"Moment bins reached a certified error of {error:.3g} only, not eps={eps:g}. Accept a larger eps, or use "
        'method="exact".'
    )
