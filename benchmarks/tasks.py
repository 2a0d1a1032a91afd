"""What has to be measured in a process of its own. Run as ``python -m benchmarks.tasks NAME ARGUMENTS``.

Every task prints one line of JSON. Imports stay inside the tasks: they are part of what some of them measure.
"""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def import_time() -> dict[str, Any]:
    """Seconds that ``import melc`` takes after ``import sklearn``."""
    start = time.perf_counter()
    import sklearn  # noqa: F401

    between = time.perf_counter()
    import melc  # noqa: F401

    return {"sklearn": between - start, "melc": time.perf_counter() - between}


def first_fit(n: str) -> dict[str, Any]:
    """Seconds of the first fit in this process, with whatever compiled code the cache holds."""
    start = time.perf_counter()
    from benchmarks.measure import two_classes
    from melc import MELC

    X, y, _ = two_classes(int(n), 10)
    imported = time.perf_counter()
    MELC(random_state=0).fit(X, y)
    fitted = time.perf_counter()
    return {"fit": fitted - imported, "with_imports": fitted - start}


def compilation() -> dict[str, Any]:
    """Processor seconds that first fits of several kinds take longer than second ones, one kind after the other."""
    from benchmarks.measure import two_classes
    from melc import MELC, AdditiveMELC

    kinds = {
        "small": (MELC, two_classes(500, 5)),
        "large": (MELC, two_classes(30_000, 20)),
        "additive": (AdditiveMELC, two_classes(500, 5)),
    }
    found = {}
    for name, (kind, (X, y, _)) in kinds.items():
        moments = [time.process_time()]
        for _ in range(2):
            kind(random_state=0).fit(X, y)
            moments.append(time.process_time())
        found[name] = 2 * moments[1] - moments[0] - moments[2]
    return found


def fit_memory(path: str) -> dict[str, Any]:
    """Bytes that a fit needs at its peak beyond X, in multiples of X.

    A fit on a few rows comes first: what the compiler and its libraries keep is not the fit's. The kernel then starts
    a new high-water mark of this process's memory.
    """
    import numpy as np

    from melc import MELC

    data = np.load(path)
    X, y = data["X"], data["y"]
    chosen = np.random.default_rng(0).choice(len(y), 50_000)
    MELC(random_state=0, n_init=2).fit(X[chosen], y[chosen])
    X += 0.0  # every page in memory
    model, beyond = _fit_and_measure(X, y)
    return {"X": X.nbytes, "beyond": beyond, "ratio": beyond / X.nbytes, "D": model.divergence_}


def tails_memory(kind: str, n: str) -> dict[str, Any]:
    """Bytes that a fit on such rows needs at its peak beyond them."""
    import warnings

    from benchmarks.tails import rows_of
    from melc import MELC

    warnings.simplefilter("ignore")
    X, y = rows_of(kind, int(n))
    MELC(random_state=0, n_init=2).fit(X[:50_000], y[:50_000])
    return {"beyond": _fit_and_measure(X, y)[1]}


def _fit_and_measure(X: Any, y: Any) -> tuple[Any, int]:
    """A fitted model, and by how many bytes memory grew in between at the most."""
    from melc import MELC

    before = _memory("VmRSS")
    _RESET.write_text("5")
    model = MELC(random_state=0).fit(X, y)
    return model, _memory("VmHWM") - before


def file_memory(folder: str) -> dict[str, Any]:
    """Private memory at the peak of a fit on memory-mapped files, of which 2 GB are allowed.

    Pages of the file itself are not counted: the system drops them as it likes. The limit is enforced by the kernel
    (RLIMIT_DATA: all private writable memory, touched or not); what is reported is what was in use.
    """
    import resource
    import threading

    import numpy as np

    from melc import MELC

    limit = 2_000_000_000
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    X, y = (np.load(Path(folder) / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], _memory("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    try:
        model = MELC(random_state=0, n_init=3).fit(X, y)
    finally:
        done.set()
        watcher.join()
    return {"peak": peak[0], "seconds": time.perf_counter() - start, "D": model.divergence_, "limit": limit}


def sparse_memory(n_rows: str, n_columns: str, n_nonzeros: str, n_init: str) -> dict[str, Any]:
    """Seconds of a fit on sparse rows, and the most memory that this process ever held."""
    from sklearn.metrics import balanced_accuracy_score

    from benchmarks.sparse_memory import sparse_data
    from melc import MELC

    X, y = sparse_data(int(n_rows), int(n_columns), int(n_nonzeros))
    start = time.perf_counter()
    model = MELC(n_init=int(n_init), random_state=0).fit(X, y)
    taken = time.perf_counter() - start
    accuracy = float(balanced_accuracy_score(y, model.predict(X)))
    return {"nonzeros": int(X.nnz), "seconds": taken, "D": model.divergence_, "accuracy": accuracy, "peak": _peak()}


def read_csv(folder: str, n_columns: str) -> dict[str, Any]:
    """Seconds that reading a table takes, and the rows that it has."""
    from melc.tables import Source, read_blocks

    kinds = {f"c{j}": "number" for j in range(int(n_columns))}
    start = time.perf_counter()
    n_rows = sum(block.num_rows for block in read_blocks(Source(f"{folder}/table.csv"), kinds))
    return {"rows": n_rows, "seconds": time.perf_counter() - start, "peak": _peak()}


def predict_csv(folder: str) -> dict[str, Any]:
    """Seconds of ``melc predict``, and the rows that it wrote."""
    from melc.cli import commands, main  # noqa: F401  (imported now, not within what is measured)

    files = [f"{folder}/{name}" for name in ("model.json", "table.csv", "out.csv")]
    sys.argv = ["melc", "predict", files[0], files[1], "-o", files[2], "-f"]
    start = time.perf_counter()
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    taken = time.perf_counter() - start
    with open(files[2], "rb") as written:
        n_rows = sum(1 for _ in written) - 1
    return {"rows": n_rows, "seconds": taken, "peak": _peak()}


def _peak() -> int | None:
    """The most memory that this process ever held, where the system tells."""
    return _memory("VmHWM") if _STATUS.exists() else None


def _memory(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    if found is None:
        raise RuntimeError(f"{_STATUS} has no {field}")
    return 1024 * int(found.group(1))


_ALL = (
    import_time, first_fit, compilation, fit_memory, file_memory, tails_memory, sparse_memory, read_csv, predict_csv,
)  # fmt: skip
TASKS: dict[str, Callable[..., dict[str, Any]]] = {task.__name__: task for task in _ALL}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))
