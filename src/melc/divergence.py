"""The Cauchy-Schwarz divergence and the information potential, as functions of data."""

import math
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from melc._sklearn import check_no_masks, check_weights, n_threads_for
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.fit.coordinates import FAR_FROM_ZERO, mean_and_deviation
from melc.fit.validation import check_totals
from melc.objective import METHODS, Objective
from melc.sums import SUMS

# Rows from which the scale of the projections is estimated.
_ROWS_FOR_SIZE = 1000
# Largest size of the projections that are scaled before they are squared, and of those that are not. The reciprocals
# are the smallest sizes.
_LARGEST_SCALED, _LARGEST_UNSCALED = 1e290, 1e150
_OTHER_UNITS = "Choose other units for the features, or another length of v."


@overload
def cauchy_schwarz_divergence(
    X: Any,
    y: Any,
    v: Any,
    *,
    gamma: float = ...,
    method: str = ...,
    eps: float | None = ...,
    sample_weight: Any = ...,
    return_gradient: Literal[False] = ...,
) -> float: ...


@overload
def cauchy_schwarz_divergence(
    X: Any,
    y: Any,
    v: Any,
    *,
    gamma: float = ...,
    method: str = ...,
    eps: float | None = ...,
    sample_weight: Any = ...,
    return_gradient: Literal[True],
) -> tuple[float, Floats]: ...


def cauchy_schwarz_divergence(
    X: Any,
    y: Any,
    v: Any,
    *,
    gamma: float = 1.0,
    method: str = "exact",
    eps: float | None = None,
    sample_weight: Any = None,
    return_gradient: bool = False,
) -> float | tuple[float, Floats]:
    """Return the Cauchy-Schwarz divergence of two classes projected on v, and optionally its gradient.

    ``D(v) = log ip(−,−) + log ip(+,+) − 2 log ip(−,+)``

    where ``ip(a, b) = ∫ f_a f_b`` is the information potential of the kernel densities of two classes along v. D is
    zero for equal densities and large for densities that hardly overlap. It does not depend on the length of v.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features of the rows.
    y : array-like of shape (n_samples,)
        Labels of the rows; exactly two different ones.
    v : array-like of shape (n_features,)
        Direction; must not be zero.
    gamma : float, default=1.0
        Factor on Silverman's bandwidth.
    method : {"exact", "moments", "discard", "bin"}, default="exact"
        How the sums over pairs of points are computed. "exact": over all pairs. "moments": by moment bins, in linear
        time and with a certified error; up to 400 rows, over all pairs. "discard": without pairs that are far apart
        (Theorem 1 of the paper). "bin": with the points of each bin replaced by their mean (Theorem 2).
    eps : float, default=None
        Accepted error, required by "discard" and "bin". For "moments" it is 1e-6 by default and bounds the error of D
        itself, whatever the scale of the data. For "discard" and "bin" it is the paper's absolute error on each
        information potential, which depends on the units of X and on the length of v.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. A row of weight k counts as k copies of it.
    return_gradient : bool, default=False
        Whether to return the gradient as well.

    Returns
    -------
    divergence : float
        The divergence D(v).
    gradient : ndarray of shape (n_features,)
        The gradient ∇D(v). Only returned if ``return_gradient`` is True.

    Examples
    --------
    >>> import numpy as np
    >>> from melc import cauchy_schwarz_divergence
    >>> X = np.array([[0.0, 5.0], [1.0, 3.0], [4.0, 4.0], [5.0, 2.0]])
    >>> y = [0, 0, 1, 1]
    >>> round(cauchy_schwarz_divergence(X, y, [1.0, 0.0]), 4)
    23.0924
    >>> value, gradient = cauchy_schwarz_divergence(X, y, [1.0, 0.0], return_gradient=True)
    >>> gradient.shape
    (2,)
    """
    _check_choice(method, eps, gamma)
    rows = _centred(_labelled_rows(X, y, sample_weight))
    direction = _direction(v, rows.n_features)
    objective = Objective(
        rows, gamma=gamma, method=method, eps=_accepted(method, eps), scale=_scale_along(rows, direction, method)
    )
    with np.errstate(over="ignore", invalid="ignore"):  # found below
        evaluation = objective.evaluate(direction)
    if not (math.isfinite(evaluation.divergence) and np.isfinite(evaluation.gradient).all()):
        raise ValueError(f"The divergence or its gradient overflows, for v={v!r:.60}. {_OTHER_UNITS}")
    divergence = float(evaluation.divergence)
    return (divergence, evaluation.gradient) if return_gradient else divergence


def information_potential(x: Any, y: Any, variance: float, *, method: str = "exact", eps: float | None = None) -> float:
    """Return the information potential of two sets of points: the integral of the product of their kernel densities.

    ``ip = Σ_ij exp(−(x_i − y_j)²/2V) / (√(2πV) n m)``

    Parameters
    ----------
    x : array-like of shape (n,)
        Points on a line.
    y : array-like of shape (m,)
        Points on the same line.
    variance : float
        V, the sum of the two kernel variances.
    method : {"exact", "moments", "discard", "bin"}, default="exact"
        How the double sum is computed. "exact": over all pairs. "moments": by moment bins, in linear time and with a
        certified error. "discard": without pairs that are far apart (Theorem 1 of the paper). "bin": with the points
        of each bin replaced by their mean (Theorem 2).
    eps : float, default=None
        Accepted error, required by "discard" and "bin". For "moments" it is 1e-6 by default and bounds the error of
        log ip (about the relative error of ip), whatever the scale of the points. For "discard" and "bin" it is the
        paper's absolute error of ip.

    Returns
    -------
    ip : float
        The information potential.

    Examples
    --------
    >>> from melc import information_potential
    >>> round(information_potential([0.0, 1.0], [0.5], variance=1.0), 6)
    0.352065
    """
    _check_choice(method, eps)
    if not 1 / _LARGEST_UNSCALED <= variance <= _LARGEST_UNSCALED:
        raise ValueError(
            f"variance={variance!r} must be a positive number between {1 / _LARGEST_UNSCALED:.0e} and "
            f"{_LARGEST_UNSCALED:.0e}."
        )
    chosen = SUMS[method](_accepted(method, eps))
    sides = [_checked_points(points, name) for points, name in ((x, "x"), (y, "y"))]
    first, second = (chosen.prepare(side, np.ones(len(side)), label) for label, side in enumerate(sides))
    log_sum = chosen.across(first, second, variance).log_value
    log_pairs = math.log(len(sides[0])) + math.log(len(sides[1]))
    return math.exp(log_sum - 0.5 * math.log(2 * math.pi * variance) - log_pairs)


def _check_choice(method: str, eps: float | None, gamma: float = 1.0) -> None:
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known; choose one of {sorted(METHODS)}.")
    if eps is None and SUMS[method].default_eps is None:
        raise ValueError(f"method={method!r} needs eps, the accepted error, for example eps=0.01.")
    if eps is not None and not eps > 0:
        raise ValueError(f"eps={eps!r} must be positive.")
    if not (gamma > 0 and math.isfinite(gamma)):
        raise ValueError(f"gamma={gamma!r} must be a positive finite number; 1.0 is Silverman's rule.")


def _accepted(method: str, eps: float | None) -> float:
    """Return the accepted error: the method's own where none is given."""
    default = SUMS[method].default_eps
    return eps if eps is not None else 0.0 if default is None else default


def _labelled_rows(X: Any, y: Any, sample_weight: Any) -> MemoryRows:
    check_no_masks(X, y)
    X = check_array(X, dtype=[np.float64, np.float32])
    y = column_or_1d(y)
    check_consistent_length(X, y)
    weights = None
    if sample_weight is not None:
        weights = check_weights(sample_weight, X.shape[0])
        X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
    codes = _codes(y)
    if weights is not None:
        check_totals(np.unique(y), np.asarray(np.bincount(codes, weights), dtype=np.float64))
    return MemoryRows(X, codes, weights, n_threads_for(None))


def _codes(y: NDArray[Any]) -> NDArray[np.int8]:
    """Return 0 for the lower of two labels and 1 for the higher, shape (n,)."""
    if y.dtype.kind in "biuf" and len(y):
        low, high = y.min(), y.max()  # faster than a search for all labels, by far
        second = y == high
        if low < high and np.all(second | (y == low)):
            return second.view(np.int8)
    labels = np.unique(y)
    if len(labels) != 2:
        raise ValueError(f"y must hold two different labels; found {len(labels)}: {labels[:5].tolist()}.")
    return (y != labels[0]).view(np.int8)


def _direction(v: Any, n_features: int) -> Floats:
    direction = np.asarray(v, dtype=np.float64)
    if direction.shape != (n_features,):
        raise ValueError(
            f"v has shape {direction.shape}, but X has {n_features} features: pass one number for each feature."
        )
    if not np.all(np.isfinite(direction)) or not np.any(direction):
        raise ValueError(f"v={direction!r} must be a nonzero finite vector.")
    return direction


def _centred(rows: MemoryRows) -> MemoryRows:
    """Return the rows around a centre if they are so far from zero that products with them would lose digits."""
    some = _some_rows(rows)
    mean, deviation = mean_and_deviation(some, np.ones(len(some)))
    return rows.around(mean) if np.any(np.abs(mean) / FAR_FROM_ZERO > deviation) else rows


def _some_rows(rows: MemoryRows) -> Floats:
    """Return some of the rows, shape (n_some, n_features), without their centre."""
    some = rows.X[:: max(1, rows.n_rows // _ROWS_FOR_SIZE)].astype(np.float64)
    return np.asarray(some if rows.centre is None else some - rows.centre)


def _scale_along(rows: MemoryRows, direction: Floats, method: str) -> Floats | None:
    """Return the scale that the direction is divided by, shape (n_features,), or None for no scaling.

    It keeps the squares of projections from overflow and underflow. It is a power of two, so dividing by it is exact.
    "discard" and "bin" use the projections unscaled, because their eps is absolute.
    """
    # Some rows tell it well enough: squares have room for a factor of 1e100 and more.
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.max(np.abs(_some_rows(rows) @ direction)))
    scaled = SUMS[method].scale_free
    largest = _LARGEST_SCALED if scaled else _LARGEST_UNSCALED
    if not (size == 0 or 1 / largest <= size <= largest):
        raise ValueError(
            f"The projections on v are about {size:.3g} in size; with method={method!r} they must be between "
            f"{1 / largest:.0e} and {largest:.0e}, or their squares overflow or underflow. {_OTHER_UNITS}"
        )
    return np.full(rows.n_features, np.ldexp(1.0, np.frexp(size)[1])) if scaled else None


def _checked_points(points: Any, name: str) -> Floats:
    array = column_or_1d(check_array(points, ensure_2d=False, dtype=np.float64, input_name=name))
    largest = float(np.abs(array).max())
    if largest > _LARGEST_UNSCALED:
        raise ValueError(f"{name} holds {largest:.3g}; the square of numbers above {_LARGEST_UNSCALED:.0e} overflows.")
    return np.ascontiguousarray(array)
