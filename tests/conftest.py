"""One way to run tests: property tests repeatable and without a deadline that compilation would miss; interrupts heard.

A shell that runs tests in the background has them ignore interrupts, and the processes that they start with them.
Tests that ask for a browser are marked so. Those of queries run them on three databases.
"""

import os
import signal
from functools import partial

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Their tests need terminals, named pipes, modes of files and signals between processes, which Windows does not have.
POSIX_ONLY = ["cli", "cli_output", "data_dask_workers", "files", "inference_parallel", "interrupts"]
collect_ignore = [f"test_{name}.py" for name in POSIX_ONLY] if os.name == "nt" else []


@pytest.fixture
def general_way(monkeypatch):
    """Fits search as they do where the grid cannot: with certified sums throughout, and sparse rows as they are."""
    monkeypatch.setattr("melc.fit.search.Settings.has_grid", False)
    monkeypatch.setattr("melc.fit.intake._WORTH_DENSE", 0)


def pytest_sessionstart():
    """Two processes share the compiling of what most tests need: each finds on disk what the other has compiled."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker not in ("gw0", "gw1") or os.environ.get("NUMBA_DISABLE_JIT"):
        return
    import numpy as np

    from melc import MELC, AdditiveMELC, kernels

    y = np.repeat([0, 1], 30)
    X = np.random.default_rng(0).normal(size=(60, 3)) + y[:, None]
    if worker == "gw0":  # the largest kernel, in both precisions
        for dtype in (np.float32, np.float64):
            ones = np.ones(60, dtype)
            kernels.grid_divergence(X[:, 0].astype(dtype), 30, ones, np.full(2, 30.0), np.full(2, 0.2), ones.copy())
    else:  # that kernel is on disk by the time that the second fit needs it
        MELC(method="exact", n_init=1, random_state=0).fit(X, y)
        AdditiveMELC(max_lines=2, random_state=0).fit(X, y)


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module", params=["SQLite", "DuckDB", "PostgreSQL"])
def run(request):
    """A function that returns the rows of a query on a table with the rows of a frame, in their order."""
    import postgresql
    from export_cases import run_duckdb, run_sql

    if request.param == "PostgreSQL":
        with postgresql.server() as run_script:
            yield partial(postgresql.run_on, run_script)
    else:
        yield {"SQLite": run_sql, "DuckDB": run_duckdb}[request.param]
