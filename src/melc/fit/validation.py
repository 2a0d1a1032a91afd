"""Checks of rows, labels, weights and priors before a fit, and their canonical form."""

from collections.abc import Container, Hashable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.sparsefuncs import min_max_axis

from melc._sklearn import check_no_masks
from melc.arrays import Floats

# With more than _MANY_CLASSES classes there must be at least _ROWS_PER_CLASS rows for each class, on average.
_MANY_CLASSES, _ROWS_PER_CLASS = 50, 4
# The codes of all classes may take _SMALL_CODES bytes or, if that is more, _CODES_PER_BYTE bytes for each byte of X.
_SMALL_CODES, _CODES_PER_BYTE = 2**30, 16
# Rows are processed in blocks of this size where all at once would take too much memory.
_ROWS_PER_BLOCK = 1 << 16
# Labels are searched in blocks of this size, because a single NumPy call on all of them could not be interrupted.
_LABELS_AT_ONCE = 1 << 20
# Types of labels that cannot be quantities: booleans, integers and strings. Labels of other types are checked.
_LABEL_KINDS = "biuU"
# How far the sum of the priors may be from one, because priors are often rounded.
_PRIORS_ROUNDING = 1e-6
# Smallest and largest total weight of a class.
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-6, 1e15
# Data with up to this many elements are sorted, which takes little time; larger data are seldom degenerate.
MOST_SORTED_NUMBERS = 200_000
# Skewness below this, and digits of the keys of columns beyond these, are rounding errors.
_NO_SKEWNESS, _KEY_DIGITS = 1e-9, 9
# Larger weights are not numbers of copies.
_LARGEST_COUNT = 2.0**53
# Fractions are numbers of copies in another unit if the copies of a row are no more than this on average; and how far a
# multiple may be from a whole number by rounding.
_USUAL_COPIES, _MULTIPLE_ERROR = 10.0, 1e-12
_MONOTONE: dict[Any, int] = {"increasing": 1, 1: 1, "decreasing": -1, -1: -1, None: 0, 0: 0}


def check_labels(y: Any) -> None:
    """Raise an error if labels are missing, in whatever way, or of a type that scikit-learn does not read."""
    if y is None:  # scikit-learn says what is needed
        return
    check_no_masks(y=y)
    # NumPy would make a text of NaN in a list of texts, so that the values of a list are read themselves.
    labels = y if isinstance(y, list | tuple) else np.asarray(y).ravel()
    kind = labels.dtype.kind if isinstance(labels, np.ndarray) else "O"
    if kind in "TV":
        raise ValueError(f"Labels of the type {np.asarray(y).dtype} are not supported. Make them texts: y.astype(str).")
    if kind == "O":
        missing = [i for i, label in enumerate(labels) if _is_missing(label)]
    else:
        missing = np.flatnonzero(np.isnan(labels)).tolist() if kind in "fcmM" else []
    if missing:
        raise ValueError(
            f"Labels are missing in {len(missing)} of {len(labels)} rows: the first is {labels[missing[0]]}, in row "
            f"{missing[0]}. Leave these rows out, which pandas.isna(y) finds, or make them a class of their own."
        )
    if isinstance(labels, list | tuple):  # NumPy would cut such texts to another length
        for label in labels:
            if isinstance(label, str) and str(label) != str.__str__(label):
                raise _not_found(label)


def _is_missing(label: Any) -> bool:
    """Whether a label is None or differs from itself, as NaN and NaT do."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # NA of pandas neither differs from itself nor equals itself
        return True
    except ValueError:  # several values
        return False


def labels_in(y: NDArray[Any], n_bytes: int) -> NDArray[Any]:
    """Return the distinct labels in ascending order, shape (n_classes,).

    Raises an error early if there are too many for data of ``n_bytes``.
    """
    found = []
    for part in _label_stretches(len(y)):
        if y.dtype.kind not in _LABEL_KINDS:
            _check_comparable(y[part])
            check_classification_targets(y[part])
        found.append(np.unique(y[part]))
        check_number_of_classes(len(found[-1]), len(y), n_bytes)
    labels = np.unique(np.concatenate(found))
    check_number_of_classes(len(labels), len(y), n_bytes)
    if labels.dtype.kind == "O":
        _check_equal_themselves(labels)
    return labels


def _check_comparable(y: NDArray[Any]) -> None:
    """Raise an error if labels are of types without a common order, such as texts and numbers, or of unknown types."""
    if y.dtype.kind != "O":
        return
    try:
        np.unique(y)
    except TypeError:
        types = sorted({type(label).__name__ for label in y})
        if len(types) == 1:
            problem = f"The labels are of the type {types[0]}, whose values have no order. Make them another type"
        else:
            problem = f"The labels are of different types, which have no order: {', '.join(types)}. Make them one type"
        raise ValueError(f"{problem}, for example texts: [str(label) for label in y].") from None
    if type_of_target(y) == "unknown":
        raise ValueError(
            f"Unknown label type: the labels are of the type {type(y[0]).__name__}, in an array of objects. Make them "
            "another type, for example texts: [str(label) for label in y]."
        )


def _check_equal_themselves(labels: NDArray[Any]) -> None:
    """Raise an error if NumPy does not find a label in an array that holds it, as for enums that are texts."""
    for i, label in enumerate(labels):
        if not np.all(labels[i : i + 1] == label):
            raise _not_found(label)


def _not_found(label: Any) -> ValueError:
    return ValueError(
        f"The label {label!r} is a text of the type {type(label).__name__}, which NumPy does not find in an array: "
        "y == label is False everywhere. Make the labels plain texts, for example [str(label) for label in y], or for "
        "an enum [label.value for label in y]."
    )


def class_numbers(y: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return the index in ``labels`` of the label of each row, shape (n,)."""
    numbers = np.empty(len(y), dtype=np.int8 if len(labels) <= 2 else np.intp)
    for part in _label_stretches(len(y)):
        numbers[part] = y[part] != labels[0] if len(labels) <= 2 else np.searchsorted(labels, y[part])
    return numbers


def _label_stretches(n: int) -> Iterator[slice]:
    """Yield slices of about equal length. In a very short one each row could look like a class of its own."""
    count = max(1, -(-n // _LABELS_AT_ONCE))
    for i in range(count):
        yield slice(n * i // count, n * (i + 1) // count)


def counts_and_totals(index: NDArray[Any], weights: Floats | None, n_classes: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the number of rows and the weight of every class, both of shape (n_classes,)."""
    counts, totals = np.zeros(n_classes, dtype=np.int64), np.zeros(n_classes)
    # In blocks, because bincount converts its argument to 64-bit integers.
    for start in range(0, len(index), _ROWS_PER_BLOCK):
        block = slice(start, start + _ROWS_PER_BLOCK)
        counts += np.bincount(index[block], minlength=n_classes)
        totals += np.bincount(index[block], None if weights is None else weights[block], n_classes)
    return counts, totals


def canonical(X: Any, index: NDArray[Any], weights: Floats | None) -> tuple[Any, NDArray[Any], Floats | None]:
    """Return the rows sorted by class and features, with equal rows of a class merged into one with their total weight.

    The features are compared in an order that follows from their contents, and so does the order of the classes. The
    fit of small data is then the same to the last bit for any order of the rows, whether rows are repeated or weighted,
    and up to rounding for any order of the features and classes. This matters if a problem is degenerate, for example
    with more features than rows: the search then magnifies rounding differences.

    Examples
    --------
    >>> import numpy as np
    >>> X, index, weights = canonical(np.array([[2.0], [1.0], [1.0]]), np.array([0, 0, 0]), None)
    >>> X.ravel(), index, weights
    (array([1., 2.]), array([0, 0]), array([2., 1.]))
    """
    totals = np.ones(len(index)) if weights is None else weights
    values = X.toarray() if sparse.issparse(X) else X
    order, first = _sorted(values, index, totals)
    order, totals = order[first], np.add.reduceat(totals[order], first)
    values, index = values[order], index[order]
    columns, signs = column_order(values, index, totals)
    contents = (values * signs)[:, columns] + 0.0  # no negative zeros
    again, _ = _sorted(contents, index, totals)
    classes = np.split(again, np.flatnonzero(np.diff(index[again])) + 1)
    contents = np.column_stack([contents, totals])
    again = np.concatenate(sorted(classes, key=lambda rows: contents[rows].tobytes()))
    chosen = X[order[again]]
    if sparse.issparse(chosen):
        chosen.sort_indices()  # sparse products are added in the order of the stored elements
    return chosen, index[again], totals[again]


def _sorted(values: Floats, index: NDArray[Any], totals: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the order of rows by class and features, and the positions in it at which a different row begins."""
    order = np.lexsort([values[:, 0], index])
    leading, classes = values[order, 0], index[order]
    if not np.any((leading[1:] == leading[:-1]) & (classes[1:] == classes[:-1])):  # no further features are needed
        return order, np.arange(len(index))
    # The weights of equal rows are sorted too, because their sum depends on the order in the last digit.
    order = np.lexsort([totals, *values.T[::-1], index])
    keys = np.column_stack([index, values])[order]
    return order, np.flatnonzero(np.concatenate([[True], np.any(keys[1:] != keys[:-1], axis=1)]))


def column_order(X: Floats, classes: NDArray[Any], weights: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the numbers of the columns, and their signs, in an order that depends only on the contents of dense rows.

    The sign of a column, shape (d,), is that of its skewness. The key by which columns are sorted is a sum over the
    classes of ``s + s²``, with s the weighted sum of the products of the column and the cubes of all columns, all
    standardised. Except for rounding it does not depend on the order of the rows, the columns or the classes, nor on
    the units of the columns and their signs: scores of levels change theirs with the order of the classes. The squares
    tell columns apart that have the same values, but not in the same classes.
    """
    shares, low = weights / weights.sum(), X.min(axis=0)
    with np.errstate(all="ignore"):  # a column may be constant
        rows = (X - low) / (X.max(axis=0) - low)
        rows -= shares @ rows
        rows *= np.nan_to_num(1 / np.sqrt(shares @ (rows * rows)), posinf=0.0)
    rows = np.nan_to_num(rows, copy=False)
    cubes = rows * rows * rows
    signs = np.where(shares @ cubes < -_NO_SKEWNESS, -1.0, 1.0)
    marks = shares * (cubes @ signs)
    sums = np.stack([np.where(classes == c, marks, 0.0) @ rows * signs for c in np.unique(classes)])
    keys = np.round((sums + sums**2).sum(axis=0), _KEY_DIGITS)
    return np.argsort(keys, kind="stable"), signs


def varies(X: Any) -> bool:
    """Return whether any feature varies. For dense X usually the first block is enough to tell."""
    if sparse.issparse(X):
        low, high = min_max_axis(X, axis=0)
        return bool(np.any(low < high))
    return any(
        bool(np.any(X[start : start + _ROWS_PER_BLOCK] != X[0])) for start in range(0, X.shape[0], _ROWS_PER_BLOCK)
    )


def check_varies(varies: bool, n_rows: int, n_features: int) -> None:
    """Raise an error if all rows are equal."""
    if not varies:
        raise ValueError(
            f"None of the {n_features} features varies over the {n_rows} rows, so no direction separates the "
            "classes. Check how the data were read."
        )


def check_number_of_classes(n_classes: int, n_rows: int, n_bytes: int) -> None:
    """Raise an error if there are so many classes that it must be a mistake, before memory is allocated.

    The codes of each class against the rest take one byte for each row.
    """
    needed = n_classes * n_rows
    problem = ""
    if n_classes > _MANY_CLASSES and n_rows < _ROWS_PER_CLASS * n_classes:
        problem = f"fewer than {_ROWS_PER_CLASS} rows for each class"
    elif needed > max(_SMALL_CODES, _CODES_PER_BYTE * n_bytes):
        problem = f"coding them takes {needed / 2**20:.1f} MiB, while the features take {n_bytes / 2**20:.1f} MiB"
    if problem:
        raise ValueError(
            f"There are {n_classes} classes in {n_rows} rows: {problem}. If they are values of a quantity, use a "
            "regressor. If they are row numbers, choose another column. If they are classes, join the rare ones."
        )


def check_classes(classes: NDArray[Any], counts: NDArray[np.int64], totals: Floats) -> None:
    """Raise an error for a single class, for classes of one row, and for weights that cannot be numbers of rows."""
    if len(classes) == 1:
        raise ValueError(
            f"At least two classes are needed, but there is one class only: {classes.tolist()[0]!r}. Add rows of a "
            "second class."
        )
    check_totals(classes, totals)
    counted = np.maximum(counts, totals)  # a row of weight two counts as two rows
    if counted.min() < 2:
        label = classes.tolist()[np.argmin(counted)]
        raise ValueError(
            f"Class {label!r} has 1 row; the width of its density needs at least 2. "
            "Add rows of that class or remove it."
        )


def check_totals(classes: NDArray[Any], totals: Floats) -> None:
    """Raise an error if the weights of a class add up to what cannot be a number of rows."""
    absurd = np.flatnonzero((totals < _LEAST_TOTAL) | (totals > _LARGEST_TOTAL))
    if len(absurd):
        label, total, largest = classes.tolist()[absurd[0]], totals[absurd[0]], float(totals.max())
        if total < _LEAST_TOTAL <= largest <= _LARGEST_TOTAL:
            raise ValueError(
                f"The weights of class {label!r} add up to only {total / largest:.3g} times those of another class. "
                "Limit the largest weights."
            )
        raise ValueError(
            f"The weights of class {label!r} add up to {total:.3g}. A weight counts as that many rows, and their "
            "number sets the width of the densities: scale the weights so that they add up to about the number of rows."
        )


def log_prior_ratios(priors: Any, classes: NDArray[Any], totals: Floats) -> Floats:
    """Return what priors add to the log-odds: log(prior of the second / prior of the first class), shape (1,).

    With more than two classes, the logarithms of the priors minus their mean, shape (n_classes,).
    """
    if priors is None:
        return np.zeros(len(classes) if len(classes) > 2 else 1)
    logarithms = np.log(prior_shares(priors, classes, totals))
    return np.asarray(logarithms - logarithms.mean() if len(classes) > 2 else np.diff(logarithms))


def prior_shares(priors: Any, classes: NDArray[Any], totals: Floats) -> Floats:
    """Return the priors of the classes, up to a factor, shape (n_classes,); ``totals`` are the weights of classes."""
    if priors is None or (isinstance(priors, str) and priors == "balanced"):
        return np.ones(len(classes))
    return totals if isinstance(priors, str) else _checked_shares(priors, classes)


def priors_in_order(priors: Any, classes: NDArray[Any]) -> Any:
    """Return priors that are a dict as a list in the order of the classes, and any others unchanged."""
    if not isinstance(priors, Mapping):
        return priors
    labels = classes.tolist()
    if set(priors) != set(labels):
        raise ValueError(
            f"priors={priors!r} must have a probability for each of the labels {labels[:10]}, and no other."
        )
    return [priors[label] for label in labels]


def _checked_shares(priors: Any, classes: NDArray[Any]) -> Floats:
    priors = priors_in_order(priors, classes)
    try:
        shares = np.asarray(priors, dtype=np.float64)
        numbers = np.asarray(priors).dtype.kind in "iuf"  # texts and truth values could be read as numbers
        good = numbers and shares.shape == classes.shape and bool(np.all(np.isfinite(shares) & (shares > 0)))
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(
            f"priors={priors!r} must be positive numbers, one for each class in the order of the {len(classes)} labels "
            f"{classes.tolist()[:10]}."
        )
    relative = shares / shares.max()  # whose sum cannot overflow
    total = float(shares.max()) * float(relative.sum())
    if abs(total - 1) > _PRIORS_ROUNDING:
        raise ValueError(
            f"priors={priors!r} add up to {total:.6g}, but the probabilities of the classes must add up to one. "
            f"Divide them by their sum: priors={(relative / relative.sum()).round(9).tolist()}."
        )
    return shares


def are_counts(weights: Floats) -> bool:
    """Return whether all weights are whole numbers, and so may be numbers of copies."""
    return bool(np.all(weights == np.round(weights)) and weights.max() < _LARGEST_COUNT)


def in_numbers_of_rows(weights: Floats) -> Floats:
    """Return weights, not negative and not all zero, in a unit in which a row of weight k counts as k rows.

    Whole numbers are numbers of copies, divided by their greatest common divisor. Fractions are numbers of copies as
    well if they are whole multiples of the smallest, ten or less on average. Otherwise they say how much rows matter
    relative to each other, and their sum becomes the effective number of rows, (Σ w)² / Σ w².

    Examples
    --------
    >>> in_numbers_of_rows(np.array([500.0, 1000.0, 500.0]))
    array([1., 2., 1.])
    >>> in_numbers_of_rows(np.array([0.5, 1.0, 0.0]))
    array([1., 2., 0.])
    >>> in_numbers_of_rows(np.array([1.0, 1.2, 0.0]))
    array([0.90163934, 1.08196721, 0.        ])
    """
    positive = weights[weights > 0]
    if are_counts(positive):
        return np.asarray(weights / np.gcd.reduce(positive.astype(np.int64)))
    with np.errstate(over="ignore", invalid="ignore"):  # in units of 1e-300, other weights overflow
        multiples = positive / positive.min()
        copies = np.all(np.abs(multiples - np.round(multiples)) <= _MULTIPLE_ERROR * multiples)
        if copies and multiples.sum() <= _USUAL_COPIES * len(multiples):
            return np.asarray(np.round(weights / positive.min()))
    shares = weights / positive.max()  # squares do not overflow
    ordered = np.sort(shares)  # the sums are the same to the last bit for any order of rows
    return np.asarray(shares * (ordered.sum() / (ordered @ ordered)))


def monotone_signs(monotone: Any, n_features: int, names: Any, classes: NDArray[Any]) -> Floats:
    """Return 1 for features along which the log-odds must not fall, −1 where they must not rise, else 0; shape (d,)."""
    signs = np.zeros(n_features)
    if monotone is None:
        return signs
    if len(classes) > 2:
        raise ValueError(f"monotone needs two classes, but y has {len(classes)}: {classes.tolist()[:10]}.")
    columns = {} if names is None else {name: k for k, name in enumerate(names)}
    if not isinstance(monotone, dict):
        wanted = list(monotone)
        if len(wanted) != n_features:
            raise ValueError(
                f"monotone has {len(wanted)} entries, but X has {n_features} features. Give one entry for each feature "
                '("increasing", "decreasing" or None), or a dict of those that are monotone.'
            )
        monotone = dict(enumerate(wanted))
    for feature, wish in monotone.items():
        known = feature in columns if isinstance(feature, str) else feature in range(n_features)
        if not known:
            raise ValueError(
                f"monotone names the feature {feature!r}, which X does not have. Its features are "
                f"{list(columns)[:10] if columns else f'0 to {n_features - 1}'}."
            )
        if not isinstance(wish, Hashable) or wish not in _MONOTONE:
            raise ValueError(f'monotone has {wish!r} for feature {feature!r}. Use "increasing", "decreasing" or None.')
        signs[columns[feature] if isinstance(feature, str) else feature] = _MONOTONE[wish]
    return signs


def check_monotone_columns(signs: Floats, categories: Container[int], names: Any) -> None:
    """Raise an error if a monotone feature is a category, whose levels have no order."""
    for j in np.flatnonzero(signs).tolist():
        if j in categories:
            raise ValueError(
                f"monotone names {j if names is None else names[j]!r}, but {j if names is None else names[j]!r} is a "
                "category, whose levels have no order. Make it an ordered category or a number, or leave it out."
            )
