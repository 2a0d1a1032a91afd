"""The accuracy of a model on new rows, by cross-validation."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.inference.intervals import Interval, accuracy_interval
from melc.inference.resampling import Refit, computed

# Parts into which the rows are divided, and how often they are.
_FOLDS, _REPEATS = 10, 2


def accuracy_of(refit: Refit, confidence: float, random_state: Any, n_jobs: int | None) -> Interval:
    """Return the balanced accuracy of a model on new rows, and its interval."""
    data = refit.data
    totals, squares = (np.bincount(data.codes, each, refit.n_classes) for each in (data.weights, data.weights**2))
    own = refit.model.predict(data.X) == refit.model.classes_[data.codes]
    right = own + np.mean(list(computed(_corrections, refit, _REPEATS, random_state, n_jobs, 0, "")), axis=0)
    shares = np.clip(np.bincount(data.codes, data.weights * right, refit.n_classes) / totals, 0.0, 1.0)
    # Nothing is known of a class with a single row.
    shares[np.bincount(data.codes) == 1] = 0.0
    return accuracy_interval(shares, totals**2 / squares, confidence)


def _corrections(refit: Refit, seed: int) -> Floats:
    """What is to be added to whether the model predicts each of its own rows, for that to be as on new rows.

    That is whether the row is predicted by a fit without it, less the share of all these fits that do. Added to the
    accuracy of the model on its own rows this is the accuracy of cross-validation with Burman's correction (1989): the
    fits have fewer rows than the model, and are worse than it on all rows by about as much as on new ones.
    """
    data = refit.data
    folds = folds_of(data.codes, refit.n_classes, np.random.default_rng(seed))
    corrections = np.zeros(len(folds))
    for fold in range(_FOLDS):
        out = folds == fold
        if out.any():
            rest = np.bincount(data.codes, data.weights * ~out, refit.n_classes)
            totals = np.bincount(data.codes, data.weights, refit.n_classes)
            # The rest of each class stands for all of it, so that shares of the classes and bandwidths stay.
            model = refit(seed, data.codes, np.where(out, 0.0, data.weights * (totals / rest)[data.codes]))
            correct = model.predict(data.X) == data.codes
            corrections += out * correct - (1 - rest / totals)[data.codes] * correct
    return corrections


def folds_of(codes: NDArray[np.int64], n_classes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each row, shape (n_rows,): each class is divided evenly; -1 for the only row of a class."""
    folds = np.full(len(codes), -1)
    for c in range(n_classes):
        members = rng.permutation(np.flatnonzero(codes == c))
        if len(members) > 1:
            folds[members] = np.arange(len(members)) % _FOLDS
    return folds
