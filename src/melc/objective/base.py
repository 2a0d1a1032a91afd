"""The result of an evaluation of the divergence, and the interface of all ways to compute it."""

from dataclasses import dataclass
from typing import Protocol

from melc.arrays import Floats

# For a class that does not vary along v, the bandwidth would be zero and D infinite. The variance of a class is
# therefore taken to be at least this fraction of the variance of all points along v. As a ratio of standard deviations
# it is 1e-9, well above the rounding errors of a constant.
VARIANCE_FLOOR = 1e-18


@dataclass(frozen=True)
class Evaluation:
    """D at one direction, its gradient of shape (n_features,), and the number of exponentials computed.

    ``floored`` tells whether the variance of a class along the direction is below the floor. ``error`` is the certified
    error of D, apart from rounding, or None if no error of D is certified (by ``PairwiseDivergence``).
    """

    divergence: float
    gradient: Floats
    n_exponentials: int
    floored: bool
    error: float | None = None


class Divergence(Protocol):
    """A way to compute D and its gradient for a direction in the units of the features."""

    def evaluate(self, v: Floats) -> Evaluation: ...
