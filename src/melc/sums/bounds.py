"""The theorems behind the approximations, each as a small function.

Notation: V is the variance of the Gaussian in the double sum (the sum of two kernel variances), and
ε an absolute error on ``ip = Σ_ij exp(−(x_i − y_j)²/2V) / (√(2πV) n m)``.

Neither threshold is free of scale although the divergence is: multiply the data by 100 and the same ε
means something else. :func:`scale_free` turns an ε relative to the largest value that ip can take,
1/√(2πV), into the absolute one that the theorems ask for.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

from melc import kernels


def discarding_threshold(variance: float, eps: float, p: float = 1.0) -> float:
    """Theorem 1: the distance T beyond which pairs may be dropped for an error of at most ``eps``.

    Statement: with ``T = √max(0, −V ln(2 (ε/p)² π V))``, dropping pairs farther apart than T changes ip by
    at most ε, where p bounds the fraction of pairs *dropped*. Proof: a dropped pair contributes at most
    exp(−T²/2V)/(√(2πV) n m), there are at most p n m of them, and T makes p exp(−T²/2V)/√(2πV) = ε.

    In the paper: the statement calls p the fraction of points located *closer* than T; its own proof
    has the dropped ones, and that is right. p = 1 is always safe. The first display of the paper also
    puts n m under the root; the proofs have it outside.

    Examples
    --------
    >>> from melc import bounds
    >>> round(bounds.discarding_threshold(0.1, eps=0.05), 4)
    0.8035
    >>> bounds.discarding_threshold(100.0, eps=0.5)  # this ε is larger than ip can be: drop everything
    0.0
    """
    _check(variance, eps)
    if not 0 < p <= 1:
        raise ValueError(f"p={p!r} is the fraction of pairs dropped: it must lie in (0, 1]; use p=1 when unsure.")
    log_ratio = math.log(eps / p) + 0.5 * math.log(2 * math.pi * variance)
    return math.sqrt(max(0.0, -2 * variance * log_ratio))


def bin_width(variance: float, eps: float) -> float:
    """Theorem 2: bins up to this width, replaced by their means, keep the error within ``eps``.

    Statement: with ``B = √(−2V ln max(0, 1 − ε√(2πV)))`` the binned ip differs from ip by at most ε.

    In the paper: the statement holds, the proof does not. It bounds the change of a single pair that is
    shifted by B by 1 − exp(−B²/2V), but such a pair can change by 0.6·B/√V, which is of first order and
    larger. What saves the statement is that bins are replaced by their *means*, so that first-order terms
    cancel: :func:`mean_bin_error` is a correct bound and lies below the paper's while B²/2V ≤ 1.59. (Beyond
    that ε exceeds 0.79/√(2πV), and the sum itself is at most 1/√(2πV).) With the centres of the bins in
    place of the means the statement would be false.

    Infinite where ``eps`` is no smaller than the largest possible ip: one bin is then good enough.

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
    # Two roots: their product would underflow under one.
    return math.sqrt(2 * variance) * math.sqrt(-math.log1p(-fraction))


def mean_bin_error(variance: float, width: float) -> float:
    """Largest error of ip when the points of bins up to ``width`` wide are replaced by their means.

    ``B²/(4V) / √(2πV)``. Proof: write g(t) = exp(−t²/2V) and let a pair of bins have means at distance t;
    a pair of their points lies at t + δ with δ = δ_x − δ_y. Then g(t + δ) = g(t) + δ g'(t) + ½ δ² g''(ξ).
    Averaged over the two bins the middle term vanishes, because both δ_x and δ_y have mean zero, and
    the last is at most ½ (var δ_x + var δ_y) max|g''| ≤ ½ (B²/4 + B²/4)/V, since a variable within an
    interval of length B has variance at most B²/4 and |g''| ≤ 1/V.

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
    """The widest bins that :func:`mean_bin_error` allows: up to √2 wider than Theorem 2's.

    Examples
    --------
    >>> from melc import bounds
    >>> round(bounds.sharp_bin_width(0.1, 1e-3) / bounds.bin_width(0.1, 1e-3), 3)
    1.414
    """
    _check(variance, eps)
    return 2 * math.sqrt(variance * eps * math.sqrt(2 * math.pi * variance))


def scale_free(variance: float, eps: float) -> float:
    """An error relative to the largest possible ip, 1/√(2πV), as the absolute error of the theorems.

    ``discarding_threshold(V, scale_free(V, eps))`` is then ``√(−2V ln ε)`` and
    ``bin_width(V, scale_free(V, eps))`` is ``√(−2V ln(1 − ε))``: both proportional to the data's scale.

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
    """Norm of interpolation at ``order`` Chebyshev nodes: (1/P) Σ_k cot((2k − 1)π/4P), attained at the ends.

    Examples
    --------
    >>> from melc import bounds
    >>> [round(bounds.lebesgue_constant(order), 2) for order in (4, 6, 8)]
    [1.85, 2.1, 2.29]
    """
    angles = (2 * np.arange(1, order + 1) - 1) * math.pi / (4 * order)
    return float(np.sum(1 / np.tan(angles)) / order)


def moment_bin_error(order: int, width: float, variance: float, least: int = 0, n: int = 1) -> NDArray[np.float64]:
    """Largest error of one pair whose points are interpolated in moment bins ``least``, ``least + 1``, … apart.

    Statement: let g(t) = exp(−t²/2V), s = √V, and let ĝ interpolate g(x − y) at the P Chebyshev nodes of the bin
    of x and of the bin of y, bins of width H, whose distance is at least d and at most d'. Then

        |g − ĝ| ≤ (1 + Λ_P) · 2 (H/4s)^P / P! · min( √P! e^(−d²/4V), He⁺_P(d'/s) e^(−d²/2V) )

    with Λ_P the Lebesgue constant and He⁺_P the Hermite polynomial with all signs made positive.

    Proof: interpolation of a smooth function at the P Chebyshev nodes of an interval of length H is off by at most
    2 (H/4)^P/P! times the largest P-th derivative there. Interpolating in x, then in y, the second error is
    seen through the first interpolation, whose norm is Λ_P: together (1 + Λ_P) times that. The derivative is
    g^(P)(t) = ± s^−P He_P(t/s) e^(−t²/2V). Cramér's inequality bounds |He_P(x)| e^(−x²/4) by √P!, which leaves
    e^(−d²/4V); and |He_P(x)| ≤ He⁺_P(|x|), which grows with |x|, gives the other bound: weaker near zero,
    but of the order of g itself far away, which is what keeps a *relative* error for classes that are apart.

    Returns the bounds of ``n`` offsets, multiplied by exp(d²/2V) with the d of the first: from sums over classes that
    are apart this common exponent has been taken out.

    Examples
    --------
    >>> from melc import bounds
    >>> f"{bounds.moment_bin_error(8, 0.5, 1.0)[0]:.1e}"
    '2.0e-09'
    """
    errors = np.empty(n)
    kernels.pair_errors(least, *moment_bin_constants(order), width, math.sqrt(variance), errors)
    return errors


def moment_bin_constants(order: int) -> tuple[NDArray[np.float64], float, float]:
    """He⁺_P as coefficients from the constant up, 2 (1 + Λ_P) and log P!, for :func:`moment_bin_error`."""
    return positive_hermite(order), 2 * (1 + lebesgue_constant(order)), math.lgamma(order + 1)


def moment_bin_width(order: int, variance: float, eps: float) -> float:
    """A bin width for which moment bins of this order should keep the relative error of the sum below ``eps``.

    Should: the bound of a pair is compared with the sum by a rule of thumb (the sum of the bounds' tails is at
    most four times the sum itself, which holds with room to spare where neighbours lie within a bandwidth). The
    certificate of the sum at hand decides.

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
    """The widest moment bins that keep the relative error of every pair below ``eps``, points up to ``reach`` apart.

    Statement: with ρ = reach/s and H = θV/reach, where θ^P e^(2θ) = ε P! (4ρ)^P / (2 (1 + Λ_P) He⁺_P(ρ)), interpolation
    in two bins of width H, all of whose points are at most reach apart, changes a pair by no more than ε of its
    value. Proof: let d be the least distance of points in the two bins and d' ≤ reach the largest, so d' − d ≤ 2H. The
    pair is at least e^(−d'²/2V), its error by :func:`moment_bin_error` at most
    2 (1 + Λ_P) (H/4s)^P/P! He⁺_P(ρ) e^(−d²/2V), and (d'² − d²)/2V ≤ 2H d'/V ≤ 2θ.

    The wider the gap, the narrower the bins; but only points within V·log(…)/reach of it matter, so their number
    stays the same.

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
    """How much farther than ``distance`` a pair must be apart for its Gaussian to be e^exponents times smaller.

    Not by a difference of two roots, which for large distances would be nothing but rounding.

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
    """Coefficients of the Hermite polynomial He_P, all signs made positive, from the constant up."""
    return np.abs(np.polynomial.hermite_e.herme2poly([0] * order + [1]))


def _check(variance: float, value: float, name: str = "eps") -> None:
    if not (variance > 0 and math.isfinite(variance)):
        raise ValueError(f"variance={variance!r} must be a positive finite number.")
    if not value > 0:
        raise ValueError(f"{name}={value!r} must be positive.")
