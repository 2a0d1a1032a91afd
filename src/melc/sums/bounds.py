"""Error bounds of the approximations, one small function for each theorem.

Notation: V is the variance of the Gaussian in the double sum (the sum of two kernel variances), and
ε an absolute error on ``ip = Σ_ij exp(−(x_i − y_j)²/2V) / (√(2πV) n m)``.

The divergence does not depend on the scale of the data, but the thresholds of the paper's theorems do: if the data are
multiplied by 100, the same ε is a different accuracy. :func:`scale_free` converts an ε relative to the largest possible
ip, 1/√(2πV), into the absolute ε of the theorems.

Examples
--------
>>> from melc import bounds
>>> round(bounds.bin_width(1.0, bounds.scale_free(1.0, 0.05)), 4)
0.3203
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

from melc import kernels

__all__ = [
    "bin_width",
    "discarding_threshold",
    "farther",
    "lebesgue_constant",
    "mean_bin_error",
    "moment_bin_error",
    "moment_bin_width",
    "rim_bin_width",
    "scale_free",
    "sharp_bin_width",
]


def discarding_threshold(variance: float, eps: float, p: float = 1.0) -> float:
    """Return the distance T of Theorem 1: dropping all pairs farther apart than T changes ip by at most ``eps``.

    Statement: let ``T = √max(0, −V ln(2 (ε/p)² π V))``, where p is an upper bound on the fraction of pairs *dropped*.
    Dropping the pairs farther apart than T changes ip by at most ε. Proof: a dropped pair contributes at most
    exp(−T²/2V)/(√(2πV) n m), there are at most p n m of them, and p exp(−T²/2V)/√(2πV) ≤ ε by the choice of T.

    p = 1 is always safe. Two remarks on the paper: its statement defines p as the fraction of points *closer* than T,
    but its proof uses the fraction dropped, which is correct. Its first formula has n m under the root; its proofs have
    it outside.

    Examples
    --------
    >>> from melc import bounds
    >>> round(bounds.discarding_threshold(0.1, eps=0.05), 4)
    0.8035
    >>> bounds.discarding_threshold(100.0, eps=0.5)  # this ε exceeds the largest possible ip: all pairs may be dropped
    0.0
    """
    _check(variance, eps)
    if not 0 < p <= 1:
        raise ValueError(f"p={p!r} is the fraction of pairs dropped: it must lie in (0, 1]; use p=1 when unsure.")
    log_ratio = math.log(eps / p) + 0.5 * math.log(2 * math.pi * variance)
    return math.sqrt(max(0.0, -2 * variance * log_ratio))


def bin_width(variance: float, eps: float) -> float:
    """Return the bin width B of Theorem 2: replacing the points of bins by their means changes ip by at most ``eps``.

    Statement: with ``B = √(−2V ln max(0, 1 − ε√(2πV)))``, the ip of the bin means differs from ip by at most ε. B is
    infinite if ε is at least the largest possible ip, 1/√(2πV).

    In the paper the statement is correct, but the proof is not. The proof bounds the change of a single pair that is
    shifted by B by 1 − exp(−B²/2V), but such a pair can change by 0.6·B/√V, which is of first order and larger. The
    statement holds because bins are replaced by their *means*, so that first-order terms cancel. :func:`mean_bin_error`
    is a correct bound, and it is below the paper's as long as B²/2V ≤ 1.59. (For larger B, ε exceeds 0.79/√(2πV), while
    ip itself is at most 1/√(2πV).) With bin centres instead of means the statement would be false.

    Examples
    --------
    >>> from melc import bounds
    >>> round(bounds.bin_width(0.1, eps=0.05), 4)
    0.0899
    >>> bounds.bin_width(100.0, eps=0.5)
    inf
    """
    _check(variance, eps)
    fraction = eps * math.sqrt(2 * math.pi * variance)
    if fraction >= 1:
        return math.inf
    # Two roots, because the product under a single root could underflow.
    return math.sqrt(2 * variance) * math.sqrt(-math.log1p(-fraction))


def mean_bin_error(variance: float, width: float) -> float:
    """Return an upper bound on the error of ip if the points of bins of width B are replaced by their means.

    Statement: the error is at most ``B²/(4V) / √(2πV)``. Proof: let g(t) = exp(−t²/2V) and let the means of two bins be
    t apart; two of their points are then t + δ apart, with δ = δ_x − δ_y. Then g(t + δ) = g(t) + δ g'(t) + ½ δ² g''(ξ).
    Averaged over the two bins the middle term vanishes, because δ_x and δ_y both have mean zero. The last term is at
    most ``½ (var δ_x + var δ_y) max|g''| ≤ ½ (B²/4 + B²/4)/V``, since a variable within an interval of length B has
    variance at most B²/4, and ``|g''| ≤ 1/V``.

    Examples
    --------
    >>> from melc import bounds
    >>> width = bounds.sharp_bin_width(0.1, eps=0.05)
    >>> round(bounds.mean_bin_error(0.1, width), 12)
    0.05
    """
    _check(variance, width, "width")
    return width**2 / (4 * variance) / math.sqrt(2 * math.pi * variance)


def sharp_bin_width(variance: float, eps: float) -> float:
    """Return the bin width for which :func:`mean_bin_error` is ``eps``: up to √2 times the width of Theorem 2.

    ``B = 2 √(V ε √(2πV))``

    Examples
    --------
    >>> from melc import bounds
    >>> round(bounds.sharp_bin_width(0.1, 1e-3) / bounds.bin_width(0.1, 1e-3), 3)
    1.414
    """
    _check(variance, eps)
    return 2 * math.sqrt(variance * eps * math.sqrt(2 * math.pi * variance))


def scale_free(variance: float, eps: float) -> float:
    """Return the absolute error ``ε/√(2πV)`` of an error ε relative to the largest possible ip.

    ``discarding_threshold(V, scale_free(V, eps))`` is ``√(−2V ln ε)`` and ``bin_width(V, scale_free(V, eps))`` is
    ``√(−2V ln(1 − ε))``. Both are proportional to the scale of the data.

    Examples
    --------
    >>> from melc import bounds
    >>> small = bounds.bin_width(1.0, bounds.scale_free(1.0, 0.01))
    >>> large = bounds.bin_width(10_000.0, bounds.scale_free(10_000.0, 0.01))
    >>> round(large / small, 6)
    100.0
    """
    _check(variance, eps)
    return eps / math.sqrt(2 * math.pi * variance)


@functools.lru_cache
def lebesgue_constant(order: int) -> float:
    """Return the Lebesgue constant of P = ``order`` Chebyshev nodes, the norm of interpolation at these nodes.

    ``Λ_P = (1/P) Σ_k cot((2k − 1)π/4P)``, attained at the ends of the interval.

    Examples
    --------
    >>> from melc import bounds
    >>> [round(bounds.lebesgue_constant(order), 2) for order in (4, 6, 8)]
    [1.85, 2.1, 2.29]
    """
    angles = (2 * np.arange(1, order + 1) - 1) * math.pi / (4 * order)
    return float(np.sum(1 / np.tan(angles)) / order)


def moment_bin_error(order: int, width: float, variance: float, least: int = 0, n: int = 1) -> NDArray[np.float64]:
    """Return error bounds for one pair of points in moment bins ``least``, ``least + 1``, … apart, shape (n,).

    Statement: let g(t) = exp(−t²/2V), s = √V, and let ĝ interpolate g(x − y) at the P Chebyshev nodes of the bin of x
    and of the bin of y. Both bins have width H; their points are at least d and at most d' apart. Then ::

        |g − ĝ| ≤ (1 + Λ_P) · 2 (H/4s)^P / P! · min( √P! e^(−d²/4V), He⁺_P(d'/s) e^(−d²/2V) )

    with Λ_P the Lebesgue constant and He⁺_P the Hermite polynomial with all coefficients made positive.

    Proof: interpolation of a smooth function at the P Chebyshev nodes of an interval of length H has an error of at
    most 2 (H/4)^P/P! times the largest P-th derivative there. If g is interpolated in x and then in y, the second error
    is multiplied by the norm Λ_P of the first interpolation, which gives the factor 1 + Λ_P. The derivative is
    g^(P)(t) = ± s^−P He_P(t/s) e^(−t²/2V). Cramér's inequality, ``|He_P(x)| e^(−x²/4) ≤ √P!``, leaves the
    factor e^(−d²/4V) and gives the first bound. The second follows from ``|He_P(x)| ≤ He⁺_P(|x|)``, which grows with
    the absolute value of x. It is weaker near zero, but far away it is of the order of g itself, which keeps the
    *relative* error small for classes that are far apart.

    All ``n`` bounds are multiplied by exp(d²/2V), with the d of the first one. The sums over pairs have the same factor
    taken out, so that they do not underflow.

    Examples
    --------
    >>> from melc import bounds
    >>> f"{bounds.moment_bin_error(8, 0.5, 1.0)[0]:.1e}"
    '2.0e-09'
    """
    errors = np.empty(n)
    nodes, no_blocks = np.zeros((order, order)), np.empty((0, order, order))
    kernels.couple_nodes(least, nodes, *moment_bin_constants(order), width, variance, no_blocks, no_blocks, errors)
    return errors


def moment_bin_constants(order: int) -> tuple[NDArray[np.float64], float, float]:
    """Return the coefficients of He⁺_P, shape (P + 1,) with the constant first, 2 (1 + Λ_P) and log P!."""
    return positive_hermite(order), 2 * (1 + lebesgue_constant(order)), math.lgamma(order + 1)


def moment_bin_width(order: int, variance: float, eps: float) -> float:
    """Return a bin width H for which the relative error of the sum is expected to be below ``eps``.

    ``H = 4 √V (ε √P! / (8 (1 + Λ_P)))^(1/P)``

    This is a rule of thumb, not a theorem: it assumes that the bounds of all pairs add up to at most four times the sum
    itself, which holds with a margin if neighbouring points are within a bandwidth. The error that is certified for
    the sum afterwards decides whether the bins are narrow enough.

    Examples
    --------
    >>> from melc import bounds
    >>> round(bounds.moment_bin_width(8, 1.0, 2.5e-7), 2)
    0.77
    """
    _check(variance, eps)
    constant = 2 * (1 + lebesgue_constant(order)) / math.sqrt(math.factorial(order))
    return 4 * math.sqrt(variance) * (eps / 4 / constant) ** (1 / order)


def rim_bin_width(order: int, variance: float, reach: float, eps: float) -> float:
    """Return a bin width for which the relative error of each pair of points up to ``reach`` apart is below ``eps``.

    Statement: let s = √V, ρ = reach/s and H = θV/reach, where θ^P e^(2θ) = ε P! (4ρ)^P / (2 (1 + Λ_P) He⁺_P(ρ)).
    Interpolation in two bins of width H, all of whose points are at most reach apart, changes the value of a pair by at
    most the fraction ε. Proof: let d be the least distance of points in the two bins and d' ≤ reach the largest, so
    d' − d ≤ 2H. The pair is at least e^(−d'²/2V), its error by :func:`moment_bin_error` is at most
    2 (1 + Λ_P) (H/4s)^P/P! He⁺_P(ρ) e^(−d²/2V), and (d'² − d²)/2V ≤ 2H d'/V ≤ 2θ.

    The wider the gap, the narrower the bins. But only points within V·log(…)/reach of the gap matter, so the number of
    bins stays the same.

    Examples
    --------
    >>> from melc import bounds
    >>> [round(reach * bounds.rim_bin_width(8, 1.0, reach, 1e-7), 3) for reach in (10, 1000, 100_000)]
    [1.151, 1.181, 1.181]
    """
    _check(variance, eps)
    rho = reach / math.sqrt(variance)
    hermite = float(np.polynomial.polynomial.polyval(rho, positive_hermite(order)))
    log_right = math.log(eps / (2 * (1 + lebesgue_constant(order)) * hermite)) + math.lgamma(order + 1)
    root = 4 * rho * math.exp(log_right / order)
    theta = order / 2 * float(lambertw(2 / order * root).real)
    return theta * variance / reach


def farther(distance: float, variance: float, exponents: float) -> float:
    """Return how much farther apart than ``distance`` two points are when their Gaussian is e^exponents times smaller.

    ``√(distance² + 2V·exponents) − distance``, computed without the cancellation that large distances would cause.

    Examples
    --------
    >>> from melc import bounds
    >>> round(bounds.farther(3.0, 1.0, 8.0), 6)
    2.0
    """
    more = 2 * variance * exponents
    return more / (distance + math.sqrt(distance**2 + more))


@functools.lru_cache
def positive_hermite(order: int) -> NDArray[np.float64]:
    """Return the absolute coefficients of the Hermite polynomial He_P, shape (P + 1,), the constant first."""
    return np.abs(np.polynomial.hermite_e.herme2poly([0] * order + [1]))


def _check(variance: float, value: float, name: str = "eps") -> None:
    if not (variance > 0 and math.isfinite(variance)):
        raise ValueError(f"variance={variance!r} must be a positive finite number.")
    if not value > 0:
        raise ValueError(f"{name}={value!r} must be positive.")
