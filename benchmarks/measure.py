"""How things are measured, and what a measurement is."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Profile:
    """How much to measure: everything, or a tenth of the rows in a fraction of the time to see that all works."""

    quick: bool = False

    def rows(self, n: int) -> int:
        return max(n // 10, 100) if self.quick else n

    def rounds(self, n: int) -> int:
        return min(n, 2) if self.quick else n


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ``bar`` is what has to hold and ``goal`` what would be better still: upper limits, or lower ones where
    ``more_is_better``. A row that could not be measured has no value but a reason: ``skipped`` where something is
    not at hand, ``broken`` where the measurement itself failed.
    """

    name: str
    what: str
    value: float = math.nan
    unit: str = "×"
    bar: float | None = None
    goal: float | None = None
    more_is_better: bool = False
    note: str = ""
    skipped: str = ""
    broken: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def reaches(self, limit: float | None) -> bool | None:
        """Whether the value is as good as a limit; None where there is nothing to compare."""
        if limit is None or math.isnan(self.value):
            return None
        return self.value >= limit if self.more_is_better else self.value <= limit


Benchmark = Callable[[Profile], Iterable[Row]]
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Register a benchmark under a name that ``--only`` knows."""

    def register(function: Benchmark) -> Benchmark:
        BENCHMARKS[name] = function
        return function

    return register


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def race(
    sides: dict[str, Callable[[], Any]], rounds: int, least_seconds: float = 0.0, warm: bool = True
) -> dict[str, float]:
    """The best time of every side in seconds; the sides take turns, after one turn that does not count.

    Sides that are done in less than ``least_seconds`` are repeated within a turn until that much time has passed, for
    what takes microseconds cannot be timed once.
    """
    repeats = dict.fromkeys(sides, 1)
    if warm:
        for name, side in sides.items():
            side()
            repeats[name] = max(1, math.ceil(least_seconds / max(seconds(side), 1e-7)))
    best = dict.fromkeys(sides, math.inf)
    for _ in range(rounds):
        for name, side in sides.items():
            best[name] = min(best[name], _mean_seconds(side, repeats[name]))
    return best


def _mean_seconds(action: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - start) / repeats


def one_thread() -> threadpool_limits:
    """BLAS and OpenMP held to one thread, as a context."""
    return threadpool_limits(1)


def two_classes(n: int, n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, class codes and a direction: overlapping normal classes, one of them with two clusters.

    Filled in pieces, so that large data need no second copy while they are made.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((n, n_features))
    codes = np.empty(n, dtype=np.int8)
    for start in range(0, n, 1_000_000):
        block = X[start : start + 1_000_000]
        codes[start : start + len(block)] = rng.integers(0, 2, len(block))
        rng.standard_normal(out=block)
        block[:, 0] += codes[start : start + len(block)] * rng.choice([-1.5, 2.0], len(block))
    v = rng.normal(size=n_features)
    v[0] = 2
    return X, codes, v / np.linalg.norm(v)


def in_new_process(task: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a function of benchmarks.tasks in a fresh Python; what it returns comes back as JSON."""
    command = [sys.executable, "-m", "benchmarks.tasks", task, *arguments]
    source = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    settings = {**os.environ, "PYTHONPATH": source, **environment}
    found = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=900, check=False)
    if found.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{found.stderr[-2000:]}")
    return dict(json.loads(found.stdout.splitlines()[-1]))
