"""The interface that all methods of the Gaussian double sum share."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats


@dataclass(frozen=True)
class Side:
    """The projected points of one class, prepared by a method.

    ``values`` are the points and ``weights`` their positive weights, both of shape (n,). ``order``, of shape (n,),
    holds the original position of each point, or is None if the method did not rearrange them.
    """

    values: Floats
    weights: Floats
    order: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class DoubleSum:
    """log S with S = Σ_ij a_i b_j exp(−(x_i − y_j)²/2V), its derivatives, and the number of exponentials computed.

    ``dx``, of shape (n,), is ∂ log S/∂x_i and ``dy``, of shape (m,), is ∂ log S/∂y_j. For a sum within one class
    (y = x), ``dx`` is the full derivative and ``dy`` is None. log S and its derivatives stay finite where S itself
    would underflow.
    """

    log_value: float
    dx: Floats
    dy: Floats | None
    n_exponentials: int


class Method(Protocol):
    """A way to compute the double sum.

    ``smooth`` says whether the sum is a smooth function of the points, so that a solver can use its curvature.
    ``scale_free``: ``eps`` bounds the error of log S, whatever the units of the points; otherwise it is an absolute
    error, which depends on them. ``distributes``: the sum needs only totals over rows, which may be in several places.
    ``has_grid``: starts may be searched on the cheaper approximation of :mod:`melc.objective.grid` first.
    ``default_eps`` is the error that is accepted if the user names none, or None if the user must name one.
    """

    smooth: ClassVar[bool]
    scale_free: ClassVar[bool]
    distributes: ClassVar[bool]
    has_grid: ClassVar[bool]
    default_eps: ClassVar[float | None]

    def __init__(self, eps: float) -> None: ...

    def prepare(self, values: Floats, weights: Floats, label: int) -> Side:
        """Return the points of class ``label`` prepared for the sums; called once for each class and evaluation."""
        ...

    def within(self, x: Side, variance: float) -> DoubleSum:
        """Return the sum over all ordered pairs of points of one class, pairs of a point with itself included."""
        ...

    def across(self, x: Side, y: Side, variance: float) -> DoubleSum:
        """Return the sum over all pairs of a point of one class and a point of the other."""
        ...
