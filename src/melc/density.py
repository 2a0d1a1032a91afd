"""The two projected class densities, their log ratio, and the thresholds where they cross."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_expit

from melc import kernels
from melc.arrays import Floats
from melc.summary import KEPT_AT_EACH_END, Atoms, joined

Ratio = Callable[[ArrayLike], Floats]

# A class of up to this many distinct projections keeps them all; a larger one is condensed.
_EXACT_SUPPORT = 2048
# A class of more points than this is not searched for equal ones before it is condensed.
SURELY_MANY = 1 << 16
# Bins per kernel width when condensing, and the quadrature nodes that stand for the points of a bin.
BINS_PER_BANDWIDTH = 4
NODES_PER_BIN = 4
# A quadrature of fewer nodes is taken where the points of a bin are this close to having no more.
_RANK_TOLERANCE = 1e-9

_GRID_PER_BANDWIDTH = 8
_MOST_STEPS_IN_A_GAP = 64
_MOST_GRID = 1 << 24
# Between spikes the ratio is so steep that few steps do better than halving, which Brent's rule may put off for long.
_MOST_ROOT_STEPS = 5000
_TAIL_STEPS, _TAIL_GROWTH = 600, 1.05

# Bandwidths from the data beyond which everything looks alike.
_REACH = 1e150

# Weight of the background under both densities in probabilities.
_BACKGROUND = 1e-12

# What |decision| is at least, so that its sign and the thresholds always tell the same class: enough to show in a
# probability next to one half.
SMALLEST_DECISION = 1e-15


_POINTS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Density:
    """``f(t) = Σ_k weights_k N(t; support_k, variance)``: support sorted, weights positive with sum one."""

    support: Floats
    weights: Floats
    variance: float

    def log(self, t: ArrayLike) -> Floats:
        """log f, finite at any distance from the data."""
        points = np.ascontiguousarray(t, dtype=np.float64)
        out = np.empty(points.shape)
        flat, values = points.ravel(), out.ravel()
        # In units in which the bandwidth is about one: its square is then a number, whatever the scale of the data. A
        # power of two changes no digit.
        unit = 2.0 ** -math.frexp(self.bandwidth)[1]
        support, bandwidth = self.support * unit, self.bandwidth * unit
        for part in _stretches(len(flat)):
            kernels.log_density(flat[part] * unit, support, self.weights, bandwidth, values[part])
        return out - 0.5 * math.log(2 * math.pi * self.variance)

    @property
    def bandwidth(self) -> float:
        return math.sqrt(self.variance)


def _stretches(n: int) -> list[slice]:
    """Points that one compiled call takes; between two of them Python hears of an interrupt."""
    return [slice(start, start + _POINTS_AT_ONCE) for start in range(0, n, _POINTS_AT_ONCE)]


def estimate_density(points: Floats, weights: Floats, variance: float) -> Density:
    """The kernel density of weighted points, held in a bounded number of support points.

    Up to 2048 distinct points it is exact. Beyond that the points of each bin a quarter of a bandwidth wide
    become the four nodes of their own Gauss quadrature: positive weights that share the first eight moments,
    so the density is off by about 1e-11 of its height. The outermost points are kept as they are.
    """
    atoms = joined(points, weights)
    if len(atoms) > _EXACT_SUPPORT:
        return _condense(atoms, variance)
    return Density(atoms.points, atoms.weights / atoms.weights.sum(), variance)


def _condense(atoms: Atoms, variance: float) -> Density:
    """Fewer points with about the same density; the outermost are among them as they are."""
    keep = KEPT_AT_EACH_END
    ends, inner = atoms[:keep] + atoms[-keep:], atoms[keep:-keep]
    low, high = inner.points[0], inner.points[-1]
    width = max(math.sqrt(variance) / BINS_PER_BANDWIDTH, (high - low) / len(inner))
    n_bins = int((high - low) / width) + 1
    position = (inner.points - low) / width
    bins = np.minimum(position.astype(np.int64), n_bins - 1)
    moments = np.zeros((n_bins, 2 * NODES_PER_BIN))
    kernels.add_point_moments(2 * (position - bins) - 1, bins, inner.weights, moments)
    occupied = np.flatnonzero(moments[:, 0] > 0)
    return density_of_bins(ends, moments[occupied], low + (occupied + 0.5) * width, width / 2, variance)


def density_of_bins(ends: Atoms, moments: Floats, middles: Floats, half: float, variance: float) -> Density:
    """The density of points of which some are known and the others are in bins, by their moments around the middles."""
    parts = [_gauss_nodes(each) for each in moments]
    nodes = [middle + half * u for middle, (u, _) in zip(middles, parts, strict=True)]
    weights = [w for _, w in parts]
    atoms = joined(np.concatenate([ends.points, *nodes]), np.concatenate([ends.weights, *weights]))
    return Density(atoms.points, atoms.weights / atoms.weights.sum(), variance)


def _gauss_nodes(moments: Floats) -> tuple[Floats, Floats]:
    """Nodes in [−1, 1] and positive weights with the given moments (Golub and Welsch, from moments).

    With the Hankel matrices G = (m_{i+j}) = LLᵀ and G₁ = (m_{i+j+1}), the matrix L⁻¹ G₁ L⁻ᵀ is the Jacobi
    matrix of the points' orthogonal polynomials: its eigenvalues are the nodes.
    """
    for m in range(NODES_PER_BIN, 1, -1):
        index = np.add.outer(np.arange(m), np.arange(m))
        hankel = moments[index] / moments[0]
        try:
            lower = np.linalg.cholesky(hankel)
        except np.linalg.LinAlgError:
            continue
        if lower[-1, -1] ** 2 < _RANK_TOLERANCE:
            continue
        half = np.linalg.solve(lower, moments[index + 1] / moments[0])
        nodes, vectors = np.linalg.eigh(np.linalg.solve(lower, half.T))
        return np.clip(nodes, -1, 1), moments[0] * vectors[0] ** 2
    return moments[1:2] / moments[0], moments[0:1]


@dataclass(frozen=True)
class Decision:
    """Where along the line which of two densities is higher.

    ``thresholds`` are the points where the decision changes, ``codes`` the class (0 or 1) of the
    ``len(thresholds) + 1`` intervals between them; a point on a threshold belongs to the interval above.
    ``counts``, of shape (n_intervals, 2), tells how many training rows of either class (their weights, if
    weighted) lie in each interval.
    """

    densities: tuple[Density, Density]
    log_prior_ratio: float
    thresholds: Floats
    codes: NDArray[np.int8]
    counts: Floats | None = None

    def interval(self, z: Floats) -> NDArray[np.int64]:
        """The number of the interval that every point lies in."""
        counts = np.empty(len(z), dtype=np.int64)
        for part in _stretches(len(z)):
            kernels.count_not_above(z[part], self.thresholds, counts[part])
        return counts

    def classify(self, z: Floats) -> NDArray[np.int8]:
        """The class of every point."""
        return self.codes[self.interval(z)]

    def log_ratio(self, z: Floats) -> Floats:
        """log f₊ − log f₋ (plus that of the priors), with the sign that the thresholds give."""
        return self._with_sign(log_ratio(self.densities, self.log_prior_ratio, z), SMALLEST_DECISION, z)

    def log_odds(self, z: Floats) -> Floats:
        """Log odds of class 1 against class 0, for somebody who has to bet on them.

        Both densities f get the same faint background b that reaches everywhere:
        ``log(1 + f₁/b) − log(1 + f₀/b)``. It changes next to nothing where the data are, and not the decision
        anywhere, but far outside, where the densities only compare which of two tails is the thicker, it takes the
        odds to one: nothing is known there.

        Their size is at least ``1e-15 (1 + log(1 + |log f₁ − log f₀|))``. Next to nothing as well, but where nothing
        is known along several lines, it still tells for which of them the tails speak most.
        """
        near = np.clip(z, *self.reach)
        background = self.background().log(near)
        first, second = (
            density.log(near) + log_prior - background
            for density, log_prior in zip(self.densities, self.log_priors, strict=True)
        )
        least = SMALLEST_DECISION * (1 + np.log1p(np.abs(second - first)))
        return self._with_sign(np.logaddexp(0, second) - np.logaddexp(0, first), least, z)

    def _with_sign(self, values: Floats, least: Floats | float, z: Floats) -> Floats:
        """Values of at least that size whose sign follows the thresholds to the last digit."""
        sign = 2.0 * self.classify(z) - 1
        return np.asarray(sign * np.maximum(sign * values, least))

    @property
    def log_priors(self) -> tuple[float, float]:
        """Logarithms of how likely the two classes are beforehand."""
        return float(log_expit(-self.log_prior_ratio)), float(log_expit(self.log_prior_ratio))

    @property
    def reach(self) -> tuple[float, float]:
        """Between which points the logarithms of both densities are numbers: beyond, the squares in them overflow."""
        return _reach(self.densities)

    def background(self) -> "Background":
        """A Cauchy density as wide as the data, times its small weight."""
        centres = [float(d.support @ d.weights) for d in self.densities]
        centre = 0.5 * (centres[0] + centres[1])
        squares = [float((d.support - centre) ** 2 @ d.weights) + d.variance for d in self.densities]
        scale = 3 * math.sqrt(0.5 * (squares[0] + squares[1]))
        return Background(centre, scale, math.log(_BACKGROUND / math.pi / scale))


@dataclass(frozen=True)
class Background:
    """What both densities share far outside: ``exp(log_height) / (1 + ((z − centre) / scale)²)``."""

    centre: float
    scale: float
    log_height: float

    def log(self, z: Floats) -> Floats:
        # hypot does not overflow where a square would.
        return np.asarray(self.log_height - 2 * np.log(np.hypot(1, (z - self.centre) / self.scale)))


def log_ratio(densities: tuple[Density, Density], log_prior_ratio: float, t: ArrayLike) -> Floats:
    near = np.clip(np.asarray(t, dtype=np.float64), *_reach(densities))
    return densities[1].log(near) - densities[0].log(near) + log_prior_ratio


def _reach(densities: tuple[Density, Density]) -> tuple[float, float]:
    reach = _REACH * min(density.bandwidth for density in densities)
    lowest, highest = (float(edge([d.support[end] for d in densities])) for edge, end in ((min, 0), (max, -1)))
    return lowest - reach, highest + reach


def decide(densities: tuple[Density, Density], log_prior_ratio: float = 0.0) -> Decision:
    """Find every crossing of the two densities, inside and outside the data."""

    def ratio(t: ArrayLike) -> Floats:
        return log_ratio(densities, log_prior_ratio, t)

    grid = _search_grid(densities)
    roots = _roots(ratio, grid)
    edges = np.concatenate([grid[:1], roots, grid[-1:]])
    codes = (ratio((edges[:-1] + edges[1:]) / 2) > 0).astype(np.int8)
    # A touch that does not cross leaves the same class on both sides: no threshold.
    changes = np.flatnonzero(np.diff(codes))
    return Decision(densities, log_prior_ratio, roots[changes], codes[np.concatenate([[0], changes + 1])])


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
