"""How often the bands of curves contain the truth: ``python -m benchmarks.bands``.

Data are drawn many times from populations whose log-odds are known. A band is a curve of :class:`melc.AdditiveMELC` ±
1.96 standard errors. Prints, for each population, the share of rows at which the band contains the true curve, over the
middle 90 % of the rows. Such bands are meant to contain it at 95 % of the rows on average, not at every single one.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from melc import AdditiveMELC
from melc.model.line import Line

Curves = tuple[Callable[[Any], Any], ...]

# Standard errors on either side of a curve, and the quantiles between which rows are looked at.
WIDTH, MIDDLE = 1.96, (0.05, 0.95)


@dataclass(frozen=True)
class Population:
    """Independent standard normal features; the log-odds are a constant plus a curve of each feature."""

    name: str
    curves: Curves
    constant: float = 0.0

    def draw(self, seed: int, n: int) -> tuple[Any, Any]:
        """Return n rows and their classes, 0 and 1."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, len(self.curves)))
        odds = self.constant + sum(curve(X[:, k]) for k, curve in enumerate(self.curves))
        return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


POPULATIONS = [
    Population("linear", (lambda z: 1.5 * z,)),
    Population("sine", (lambda z: 2 * np.sin(2 * z),)),
    Population("quadratic", (lambda z: z**2 - 1,)),
    Population("smooth step", (lambda z: 2 * np.tanh(3 * z),)),
    Population("two features", (lambda z: 1.5 * z, lambda z: 2 * np.sin(2 * z))),
    Population("classes of 1 : 5", (lambda z: 1.2 * z,), constant=-2.0),
]


def covered(population: Population, seed: int, n: int) -> float:
    """Return the share of rows of one sample at which bands contain the truth."""
    X, y = population.draw(seed, n)
    settings: dict[str, Any] = {"features_per_line": 1, "full_lines": "never", "other_features": True}
    model = AdditiveMELC(**settings, random_state=0, n_jobs=1).fit(X, y)
    targets = 0.5 / np.bincount(y)[y]
    log_ratio = float(np.log(y.mean() / (1 - y.mean())))  # classes count equally in a fit
    shares = []
    for line in model.lines_:
        (feature,) = line.features
        z = X[:, feature]
        truth = population.curves[feature](z)
        # Curves have mean zero; but the band of a single line is that of the curve and the constant.
        level = log_ratio - population.constant if len(model.lines_) == 1 else targets @ truth
        shares.append(_share_within(line, z, truth - level))
    return float(np.mean(shares))


def _share_within(line: Line, z: Any, truth: Any) -> float:
    curve, errors = line.decisive[0], line.errors[0]
    inside = np.abs(curve.at(z) - truth) <= WIDTH * np.interp(z, curve.knots, errors)
    low, high = np.quantile(z, MIDDLE)
    return float(np.mean(inside[(z >= low) & (z <= high)]))


def coverage(population: Population, repeats: int, n: int, jobs: int = 1) -> float:
    """Return the mean share over samples."""
    tasks = (joblib.delayed(covered)(population, seed, n) for seed in range(repeats))
    return float(np.mean(joblib.Parallel(n_jobs=jobs, prefer="threads")(tasks)))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bands", description=__doc__)
    parser.add_argument("--repeats", type=int, default=40, help="samples from each population")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    print("| Population | Rows | Coverage |\n|---|---|---|")
    for population in POPULATIONS:
        share = coverage(population, given.repeats, given.rows, given.jobs)
        print(f"| {population.name} | {given.rows} | {100 * share:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
