"""The kernel densities of both classes along a direction: widths, support points and crossings."""

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from melc import kernels
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.points import KEPT_AT_EACH_END, Atoms, ClassSummaries, ClassSummary, Spread, atoms_of
from melc.data.source import Rows
from melc.objective.base import (
    NO_SHRINKAGE,
    VARIANCE_FLOOR,
    Shrunk,
    kernel_variances,
    shrunk_variances,
    silverman_factor,
    total_variance,
)
from melc.sums.bins import BinLayout, power_of_two

# A class with up to this many distinct projections keeps them all. A larger one is condensed.
_EXACT_SUPPORT = 2048
# A class with more points than this is condensed without counting its distinct projections.
_ALWAYS_CONDENSED = 1 << 16
# Bins in a bandwidth when condensing, and quadrature nodes that replace the points of a bin.
_BINS_PER_BANDWIDTH = 4
_NODES_PER_BIN = kernels.ORDER // 2
# A quadrature with fewer nodes is used if the last pivot of the Hankel matrix is below this: up to rounding, the points
# of the bin then have fewer distinct positions than the quadrature has nodes.
_RANK_TOLERANCE = 1e-9

# Minimum kernel variance: the reciprocal of a much smaller one overflows. Features of the smallest allowed scale come
# near it if a class hardly varies.
LEAST_VARIANCE = 1e-305

# Points of one compiled call: between calls Python can react to Ctrl-C.
_POINTS_PER_CALL = 1 << 16

# A class gets at most about twice this many bins. More would be needed only for a range of thousands of bandwidths,
# which takes millions of rows with some dozens of them far from the rest.
_MOST_DENSITY_BINS = 1 << 15

# Quantiles that bound the central rows of a class, and their distance in standard deviations, if these are normal.
_QUANTILES, _NORMAL_DISTANCE = (0.1, 0.9), 2.563
# Cumulative weights whose relative difference is below this are equal up to rounding.
_SAME_SHARE = 1e-12
# Smallest ratio of the standard deviation of the central rows to that of all rows.
_LEAST_RATIO = 0.01

Ratio = Callable[[ArrayLike], Floats]
# Steps of the grid in a bandwidth, and the most steps between two neighbouring points.
_GRID_PER_BANDWIDTH, _MOST_STEPS_IN_A_GAP = 8, 64
# Points of the grid (64 MB) beyond which the bandwidth is refused as too narrow for the range of the data.
_MOST_GRID = 1 << 23
# Points between two neighbours of the grid on which an extremum is searched, and the accuracy of its location.
_EXTREMUM_POINTS, _EXTREMUM_ACCURACY = 65, 3e-8
# Between narrow kernels the log ratio is so steep that only bisection makes progress, and Brent's method may take many
# steps before it bisects.
_MOST_ROOT_STEPS = 5000


@dataclass(frozen=True)
class Density:
    """``f(t) = Σ_k weights_k N(t; support_k, variance)``, N the density of a normal distribution.

    ``support`` and ``weights`` have shape (n,). The support is sorted, the weights are positive and sum to one.
    """

    support: Floats
    weights: Floats
    variance: float

    def log(self, t: ArrayLike) -> Floats:
        """Return log f(t), of the shape of t. It is finite at any distance from the data."""
        points = np.ascontiguousarray(t, dtype=np.float64)
        out = np.empty(points.shape)
        flat, values = points.ravel(), out.ravel()
        # In units in which the bandwidth is about one its square cannot overflow or underflow. Scaling by a power of
        # two is exact.
        bandwidth = self.bandwidth
        unit = 2.0 ** -math.frexp(bandwidth)[1]
        support = self.support * unit
        for start in range(0, len(flat), _POINTS_PER_CALL):
            part = slice(start, start + _POINTS_PER_CALL)
            kernels.log_density(flat[part] * unit, support, self.weights, bandwidth * unit, values[part])
        return out - 0.5 * math.log(2 * math.pi * self.variance)

    @property
    def bandwidth(self) -> float:
        return math.sqrt(self.variance)


def density_variances(
    rule: float | str, gamma: float, spread: Spread, shrunk: Shrunk, sample: MemoryRows, direction: Floats
) -> tuple[float, float]:
    """Return the kernel variances of both classes along a direction of shape (d,).

    ``rule`` is the parameter ``bandwidth`` of :class:`melc.MELC`, ``spread`` is the spread of all rows along the
    direction, and ``sample`` are some of the rows.
    """
    if rule in ("robust", "silverman"):
        first, second = kernel_variances(spread, shrunk, gamma)
        if rule == "silverman":
            return first, second
        ratios = _robust_ratios(spread, sample, direction)
        return first * ratios[0] ** 2, second * ratios[1] ** 2
    if rule == "pooled":
        variance = 0.5 * sum(shrunk_variances(spread, shrunk))
        pooled = max(variance, VARIANCE_FLOOR * total_variance(spread))
        number = 2 / (1 / spread.weight_x + 1 / spread.weight_y)
        return (silverman_factor(number, gamma) * pooled,) * 2
    return ((gamma * float(rule)) ** 2,) * 2


def _robust_ratios(spread: Spread, sample: MemoryRows, direction: Floats) -> list[float]:
    """Return the ratio of the robust to the ordinary standard deviation of each class, at most one.

    The robust one follows from the distance of two quantiles. Outliers make the ordinary one large, and kernels of that
    width would blur all other rows. If the two quantiles are equal, the ratio is one.
    """
    z, weights, ratios = sample.project(direction), sample.all_weights(), []
    for c, variance in enumerate(shrunk_variances(spread, NO_SHRINKAGE)):
        low, high = _quantiles(z[sample.codes == c], weights[sample.codes == c])
        width = (high - low) / _NORMAL_DISTANCE
        ratio = width / np.sqrt(variance) if variance > 0 and width > 0 else 1.0
        ratios.append(float(np.clip(ratio, _LEAST_RATIO, 1.0)))
    return ratios


def _quantiles(z: Floats, weights: Floats) -> Floats:
    """Return the two quantiles of some points. A point of weight k counts as k points.

    A quantile that falls exactly between two points is their midpoint, so that the quantiles of −z are the negated
    ones of z: the sign of a direction, and which class is the first, must not matter.
    """
    order = np.argsort(z)
    reached = np.cumsum(weights[order])
    wanted = np.array(_QUANTILES) * reached[-1]
    below, above = (np.searchsorted(reached, wanted * (1 + side * _SAME_SHARE)) for side in (-1, 1))
    return np.asarray(0.5 * (z[order][below] + z[order][above]))


def densities_along(
    rows: Rows, v: Floats, summary: ClassSummaries, variances: tuple[float, float]
) -> tuple[Density, Density]:
    """Return the densities of both classes along v, with the given kernel variances.

    The density of a small class is made from all its points. For a large class, the moments of its points in bins and
    its outermost points are used.
    """
    large = [count > _ALWAYS_CONDENSED for count in rows.counts]
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
            max(math.sqrt(variance) / _BINS_PER_BANDWIDTH, (inside[1] - inside[0]) / _MOST_DENSITY_BINS)
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


def estimate_density(points: Floats, weights: Floats, variance: float) -> Density:
    """Return the kernel density of weighted points, both of shape (n,), with a bounded number of support points.

    With up to 2048 distinct points it is exact. With more, the points of each bin, a quarter of a bandwidth wide, are
    replaced by the four nodes of their Gauss quadrature: positive weights that have the same first eight moments. The
    error of the density is about 1e-11 of its height. The outermost points are kept unchanged.
    """
    atoms = atoms_of(points, weights)
    if len(atoms) > _EXACT_SUPPORT:
        return condense(atoms, variance)
    return Density(atoms.points, atoms.weights / atoms.weights.sum(), variance)


def condense(atoms: Atoms, variance: float) -> Density:
    """Return about the same density with fewer support points, the outermost ones unchanged."""
    keep = KEPT_AT_EACH_END
    ends, inner = atoms[:keep] + atoms[-keep:], atoms[keep:-keep]
    low, high = inner.points[0], inner.points[-1]
    width = max(math.sqrt(variance) / _BINS_PER_BANDWIDTH, (high - low) / len(inner))
    n_bins = int((high - low) / width) + 1
    position = (inner.points - low) / width
    bins = np.minimum(position.astype(np.int64), n_bins - 1)
    moments = np.zeros((n_bins, kernels.ORDER))
    kernels.add_point_moments(2 * (position - bins) - 1, bins, inner.weights, moments)
    occupied = np.flatnonzero(moments[:, 0] > 0)
    return density_of_bins(ends, moments[occupied], low + (occupied + 0.5) * width, width / 2, variance)


def density_of_bins(ends: Atoms, moments: Floats, middles: Floats, half: float, variance: float) -> Density:
    """Return the density of the points in ``ends`` and of points in bins, which are given by their moments.

    ``moments`` has shape (n_bins, P), ``middles`` shape (n_bins,); ``half`` is half the width of the bins.
    """
    bins, nodes, weights = gauss_nodes(moments)
    points = np.concatenate([ends.points, middles[bins] + half * nodes])
    atoms = atoms_of(points, np.concatenate([ends.weights, weights]))
    return Density(atoms.points, atoms.weights / atoms.weights.sum(), variance)


def gauss_nodes(moments: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the bin of each node, the nodes in [−1, 1] and their positive weights, all of shape (n_nodes,).

    They have the given moments, of shape (n_bins, 8). By Golub and Welsch, from moments: with the Hankel matrices
    G = (m_{i+j}) = LLᵀ and G₁ = (m_{i+j+1}), the matrix L⁻¹ G₁ L⁻ᵀ is the Jacobi matrix of the points' orthogonal
    polynomials: its eigenvalues are the nodes. A bin with fewer than four distinct points gets fewer nodes.
    """
    found, left = [], np.arange(len(moments))
    for m in range(_NODES_PER_BIN, 1, -1):
        scaled = moments[left] / moments[left, :1]
        index = np.add.outer(np.arange(m), np.arange(m))
        lower, full = _cholesky(scaled[:, index])
        chosen = left[full]
        if len(chosen):
            half = np.linalg.solve(lower[full], scaled[full][:, index + 1])
            nodes, vectors = np.linalg.eigh(np.linalg.solve(lower[full], half.transpose(0, 2, 1)))
            weights = moments[chosen, :1] * vectors[:, 0] ** 2
            found.append((np.repeat(chosen, m), np.clip(nodes, -1, 1).ravel(), weights.ravel()))
        left = left[~full]
    found.append((left, moments[left, 1] / moments[left, 0], moments[left, 0]))
    bins, nodes, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return bins, nodes, weights


def _cholesky(matrices: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the Cholesky factors of a stack of matrices, and which of these are safely positive definite.

    NumPy's function raises an error for the whole stack if one of them is not.
    """
    size = matrices.shape[1]
    lower, positive = np.zeros_like(matrices), np.ones(len(matrices), dtype=bool)
    for j in range(size):
        pivot = matrices[:, j, j] - np.sum(lower[:, j, :j] ** 2, axis=1)
        positive &= pivot > (_RANK_TOLERANCE if j == size - 1 else 0.0)
        root = np.sqrt(np.where(positive, pivot, 1.0))
        below = matrices[:, j:, j] - np.einsum("nik,nk->ni", lower[:, j:, :j], lower[:, j, :j])
        lower[:, j:, j] = below / root[:, None]
    return lower, positive


def find_crossings(ratio: Ratio, grid: Floats, values: Floats) -> tuple[Floats, NDArray[np.int8]]:
    """Return the points where ``ratio`` changes its sign, shape (n,), and the classes of the intervals, shape (n + 1,).

    ``ratio`` is the log ratio of the densities, ``values`` are its values on the grid; an interval has class 1 where it
    is positive and class 0 elsewhere.
    """
    roots = _roots(ratio, grid, values)
    edges = np.concatenate([grid[:1], roots, grid[-1:]])
    codes = (ratio((edges[:-1] + edges[1:]) / 2) > 0).astype(np.int8)
    # A root where the ratio touches zero without crossing has the same class on both sides and is not a threshold.
    changes = np.flatnonzero(np.diff(codes))
    return roots[changes], codes[np.concatenate([[0], changes + 1])]


def search_grid(densities: tuple[Density, Density]) -> Floats:
    """Return the grid, in ascending order, on which sign changes of the log ratio are searched.

    Among the data, its steps are an eighth of the smaller bandwidth. A wide gap between data points has 64 steps,
    because both log densities are close to parabolas there. The grid ends at the outermost data points.
    """
    step = min(d.bandwidth for d in densities) / _GRID_PER_BANDWIDTH
    support = np.unique(np.concatenate([d.support for d in densities]))
    anchors = thinned(support, step)
    gaps = np.diff(anchors)
    counts = np.clip(np.ceil(gaps / step), 1, _MOST_STEPS_IN_A_GAP).astype(np.int64)
    if counts.sum() > _MOST_GRID:
        raise ValueError(
            f"With a bandwidth of {step * _GRID_PER_BANDWIDTH:.3g} and projections from {support[0]:.4g} to "
            f"{support[-1]:.4g}, the search for thresholds needs a grid of {counts.sum()} points, and the model "
            f"{len(support)} support points. Raise gamma."
        )
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)  # of a point within its gap
    inside = np.repeat(anchors[:-1], counts) + places * np.repeat(gaps / counts, counts)
    return np.unique(np.append(inside, support[-1]))


def thinned(points: Floats, step: float) -> Floats:
    """Return the first of sorted points, every further one at least ``step`` above the last one taken, and the last."""
    every, taken, i = points.tolist(), [], 0
    while i < len(every):
        taken.append(every[i])
        i = bisect.bisect_left(every, every[i] + step, i + 1)
    return np.array([*taken, every[-1]])


def _roots(ratio: Ratio, grid: Floats, values: Floats) -> Floats:
    """Return the roots of ``ratio``, ascending: those at sign changes on the grid, and pairs between its points."""
    brackets = [(grid[i], grid[i + 1]) for i in np.flatnonzero(values[:-1] * values[1:] < 0)]
    for i in _possible_double_roots(values):
        brackets += _split_at_extremum(ratio, grid[i - 1], grid[i + 1], np.sign(values[i]))
    roots = [_root(ratio, a, b) for a, b in brackets]
    return np.unique(np.concatenate([roots, grid[values == 0]]))


def _possible_double_roots(values: Floats) -> NDArray[np.int64]:
    """Return the indices of grid points near which the ratio may cross zero twice without a sign change on the grid.

    These are local minima of its absolute value that are low enough compared with their neighbours.
    """
    left, middle, right = values[:-2], values[1:-1], values[2:]
    same_sign = (left * middle > 0) & (middle * right > 0)
    turns = (np.abs(middle) <= np.abs(left)) & (np.abs(middle) <= np.abs(right))
    # A parabola through three points falls below the middle one by no more than the larger difference to a neighbour.
    reachable = np.abs(middle) <= np.maximum(np.abs(left), np.abs(right)) - np.abs(middle)
    return np.flatnonzero(same_sign & turns & reachable) + 1


def _split_at_extremum(ratio: Ratio, a: float, b: float, sign: float) -> list[tuple[float, float]]:
    """Return two brackets of roots, [a, t] and [t, b] with t the extremum, or none if the sign does not change at t."""
    fine = np.linspace(a, b, _EXTREMUM_POINTS)
    lowest = int(np.clip(np.argmin(sign * ratio(fine)), 1, len(fine) - 2))
    # The ratio may cross zero within far less than a step, so its minimum is computed; as a fraction of two steps,
    # because the squares of distances such as 1e155 would overflow.
    start, width = fine[lowest - 1], fine[lowest + 1] - fine[lowest - 1]
    found = minimize_scalar(
        lambda share: sign * float(ratio(np.array([start + share * width]))[0]),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": _EXTREMUM_ACCURACY},
    )
    middle = start + found.x * width
    return [(a, middle), (middle, b)] if found.fun < 0 else []


def _root(ratio: Ratio, a: float, b: float) -> float:
    # xtol is near rounding, so that thresholds are exact to 1e-10 of the range of the data, whatever the range is.
    tolerance = 4 * np.finfo(float).eps * max(abs(a), abs(b), abs(b - a)) + 1e-300
    return float(
        brentq(lambda t: float(ratio(np.array([t]))[0]), a, b, xtol=tolerance, rtol=8.9e-16, maxiter=_MOST_ROOT_STEPS)
    )
