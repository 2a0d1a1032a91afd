"""Explanations of the first rows of a file."""

import numpy as np

from melc.explain import explain, nearest_change
from melc.tables.model import TableModel
from melc.tables.read import read_blocks
from melc.tables.source import Source


def explained_rows(fitted: TableModel, source: Source, n: int, most: int = 10) -> str:
    """Return the parts of the features in the first n rows of a file, and the nearest change of class of each, as text.

    Only columns of numbers and dates change: a text cannot change a little.
    """
    columns, names = fitted.encoding.columns, fitted.encoding.feature_names
    changeable = [name for c in columns if c.categories is None for name in c.feature_names]
    blocks, found = [], 0
    for block in read_blocks(source, fitted.encoding.kinds, len(names)):
        blocks.append(fitted.encoding.encode(block.slice(0, n - found)).X)
        found += len(blocks[-1])
        if found >= n:
            break
    if not found:
        raise ValueError(f"{source.name}: the table has no rows to explain.")
    X = np.concatenate(blocks)
    parts = explain(fitted.model, X, feature_names=names)
    change = nearest_change(fitted.model, X, features=changeable, feature_names=names)
    return "\n\n".join(
        f"row {i + 1}: {parts.summary(i, most=most)}\nnearest change: {change.summary(i, most=most)}"
        for i in range(found)
    )
