"""Priority sampling by row hash: samples that depend neither on the order of the rows nor on their repetition.

Equal rows of a class count as one distinct row, with their total weight W. A hash of its features and a seed gives it a
number u between 0 and 1, as if drawn at random. The distinct rows of the highest priority W / u are drawn, that is of
the smallest u / W: each with a probability in proportion to its weight, up to one (Duffield, Lund and Thorup 2007,
"Priority sampling for estimation of arbitrary subset sums"). The numbers of the classes have no part in it, so that the
same rows are drawn if two classes are exchanged.

To find all equal rows, all hashes would have to be sorted. Instead the weights are added up in a table, indexed by the
last bits of the hashes. The entry for a row is at least the weight of all rows equal to it. A row whose u is too large
even for this entry cannot be drawn, and only the remaining rows are sorted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc import kernels
from melc.arrays import Floats

Hashes = NDArray[np.uint64]

# Hashes are kept for up to this many rows (256 MB), otherwise computed again for each sample.
_MAX_HASHES_KEPT = 1 << 25
# Numbers that are hashed in one call, and rows that are compared: few enough for the cache, and for a prompt Ctrl-C.
_MAX_HASHED_NUMBERS, _ROWS_COMPARED = 1 << 17, 65_536
# The longest table (8 MB). Shorter ones have two to four rows for each element.
_MAX_TABLE = 1 << 20

_WEIGHT_ONE = np.ones(1)


@dataclass(frozen=True)
class Selection:
    """A seed, the table of weights by hash, and for each class the upper limit of u / W of a selected row.

    The table is empty if no two rows are equal; their own weights are then used.
    """

    seed: int
    table: Floats
    limits: Floats


@dataclass
class DistinctRows:
    """Distinct rows of each class: keys, class codes, total weights and row numbers, all of shape (n,).

    A key is a hash of the features and the class.
    """

    keys: Hashes
    codes: NDArray[np.int8]
    weights: Floats
    rows: NDArray[np.int64]

    def merged(self) -> "DistinctRows":
        """Return the rows in the order of the hashes of their contents, with those of equal keys merged into one.

        Keys themselves would give the rows of a class another order if the classes were exchanged.
        """
        hashes = kernels.hashes_in(self.keys, self.codes)
        order = np.lexsort([self.codes, hashes])
        keys = self.keys[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        if len(first) == len(keys):
            return DistinctRows(keys, self.codes[order], self.weights[order], self.rows[order])
        # The last digit of a sum depends on the order of its terms.
        order = np.lexsort([self.weights, self.codes, hashes])
        weights, rows = np.add.reduceat(self.weights[order], first), np.minimum.reduceat(self.rows[order], first)
        return DistinctRows(keys[first], self.codes[order[first]], weights, rows)

    def __iadd__(self, other: "DistinctRows") -> "DistinctRows":
        return DistinctRows.concatenated([self, other]).merged()

    @classmethod
    def concatenated(cls, parts: "list[DistinctRows]") -> "DistinctRows":
        """Return the rows of all parts, not yet merged."""
        return cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))


class RowHashes:
    """Hashes of rows by their features; the same for all problems on the same rows, whatever their class codes.

    X has shape (n, d). ``weights``, of shape (n,), is None for weights of one. No two rows of a class are equal if they
    are ``distinct``. If in addition their order within a class follows from their contents (``canonical``), the ranks
    within the class serve as hashes. ``known`` are the hashes, if X has scores of levels: these change with the order
    of the classes.
    """

    def __init__(
        self,
        X: Any,
        weights: Floats | None,
        distinct: bool = False,
        canonical: bool = False,
        known: Hashes | None = None,
    ) -> None:
        self.X, self.weights, self.known = X, weights, known
        self.distinct, self.canonical = distinct or canonical, canonical
        self._hashes = known
        self._table: Floats | None = None

    def table(self, n_rows: int) -> Floats:
        """Return the weights of the rows, added up by the last bits of their hashes.

        The length of the table, a power of two, follows from the number of all rows, of which these may be a part.
        """
        if self._table is None:
            table = np.zeros(min(_MAX_TABLE, 1 << max(0, n_rows.bit_length() - 2)))
            for block, hashes in self._blocks():
                kernels.add_weights_by_hash(hashes, *weights_and_step(self.weights, block), table)
            self._table = table  # only now that it is complete, because other threads may draw as well
        return self._table

    def select(self, codes: NDArray[np.int8], selection: Selection, first_row: int) -> DistinctRows:
        """Return at least the distinct rows whose u / W is below the limit. Rows are numbered from ``first_row`` on."""
        arguments = np.uint64(selection.seed), selection.table, selection.limits
        found = []
        for block, hashes in [(slice(0, len(codes)), _ranks(codes))] if self.canonical else self._blocks():
            chosen, keys = np.empty(len(hashes), dtype=np.int64), np.empty(len(hashes), dtype=np.uint64)
            n = kernels.select_rows(
                hashes, codes[block], *weights_and_step(self.weights, block), *arguments, chosen, keys
            )
            rows = block.start + chosen[:n]
            weights = np.ones(n) if self.weights is None else self.weights[rows]
            part = DistinctRows(keys[:n].copy(), codes[rows], weights, first_row + rows)
            # Merged block by block: if few rows differ, nearly all of them may be copies of a selected one.
            found.append(part if self.distinct else part.merged())
        selected = DistinctRows.concatenated(found)
        return selected if self.distinct else selected.merged()

    def _blocks(self) -> Iterator[tuple[slice, Hashes]]:
        """Yield slices that cover the rows, and the hashes of their rows."""
        n_rows = self.X.shape[0]
        if self._hashes is None and (n_rows <= _MAX_HASHES_KEPT or sparse.issparse(self.X)):
            self._hashes = hashes_of(self.X)
        for a in range(0, n_rows, _ROWS_COMPARED):
            block = slice(a, min(a + _ROWS_COMPARED, n_rows))
            yield block, hashes_of(self.X[block]) if self._hashes is None else self._hashes[block]


def _ranks(codes: NDArray[np.int8]) -> Hashes:
    """Return how many rows of the same class stand before each row, shape (n,)."""
    ranks = np.empty(len(codes), dtype=np.uint64)
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        ranks[members] = np.arange(len(members))
    return ranks


def weights_and_step(weights: Floats | None, block: slice) -> tuple[Floats, int]:
    """Return the weights of a block of rows and step 1 or, without weights, an array of a single one and step 0.

    A kernel that reads element i × step then needs no array of ones.
    """
    return (_WEIGHT_ONE, 0) if weights is None else (weights[block], 1)


def merge_equal_rows(
    X: Any, codes: NDArray[Any], weights: Floats | None, max_sorted: int, known: Hashes | None = None
) -> tuple[Any, NDArray[Any], Floats | None, Hashes | None]:
    """Return rows, codes, weights and known hashes, with equal rows of a class merged into one with their total weight.

    More than ``max_sorted`` rows of which none are equal are returned as they are, others in the order of their hashes.
    """
    keys = kernels.class_keys(hashes_of(X) if known is None else known, codes)
    if len(keys) > max_sorted and np.all(np.diff(np.sort(keys))):
        return X, codes, weights, known
    totals = np.ones(len(keys)) if weights is None else weights
    merged = DistinctRows(keys, codes, totals, np.arange(len(keys))).merged()
    repeated = len(merged.rows) < len(keys)
    total_weights = merged.weights if repeated or weights is not None else None
    return X[merged.rows], merged.codes, total_weights, None if known is None else known[merged.rows]


def hashes_of(X: Any) -> Hashes:
    """Return a hash of each row, shape (n,). It does not depend on how the rows are stored."""
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    if sparse.issparse(X):
        stored = X.tocoo(copy=False)
        kernels.hash_sparse_rows(stored.data.astype(np.float64).view(np.uint64), stored.row, stored.col, hashes)
        return hashes
    size = max(1, _MAX_HASHED_NUMBERS // X.shape[1])
    for a in range(0, len(hashes), size):
        block = np.ascontiguousarray(X[a : a + size], dtype=np.float64)
        kernels.hash_rows(block.view(np.uint64), hashes[a : a + size])
    return hashes
