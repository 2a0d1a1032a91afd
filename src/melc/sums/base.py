"""What every method of the Gaussian double sum takes and gives."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats


@dataclass(frozen=True)
class Side:
    """The projected points of one class and their positive weights, as a method wants them.

    ``order`` says where each point stood before the method rearranged them (None: they stayed).
    """

    values: Floats
    weights: Floats
    order: NDArray[np.int64] | None = None

    def restore(self, derivative: Floats) -> Floats:
        """Derivatives in the order of ``values``, put back in the order of the caller's points."""
        if self.order is None:
            return derivative
        restored = np.empty_like(derivative)
        restored[self.order] = derivative
        return restored


@dataclass(frozen=True)
class DoubleSum:
    """log S with S = Σ_ij a_i b_j exp(−(x_i − y_j)²/2V), its derivatives and its cost.

    ``dx`` is ∂ log S/∂x_i, ``dy`` ∂ log S/∂y_j (None within one class, where ``dx`` holds both roles of
    a point). A logarithm and its derivative stay finite where S itself underflows.
    """

    log_value: float
    dx: Floats
    dy: Floats | None
    n_exponentials: int


class Method(Protocol):
    """One way to compute the double sum; ``prepare`` is called once per class and evaluation."""

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side: ...

    def within(self, x: Side, variance: float) -> DoubleSum: ...

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum: ...
