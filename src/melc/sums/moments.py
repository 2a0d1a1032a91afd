"""Moment bins: the double sum in linear time, with a certified error.

Points of a bin are replaced by P charges at its Chebyshev nodes that reproduce their first P moments. The
sum over pairs of points becomes a sum over pairs of neighbouring bins, whose coupling depends on their distance
only. Within a bin the potential of all others is a polynomial of degree P − 1; its derivative is the exact gradient of
the sum as computed, so an optimiser sees one consistent function.

The error of every sum is bounded from the bins themselves (:func:`melc.sums.bounds.moment_bin_error`).
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.kernels import ORDERS
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.exact import Exact


@functools.lru_cache
def _tables(order: int) -> tuple[Floats, Floats]:
    """What the kernels know of P Chebyshev nodes on [−1, 1]: row a of the first holds the monomial coefficients of
    the polynomial that is one at node a and zero at the others; then half the differences of nodes."""
    points = np.cos((2 * np.arange(order) + 1) * np.pi / (2 * order))
    lagrange = np.ascontiguousarray(np.linalg.inv(np.vander(points, increasing=True)).T)
    return lagrange, np.subtract.outer(points, points) / 2


@dataclass(frozen=True)
class Bins:
    """Occupied bins of one class: their numbers in ascending order, and the moments of their points."""

    keys: NDArray[np.int64]
    moments: Floats
    width: float

    @property
    def order(self) -> int:
        return self.moments.shape[1]


@dataclass(frozen=True)
class Merged:
    """Bins joined into wider ones, and how to carry polynomials back."""

    bins: Bins
    parents: NDArray[np.int64]
    shrink: float
    shifts: Floats

    def carry_back(self, coefficients: Floats) -> Floats:
        """Polynomials of the wider bins in the coordinates of the bins that they were made of."""
        if self.shrink == 1:
            return coefficients
        carried = np.zeros((len(self.parents), coefficients.shape[1]))
        kernels.split_polynomials(coefficients, self.parents, self.shrink, self.shifts, carried)
        return carried


def merge(bins: Bins, width: float) -> Merged:
    """Join bins into ones of the given width, a power of two times theirs."""
    level = round(math.log2(width / bins.width))
    if level <= 0:
        return Merged(bins, np.arange(len(bins.keys)), 1.0, np.zeros(len(bins.keys)))
    keys = bins.keys >> level
    starts = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    parents = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(keys)))
    shrink = 0.5**level
    shifts = (2 * (bins.keys - (keys << level)) + 1) * shrink - 1
    moments = np.zeros((len(starts), bins.order))
    kernels.merge_moments(bins.moments, parents, shrink, shifts, moments)
    return Merged(Bins(keys[starts], moments, bins.width * 2**level), parents, shrink, shifts)


@dataclass(frozen=True)
class BinnedSum:
    """log S, ∂ log S/∂V, polynomials of ∂ log S/∂z per bin (in u, for a point of weight one), and the
    certificate: log S is off by at most ``error``, infinite where nothing can be said."""

    log_value: float
    slope: float
    polynomials: tuple[Floats, ...]
    error: float
    n_exponentials: int


def sum_within(bins: Bins, variance: float, eps: float) -> BinnedSum:
    """The sum over all pairs of one class."""
    # S is at least the square of all mass over the bins, so what lies beyond adds less than eps/100 of it.
    reach = math.sqrt(2 * variance * math.log(100 * len(bins.keys) / eps))
    span = int(bins.keys[-1] - bins.keys[0]) + 1
    n_blocks = min(math.ceil(reach / bins.width) + 2, span)
    (charged,) = _charge([bins])
    couplings = _couplings(bins, variance, 0, n_blocks)
    # A bin couples twice with every other, but once with itself.
    for each in couplings:
        each[0] *= 0.5
    value, slope, error = (2 * each for each in _couple(charged, charged, 0, couplings))
    if span > n_blocks:
        left_out = (n_blocks - 1) * bins.width
        error += charged.mass * charged.mass * math.exp(-left_out * left_out / (2 * variance))
    polynomials = charged.slopes(4 / (bins.width * value))
    return _binned_sum(value, slope, error, 0.0, (polynomials,), n_blocks * bins.order**2)


def sum_across(x: Bins, y: Bins, variance: float, eps: float) -> BinnedSum:
    """The sum over the pairs of two classes, their bins of the same width and origin."""
    least = int(kernels.nearest_distance(x.keys, y.keys))
    if least <= 1:
        # Where classes overlap the sum is seldom smaller than all mass spread evenly over the bins.
        likely = _sum_across(x, y, variance, eps, least, math.log(len(x.keys) * len(y.keys)))
        if likely.error <= eps / 4:  # as D, which has it twice, can use it
            return likely
    return _sum_across(x, y, variance, eps, least, log_pairs(x, y))


def _sum_across(x: Bins, y: Bins, variance: float, eps: float, least: int, pairs: float) -> BinnedSum:
    """Bins so far apart that even exp(pairs) of them add less than eps/100 of the nearest are left out."""
    width = x.width
    beyond = bounds.farther((least + 1) * width, variance, pairs + math.log(100 / eps))
    n_blocks = math.ceil(beyond / width) + 3
    value, slope, error, polynomials = sum_blocks_across(x, y, variance, least, n_blocks)
    log_factor = (max(least - 1, 0) * width) ** 2 / (2 * variance)
    return _binned_sum(value, slope, error, log_factor, polynomials, n_blocks * x.order**2)


def sum_blocks_across(
    x: Bins, y: Bins, variance: float, least: int, n_blocks: int
) -> tuple[float, float, float, tuple[Floats, Floats]]:
    """S, ∂S/∂V, the error of S and ∂ log S/∂z over the pairs of bins ``least``, ``least + 1``, … apart.

    S and its error are multiplied by exp(nearest²/2V), nearest = max(least − 1, 0) · width.
    """
    charged = _charge([x, y])
    couplings = _couplings(x, variance, least, n_blocks)
    above = _couple(charged[0], charged[1], least, couplings)
    level = int(least == 0)  # bins at the same place have been met
    below = _couple(charged[1], charged[0], least + level, [each[level:] for each in couplings])
    value, slope, error = (a + b for a, b in zip(above, below, strict=True))
    if not value * x.width > 0:  # all of it about the smallest number: nothing can be said
        return 0.0, 0.0, math.inf, (np.zeros(x.moments.shape), np.zeros(y.moments.shape))
    nearest, left_out = max(least - 1, 0) * x.width, (least + n_blocks - 1) * x.width
    error += charged[0].mass * charged[1].mass * math.exp((nearest - left_out) * (nearest + left_out) / (2 * variance))
    first, second = (each.slopes(2 / (x.width * value)) for each in charged)
    return value, slope, error, (first, second)


@dataclass(frozen=True)
class _Charged:
    """Bins as tables with a column each: of all between the first and the last if most are occupied."""

    bins: Bins
    columns: NDArray[np.int64]
    charges: Floats  # a row for every node, and one with the mass
    potential: Floats
    is_whole: bool

    @property
    def mass(self) -> float:
        return float(self.bins.moments[:, 0].sum())

    def slopes(self, factor: float) -> Floats:
        """Polynomials in u: the derivative of the potential times ``factor``."""
        polynomials = np.empty(self.bins.moments.shape)
        kernels.read_slopes(self.columns, self.potential, _tables(self.bins.order)[0], factor, polynomials)
        return polynomials


def _charge(sides: list[Bins]) -> list[_Charged]:
    """Tables for bins that are to be coupled: all of the same kind."""
    first = min(bins.keys[0] for bins in sides)
    span = int(max(bins.keys[-1] for bins in sides) - first) + 1
    # Long loops over all bins beat short ones over the occupied, unless few are.
    is_whole = span <= 4 * min(len(bins.keys) for bins in sides) + 16
    charged = []
    for bins in sides:
        columns = bins.keys - first if is_whole else np.arange(len(bins.keys))
        size = span if is_whole else len(bins.keys)
        charges, potential = np.zeros((bins.order + 1, size)), np.zeros((bins.order, size))
        kernels.put_charges(columns, bins.moments, _tables(bins.order)[0], charges)
        charged.append(_Charged(bins, columns, charges, potential, is_whole))
    return charged


def _couplings(bins: Bins, variance: float, least: int, n_blocks: int) -> list[Floats]:
    """For bins ``least``, ``least + 1``, … apart: coupling of their nodes, its derivative by V, error of a pair."""
    blocks, slopes = (np.empty((n_blocks, bins.order, bins.order)) for _ in range(2))
    kernels.couple_nodes(least, _tables(bins.order)[1], bins.width, variance, blocks, slopes)
    return [blocks, slopes, bounds.moment_bin_error(bins.order, bins.width, variance, least, n_blocks)]


def _couple(upper: _Charged, lower: _Charged, least: int, couplings: list[Floats]) -> tuple[float, float, float]:
    """(S, ∂S/∂V, error of S) of the pairs of an upper bin and one ``least`` or more below; potentials are added to."""
    potentials = upper.potential, lower.potential
    if upper.is_whole:
        return kernels.couple_bins(upper.charges, lower.charges, least, *couplings, *potentials)
    return kernels.couple_occupied(
        upper.bins.keys, upper.charges, lower.bins.keys, lower.charges, least, *couplings, *potentials
    )


def log_pairs(x: Bins, y: Bins) -> float:
    """log of all pairs over the lightest pair of bins, which could stand alone at the gap between two classes."""
    mass_x, mass_y = x.moments[:, 0], y.moments[:, 0]
    return math.log(mass_x.sum() / mass_x.min()) + math.log(mass_y.sum() / mass_y.min())


def _binned_sum(
    value: float, slope: float, error: float, log_factor: float, polynomials: tuple[Floats, ...], count: int
) -> BinnedSum:
    if not error < value < math.inf:  # the sum may be anything; bins this wide do not tell
        return BinnedSum(-math.inf, 0.0, polynomials, math.inf, count)
    log_error = -math.log1p(-error / value)
    return BinnedSum(math.log(value) - log_factor, slope / value, polynomials, log_error, count)


class Moments:
    """Moment bins behind the interface of the other methods, for points that lie in one place.

    ``eps`` bounds the error of log S, so it is relative to S and free of scale. Where bins cannot keep it (few
    points, classes far apart, or points so far from zero that a bin is lost in their rounding) all pairs are summed.
    """

    def __init__(self, eps: float) -> None:
        self.eps = eps
        self._exact = Exact()

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        return Side(values, weights)

    def within(self, x: Side, variance: float) -> DoubleSum:
        width = _power_of_two(bounds.moment_bin_width(ORDERS[-1], variance, self.eps))
        if _lost(x, width):
            return self._exact.within(x, variance)
        binned = _bin_side(x, width)
        result = sum_within(binned.bins, variance, self.eps)
        if result.error > self.eps:
            return self._exact.within(x, variance)
        return DoubleSum(result.log_value, binned.per_point(result.polynomials[0]), None, result.n_exponentials)

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        width = _power_of_two(bounds.moment_bin_width(ORDERS[-1], variance, self.eps))
        if _lost(x, width) or _lost(y, width):
            return self._exact.across(x, y, variance)
        binned = _bin_side(x, width), _bin_side(y, width)
        result = sum_across(binned[0].bins, binned[1].bins, variance, self.eps)
        if result.error > self.eps:
            return self._exact.across(x, y, variance)
        dx, dy = (side.per_point(p) for side, p in zip(binned, result.polynomials, strict=True))
        return DoubleSum(result.log_value, dx, dy, result.n_exponentials)


@dataclass(frozen=True)
class _BinnedSide:
    bins: Bins
    members: NDArray[np.int64]
    local: Floats
    weights: Floats

    def per_point(self, polynomials: Floats) -> Floats:
        """The polynomial of its bin at every point, times its weight."""
        values = np.polynomial.polynomial.polyval(self.local, polynomials[self.members].T, tensor=False)
        return np.asarray(self.weights * values)


def _bin_side(side: Side, width: float) -> _BinnedSide:
    position = side.values / width
    floor = np.floor(position)
    keys, members = np.unique(floor.astype(np.int64), return_inverse=True)
    local = 2 * (position - floor) - 1
    moments = np.zeros((len(keys), ORDERS[-1]))
    kernels.add_point_moments(local, members, side.weights, moments)
    return _BinnedSide(Bins(keys, moments, width), members, local, side.weights)


def _lost(side: Side, width: float) -> bool:
    """Whether the numbers of bins leave no digits for places within them."""
    return bool(np.abs(side.values).max() > 2.0**40 * width)


def _power_of_two(width: float) -> float:
    return float(2.0 ** math.floor(math.log2(width)))
