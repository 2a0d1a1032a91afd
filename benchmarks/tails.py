"""Heavy tails and outliers against normal data: time and memory of a whole fit."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import Profile, Row, benchmark, in_new_process, race
from melc import MELC

KINDS = ("cauchy", "lognormal", "outlier")


def rows_of(kind: str, n: int, n_features: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap, with tails of a kind; an outlier is one value of 10¹²."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.standard_cauchy(size=(n, n_features)) if kind == "cauchy" else rng.normal(size=(n, n_features))
    if kind == "lognormal":
        X = np.exp(3 * X)
    X[:, 0] += y
    if kind == "outlier":
        X[n // 2, 0] = 1e12
    return X, y


@benchmark("tails")
def tails(profile: Profile) -> Iterator[Row]:
    n = profile.rows(200_000)
    data = {kind: rows_of(kind, n) for kind in ("normal", *KINDS)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of outliers the model warns, rightly
        sides = {kind: (lambda pair=pair: MELC(random_state=0).fit(*pair)) for kind, pair in data.items()}
        best = race(sides, profile.rounds(3))
    for kind in KINDS:
        what = f"fit on {n:,} × 10 rows, {kind} / normal"
        yield Row(f"tails-{kind}", what, best[kind] / best["normal"], bar=10, note=f"{best[kind]:.2f} s")
    if not Path("/proc/self/clear_refs").exists():
        yield Row("tails-memory", "peak memory", skipped="the high-water mark of memory is read from /proc")
        return
    beyond = {kind: in_new_process("tails_memory", kind, str(n))["beyond"] for kind in data}
    for kind in KINDS:
        what = f"peak memory of that fit beyond X, {kind} / normal"
        note = f"{beyond[kind] / 1e6:.0f} MB"
        yield Row(f"tails-memory-{kind}", what, beyond[kind] / beyond["normal"], bar=10, note=note)
