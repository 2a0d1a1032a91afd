"""Samples of rows, drawn by rank among the rows of each class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.source import Ranks, Rows


def draw_sample(rows: Rows, size: int, rng: np.random.RandomState) -> MemoryRows:
    """Return about ``size`` random rows in their original order, in memory; all rows if there are no more than that.

    The sample is stratified, but so that a rare class is not lost: a class is drawn at least half of its rows or an
    eighth of ``size``, whichever is less. Rows that are drawn twice count once.
    """
    if rows.n_rows <= size:
        return rows.in_memory()
    first, second = (_draw(count, rows.n_rows, size, rng) for count in rows.counts)
    return rows.take((first, second))


def _draw(count: int, n_rows: int, size: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    share = min(count, max(2, size * count // n_rows, min(count // 2, size // 8)))
    if share > count // 4:
        return np.sort(rng.choice(count, size=share, replace=False))
    # A small share: drawing with replacement and removing duplicates avoids a permutation of all rows.
    return np.unique(rng.randint(count, size=share))


def spread_samples(rows: Rows, size: int) -> list[tuple[Any, Floats]]:
    """Return the features and weights of up to ``size`` rows of each class, evenly spaced among the rows of the class.

    If the rows have a centre, it is subtracted from the features.
    """
    sample = rows.take(_spread_ranks(rows.counts, size))
    X, weights = sample.X if sample.centre is None else sample.X - sample.centre, sample.all_weights()
    members = [np.flatnonzero(sample.codes == c) for c in (0, 1)]
    return [(X[m], weights[m]) for m in members]


def _spread_ranks(counts: tuple[int, int], size: int) -> Ranks:
    first, second = (np.linspace(0, n - 1, min(size, n)).astype(np.int64) for n in counts)
    return first, second
