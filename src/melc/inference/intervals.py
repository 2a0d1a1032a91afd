"""Intervals from the values of resamples, and for the accuracy on new rows by cross-validation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from melc.arrays import Floats
from melc.data.frames import rows_of
from melc.inference.resampling import Refit, computed

# Parts into which the rows are divided for cross-validation, and how often they are.
_CROSS_VALIDATION_PARTS, _CROSS_VALIDATION_REPEATS = 10, 2


@dataclass(frozen=True)
class Interval:
    """An estimate and the limits of its interval: numbers, or arrays of one shape.

    Examples
    --------
    >>> from melc.inference import Interval
    >>> weight = Interval(estimate=0.8, low=0.5, high=1.1)
    >>> weight.low < 0 < weight.high
    False
    """

    estimate: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class ThresholdInterval:
    """A threshold of a model, the limits of its interval, and the share of resamples that have this threshold.

    ``rows`` is the number of training rows in the smaller of the two intervals that the threshold separates. If there
    are few, the limits are infinite: all resamples repeat the same few rows, so they do not show where the threshold
    would be in new data, or whether there would be one, however large the share is.

    Examples
    --------
    >>> from melc.inference import ThresholdInterval
    >>> threshold = ThresholdInterval(value=1.2, low=1.0, high=1.4, share=0.95, rows=40)
    >>> f"between {threshold.low:g} and {threshold.high:g}, in {threshold.share:.0%} of the resamples"
    'between 1 and 1.4, in 95% of the resamples'
    """

    value: float
    low: float
    high: float
    share: float
    rows: float


def limits(estimate: Floats, values: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return the limits of an interval around an estimate, as wide as that of the middle values of the resamples.

    ``values`` has shape (n, ...), the others (...). The middle values themselves would contain the truth less often: at
    a fixed length of the direction, noise in all weights makes each of them smaller, so those of resamples are nearer
    to zero than the estimate.
    """
    tail = 0.5 * (1 - confidence)
    # Weibull's quantiles have the probability that they are named for, also of few values.
    low, high = np.quantile(values, [tail, 1 - tail], axis=0, method="weibull")
    half = 0.5 * (high - low)
    return estimate - half, estimate + half


def unbiased(estimate: Floats, values: Floats) -> Floats:
    """Return an estimate less its bias: resamples repeat it, so that of their median over the estimate is taken off."""
    return 2 * estimate - np.median(values, axis=0)


def accuracy_of(refit: Refit, confidence: float, random_state: Any, n_jobs: int | None) -> Interval:
    """Return the balanced accuracy of a model on new rows, and its interval."""
    totals, squares = (np.bincount(refit.codes, each, refit.n_classes) for each in (refit.weights, refit.weights**2))
    own = refit.model.predict(refit.X) == refit.model.classes_[refit.codes]
    held_out = np.mean(
        list(computed(_correct_held_out, refit, _CROSS_VALIDATION_REPEATS, random_state, n_jobs, 0, "")), axis=0
    )
    # The fits have nine tenths of the rows and are a little worse than the model; its own rows make up for that.
    right = held_out + (own - held_out) / _CROSS_VALIDATION_PARTS
    shares = np.bincount(refit.codes, refit.weights * right, refit.n_classes) / totals
    # Nothing is known of a class with a single row.
    shares[np.bincount(refit.codes) == 1] = 0.0
    return accuracy_interval(shares, totals**2 / squares, confidence)


def accuracy_interval(share: Floats, numbers: Floats, confidence: float) -> Interval:
    """Return the balanced accuracy on new rows and its interval.

    ``share`` is the accuracy of each class. ``numbers`` of rows of each class give Wilson's interval, which does not
    shrink to a point where all rows are predicted correctly; the distances of the limits are added as those of
    independent estimates (*variance estimates recovery*). Both have shape (n_classes,).
    """
    square = float(ndtri(0.5 * (1 + confidence))) ** 2
    centre = (share * numbers + 0.5 * square) / (numbers + square)
    half = np.sqrt(square * (numbers * share * (1 - share) + 0.25 * square)) / (numbers + square)
    below, above = (float(np.linalg.norm(each - share)) / len(share) for each in (centre - half, centre + half))
    mean = float(share.mean())
    return Interval(mean, mean - below, mean + above)


def _correct_held_out(refit: Refit, seed: int) -> NDArray[np.bool_]:
    """Whether each row is predicted correctly by a fit without it, shape (n_rows,)."""
    folds = folds_of(refit.codes, refit.n_classes, np.random.default_rng(seed))
    correct = np.zeros(len(folds), dtype=bool)
    for fold in range(folds.max() + 1):
        out = folds == fold
        model = refit(seed, refit.codes, np.where(out, 0.0, refit.weights))
        correct[out] = model.predict(rows_of(refit.X, np.flatnonzero(out))) == refit.codes[out]
    return correct


def folds_of(codes: NDArray[np.int64], n_classes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the fold of each row, shape (n_rows,): each class is divided evenly; -1 for the only row of a class."""
    folds = np.full(len(codes), -1)
    for c in range(n_classes):
        members = rng.permutation(np.flatnonzero(codes == c))
        if len(members) > 1:
            folds[members] = np.arange(len(members)) % _CROSS_VALIDATION_PARTS
    return folds
