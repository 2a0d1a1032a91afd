"""The features as the search sees them: their scales, their covariance, and where a search begins.

All of it is estimated from one sample of the rows, and computed once.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from melc.arrays import Floats, unit
from melc.data.memory import MemoryRows

# A spread below this part of a feature's size is what rounding leaves of a constant.
_ROUNDING = 1e-12
# Offsets beyond this many spreads cost more digits than a search can spare.
_FAR = 1e4
# Squares of projections must be numbers.
_LARGEST_EXPONENT = 151
_LARGEST_SCALE = 10.0**_LARGEST_EXPONENT
# More features than this, and the covariance costs more than the steps that it saves.
_MOST_WHITENED_FEATURES = 200
# Part of the largest variance below which a direction is stretched no further.
_LEAST_STRETCHED = 1e-2
# Beyond this many features the discriminant takes the features one by one: a full covariance would cost more than the
# training that it starts.
_FULL_COVARIANCE_FEATURES = 500
# Ridge on the within-class covariance, relative to its diagonal: directions in which a class does not vary at all
# (fewer rows than features) must not dominate the start. Where no class varies, it is still something to divide by.
_RIDGE, _LEAST_SPREAD = 1e-3, 1e-30
# Eigenvalues of the features' correlations below this part of the largest belong to directions without rows.
_NO_VARIANCE = 1e-10
# Decomposing a matrix of this size takes a second.
_MOST_DECOMPOSED = 1000
_MOST_DENSE_FEATURES = 500
# Numbers that a sparse matrix may well hold as a dense one.
_FEW_NUMBERS = 200_000


class Coordinates:
    """What a sample tells of the features.

    ``scale``, of shape (d,), are the weighted standard deviations: the optimiser's coordinates are u = scale · v. A
    feature that is constant in all rows has an infinite scale and takes no part. A feature that is constant in the
    sample only, while there are more rows, is taken by its size.
    """

    def __init__(self, sample: MemoryRows, is_all: bool = True) -> None:
        self.sample = sample
        self._weights = sample.all_weights()
        self._members = [sample.members(c) for c in (0, 1)]
        self.mean, deviation = mean_and_deviation(sample.X, self._weights)
        size = np.abs(self.mean)
        unknown = np.inf if is_all else np.where(size > 0, size, 1.0)
        self.scale = np.where(deviation > _ROUNDING * size, deviation, unknown)
        _check_scale(self.scale)

    @functools.cached_property
    def class_statistics(self) -> list[tuple[Floats, Floats]]:
        """Mean and standard deviation of every feature within either class."""
        return [mean_and_deviation(self.sample.X[m], self._weights[m]) for m in self._members]

    @functools.cached_property
    def within_covariance(self) -> Floats:
        """Covariance of the scaled features within the classes, the mean of the two; shape (d, d)."""
        rows = [standardised(self.sample.X[m], self._weights[m], self.scale) for m in self._members]
        return np.asarray(0.5 * (rows[0].T @ rows[0] + rows[1].T @ rows[1]))

    @property
    def far_centre(self) -> Floats | None:
        """The mean, if it is so far out that products with the features lose digits of their spread."""
        return self.mean if np.any(np.abs(self.mean) > _FAR * self.scale) else None

    def whitening(self) -> Floats | None:
        """Return :func:`whitening` of the covariance within classes; None if there are too many features for it."""
        return whitening(self.within_covariance) if len(self.scale) <= _MOST_WHITENED_FEATURES else None

    def contributions(self, direction: Floats) -> Floats:
        """Return how much every feature contributes to the projections: its weight times its spread."""
        return np.abs(direction) * np.where(np.isfinite(self.scale), self.scale, 0.0)

    def variance_left(self, direction: Floats, variances: tuple[float, float]) -> float:
        """Return the variance of a class over the sum of its features' own, each times its weight; the smaller."""
        left = []
        for (_, deviation), variance in zip(self.class_statistics, variances, strict=True):
            size = float(np.linalg.norm(direction * deviation))
            left.append(variance / size**2 if size**2 > 0 else 0.0)
        return min(left)

    def starting_directions(self, n: int, rng: np.random.RandomState) -> list[Floats]:
        """Return the discriminant and n − 1 random directions, all of shape (d,) and of length one.

        They are in the units of the features, and lie in the span of the rows.
        """
        into_span = self._span_projection()
        every = [self._discriminant(), *rng.normal(size=(n - 1, len(self.scale)))]
        return [unit(into_span(u) / self.scale) for u in every]

    def _discriminant(self) -> Floats:
        """Fisher's direction Σ⁻¹(μ₊ − μ₋) of the scaled features, Σ the covariance within classes plus a ridge."""
        (mean, deviation), (other_mean, other_deviation) = self.class_statistics
        difference = (other_mean - mean) / self.scale
        if not np.any(difference):  # equal means tell nothing: any direction will do along which the data vary
            difference = np.random.RandomState(0).normal(size=len(self.scale))
        if len(self.scale) > _FULL_COVARIANCE_FEATURES:
            variances = ((deviation / self.scale) ** 2 + (other_deviation / self.scale) ** 2) / 2
            return np.asarray(difference / (variances + _ridge(variances)))
        ridge = _ridge(np.diagonal(self.within_covariance)) * np.eye(len(self.scale))
        return np.asarray(np.linalg.solve(self.within_covariance + ridge, difference), dtype=np.float64)

    def _span_projection(self) -> Callable[[Floats], Floats]:
        """What takes coordinates u to the nearest ones in the span of the rows.

        Directions outside the span are those along which no row differs from another. The gradient of the divergence
        never points there, so a search that begins in the span stays in it.
        """
        X = self.sample.X
        n_rows, n_features = X.shape
        if n_features <= _MOST_DENSE_FEATURES:
            rows = standardised(X, self._weights, self.scale)
            basis = _range(rows.T @ rows)[0]
            full = basis.shape[1] == np.count_nonzero(np.isfinite(self.scale))
            return _same if full else lambda u: np.asarray(basis @ (basis.T @ u))
        if n_rows > n_features:
            return _same
        across, back = _products(X, self._weights, self.scale)
        if n_rows > _MOST_DECOMPOSED:  # not the nearest, but in the span
            return lambda u: back(across(u))
        vectors, values = _range(gram(X, self._weights, self.scale))
        return lambda u: back(vectors @ ((vectors.T @ across(u)) / values))


def _check_scale(scale: Floats) -> None:
    finite = scale[np.isfinite(scale)]
    if not len(finite):
        raise ValueError(
            "No feature varies by more than the rounding of its values, so no direction tells the classes apart. "
            "Subtract a common offset from the features before they are stored."
        )
    if finite.min() < 1 / _LARGEST_SCALE or finite.max() > _LARGEST_SCALE:
        j = int(np.argmax(np.where(np.isfinite(scale), np.abs(np.log(scale)), 0)))
        raise ValueError(
            f"Feature {j} has a standard deviation of {scale[j]:.3g}; beyond 1e{_LARGEST_EXPONENT} and below "
            f"1e-{_LARGEST_EXPONENT} its square is no number. Choose other units for it."
        )


def mean_and_deviation(X: Any, weights: Floats) -> tuple[Floats, Floats]:
    """Return weighted mean and standard deviation of every feature, both of shape (d,). Sparse X stays sparse."""
    share = weights / weights.sum()
    low, high = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    # Powers of two, so that squares neither overflow nor vanish and no digit is lost.
    size = np.ldexp(1.0, np.frexp(np.maximum(np.abs(low), np.abs(high)).astype(np.float64))[1])
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X @ sparse.diags_array(1 / size), axis=0, weights=share)
    else:
        scaled = X / size
        mean = share @ scaled
        variance = share @ (scaled - mean) ** 2
    return mean * size, np.where(low < high, np.sqrt(np.maximum(variance, 0)), 0.0) * size


def standardised(X: Any, weights: Floats, scale: Floats) -> Floats:
    """Return Z, of shape (n, d): rows around their mean, in units of the scale, times the root of their share.

    ZᵀZ is then the covariance.
    """
    share = weights / weights.sum()
    points = (X.toarray() if sparse.issparse(X) else X) / scale
    return np.asarray((points - share @ points) * np.sqrt(share)[:, None])


def gram(X: Any, weights: Floats, scale: Floats) -> Floats:
    """Return ZZᵀ, of shape (n, n), the products of all pairs of standardised rows.

    Sparse rows stay sparse, if they are many numbers. They cannot be centred before they are multiplied then, which
    costs digits where their mean is large.
    """
    if not sparse.issparse(X) or X.shape[0] * X.shape[1] <= _FEW_NUMBERS:
        rows = standardised(X, weights, scale)
        return np.asarray(rows @ rows.T)
    share = weights / weights.sum()
    scaled = X @ sparse.diags_array(1 / scale)
    products = (scaled @ scaled.T).toarray()
    to_mean = products @ share
    root = np.sqrt(share)
    return np.asarray((products - to_mean - to_mean[:, None] + share @ to_mean) * root * root[:, None])


def whitening(covariance: Floats) -> Floats:
    """Return R, of shape (d, d), with R Rᵀ about the inverse of a covariance.

    In coordinates p, u = R p, correlated features are no narrow valley. Directions with next to no variance are
    stretched up to a limit only.
    """
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] < _ROUNDING**2:  # every class is a point
        return np.eye(len(values))
    return np.asarray(vectors / np.sqrt(np.maximum(values, _LEAST_STRETCHED * values[-1])))


def _ridge(variances: Floats) -> float:
    return _RIDGE * max(float(variances.mean()), _LEAST_SPREAD)


def _range(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvectors of a positive matrix, and their eigenvalues, as far as these are more than rounding."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _NO_VARIANCE * values[-1]
    return vectors[:, kept], values[kept]


def _products(X: Any, weights: Floats, scale: Floats) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """u → Zu and t → Zᵀt with the standardised rows Z, without forming them."""
    share = weights / weights.sum()
    root, mean = np.sqrt(share), np.asarray(X.T @ share) / scale

    def across(u: Floats) -> Floats:
        return np.asarray(root * (X @ (u / scale) - mean @ u))

    def back(t: Floats) -> Floats:
        return np.asarray(X.T @ (root * t) / scale - mean * (root @ t))

    return across, back


def _same(u: Floats) -> Floats:
    return u
