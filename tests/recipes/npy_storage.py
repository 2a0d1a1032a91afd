"""Rows in a file that NumPy wrote: ``MELC().fit(Path("X.npy"), y)`` reads it block by block."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, validate_data

from melc.data.memory import MemoryRows
from melc.data.source import Collected


def holds(X: Any, y: Any, sample_weight: Any) -> bool:
    """Return whether the features are in such a file."""
    return isinstance(X, Path) and X.suffix == ".npy"


def collect(model: Any, X: Path, y: Any, sample_weight: Any, few: Callable[[int, int], bool]) -> Collected | None:
    """Return the rows and their classes, or None if there are so few rows that they belong in memory."""
    mapped = np.load(X, mmap_mode="r")
    if few(*mapped.shape):
        return None
    mapped = validate_data(model, mapped, dtype=[np.float64, np.float32])  # checks the numbers, and does not copy them
    weights = np.ones(len(mapped)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    check_consistent_length(mapped, y, weights)
    classes, codes = np.unique(y, return_inverse=True)
    rows = MemoryRows(mapped, codes, weights)
    varies = bool((mapped.min(axis=0) < mapped.max(axis=0)).any())
    return Collected(rows, classes, np.bincount(codes), np.bincount(codes, weights), varies)


def gather(X: Path, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the data in memory."""
    return np.load(X), y, sample_weight
