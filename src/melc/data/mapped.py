"""Rows in a temporary file that is mapped into memory: what has been read of them is given back to the system.

The system keeps the pages in its cache as long as it has room, and finds them there for the next pass. If they were not
given back, the whole file would count as memory of the process. Because they are, a fit takes about half as long again,
which is little beside reading the table. The maps that users pass are left as they are.
"""

import mmap
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Reading a byte may bring so many bytes around it into memory: a large page.
_NEIGHBOURS = 1 << 21
# Rows that are taken before memory is given back.
_TAKEN_AT_ONCE = 2048

Release = Callable[[int, int], None]

# The maps made here. A subclass of np.memmap would show in all that is computed from the rows: sums, copies, scalars.
_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


def mapped_rows(path: Path | str, shape: tuple[int, ...]) -> np.memmap:
    """Return the rows in a file of doubles, to be read only; their memory is given back after they have been read."""
    X: Any = np.memmap(path, dtype=np.float64, mode="r", shape=shape)
    _maps.add(X.base)
    return X


def keep_rows(start: int, stop: int) -> None:
    """Give nothing back: what rows in plain memory use, only their owner can free."""


def release_of(X: Any) -> Release:
    """Return a function that gives back the memory of the rows start … stop − 1 of X, if these are mapped rows."""
    file = _file_of(X)
    if file is None or not X.flags.c_contiguous or not hasattr(mmap, "MADV_DONTNEED"):
        return keep_rows
    first = _address(X) - _address(np.frombuffer(file, dtype=np.uint8))
    size = X.strides[0]

    def release(start: int, stop: int) -> None:
        low = max(0, first + start * size - _NEIGHBOURS) // mmap.PAGESIZE * mmap.PAGESIZE
        high = min(len(file), first + stop * size + _NEIGHBOURS)
        file.madvise(mmap.MADV_DONTNEED, low, high - low)

    return release


def blocks_of_rows(X: Any, size: int) -> Iterator[Any]:
    """Yield the rows of X in blocks of a size."""
    release = release_of(X)
    for start in range(0, X.shape[0], size):
        yield X[start : start + size]
        release(start, min(start + size, X.shape[0]))


def take_rows(X: Any, numbers: NDArray[np.int64]) -> Any:
    """Return a copy of the rows of X with the given numbers. Mapped rows are read in the order of the file."""
    release = release_of(X)
    if release is keep_rows:
        return X[numbers]
    taken = np.empty((len(numbers), X.shape[1]), dtype=X.dtype)
    ascending = np.argsort(numbers)
    for a in range(0, len(numbers), _TAKEN_AT_ONCE):
        places = ascending[a : a + _TAKEN_AT_ONCE]
        taken[places] = X[numbers[places]]
        release(numbers[places[0]], numbers[places[-1]] + 1)
    return taken


def _file_of(X: Any) -> mmap.mmap | None:
    """Return the file of mapped rows that an array is, or is a part of."""
    while isinstance(X, np.ndarray):
        X = X.base
    return X if isinstance(X, mmap.mmap) and X in _maps else None


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
