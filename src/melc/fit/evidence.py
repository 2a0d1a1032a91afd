"""Rows and the log-odds that the lines so far give them: what a further line would add to the likelihood.

Every class has the total target one half, so that both count equally. The *mass* of a row is the part of its target
that the lines so far leave unexplained, ``target · P(the other class)``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from melc import kernels
from melc.arrays import Floats
from melc.objective.base import silverman_factor

# Rows of each class that the background of a curve stands for.
PSEUDO_ROWS = 5.0
# Log-odds beyond these count as these: their exponentials are finite, also times the ratio of two densities.
_MOST_LOG_ODDS = 300.0
# A row with all but this part of the mass of its class is the class, and nothing is left to grow.
_LEAST_REST = 1e-7


@dataclass(frozen=True)
class Prospect:
    """What a further line is judged by: arguments of the kernels."""

    codes: NDArray[np.int8]
    targets: Floats
    masses: Floats
    own: Floats  # the masses of single copies of the rows
    growth: Floats  # by how much the rest of a class grows to its total when a copy of the row is left out
    log_odds: Floats
    factor: float
    pseudo_mass: float
    n_rows: float  # their total weight
    n_effective: float  # the same, or if one class is rarer, twice the harmonic mean of both

    @cached_property
    def arguments(self) -> tuple[NDArray[np.int8], Floats, Floats, Floats, Floats, Floats, float, float]:
        against = np.where(self.codes == 1, -self.log_odds, self.log_odds)
        odds = np.exp(np.clip(against, -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
        rows = self.codes, self.targets, self.masses, self.own, self.growth, odds
        return *rows, self.factor, self.pseudo_mass

    def likelihood(self, z: Floats) -> float:
        """Return the likelihood with a line along which the rows have projections z, each row left out of its curve."""
        table = np.empty((kernels.TABLE_ROWS, kernels.MOST_NODES))
        return float(kernels.line_evidence(np.ascontiguousarray(z), *self.arguments, table))


class Standing:
    """Where the rows of two classes stand: their log-odds by the lines so far, of shape (n,)."""

    def __init__(self, codes: NDArray[np.int8], weights: Floats | None, gamma: float) -> None:
        """Take codes 0 and 1, and weights: a row of weight k counts as k rows."""
        self.codes, self.gamma = codes, gamma
        self.weights = np.ones(len(codes)) if weights is None else weights
        self.totals = np.bincount(codes, self.weights, 2)
        self.targets = 0.5 * self.weights / self.totals[codes]
        self.log_odds = np.zeros(len(codes))
        self._copies = np.maximum(self.weights, 1.0)

    @property
    def n_effective(self) -> float:
        """The number of rows; if one class is rarer, twice the harmonic mean of both."""
        return float(4 / np.sum(1 / self.totals))

    @property
    def likelihood(self) -> float:
        """The likelihood of the lines so far, at most zero: ``Σ target · log P(class)``."""
        margins = np.where(self.codes == 1, self.log_odds, -self.log_odds)
        return float(self.targets @ -np.logaddexp(0, -margins))

    def prospect(self) -> Prospect:
        """Return what a further line is judged by."""
        masses = self.targets * expit(np.where(self.codes == 1, -self.log_odds, self.log_odds))
        own, totals = masses / self._copies, np.bincount(self.codes, masses, 2)
        rest = 1 - own / totals[self.codes]
        growth = 1 / np.where(rest > _LEAST_REST, rest, 1.0)
        numbers = totals**2 / np.bincount(self.codes, masses * own, 2)
        factor = silverman_factor(2 / np.sum(1 / numbers), self.gamma)
        pseudo_mass = PSEUDO_ROWS * masses.sum() / self.n_effective
        known = self.codes, self.targets, masses, own, growth, self.log_odds
        rows = float(self.totals.sum()), self.n_effective
        return Prospect(*known, float(np.sqrt(factor)), float(pseudo_mass), *rows)
