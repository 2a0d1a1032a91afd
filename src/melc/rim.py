"""The rims of a gap between two classes: the points that decide a sum across it, in bins as narrow as it takes.

A Gaussian falls so fast far out that bins of about a bandwidth keep no relative error of a sum that is all tail. The
points that count stand next to the gap, and there narrow bins are few: the wider the gap, the narrower the bins have
to be, and in the same proportion fewer points matter.

A narrow bin is one of 2ˡ parts of an ordinary one. Deep within an ordinary bin, farther than ``depth`` narrow bins
behind the first and the last that hold a point, nothing matters: on whichever side the other class is, a point of the
same bin stands so much nearer to it. (No bin is deep enough for that where the other class may be in its midst.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats

Keys = NDArray[np.int64]

_LONGEST_TABLE = 1 << 16


@dataclass(frozen=True)
class Rims:
    """Ordinary bins next to a gap (``chosen``, see :meth:`melc.layout.Layout.among`), and how they are divided."""

    chosen: NDArray[np.bool_]
    origin: float
    width: float
    levels: tuple[int, int]  # a bin of class c has 2**levels[c] narrow ones, or is a part of one
    depth: int
    to_the_digit: bool  # whether no bin can be narrower, for want of digits
    with_features: bool = False  # whether moments of the features are wanted as well

    def cover(self, others: "Rims") -> bool:
        """Whether what is binned here tells what would be binned there."""
        deep = self.depth * self.width >= (others.depth + 1) * others.width
        return deep and self.width <= others.width and not np.any(others.chosen & ~self.chosen)

    def locate(self, z: Floats) -> tuple[Keys, Floats]:
        """Narrow bins of points, and their coordinates in them."""
        return _locate(z, self.origin, self.width)


class RimBins:
    """Narrow bins that hold points: for either class their numbers in ascending order, and their moments.

    And those of the features, unless there are none: ``features[c][bin, feature, j]``.
    """

    def __init__(self, order: int, n_features: int = 0) -> None:
        self.keys: list[Keys] = [np.empty(0, dtype=np.int64) for _ in range(2)]
        self.moments: list[Floats] = [np.empty((0, order)) for _ in range(2)]
        self.features: list[Floats] = [np.empty((0, n_features, order - 1)) for _ in range(2)]

    @property
    def has_features(self) -> bool:
        return self.features[0].shape[1] > 0

    def add(
        self, rims: Rims, z: Floats, codes: NDArray[np.int8], weights: Floats, features: Floats | None = None
    ) -> None:
        """Add points one by one in their order, so that it is the same bits however they are divided up."""
        keys, local = rims.locate(z)
        for c in (0, 1):
            mine = np.flatnonzero(codes == c)
            rows = self._rows_of(c, keys[mine])
            kernels.add_point_moments(local[mine], rows, weights[mine], self.moments[c])
            if features is not None:
                kernels.add_point_features(features[mine], local[mine], rows, weights[mine], self.features[c])
        self.crop(rims)

    def crop(self, rims: Rims) -> None:
        """Leave out what is too deep. What is kept has never missed a point: the ends of a bin only move outwards."""
        for c, keys in enumerate(self.keys):
            bins = keys >> max(0, rims.levels[c])
            first = np.searchsorted(bins, bins, side="left")
            last = np.searchsorted(bins, bins, side="right") - 1
            kept = (keys - keys[first] <= rims.depth) | (keys[last] - keys <= rims.depth)
            if not kept.all():
                self.keys[c] = keys[kept]
                for table in (self.moments, self.features):
                    table[c] = table[c][kept]

    def __iadd__(self, other: "RimBins") -> "RimBins":
        for c, keys in enumerate(other.keys):
            rows = self._rows_of(c, keys)
            self.moments[c][rows] += other.moments[c]
            self.features[c][rows] += other.features[c]
        return self

    def _rows_of(self, c: int, wanted: Keys) -> Keys:
        """Where bins stand in the table of a class, after room was made for new ones."""
        keys = self.keys[c]
        self.keys[c] = np.union1d(keys, distinct(wanted))
        if len(self.keys[c]) > len(keys):
            rows = self.keys[c].searchsorted(keys)
            for table in (self.moments, self.features):
                table[c] = spread_out(table[c], rows, len(self.keys[c]))
        return positions(self.keys[c], wanted)


@dataclass(frozen=True)
class Slopes:
    """For either class, bins of some width and what a point in them adds to its weight in a gradient: a polynomial.

    Such points lie in the bins of the table that are ``chosen`` (see :meth:`melc.layout.Layout.among`).
    """

    chosen: NDArray[np.bool_]
    origin: float
    widths: tuple[float, float]
    keys: tuple[Keys, Keys]
    polynomials: tuple[Floats, Floats]

    def at(self, z: Floats, codes: NDArray[np.int8]) -> Floats:
        """Its value at points; zero at those in no such bin."""
        values = np.zeros(len(z))
        for c, known in enumerate(self.keys):
            if not len(known):
                continue
            # Bins so far away that they have no whole number are none of these.
            low, high = self.origin + known[0] * self.widths[c], self.origin + (known[-1] + 1) * self.widths[c]
            mine = np.flatnonzero((codes == c) & (z >= low - self.widths[c]) & (z <= high + self.widths[c]))
            keys, local = _locate(z[mine], self.origin, self.widths[c])
            rows = positions(known, keys)
            found = known[rows] == keys
            mine, rows = mine[found], rows[found]
            values[mine] = np.polynomial.polynomial.polyval(local[found], self.polynomials[c][rows].T, tensor=False)
        return values


def _locate(z: Floats, origin: float, width: float) -> tuple[Keys, Floats]:
    position = (z - origin) * (1 / width)
    floor = np.floor(position)
    return floor.astype(np.int64), 2 * (position - floor) - 1


def spread_out(values: Floats, rows: NDArray[np.integer], n_rows: int) -> Floats:
    """A table with the given rows, and zero in all others."""
    table = np.zeros((n_rows, *values.shape[1:]))
    table[rows] = values
    return table


def distinct(keys: Keys) -> Keys:
    """In ascending order."""
    if not _table_pays(keys, len(keys)):
        return np.unique(keys)
    low = keys.min()
    return low + np.flatnonzero(np.bincount(keys - low))


def positions(keys: Keys, wanted: Keys) -> Keys:
    """Where some keys stand among distinct ones in ascending order; anywhere if they are not there."""
    if not _table_pays(keys, len(wanted)):
        return np.minimum(keys.searchsorted(wanted), max(len(keys) - 1, 0))
    places = keys.searchsorted(np.arange(keys[0], keys[-1] + 1))
    return places[np.clip(wanted - keys[0], 0, len(places) - 1)]


def _table_pays(keys: Keys, n: int) -> bool:
    """Whether a table of all numbers between the least and the largest is short compared with n that are looked up,
    which then is faster than to search and to sort."""
    return n > 0 and len(keys) > 0 and keys.max() - keys.min() < min(4 * n, _LONGEST_TABLE)
