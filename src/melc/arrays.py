"""Names for the arrays that all rooms hand to each other."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
