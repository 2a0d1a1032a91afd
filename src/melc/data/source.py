"""What the rest of melc may ask of labelled rows, wherever they are: a protocol.

Rows have features X of shape (n_rows, n_features), a class code 0 or 1, and a weight. Everything that is asked for
along a direction v, of shape (n_features,), is one pass over the rows, and comes back as a sum over them: moments in
bins, counts, a gradient. Rows in memory (:mod:`melc.data.memory`) and in Dask collections (:mod:`melc.data.dask.rows`)
implement all of it; so would a new kind of storage.
"""

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.passes import Together
from melc.data.points import Binned, Extra, Points
from melc.data.summary import Summary
from melc.sums.bins import Layout
from melc.sums.rims import RimBins, Rims, RimSlopes

if TYPE_CHECKING:
    from melc.data.memory import MemoryRows

# Ranks of rows among those of their class, ascending, for either class.
Ranks = tuple[NDArray[np.int64], NDArray[np.int64]]

# The least and the largest point of interest, for either class.
Limits = tuple[tuple[float, float], tuple[float, float]]


class Rows(Protocol):
    """Labelled rows of two classes."""

    together: Together | None  # gathers the passes of several problems on the same rows

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def counts(self) -> tuple[int, int]:
        """Number of rows of either class."""
        ...

    @property
    def total_weights(self) -> tuple[float, float]:
        """Weight of either class."""
        ...

    @property
    def lightest(self) -> tuple[float, float]:
        """The smallest weight of a row of either class."""
        ...

    @property
    def divisible(self) -> bool:
        """Whether a pass can go block by block, and so serve several problems at once."""
        ...

    def bin(self, v: Floats, layout: Layout) -> Binned:
        """Return the moments of the projections in the bins of a layout.

        The moments of the features come along where that spares another pass: whoever asks looks.
        """
        ...

    def bin_at_rims(self, v: Floats, layout: Layout, rims: Rims) -> RimBins:
        """Return the moments of the projections in the narrow bins of some rims."""
        ...

    def pull_back_binned(
        self, v: Floats, layout: Layout, table: Floats, extra: Extra | None, slopes: RimSlopes | None = None
    ) -> Floats:
        """Return Xᵀw, of shape (n_features,), with the weights w given by polynomials.

        The weight of a row is the value of its bin's polynomial, a row of ``table`` of shape (n_bins, P − 1), plus that
        of ``slopes`` if it lies at a rim, both times the row's own weight; and what it has ``extra``.
        """
        ...

    def summarise(self, v: Floats) -> Summary:
        """Return spread and outermost points of both classes."""
        ...

    def bin_between(self, v: Floats, layout: Layout, limits: Limits) -> Floats:
        """Return moments in bins, of shape (n_bins, P), of the points between the limits of their class, included."""
        ...

    def points_of(self, v: Floats, code: int) -> Points:
        """Return all points of a class."""
        ...

    def count(self, v: Floats, thresholds: Floats) -> Floats:
        """Return the weight of either class in the intervals between thresholds, shape (len(thresholds) + 1, 2)."""
        ...

    def take(self, ranks: Ranks) -> "MemoryRows":
        """Return some rows, by their ranks in their classes, in memory and in their order."""
        ...

    def in_memory(self) -> "MemoryRows":
        """Return all rows in memory."""
        ...

    def around(self, centre: Floats) -> "Rows":
        """Return the same rows relative to a point, of shape (n_features,)."""
        ...

    def against_rest(self, k: int) -> "Rows":
        """Return the same rows with code 1 for class k and 0 for all others, where codes are numbers of classes."""
        ...

    def close(self) -> None:
        """Let go of threads and the like."""
        ...
