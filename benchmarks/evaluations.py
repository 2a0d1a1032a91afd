"""One evaluation of the divergence and its gradient: against the two products with X, and against all pairs."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Profile, Row, benchmark, one_thread, race, two_classes
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.objective import Objective
from melc.objective.moments import MomentsDivergence
from melc.sums import Exact

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


def _broadcast(x: Floats, y: Floats, variance: float) -> tuple[float, Floats, Floats]:
    """log S and its derivatives with tables of all pairs, as one would write it in NumPy."""
    difference = x[:, None] - y[None, :]
    terms = np.exp(difference**2 * (-0.5 / variance))
    total = terms.sum()
    terms *= difference
    slopes = -terms.sum(axis=1) / (variance * total), terms.sum(axis=0) / (variance * total)
    return float(np.log(total)), *slopes


@benchmark("exact-sum")
def exact_sum(profile: Profile) -> Iterator[Row]:
    """The compiled sum over all pairs with its derivatives against NumPy's broadcasting; one thread each."""
    n, variance, method = 2000, 0.1, Exact()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=n), rng.normal(size=n) + 1
    sides = [method.prepare(z, np.ones(n), label) for label, z in enumerate((x, y))]
    found = method.across(sides[0], sides[1], variance)
    for mine, theirs in zip((found.log_value, found.dx, found.dy), _broadcast(x, y, variance), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-14)
    with one_thread():
        best = race(
            {
                "numpy": lambda: _broadcast(x, y, variance),
                "compiled": lambda: method.across(sides[0], sides[1], variance),
            },
            profile.rounds(15),
        )
    what = f"sum over {n:,} × {n:,} pairs with derivatives: NumPy / compiled"
    ratio, note = best["numpy"] / best["compiled"], f"{1e3 * best['compiled']:.1f} ms"
    yield Row("exact-sum", what, ratio, bar=5, more_is_better=True, note=note, details={"seconds": best})
