"""What an evaluation of the divergence returns, and what every way to compute it looks like."""

from dataclasses import dataclass
from typing import Protocol

from melc.arrays import Floats

# A class that does not vary along v would have a kernel of no width and D would be infinite. Its variance is
# taken to be at least this fraction of the variance of all points along v (a standard deviation ratio of
# 1e-9, well above what rounding makes of a constant).
VARIANCE_FLOOR = 1e-18


@dataclass(frozen=True)
class Evaluation:
    """D at one direction, its gradient of shape (n_features,), and what it cost.

    ``floored`` says that a class does not vary along the direction; ``error`` is the certified error of D
    (zero for the exact sum up to rounding, None where a method certifies something else).
    """

    divergence: float
    gradient: Floats
    n_exponentials: int
    floored: bool
    error: float | None = None


class Divergence(Protocol):
    """D and its gradient for a direction in the units of the features."""

    def evaluate(self, v: Floats) -> Evaluation: ...
