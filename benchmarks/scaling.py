"""Data that outgrow one machine: rounds over worker processes, and a file larger than the memory allowed."""

import itertools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Profile, Row, benchmark, in_new_process, seconds, two_classes
from melc import MELC
from melc.objective.moments import MomentsDivergence

EPS = 1e-6
N_PARTITIONS = 16


def rows_in_file(folder: Path, n: int, n_features: int = 10) -> tuple[Path, Path]:
    """Two overlapping classes as float32 and int8 files, written in pieces."""
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, n_features))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int8, (n,))
    for start in range(0, n, 1_000_000):
        stop = min(start + 1_000_000, n)
        X[start:stop], y[start:stop], _ = two_classes(stop - start, n_features, seed=start)
    X.flush()
    y.flush()
    return folder / "X.npy", folder / "y.npy"


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """Worker processes of one thread each, on loopback."""
    from distributed import Client, LocalCluster

    options = {"processes": True, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, **options) as here, Client(here) as client:
        yield client


def lazily(X: Path, y: Path, n_partitions: int) -> tuple[Any, Any]:
    """The files as Dask arrays; every partition is read by the worker that gets it."""
    import dask
    import dask.array as da

    def part(path: Path, start: int, stop: int) -> np.ndarray:
        return np.array(np.load(path, mmap_mode="r")[start:stop])

    shape = np.load(X, mmap_mode="r").shape
    edges = [shape[0] * i // n_partitions for i in range(n_partitions + 1)]
    found = []
    for path, columns, dtype in ((X, shape[1:], np.float32), (y, (), np.int8)):
        blocks = [
            da.from_delayed(dask.delayed(part)(path, a, b), (b - a, *columns), dtype)
            for a, b in itertools.pairwise(edges)
        ]
        found.append(da.concatenate(blocks))
    return found[0], found[1]


def note_durations() -> None:
    """Run on a worker: from now on it keeps how long its tasks of rounds compute."""
    from melc.data.dask import partitions

    work, partitions.durations = partitions._work, []

    def timed(*arguments: Any) -> Any:
        start = time.perf_counter()
        result = work(*arguments)
        partitions.durations.append(time.perf_counter() - start)
        return result

    partitions._work = timed


def noted_durations() -> list[float]:
    from melc.data.dask import partitions

    return partitions.durations


@benchmark("dask-overhead")
def overhead(profile: Profile) -> Iterator[Row]:
    """An evaluation on two worker processes beyond what the slower worker computes in each of its rounds.

    Between evaluations, a round in which there is nothing to do.
    """
    from melc.data.dask import rows as dask_rows

    n, repeats = profile.rows(1_600_000), profile.rounds(60)
    v = two_classes(1000, 10)[2]
    with tempfile.TemporaryDirectory() as folder, cluster(2) as client:
        X, y = lazily(*rows_in_file(Path(folder), n), N_PARTITIONS)
        rows = dask_rows.collect_partitions(X, y, None, few=lambda *_: False).rows
        divergence, whole, empty = MomentsDivergence(rows, 1.0, EPS), [], []
        divergence.evaluate(v)
        client.run(note_durations)
        for _ in range(repeats):
            empty.append(seconds(lambda: rows._round("weights_and_step")))  # next to nothing to do
            whole.append(seconds(lambda: divergence.evaluate(v)))
        slower = np.max(list(client.run(noted_durations).values()), axis=0)
    by_round = slower.reshape(repeats, -1)
    beyond = whole - by_round[:, 1:].sum(axis=1)
    best = int(np.argmin(beyond))
    what = f"overhead of an evaluation, 2 workers, {N_PARTITIONS} partitions, {n:,} × 10"
    note = (
        f"best of {repeats}, of {1e3 * whole[best]:.0f} ms; median {1e3 * np.median(beyond):.1f} ms of "
        f"{1e3 * np.median(whole):.0f} ms; rounds: {by_round.shape[1] - 1}, one with nothing to do takes "
        f"{1e3 * np.min(empty):.1f} ms, median {1e3 * np.median(empty):.1f} ms"
    )
    yield Row("dask-overhead", what, 1e3 * float(beyond[best]), "ms", bar=25, note=note)


@benchmark("dask-workers")
def workers(profile: Profile) -> Iterator[Row]:
    """The same fit with one worker process and with two, one thread each."""
    n = profile.rows(40_000_000)
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        files = rows_in_file(Path(folder), n)
        for n_workers in (1, 2):
            with cluster(n_workers):
                X, y = (each.persist() for each in lazily(*files, N_PARTITIONS))
                MELC(random_state=0, n_init=1).fit(X[: X.chunks[0][0]], y[: X.chunks[0][0]])  # compiles
                start = time.perf_counter()
                model = MELC(random_state=0, n_init=3).fit(X, y)
                times[n_workers] = time.perf_counter() - start
    note = f"{times[2]:.1f} s against {times[1]:.1f} s; {model.result_.n_evaluations} evaluations on all rows"
    what = f"fit at {n:,} × 10 float32, 2 workers / 1 worker"
    yield Row("dask-workers", what, times[2] / times[1], bar=0.75, note=note, details={"seconds": times})


@benchmark("larger-than-memory")
def larger_than_memory(profile: Profile) -> Iterator[Row]:
    """A memory-mapped file that is trained on with less memory than it is long."""
    n = profile.rows(100_000_000)
    what = f"memory of a fit on a file of {n:,} × 10 float32"
    if not Path("/proc/self/status").exists():
        yield Row("larger-than-memory", what, skipped="anonymous memory is read from /proc, which Linux alone has")
        return
    with tempfile.TemporaryDirectory() as folder:
        X, _ = rows_in_file(Path(folder), n)
        size = X.stat().st_size
        found = in_new_process("file_memory", folder)
    note = (
        f"file of {size / 1e9:.2g} GB, {found['seconds']:.0f} s, D = {found['D']:.4g}, limit enforced on private memory"
    )
    yield Row("larger-than-memory", what, found["peak"] / 1e9, "GB", bar=2, note=note, details=found)
