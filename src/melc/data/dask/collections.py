"""Dask collections: how they are recognised, the import of Dask when one is found, and lazy prediction."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from melc.data.dask.checks import check_chunks, is_array


def is_lazy(*collections: Any) -> bool:
    """Return whether any of the arguments is a Dask collection. scikit-learn would silently load it into memory."""
    return any(hasattr(collection, "__dask_graph__") for collection in collections)


def _dask_rows() -> Any:
    """Import and return the module :mod:`melc.data.dask.rows`, which imports Dask."""
    try:
        from melc.data.dask import rows as dask_rows
    except ImportError as error:
        raise ImportError(f"Dask collections need Dask ({error}): pip install 'melc[dask]'") from error
    return dask_rows


def collect(model: Any, X: Any, y: Any, sample_weight: Any, few: Callable[[int, int], bool]) -> Any:
    """Return :func:`melc.data.dask.rows.collect_partitions` of collections whose features fit the model."""
    check_features(model, X, reset=True)
    return _dask_rows().collect_partitions(X, y, sample_weight, few)


def gather(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the collections in memory."""
    X, y, sample_weight = _dask_rows().dask.compute(X, y, sample_weight)
    return X, y, sample_weight


def check_features(model: Any, X: Any, reset: bool) -> None:
    """Check (or if ``reset``, store) the names and number of features of a collection, without computing its rows."""
    validate_data(model, X._meta if hasattr(X, "columns") else X, reset=reset, skip_check_array=True)


def lazy_on_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a prediction method so that it accepts Dask collections, for which it returns a lazy Dask collection."""

    @functools.wraps(method)
    def method_or_lazy(self: Any, X: Any) -> Any:
        if not is_lazy(X):
            return method(self, X)
        check_is_fitted(self, "lines_")
        check_features(self, X, reset=False)
        return lazily(self, method.__name__, X)

    return method_or_lazy


def lazily(model: Any, method: str, X: Any) -> Any:
    """Return a method of a fitted model, applied lazily to each partition of X.

    The result for an array is an array. The result for a dataframe is a series, or a dataframe if it has several
    columns, with the same index.
    """
    model = copy.copy(model)
    model.n_jobs = 1  # Dask runs the partitions in parallel
    if not is_array(X):
        empty = _on_frame(X._meta, model, method)
        return X.map_partitions(_on_frame, model, method, meta=empty)
    check_chunks(X, known=False)
    vars(model).pop("feature_names_in_", None)  # blocks have no names; check_features has warned of that already
    meta = _on_block(np.empty((0, X.shape[1])), model, method)
    if meta.ndim == 1:
        return X.map_blocks(_on_block, model, method, drop_axis=1, dtype=meta.dtype, meta=meta)
    shape = {"chunks": (X.chunks[0], *((n,) for n in meta.shape[1:])), "new_axis": list(range(2, meta.ndim))}
    return X.map_blocks(_on_block, model, method, dtype=meta.dtype, meta=meta, **shape)


def _on_block(X: Any, model: Any, method: str) -> NDArray[Any]:
    some = X if X.shape[0] else np.zeros((1, X.shape[1]))  # an empty block still needs a result of the right type
    return np.asarray(getattr(model, method)(some))[: X.shape[0]]


def _on_frame(frame: Any, model: Any, method: str) -> Any:
    import pandas as pd

    some = frame if len(frame) else pd.DataFrame(np.zeros((1, len(frame.columns))), columns=frame.columns)
    values = np.asarray(getattr(model, method)(some))[: len(frame)]
    if values.ndim == 1:
        return pd.Series(values, index=frame.index)
    names = _column_names(model, method, values.shape[1])
    return pd.DataFrame(values.reshape(len(values), len(names)), index=frame.index, columns=names)


def _column_names(model: Any, method: str, n: int) -> Any:
    """Return the names of the columns of a result: n, or with more than two classes n lines times classes."""
    if method == "line_log_odds":
        return range(n) if len(model.classes_) == 2 else [f"{k}: {label}" for k in range(n) for label in model.classes_]
    return model.get_feature_names_out() if method == "transform" else model.classes_
