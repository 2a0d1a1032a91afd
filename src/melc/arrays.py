"""The arrays that all rooms hand to each other."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def unit(v: Floats) -> Floats:
    """The same direction, of length one; squares of its components may be beyond the smallest or largest number.

    Examples
    --------
    >>> import numpy as np
    >>> unit(np.array([3e-200, 4e-200]))
    array([0.6, 0.8])
    """
    _, exponent = np.frexp(np.max(np.abs(v)))
    scaled = np.ldexp(v, -exponent)  # by a power of two, which costs no digit
    return np.asarray(scaled / np.linalg.norm(scaled))
