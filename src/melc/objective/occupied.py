"""The occupied bins of a class, both in the table and of outliers, and the statistics computed from them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.data.points import Binned
from melc.data.summary import Spread
from melc.sums.bins import BinLayout, Bins


@dataclass(frozen=True)
class Occupied:
    """The occupied bins of one class, and how they correspond to rows of the table and to outliers."""

    bins: Bins
    in_table: NDArray[np.int64]  # index in bins of each occupied row of the table
    slots: NDArray[np.int64]  # these rows of the table
    of_outside: NDArray[np.int64]  # index in bins of each outlier


def occupied(layout: BinLayout, binned: Binned, c: int) -> Occupied:
    """Return the occupied bins of class c."""
    table = binned.moments[layout.offset[c] : layout.offset[c] + layout.count[c]]
    filled = np.flatnonzero(table[:, 0])
    keys, mine, slots = filled + layout.low[c], table[filled], filled + layout.offset[c]
    width = layout.widths[c]
    if binned.outside is None:
        return Occupied(Bins(keys, mine, width), np.arange(len(keys)), slots, np.empty(0, dtype=np.int64))
    outside = binned.outside[binned.outside.codes == c]
    their_keys, local = layout.locate(outside.z, outside.codes)
    far_keys, inverse = np.unique(their_keys.astype(np.int64), return_inverse=True)
    far = np.zeros((len(far_keys), kernels.ORDER))
    kernels.add_point_moments(local, inverse, outside.weights, far)
    every = np.concatenate([keys, far_keys])
    order = np.argsort(every)
    position = np.empty(len(every), dtype=np.int64)
    position[order] = np.arange(len(every))
    bins = Bins(every[order], np.concatenate([mine, far])[order], width)
    return Occupied(bins, position[: len(keys)], slots, position[len(keys) :][inverse])


def layout_over(origin: float, x: Bins, y: Bins, widths: tuple[float, float]) -> BinLayout:
    """Return a layout with new widths that covers the given bins."""

    def median(c: int) -> float:
        bins = (x, y)[c]
        passed = np.cumsum(bins.moments[:, 0])
        return origin + float(bins.keys[np.searchsorted(passed, passed[-1] / 2)]) * bins.width

    ranges = tuple((origin + low[0], origin + high[-1]) for low, high in (x.edges, y.edges))
    return BinLayout.around(origin, widths, (ranges[0], ranges[1]), median)


def spread_of_bins(x: Bins, y: Bins, origin: float) -> Spread:
    """Return the weight, mean and variance of the projections of each class, exact up to rounding, from the moments."""
    weights, means, variances = [], [], []
    for bins in (x, y):
        m, half = bins.moments, bins.width / 2
        middle = (bins.keys + 0.5) * bins.width
        total = m[:, 0].sum()
        mean = (middle @ m[:, 0] + half * m[:, 1].sum()) / total
        away = middle - mean  # relative to the mean, which avoids cancellation
        second = away**2 @ m[:, 0] + 2 * half * (away @ m[:, 1]) + half**2 * m[:, 2].sum()
        weights.append(float(total))
        means.append(float(origin + mean))
        variances.append(max(0.0, float(second / total)))
    return Spread(*weights, *means, *variances)
