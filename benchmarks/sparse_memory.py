"""The most memory that a fit of a large sparse matrix needs, from its making to the prediction of all its rows.

A matrix of 20,000 × 50,000 with 10⁷ non-zeros would take 8 GB dense; the matrix alone takes 0.12 GB sparse.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.measure import Profile, Row, benchmark, in_new_process


def sparse_data(n_rows: int, n_columns: int, n_nonzeros: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Like counts of words: the same number in every row, and a fiftieth of all columns speaks for a class."""
    rng = np.random.default_rng(seed)
    per_row = n_nonzeros // n_rows
    y = rng.integers(0, 2, size=n_rows)
    # Columns in ascending order and all different: one from every stretch of them.
    stretch = n_columns / per_row
    columns = ((np.arange(per_row) + rng.random((n_rows, per_row))) * stretch).astype(np.int32)
    telling = columns % 50 == 0
    values = rng.random((n_rows, per_row)) + telling * y[:, None]
    pointers = np.arange(0, n_rows * per_row + 1, per_row)
    X = sparse.csr_matrix((values.ravel(), columns.ravel(), pointers), shape=(n_rows, n_columns))
    return X, np.where(y == 1, "telling", "other")


@benchmark("sparse-memory")
def sparse_memory(profile: Profile) -> Iterator[Row]:
    """The whole process, with Python and compiled code."""
    n_rows, n_columns, n_nonzeros = profile.rows(20_000), 50_000, profile.rows(10_000_000)
    what = f"memory of a fit at {n_rows:,} × {n_columns:,} with {n_nonzeros:,} non-zeros"
    if not Path("/proc/self/status").exists():
        yield Row(
            "sparse-memory", what, skipped="the high-water mark of memory is read from /proc, which Linux alone has"
        )
        return
    found = in_new_process("sparse_memory", str(n_rows), str(n_columns), str(n_nonzeros), "10")
    note = f"dense it would be {8e-9 * n_rows * n_columns:.1f} GB; {found['seconds']:.1f} s, D = {found['D']:.4g}"
    yield Row("sparse-memory", what, found["peak"] / 1e9, "GB", bar=2, note=note, details=found)
