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

    def entries(self, z: Floats) -> "Entries":
        """Return the entries of rows with projections z, of shape (n_lines, n), along all lines or the last ones."""
        found = Entries(np.empty(z.shape, np.uint32), np.empty(z.shape))
        kernels.find_entries(z, self.knots, self.starts[-1 - len(z) :], found.at, found.part)
        return found


@dataclass(frozen=True)
class Entries:
    """Rows in a basis, (n_lines, n): along a line, ``1 − part`` at coefficient ``at`` and ``part`` at the next one."""

    at: NDArray[np.uint32]
    part: Floats

    def with_lines(self, others: "Entries") -> "Entries":
        """Return the entries of the same rows along these lines and further ones."""
        return Entries(np.vstack([self.at, others.at]), np.vstack([self.part, others.part]))

    def sums(self, weights: Floats, size: int) -> Floats:
        """Return the sums of weight times entry for each coefficient, shape (size,); zero for the constant."""
        found = np.zeros(size)
        for at, part in zip(self.at, self.part, strict=True):
            above = weights * part
            found += np.bincount(at, weights - above, size) + np.bincount(at + 1, above, size)
        return found


@dataclass(frozen=True)
class CurveRequest:
    """Which sums over rows are wanted: for curves with coefficients ``beta``, of shape (n_blocks, p).

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

    def add(
        self, entries: Entries, codes: NDArray[np.int8], weights: tuple[Floats, int], request: CurveRequest
    ) -> None:
        """Add rows with the given entries and class numbers to the sums. ``weights`` are an array and its step."""
        rows = entries.at, entries.part, codes, *weights, request.factors
        sums = self.gradient, self.hessian, request.block or 0
        self.likelihood += kernels.add_curve_sums(*rows, request.beta, *sums)
