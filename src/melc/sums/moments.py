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
from melc.kernels import ORDER
from melc.sums import bounds
from melc.sums.base import DoubleSum, Side
from melc.sums.bins import Bins, power_of_two
from melc.sums.exact import Exact


@dataclass(frozen=True)
class BinnedSum:
    """A sum over pairs in bins, and its certificate.

    ``log_value`` is log S and ``slope`` its derivative by V. ``polynomials`` hold ∂ log S/∂z for a point of weight one
    as a polynomial in u, one row for every bin (one table within a class, two across). ``log_value`` is off by at most
    ``error``, which is infinite where nothing can be said.
    """

    log_value: float
    slope: float
    polynomials: tuple[Floats, ...]
    error: float
    n_exponentials: int


@functools.cache
def _tables(order: int) -> tuple[Floats, Floats, Floats, float, float]:
    """What the kernels know of P Chebyshev nodes on [−1, 1].

    Row a of the first table holds the monomial coefficients of the polynomial that is one at node a and zero at the
    others, the second half the differences of nodes; then the constants of :func:`bounds.moment_bin_error`.
    """
    points = np.cos((2 * np.arange(order) + 1) * np.pi / (2 * order))
    lagrange = np.ascontiguousarray(np.linalg.inv(np.vander(points, increasing=True)).T)
    return lagrange, np.subtract.outer(points, points) / 2, *bounds.moment_bin_constants(order)


def sum_within(bins: Bins, variance: float, eps: float) -> BinnedSum:
    """Return the sum over all pairs of one class."""
    # S is at least the square of all mass over the bins, so what lies beyond adds less than eps/100 of it.
    return _sum(bins, bins, True, variance, math.log(100 * len(bins.keys) / eps))


def sum_across(x: Bins, y: Bins, variance: float, eps: float) -> BinnedSum:
    """Return the sum over the pairs of two classes, whose bins have the same width and origin."""
    # Where classes overlap the sum is seldom smaller than all mass spread evenly over the bins.
    likely = _sum(x, y, False, variance, math.log(len(x.keys) * len(y.keys) * 100 / eps))
    if likely.error <= eps / 4:  # as D, which has it twice, can use it
        return likely
    return _sum(x, y, False, variance, log_pairs(x, y) + math.log(100 / eps))


def _sum(x: Bins, y: Bins, within: bool, variance: float, exponents: float) -> BinnedSum:
    tables = _tables(x.moments.shape[1])
    value, slope, error, log_factor, first, second, count = kernels.sum_bins(
        x.keys, x.moments, y.keys, y.moments, within, x.width, variance, exponents, *tables
    )
    polynomials = (first,) if within else (first, second)
    if not error < value < math.inf:  # the sum may be anything; bins this wide do not tell
        return BinnedSum(-math.inf, 0.0, polynomials, math.inf, count)
    return BinnedSum(math.log(value) - log_factor, slope / value, polynomials, -math.log1p(-error / value), count)


def log_pairs(x: Bins, y: Bins) -> float:
    """Return log of all pairs over the lightest pair of bins, which could stand alone at the gap between classes."""
    mass_x, mass_y = x.moments[:, 0], y.moments[:, 0]
    return math.log(mass_x.sum() / mass_x.min()) + math.log(mass_y.sum() / mass_y.min())


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
        """The polynomial of its bin at every point, times its weight."""
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
    """Whether the numbers of bins leave no digits for places within them."""
    return bool(np.abs(side.values).max() > 2.0**40 * width)
