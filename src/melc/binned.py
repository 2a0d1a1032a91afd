"""The divergence by moment bins: two products with X and a little, with a certified error.

One evaluation: guess the kernel widths from a sample, and with them a layout of bins; project and bin in one
pass; read the true class variances off the moments; sum over neighbouring bins; check the certificate, and bin
the projections again, finer, should it fail; turn the sums into one polynomial a bin, whose value is the weight
of a row; pull back in a second pass, unless the features were binned as well.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.evaluation import VARIANCE_FLOOR, Evaluation
from melc.kernels import ORDERS
from melc.points import Binned, Extra, Points
from melc.rows import Layout, Rows
from melc.shrinkage import Shrinkage
from melc.sums import Side, bounds
from melc.sums.exact import sum_across as across_pairs
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
# Pairs of points next to a gap that may be summed one by one before finer bins are tried instead.
_PAIRS_PER_ROW = 30


@dataclass(frozen=True)
class _Class:
    """Occupied bins of one class, and where their rows stand in the table and among the outliers."""

    bins: Bins
    in_table: NDArray[np.int64]  # position of the bin for every occupied slot of the table
    slots: NDArray[np.int64]  # those slots
    of_outside: NDArray[np.int64]  # position of the bin of every outlier


@dataclass(frozen=True)
class _Sums:
    """The three sums, each on bins as wide as it allows."""

    merged: tuple[Merged, Merged, Merged, Merged]  # x for xx, y for yy, x for xy, y for xy
    xx: BinnedSum
    yy: BinnedSum
    xy: BinnedSum
    extra: Extra | None  # −2 ∂ log S_xy/∂z of the rows next to a gap, where that sum was taken over points

    @property
    def error(self) -> float:
        """Certified error of D."""
        return self.xx.error + self.yy.error + 2 * self.xy.error


class BinnedDivergence:
    """D with an error of at most ``eps``, in time proportional to the rows."""

    def __init__(self, rows: Rows, gamma: float, eps: float, shrinkage: Shrinkage | None = None) -> None:
        self.rows, self.gamma, self.eps, self.shrinkage = rows, gamma, eps, shrinkage
        self._samples = rows.spread_samples(_GUESS_ROWS)
        # Bins are anchored at the projection of this point: they move with the data as v turns.
        self._centre = np.mean([np.asarray(X.mean(axis=0), dtype=np.float64).ravel() for X, _ in self._samples], axis=0)
        self._total_weights = rows.total_weights
        self._log_pairs = sum(math.log(rows.total_weights[c] / rows.lightest[c]) for c in (0, 1))
        self.order = _cheapest_order(rows.n_rows, gamma, eps)

    def evaluate(self, v: Floats) -> Evaluation:
        shrunk = kernels.AS_THEY_ARE if self.shrinkage is None else self.shrinkage.along(v)
        layout = self._guess_layout(v, shrunk)
        binned = self._bin(v, layout)
        for attempt in range(_MOST_REFINEMENTS):
            halvings = max(0, attempt - 1)  # the first new attempt has the true variances, which may be enough
            classes = [_occupied(layout, binned, c) for c in (0, 1)]
            spread = _spread(classes, layout.origin)
            if kernels.total_variance(spread) == 0:
                return Evaluation(0.0, np.zeros(len(v)), 0, True, 0.0)
            variances = kernels.kernel_variances(spread, shrunk, self.gamma, VARIANCE_FLOOR)
            most_pairs = math.inf if attempt == _MOST_REFINEMENTS - 1 else _PAIRS_PER_ROW * self.rows.n_rows
            sums = self._sum(v, layout, classes, variances, binned, most_pairs, halvings)
            if sums.error <= self.eps:
                break
            layout = self._finer(layout, classes, variances, attempt)
            binned = self._bin(v, layout)
        else:
            raise FloatingPointError(_no_certificate(sums.error, self.eps))
        evaluation, by_added = self._finish(v, layout, classes, spread, shrunk, variances, sums, binned)
        if self.shrinkage is None:
            return evaluation
        return replace(evaluation, gradient=evaluation.gradient + self.shrinkage.pull(v, by_added))

    def _bin(self, v: Floats, layout: Layout) -> Binned:
        """With the features where this spares a pass."""
        return self.rows.bin(v, layout, self.rows.spares_a_pass(layout))

    def _guess_layout(self, v: Floats, shrunk: kernels.Shrunk) -> Layout:
        """Bins for the widths and the range that a sample of either class shows."""
        (mean_x, variance_x, low_x, high_x), (mean_y, variance_y, low_y, high_y) = (
            kernels.sample_spread(X @ v, weights) for X, weights in self._samples
        )
        guess = kernels.Spread(*self._total_weights, mean_x, mean_y, variance_x, variance_y)
        origin = float(v @ self._centre)
        if kernels.total_variance(guess) == 0:  # nothing to go by: any width, refined later
            guess = guess._replace(variance_x=max(abs(origin), 1.0), variance_y=max(abs(origin), 1.0))
        variances = kernels.kernel_variances(guess, shrunk, self.gamma, VARIANCE_FLOOR)
        widths = self._widths(variances, self.order)

        def median(c: int) -> float:
            return float(np.median(self._samples[c][0] @ v))

        return _layout(origin, widths, (low_x, low_y), (high_x, high_y), median, self.order)

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
        v: Floats,
        layout: Layout,
        classes: list[_Class],
        variances: tuple[float, float],
        binned: Binned,
        most_pairs: float,
        halvings: int,
    ) -> _Sums:
        order = layout.order
        wanted = [self._width(2 * variance, order, halvings) for variance in variances]
        within = [merge(classes[c].bins, max(wanted[c], layout.widths[c])) for c in (0, 1)]
        xx, yy = (sum_within(within[c].bins, 2 * variances[c], self.eps) for c in (0, 1))
        across_variance = variances[0] + variances[1]
        width = max(self._width(across_variance, order, halvings), *layout.widths)
        across = [merge(classes[c].bins, width) for c in (0, 1)]
        xy = sum_across(across[0].bins, across[1].bins, across_variance, self.eps)
        extra = None
        if not 2 * xy.error <= self.eps / 2 and _gap(across) > 0:
            # Bins this wide cannot keep the relative error of a sum that is all tail. Few points decide it.
            direct = self._sum_over_points(v, layout, classes, across_variance, binned, most_pairs)
            if direct is not None:
                xy, extra = direct
        return _Sums((within[0], within[1], across[0], across[1]), xx, yy, xy, extra)

    def _sum_over_points(
        self,
        v: Floats,
        layout: Layout,
        classes: list[_Class],
        variance: float,
        binned: Binned,
        most_pairs: float,
    ) -> tuple[BinnedSum, Extra] | None:
        """The sum across over the points near the gap, with their −2 ∂ log S/∂z; None if there are too many."""
        x, y = classes[0].bins, classes[1].bins
        # The nearest pair may be the lightest of all, however heavy the bins that it lies in.
        exponents = self._log_pairs + math.log(100 / self.eps)
        distances, nearest = _distances(x, y)
        reach = math.sqrt(nearest**2 + 2 * variance * exponents)
        points = self._points_of(v, layout, classes, [d <= reach for d in distances], binned)
        members = [points[points.codes == c] for c in (0, 1)]
        sides = [_sorted_side(each, layout.origin) for each in members]
        nearest = kernels.nearest_distance(sides[0].values, sides[1].values)
        reach = math.sqrt(nearest**2 + 2 * variance * exponents)
        below, above = (sides[1].values.searchsorted(sides[0].values + r) for r in (-reach, reach))
        if np.sum(above - below) > most_pairs:
            return None
        found = across_pairs(sides[0], sides[1], variance, nearest, reach)
        assert found.dy is not None
        slope = 0.0
        for side, derivative in zip(sides, (found.dx, found.dy), strict=True):
            slope -= float(side.restore(side.values) @ derivative) / (2 * variance)
        both = members[0] + members[1]
        extra = Extra(both.rows, -2 * np.concatenate([found.dx, found.dy]), both.features)
        # What was left out is below eps/100 of the largest term.
        return BinnedSum(found.log_value, slope, (), self.eps / 100, found.n_exponentials), extra

    def _points_of(
        self, v: Floats, layout: Layout, classes: list[_Class], chosen: list[NDArray[np.bool_]], binned: Binned
    ) -> Points:
        """Points whose bins are chosen, outliers among them."""
        in_table = np.zeros(layout.n_bins, dtype=bool)
        for c, side in enumerate(classes):
            in_table[side.slots] = chosen[c][side.in_table]
        points = self.rows.points_in(v, layout, in_table, binned.features is not None)
        for c, side in enumerate(classes):
            points += binned.outside[binned.outside.codes == c][chosen[c][side.of_outside]]
        return points

    def _finer(self, layout: Layout, classes: list[_Class], variances: tuple[float, float], attempt: int) -> Layout:
        """The layout that the true variances ask for, of the highest order, finer with every attempt."""
        order = ORDERS[-1]
        widths = self._widths(variances, order, attempt)
        x, y = (side.bins for side in classes)
        lows = layout.origin + x.keys[0] * x.width, layout.origin + y.keys[0] * y.width
        highs = layout.origin + (x.keys[-1] + 1) * x.width, layout.origin + (y.keys[-1] + 1) * y.width

        def median(c: int) -> float:
            bins = classes[c].bins
            passed = np.cumsum(bins.moments[:, 0])
            return layout.origin + float(bins.keys[np.searchsorted(passed, passed[-1] / 2)]) * bins.width

        return _layout(layout.origin, widths, lows, highs, median, order)

    def _finish(
        self,
        v: Floats,
        layout: Layout,
        classes: list[_Class],
        spread: kernels.Spread,
        shrunk: kernels.Shrunk,
        variances: tuple[float, float],
        sums: _Sums,
        binned: Binned,
    ) -> tuple[Evaluation, list[float]]:
        """D, and the gradient from one polynomial a bin; ∂D by what shrinkage adds to the class variances."""
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
        extras = [] if sums.extra is None else [sums.extra]
        drift = 0.0 if sums.extra is None else float(sums.extra.weights.sum())
        for c, (own, mean) in enumerate(((own_x, spread.mean_x), (own_y, spread.mean_y))):
            bins = classes[c].bins
            polynomials = sums.merged[c].carry_back((xx, yy)[c].polynomials[0])
            if sums.extra is None:
                polynomials = polynomials - 2 * sums.merged[2 + c].carry_back(xy.polynomials[c])
            middle = layout.origin + (bins.keys + 0.5) * bins.width
            polynomials[:, 0] += own * (middle - mean) + pooled * (middle - centre)
            polynomials[:, 1] += (own + pooled) * bins.width / 2
            drift += float(np.sum(polynomials * bins.moments))
            table[classes[c].slots] = polynomials[classes[c].in_table, : layout.order - 1]
            if len(binned.outside):
                mine = binned.outside[binned.outside.codes == c]
                chosen = polynomials[classes[c].of_outside]
                local = layout.locate(mine.z, mine.codes)[1]
                values = np.polynomial.polynomial.polyval(local, chosen.T, tensor=False)
                extras.append(Extra(mine.rows, mine.weights * values, mine.features))
        # The weights of D itself add up to zero, for moving all points changes nothing. Those of the bins do so only to
        # the order of their error, which far from zero the rows would multiply; but the bins move along.
        gradient = self._pull_back(v, layout, table, extras, binned.features) - drift * self._centre
        count = xx.n_exponentials + yy.n_exponentials + xy.n_exponentials
        floored = kernels.is_floored(spread, shrunk, VARIANCE_FLOOR)
        return Evaluation(divergence, gradient, count, floored, sums.error), by_added

    def _pull_back(
        self, v: Floats, layout: Layout, table: Floats, extras: list[Extra], features: Floats | None
    ) -> Floats:
        """The sum of all rows, each times the polynomial of its bin and plus what it has extra."""
        known = [(extra.weights, extra.features) for extra in extras if extra.features is not None]
        if features is None or len(known) < len(extras):
            return self.rows.pull_back_binned(v, layout, table, _joined(extras))
        # No BLAS, whose threads might add in another order.
        gradient = np.einsum("bj,bdj->d", table, features)
        for weights, rows in known:
            gradient += np.einsum("i,id->d", weights, rows)
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


def _distances(x: Bins, y: Bins) -> tuple[list[Floats], float]:
    """For every bin the least distance of its points to the other class, and the largest that the nearest pair
    can be apart."""
    edges = [(b.keys * b.width, (b.keys + 1) * b.width) for b in (x, y)]
    distances = []
    for (low, high), (other_low, other_high) in (edges, edges[::-1]):
        after = np.searchsorted(other_low, high)
        to_next = np.append(other_low, math.inf)[after] - high
        to_last = low - np.insert(other_high, 0, -math.inf)[after]
        distances.append(np.maximum(np.minimum(to_next, to_last), 0.0))
    return distances, float(distances[0].min() + x.width + y.width)


def _sorted_side(points: Points, origin: float) -> Side:
    values = points.z - origin
    order = np.argsort(values)
    return Side(values[order], points.weights[order], order)


def _joined(extras: list[Extra]) -> Extra | None:
    """All in one, in the order of the rows; a row may come more than once."""
    if not extras:
        return None
    rows, weights = np.concatenate([e.rows for e in extras]), np.concatenate([e.weights for e in extras])
    order = np.argsort(rows, kind="stable")
    return Extra(rows[order], weights[order])


def _gap(across: list[Merged]) -> int:
    """Empty bins between the classes, at the least."""
    return int(kernels.nearest_distance(across[0].bins.keys, across[1].bins.keys)) - 1


def _no_certificate(error: float, eps: float) -> str:
    return (
        f"Moment bins reached a certified error of {error:.3g} only, not eps={eps:g}. Accept a larger eps, or use "
        'method="exact".'
    )
