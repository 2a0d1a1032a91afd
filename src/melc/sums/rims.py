"""The rims of a gap between two classes: narrow bins for the few points next to the gap that determine the sum across.

If two classes are far apart, all terms of the sum across them are in the tail of the Gaussian. The tail falls so fast
that bins of about a bandwidth cannot guarantee a small relative error. Only the points next to the gap matter there;
the bins that hold them are called its rims. The wider the gap, the narrower the bins have to be, but the range of the
points that matter shrinks in the same proportion, so the number of narrow bins stays small.

A narrow bin is one of the 2ˡ parts of an ordinary bin. Narrow bins deep inside an ordinary bin, more than ``depth``
narrow bins from the first and from the last that holds a point, are left out: on whichever side the other class lies,
another point of the same ordinary bin is so much nearer to it that they do not matter. (If the other class may lie in
the middle of an ordinary bin, ``depth`` is so large that nothing is left out.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.sums.bins import Keys

_LONGEST_TABLE = 1 << 16  # from keys to positions


@dataclass(frozen=True)
class Rims:
    """The ordinary bins next to a gap, and how they are divided into narrow bins.

    ``chosen``, of shape (n_bins + 1,), marks the ordinary bins: see :meth:`melc.sums.bins.BinLayout.among`.
    """

    chosen: NDArray[np.bool_]
    origin: float
    width: float  # of a narrow bin
    levels: tuple[int, int]  # a bin of class c has 2**levels[c] narrow bins; if negative, it is a part of one
    depth: int  # in narrow bins
    finer_than_floats: bool  # whether bins of the required width would be narrower than the spacing of floats

    def locate(self, z: Floats) -> tuple[Keys, Floats]:
        """Return the narrow bin and the local coordinate in [−1, 1) of each point, both of shape (n,)."""
        position = (z - self.origin) * (1 / self.width)
        floor = np.floor(position)
        return floor.astype(np.int64), 2 * (position - floor) - 1


class RimBins:
    """The occupied narrow bins of each class: ``keys[c]``, ascending, and ``moments[c]``, of shape (n_bins, P)."""

    def __init__(self) -> None:
        self.keys: list[Keys] = [np.empty(0, dtype=np.int64) for _ in range(2)]
        self.moments: list[Floats] = [np.empty((0, kernels.ORDER)) for _ in range(2)]

    def add(self, rims: Rims, z: Floats, codes: NDArray[np.int8], weights: Floats) -> None:
        """Add points. They are added one by one, so the result does not depend on how they are divided into calls."""
        keys, local = rims.locate(z)
        for c in (0, 1):
            mine = np.flatnonzero(codes == c)
            rows = self._rows_of(c, keys[mine])
            kernels.add_point_moments(local[mine], rows, weights[mine], self.moments[c])
        self.crop(rims)

    def crop(self, rims: Rims) -> None:
        """Remove narrow bins deeper than ``depth``.

        A bin that is kept has all its points: more points can only move the ends outwards, so a bin that was removed
        once is never needed again.
        """
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
        """Return the table rows of the wanted bins of class c, shape (n,), after adding rows for new bins."""
        keys = self.keys[c]
        self.keys[c] = np.union1d(keys, _distinct(wanted))
        if len(self.keys[c]) > len(keys):
            self.moments[c] = spread_out(self.moments[c], self.keys[c].searchsorted(keys), len(self.keys[c]))
        return _positions(self.keys[c], wanted)


@dataclass(frozen=True)
class RimSlopes:
    """Gradient weights of points at the rims, to be added to those of the ordinary bins.

    For class c, ``polynomials[c]``, of shape (n_bins, P), holds a polynomial for each narrow bin in ``keys[c]``.
    """

    rims: Rims
    keys: tuple[Keys, Keys]
    polynomials: tuple[Floats, Floats]

    def at(self, z: Floats, codes: NDArray[np.int8]) -> Floats:
        """Return the value of its bin's polynomial for each point, shape (n,); zero for points in none of the bins."""
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
    """Return a table of shape (n_rows, …) with the values in the given rows and zeros in all others."""
    table = np.zeros((n_rows, *values.shape[1:]))
    table[rows] = values
    return table


def _distinct(keys: Keys) -> Keys:
    """Return the distinct keys in ascending order."""
    if not _table_pays(keys, len(keys)):
        return np.unique(keys)
    low = keys.min()
    return low + np.flatnonzero(np.bincount(keys - low))


def _positions(keys: Keys, wanted: Keys) -> Keys:
    """Return the index of each wanted key in ``keys`` (distinct, ascending); an arbitrary index for a missing key."""
    if not _table_pays(keys, len(wanted)):
        return np.minimum(keys.searchsorted(wanted), max(len(keys) - 1, 0))
    places = keys.searchsorted(np.arange(keys[0], keys[-1] + 1))
    return places[np.clip(wanted - keys[0], 0, len(places) - 1)]


def _table_pays(keys: Keys, n: int) -> bool:
    """Return whether a look-up table over the range of the keys is short compared with n look-ups.

    The table is then faster than sorting or binary search. Where many points are at the rims, as with uniform classes,
    an evaluation takes a quarter longer without it.
    """
    return n > 0 and len(keys) > 0 and keys.max() - keys.min() < min(4 * n, _LONGEST_TABLE)
