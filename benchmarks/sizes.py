"""Fits at the sizes that people have, beside logistic regression; several classes; and the public divergence."""

import statistics
import time
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression

from benchmarks.measure import Profile, Row, benchmark, race
from melc import MELC, cauchy_schwarz_divergence

# Rows and features, and what the ratio to logistic regression has to be at most, and should be.
_SIZES = (
    (300, 10, 2.0, 1.0),
    (1_000, 20, 2.5, 1.0),
    (3_000, 20, 3.5, 1.3),
    (10_000, 20, 4.0, 1.3),
    (30_000, 20, 5.0, 1.8),
    (100_000, 20, 4.0, 1.2),
    (1_000_000, 20, 1.2, 0.5),
    (20_000, 200, 2.5, 1.0),
    (2_000, 1_000, 3.0, 1.3),
    (50_000, 500, 4.5, 1.5),
)
_DRAWS = 3


@benchmark("sizes")
def sizes(profile: Profile) -> Iterator[Row]:
    """``MELC().fit`` over ``LogisticRegression(max_iter=1000).fit``: the median over three draws, in turns."""
    for n, d, bar, goal in _SIZES:
        rows = profile.rows(n)
        found = [_fits(rows, d, seed, profile) for seed in range(_DRAWS if n < 10**6 else 1)]
        ratio = statistics.median(melc / logistic for melc, logistic, _ in found)
        melc, logistic = (statistics.median(each[k] for each in found) for k in (0, 1))
        divergences = ", ".join(f"{each[2]:.4f}" for each in found)
        note = f"{1e3 * melc:.1f} ms against {1e3 * logistic:.1f} ms; D = {divergences}"
        what = f"fit at {rows:,} × {d} / LogisticRegression(max_iter=1000).fit"
        yield Row(f"size-{n}x{d}", what, ratio, bar=bar, goal=goal, note=note, details={"draws": found})


def _fits(n: int, d: int, seed: int, profile: Profile) -> tuple[float, float, float]:
    """Return the seconds of the two fits, each the median of several in turns, and the divergence reached."""
    X, y = make_classification(
        n, d, n_informative=min(10, d // 2 + 1), n_clusters_per_class=3, class_sep=0.7, random_state=seed
    )
    model, logistic = MELC(random_state=0), LogisticRegression(max_iter=1000)
    model.fit(X, y)  # compiled
    rounds = profile.rounds(15 if n * d <= 20_000 else 7 if n * d <= 1_000_000 else 3)
    taken: dict[str, list[float]] = {"melc": [], "logistic": []}
    for _ in range(rounds):
        for name, estimator in (("melc", model), ("logistic", logistic)):
            start = time.perf_counter()
            estimator.fit(X, y)
            taken[name].append(time.perf_counter() - start)
    return statistics.median(taken["melc"]), statistics.median(taken["logistic"]), float(model.divergence_)


@benchmark("digits")
def digits(profile: Profile) -> Iterator[Row]:
    """Ten classes."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    sides = {
        "logistic": lambda: LogisticRegression(max_iter=1000).fit(X, y),
        "melc": lambda: MELC(random_state=0).fit(X, y),
    }
    best = race(sides, profile.rounds(4))
    note = f"{best['melc']:.2f} s against {best['logistic']:.2f} s"
    what = "fit of ten classes, digits / LogisticRegression(max_iter=1000).fit"
    yield Row("digits", what, best["melc"] / best["logistic"], bar=1.5, goal=0.5, note=note)


@benchmark("public-divergence")
def public_divergence(profile: Profile) -> Iterator[Row]:
    """``cauchy_schwarz_divergence`` with its gradient, against the two products with X that it takes."""
    rng = np.random.default_rng(0)
    y = np.arange(profile.rows(10**6)) % 2
    X = rng.normal(size=(len(y), 20)) + y[:, None]
    v = rng.normal(size=20)
    sides = {
        "products": lambda: (X @ v) @ X,
        "divergence": lambda: cauchy_schwarz_divergence(X, y, v, method="moments", return_gradient=True),
    }
    best = race(sides, profile.rounds(9))
    what = f"cauchy_schwarz_divergence with gradient at {len(y):,} × 20 / two products"
    yield Row("public-divergence", what, best["divergence"] / best["products"], bar=2.0, details={"seconds": best})
