"""The bins of a class that hold points, those of a table and those of outliers, and what they tell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.data.points import Binned
from melc.sums.bins import Bins, Layout


@dataclass(frozen=True)
class Occupied:
    """Occupied bins of one class, and where their points stand in the table and among the outliers."""

    bins: Bins
    in_table: NDArray[np.int64]  # position of the bin for every occupied row of the table
    slots: NDArray[np.int64]  # those rows
    of_outside: NDArray[np.int64]  # position of the bin of every outlier


def occupied(layout: Layout, binned: Binned, c: int) -> Occupied:
    """Return the bins of a class that hold points."""
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


def layout_over(origin: float, x: Bins, y: Bins, widths: tuple[float, float]) -> Layout:
    """Return a layout of other widths for the places of these bins."""

    def median(c: int) -> float:
        bins = (x, y)[c]
        passed = np.cumsum(bins.moments[:, 0])
        return origin + float(bins.keys[np.searchsorted(passed, passed[-1] / 2)]) * bins.width

    ranges = tuple((origin + low[0], origin + high[-1]) for low, high in (x.edges, y.edges))
    return Layout.around(origin, widths, (ranges[0], ranges[1]), median)


def spread_of_bins(x: Bins, y: Bins, origin: float) -> kernels.Spread:
    """Return exact weights, means and variances of the projections of both classes, from the moments."""
    weights, means, variances = [], [], []
    for bins in (x, y):
        m, half = bins.moments, bins.width / 2
        middle = (bins.keys + 0.5) * bins.width
        total = m[:, 0].sum()
        mean = (middle @ m[:, 0] + half * m[:, 1].sum()) / total
        away = middle - mean  # around the mean, so that nothing cancels
        second = away**2 @ m[:, 0] + 2 * half * (away @ m[:, 1]) + half**2 * m[:, 2].sum()
        weights.append(float(total))
        means.append(float(origin + mean))
        variances.append(max(0.0, float(second / total)))
    return kernels.Spread(*weights, *means, *variances)
