"""Exponentials of binning and discarding over those of the exact sum, beside the paper's Table 1.

    MELC_DATA=folder-of-libsvm-files python benchmarks/exp_call_ratio.py

The folder holds the ten sets of the paper in libSVM's scaled form, ``<name>.libsvm`` each. As in the paper,
every run is a search with L-BFGS-B in the units of the data, from random unit directions that are the same
for every method, on the training rows of a stratified cross-validation; its ratio is the mean number of
exponentials of an evaluation over the number that the exact sum needs, averaged over all γ and ε.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import StratifiedKFold

from melc.objective import Objective
from melc.optimize import maximise
from melc.rows import Rows

# Jozefowicz and Czarnecki, "Fast optimization of Multithreshold Entropy Linear Classifier": section
# "Evaluation" for γ and ε; Table 1 ("Mean ratio of exp calls"), columns L-BFGS-B bin and L-BFGS-B dist.
GAMMAS = (0.1, 0.5, 1.0, 1.5, 2.0)
EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5)
PAPER = {
    "australian": (0.11, 0.45),
    "breast-cancer": (0.10, 0.46),
    "diabetes": (0.22, 0.54),
    "fourclass": (0.19, 0.49),
    "german.numer": (0.19, 0.46),
    "heart": (0.26, 0.47),
    "ionosphere": (0.24, 0.54),
    "liver-disorders": (0.31, 0.67),
    "sonar": (0.29, 0.50),
    "splice": (0.16, 0.43),
}
METHODS = ("bin", "discard")
TOLERANCE = 0.08


@dataclass(frozen=True)
class Ratio:
    """Mean share of the exact sum's exponentials, and mean iterations, of one method on one set."""

    exponentials: float
    iterations: float


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_svmlight_file(str(path))
    return X.toarray(), np.unique(y, return_inverse=True)[1].astype(np.int8)


def training_parts(X: np.ndarray, codes: np.ndarray, folds: int) -> Iterator[Rows]:
    splits = StratifiedKFold(folds, shuffle=True, random_state=0).split(X, codes)
    for train, _ in splits:
        yield Rows(np.ascontiguousarray(X[train]), codes[train])


def measure(rows: Rows, starts: np.ndarray, method: str, gamma: float, eps: float) -> list[Ratio]:
    """One ratio a start."""
    exact = Objective(rows, gamma=gamma, method="exact")
    all_pairs = exact.evaluate(starts[0]).n_exponentials
    found = []
    for start in starts:
        objective = Objective(rows, gamma=gamma, method=method, eps=eps)
        run = maximise(objective, start, solver="lbfgs")
        found.append(Ratio(run.n_exponentials / run.n_evaluations / all_pairs, run.n_iter))
    return found


def mean_ratio(X: np.ndarray, codes: np.ndarray, method: str, folds: int, n_starts: int) -> Ratio:
    starts = np.random.RandomState(0).normal(size=(n_starts, X.shape[1]))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    found = [
        ratio
        for rows, gamma, eps in product(training_parts(X, codes, folds), GAMMAS, EPSILONS)
        for ratio in measure(rows, starts, method, gamma, eps)
    ]
    return Ratio(
        float(np.mean([r.exponentials for r in found])), float(np.mean([r.iterations for r in found]))
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("MELC_DATA"), help="folder (default: $MELC_DATA)")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=2)
    options = parser.parse_args()
    if options.data is None or not Path(options.data).is_dir():
        parser.error(f"no folder {options.data!r}: set MELC_DATA to the folder that holds <name>.libsvm")
    print(f"{'':16}   bin  paper  discard  paper   largest   iterations")
    within = 0
    for name, paper in PAPER.items():
        X, codes = load(Path(options.data) / f"{name}.libsvm")
        ratios = [mean_ratio(X, codes, method, options.folds, options.starts) for method in METHODS]
        measured = [r.exponentials for r in ratios]
        gap = max(abs(m - p) for m, p in zip(measured, paper, strict=True))
        within += gap <= TOLERANCE
        print(
            f"{name:16} {measured[0]:5.2f}  {paper[0]:5.2f}  {measured[1]:7.2f}  {paper[1]:5.2f}   "
            f"{gap:7.3f}   {ratios[0].iterations:4.1f} {ratios[1].iterations:4.1f}",
            flush=True,
        )
    print(f"both within {TOLERANCE} of the paper: {within} of {len(PAPER)} sets")
    return 0 if within >= 8 else 1


if __name__ == "__main__":
    sys.exit(main())
