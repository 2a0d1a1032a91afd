"""The door to Dask: who needs it is seen here, and only then is it imported."""

import functools
from collections.abc import Callable
from typing import Any

from sklearn.utils.validation import check_is_fitted, validate_data


def is_lazy(*collections: Any) -> bool:
    """Whether any is a Dask collection, which scikit-learn would quietly pull into memory."""
    return any(hasattr(collection, "__dask_graph__") for collection in collections)


def dask_room() -> Any:
    """The one file that knows Dask."""
    try:
        from melc import dask_rows
    except ImportError as error:
        raise ImportError(f"Dask collections need Dask ({error}): pip install 'melc[dask]'") from error
    return dask_rows


def check_features(model: Any, X: Any, reset: bool) -> None:
    """Names and number of features of a collection, without a look at its rows."""
    validate_data(model, X._meta if hasattr(X, "columns") else X, reset=reset, skip_check_array=True)


def lazy_on_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have a method work on Dask collections too: partition by partition, once its result is asked for."""

    @functools.wraps(method)
    def now_or_later(self: Any, X: Any) -> Any:
        if not is_lazy(X):
            return method(self, X)
        check_is_fitted(self, "coef_")
        check_features(self, X, reset=False)
        return dask_room().lazily(self, method.__name__, X)

    return now_or_later
