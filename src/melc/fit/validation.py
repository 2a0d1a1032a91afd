"""What is checked of rows, labels, weights and priors before a fit, and the form in which they enter it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.sparsefuncs import min_max_axis

from melc.arrays import Floats

# With more classes than this there must be some rows to each.
_MANY_CLASSES, _ROWS_PER_CLASS = 50, 4
# Bytes that the codes of all classes may take whatever X has, and beyond that for each byte of X.
_SMALL_CODES, _CODES_PER_BYTE = 2**30, 16
# Rows that are looked at together where all at once would fill the memory.
_BLOCK = 1 << 16
# Labels that are searched at once: NumPy's search among very many could not be interrupted.
_LABELS_AT_ONCE = 1 << 20
# Rows that a class may count as, by weight.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-6, 1e15
# Numbers up to which sorting rows costs next to nothing; larger data are seldom degenerate.
MOST_SORTED_NUMBERS = 200_000


def labels_in(y: NDArray[Any], n_bytes: int) -> NDArray[Any]:
    """Return the different labels in ascending order. Too many for data of ``n_bytes`` are refused early."""
    found = []
    for part in _label_stretches(len(y)):
        check_classification_targets(y[part])
        found.append(np.unique(y[part]))
        check_number_of_classes(len(found[-1]), len(y), n_bytes)
    labels = np.unique(np.concatenate(found))
    check_number_of_classes(len(labels), len(y), n_bytes)
    return labels


def numbers_of(y: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the place of every row's label among all labels, of shape (n,)."""
    numbers = np.empty(len(y), dtype=np.int8 if len(labels) <= 2 else np.intp)
    for part in _label_stretches(len(y)):
        numbers[part] = y[part] != labels[0] if len(labels) <= 2 else np.searchsorted(labels, y[part])
    return numbers


def _label_stretches(n: int) -> Iterator[slice]:
    """Of about equal length: few rows by themselves could look as if each were a class."""
    count = max(1, -(-n // _LABELS_AT_ONCE))
    for i in range(count):
        yield slice(n * i // count, n * (i + 1) // count)


def drop_weightless(X: Any, y: Any, weights: Floats) -> tuple[Any, Any, Floats]:
    """Return the rows whose weight is not zero."""
    kept = weights > 0
    if kept.all():
        return X, y, weights
    return X[kept], y[kept], weights[kept]


def counts_and_totals(index: NDArray[Any], weights: Floats | None, n_classes: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the number of rows and the weight of every class, both of shape (n_classes,)."""
    counts, totals = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes)
    for start in range(0, len(index), _BLOCK):  # by blocks: counting makes wide numbers of narrow ones
        block = slice(start, start + _BLOCK)
        counts += np.bincount(index[block], minlength=n_classes)
        totals += np.bincount(index[block], None if weights is None else weights[block], n_classes)
    return counts, totals


def canonical(X: Any, index: NDArray[Any], weights: Floats | None) -> tuple[Any, NDArray[Any], Floats | None]:
    """Return rows in ascending order, equal rows of a class joined into one that has their weight.

    The fit of small data is then the same to the last bit whatever the order of the rows, and whether a row is
    repeated or weighted. That matters where a problem is degenerate, say with more features than rows: there the search
    enlarges differences in rounding to visible ones. Data of more than 200,000 numbers are returned as they are.

    Examples
    --------
    >>> import numpy as np
    >>> X, index, weights = canonical(np.array([[2.0], [1.0], [2.0]]), np.array([0, 0, 0]), None)
    >>> X.ravel(), index, weights
    (array([1., 2.]), array([0, 0]), array([1., 2.]))
    """
    n_rows, n_features = X.shape
    if n_rows * n_features > MOST_SORTED_NUMBERS:
        return X, index, weights
    mass = np.ones(n_rows) if weights is None else weights
    values = X.toarray() if sparse.issparse(X) else X
    # The weights of equal rows in ascending order too: their sum depends on it, if only in the last digit.
    order = np.lexsort([mass, *values.T[::-1], index])
    keys = np.column_stack([index, values])[order]
    first = np.flatnonzero(np.concatenate([[True], np.any(keys[1:] != keys[:-1], axis=1)]))
    chosen = X[order[first]]
    if sparse.issparse(chosen):
        chosen.sort_indices()  # products add up in the order of what is stored
    return chosen, index[order[first]], np.add.reduceat(mass[order], first)


def varies(X: Any) -> bool:
    """Return whether any feature does; found out in the first block, as a rule."""
    if sparse.issparse(X):
        low, high = min_max_axis(X, axis=0)
        return bool(np.any(low < high))
    return any(bool(np.any(X[start : start + _BLOCK] != X[0])) for start in range(0, X.shape[0], _BLOCK))


def check_varies(varies: bool, n_rows: int, n_features: int) -> None:
    """Refuse rows that are all the same."""
    if not varies:
        raise ValueError(
            f"None of the {n_features} features varies over the {n_rows} rows, so no direction tells the "
            "classes apart. Check how X was read."
        )


def check_number_of_classes(n_classes: int, n_rows: int, n_bytes: int) -> None:
    """Refuse what can only be a mistake, before memory is asked for: each class is told from the rest on its own."""
    needed = n_classes * n_rows
    few_rows = n_classes > _MANY_CLASSES and n_rows < _ROWS_PER_CLASS * n_classes
    if few_rows or needed > max(_SMALL_CODES, _CODES_PER_BYTE * n_bytes):
        raise ValueError(
            f"y holds {n_classes} classes in {n_rows} rows; to code them takes {needed / 2**20:.0f} MiB, while X has "
            f"{n_bytes / 2**20:.0f} MiB. If y is a quantity or the number of a row, it needs another method or column; "
            "if it is a class, join the rare ones."
        )


def check_classes(classes: NDArray[Any], counts: NDArray[np.int64], totals: Floats) -> None:
    """Refuse a single class, classes of one row, and weights that cannot be meant as numbers of rows."""
    if len(classes) == 1:
        raise ValueError(
            f"MELC tells classes apart, but y holds one class only: {classes.tolist()[0]!r}. Rows of a second class "
            "are needed."
        )
    _check_totals(classes, totals)
    counted = np.maximum(counts, totals)  # a row of weight two is two rows
    if counted.min() < 2:
        label = classes.tolist()[np.argmin(counted)]
        raise ValueError(
            f"Class {label!r} has 1 row; the width of its density needs at least 2. "
            "Add rows of that class or remove it."
        )


def _check_totals(classes: NDArray[Any], totals: Floats) -> None:
    absurd = np.flatnonzero((totals < _LEAST_TOTAL) | (totals > _LARGEST_TOTAL))
    if len(absurd):
        label, total = classes.tolist()[absurd[0]], totals[absurd[0]]
        raise ValueError(
            f"The weights of class {label!r} add up to {total:.3g}. A weight counts as that many rows, and their "
            "number sets the width of the densities: scale the weights so that they add up to about the number of rows."
        )


def log_prior_ratios(priors: Any, classes: NDArray[Any], totals: Floats) -> list[float]:
    """Return log(prior / prior of the rest) for every projection: of the second class, or of all if there are more."""
    if priors is None:
        return [0.0] * (len(classes) if len(classes) > 2 else 1)
    shares = totals if isinstance(priors, str) else _checked_shares(priors, classes)
    rest = [np.delete(shares, k).sum() for k in range(len(shares))]  # not 1 − share, which rounds to nothing
    ratios = np.log(shares / rest)
    return [float(r) for r in (ratios if len(classes) > 2 else ratios[1:])]


def _checked_shares(priors: Any, classes: NDArray[Any]) -> Floats:
    try:
        shares = np.asarray(priors, dtype=np.float64)
        good = shares.shape == classes.shape and bool(np.all(np.isfinite(shares) & (shares > 0)))
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"priors={priors!r} must be positive numbers, one for each class in the order of the {len(classes)} labels "
            f"{classes.tolist()[:10]}."
        )
    return shares
