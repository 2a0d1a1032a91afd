"""One evaluation of the divergence and its gradient: against the two products with X, and against all pairs."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.measure import Profile, Row, benchmark, one_thread, race, two_classes
from melc.data.memory import MemoryRows
from melc.objective import Objective
from melc.objective.moments import MomentsDivergence

EPS = 1e-6


def _against_products(n: int, n_features: int, rounds: int) -> tuple[float, dict[str, Any]]:
    """Time of an evaluation over that of X @ v and X.T @ w, one thread each."""
    X, codes, v = two_classes(n, n_features)
    w = np.random.default_rng(0).normal(size=n)
    divergence = MomentsDivergence(MemoryRows(X, codes), 1.0, EPS)
    with one_thread():
        best = race({"products": lambda: (X @ v, X.T @ w), "evaluation": lambda: divergence.evaluate(v)}, rounds)
    details = {"seconds": best, "rows": n, "features": n_features, "certified": divergence.evaluate(v).error}
    return best["evaluation"] / best["products"], details


@benchmark("evaluation")
def evaluation(profile: Profile) -> Iterator[Row]:
    """Value and gradient, certified to 1e-6, against X @ v and X.T @ w."""
    for n, n_features, bar, goal in ((1_000_000, 20, 1.4, 1.15), (300_000, 100, 1.15, 1.0)):
        ratio, details = _against_products(profile.rows(n), n_features, profile.rounds(15))
        note = f"{1e3 * details['seconds']['evaluation']:.1f} ms, certified {details['certified']:.0e}"
        what = f"evaluation at {profile.rows(n):,} × {n_features} / (X @ v + X.T @ w)"
        yield Row(f"evaluation-{n_features}", what, ratio, bar=bar, goal=goal, note=note, details=details)


@benchmark("features")
def features(profile: Profile) -> Iterator[Row]:
    """The same for few features and many, at equal size of X."""
    for n_features in (2, 5, 10, 50, 200):
        n = profile.rows(20_000_000 // max(n_features, 10))
        ratio, details = _against_products(n, n_features, profile.rounds(7))
        what = f"evaluation at {n:,} × {n_features} / (X @ v + X.T @ w)"
        yield Row(f"features-{n_features}", what, ratio, details=details)


@benchmark("threads")
def threads(profile: Profile) -> Iterator[Row]:
    """What a second thread brings."""
    X, codes, v = two_classes(profile.rows(1_000_000), 20)
    rows = [MemoryRows(X, codes, n_threads=k) for k in (1, 2)]
    one, two = (MomentsDivergence(each, 1.0, EPS) for each in rows)
    with one_thread():
        best = race({"one": lambda: one.evaluate(v), "two": lambda: two.evaluate(v)}, profile.rounds(15))
    for each in rows:
        each.close()
    what = f"evaluation at {len(X):,} × 20: one thread / two"
    yield Row("threads", what, best["one"] / best["two"], more_is_better=True, details={"seconds": best})


@benchmark("growth")
def growth(profile: Profile) -> Iterator[Row]:
    """Time per row and evaluation at ten times the rows. Twice the memory of 10⁷ × 10 numbers is needed."""
    large, codes, v = two_classes(profile.rows(10_000_000), 10)
    n = len(codes) // 10
    sides = {
        "large": MomentsDivergence(MemoryRows(large, codes), 1.0, EPS),
        "small": MomentsDivergence(MemoryRows(large[:n], codes[:n]), 1.0, EPS),
    }
    with one_thread():
        best = race({name: functools.partial(side.evaluate, v) for name, side in sides.items()}, profile.rounds(5))
    what = f"seconds per row at {len(codes):,} × 10 / at {n:,} × 10"
    yield Row("growth", what, best["large"] / best["small"] / 10, bar=1.3, goal=1.1, details={"seconds": best})


@benchmark("gaps")
def gaps(profile: Profile) -> Iterator[Row]:
    """Classes that lie apart against classes that overlap: thin tails at the gap, sharp edges, crowds at few places."""
    n = profile.rows(1_000_000)
    rng = np.random.default_rng(0)
    codes = (np.arange(n) % 2).astype(np.int8)
    v = np.eye(10)[0]
    rows = {
        "overlapping": rng.normal(size=(n, 10)) + codes[:, None],
        "tails": rng.normal(size=(n, 10)) + 15 * codes[:, None],
        "edges": rng.random(size=(n, 10)) + 1.5 * codes[:, None],
        "crowds": rng.integers(3, size=(n, 10)) + 4.0 * codes[:, None],
    }
    divergences = {kind: MomentsDivergence(MemoryRows(X, codes), 1.0, EPS) for kind, X in rows.items()}
    with one_thread():
        sides = {kind: functools.partial(each.evaluate, v) for kind, each in divergences.items()}
        best = race(sides, profile.rounds(7))
    for kind in ("tails", "edges", "crowds"):
        what = f"evaluation at {n:,} × 10, {kind} at a gap / overlapping"
        note = f"{1e3 * best[kind]:.1f} ms"
        yield Row(f"gaps-{kind}", what, best[kind] / best["overlapping"], note=note, details={"seconds": best})


class _Sketched(MemoryRows):
    """Rows that bring bins that do in any case."""

    remembers, sketches = False, True


@benchmark("sketch")
def sketch(profile: Profile) -> Iterator[Row]:
    """Bins that do in any case against bins that a sample chose; projections are kept in neither case."""
    rng = np.random.default_rng(0)
    kinds = {"40": (500_000, 40, 0.1), "100": (300_000, 100, 0.1), "100 apart": (300_000, 100, 2.0)}
    for kind, (size, n_features, apart) in {
        **kinds,
        "400": (75_000, 400, 0.1),
        "sparse": (300_000, 20_000, 0.1),
    }.items():
        n = profile.rows(size)
        codes = (np.arange(n) % 2).astype(np.int8)
        if kind == "sparse":
            X = sparse.random_array((n, n_features), density=50 / n_features, format="csr", rng=rng)
        else:
            X = rng.standard_normal((n, n_features), dtype=np.float32) + np.float32(apart) * codes[:, None]
        v = rng.normal(size=n_features) + 1
        sides = {"bins": MemoryRows(X, codes, keep=False), "sketch": _Sketched(X, codes, keep=False)}
        divergences = {name: MomentsDivergence(rows, 1.0, EPS) for name, rows in sides.items()}
        with one_thread():
            calls = {name: functools.partial(each.evaluate, v) for name, each in divergences.items()}
            best = race(calls, profile.rounds(7))
        what = f"evaluation at {n:,} × {n_features:,}{' apart' if apart > 1 else ''}, by a sketch / by bins"
        note = f"{1e3 * best['sketch']:.1f} ms"
        name = f"sketch-{kind.replace(' ', '-')}"
        yield Row(name, what, best["sketch"] / best["bins"], note=note, details={"seconds": best})


def _against_exact(n: int, rounds: int) -> dict[str, float]:
    X, codes, v = two_classes(n, 10)
    exact, moments = (Objective(MemoryRows(X, codes), method=method, eps=EPS) for method in ("exact", "moments"))
    with one_thread():
        return race({"exact": lambda: exact.evaluate(v), "moments": lambda: moments.evaluate(v)}, rounds, 2e-3)


@benchmark("pairs")
def pairs(profile: Profile) -> Iterator[Row]:
    """Moment bins against the compiled sum over all pairs, where pairs are many and where they are few."""
    best = _against_exact(10_000, profile.rounds(7))
    what = "all pairs / moment bins at 10,000 × 10"
    ratio = best["exact"] / best["moments"]
    yield Row("pairs-10000", what, ratio, bar=50, goal=200, more_is_better=True, details={"seconds": best})
    for n in (200, 300, 500, 700, 1000):
        best = _against_exact(n, profile.rounds(25))
        note = f"{1e6 * best['moments']:.0f} µs"
        what = f"moment bins / all pairs at {n} × 10"
        ratio = best["moments"] / best["exact"]
        yield Row(f"pairs-{n}", what, ratio, bar=1.2, note=note, details={"seconds": best})
        if n == 300:
            yield Row("small-evaluation", "one evaluation at 300 × 10", 1e6 * best["moments"], "µs", bar=100)
