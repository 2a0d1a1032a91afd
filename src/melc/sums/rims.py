"""The rims of a gap between two classes: narrow bins for the few points that decide a sum across the gap.

A Gaussian falls so fast far out that bins of about a bandwidth keep no relative error of a sum that is all tail. The
points that count lie next to the gap, and there narrow bins are few: the wider the gap, the narrower the bins have to
be, and in the same proportion fewer points matter.

A narrow bin is one of 2ˡ parts of an ordinary one. Deep within an ordinary bin, farther than ``depth`` narrow bins
behind the first and the last that hold a point, nothing matters: on whichever side the other class lies, a point of
the same bin is so much nearer to it. (Where the other class may lie in the middle of a bin, no depth is left out.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums.bins import Keys

_LONGEST_TABLE = 1 << 16


@dataclass(frozen=True)
class Rims:
    """Ordinary bins next to a gap (``chosen``, see :meth:`melc.sums.bins.Layout.among`), and how they are divided."""

    chosen: NDArray[np.bool_]
    origin: float
    width: float
    levels: tuple[int, int]  # a bin of class c has 2**levels[c] narrow ones, or is a part of one
    depth: int
    to_the_digit: bool  # whether the last digit of a projection is wider than the bins should be

    def locate(self, z: Floats) -> tuple[Keys, Floats]:
        """Return the narrow bins of points, and their coordinates in [−1, 1) there."""
        position = (z - self.origin) * (1 / self.width)
        floor = np.floor(position)
        return floor.astype(np.int64), 2 * (position - floor) - 1


class RimBins:
    """Narrow bins that hold points: for either class their numbers in ascending order, and their moments."""

    def __init__(self) -> None:
        self.keys: list[Keys] = [np.empty(0, dtype=np.int64) for _ in range(2)]
        self.moments: list[Floats] = [np.empty((0, kernels.ORDER)) for _ in range(2)]

    def add(self, rims: Rims, z: Floats, codes: NDArray[np.int8], weights: Floats) -> None:
        """Add points one by one in their order, so that the bits are the same however the points are divided up."""
        keys, local = rims.locate(z)
        for c in (0, 1):
            mine = np.flatnonzero(codes == c)
            rows = self._rows_of(c, keys[mine])
            kernels.add_point_moments(local[mine], rows, weights[mine], self.moments[c])
        self.crop(rims)

    def crop(self, rims: Rims) -> None:
        """Leave out what is too deep. What is kept has never missed a point: the ends of a bin only move outwards."""
        for c, keys in enumerate(self.keys):
            bins = keys >> max(0, rims.levels[c])
            first = np.searchsorted(bins, bins, side="left")
            last = np.searchsorted(bins, bins, side="right") - 1
            kept = (keys - keys[first] <= rims.depth) | (keys[last] - keys <= rims.depth)
            if not kept.all():
                self.keys[c], self.moments[c] = keys[kept], self.moments[c][kept]

    def __iadd__(self, other: "RimBins") -> "RimBins":
        for c, keys in enumerate(other.keys):
            rows = self._rows_of(c, keys)
            self.moments[c][rows] += other.moments[c]
        return self

    def _rows_of(self, c: int, wanted: Keys) -> Keys:
        """Return the rows of bins in the table of a class, after making room for new ones."""
        keys = self.keys[c]
        self.keys[c] = np.union1d(keys, _distinct(wanted))
        if len(self.keys[c]) > len(keys):
            self.moments[c] = spread_out(self.moments[c], self.keys[c].searchsorted(keys), len(self.keys[c]))
        return _positions(self.keys[c], wanted)


@dataclass(frozen=True)
class RimSlopes:
    """What points at the rims add to their weight in a gradient: for either class, a polynomial for every bin."""

    rims: Rims
    keys: tuple[Keys, Keys]
    polynomials: tuple[Floats, Floats]

    def at(self, z: Floats, codes: NDArray[np.int8]) -> Floats:
        """Return the polynomials' values at points; zero at points in no such bin."""
        values = np.zeros(len(z))
        for c, known in enumerate(self.keys):
            mine = np.flatnonzero(codes == c)
            keys, local = self.rims.locate(z[mine])
            rows = _positions(known, keys)
            found = known[rows] == keys
            mine, rows = mine[found], rows[found]
            values[mine] = np.polynomial.polynomial.polyval(local[found], self.polynomials[c][rows].T, tensor=False)
        return values


def spread_out(values: Floats, rows: NDArray[np.integer], n_rows: int) -> Floats:
    """Return a table of ``n_rows`` rows with the values in the given rows, and zero in all others."""
    table = np.zeros((n_rows, *values.shape[1:]))
    table[rows] = values
    return table


def _distinct(keys: Keys) -> Keys:
    """The different keys in ascending order."""
    if not _table_pays(keys, len(keys)):
        return np.unique(keys)
    low = keys.min()
    return low + np.flatnonzero(np.bincount(keys - low))


def _positions(keys: Keys, wanted: Keys) -> Keys:
    """Where the wanted keys stand among distinct ones in ascending order; anywhere if they are not there."""
    if not _table_pays(keys, len(wanted)):
        return np.minimum(keys.searchsorted(wanted), max(len(keys) - 1, 0))
    places = keys.searchsorted(np.arange(keys[0], keys[-1] + 1))
    return places[np.clip(wanted - keys[0], 0, len(places) - 1)]


def _table_pays(keys: Keys, n: int) -> bool:
    """Whether a table of all numbers between the least and the largest is short compared with the n look-ups.

    A table is then faster than searching and sorting.
    """
    return n > 0 and len(keys) > 0 and keys.max() - keys.min() < min(4 * n, _LONGEST_TABLE)
