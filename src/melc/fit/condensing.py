"""The densities of both classes along a direction, from passes over the rows with little memory."""

import math

import numpy as np

from melc.arrays import Floats
from melc.data.source import Rows
from melc.data.summary import ClassSummaries, ClassSummary
from melc.fit.density import (
    BINS_PER_BANDWIDTH,
    SURELY_MANY,
    Density,
    density_of_bins,
    estimate_density,
)
from melc.sums.bins import BinLayout, power_of_two

# A class gets at most about twice this many bins. More would be needed only for a range of thousands of bandwidths,
# which takes millions of rows with some dozens of them far from the rest.
_MOST_DENSITY_BINS = 1 << 15


def densities_along(
    rows: Rows, v: Floats, summary: ClassSummaries, variances: tuple[float, float]
) -> tuple[Density, Density]:
    """Return the densities of both classes along v, with the given kernel variances.

    The density of a small class is made from all its points, that of a large class from the moments of its points in
    bins and from its outermost points.
    """
    large = [count > SURELY_MANY for count in rows.counts]
    limits = [each.limits if many else (math.inf, -math.inf) for each, many in zip(summary.classes, large, strict=True)]
    layout = _layout(limits, variances)
    moments = rows.bin_between(v, layout, (limits[0], limits[1])) if any(large) else None

    def density(c: int) -> Density:
        if moments is None or not large[c]:
            points = rows.points_of(v, c)
            return estimate_density(points.z, points.weights, variances[c])
        return _condensed(summary.classes[c], layout, moments, variances[c], c)

    return density(0), density(1)


def _layout(limits: list[tuple[float, float]], variances: tuple[float, float]) -> BinLayout:
    """Return bins that cover the limits of each class, with one more at each end to be safe from rounding.

    The origin is zero, so that local coordinates keep all digits of the projections.
    """
    widths, low, count = [], [], []
    for (a, b), variance in zip(limits, variances, strict=True):
        inside = (a, b) if a <= b else (0.0, 0.0)
        width = power_of_two(
            max(math.sqrt(variance) / BINS_PER_BANDWIDTH, (inside[1] - inside[0]) / _MOST_DENSITY_BINS)
        )
        first, last = (math.floor(end / width) for end in inside)
        widths.append(width)
        low.append(first - 1)
        count.append(last - first + 3)
    return BinLayout(0.0, (widths[0], widths[1]), (low[0], low[1]), (count[0], count[1]))


def _condensed(summary: ClassSummary, layout: BinLayout, moments: Floats, variance: float, c: int) -> Density:
    table = moments[layout.offset[c] : layout.offset[c] + layout.count[c]]
    occupied = np.flatnonzero(table[:, 0])
    middles = np.asarray((layout.low[c] + occupied + 0.5) * layout.widths[c], dtype=np.float64)
    return density_of_bins(summary.ends, table[occupied], middles, layout.widths[c] / 2, variance)
