"""The kernel density of a class along a direction, in a bounded number of support points."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from melc import kernels
from melc.arrays import Floats
from melc.data.summary import KEPT_AT_EACH_END, Atoms, joined

# A class of up to this many distinct projections keeps them all; a larger one is condensed.
_EXACT_SUPPORT = 2048
# A class of more points than this is not searched for equal ones before it is condensed.
SURELY_MANY = 1 << 16
# Bins per kernel width when condensing, and the quadrature nodes that stand for the points of a bin.
BINS_PER_BANDWIDTH = 4
_NODES_PER_BIN = kernels.ORDER // 2
# A quadrature of fewer nodes is taken where the points of a bin are this close to having no more.
_RANK_TOLERANCE = 1e-9

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
        for part in stretches(len(flat)):
            kernels.log_density(flat[part] * unit, support, self.weights, bandwidth, values[part])
        return out - 0.5 * math.log(2 * math.pi * self.variance)

    @property
    def bandwidth(self) -> float:
        return math.sqrt(self.variance)


def stretches(n: int) -> list[slice]:
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
    moments = np.zeros((n_bins, kernels.ORDER))
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
    for m in range(_NODES_PER_BIN, 1, -1):
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
