"""The coordinates of the search: scales and covariance of the features, and starting directions.

They are estimated from one sample of the rows and computed once. How far class covariances are to be shrunk is
estimated here as well.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from melc.arrays import Floats, unit
from melc.data.memory import MemoryRows
from melc.data.sample import samples_of_classes
from melc.data.source import Rows
from melc.fit.validation import MOST_SORTED_NUMBERS, column_order
from melc.objective.base import Shrinkage

# A feature is not used if its deviation is at most this many times the spacing of floats at its mean: often it is
# nothing but rounding, as in sums that are one, and with it all other features would be rounded in sums to its steps.
_LEAST_STEPS = 2.0
# If a mean exceeds this many standard deviations, products with X lose too many digits and the rows are centred.
FAR_FROM_ZERO = 1e4
# Limits of the scales, so that squares of projections neither overflow nor underflow, and of the root of the sum of all
# squares of scaled features.
_LARGEST_SCALE, _LARGEST_ROOT = 1e151, 5e153
# With more features than this, computing the covariance takes longer than the iterations that it saves.
MOST_WHITENED_FEATURES = 200
# In whitening, variances are taken to be at least this fraction of the largest. If the largest is below the second
# number, all variances are rounding errors.
_LEAST_STRETCHED, _NO_SPREAD = 1e-2, 1e-24
# With more features than this, their covariance would take longer than the search: the discriminant uses its diagonal
# only, and the span of the rows is found from the products of up to this many rows, which are decomposed in a second.
_MOST_COVARIANCE_FEATURES, _MOST_DECOMPOSED = 500, 1000
# Ridge on the within-class covariance, relative to its mean diagonal: directions in which a class does not vary at all
# (fewer rows than features) must not dominate the start. _LEAST_SPREAD avoids division by zero if no class varies.
_DISCRIMINANT_RIDGE, _LEAST_SPREAD = 1e-3, 1e-30
# With many features: the ridge, larger because the covariance of a sample is noisier; the dimension of the subspace in
# which the classes differ most; and the rows per feature needed to use the class covariances beside the means.
_WIDE_RIDGE, _SUBSPACE_DIMENSION, _ROWS_PER_FEATURE = 0.1, 24, 4
# Eigenvalues of the correlation matrix below this fraction of the largest belong to directions outside the span of the
# rows.
_NO_VARIANCE = 1e-10
# A sparse matrix with up to this many elements, zeros included, may be converted to a dense one.
_FEW_ENTRIES = 200_000
# Rows of a class from which the intensity of shrinkage is estimated.
_ESTIMATE_ROWS = 2000
# A difference smaller than this, relative to its terms, is a rounding error.
_DIFFERENCE_ROUNDING = 1e-13


class UnitsError(ValueError):
    """Sums of squares of a feature are beyond the range of floats."""

    def __init__(self, feature: int, deviation: float, name: str | None = None) -> None:
        self.feature, self.deviation, self.name = feature, deviation, name
        super().__init__(
            f"Feature {feature if name is None else repr(name)} has a standard deviation of {deviation:.3g}, so that "
            "sums of its squares overflow or underflow. Choose other units for it."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Allow other processes to raise it, as in a parallel search."""
        return UnitsError, (self.feature, self.deviation, self.name)


@dataclass(frozen=True)
class Whitening:
    """Coordinates p in which the classes are about round: u = R p for the scaled features, p = R⁻¹ u."""

    matrix: Floats
    inverse: Floats


class Coordinates:
    """Scales and covariance of the features, estimated from a sample of the rows.

    ``scale``, of shape (d,), are the weighted standard deviations. The coordinates of the optimiser are u = scale · v.
    A feature that is constant in all rows, or nearly nothing but rounding, has an infinite scale and is ignored. If the
    sample is not all rows (``is_all`` is False), a feature that is constant in the sample may still vary. Its scale is
    then its absolute mean, or one if that is zero. ``steps``, of shape (d,), are the standard deviations divided by the
    spacing of numbers at the means, as the rows are stored; infinite for features that are constant in the sample.
    """

    def __init__(self, sample: MemoryRows, is_all: bool = True) -> None:
        self.sample = sample
        self._weights = sample.all_weights()
        self.mean, deviation = mean_and_deviation(sample.X, self._weights)
        size = np.abs(self.mean)
        unknown = np.inf if is_all else np.where(size > 0, size, 1.0)
        rounded = _rounding_steps(self.mean, deviation, np.float64) <= _LEAST_STEPS  # in sums of floats
        self.scale = np.where(deviation == 0, unknown, np.where(rounded, np.inf, deviation))
        self.steps = np.where(deviation == 0, np.inf, _rounding_steps(self.mean, deviation, sample.X.dtype))
        check_scale(self.scale, float(self._weights.sum()))

    def scaled(self, X: Any) -> Floats:
        """Return dense rows around the mean, in units of the scale; shape (n, d)."""
        return np.asarray((X - self.mean) / self.scale)

    @functools.cached_property
    def class_statistics(self) -> list[tuple[Floats, Floats]]:
        """For each class, the features' means minus those of all rows, and their deviations, both of shape (d,)."""
        found = []
        for c in (0, 1):
            members = self.sample.members(c)
            mean, deviation = mean_and_deviation(self.sample.X[members], self._weights[members])
            found.append((mean - self.mean, deviation))
        return found

    @functools.cached_property
    def class_covariances(self) -> tuple[Floats, Floats, Floats]:
        """Covariances of the scaled features in each class, both of shape (d, d), and the difference of means, (d,)."""
        means, covariances = [], []
        for c in (0, 1):
            members = self.sample.members(c)
            share = self._weights[members] / self._weights[members].sum()
            X = self.sample.X[members]
            rows = self.scaled(X.toarray() if sparse.issparse(X) else X)
            means.append(share @ rows)
            rows -= means[-1]
            covariances.append((rows * share[:, None]).T @ rows)
        return covariances[0], covariances[1], means[1] - means[0]

    @functools.cached_property
    def within_covariance(self) -> Floats:
        """Covariance of the scaled features within the classes, the mean of the two; shape (d, d)."""
        first, second, _ = self.class_covariances
        return 0.5 * (first + second)

    @property
    def far_centre(self) -> Floats | None:
        """The mean, shape (d,), if it is so large that products with uncentred rows would lose digits; else None."""
        return self.mean if np.any(np.abs(self.mean) > FAR_FROM_ZERO * self.scale) else None

    @functools.cached_property
    def white(self) -> Whitening:
        """Coordinates in which the covariance within the classes is about the identity."""
        return whitening(self.within_covariance)

    @functools.cached_property
    def ridge_white(self) -> Whitening:
        """White coordinates for many features: from the Cholesky factor, which is cheaper, with a ridge."""
        covariance = self.within_covariance
        ridge = _ridge(np.diagonal(covariance), _WIDE_RIDGE)
        lower = linalg.cholesky(covariance + ridge * np.eye(len(covariance)), lower=True)
        return Whitening(linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).T, lower.T)

    def signal_subspace(self) -> Floats:
        """Return directions in which the classes differ most, in ridge-white coordinates; shape (d, k), orthonormal.

        The first is the difference of the means. The others are the extreme eigenvectors of the difference of the
        covariances, if there are rows enough to tell them from noise.
        """
        first, second, difference = self.class_covariances
        white = self.ridge_white.matrix
        basis = (white.T @ _or_random(difference))[:, None]
        n = min(_SUBSPACE_DIMENSION, len(difference) // 2) // 2
        if self.sample.n_rows > _ROWS_PER_FEATURE * len(difference):
            contrast = white.T @ (second - first) @ white
            _, least = linalg.eigh(contrast, subset_by_index=[0, n - 1])
            _, most = linalg.eigh(contrast, subset_by_index=[len(contrast) - n, len(contrast) - 1])
            basis = np.column_stack([basis, most, least])
        return np.linalg.qr(basis)[0]

    @property
    def finite_scale(self) -> Floats:
        """The scale, shape (d,), with zero for features that are ignored."""
        return np.where(np.isfinite(self.scale), self.scale, 0.0)

    def direction_of(self, u: Floats) -> Floats:
        """Return the direction of length one, in the units of the features, at coordinates u."""
        return unit(u / self.scale)

    def variance_left(self, direction: Floats, variances: tuple[float, float]) -> float:
        """Return ``min_c σ_c² / Σ_j v_j² σ_cj²``, which is small if the features of a class cancel each other along v.

        σ_c² are the class ``variances`` along v, σ_cj² the variances of the features within class c.
        """
        left = []
        for (_, deviation), variance in zip(self.class_statistics, variances, strict=True):
            size = float(np.linalg.norm(direction * deviation))
            left.append(variance / size**2 if size**2 > 0 else 0.0)
        return min(left)

    def starting_directions(self, n: int, rng: np.random.RandomState) -> list[Floats]:
        """Return the directions of :meth:`starts`, each of length one, in the units of the features."""
        return [self.direction_of(u) for u in self.starts(n, rng)]

    def starts(self, n: int, rng: np.random.RandomState) -> list[Floats]:
        """Return the linear discriminant and n − 1 random vectors for scaled features, each of shape (d,).

        They lie in the span of the rows.
        """
        into_span, varies = self._span_projection(), np.isfinite(self.scale)
        drawn = rng.normal(size=(n - 1, len(self.scale)))
        if not sparse.issparse(self.sample.X) and self.sample.X.size <= MOST_SORTED_NUMBERS:
            order, signs = self._column_order
            drawn = drawn[:, np.argsort(order)] * signs  # the same starts for any order of the features
        first = self.discriminant()
        first *= np.sign(first[np.argmax(np.abs(first))])  # so that exchanging the classes changes nothing
        return [into_span(u) * varies for u in [first, *drawn]]

    @functools.cached_property
    def _column_order(self) -> tuple[NDArray[np.int64], Floats]:
        return column_order(self.sample.X, self.sample.codes, self._weights)

    def discriminant(self, ridge: float = _DISCRIMINANT_RIDGE) -> Floats:
        """Return Fisher's direction Σ⁻¹(μ₊ − μ₋), shape (d,), for scaled features.

        Σ is the within-class covariance plus ``ridge`` times its mean diagonal element times the identity.
        """
        if len(self.scale) > _MOST_COVARIANCE_FEATURES:
            (mean, deviation), (other_mean, other_deviation) = self.class_statistics
            variances = ((deviation / self.scale) ** 2 + (other_deviation / self.scale) ** 2) / 2
            return np.asarray(_or_random((other_mean - mean) / self.scale) / (variances + _ridge(variances, ridge)))
        added = _ridge(np.diagonal(self.within_covariance), ridge) * np.eye(len(self.scale))
        return np.asarray(
            np.linalg.solve(self.within_covariance + added, _or_random(self.class_covariances[2])), np.float64
        )

    def _span_projection(self) -> Callable[[Floats], Floats]:
        """Return a function that maps coordinates u, shape (d,), to the span of the rows.

        Along directions orthogonal to the span all rows are equal. The gradient of the divergence has no component
        there, so a search that begins in the span stays in it.
        """
        X = self.sample.X
        n_rows, n_features = X.shape
        if n_features <= _MOST_COVARIANCE_FEATURES:
            basis = _range(self._total_covariance())[0]
            full = basis.shape[1] == np.count_nonzero(np.isfinite(self.scale))
            return lambda u: u if full else np.asarray(basis @ (basis.T @ u))
        if n_rows > n_features:
            return lambda u: u
        across, back = _products(X, self._weights, self.scale)
        if n_rows > _MOST_DECOMPOSED:  # not an orthogonal projection, but its result is in the span
            return lambda u: back(across(u))
        vectors, values = _range(gram(X, self._weights, self.scale))
        return lambda u: back(vectors @ ((vectors.T @ across(u)) / values))

    def _total_covariance(self) -> Floats:
        """Return the covariance of the scaled features over all rows, shape (d, d): within and between the classes."""
        first, second, difference = self.class_covariances
        total, share = float(self._weights.sum()), float(self._weights[self.sample.members(1)].sum())
        share /= total
        return (1 - share) * first + share * second + share * (1 - share) * np.outer(difference, difference)


def _or_random(difference: Floats) -> Floats:
    """Return a difference of means or, if it is zero, a random direction, since all are equally good then."""
    return difference if np.any(difference) else np.random.RandomState(0).normal(size=len(difference))


def check_scale(scale: Floats, total: float) -> None:
    """Raise an error unless some feature varies, and no sum of squares over all rows overflows or underflows.

    ``scale`` has shape (d,), and ``total`` is the weight of all rows.
    """
    finite = scale[np.isfinite(scale)]
    if not len(finite):
        raise ValueError(
            f"No feature has a standard deviation of more than {_LEAST_STEPS:g} times the spacing of floats at its "
            "mean, so that rounding has left too little of the features. Subtract a common offset from them before "
            "they are stored."
        )
    largest = min(_LARGEST_SCALE, _LARGEST_ROOT / math.sqrt(total * len(finite)))
    if finite.min() < 1 / _LARGEST_SCALE or finite.max() > largest:
        j = int(np.argmax(np.where(np.isfinite(scale), np.abs(np.log(scale)), 0)))
        raise UnitsError(j, float(scale[j]))


def _rounding_steps(mean: Floats, deviation: Floats, dtype: Any) -> Floats:
    """Return the standard deviation of each feature divided by the spacing of numbers of a type at its mean, (d,).

    The smaller it is, the more of the differences is lost to rounding: near 1e12 neighbouring floats are 1.2e-4 apart.
    """
    with np.errstate(over="ignore"):  # at a mean of zero
        return np.asarray(deviation / np.spacing(np.abs(mean).astype(dtype)).astype(np.float64))


def mean_and_deviation(X: Any, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean and standard deviation of each feature, both of shape (d,). Sparse X stays sparse."""
    share = weights / weights.sum()
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    # Scaled so that squares neither overflow nor underflow; scaling by powers of two is exact.
    size = np.ldexp(1.0, np.frexp(np.maximum(np.abs(low), np.abs(high)).astype(np.float64))[1] - 1)
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X @ sparse.diags_array(1 / size), axis=0, weights=share)
    else:
        # Differences of numbers that lie close together are exact, while their mean is rounded.
        least, most = low / size, high / size
        near = np.where(np.abs(least + most) > FAR_FROM_ZERO * (most - least), least, 0.0)
        scaled = X / size - near
        mean = share @ scaled
        variance = share @ (scaled - mean) ** 2
        mean = mean + near
    return mean * size, np.where(low < high, np.sqrt(np.maximum(variance, 0)), 0.0) * size


def gram(X: Any, weights: Floats, scale: Floats) -> Floats:
    """Return ZZᵀ, of shape (n, n). The rows of Z are ``√p_i (x_i − mean) / scale``, with p_i = weight_i / Σ weights.

    ZᵀZ is the covariance of the scaled features. A large sparse X stays sparse. It is then centred after the
    multiplication, which loses digits if the mean is large.
    """
    share = weights / weights.sum()
    if not sparse.issparse(X) or X.shape[0] * X.shape[1] <= _FEW_ENTRIES:
        points = (X.toarray() if sparse.issparse(X) else X) / scale
        rows = (points - share @ points) * np.sqrt(share)[:, None]
        return np.asarray(rows @ rows.T)
    scaled = X @ sparse.diags_array(1 / scale)
    products = (scaled @ scaled.T).toarray()
    to_mean = products @ share
    root = np.sqrt(share)
    return np.asarray((products - to_mean - to_mean[:, None] + share @ to_mean) * root * root[:, None])


def whitening(covariance: Floats) -> Whitening:
    """Return coordinates p, with u = R p and R Rᵀ about the inverse of a covariance.

    Without them, correlated features make narrow valleys, in which a search is slow. Directions with next to no
    variance are stretched only up to a limit.
    """
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] < _NO_SPREAD:  # every class is a point
        return Whitening(np.eye(len(values)), np.eye(len(values)))
    roots = np.sqrt(np.maximum(values, _LEAST_STRETCHED * values[-1]))
    return Whitening(vectors / roots, (vectors * roots).T)


def _ridge(variances: Floats, ridge: float) -> float:
    return ridge * max(float(variances.mean()), _LEAST_SPREAD)


def _range(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvectors, as columns, and eigenvalues of a positive matrix, without eigenvalues near zero."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _NO_VARIANCE * values[-1]
    return vectors[:, kept], values[kept]


def _products(X: Any, weights: Floats, scale: Floats) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """Return the functions u → Zu and t → Zᵀt, with the standardised rows Z, without forming Z."""
    share = weights / weights.sum()
    root, mean = np.sqrt(share), np.asarray(X.T @ share) / scale

    def across(u: Floats) -> Floats:
        return np.asarray(root * (X @ (u / scale) - mean @ u))

    def back(t: Floats) -> Floats:
        return np.asarray(X.T @ (root * t) / scale - mean * (root @ t))

    return across, back


def estimate_shrinkage(rows: Rows, wish: float | str | None, scale: Floats) -> Shrinkage | None:
    """Return the shrinkage that ``MELC(shrinkage=wish)`` stands for, or None for no shrinkage.

    ``scale``, of shape (d,), are the scales of the features, infinite for constant ones.
    """
    if wish is None or wish == 0:
        return None
    varies = np.isfinite(scale)
    (first, first_target), (second, second_target) = (
        ledoit_wolf(gram(X, weights, scale), weights, int(np.count_nonzero(varies)), total)
        for (X, weights), total in zip(samples_of_classes(rows, _ESTIMATE_ROWS), rows.total_weights, strict=True)
    )
    intensities = (first, second) if isinstance(wish, str) else (float(wish), float(wish))
    return Shrinkage(intensities, (first_target, second_target), np.where(varies, scale, 0.0))


def ledoit_wolf(products: Floats, weights: Floats, n_features: int, total_weight: float) -> tuple[float, float]:
    """Return the intensity λ and target t for which (1 − λ) S + λ t I is the best estimate of a covariance matrix.

    S is the sample covariance (Ledoit and Wolf 2004). ``products``, of shape (n, n), is ZZᵀ, with Z the centred rows,
    each times the square root of its share of ``weights``. The formula needs only the trace and the norm of S = ZᵀZ,
    and ZZᵀ has the same. The rows may be a sample of a class of ``total_weight``. The variance of the estimate is then
    smaller for the whole class, by the ratio of the weights.

    Two rows have the same deviation from their mean up to the sign, so the formula would estimate a variance of zero.
    For a class of two rows λ is therefore at least P/(4 (P − 1)), with P features. This is what the same criterion
    gives for a normal distribution (Chen, Wiesel, Eldar and Hero 2010, "Shrinkage algorithms for MMSE covariance
    estimation", their Rao-Blackwell estimator for n = 2).
    """
    share = weights / weights.sum()
    lengths = np.diagonal(products)
    target = float(lengths.sum()) / n_features
    if target <= 0 or n_features == 1:  # a single variance is its own target
        return 0.0, target
    square = float(np.sum((products / target) ** 2))  # divided by the target first, because its square might underflow
    uncertainty = (float(np.sum((lengths / target) ** 2 / share)) - square) / weights.sum()
    distance = square - n_features
    if uncertainty < _DIFFERENCE_ROUNDING * square:
        uncertainty = 0.0
    uncertainty = min(uncertainty, max(distance, 0.0))
    left = uncertainty * float(weights.sum()) / total_weight
    whole = distance - uncertainty + left
    least = n_features / (4 * (n_features - 1)) if total_weight <= 2 else 0.0
    return max(least, left / whole if whole > 0 and math.isfinite(whole) else 0.0), target
