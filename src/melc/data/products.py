"""The products Xv and Xᵀw for a range of rows, by the kernel that suits the memory layout of X."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from melc import kernels
from melc.arrays import Floats
from melc.data.passes import Passes


@dataclass(frozen=True)
class Products:
    """The two products: z = X[start:stop] v, and gradient += X[start:stop]ᵀ w.

    They are called as ``project(v, start, stop, z)`` and ``pull(w, start, stop, gradient)``.
    """

    project: Callable[[Floats, int, int, Floats], None]
    pull: Callable[[Floats, int, int, Floats], None]
    block_rows: int  # rows that are multiplied at once; zero if X cannot be read in parts
    rows: Any = None  # X, if its layout is the one that melc.kernels.passes needs; otherwise None


def products_with(X: Any, centre: Floats | None) -> Products:
    """Return the products with X − centre (or with X if ``centre`` is None) for the memory layout of X."""
    if sparse.issparse(X):
        return _sparse_products(X)
    X = np.asarray(X)  # a memory map becomes a plain array, which numba accepts
    if centre is not None:
        return Products(
            lambda v, a, b, z: kernels.project_centred(X, centre, v, a, b, z),
            lambda w, a, b, gradient: kernels.pull_centred(X, centre, w, a, b, gradient),
            block_rows=kernels.blas_block_rows(X.shape[1]),
        )
    if X.flags.c_contiguous and X.dtype == np.float64:
        return Products(
            lambda v, a, b, z: kernels.project_rows(X, v, a, b, z),
            lambda w, a, b, gradient: kernels.pull_rows(X, w, a, b, gradient),
            block_rows=2,
            rows=X,
        )
    if X.flags.f_contiguous:
        return Products(
            lambda v, a, b, z: kernels.project_columns(X.T, v, a, b, z),
            lambda w, a, b, gradient: kernels.pull_columns(X.T, w, a, b, gradient),
            block_rows=kernels.COLUMN_BLOCK,
        )
    return Products(
        lambda v, a, b, z: kernels.project_mixed(X, v, a, b, z),
        lambda w, a, b, gradient: kernels.pull_mixed(X, w, a, b, gradient),
        block_rows=kernels.blas_block_rows(X.shape[1]),
    )


def _sparse_products(X: Any) -> Products:
    """Return products that multiply the whole matrix at once, because a slice of a sparse matrix is a copy."""

    def project(v: Floats, start: int, stop: int, z: Floats) -> None:
        z[:] = X @ v

    def pull(w: Floats, start: int, stop: int, gradient: Floats) -> None:
        gradient += X.T @ w

    return Products(project, pull, block_rows=0)


def project_on(X: Any, directions: Floats, n_threads: int) -> Floats:
    """Return ``X @ directions.T``, shape (n_rows, n_directions)."""
    products = products_with(X, None)
    n_rows, n_features = X.shape
    passes = Passes(n_rows, n_features, products.block_rows, n_threads)
    z = np.empty((len(directions), n_rows))

    def project(_: None, start: int, stop: int) -> None:
        for v, along in zip(directions, z, strict=True):
            products.project(v, start, stop, along[start:stop])

    with contextlib.closing(passes):
        passes.run(lambda: None, project)
    return np.ascontiguousarray(z.T)
