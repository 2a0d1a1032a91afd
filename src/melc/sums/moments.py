"""The double sum by moment bins: in linear time, with a certified error.

The points of each bin are replaced by P charges at its Chebyshev nodes that have the same first P moments. The sum over
pairs of points becomes a sum over pairs of nearby bins, whose coupling depends only on their distance. Within a bin the
potential of all others is a polynomial of degree P − 1. Its derivative is the exact gradient of the sum as computed, so
value and gradient that an optimiser sees are consistent.

The error of each sum is bounded by :func:`melc.sums.bounds.moment_bin_error`, added up over the pairs of bins.
"""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.kernels import ORDER
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.bins import Bins, power_of_two
from melc.sums.exact import Exact


@dataclass(frozen=True)
class BinnedSum:
    """log S over pairs of points in bins, its derivatives and its certified error.

    ``log_value`` is log S and ``slope`` its derivative by V. ``polynomials`` are tables of shape (n_bins, P): row k
    holds the coefficients of ∂ log S/∂z, for a point of weight one in bin k, as a polynomial in u. There is one table
    for a sum within a class and two for a sum across classes. The error of ``log_value`` is at most ``error``, which
    is infinite if no bound is known.
    """

    log_value: float
    slope: float
    polynomials: tuple[Floats, ...]
    error: float
    n_exponentials: int


@functools.cache
def node_tables(order: int) -> tuple[Floats, Floats, Floats, float, float]:
    """Return the constants for P = ``order`` Chebyshev nodes on [−1, 1] that the kernels need.

    Row a of the first table, shape (P, P), holds the monomial coefficients of the polynomial that is one at node a and
    zero at the other nodes. The second, shape (P, P), holds half the differences of the nodes. The others are
    :func:`bounds.moment_bin_constants`.
    """
    points = np.cos((2 * np.arange(order) + 1) * np.pi / (2 * order))
    lagrange = np.ascontiguousarray(np.linalg.inv(np.vander(points, increasing=True)).T)
    return lagrange, np.subtract.outer(points, points) / 2, *bounds.moment_bin_constants(order)


def sum_within(bins: Bins, variance: float, eps: float) -> BinnedSum:
    """Return the sum over all pairs of points of one class."""
    # S is of the order of (total mass)²/n_bins or larger, so the pairs left out are less than about eps/100 of it.
    return _sum(bins, bins, True, variance, math.log(100 * len(bins.keys) / eps))


def sum_across(x: Bins, y: Bins, variance: float, eps: float) -> BinnedSum:
    """Return the sum over all pairs of points of two classes, whose bins have the same width and origin."""
    # If the classes overlap, the sum is seldom smaller than with the mass spread evenly over the bins.
    likely = _sum(x, y, False, variance, math.log(len(x.keys) * len(y.keys) * 100 / eps))
    if likely.error <= eps / 4:  # small enough for D, which contains this sum twice
        return likely
    return _sum(x, y, False, variance, log_pairs(x, y) + math.log(100 / eps))


def _sum(x: Bins, y: Bins, within: bool, variance: float, exponents: float) -> BinnedSum:
    value, slope, error, exponent, polynomials, count = sum_bins(x, y, within, variance, exponents)
    if not error < value < math.inf:  # the error is as large as the sum: the bins are too wide for a bound
        return BinnedSum(-math.inf, 0.0, polynomials, math.inf, count)
    return BinnedSum(math.log(value) - exponent, slope / value, polynomials, -math.log1p(-error / value), count)


def sum_bins(
    x: Bins, y: Bins, within: bool, variance: float, exponents: float
) -> tuple[float, float, float, float, tuple[Floats, ...], int]:
    """Sum over all pairs of points in two sets of bins, or over all pairs ``within`` one set.

    Pairs of bins whose Gaussian is e^exponents times smaller than that of the nearest pair are left out and counted in
    the error. Returns S, ∂S/∂V, the error of S, the exponent e taken out of all three (the sum itself is S·exp(−e)),
    the polynomials of ∂ log S/∂z, and the number of exponentials.
    """
    order, width = x.moments.shape[1], x.width
    lagrange, differences, *constants = node_tables(order)
    least = 0 if within or x.keys is y.keys else int(kernels.nearest_distance(x.keys, y.keys))
    first = int(min(x.keys[0], y.keys[0]))
    span = int(max(x.keys[-1], y.keys[-1])) - first + 1
    reach = bounds.farther(0 if within else (least + 1) * width, variance, exponents)
    n_offsets = min(math.ceil(reach / width) + (2 if within else 3), span - least)
    blocks, slopes = np.empty((2, n_offsets, order, order))
    kernels.couple_nodes(least, differences, width, variance, blocks, slopes)
    errors = np.empty(n_offsets)
    kernels.pair_errors(least, *constants, width, math.sqrt(variance), errors)
    # Long loops over all bins are faster than short ones over the occupied bins, unless few bins are occupied.
    whole = span <= 4 * min(len(x.keys), len(y.keys)) + 16
    sides = [_Charges(bins, first, span if whole else 0, lagrange) for bins in ((x,) if within else (x, y))]
    one, other = sides[0], sides[-1]
    if within:  # each pair of different bins counts twice, a bin with itself once; the sum is doubled below
        blocks[0] *= 0.5
        slopes[0] *= 0.5
        errors[0] *= 0.5
    value, slope, error = one.couple(other, least, blocks, slopes, errors)
    if within:
        value, slope, error = 2 * value, 2 * slope, 2 * error
    else:
        level = 1 if least == 0 else 0  # pairs of bins with the same number have been counted already
        more = other.couple(one, least + level, blocks[level:], slopes[level:], errors[level:])
        value, slope, error = value + more[0], slope + more[1], error + more[2]
    nearest, count = max(least - 1, 0) * width, n_offsets * order * order
    if not value * width > 0:  # the sum underflowed: it is unknown, with an infinite error
        return 0.0, 0.0, math.inf, 0.0, tuple(np.zeros(bins.moments.shape) for bins in (x, y)), count
    if n_offsets < span - least:
        left_out = (least + n_offsets - 1) * width
        ratio = math.exp((nearest - left_out) * (nearest + left_out) / (2 * variance))
        error += float(x.moments[:, 0].sum()) * float(y.moments[:, 0].sum()) * ratio
    polynomials = tuple(side.slopes((4 if within else 2) / (width * value)) for side in sides)
    return value, slope, error, nearest * nearest / (2 * variance), polynomials, count


class _Charges:
    """The charges at the nodes of some bins, in a table of ``span`` bins from ``first`` on, or of the occupied bins."""

    def __init__(self, bins: Bins, first: int, span: int, lagrange: Floats) -> None:
        self.keys, self.lagrange = bins.keys, lagrange
        n, order = bins.moments.shape
        self.whole = span > 0
        self.columns = bins.keys - first if self.whole else np.arange(n)
        self.table, self.potential = np.zeros((order + 1, span or n)), np.zeros((order, span or n))
        kernels.put_charges(self.columns, bins.moments, lagrange, self.table)

    def couple(
        self, lower: "_Charges", least: int, blocks: Floats, slopes: Floats, errors: Floats
    ) -> tuple[float, float, float]:
        """Return S, ∂S/∂V and the error over pairs with a bin of ``lower`` that is at least ``least`` bins below."""
        couplings = least, blocks, slopes, errors, self.potential, lower.potential
        if self.whole:
            found = kernels.couple_bins(self.table, lower.table, *couplings)
        else:
            found = kernels.couple_occupied(self.keys, self.table, lower.keys, lower.table, *couplings)
        value, slope, error = found
        return value, slope, error

    def slopes(self, factor: float) -> Floats:
        """Return ``factor`` times the derivative of the potential in each bin, as polynomials in u, (n_bins, P)."""
        polynomials = np.empty((len(self.columns), len(self.lagrange)))
        kernels.read_slopes(self.columns, self.potential, self.lagrange, factor, polynomials)
        return polynomials


def log_pairs(x: Bins, y: Bins) -> float:
    """Return log(mass of all pairs of bins / mass of the lightest pair), which may be the only pair near the gap."""
    masses = [bins.moments[:, 0] for bins in (x, y)]
    return sum(math.log(mass.sum() / mass[mass > 0].min()) for mass in masses)


class Moments:
    """S = Σ_ij a_i b_j exp(−(x_i − y_j)²/2V) by moment bins, for points in memory.

    ``eps`` bounds the error of log S, so it does not depend on the scale of the points. If the bins cannot guarantee
    it, all pairs are summed. This happens with few points, with classes far apart, and with points so far from zero
    that their rounding is not small compared with a bin.
    """

    smooth: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True
    distributes: ClassVar[bool] = True
    has_grid: ClassVar[bool] = True
    default_eps: ClassVar[float | None] = 1e-06

    def __init__(self, eps: float) -> None:
        self.eps = eps
        self._exact = Exact()

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        return Side(values, weights)

    def within(self, x: Side, variance: float) -> DoubleSum:
        width = power_of_two(bounds.moment_bin_width(ORDER, variance, self.eps))
        if _lost(x, width):
            return self._exact.within(x, variance)
        binned = _bin_side(x, width)
        result = sum_within(binned.bins, variance, self.eps)
        if result.error > self.eps:
            return self._exact.within(x, variance)
        return DoubleSum(result.log_value, binned.per_point(result.polynomials[0]), None, result.n_exponentials)

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        width = power_of_two(bounds.moment_bin_width(ORDER, variance, self.eps))
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
        """Return weight · p(u) for each point, shape (n,), with p the polynomial of its bin."""
        values = np.polynomial.polynomial.polyval(self.local, polynomials[self.members].T, tensor=False)
        return np.asarray(self.weights * values)


def _bin_side(side: Side, width: float) -> _BinnedSide:
    position = side.values / width
    floor = np.floor(position)
    keys, members = np.unique(floor.astype(np.int64), return_inverse=True)
    local = 2 * (position - floor) - 1
    moments = np.zeros((len(keys), ORDER))
    kernels.add_point_moments(local, members, side.weights, moments)
    return _BinnedSide(Bins(keys, moments, width), members, local, side.weights)


def _lost(side: Side, width: float) -> bool:
    """Return whether the points are so far from zero that too few digits are left for their place within a bin."""
    return bool(np.abs(side.values).max() > 2.0**40 * width)
