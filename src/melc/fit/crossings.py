"""The points at which two kernel densities cross, among the data."""

import bisect
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from melc.arrays import Floats
from melc.fit.density import Density

Ratio = Callable[[ArrayLike], Floats]

# Steps of the grid in a bandwidth, and the most steps between two neighbouring points.
_GRID_PER_BANDWIDTH, _MOST_STEPS_IN_A_GAP = 8, 64
# Points of the grid (64 MB) beyond which the bandwidth is refused as too narrow for the range of the data.
_MOST_GRID = 1 << 23
# Points between two neighbours of the grid among which an extremum is searched, and the accuracy of its place.
_EXTREMUM_POINTS, _EXTREMUM_ACCURACY = 65, 3e-8
# Between narrow kernels the log ratio is so steep that only bisection makes progress, and Brent's method may take many
# steps before it bisects.
_MOST_ROOT_STEPS = 5000


def find_crossings(ratio: Ratio, grid: Floats, values: Floats) -> tuple[Floats, NDArray[np.int8]]:
    """Return the points where ``ratio`` changes its sign, shape (n,), and the classes of the intervals, shape (n + 1,).

    ``ratio`` is the log ratio of the densities, ``values`` are its values on the grid; an interval has class 1 where it
    is positive and class 0 elsewhere.
    """
    roots = _roots(ratio, grid, values)
    edges = np.concatenate([grid[:1], roots, grid[-1:]])
    codes = (ratio((edges[:-1] + edges[1:]) / 2) > 0).astype(np.int8)
    # A root where the ratio touches zero without crossing has the same class on both sides and is no threshold.
    changes = np.flatnonzero(np.diff(codes))
    return roots[changes], codes[np.concatenate([[0], changes + 1])]


def search_grid(densities: tuple[Density, Density]) -> Floats:
    """Return the grid, in ascending order, on which sign changes of the log ratio are searched.

    Among the data, its steps are an eighth of the smaller bandwidth. A wide gap between data points has 64 steps,
    because both log densities are close to parabolas there. It ends at the outermost data points.
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
    """Return the first of sorted points, then each that is ``step`` or more above the last one taken; and the last."""
    every, taken, i = points.tolist(), [], 0
    while i < len(every):
        taken.append(every[i])
        i = bisect.bisect_left(every, every[i] + step, i + 1)
    return np.array([*taken, every[-1]])


def _roots(ratio: Ratio, grid: Floats, values: Floats) -> Floats:
    """Return the roots of ``ratio``, ascending: those at sign changes on the grid, and pairs between its points."""
    brackets = [(grid[i], grid[i + 1]) for i in np.flatnonzero(values[:-1] * values[1:] < 0)]
    for i in _suspects(values):
        brackets += _split_at_extremum(ratio, grid[i - 1], grid[i + 1], np.sign(values[i]))
    roots = [_root(ratio, a, b) for a, b in brackets]
    return np.unique(np.concatenate([roots, grid[values == 0]]))


def _suspects(values: Floats) -> NDArray[np.int64]:
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
    """Return two brackets of roots, [a, t] and [t, b] with t the extremum, if the ratio changes its sign there."""
    fine = np.linspace(a, b, _EXTREMUM_POINTS)
    lowest = int(np.clip(np.argmin(sign * ratio(fine)), 1, len(fine) - 2))
    # The part beyond zero may be far narrower than these steps, so the minimum itself is computed; its place as a share
    # of two steps, for the squares of distances such as 1e155 overflow.
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
