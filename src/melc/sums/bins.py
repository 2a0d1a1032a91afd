"""Moment bins on a line: their layout, the moments of the points in them, and merging into wider bins."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import binom

from melc import kernels
from melc.arrays import Floats

Keys = NDArray[np.int64]

# Maximum number of bins of a class in the table. Points beyond the table (outliers) are returned one by one.
_MOST_BINS = 1 << 14
# Matrices for merging 2ˡ bins into one are kept up to this l.
_KEPT_LEVELS = 6
# The table extends beyond the range of the points by this fraction of the range, on each side.
_MARGIN = 0.5


@dataclass
class BinLayout:
    """The bins of both classes along the line, and their rows in one table.

    Bin k of class c covers [origin + k·width_c, origin + (k + 1)·width_c). The table holds the bins low_c, …,
    low_c + count_c − 1 of each class, those of class 0 first. Each bin has P = 8 moments.

    Widths are powers of two. Bins of different widths then nest, and the arithmetic of the kernels is exact.
    """

    origin: float
    widths: tuple[float, float]
    low: tuple[int, int]
    count: tuple[int, int]
    n_bins: int = field(init=False)
    offset: tuple[int, int] = field(init=False)  # the first row of each class in the table
    arguments: tuple[Any, ...] = field(init=False)  # for kernels: origin, 1/widths, low, count, offset

    def __post_init__(self) -> None:
        (fraction_0, exponent_0), (fraction_1, exponent_1) = math.frexp(self.widths[0]), math.frexp(self.widths[1])
        if fraction_0 != 0.5 or fraction_1 != 0.5 or abs(exponent_0 - exponent_1) > 52:
            raise ValueError(f"Bin widths {self.widths} must be powers of two, less than 2^52 apart.")
        self.n_bins = self.count[0] + self.count[1]
        self.offset = (0, self.count[0])
        low, count = (float(self.low[0]), float(self.low[1])), (float(self.count[0]), float(self.count[1]))
        self.arguments = (self.origin, (1 / self.widths[0], 1 / self.widths[1]), low, count, self.offset)

    @classmethod
    def around(
        cls,
        origin: float,
        widths: tuple[float, float],
        ranges: tuple[tuple[float, float], tuple[float, float]],
        median: Callable[[int], float],
    ) -> "BinLayout":
        """Return a layout that covers the given range of each class and a margin.

        ``ranges`` holds the lowest and the highest point of each class, ``median(c)`` returns the median of class c.
        If a class would need too many bins, its table has the maximum size around the median. (Around the middle of the
        range, a single distant point could leave all others without a bin.)
        """
        low, count = [], []
        for c, (width, (a, b)) in enumerate(zip(widths, ranges, strict=True)):
            margin = _MARGIN * (b - a)
            first, last = math.floor((a - margin - origin) / width), math.floor((b + margin - origin) / width)
            if last - first >= _MOST_BINS:
                middle = math.floor((median(c) - origin) / width)
                first, last = middle - _MOST_BINS // 2, middle + _MOST_BINS // 2 - 1
            low.append(first)
            count.append(last - first + 1)
        return cls(origin, widths, (low[0], low[1]), (count[0], count[1]))

    def locate(self, z: Floats, codes: NDArray[np.int8]) -> tuple[Floats, Floats]:
        """Return the bin number, as a float, and the local coordinate in [−1, 1) of each point, both of shape (n,).

        The arithmetic is the same as in :func:`melc.kernels.locate`.
        """
        t = (z - self.origin) * np.array(self.arguments[1])[codes]
        keys = np.floor(t)
        return keys, 2 * (t - keys) - 1

    def located(self, z: Floats, codes: NDArray[np.int8]) -> tuple[NDArray[np.int32], Floats]:
        """Return the table row of each point, −1 if it lies outside the table, and its local coordinate: shape (n,)."""
        rows, local = np.empty(len(z), dtype=np.int32), np.empty(len(z))
        kernels.locate(z, codes, *self.arguments, rows, local)
        return rows, local

    def among(self, chosen: NDArray[np.bool_], z: Floats, codes: NDArray[np.int8]) -> NDArray[np.int64]:
        """Return the indices of the points that lie in chosen bins.

        ``chosen``, of shape (n_bins + 1,), has an entry for each row of the table and a last one for points outside it.
        """
        return np.flatnonzero(chosen[self.located(z, codes)[0]])  # index −1 is the last entry


@dataclass(frozen=True)
class Bins:
    """The occupied bins of one class.

    ``keys``, of shape (n_bins,), are the bin numbers in ascending order. ``moments``, of shape (n_bins, P), are the
    sums Σ w uʲ over the points of each bin, with u ∈ [−1, 1) the local coordinate.
    """

    keys: Keys
    moments: Floats
    width: float
    charges: dict[tuple[int, int], Any] = field(default_factory=dict, repr=False)  # cache of melc.sums.moments

    @property
    def edges(self) -> tuple[Floats, Floats]:
        """The lower and upper edges of the bins relative to the origin, both of shape (n_bins,)."""
        low: Floats = self.keys.astype(np.float64) * self.width
        return low, low + self.width


@dataclass(frozen=True)
class Merged:
    """Wider bins made of narrower ones."""

    bins: Bins
    parents: Keys  # for each narrow bin, the index of the wider bin that contains it
    matrices: Floats  # from the moments of a narrow bin to those of the wider one, shape (m, P, P)
    which: Keys  # the matrix of each narrow bin

    def carry_back(self, coefficients: Floats) -> Floats:
        """Return polynomials of the wider bins, shape (n_wide, P), in coordinates of the narrow ones, (n_narrow, P)."""
        if not len(self.matrices):
            return coefficients
        carried = np.zeros((len(self.parents), coefficients.shape[1]))
        transposed = np.ascontiguousarray(self.matrices.transpose(0, 2, 1))
        kernels.map_bins(1.0, transposed, self.which, coefficients, self.parents, carried, np.arange(len(carried)))
        return carried


def merge(bins: Bins, width: float) -> Merged:
    """Return the bins merged into bins of the given width, a power of two times theirs. The moments stay exact."""
    level, order = round(math.log2(width / bins.width)), bins.moments.shape[1]
    every = np.arange(len(bins.keys))
    if level <= 0:
        return Merged(bins, every, np.empty((0, order, order)), every)
    keys = bins.keys >> level
    starts = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    parents = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(keys)))
    places, moments = bins.keys - (keys << level), np.zeros((len(starts), order))
    if level <= _KEPT_LEVELS:
        matrices, which = _all_merging(level, order), places
    else:
        distinct, which = np.unique(places, return_inverse=True)
        matrices = _merging(distinct, level, order)
    kernels.map_bins(1.0, matrices, which, bins.moments, every, moments, parents)
    return Merged(Bins(keys[starts], moments, bins.width * 2**level), parents, matrices, which)


def _merging(places: Keys, level: int, order: int) -> Floats:
    """Return matrices from the moments of narrow bins to those of bins 2ˡ times as wide, by the binomial theorem.

    The coordinate u of the narrow bin at one of the ``places`` 0, …, 2ˡ − 1 is ``shrink · u + shift`` in the wide bin.
    """
    shrink = 0.5**level
    shifts = (2 * places + 1) * shrink - 1
    j, i = np.indices((order, order))
    powers = shifts[:, None] ** np.arange(order)
    return np.ascontiguousarray(binom(j, i) * shrink**i * powers[:, np.maximum(j - i, 0)])


@functools.cache
def _all_merging(level: int, order: int) -> Floats:
    return _merging(np.arange(1 << level), level, order)


def power_of_two(width: float) -> float:
    """Return the largest power of two that is not above ``width``.

    Examples
    --------
    >>> power_of_two(0.3)
    0.25
    """
    return math.ldexp(1.0, math.frexp(width)[1] - 1)
