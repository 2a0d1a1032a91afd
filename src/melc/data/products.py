"""The products Xv and Xᵀw, and passes over the rows of X that threads share.

The rows are divided into segments, which threads work on. The number of segments depends only on the number of rows,
and their results are added in order, so the result is the same to the last bit for any number of threads. Within a
segment the rows are processed in stretches: consecutive rows whose projections fit in the cache.
"""

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from melc import kernels
from melc.arrays import Floats

T = TypeVar("T")

# The fewest rows of a segment, and the most segments: enough work for a thread, and for 64 threads.
SEGMENT_ROWS, _MAX_SEGMENTS = 65_536, 64
# Rows of a stretch: their projections and places in bins (a quarter of a megabyte) stay in the cache.
_STRETCH_ROWS = 12_288


class Passes:
    """Passes over the rows of X − centre, shape (n_rows, n_features); over those of X if ``centre`` is None.

    ``project(v, start, stop, z)`` writes z = X[start:stop] v, and ``pull(w, start, stop, gradient)`` adds
    X[start:stop]ᵀ w to the gradient, both by the kernel for the memory layout of X.
    """

    def __init__(self, X: Any, centre: Floats | None, n_threads: int) -> None:
        self.n_rows, self.n_threads = int(X.shape[0]), n_threads
        self.project, self.pull = _products_with(X, centre)
        # A sparse matrix is multiplied as a whole, because a slice of it would be a copy.
        n_segments = 1 if sparse.issparse(X) else min(_MAX_SEGMENTS, max(1, self.n_rows // SEGMENT_ROWS))
        self._stretch_rows = max(1, self.n_rows) if sparse.issparse(X) else _STRETCH_ROWS
        self._edges = [self.n_rows * i // n_segments for i in range(n_segments + 1)]
        self._pool: ThreadPoolExecutor | None = None

    def run(self, begin: Callable[[], T], step: Callable[[T, int, int], None]) -> list[T]:
        """Make a pass over all rows and return one accumulator for each segment, in order.

        Each segment creates its accumulator with ``begin()`` and calls ``step(accumulator, start, stop)`` for each of
        its stretches.
        """

        def work(start: int, stop: int) -> T:
            accumulator = begin()
            for a in range(start, stop, self._stretch_rows):
                step(accumulator, a, min(a + self._stretch_rows, stop))
            return accumulator

        if len(self._edges) == 2 or self.n_threads == 1:
            return list(itertools.starmap(work, itertools.pairwise(self._edges)))
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        return list(self._pool.map(work, self._edges[:-1], self._edges[1:]))

    def blocks(self) -> Iterator[slice]:
        """Yield slices that cover all rows."""
        for a in range(0, self.n_rows, SEGMENT_ROWS):
            yield slice(a, a + SEGMENT_ROWS)

    def close(self) -> None:
        """Shut down the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def _products_with(X: Any, centre: Floats | None) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return the functions ``project`` and ``pull`` of :class:`Passes`."""
    bind = functools.partial
    if sparse.issparse(X):
        return bind(_project_sparse, X), bind(_pull_sparse, X)
    X = np.asarray(X)  # a memory map becomes a plain array, which numba accepts
    if centre is None and X.flags.c_contiguous and X.dtype == np.float64:
        return bind(kernels.project_rows, X), bind(kernels.pull_rows, X)
    if centre is None and X.flags.f_contiguous:
        return bind(kernels.project_columns, X.T), bind(kernels.pull_columns, X.T)
    centre = np.zeros(X.shape[1]) if centre is None else centre
    return bind(kernels.project_centred, X, centre), bind(kernels.pull_centred, X, centre)


def _project_sparse(X: Any, v: Floats, start: int, stop: int, z: Floats) -> None:
    z[:] = X @ v


def _pull_sparse(X: Any, w: Floats, start: int, stop: int, gradient: Floats) -> None:
    gradient += X.T @ w


def add_up(parts: Iterable[T]) -> T:
    """Return the sum of the parts, added in their order. The first part may be modified."""
    return functools.reduce(operator.iadd, parts)


def project_on(X: Any, directions: Floats, n_threads: int) -> Floats:
    """Return ``X @ directions.T``, shape (n_rows, n_directions)."""
    z = np.empty((len(directions), X.shape[0]))

    def project(_: None, start: int, stop: int) -> None:
        for v, along in zip(directions, z, strict=True):
            passes.project(v, start, stop, along[start:stop])

    with contextlib.closing(Passes(X, None, n_threads)) as passes:
        passes.run(lambda: None, project)
    return np.ascontiguousarray(z.T)
