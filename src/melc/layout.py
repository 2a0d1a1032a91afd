"""Where the bins are along the line, and in the tables that hold something for every bin."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats


@dataclass(frozen=True)
class Layout:
    """Bins along the line: one row of a table a bin, those of class 0 before those of class 1.

    Bin k of class c covers [origin + k·width_c, origin + (k + 1)·width_c); the table holds the bins ``low_c`` to
    ``low_c + count_c``. ``order`` is the number of moments that a bin keeps.
    """

    origin: float
    widths: tuple[float, float]
    low: tuple[int, int]
    count: tuple[int, int]
    order: int

    @property
    def n_bins(self) -> int:
        return self.count[0] + self.count[1]

    @property
    def offset(self) -> tuple[int, int]:
        return (0, self.count[0])

    def as_arguments(self) -> tuple[Any, ...]:
        """What the kernels take."""
        return (
            self.origin,
            1 / np.array(self.widths),
            np.array(self.low, dtype=np.float64),
            np.array(self.count, dtype=np.float64),
            np.array(self.offset, dtype=np.int64),
        )

    def locate(self, z: Floats, codes: NDArray[np.int8]) -> tuple[Floats, Floats]:
        """Bins of points, as floats, and their coordinates in them: by the same arithmetic as the kernels'."""
        t = (z - self.origin) * (1 / np.array(self.widths))[codes]
        keys = np.floor(t)
        return keys, 2 * (t - keys) - 1

    def slots(self, z: Floats, codes: NDArray[np.int8]) -> NDArray[np.int32]:
        """Rows of the table that points belong to; −1 for points in no bin."""
        rows, local = np.empty(len(z), dtype=np.int32), np.empty(len(z))
        kernels.locate(z, codes, *self.as_arguments(), rows, local)
        return rows

    def among(self, chosen: NDArray[np.bool_], z: Floats, codes: NDArray[np.int8]) -> NDArray[np.int64]:
        """Which points lie in bins that are chosen.

        ``chosen`` has an entry for every row of the table, and a last one for all points in no bin.
        """
        return np.flatnonzero(chosen[self.slots(z, codes)])  # −1, of those, is the last one

    def order_tag(self) -> tuple[int, ...]:
        """The order as the length of a tuple, which a kernel knows when it is compiled."""
        return (0,) * self.order
