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


def _memory(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    if found is None:
        raise RuntimeError(f"{_STATUS} has no {field}")
    return 1024 * int(found.group(1))


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    task.__name__: task for task in (import_time, first_fit, fit_memory, file_memory, tails_memory)
}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))
