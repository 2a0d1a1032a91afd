"""The rows of a table as scores of levels need them: classes of equal weight, and groups of equal rows in folds."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.data.hashing import Hashes, hashes_of

# Groups of equal rows are divided into so many folds.
FOLDS = 5
# Shares of classes are rounded to this many digits, because the order of the rows may change later ones.
DIGITS = 9
# Rows that are added to every level, divided equally among the classes.
_ROWS_ADDED = 10.0
# Equal rows are not copies if groups of several classes have the first share of the weight of all groups of several
# rows. The second is enough if groups with the third share of the weight have a level for themselves.
_MIXED, _SOME_MIXED, _NEARLY_ALL = 0.5, 0.05, 0.95
# Rows that are hashed at once.
_ROWS_HASHED = 1 << 16


class Balance:
    """Class numbers of rows, and weights scaled so that all classes have the same total; the overall total is kept."""

    def __init__(self, index: NDArray[np.integer], weights: Floats, n_classes: int) -> None:
        totals = np.bincount(index, weights, n_classes)
        self.index, self.given, self.n_classes = index, weights, n_classes
        self.weights = weights * (totals.sum() / n_classes / totals)[index]
        # The effective number of rows: this many, divided equally among the classes, would be as informative.
        self.n_effective = n_classes**2 / float(np.sum(1 / totals))
        self.total = float(totals.sum())
        # What a row of each class weighs if all weights add up to that number.
        self.row_weights = self.n_effective / n_classes / totals

    def class_weights(self, groups: NDArray[np.int64], n_groups: int, weights: Floats | None = None) -> Floats:
        """Return the balanced weight of each class in each group of rows, shape (n_groups, n_classes)."""
        cells = groups * self.n_classes + self.index
        found = np.bincount(cells, self.weights if weights is None else weights, n_groups * self.n_classes)
        return np.asarray(found.reshape(n_groups, self.n_classes), dtype=np.float64)

    def shares(self, class_weights: Floats) -> Floats:
        """Return the shares of the classes in each group, shrunk, minus 1 / n_classes; shape (n_groups, n_classes).

        They are rounded, because the last digits of sums of weights depend on the order of the rows.
        """
        totals = class_weights.sum(axis=1, keepdims=True)
        shares = (class_weights + _ROWS_ADDED / self.n_classes) / (totals + _ROWS_ADDED) - 1 / self.n_classes
        return np.asarray(np.round(shares, DIGITS))


class EqualRows:
    """Groups of rows with equal contents, whatever their classes.

    ``hashes``, and the pseudo-random ``numbers`` that do not depend on the order of the columns, follow from the
    contents of the rows; both have shape (n,).
    """

    def __init__(self, contents: list[Floats], balance: Balance) -> None:
        self._contents, self._balance = contents, balance
        self.hashes = _hashes_of(contents)

    @cached_property
    def numbers(self) -> Hashes:
        numbers = np.zeros(len(self.hashes), dtype=np.uint64)
        for column in self._contents:
            numbers += _hashes_of([column])
        return numbers

    @cached_property
    def folds(self) -> NDArray[np.int64]:
        return np.asarray(self.numbers % np.uint64(FOLDS), dtype=np.int64)

    @cached_property
    def first_and_groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of the first row of each group, and the number of each row's group."""
        _, first, groups = np.unique(self.hashes, return_index=True, return_inverse=True)
        return first, groups

    @cached_property
    def class_weights(self) -> Floats:
        """The balanced weights of the classes in each group, shape (n_groups, n_classes)."""
        first, groups = self.first_and_groups
        return self._balance.class_weights(groups, len(first))

    @cached_property
    def sizes(self) -> Floats:
        """The weight of each group as given, shape (n_groups,)."""
        return np.asarray(np.bincount(self.first_and_groups[1], self._balance.given))

    @cached_property
    def mixed(self) -> NDArray[np.bool_]:
        """Whether a group has rows of several classes, which copies of a row have not; shape (n_groups,)."""
        return np.asarray(np.count_nonzero(self.class_weights, axis=1) > 1)

    @cached_property
    def are_copies(self) -> bool:
        """Whether most rows that are not alone in their group seem to be copies."""
        return self._share_mixed(self.sizes > 1) < _MIXED

    def are_levels(self, alone: NDArray[np.bool_], known: NDArray[np.bool_]) -> bool:
        """Return whether groups are the levels of a column: nearly all have one for themselves, and some are mixed.

        ``alone`` tells which groups have a level for themselves, and ``known`` which have a level that is not joined
        with others; both have shape (n_groups,). The joined ones are not judged.
        """
        total = self.sizes[known].sum()
        share_alone = np.round(self.sizes[alone & known].sum() / total, DIGITS) if total else 0.0
        return bool(share_alone > _NEARLY_ALL) and self._share_mixed(alone & known) > _SOME_MIXED

    def _share_mixed(self, chosen: NDArray[np.bool_]) -> float:
        """Return the share of mixed groups in the weight of some groups, zero if there are none."""
        total = self.sizes[chosen].sum()
        return float(np.round(self.sizes[chosen & self.mixed].sum() / total, DIGITS)) if total else 0.0


def _hashes_of(codes: list[Floats]) -> Hashes:
    """Return hashes of the contents of rows, shape (n,)."""
    hashes = np.empty(len(codes[0]), dtype=np.uint64)
    for start in range(0, len(hashes), _ROWS_HASHED):
        block = np.column_stack([column[start : start + _ROWS_HASHED] for column in codes])
        block[np.isnan(block)] = np.nan  # one kind of NaN
        hashes[start : start + _ROWS_HASHED] = hashes_of(block)
    return hashes
