"""The features as the search sees them: centred, in units of their own spread, and without what does not vary."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from melc.arrays import Floats
from melc.rows import Rows

# A spread below this part of a feature's size is what rounding leaves of a constant.
_ROUNDING = 1e-12
# Offsets beyond this many spreads cost more digits than a search can spare.
_FAR = 1e4
# Eigenvalues of the features' correlations below this part of the largest belong to directions without rows.
_NO_VARIANCE = 1e-10
# Part of the largest variance below which a direction is stretched no further.
_LEAST_STRETCHED = 1e-2
# Decomposing a matrix of this size takes a second.
_MOST_DECOMPOSED = 1000
_MOST_DENSE_FEATURES = 500
# Numbers that a sparse matrix may well hold as a dense one.
_FEW_NUMBERS = 200_000


def feature_scale(sample: Rows, is_all: bool = True) -> Floats:
    """Weighted standard deviation of every feature.

    A feature that is constant in all rows has an infinite one: it shall take no part. One that is constant in a sample
    only is taken by its size.
    """
    mean, deviation = mean_and_deviation(sample.X, sample.all_weights())
    size = np.abs(mean)
    return np.where(deviation > _ROUNDING * size, deviation, np.inf if is_all else np.where(size > 0, size, 1.0))


def far_centre(sample: Rows, scale: Floats) -> Floats | None:
    """The mean, if it is so far out that products with the features lose digits of their spread."""
    mean, _ = mean_and_deviation(sample.X, sample.all_weights())
    return mean if np.any(np.abs(mean) > _FAR * scale) else None


def mean_and_deviation(X: Any, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted, feature by feature; sparse features stay sparse."""
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
    """Rows around their mean, in units of the scale; times the root of their share, so that ZᵀZ is the covariance."""
    share = weights / weights.sum()
    points = (X.toarray() if sparse.issparse(X) else X) / scale
    return np.asarray((points - share @ points) * np.sqrt(share)[:, None])


def gram(X: Any, weights: Floats, scale: Floats) -> Floats:
    """The products ZZᵀ of all pairs of standardised rows; sparse rows stay sparse, if they are many numbers.

    Sparse rows cannot be centred before they are multiplied, which costs digits where their mean is large.
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


def within_covariance(sample: Rows, scale: Floats) -> Floats:
    """Covariance of the scaled features within the classes, the mean of the two."""
    weights = sample.all_weights()
    covariances = []
    for code in (0, 1):
        members = sample.members(code)
        rows = standardised(sample.X[members], weights[members], scale)
        covariances.append(rows.T @ rows)
    return np.asarray(0.5 * (covariances[0] + covariances[1]))


def whitening(covariance: Floats) -> Floats:
    """A matrix R with R Rᵀ about the inverse of a covariance: in p, u = R p, correlated features are no narrow valley.

    Directions with next to no variance are not stretched for ever.
    """
    values, vectors = np.linalg.eigh(covariance)
    if values[-1] < _ROUNDING**2:  # every class is a point
        return np.eye(len(values))
    return np.asarray(vectors / np.sqrt(np.maximum(values, _LEAST_STRETCHED * values[-1])))


def span_projection(sample: Rows, scale: Floats) -> Callable[[Floats], Floats]:
    """What takes coordinates u = scale · v to the nearest ones in the span of the rows.

    Directions outside the span are those along which no row differs from another. The gradient of the divergence never
    points there, so a search that begins in the span stays in it.
    """
    n_rows, n_features = sample.X.shape
    weights = sample.all_weights()
    if n_features <= _MOST_DENSE_FEATURES:
        rows = standardised(sample.X, weights, scale)
        basis = _range(rows.T @ rows)[0]
        full = basis.shape[1] == np.count_nonzero(np.isfinite(scale))
        return _same if full else lambda u: np.asarray(basis @ (basis.T @ u))
    if n_rows > n_features:
        return _same
    across, back = _products(sample.X, weights, scale)
    if n_rows > _MOST_DECOMPOSED:  # not the nearest, but in the span
        return lambda u: back(across(u))
    vectors, values = _range(gram(sample.X, weights, scale))
    return lambda u: back(vectors @ ((vectors.T @ across(u)) / values))


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
