"""Curves as sums of hat functions: their knots, and the sums over rows from which they are fitted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats


@dataclass(frozen=True)
class HatBasis:
    """The knots of some lines: those of line l are ``knots[starts[l] : starts[l + 1]]``, ascending, at least two."""

    knots: Floats
    starts: NDArray[np.int64]

    def with_knots(self, knots: Floats) -> "HatBasis":
        """Return the basis with a further line."""
        starts = np.append(self.starts, self.starts[-1] + len(knots))
        return HatBasis(np.append(self.knots, knots), starts)

    def of_line(self, line: int) -> Floats:
        """Return the knots of a line."""
        return self.knots[self.starts[line] : self.starts[line + 1]]


@dataclass(frozen=True)
class CurveRequest:
    """What sums are asked for: of curves with coefficients ``beta``, of shape (n_blocks, p).

    ``factors``, of shape (n_classes,), are factors on the weights of the rows of each class. ``block`` is the block
    whose second derivatives are wanted, or None.
    """

    basis: HatBasis
    beta: Floats
    factors: Floats
    block: int | None = None

    def zeros(self) -> "CurveSums":
        """Return sums over no rows."""
        size = 0 if self.block is None else self.beta.shape[1]
        return CurveSums(0.0, np.zeros(self.beta.shape), np.zeros((size, size)))


@dataclass
class CurveSums:
    """The log-likelihood of curves, its gradient, of shape (n_blocks, p), and its negative second derivatives.

    Of ``hessian``, of shape (p, p), the lower triangle is filled; it is empty if it was not asked for.
    """

    likelihood: float
    gradient: Floats
    hessian: Floats

    def __iadd__(self, other: "CurveSums") -> "CurveSums":
        self.likelihood += other.likelihood
        self.gradient += other.gradient
        self.hessian += other.hessian
        return self

    def add(self, z: Floats, codes: NDArray[np.int8], weights: tuple[Floats, int], request: CurveRequest) -> None:
        """Add rows with projections z, of shape (n_lines, n), to the sums. ``weights`` come with their step."""
        basis, block = request.basis, request.block or 0
        rows = z, codes, *weights, request.factors
        curves = basis.knots, basis.starts, request.beta
        self.likelihood += kernels.add_curve_sums(*rows, *curves, self.gradient, self.hessian, block)
