"""How often the 90 % intervals of ``melc.inference.bootstrap`` contain the truth: ``python -m benchmarks.coverage``.

Data are drawn many times from known populations. The truth of weights, thresholds and divergence is that of the
optimum on a very large sample with the bandwidths of the small ones; of the accuracy, that of the fitted model on many
fresh rows. Prints a table for the page of the guide on intervals.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.metrics import balanced_accuracy_score

from melc import MELC, AdditiveMELC
from melc.inference import bootstrap
from melc.inference.alignment import Lines

LARGE, FRESH = 400_000, 40_000


def linear(rng: Any, n: int) -> tuple[Any, Any]:
    """Two classes with different means; four features of very different units, one of them noise."""
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, 4))
    X[:, :2] += np.outer(y, [1.2, 0.8])
    X[:, 2] += 0.5 * X[:, 0]
    return X * [1, 10, 0.1, 1] + [0, 30, 0, 2], y


def band(rng: Any, n: int) -> tuple[Any, Any]:
    """One class on both sides of the other, with a soft transition."""
    X = rng.normal(size=(n, 4))
    z = X @ [0.7, 0.5, 0.5, 0.1]
    return X, (rng.random(n) < 1 / (1 + np.exp(-4 * (np.abs(z - 0.1) - 0.7)))).astype(int)


def clusters(rng: Any, n: int) -> tuple[Any, Any]:
    """A class of two clusters with the other between them, at a quarter of the rows."""
    y = (rng.permutation(np.arange(n) % 4) == 0).astype(int)
    X = rng.normal(size=(n, 3))
    X += np.outer(np.where(y == 1, np.where(rng.random(n) < 0.5, -2.5, 2.2), 0), [0.8, -0.6, 0])
    return X, y


def wide(rng: Any, n: int) -> tuple[Any, Any]:
    """Ten features, seven of them noise."""
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, 10))
    X[:, :3] += np.outer(y, [1.0, 0.8, 0.5])
    X[:, 5] += X[:, 0]
    return X, y


def single(rng: Any, n: int) -> tuple[Any, Any]:
    """Only one feature of four matters, so that its weight is the whole direction."""
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 2 * y
    return X, y


def three(rng: Any, n: int) -> tuple[Any, Any]:
    """Three classes, one direction for each."""
    y = rng.permutation(np.arange(n) % 3)
    return rng.normal(size=(n, 3)) + np.array([[0, 0, 0.3], [2.2, 0.5, 0], [0.4, 2.4, 0.3]])[y], y


@dataclass(frozen=True)
class Case:
    """A population, the number of rows drawn from it, and the model."""

    draw: Callable[[Any, int], tuple[Any, Any]]
    n_rows: int
    additive: bool = False

    @property
    def name(self) -> str:
        return self.draw.__name__ + (", additive" if self.additive else "")

    def model(self, seed: int) -> Any:
        return AdditiveMELC(random_state=seed) if self.additive else MELC(random_state=seed, n_jobs=1)


CASES = [Case(linear, 300), Case(band, 300), Case(clusters, 400), Case(wide, 200), Case(single, 300), Case(three, 300)]
CASES += [Case(band, 300, additive=True)]


@dataclass(frozen=True)
class Truth:
    """The model of a very large sample, at the bandwidths of a small one, and fresh rows."""

    model: Any
    fresh: tuple[Any, Any]

    @classmethod
    def of(cls, case: Case, large: int = LARGE) -> "Truth":
        gamma = (large / case.n_rows) ** 0.2  # Silverman's bandwidth falls with this power of the number of rows
        X, y = case.draw(np.random.default_rng(10**6), large)
        model = None if case.additive else MELC(gamma=gamma, selection="divergence", random_state=0).fit(X, y)
        return cls(model, case.draw(np.random.default_rng(10**6 + 1), FRESH))


def contained(case: Case, truth: Truth, seed: int, n: int) -> dict[str, list[bool]]:
    """Whether the intervals of one sample contain the truth."""
    X, y = case.draw(np.random.default_rng(seed), case.n_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.model(seed).fit(X, y)
        found = bootstrap(model, X, y, n=n, random_state=seed)
    X_fresh, y_fresh = truth.fresh
    accuracy = balanced_accuracy_score(y_fresh, model.predict(X_fresh))
    inside = {"accuracy": [found.accuracy.low <= accuracy <= found.accuracy.high]}
    if truth.model is None:
        return inside
    aligned = [line for line in Lines.of(model, X, np.ones(len(X))).aligned(truth.model) if line is not None]
    weights = np.array([line.coef for line in aligned])
    inside["weights"] = _inside(weights, found.coef.low, found.coef.high).ravel().tolist()
    inside["divergence"] = np.atleast_1d(
        _inside(truth.model.divergence_, found.divergence.low, found.divergence.high)
    ).tolist()
    inside["thresholds"] = [
        bool(interval.low <= value <= interval.high)
        for line, intervals in zip(aligned, found.thresholds, strict=True)
        for value, interval in zip(line.thresholds, intervals, strict=True)
        if np.isfinite(value)
    ]
    return inside


def _inside(value: Any, low: Any, high: Any) -> Any:
    return (low <= value) & (value <= high)


def coverage(case: Case, repeats: int, n: int, jobs: int, large: int = LARGE, first: int = 0) -> dict[str, Any]:
    """The share of samples whose intervals contain the truth, for each weight together and the rest."""
    truth = Truth.of(case, large)
    tasks = (joblib.delayed(contained)(case, truth, seed, n) for seed in range(first, first + repeats))
    found = joblib.Parallel(n_jobs=jobs)(tasks)
    shares: dict[str, Any] = {
        name: float(np.mean([value for each in found for value in each[name]])) for name in found[0]
    }
    if "weights" in shares:
        shares["each weight"] = np.mean([each["weights"] for each in found], axis=0).round(3).tolist()
    return shares


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--repeats", type=int, default=200, help="samples from each population")
    parser.add_argument("--resamples", type=int, default=200, help="resamples of each")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first sample; the others follow")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    given = parser.parse_args(arguments)
    columns = ["weights", "thresholds", "divergence", "accuracy"]
    print("| Population | Rows | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns))
    for case in CASES:
        if given.only and case.name not in given.only:
            continue
        shares = coverage(case, given.repeats, given.resamples, given.jobs, first=given.first_seed)
        cells = [f"{100 * shares[name]:.0f} %" if name in shares else "" for name in columns]
        print(f"| {case.name} | {case.n_rows} | " + " | ".join(cells) + " |", flush=True)
        if "each weight" in shares:
            print(f"<!-- each weight: {shares['each weight']} -->", flush=True)


if __name__ == "__main__":
    main()
