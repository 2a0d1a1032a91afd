"""The array type that the modules share, and a function on vectors."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def unit(v: Floats) -> Floats:
    """Return ``v / ‖v‖``, shape (n,), also where squares of the components would underflow or overflow.

    Examples
    --------
    >>> import numpy as np
    >>> unit(np.array([3e-200, 4e-200]))
    array([0.6, 0.8])
    """
    _, exponent = math.frexp(np.abs(v).max())
    scaled = np.ldexp(v, -exponent)  # scaling by a power of two is exact
    return np.asarray(scaled / math.sqrt(scaled @ scaled))
