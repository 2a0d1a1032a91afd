"""Samples of rows: random ones by priority sampling, and evenly spaced ones by rank."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.data.hashing import DistinctRows
from melc.data.memory import MemoryRows
from melc.data.source import Ranks, Rows

# Rows that are selected for each row to be drawn: the first time, and how many times more if these were too few.
_SELECTED_PER_DRAWN, _SELECTED_NEXT = 1.1, 4.0
# Seed of samples that do not depend on the random state of a fit.
_FIXED_SEED = 0


def draw_sample(rows: Rows, size: int, rng: np.random.RandomState) -> MemoryRows:
    """Return random rows of about the total weight ``size``, in memory; all rows if they are no more than that.

    The sample follows from the contents of the rows and from ``rng``. It does not depend on the order of the rows, and
    k equal rows are drawn as one row of weight k is (see :mod:`melc.data.hashing`). The rows of a sample are distinct.
    They have equal weights, except for rows that are heavier than what a drawn row stands for.

    The sample is stratified, with more rows of a rare class: of each class at least half of its rows are drawn, or an
    eighth of ``size``, whichever is less.
    """
    sizes = np.maximum(rows.counts, rows.total_weights)
    if rows.n_rows <= size and (rows.canonical or sizes.sum() <= size):
        return rows.in_memory()
    shares = np.array([_share(each, float(sizes.sum()), size) for each in sizes.tolist()])
    return _draw(rows, sizes, shares, int(rng.randint(2**31 - 1)))


def samples_of_classes(rows: Rows, size: int) -> list[tuple[Any, Floats]]:
    """Return the features and weights of rows of each class of up to the weight ``size``, drawn by their contents.

    Of rows in canonical order, evenly spaced ones serve as well. If the rows have a centre, it is subtracted from the
    features.
    """
    if rows.canonical:
        return spread_samples(rows, size)
    sizes = np.maximum(rows.counts, rows.total_weights)
    return _by_class(_draw(rows, sizes, np.ceil(np.minimum(sizes, size)).astype(np.int64), _FIXED_SEED))


def spread_samples(rows: Rows, size: int) -> list[tuple[Any, Floats]]:
    """Return the features and weights of up to ``size`` rows of each class, evenly spaced among the rows of the class.

    If the rows have a centre, it is subtracted from the features.
    """
    first, second = (np.linspace(0, n - 1, min(size, n)).astype(np.int64) for n in rows.counts)
    ranks: Ranks = first, second
    return _by_class(rows.take(ranks))


def _by_class(sample: MemoryRows) -> list[tuple[Any, Floats]]:
    X, weights = sample.X if sample.centre is None else sample.X - sample.centre, sample.all_weights()
    return [(X[members], weights[members]) for members in map(sample.members, (0, 1))]


def _share(size: float, total: float, wanted: int) -> int:
    """Return the number of distinct rows to draw from a class of the given size."""
    return int(min(size, max(2, wanted * size // total, min(size // 2, wanted // 8))))


def _draw(rows: Rows, sizes: Floats, shares: NDArray[np.int64], seed: int) -> MemoryRows:
    """Return as many distinct rows of each class as its share, or all of them; ``sizes`` are the sizes of classes."""
    selected, quotients, limits = _select(rows, shares, seed)
    drawn = [_smallest(selected, quotients, c, int(shares[c]), float(limits[c])) for c in range(len(shares))]
    for c, (chosen, weights) in enumerate(drawn):
        total = rows.total_weights[c] * min(1.0, shares[c] / sizes[c])
        selected.weights[chosen] = weights * (total / weights.sum())
    hashes = kernels.hashes_in(selected.keys, selected.codes)
    chosen = np.concatenate([chosen[np.argsort(hashes[chosen])] for chosen, _ in drawn])
    return rows.take_sample(selected.rows[chosen], selected.weights[chosen])


def _select(rows: Rows, shares: NDArray[np.int64], seed: int) -> tuple[DistinctRows, Floats, Floats]:
    """Return distinct rows of each class, their u / W, and for each class a limit below which no u / W is missing.

    More rows than are to be drawn are below the limit, unless the class has no more.
    """
    limits = _SELECTED_PER_DRAWN * (shares + 4 * np.sqrt(shares)) / rows.total_weights
    more = _SELECTED_NEXT
    while True:
        selected = rows.select(seed, limits)
        quotients = np.empty(len(selected.keys))
        kernels.write_uniforms(kernels.hashes_in(selected.keys, selected.codes), np.uint64(seed), quotients)
        quotients /= selected.weights
        n_below = np.bincount(selected.codes, quotients < limits[selected.codes], len(shares))
        everything = limits * rows.smallest_weights >= 1
        if np.all(everything | (n_below > shares)):
            return selected, quotients, np.where(everything, np.inf, limits)
        limits, more = np.where(n_below > shares, limits, more * limits), more**2


def _smallest(selected: DistinctRows, quotients: Floats, code: int, share: int, limit: float) -> tuple[Any, Floats]:
    """Return the positions of the rows of a class with the smallest u / W, and their relative weights in the sample.

    A drawn row stands for 1 / t rows, where t is the smallest u / W that was not drawn, or for its own weight if that
    is larger. The weights are in units of 1 / t.
    """
    members = np.flatnonzero((selected.codes == code) & (quotients < limit))
    if len(members) <= share:
        return members, selected.weights[members]
    order = np.argpartition(quotients[members], share)
    first_left = quotients[members[order[share]]]
    chosen = members[order[:share]]
    return chosen, np.maximum(selected.weights[chosen] * first_left, 1.0)
