"""Lotteries among rows, whose outcome does not depend on the order of the rows or on how often they are repeated.

Equal rows of a class are one entry, with their total weight W. The entry gets a number u between 0 and 1 from a hash of
its features, its class and a seed. Those with the smallest u / W win: the probability of an entry is in proportion to
its weight, up to certainty. This is priority sampling (Duffield, Lund and Thorup 2007, "Priority sampling for
estimation of arbitrary subset sums").

To find all equal rows, all hashes would have to be sorted. Instead the weights are added up in a table, at places given
by some bits of the hashes. The weight at the place of a row is at least that of all rows equal to it. A row whose u is
too large even for that weight cannot win, and only the others are sorted.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc import kernels
from melc.arrays import Floats
from melc.data.mapped import release_of

Keys = NDArray[np.uint64]

# Hashes are kept for up to this many rows (256 MB), otherwise computed again for each draw.
_MOST_KEPT = 1 << 25
# Numbers that are hashed at once, and rows that are looked at: they stay in the cache, and Ctrl-C is heard in between.
_HASHED_NUMBERS, _BLOCK = 1 << 17, 65_536
# The longest table (8 MB). Shorter ones have two to four rows for each place.
_LONGEST_TABLE = 1 << 20

_ONE = np.ones(1)


@dataclass(frozen=True)
class Lottery:
    """A seed, the table of weights, and the value that u / W of a winner is below, for each class.

    The table is empty if no two rows are equal.
    """

    seed: int
    table: Floats
    limits: Floats


@dataclass
class Entries:
    """Rows of each class: their keys, codes, total weights and numbers, all of shape (n,).

    The key of a row stands for its content and its class.
    """

    keys: Keys
    codes: NDArray[np.int8]
    weights: Floats
    rows: NDArray[np.int64]

    def joined(self) -> "Entries":
        """Return the entries in the order of their keys, with those of equal keys joined into one."""
        order = np.argsort(self.keys)
        keys = self.keys[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        if len(first) == len(keys):
            return Entries(keys, self.codes[order], self.weights[order], self.rows[order])
        order = np.lexsort([self.weights, self.keys])  # the last digit of a sum depends on the order of its terms
        weights, rows = np.add.reduceat(self.weights[order], first), np.minimum.reduceat(self.rows[order], first)
        return Entries(keys[first], self.codes[order[first]], weights, rows)

    def __iadd__(self, other: "Entries") -> "Entries":
        return Entries.together([self, other]).joined()

    @classmethod
    def together(cls, parts: "list[Entries]") -> "Entries":
        """Return the entries of all parts, one after the other."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))


class Contents:
    """What rows contain, as hashes; the same for all problems on the same rows, whatever their codes.

    X has shape (n, d). ``weights``, of shape (n,), is None for weights of one. No two rows of a class are equal if they
    are ``distinct``. If their order follows from what they contain (``in_order``), their numbers serve as hashes.
    """

    def __init__(self, X: Any, weights: Floats | None, distinct: bool = False, in_order: bool = False) -> None:
        self.X, self.weights = X, weights
        self.distinct, self.in_order = distinct or in_order, in_order
        self._hashes: Keys | None = None
        self._table: Floats | None = None
        self._lock = threading.Lock()  # several problems may begin at once

    def table(self, n_rows: int) -> Floats:
        """Return the weights of the rows, added up by the last bits of their hashes.

        The length of the table, a power of two, follows from the number of all rows, of which these may be a part.
        """
        with self._lock:
            if self._table is None:
                self._table = np.zeros(min(_LONGEST_TABLE, 1 << max(0, n_rows.bit_length() - 2)))
                for some, hashes in self._blocks():
                    kernels.weigh_hashes(hashes, *self._weights_and_step(some), self._table)
            return self._table

    def entries(self, codes: NDArray[np.int8], lottery: Lottery, first_row: int) -> Entries:
        """Return the entries that may win. The rows are numbered from ``first_row`` on."""
        terms = np.uint64(lottery.seed), lottery.table, lottery.limits
        found = []
        for some, hashes in self._blocks():
            chosen, keys = np.empty(len(hashes), dtype=np.int64), np.empty(len(hashes), dtype=np.uint64)
            n = kernels.enter(hashes, codes[some], *self._weights_and_step(some), *terms, chosen, keys)
            rows = some.start + chosen[:n]
            weights = np.ones(n) if self.weights is None else self.weights[rows]
            block = Entries(keys[:n].copy(), codes[rows], weights, first_row + rows)
            # Block by block, for if few rows differ, the copies of a winner are nearly all of them.
            found.append(block if self.distinct else block.joined())
        together = Entries.together(found)
        return together if self.distinct else together.joined()

    def _weights_and_step(self, some: slice) -> tuple[Floats, int]:
        return (_ONE, 0) if self.weights is None else (self.weights[some], 1)

    def _blocks(self) -> Iterator[tuple[slice, Keys]]:
        """Yield slices that cover the rows, and the hashes of their rows."""
        n_rows = self.X.shape[0]
        if self._hashes is None and self.in_order:
            self._hashes = np.arange(n_rows, dtype=np.uint64)
        elif self._hashes is None and (n_rows <= _MOST_KEPT or sparse.issparse(self.X)):
            self._hashes = hashes_of(self.X)
        for a in range(0, n_rows, _BLOCK):
            some = slice(a, min(a + _BLOCK, n_rows))
            yield some, hashes_of(self.X[some]) if self._hashes is None else self._hashes[some]


def without_repetitions(
    X: Any, codes: NDArray[Any], weights: Floats | None, most_ordered: int
) -> tuple[Any, NDArray[Any], Floats | None]:
    """Return rows with equal ones of a class joined into one with their total weight.

    They are then in the order of their keys, and so are up to ``most_ordered`` rows of which none are equal.
    """
    keys = kernels.keys_of(hashes_of(X), codes)
    if len(keys) > most_ordered and np.all(np.diff(np.sort(keys))):
        return X, codes, weights
    mass = np.ones(len(keys)) if weights is None else weights
    joined = Entries(keys, codes, mass, np.arange(len(keys))).joined()
    repeated = len(joined.rows) < len(keys)
    return X[joined.rows], joined.codes, joined.weights if repeated or weights is not None else None


def hashes_of(X: Any) -> Keys:
    """Return a hash of each row, shape (n,). It does not depend on how the rows are stored."""
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    if sparse.issparse(X):
        stored = X.tocoo(copy=False)
        kernels.hash_stored(stored.data.astype(np.float64).view(np.uint64), stored.row, stored.col, hashes)
        return hashes
    size, release = max(1, _HASHED_NUMBERS // X.shape[1]), release_of(X)
    for a in range(0, len(hashes), size):
        some = np.ascontiguousarray(X[a : a + size], dtype=np.float64)
        kernels.hash_rows(some.view(np.uint64), hashes[a : a + size])
        release(a, a + len(some))
    return hashes
