"""Every private name of scikit-learn that melc uses, and what to do when one of them goes.

``_fit_context``, ``Interval`` and ``StrOptions``
    Check the parameters of an estimator before ``fit`` (private since 1.2, the same in every release). When they go:
    check the parameters at the top of ``fit``.
``_validate_params``
    Called by ``_fit_context``; :class:`StrictParametersMixin` adds a check. When it goes: as above.
``_openmp_effective_n_threads``
    The number of threads that ``n_jobs`` stands for, by the rules of OpenMP, threadpoolctl and joblib. When it goes:
    ``joblib.effective_n_jobs``, which does not know OMP_NUM_THREADS.
``sklearn.callback``
    Progress bars and the like (public, from 1.9 on; before, they are absent). ``_init_callback_context`` is how an
    estimator reports to them. When it changes: :func:`callback_context` is the only caller.

``_repr_html_inner`` and ``_repr_mimebundle_``
    What notebooks show of an estimator (the same since 1.6). When they change: :class:`FittedHTMLMixin` is the only
    user, and without it notebooks show scikit-learn's diagram alone.

What changed too often, or came late, has a few lines of ours instead: :func:`check_weights` and
:func:`one_blas_thread`.
"""

import functools
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_array
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from threadpoolctl import ThreadpoolController

from melc.arrays import Floats

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    HAS_CALLBACKS = True
except ImportError:  # scikit-learn < 1.9
    HAS_CALLBACKS = False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


__all__ = [
    "HAS_CALLBACKS",
    "CallbackSupportMixin",
    "FittedHTMLMixin",
    "Interval",
    "StrOptions",
    "StrictParametersMixin",
    "callback_context",
    "check_weights",
    "fit_context",
    "n_threads_for",
    "one_blas_thread",
    "with_callbacks",
]

fit_context = _fit_context


def n_threads_for(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` stands for."""
    return int(_openmp_effective_n_threads(n_jobs))


class StrictParametersMixin:
    """Refuses True and False for numbers, which scikit-learn takes for one and zero.

    It stands before ``BaseEstimator`` in the list of classes.
    """

    _parameter_constraints: dict[str, list[Any]]

    def _validate_params(self) -> None:
        super()._validate_params()  # type: ignore[misc]
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            allowed = self._parameter_constraints.get(name, ["boolean"])  # subclasses may have others
            if isinstance(value, bool) and "boolean" not in allowed and "verbose" not in allowed:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must not be a truth value. Got {value} instead."
                )


class FittedHTMLMixin:
    """Shows a fitted estimator in notebooks: what ``_fitted_html`` returns, and below it scikit-learn's diagram.

    It stands before ``BaseEstimator`` in the list of classes.
    """

    def _fitted_html(self) -> str:
        raise NotImplementedError

    def _repr_html_inner(self) -> str:
        return self._above(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return {kind: self._above(text) if kind == "text/html" else text for kind, text in shown.items()}

    def _above(self, diagram: str) -> str:
        return (self._fitted_html() if hasattr(self, "classes_") else "") + diagram


def callback_context(estimator: Any, n_runs: int) -> Any:
    """Return what tells scikit-learn's callbacks of a fit with so many runs; None where there are no callbacks."""
    return estimator._init_callback_context(max_subtasks=n_runs) if HAS_CALLBACKS else None


def check_weights(sample_weight: Any, n_rows: int) -> Floats:
    """Return sample weights as an array of shape (n_rows,), finite and not negative; a single number serves all rows.

    Examples
    --------
    >>> check_weights([1, 2], 2)
    array([1., 2.])
    >>> check_weights([1, 2, 3], 2)
    Traceback (most recent call last):
    ...
    ValueError: sample_weight has shape (3,), but X has 2 rows: pass one weight for each row.
    """
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    check_no_masks(sample_weight=sample_weight)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_rows} rows: pass one weight for each row."
        )
    if weights.min() < 0:
        raise ValueError(
            f"sample_weight holds {weights.min():g}. A weight counts as that many rows: pass numbers that are not "
            "negative."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; some rows need a positive weight.")
    return np.asarray(weights)


def check_no_masks(X: Any = None, y: Any = None, sample_weight: Any = None) -> None:
    """Raise an error if values are masked, which scikit-learn would read as if they were not."""
    for name, values in {"X": X, "y": y, "sample_weight": sample_weight}.items():
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):  # arrays of pandas have another mask
            n_masked = np.count_nonzero(np.ma.getmaskarray(values))
            unmasked = (
                "Make them missing: X.astype(float).filled(numpy.nan)." if name == "X" else "Leave these rows out."
            )
            raise ValueError(
                f"{name} has masked values, {n_masked} of {values.size}, which would be read as well. {unmasked}"
            )


@functools.cache
def _controller() -> ThreadpoolController:
    """Made once, for it looks through all loaded libraries."""
    return ThreadpoolController()


def one_blas_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function run with a single thread of BLAS.

    Solvers work on vectors of a few numbers, where threads of BLAS cost far more than they save.
    """

    @functools.wraps(function)
    def limited(*arguments: Any, **options: Any) -> Any:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*arguments, **options)

    return limited
