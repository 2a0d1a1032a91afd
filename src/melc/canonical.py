"""Small data in a form that does not depend on how they were written down.

Equal rows of a class are joined into one that has their weight, and rows come in a fixed order. The fit is then the
same to the last bit whatever the order of the rows, and whether a row is repeated or weighted. That matters where a
problem is degenerate, say with more features than rows: there the search blows differences in rounding up to visible
ones.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from melc.arrays import Floats

# Numbers up to which sorting costs next to nothing; larger data are seldom degenerate.
MOST_NUMBERS = 200_000


def canonical(X: Any, index: NDArray[Any], weights: Floats | None) -> tuple[Any, NDArray[Any], Floats | None]:
    """Features, class numbers and weights with equal rows joined, in ascending order; large data as they are.

    Examples
    --------
    >>> import numpy as np
    >>> X, index, weights = canonical(np.array([[2.0], [1.0], [2.0]]), np.array([0, 0, 0]), None)
    >>> X.ravel(), index, weights
    (array([1., 2.]), array([0, 0]), array([1., 2.]))
    """
    n_rows, n_features = X.shape
    if n_rows * n_features > MOST_NUMBERS:
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
