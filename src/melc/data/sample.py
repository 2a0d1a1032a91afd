"""Samples of rows, by their ranks among the rows of their class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.data.source import Ranks, Rows


def draw_sample(rows: Rows, size: int, rng: np.random.RandomState) -> MemoryRows:
    """Return up to ``size`` random rows in their order, in memory; all rows if there are no more.

    Each class gives its share, and at least half of the rows it has or an eighth of the sample, so that a rare class
    is not lost.
    """
    if rows.n_rows <= size:
        return rows.in_memory()
    first, second = (_draw(count, rows.n_rows, size, rng) for count in rows.counts)
    return rows.take((first, second))


def _draw(count: int, n_rows: int, size: int, rng: np.random.RandomState) -> NDArray[np.int64]:
    share = min(count, max(2, size * count // n_rows, min(count // 2, size // 8)))
    if share > count // 4:
        return np.sort(rng.choice(count, size=share, replace=False))
    # Few of many: drawing with replacement and leaving out what came twice spares a permutation of all.
    return np.unique(rng.randint(count, size=share))


def spread_samples(rows: Rows, size: int) -> list[tuple[Any, Floats]]:
    """Return up to ``size`` rows of each class, evenly spread over the data: for either class features and weights.

    The features are relative to the rows' centre, if they have one.
    """
    sample = rows.take(_spread_ranks(rows.counts, size))
    X, weights = sample.X if sample.centre is None else sample.X - sample.centre, sample.all_weights()
    members = [np.flatnonzero(sample.codes == c) for c in (0, 1)]
    return [(X[m], weights[m]) for m in members]


def _spread_ranks(counts: tuple[int, int], size: int) -> Ranks:
    first, second = (np.linspace(0, n - 1, min(size, n)).astype(np.int64) for n in counts)
    return first, second
