"""The folds and starting directions. They are the same for every method, solver, γ and ε."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.model_selection import StratifiedKFold

from melc.paper import datasets


@dataclass(frozen=True)
class Split:
    """Training and test data of one fold.

    ``X_train`` and ``X_test`` have shape (n_rows, n_features), ``y_train`` and ``y_test`` shape (n_rows,). Classes are
    coded 0 and 1, in the order of the labels.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@lru_cache(maxsize=64)
def split(data_set: str, fold: int, n_folds: int, seed: int) -> Split:
    """Return fold number `fold` of a stratified cross-validation; it depends on the arguments only.

    >>> split("heart", 0, 5, 0).X_test.shape
    (54, 13)
    """
    data = datasets.load(data_set)
    codes = np.unique(data.y, return_inverse=True)[1]
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(data.X, codes)
    train, test = list(folds)[fold]
    return Split(data.X[train], codes[train], data.X[test], codes[test])


def starts(data_set: str, fold: int, seed: int, n_starts: int, n_features: int) -> np.ndarray:
    """Return random unit vectors, shape (n_starts, n_features). The first k are the same for every n_starts ≥ k.

    >>> starts("heart", 0, 0, 2, 13).shape
    (2, 13)
    """
    generator = np.random.default_rng([seed, zlib.crc32(data_set.encode()), fold])
    directions = generator.standard_normal((n_starts, n_features))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)
