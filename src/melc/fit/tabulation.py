"""The curve along a direction: the log ratio of the class densities, as a table.

``g(z) = log (f₁(z) + b(z)) − log (f₀(z) + b(z))``

f₀ and f₁ are the kernel densities of the classes. b is a background: the density of a few pseudo-rows, positive
everywhere, which says how far a few rows can be trusted. Without it, the odds between the outermost rows of two classes
would be as extreme as the tails of their kernels. g has the sign of ``f₁ − f₀``, so the curve passes through
zero where the densities cross.

An interval between crossings is kept if it holds rows of its own class and has a *gain* of at least one nat: with every
row left out of its own density, the log-likelihood of its rows must be so much higher than with even odds. Otherwise it
is joined with its neighbours, and the curve has their sign there. Each class keeps an interval.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from melc.arrays import Floats
from melc.fit.density import Density, find_crossings, search_grid
from melc.fit.evidence import PSEUDO_ROWS
from melc.model.curve import Curve, of_points, simplified

# The most rows, of both classes together, that the background stands for: five rows are a large part of a rare class,
# and would blur the density of the many rows of the other class. With 1 : 200 and classes three deviations apart, the
# mean probability was 0.68 of the rate without this limit, and is 0.90 with it.
_MOST_PSEUDO_ROWS = 40.0
# How far the table may be from the formula between its points, and how far a curve with fewer knots from the table.
_TABLE_ERROR, _KNOT_ERROR = 0.0005, 0.001
# The most points of a table, and of a picture: kernels that are narrow compared with the gaps between rows would need
# millions of them.
_MOST_PLACES, _MOST_PICTURED = 200_000, 1_000
# Points of a curve, and of a picture, that are simplified together. Of thousands of spikes on a slope, the method would
# find one at a time: the fit of 16,000 rows with a narrow kernel each took 147 s instead of 22 s.
_PART_OF_CURVE, _PART_OF_PICTURE = 1024, 128
# Halvings of a segment: from a gap of 10¹⁵ bandwidths down to their details.
_MOST_ROUNDS = 100
# The gain that an interval must have, in nats.
_LEAST_GAIN = 1.0
# How far densities in pictures may be from the true ones, as a part of the highest; the part of the rows of a class
# that may lie outside, at either end; and the points over the whole width, of which those beyond the rows are used.
PICTURE_ERROR, _PICTURE_LEFT_OUT, _PICTURE_PLACES = 0.004, 5e-4, 257


@dataclass(frozen=True)
class DensityRatio:
    """The formula of the curve: the densities of both classes, and the total weights of their rows."""

    densities: tuple[Density, Density]
    totals: tuple[float, float]

    def log_densities(self, z: Floats) -> Floats:
        """Return log f₀ and log f₁, shape (2, n)."""
        return np.stack([density.log(z) for density in self.densities])

    def crossing(self, z: ArrayLike) -> Floats:
        """Return log f₁ − log f₀, of the shape of z."""
        return self.densities[1].log(z) - self.densities[0].log(z)

    def log_odds(self, z: Floats, logs: Floats | None = None) -> Floats:
        """Return g at z, of shape (n,); ``logs`` are the log densities there, if they are known."""
        first, second = self.log_densities(z) if logs is None else logs
        background = self.log_background(z)
        return np.asarray(np.logaddexp(second, background) - np.logaddexp(first, background))

    def log_background(self, z: Floats) -> Floats:
        """Return log b, of the shape of z: a Cauchy density as wide as the data, with the weight of the pseudo-rows."""
        centre, scale, log_height = self._background
        # hypot does not overflow where a square would.
        return np.asarray(log_height - 2 * np.log(np.hypot(1, (z - centre) / scale)))

    @cached_property
    def _background(self) -> tuple[float, float, float]:
        """Centre, scale, and the logarithm of the height."""
        centres = [float(d.support @ d.weights) for d in self.densities]
        centre = 0.5 * (centres[0] + centres[1])
        squares = [float((d.support - centre) ** 2 @ d.weights) + d.variance for d in self.densities]
        scale = 3 * math.sqrt(0.5 * (squares[0] + squares[1]))
        # Pseudo-rows as a part of the rows of a class, on average.
        weight = 0.5 * PSEUDO_ROWS * sum(1 / total for total in self.totals)
        weight = min(1.0, weight, _MOST_PSEUDO_ROWS / sum(self.totals))
        return centre, scale, math.log(2 * weight / math.pi / scale)


@dataclass(frozen=True)
class RatioTable:
    """A formula at places z, shape (n,), close enough for linear interpolation: the log densities (2, n), and g (n,).

    ``crossings``, of shape (k,), are where g changes its sign, and ``codes``, of shape (k + 1,), tell where it is
    positive.
    """

    formula: DensityRatio
    z: Floats
    logs: Floats
    values: Floats
    crossings: Floats
    codes: NDArray[np.int8]


def tabulate(formula: DensityRatio) -> RatioTable:
    """Return the table of a formula, from the lowest to the highest row."""
    z = search_grid(formula.densities)
    logs = formula.log_densities(z)
    crossings, codes = find_crossings(formula.crossing, z, logs[1] - logs[0])
    # The middle of an interval between crossings shows its sign, however narrow it is.
    middles = np.setdiff1d((crossings[1:] + crossings[:-1]) / 2, z)
    z, logs = _with_points(formula, z, logs, middles)
    values = formula.log_odds(z, logs)
    for _ in range(_MOST_ROUNDS):
        if len(z) > _MOST_PLACES:
            break
        rough = _rough_segments(z, values)
        middles = (z[rough] + z[rough + 1]) / 2
        middles = middles[(z[rough] < middles) & (middles < z[rough + 1])]
        if not len(middles):
            break
        z, logs = _with_points(formula, z, logs, middles)
        values = formula.log_odds(z, logs)
    return RatioTable(formula, z, logs, values, crossings, codes)


def _with_points(formula: DensityRatio, z: Floats, logs: Floats, added: Floats) -> tuple[Floats, Floats]:
    """Return places and log densities with further places inserted, ascending."""
    at = np.searchsorted(z, added)
    return np.insert(z, at, added), np.insert(logs, at, formula.log_densities(added), axis=1)


def _rough_segments(z: Floats, values: Floats) -> NDArray[np.int64]:
    """Return the segments between neighbouring places in which g may be too far from linear: those next to a bend.

    Where g is smooth, a place is four times as far from the chord of its neighbours as the middles of the segments
    beside it are from theirs; at a kink about as far.
    """
    if len(z) < 3:
        return np.arange(len(z) - 1)
    share = (z[1:-1] - z[:-2]) / (z[2:] - z[:-2])
    bent = np.abs(values[1:-1] - (1 - share) * values[:-2] - share * values[2:]) > 2 * _TABLE_ERROR
    bent = np.concatenate([bent[:1], bent, bent[-1:]])
    return np.flatnonzero(bent[:-1] | bent[1:])


def curve_of(table: RatioTable, log_prior_ratio: float, count: Callable[[Floats], Floats]) -> Curve:
    """Return the curve of a table, with as few knots as will do.

    ``count`` returns the weight of the rows of each class in the intervals between thresholds, as ``Rows.count`` does.

    An interval between thresholds is kept if its rows, each left out of the densities, are predicted better than by
    chance (:meth:`LeftOut.gains`); otherwise it is joined with its neighbours. That is judged with equal priors first,
    so that the curve does not depend on the priors. If the given priors move the thresholds, the intervals between the
    moved ones are judged as well.
    """
    # A curve that rises is positive above its last zero, and the threshold is the next number.
    zeros = np.where(table.codes[1:] == 1, np.nextafter(table.crossings, -np.inf), table.crossings)
    curve = of_points(np.append(zeros, table.z), np.append(np.zeros(len(zeros)), table.values))
    curve = _without_weak_intervals(curve, table, table.crossings, table.codes, 0.0, count)
    if log_prior_ratio:
        curve = curve.with_knots_at(-log_prior_ratio)
        moved = curve.plus(log_prior_ratio)
        curve = _without_weak_intervals(curve, table, moved.thresholds, moved.codes, log_prior_ratio, count)
    return _with_few_knots(curve, -log_prior_ratio)


def _with_few_knots(curve: Curve, level: float) -> Curve:
    """Return the curve with fewer knots: all at ``level``, and the farthest from it between two of them, are kept.

    So are some at regular steps.
    """
    ends = np.flatnonzero(curve.log_odds == level)
    parts = zip(np.append(0, ends), np.split(np.abs(curve.log_odds - level), ends), strict=True)
    peaks = [start + int(np.argmax(part)) for start, part in parts if len(part)]
    steps = np.arange(0, len(curve.knots), _PART_OF_CURVE)
    required = np.concatenate([ends, peaks, steps]).astype(np.int64)
    kept = simplified(curve.knots, curve.log_odds, _KNOT_ERROR, required)
    return Curve(curve.knots[kept], curve.log_odds[kept])


@dataclass(frozen=True)
class LeftOut:
    """Training rows, each with the log-odds that the densities without it give: arrays of shape (n,).

    ``weights`` are parts of the rows of a class, and ``totals`` the total weights of the classes.
    """

    z: Floats
    codes: NDArray[np.int8]
    weights: Floats
    log_odds: Floats
    totals: tuple[float, float]

    def gains(self, intervals: NDArray[np.int64], n_intervals: int, log_prior_ratio: float) -> Floats:
        """Return the gain of each interval, in nats; shape (n_intervals,).

        It is ``Σ weight · (log P(class of the row) − log ½)`` over its rows. The classes count by their priors.
        """
        priors = expit([-log_prior_ratio, log_prior_ratio])
        n_effective = 1 / sum(prior**2 / total for prior, total in zip(priors, self.totals, strict=True))
        margins = np.where(self.codes == 1, 1.0, -1.0) * (self.log_odds + log_prior_ratio)
        gains = n_effective * priors[self.codes] * self.weights * (log_expit(margins) + math.log(2))
        return np.asarray(np.bincount(intervals, gains, n_intervals), dtype=np.float64)


def _left_out(table: RatioTable) -> LeftOut:
    """Return the support points of the densities as rows. Of a row of weight k, one of k copies is left out."""
    formula, found = table.formula, []
    for c, (density, total) in enumerate(zip(formula.densities, formula.totals, strict=True)):
        z = density.support
        mine, other = (np.interp(z, table.z, table.logs[k]) for k in (c, 1 - c))
        background = formula.log_background(z)
        copy = np.minimum(1 / total, density.weights)
        itself = np.log(copy) - 0.5 * math.log(2 * math.pi * density.variance)
        margin = np.logaddexp(_without_itself(mine, itself, copy), background) - np.logaddexp(other, background)
        found.append((z, np.full(len(z), c, dtype=np.int8), density.weights, margin if c else -margin))
    z, codes, weights, log_odds = (np.concatenate(each) for each in zip(*found, strict=True))
    return LeftOut(z, codes, weights, log_odds, formula.totals)


def _without_itself(log_density: Floats, itself: Floats, copy: Floats) -> Floats:
    """Return log ((f − own kernel) / (1 − own weight)), −∞ if nothing is left."""
    with np.errstate(divide="ignore"):
        left = np.log(-np.expm1(np.minimum(itself - log_density, 0.0)))
        return np.where(copy < 1, log_density + left - np.log1p(-np.minimum(copy, 1 - 1e-16)), -np.inf)


def _without_weak_intervals(
    curve: Curve,
    table: RatioTable,
    crossings: Floats,
    codes: NDArray[np.int8],
    log_prior_ratio: float,
    count: Callable[[Floats], Floats],
) -> Curve:
    """Return a curve without the crossings at the ends of intervals whose gain is too small.

    ``codes`` tell in which intervals the curve plus ``log_prior_ratio`` is positive. Knots of the wrong sign are left
    out: where an interval is joined with its neighbours, and where rounding made the odds even.
    """
    rows = _left_out(table)
    interval = np.searchsorted(crossings, rows.z, side="right")
    gains = rows.gains(interval, len(codes), log_prior_ratio)
    # The support points of a large class lie near its rows only in terms of its own bandwidth.
    gains[count(crossings)[np.arange(len(codes)), codes] == 0] = -np.inf
    kept = _kept_crossings(gains, np.interp(crossings, table.z, table.logs.max(axis=0)))
    thresholds = crossings[kept]
    # The codes just below the kept crossings do not change; without crossings, the best interval decides.
    kept_codes = np.append(codes[kept], 1 - codes[kept[-1:]]) if len(kept) else codes[[np.argmax(gains)]]
    signs = np.where(kept_codes[np.searchsorted(thresholds, curve.knots, side="right")] == 1, 1.0, -1.0)
    moved = curve.log_odds + log_prior_ratio
    at_threshold = np.isin(curve.knots, thresholds) | np.isin(np.nextafter(curve.knots, np.inf), thresholds)
    stays = (signs * moved > 0) | ((moved == 0) & at_threshold)
    if not stays.any():  # the odds are even everywhere
        return Curve(curve.knots[:1], np.full(1, -log_prior_ratio))
    return Curve(curve.knots[stays], curve.log_odds[stays])


def _kept_crossings(gains: Floats, heights: Floats) -> NDArray[np.int64]:
    """Return which of n crossings are kept, ascending: those between intervals with enough gain.

    ``gains``, of shape (n + 1,), belong to the intervals between them, −∞ without rows of their own class, and
    ``heights``, of shape (n,), are the logarithms of the higher density at the crossings. The interval of least gain is
    joined with its neighbours first; of equals the one at whose ends the densities are lower. Each class keeps an
    interval, unless that has no rows of its own class.
    """
    n = len(gains)
    around = np.concatenate([[-np.inf], heights, [-np.inf]])
    # An interval is known by the number of the crossing at its lower end; ends[k] is the crossing at its upper end.
    ends, starts = {k: k + 1 for k in range(n)}, {k + 1: k for k in range(n)}
    gain_of = dict(enumerate(gains.tolist()))

    def key(k: int) -> tuple[float, float, int]:
        return gain_of[k], float(np.logaddexp(around[k], around[ends[k]])), k

    waiting = [key(k) for k in range(n)]
    heapq.heapify(waiting)
    while waiting and waiting[0][0] < _LEAST_GAIN:
        entry = heapq.heappop(waiting)
        k = entry[2]
        if k not in gain_of or entry != key(k):  # joined meanwhile
            continue
        neighbours = [each for each in (starts.get(k), ends[k]) if each in gain_of]
        needed = 2 + len(neighbours)  # intervals that there must be, so that both classes keep one
        if not neighbours or (len(gain_of) < needed and entry[0] > -np.inf):
            continue
        known = [gain_of[each] for each in neighbours if gain_of[each] > -np.inf]
        first, last = min(k, *neighbours), ends[max(k, *neighbours)]
        for each in (k, *neighbours):
            del gain_of[each]
            starts.pop(ends.pop(each))
        ends[first], starts[last], gain_of[first] = last, first, sum(known) if known else -np.inf
        heapq.heappush(waiting, key(first))
    return np.array(sorted(gain_of)[1:], dtype=np.int64) - 1


def picture_densities(table: RatioTable) -> tuple[Floats, Floats]:
    """Return as few places as a picture needs, shape (p,), and the densities of the classes there, shape (2, p).

    They cover the kernels of all rows except a few of the outermost, which may be very far away.
    """
    spans = [_span(density) for density in table.formula.densities]
    low, high = min(low for low, _ in spans), max(high for _, high in spans)
    around = np.linspace(low, high, _PICTURE_PLACES)
    beyond = np.unique(around[(around < table.z[0]) | (around > table.z[-1])])
    z, logs = _with_points(table.formula, table.z, table.logs, beyond)
    inside = (z >= low) & (z <= high)
    z, densities = z[inside], np.exp(logs[:, inside])
    shown = _pictured(z, densities.T, PICTURE_ERROR * float(densities.max()))
    return z[shown], densities[:, shown]


def _pictured(places: Floats, densities: Floats, tolerance: float) -> NDArray[np.int64]:
    """Return the indices of the places of a picture: with a larger tolerance, if there would be too many.

    Some places at regular steps are always kept.
    """
    some = np.arange(0, len(places), max(_PART_OF_PICTURE, 4 * len(places) // _MOST_PICTURED))
    kept = simplified(places, densities, tolerance, some)
    while len(kept) > _MOST_PICTURED and tolerance < np.ptp(densities):
        tolerance *= 2
        kept = simplified(places, densities, tolerance, some)
    return kept


def _span(density: Density) -> tuple[float, float]:
    """Return the ends of an interval with all rows of a density but ``_PICTURE_LEFT_OUT``, and their kernels."""
    first, last = np.searchsorted(np.cumsum(density.weights), [_PICTURE_LEFT_OUT, 1 - _PICTURE_LEFT_OUT])
    reach, last = 3 * density.bandwidth, min(int(last), len(density.support) - 1)
    return float(density.support[first]) - reach, float(density.support[last]) + reach
