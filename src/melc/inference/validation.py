"""The accuracy of a model on new rows, by cross-validation."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.inference.intervals import Interval, accuracy_interval
from melc.inference.resampling import Refit, computed

# Parts into which the rows are divided, and how often they are.
_FOLDS, _REPEATS = 10, 2


def accuracy_of(refit: Refit, confidence: float, random_state: Any, n_jobs: int | None) -> Interval:
    """Return the balanced accuracy of a model on new rows, and its interval."""
    data = refit.data
    totals, squares = (np.bincount(data.codes, each, refit.n_classes) for each in (data.weights, data.weights**2))
    own = refit.model.predict(data.X) == refit.model.classes_[data.codes]
    held_out = np.mean(list(computed(_held_out, refit, _REPEATS, random_state, n_jobs, 0, "")), axis=0)
    # The fits have nine tenths of the rows and are a little worse than the model; its own rows make up for that.
    right = held_out + (own - held_out) / _FOLDS
    shares = np.bincount(data.codes, data.weights * right, refit.n_classes) / totals
    # Nothing is known of a class with a single row.
    shares[np.bincount(data.codes) == 1] = 0.0
    return accuracy_interval(shares, totals**2 / squares, confidence)


def _held_out(refit: Refit, seed: int) -> NDArray[np.bool_]:
    """Whether each row is predicted correctly by a fit without it, shape (n_rows,)."""
    data = refit.data
    folds = folds_of(data.codes, refit.n_classes, np.random.default_rng(seed))
    correct = np.zeros(len(folds), dtype=bool)
    for fold in range(folds.max() + 1):
        out = folds == fold
        model = refit(seed, data.codes, np.where(out, 0.0, data.weights))
        correct[out] = model.predict(data.X[out]) == data.codes[out]
    return correct


def folds_of(codes: NDArray[np.int64], n_classes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each row, shape (n_rows,): each class is divided evenly; -1 for the only row of a class."""
    folds = np.full(len(codes), -1)
    for c in range(n_classes):
        members = rng.permutation(np.flatnonzero(codes == c))
        if len(members) > 1:
            folds[members] = np.arange(len(members)) % _FOLDS
    return folds
