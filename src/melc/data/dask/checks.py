"""Checks of Dask collections that need none of their rows. Nothing here imports Dask."""

from typing import Any

import numpy as np


def is_array(collection: Any) -> bool:
    return hasattr(collection, "rechunk")


def is_dask_frame(collection: Any) -> bool:
    return hasattr(collection, "map_partitions") and hasattr(collection, "divisions")


def n_features_of(X: Any) -> int:
    return int(X.shape[1]) if is_array(X) else len(X.columns)


def dtype_of(X: Any) -> Any:
    dtypes = [X.dtype] if is_array(X) else list(X.dtypes)
    return np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64


def _check_numbers(X: Any) -> None:
    """Raise an error if a column of a frame cannot hold numbers; a column of Python objects can."""
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if not (isinstance(dtype, np.dtype) and dtype.kind in "iufbO") and not getattr(dtype, "_is_numeric", False):
            raise ValueError(
                f"Column {name!r} has the type {dtype}, but Dask collections must hold numbers. Encode or drop it, or "
                "bring the data into memory, where texts, dates and categories are taken: X, y = dask.compute(X, y)"
            )


def check_alike(X: Any, y: Any, sample_weight: Any) -> None:
    """Raise an error unless X, y and sample_weight are Dask collections divided into partitions in the same way."""
    for name, each in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        if each is not None and not (is_array(each) or is_dask_frame(each)):
            raise TypeError(
                f"{name} is a {type(each).__name__}, but X, y and sample_weight must all be Dask arrays, dataframes or "
                f"series if one of them is. {_in_dask(name, X, each)}"
            )
    if is_array(X):
        check_chunks(X)
    elif not hasattr(X, "columns"):
        raise ValueError("X is a series; pass a dataframe: X = X.to_frame()")
    else:
        _check_numbers(X)
    for name, each in (("y", y), ("sample_weight", sample_weight)):
        if each is not None:
            _check_same_partitions(X, name, each)


def _in_dask(name: str, X: Any, each: Any) -> str:
    if name == "X":
        return "Load the others into memory: y = y.compute()"
    chunks = "X.chunks[0]" if is_array(X) else "..."
    return f"Use the chunks of X: {name} = da.from_array({name}, chunks={chunks})"


def check_chunks(X: Any, known: bool = True) -> None:
    """Raise an error unless X has two dimensions and whole rows in its chunks, of known size if ``known``."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions, not 2. Reshape it: X = X.reshape(-1, n_features)")
    if X.numblocks[1] > 1:
        raise ValueError(
            f"X has {X.numblocks[1]} chunks along the columns, but each chunk must hold whole rows: "
            "X = X.rechunk({1: -1})"
        )
    if known and np.isnan(X.chunks[0]).any():
        raise ValueError("X has chunks of unknown size. Compute the sizes: X = X.compute_chunk_sizes()")


def _check_same_partitions(X: Any, name: str, other: Any) -> None:
    if is_array(X) and is_array(other):
        if np.isnan(other.chunks[0]).any():
            line = f"{name} = {name}.compute_chunk_sizes()"
            raise ValueError(f"{name} has chunks of unknown size. Compute the sizes: {line}")
        if X.shape[0] != other.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {other.shape[0]}.")
        if X.chunks[0] != other.chunks[0]:
            line = f"{name} = {name}.rechunk({{0: X.chunks[0]}})"
            raise ValueError(f"X and {name} have different chunks along the rows. Use the chunks of X: {line}")
    elif X.npartitions != other.npartitions:
        raise ValueError(
            f"X has {X.npartitions} partitions and {name} has {other.npartitions}. Take both from the same dataframe: "
            f"X, {name} = df[features], df[column]"
        )
