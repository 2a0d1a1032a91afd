"""The door to Dask: who needs it is seen here, and only then is it imported. Prediction on its collections."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from melc.data.dask.checks import check_chunks, is_array


def is_lazy(*collections: Any) -> bool:
    """Whether any is a Dask collection, which scikit-learn would quietly pull into memory."""
    return any(hasattr(collection, "__dask_graph__") for collection in collections)


def dask_room() -> Any:
    """The one file that knows Dask."""
    try:
        from melc.data.dask import rows as dask_rows
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
        return lazily(self, method.__name__, X)

    return now_or_later


def lazily(model: Any, method: str, X: Any) -> Any:
    """A method of a fitted model on every partition, once somebody asks for it.

    Arrays give arrays. Dataframes give series, or dataframes where there are several columns, with their index.
    """
    model = copy.copy(model)
    model.n_jobs = 1  # partitions are what runs side by side
    if not is_array(X):
        empty = _on_frame(X._meta, model, method)
        return X.map_partitions(_on_frame, model, method, meta=empty)
    check_chunks(X, known=False)
    vars(model).pop("feature_names_in_", None)  # blocks have no names, which has been told already
    meta = _on_block(np.empty((0, X.shape[1])), model, method)
    if meta.ndim == 1:
        return X.map_blocks(_on_block, model, method, drop_axis=1, dtype=meta.dtype, meta=meta)
    return X.map_blocks(_on_block, model, method, chunks=(X.chunks[0], (meta.shape[1],)), dtype=meta.dtype, meta=meta)


def _on_block(X: Any, model: Any, method: str) -> NDArray[Any]:
    some = X if X.shape[0] else np.zeros((1, X.shape[1]))  # an empty block has a result too: its type
    return np.asarray(getattr(model, method)(some))[: X.shape[0]]


def _on_frame(frame: Any, model: Any, method: str) -> Any:
    import pandas as pd

    some = frame if len(frame) else pd.DataFrame(np.zeros((1, len(frame.columns))), columns=frame.columns)
    values = np.asarray(getattr(model, method)(some))[: len(frame)]
    if values.ndim == 1:
        return pd.Series(values, index=frame.index)
    names = model.get_feature_names_out() if method == "transform" else model.classes_
    return pd.DataFrame(values, index=frame.index, columns=names)
