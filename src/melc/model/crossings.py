"""Every point of a line at which two kernel densities cross, inside the data and outside."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from melc.arrays import Floats
from melc.model.density import Density

Ratio = Callable[[ArrayLike], Floats]

_GRID_PER_BANDWIDTH = 8
_MOST_STEPS_IN_A_GAP = 64
_MOST_GRID = 1 << 24
# Between spikes the ratio is so steep that few steps do better than halving, which Brent's rule may put off for long.
_MOST_ROOT_STEPS = 5000
_TAIL_STEPS, _TAIL_GROWTH = 600, 1.05


def find_crossings(densities: tuple[Density, Density], ratio: Ratio) -> tuple[Floats, NDArray[np.int8]]:
    """Return the points where the sign of ``ratio`` changes, and the class (0 or 1) of the intervals between them."""
    grid = _search_grid(densities)
    roots = _roots(ratio, grid)
    edges = np.concatenate([grid[:1], roots, grid[-1:]])
    codes = (ratio((edges[:-1] + edges[1:]) / 2) > 0).astype(np.int8)
    # A touch that does not cross leaves the same class on both sides: no threshold.
    changes = np.flatnonzero(np.diff(codes))
    return roots[changes], codes[np.concatenate([[0], changes + 1])]


def _search_grid(densities: tuple[Density, Density]) -> Floats:
    """Points close enough together that between two of them the log ratio does nothing unseen.

    An eighth of the smaller bandwidth where the data are; in gaps between them, where both logarithms are
    close to parabolas, up to 64 steps; outside, steps that grow by a twentieth until 10¹² bandwidths away.
    """
    step = min(d.bandwidth for d in densities) / _GRID_PER_BANDWIDTH
    support = np.unique(np.concatenate([d.support for d in densities]))
    kept = [support[0]]
    for point in support[1:]:
        if point - kept[-1] >= step:
            kept.append(point)
    kept.append(support[-1])
    anchors = np.array(kept)
    counts = np.clip(np.ceil(np.diff(anchors) / step), 1, _MOST_STEPS_IN_A_GAP).astype(int)
    if counts.sum() > _MOST_GRID:
        raise ValueError(
            f"Kernels {step * _GRID_PER_BANDWIDTH:.3g} wide on data from {support[0]:.4g} to {support[-1]:.4g} would "
            f"take {counts.sum()} points to find the thresholds, and a model of {len(support)}. Raise gamma."
        )
    inside = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(anchors, anchors[1:], counts, strict=False)]
    tail = step * np.cumsum(_TAIL_GROWTH ** np.arange(_TAIL_STEPS))
    return np.unique(np.concatenate([support[0] - tail, *inside, [support[-1]], support[-1] + tail]))


def _roots(ratio: Ratio, grid: Floats) -> Floats:
    """Every root of ``ratio``: sign changes on the grid, and pairs of crossings hidden between its points."""
    values = ratio(grid)
    brackets = [(grid[i], grid[i + 1]) for i in np.flatnonzero(values[:-1] * values[1:] < 0)]
    for i in _suspects(values):
        brackets += _split_at_extremum(ratio, grid[i - 1], grid[i + 1], np.sign(values[i]))
    roots = [_root(ratio, a, b) for a, b in brackets]
    return np.unique(np.concatenate([roots, grid[values == 0]]))


def _suspects(values: Floats) -> NDArray[np.int64]:
    """Grid points where the ratio turns back before it reaches zero: it may have crossed in between."""
    left, middle, right = values[:-2], values[1:-1], values[2:]
    same_sign = (left * middle > 0) & (middle * right > 0)
    turns = (np.abs(middle) <= np.abs(left)) & (np.abs(middle) <= np.abs(right))
    # A parabola through three points drops below the middle one by at most the larger step next to it.
    reachable = np.abs(middle) <= np.maximum(np.abs(left), np.abs(right)) - np.abs(middle)
    return np.flatnonzero(same_sign & turns & reachable) + 1


def _split_at_extremum(ratio: Ratio, a: float, b: float, sign: float) -> list[tuple[float, float]]:
    """Two brackets around the point closest to zero, if the ratio changes its sign there."""
    fine = np.linspace(a, b, 65)
    lowest = int(np.clip(np.argmin(sign * ratio(fine)), 1, len(fine) - 2))
    # The dip may be far narrower than these steps: its lowest point decides.
    found = minimize_scalar(
        lambda t: sign * float(ratio(np.array([t]))[0]),
        bounds=(fine[lowest - 1], fine[lowest + 1]),
        method="bounded",
        options={"xatol": 1e-9 * (b - a)},
    )
    return [(a, found.x), (found.x, b)] if found.fun < 0 else []


def _root(ratio: Ratio, a: float, b: float) -> float:
    # xtol near rounding: thresholds are wanted to 1e-10 of the data's range, whatever the range is.
    tolerance = 4 * np.finfo(float).eps * max(abs(a), abs(b), abs(b - a)) + 1e-300
    return float(
        brentq(lambda t: float(ratio(np.array([t]))[0]), a, b, xtol=tolerance, rtol=8.9e-16, maxiter=_MOST_ROOT_STEPS)
    )
