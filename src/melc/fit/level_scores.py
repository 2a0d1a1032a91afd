"""Scores of the levels of all categories that are fitted together.

The share of a class at a level also reflects what the other columns say. If each level has many rows, the scores for
one direction are therefore the weights of a logistic regression on the indicators of all levels and the standardised
numbers,

``max_w  Σ_i weight_i log P(class_i)  −  ½ ridge ‖w‖²``.

Their mean is subtracted, so that an unknown level has the score zero.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from melc.arrays import Floats
from melc.fit.evidence import logistic_regression

# The ridge, in rows; the least number of rows for each level; and the most columns of the regression.
_RIDGE, _ROWS_PER_LEVEL, _MOST_COLUMNS = 5.0, 15, 300
# Standard deviations at which numbers are cut off, so that outliers decide nothing.
_FARTHEST = 5.0
# The relative size of the last Newton step, and the most steps. Scores are rounded to so many digits, because the order
# of the rows may change later ones.
_SMALL_STEP, _MOST_STEPS, _DIGITS = 1e-11, 50, 9


def enough_rows(n_levels: int, n_numbers: int, n_effective: float) -> bool:
    """Whether there are rows enough to fit the scores of so many levels together."""
    return n_levels + n_numbers <= _MOST_COLUMNS and n_effective >= _ROWS_PER_LEVEL * n_levels


def joint_scores(
    levels: Mapping[int, NDArray[np.int64]], sizes: Mapping[int, int], numbers: Floats, codes: Floats, weights: Floats
) -> dict[int, Floats]:
    """Return the scores of the levels of each category.

    ``levels`` has the numbers of the levels of the rows, shape (n,), for each category, and ``sizes`` how many there
    are. ``numbers``, of shape (n, m), are the other columns; ``codes`` are the classes, 0 or 1, and both classes have
    the same sum of ``weights``.
    """
    indicators = [np.equal.outer(levels[j], np.arange(sizes[j])).astype(np.float64) for j in levels]
    shares = [(weights @ each) / weights.sum() for each in indicators]
    rows = np.column_stack([*indicators, _standardised(numbers, weights), np.ones(len(codes))])
    with threadpool_limits(limits=1):  # such small products are not worth the waiting of threads
        found = logistic_regression(rows, codes, weights, _RIDGE, np.zeros(rows.shape[1]), _MOST_STEPS, _SMALL_STEP)
    ends = np.cumsum([sizes[j] for j in levels])
    parts = np.split(found, ends)[: len(ends)]
    return {j: np.round(part - share @ part, _DIGITS) for j, part, share in zip(levels, parts, shares, strict=True)}


def _standardised(numbers: Floats, weights: Floats) -> Floats:
    share = weights / weights.sum()
    centred = numbers - share @ numbers
    deviation = np.sqrt(share @ centred**2)
    return np.clip(centred / np.where(deviation > 0, deviation, 1.0), -_FARTHEST, _FARTHEST)
