"""The most memory that a fit of a large sparse matrix needs, from its making to the prediction of all its rows.

A matrix of 20,000 x 50,000 with 10⁷ non-zeros would take 8 GB dense; the matrix alone takes 0.12 GB sparse. The fit
runs in a process of its own, whose peak of resident memory the operating system reports.

    python benchmarks/sparse_memory.py --rows 20000 --columns 50000 --nonzeros 10000000
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import balanced_accuracy_score

from melc import MELC

AT_MOST = 2e9


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


def measure(n_rows: int, n_columns: int, n_nonzeros: int, n_init: int) -> dict[str, float]:
    """Fit and predict here; what it took."""
    X, y = sparse_data(n_rows, n_columns, n_nonzeros)
    began = time.perf_counter()
    model = MELC(n_init=n_init, random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    return {
        "nonzeros": int(X.nnz),
        "seconds": seconds,
        "divergence": float(model.divergence_),
        "balanced_accuracy": float(balanced_accuracy_score(y, model.predict(X))),
        "peak_bytes": peak_bytes(),
    }


def peak_bytes() -> int:
    """The most memory that this process ever held."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux hands the peak in ru_maxrss on from the process that started this one
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def measure_apart(n_rows: int, n_columns: int, n_nonzeros: int, n_init: int = 10) -> dict[str, float]:
    """The same in a process of its own, whose peak is that of the fit and nothing else."""
    sizes = [f"--{k}={v}" for k, v in (("rows", n_rows), ("columns", n_columns), ("nonzeros", n_nonzeros))]
    command = [sys.executable, __file__, "--here", f"--starts={n_init}", *sizes]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=50_000)
    parser.add_argument("--nonzeros", type=int, default=10_000_000)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--here", action="store_true", help="measure in this process and print JSON")
    options = parser.parse_args()
    sizes = (options.rows, options.columns, options.nonzeros, options.starts)
    if options.here:
        print(json.dumps(measure(*sizes)))
        return
    found = measure_apart(*sizes)
    print(f"{options.rows} x {options.columns}, {found['nonzeros']} non-zeros, {options.starts} starts")
    dense = options.rows * options.columns * 8
    print(f"peak memory {found['peak_bytes'] / 1e9:.2f} GB; the matrix alone, dense, would be {dense / 1e9:.1f} GB")
    print(f"{found['seconds']:.1f} s, D = {found['divergence']:.4g}")
    if found["peak_bytes"] > AT_MOST:
        sys.exit(f"More than {AT_MOST / 1e9:.0f} GB.")


if __name__ == "__main__":
    main()
