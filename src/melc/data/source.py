"""The protocol of labelled rows, wherever they are stored.

Rows have features X of shape (n_rows, n_features), class codes 0 or 1, and weights. A method that takes a direction v,
of shape (n_features,), makes one pass over the rows and returns a sum over them: moments in bins, counts, a gradient.
The protocol is implemented by rows in memory (:mod:`melc.data.memory`) and in Dask collections
(:mod:`melc.data.dask.rows`). A new kind of storage has to implement the same methods.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.hashing import DistinctRows
from melc.data.hats import CurveRequest, CurveSums
from melc.data.points import Binned, ClassSummaries, Extra, Points
from melc.sums.bins import BinLayout
from melc.sums.rims import RimBins, Rims, RimSlopes

if TYPE_CHECKING:
    from melc.data.memory import MemoryRows

# For each class, ranks of rows among the rows of that class, ascending.
Ranks = tuple[NDArray[np.int64], NDArray[np.int64]]

# For each class, the lowest and the highest projection to include.
Limits = tuple[tuple[float, float], tuple[float, float]]


class Rows(Protocol):
    """Labelled rows of two classes."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def distributed(self) -> bool:
        """Whether a pass is a round over a cluster, so that several problems on the same rows should share passes."""
        ...

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of rows of each class."""
        ...

    @property
    def total_weights(self) -> tuple[float, ...]:
        """Total weight of each class."""
        ...

    @property
    def smallest_weights(self) -> tuple[float, ...]:
        """Smallest weight of a row, for each class."""
        ...

    @property
    def canonical(self) -> bool:
        """Whether no two rows of a class are equal, and the order of the rows follows from what they contain."""
        ...

    def bin(self, v: Floats, layout: BinLayout) -> Binned:
        """Return the moments of the projections in the bins of a layout.

        The moments of the features are included where they save another pass; otherwise ``features`` is None.
        """
        ...

    def bin_at_rims(self, v: Floats, layout: BinLayout, rims: Rims) -> RimBins:
        """Return the moments of the projections in the narrow bins of the rims of a gap."""
        ...

    def pull_back_binned(
        self, v: Floats, layout: BinLayout, table: Floats, extra: Extra | None, slopes: RimSlopes | None = None
    ) -> Floats:
        """Return Xᵀw, of shape (n_features,), with the gradient weights w given by polynomials.

        The gradient weight of a row is its weight times p(u), with p the polynomial of its bin: a row of ``table``, of
        shape (n_bins, P − 1). For rows at a rim, the value of ``slopes`` is added to p(u). The weights in ``extra`` are
        added at the end.
        """
        ...

    def summarise(self, v: Floats) -> ClassSummaries:
        """Return the mean, variance and outermost projections of each class."""
        ...

    def bin_between(self, v: Floats, layout: BinLayout, limits: Limits) -> Floats:
        """Return the moments in bins, of shape (n_bins, P), of the projections within the (closed) limits."""
        ...

    def points_of(self, v: Floats, code: int) -> Points:
        """Return all rows of a class as points."""
        ...

    def count(self, v: Floats, thresholds: Floats, n_classes: int = 2) -> Floats:
        """Return the weight of each class in each interval between thresholds: (len(thresholds) + 1, n_classes)."""
        ...

    def sum_curves(self, directions: Floats, request: CurveRequest) -> CurveSums:
        """Return the sums from which curves are fitted; ``directions`` has shape (n_lines, n_features)."""
        ...

    def take(self, ranks: Ranks) -> "MemoryRows":
        """Return the rows with the given ranks in their class, in memory and in their original order."""
        ...

    def select(self, seed: int, limits: Floats) -> DistinctRows:
        """Return at least the distinct rows whose u / W is below the limit of their class, shape (2,).

        u is a pseudo-random number and W the total weight: see :mod:`melc.data.hashing`.
        """
        ...

    def take_sample(self, numbers: NDArray[np.int64], weights: Floats) -> "MemoryRows":
        """Return the rows with the given numbers, in the order of the numbers, in memory and with other weights.

        They must be distinct and in canonical order.
        """
        ...

    def in_memory(self) -> "MemoryRows":
        """Return all rows in memory."""
        ...

    def around(self, centre: Floats) -> "Rows":
        """Return the same rows with ``centre``, of shape (n_features,), subtracted."""
        ...

    def against_rest(self, k: int) -> "Rows":
        """Return the same rows with code 1 for class k and 0 for all others. The codes must be class numbers."""
        ...

    def close(self) -> None:
        """Release threads and other resources."""
        ...


@dataclass(frozen=True)
class Collected:
    """Rows whose codes are class numbers, and the labels, row counts and total weights of the classes."""

    rows: Rows
    classes: NDArray[Any]
    counts: NDArray[np.int64]
    totals: Floats
    varies: bool  # whether any feature varies
