"""Labels and their numbers, stretch by stretch: NumPy's search among very many rows could not be interrupted."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

_AT_ONCE = 1 << 20


def labels_in(y: NDArray[Any], check_number: Callable[[int], None]) -> NDArray[Any]:
    """The different labels in ascending order; a stretch with too many ends the search."""
    found = []
    for part in _stretches(len(y)):
        check_classification_targets(y[part])
        found.append(np.unique(y[part]))
        check_number(len(found[-1]))
    labels = np.unique(np.concatenate(found))
    check_number(len(labels))
    return labels


def numbers_of(y: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """The place of every label among all."""
    numbers = np.empty(len(y), dtype=np.int8 if len(labels) <= 2 else np.intp)
    for part in _stretches(len(y)):
        numbers[part] = y[part] != labels[0] if len(labels) <= 2 else np.searchsorted(labels, y[part])
    return numbers


def _stretches(n: int) -> Iterator[slice]:
    """Of about equal length: few rows by themselves could look as if each were a class."""
    count = max(1, -(-n // _AT_ONCE))
    for i in range(count):
        yield slice(n * i // count, n * (i + 1) // count)
