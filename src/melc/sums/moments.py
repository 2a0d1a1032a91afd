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
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.kernels import ORDER
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.bins import Bins, power_of_two
from melc.sums.exact import Exact, nearest_distance


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


class _Nodes(NamedTuple):
    """Constants for P Chebyshev nodes on [−1, 1].

    ``charging``, shape (1, P + 1, P), maps the moments of a bin to its charges and, in the last row, its weight;
    ``slopes``, shape (1, P, P), maps the potential at the nodes to its derivative by u, a polynomial of degree P − 2.
    ``constants`` are half the differences of the nodes, shape (P, P), and :func:`bounds.moment_bin_constants`.
    """

    charging: Floats
    slopes: Floats
    constants: tuple[Floats, Floats, float, float]


@functools.cache
def _nodes(order: int) -> _Nodes:
    points = np.cos((2 * np.arange(order) + 1) * np.pi / (2 * order))
    # Row a holds the coefficients of the polynomial that is one at node a and zero at the others.
    lagrange = np.linalg.inv(np.vander(points, increasing=True)).T
    slopes = np.zeros((1, order, order))
    slopes[0, :-1] = (lagrange[:, 1:] * np.arange(1, order)).T
    charging = np.ascontiguousarray(np.concatenate([lagrange, np.eye(1, order)])[None])
    return _Nodes(charging, slopes, (np.subtract.outer(points, points) / 2, *bounds.moment_bin_constants(order)))


def sum_bins_within(bins: Bins, variance: float, eps: float) -> BinnedSum:
    """Return the sum over all pairs of points of one class."""
    # S is of the order of (total weight)²/n_bins or larger, so the pairs left out are less than about eps/100 of it.
    return _sum(bins, bins, True, variance, math.log(100 * len(bins.keys) / eps))


def sum_bins_across(x: Bins, y: Bins, variance: float, eps: float, enough: float | None = None) -> BinnedSum:
    """Return the sum over all pairs of points of two classes, whose bins have the same width and origin.

    Pairs of distant bins are left out unless the error would be more than ``enough``, by default a quarter of ``eps``:
    D contains this sum twice.
    """
    # If the classes overlap, the sum is seldom smaller than with all weights spread evenly over the bins.
    likely = _sum(x, y, False, variance, math.log(len(x.keys) * len(y.keys) * 100 / eps))
    if likely.error <= (eps / 4 if enough is None else enough):
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
    least = 0 if within or x.keys is y.keys else int(nearest_distance(x.keys, y.keys))
    first = min(int(x.keys[0]), int(y.keys[0]))
    span = max(int(x.keys[-1]), int(y.keys[-1])) - first + 1
    reach = bounds.farther(0 if within else (least + 1) * width, variance, exponents)
    n_offsets = min(math.ceil(reach / width) + (2 if within else 3), span - least)
    blocks, slopes = np.empty((n_offsets, order, order)), np.empty((n_offsets, order, order))
    errors = np.empty(n_offsets)
    kernels.couple_nodes(least, *_nodes(order).constants, width, variance, blocks, slopes, errors)
    # Long loops over all bins are faster than short ones over the occupied bins, unless few bins are occupied.
    whole = span <= 4 * min(len(x.keys), len(y.keys)) + 16
    columns = span if whole else 0
    one = _charges(x, first, columns)
    other = one if within else _charges(y, first, columns)
    potential = np.zeros((order, one.table.shape[1]))
    if within:  # each pair of different bins counts twice, a bin with itself once; the sum is doubled below
        blocks[0] *= 0.5
        slopes[0] *= 0.5
        errors[0] *= 0.5
        value, slope, error = _couple(one, one, least, blocks, slopes, errors, potential, potential)
        value, slope, error = 2 * value, 2 * slope, 2 * error
    else:
        below = np.zeros((order, other.table.shape[1]))
        value, slope, error = _couple(one, other, least, blocks, slopes, errors, potential, below)
        level = 1 if least == 0 else 0  # pairs of bins with the same number have been counted already
        rest = blocks[level:], slopes[level:], errors[level:]
        more = _couple(other, one, least + level, *rest, below, potential)
        value, slope, error = value + more[0], slope + more[1], error + more[2]
    nearest, count = max(least - 1, 0) * width, n_offsets * order * order
    if not value * width > 0:  # the sum underflowed: it is unknown, with an infinite error
        return 0.0, 0.0, math.inf, 0.0, tuple(np.zeros(bins.moments.shape) for bins in (x, y)), count
    if n_offsets < span - least:
        left_out = (least + n_offsets - 1) * width
        error += one.weight * other.weight * math.exp((nearest - left_out) * (nearest + left_out) / (2 * variance))
    factor, exponent = (4 if within else 2) / (width * value), nearest * nearest / (2 * variance)
    first_polynomials = one.slopes(potential, factor)
    polynomials = (first_polynomials,) if within else (first_polynomials, other.slopes(below, factor))
    return value, slope, error, exponent, polynomials, count


class _Charges:
    """The charges at the nodes of some bins, in a table of ``span`` bins from ``first`` on, or of the occupied bins."""

    def __init__(self, bins: Bins, first: int, span: int) -> None:
        n, order = bins.moments.shape
        self.keys, self.whole, self.every = bins.keys, span > 0, np.arange(n)
        self.columns = bins.keys - first if self.whole else self.every
        self.the_only = np.zeros(n, dtype=np.int64)
        charges, charging = np.zeros((span or n, order + 1)), _nodes(order).charging
        kernels.map_bins(1.0, charging, self.the_only, bins.moments, self.every, charges, self.columns)
        self.table = np.ascontiguousarray(charges.T)
        self.weight = float(bins.moments[:, 0].sum())

    def slopes(self, potential: Floats, factor: float) -> Floats:
        """Return ``factor`` times the derivative of the potential in each bin, as polynomials in u, (n_bins, P)."""
        order, by_bin = len(potential), np.ascontiguousarray(potential.T)
        polynomials = np.zeros((len(self.columns), order))
        kernels.map_bins(factor, _nodes(order).slopes, self.the_only, by_bin, self.columns, polynomials, self.every)
        return polynomials


def _charges(bins: Bins, first: int, span: int) -> _Charges:
    """Return the charges of bins, cached with the bins: the sums within and across often need the same."""
    found: _Charges | None = bins.charges.get((first, span))
    if found is None:
        found = bins.charges[first, span] = _Charges(bins, first, span)
    return found


def _couple(upper: _Charges, lower: _Charges, least: int, *others: Floats) -> tuple[float, float, float]:
    """Return S, ∂S/∂V and the error over pairs with a bin of ``lower`` that is at least ``least`` bins below."""
    if upper.whole:
        value, slope, error = kernels.couple_bins(upper.table, lower.table, least, *others)
    else:
        value, slope, error = kernels.couple_occupied(upper.keys, upper.table, lower.keys, lower.table, least, *others)
    return value, slope, error


def log_pairs(x: Bins, y: Bins) -> float:
    """Return log(weight of all pairs of bins / weight of the lightest pair), which may be the only one near the gap."""
    weights = [bins.moments[:, 0] for bins in (x, y)]
    return sum(math.log(w.sum() / w[w > 0].min()) for w in weights)


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
        if _too_far_from_zero(x, width):
            return self._exact.within(x, variance)
        binned = _bin_side(x, width)
        result = sum_bins_within(binned.bins, variance, self.eps)
        if result.error > self.eps:
            return self._exact.within(x, variance)
        return DoubleSum(result.log_value, binned.per_point(result.polynomials[0]), None, result.n_exponentials)

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        width = power_of_two(bounds.moment_bin_width(ORDER, variance, self.eps))
        if _too_far_from_zero(x, width) or _too_far_from_zero(y, width):
            return self._exact.across(x, y, variance)
        binned = _bin_side(x, width), _bin_side(y, width)
        result = sum_bins_across(binned[0].bins, binned[1].bins, variance, self.eps)
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


def _too_far_from_zero(side: Side, width: float) -> bool:
    """Return whether points are so far from zero that too few digits are left for their position within a bin."""
    return bool(np.abs(side.values).max() > 2.0**40 * width)
