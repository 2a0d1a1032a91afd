"""Intervals from the values of resamples, and for an accuracy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from melc.arrays import Floats


@dataclass(frozen=True)
class Interval:
    """An estimate and the limits of its interval: numbers, or arrays of one shape."""

    estimate: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class ThresholdInterval:
    """A threshold of a model, the limits of its interval, and the share of resamples that have this threshold."""

    value: float
    low: float
    high: float
    share: float


def corrected(estimate: Floats, values: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return an estimate less its bias, and the limits of its interval.

    The bias is how far the median of the resamples is from the estimate; resamples repeat the bias of the estimate. The
    interval is as wide as the one that contains the middle values. ``values`` has shape (n, ...), the others (...).
    """
    tail = 0.5 * (1 - confidence)
    low, middle, high = np.quantile(values, [tail, 0.5, 1 - tail], axis=0)
    centre, half = 2 * estimate - middle, 0.5 * (high - low)
    return centre, centre - half, centre + half


def accuracy_interval(
    hits: Floats, codes: NDArray[np.int64], weights: Floats, n_classes: int, confidence: float
) -> Interval:
    """Return the balanced accuracy and its interval, from the share of correct predictions of each row.

    The interval of each class is Wilson's, which does not shrink to a point where all rows are predicted correctly. The
    distances of its limits are added as those of independent estimates (*method of variance estimates recovery*).
    """
    z = float(ndtri(0.5 * (1 + confidence)))
    share, low, high = (np.empty(n_classes) for _ in range(3))
    for c in range(n_classes):
        w = weights[codes == c]
        total = float(w.sum())
        # A class whose rows were never left out could have any accuracy.
        share[c] = float(w @ hits[codes == c]) / total if total > 0 else 0.5
        number = total**2 / float(w @ w) if total > 0 else 0.0  # of rows that count equally
        centre = (share[c] * number + 0.5 * z * z) / (number + z * z)
        half = z * np.sqrt(number * share[c] * (1 - share[c]) + 0.25 * z * z) / (number + z * z)
        low[c], high[c] = centre - half, centre + half
    below, above = (float(np.linalg.norm(each - share)) / n_classes for each in (low, high))
    mean = float(share.mean())
    return Interval(mean, mean - below, mean + above)
