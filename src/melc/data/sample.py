"""Samples of rows: random ones that follow from the contents of the rows, and evenly spread ones by rank."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.data.contents import Entries
from melc.data.memory import MemoryRows
from melc.data.source import Ranks, Rows

# How many times the expected number of winners enter a lottery, and how many times more if these were too few.
_AMPLE, _MORE = 1.1, 4.0
# Seed of samples that do not depend on the random state of a fit.
_NO_SEED = 0


def draw_sample(rows: Rows, size: int, rng: np.random.RandomState) -> MemoryRows:
    """Return random rows of about the total weight ``size``, in memory; all rows if they are no more than that.

    The sample follows from the contents of the rows and from ``rng``. It does not depend on the order of the rows, and
    k equal rows are drawn as one row of weight k is (see :mod:`melc.data.contents`). The rows of a sample are distinct.
    They have equal weights, except for those that are heavier than what a drawn row stands for.

    The sample is stratified, but so that a rare class is not lost: a class is drawn at least half of its rows or an
    eighth of ``size``, whichever is less.
    """
    sizes = np.maximum(rows.counts, rows.total_weights)
    if rows.n_rows <= size and (rows.in_order or sizes.sum() <= size):
        return rows.in_memory()
    shares = np.array([_share(each, float(sizes.sum()), size) for each in sizes.tolist()])
    return _drawn(rows, sizes, shares, int(rng.randint(2**31 - 1)))


def samples_of_classes(rows: Rows, size: int) -> list[tuple[Any, Floats]]:
    """Return the features and weights of rows of each class of up to the weight ``size``, drawn by their contents.

    Rows in an order that follows from their contents need no lottery for that. If the rows have a centre, it is
    subtracted from the features.
    """
    if rows.in_order:
        return spread_samples(rows, size)
    sizes = np.maximum(rows.counts, rows.total_weights)
    return _by_class(_drawn(rows, sizes, np.ceil(np.minimum(sizes, size)).astype(np.int64), _NO_SEED))


def _drawn(rows: Rows, sizes: Floats, shares: NDArray[np.int64], seed: int) -> MemoryRows:
    """Return as many entries of each class as its share, or all of them. Classes have some sizes, in rows."""
    entries, numbers, limits = _contest(rows, shares, seed)
    won = [_winners(entries, numbers, c, int(shares[c]), float(limits[c])) for c in (0, 1)]
    for c, (chosen, weights) in enumerate(won):
        total = rows.total_weights[c] * min(1.0, shares[c] / sizes[c])
        entries.weights[chosen] = weights * (total / weights.sum())
    chosen = np.concatenate([chosen for chosen, _ in won])
    chosen = chosen[np.argsort(entries.keys[chosen])]
    return rows.pick(entries.rows[chosen], entries.weights[chosen])


def _share(size: float, total: float, wanted: int) -> int:
    """The number of entries that are drawn of a class of some size."""
    return int(min(size, max(2, wanted * size // total, min(size // 2, wanted // 8))))


def _contest(rows: Rows, shares: NDArray[np.int64], seed: int) -> tuple[Entries, Floats, Floats]:
    """Return entries of each class, their u / W, and limits below which no u / W is missing.

    More entries than are to win have lower ones, unless there are not so many.
    """
    limits = _AMPLE * (shares + 4 * np.sqrt(shares)) / rows.total_weights
    more = _MORE
    while True:
        entries = rows.enter(seed, limits)
        numbers = np.empty(len(entries.keys))
        kernels.draw_numbers(entries.keys, np.uint64(seed), numbers)
        numbers /= entries.weights
        n_below = np.bincount(entries.codes, numbers < limits[entries.codes], 2)
        everything = limits * rows.lightest >= 1
        if np.all(everything | (n_below > shares)):
            return entries, numbers, np.where(everything, np.inf, limits)
        limits, more = np.where(n_below > shares, limits, more * limits), more**2


def _winners(entries: Entries, numbers: Floats, code: int, share: int, limit: float) -> tuple[Any, Floats]:
    """Return the positions of the winners of a class, and their weights in the sample.

    A winner stands for 1 / the smallest u / W that did not win, or for its own weight if that is larger.
    """
    members = np.flatnonzero((entries.codes == code) & (numbers < limit))
    if len(members) <= share:
        return members, entries.weights[members]
    order = np.argpartition(numbers[members], share)
    first_lost = numbers[members[order[share]]]
    chosen = members[order[:share]]
    return chosen, np.maximum(entries.weights[chosen] * first_lost, 1.0)


def spread_samples(rows: Rows, size: int) -> list[tuple[Any, Floats]]:
    """Return the features and weights of up to ``size`` rows of each class, evenly spaced among the rows of the class.

    If the rows have a centre, it is subtracted from the features.
    """
    return _by_class(rows.take(_spread_ranks(rows.counts, size)))


def _by_class(sample: MemoryRows) -> list[tuple[Any, Floats]]:
    X, weights = sample.X if sample.centre is None else sample.X - sample.centre, sample.all_weights()
    members = [np.flatnonzero(sample.codes == c) for c in (0, 1)]
    return [(X[m], weights[m]) for m in members]


def _spread_ranks(counts: tuple[int, int], size: int) -> Ranks:
    first, second = (np.linspace(0, n - 1, min(size, n)).astype(np.int64) for n in counts)
    return first, second
