"""Rows and the log-odds that the lines so far give them: what a further line would add to the likelihood.

Every class has the total target one half, so that both count equally. The *mass* of a row is the part of its target
that the lines so far leave unexplained, ``target · P(the other class)``.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from melc import kernels
from melc.arrays import Floats
from melc.model.curve import Curve, simplified
from melc.model.line import Line

# Rows that the background of a curve stands for.
_PSEUDO_ROWS = 5.0
# How far class densities in pictures may be from those on the grid, as a part of the highest.
_PICTURE_ERROR = 0.004
# Corners of a curve that change the log-odds by less than this are left out; values below the other are rounding.
_SMOOTHED, _NOTHING = 0.01, 1e-9


@dataclass(frozen=True)
class Prospect:
    """What a further line is judged by: arguments of the kernels."""

    codes: NDArray[np.int8]
    targets: Floats
    masses: Floats
    own: Floats
    log_odds: Floats
    factor: float
    pseudo_mass: float
    n_rows: float  # their total weight
    n_effective: float  # the same, or if one class is rarer, twice the harmonic mean of both

    @property
    def arguments(self) -> tuple[NDArray[np.int8], Floats, Floats, Floats, Floats, float, float]:
        return self.codes, self.targets, self.masses, self.own, self.log_odds, self.factor, self.pseudo_mass

    def likelihood(self, z: Floats, gains: Floats | None = None) -> float:
        """Return the likelihood with a line along which the rows have projections z, each row left out of its curve.

        What the line adds to each row is written to ``gains``, if given.
        """
        table = np.empty((kernels.TABLE_ROWS, kernels.MOST_NODES))
        out = np.empty(0) if gains is None else gains
        return float(kernels.line_evidence(np.ascontiguousarray(z), *self.arguments, table, out))


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
        own = masses / self._copies
        numbers = np.bincount(self.codes, masses, 2) ** 2 / np.bincount(self.codes, masses * own, 2)
        factor = kernels.silverman_factor(2 / np.sum(1 / numbers), self.gamma)
        pseudo_mass = _PSEUDO_ROWS * masses.sum() / self.n_effective
        known = self.codes, self.targets, masses, own, self.log_odds
        rows = float(self.totals.sum()), self.n_effective
        return Prospect(*known, float(np.sqrt(factor)), float(pseudo_mass), *rows)

    def line(self, prospect: Prospect, direction: Floats, z: Floats, shares: Floats, class_index: int) -> Line:
        """Return the line along a direction with projections z, shape (n,).

        ``shares``, of shape (d,), are the parts that the features have in it.
        """
        places, first, second, deviation = self._densities(z, prospect.masses, prospect.factor, prospect.pseudo_mass)
        background = prospect.pseudo_mass / (kernels.PSEUDO_WIDTH * deviation)
        values = np.log((second + background) / (first + background))
        values[np.abs(values) < _NOTHING] = 0.0
        kept = simplified(places, values, _SMOOTHED)
        curve = Curve(places[kept], values[kept])
        places, *heights, _ = self._densities(z, self.targets, prospect.factor, 0.0)
        densities = 2 * np.array(heights)
        shown = simplified(places, densities.T, _PICTURE_ERROR * float(densities.max()))
        adds = curve.at(z)
        importance = float(self.targets @ np.abs(adds - self.targets @ adds))
        return Line(
            direction=direction,
            curve=curve,
            class_index=class_index,
            importance=importance,
            feature_importances=importance * shares,
            counts=self.counts(z, curve.thresholds),
            places=places[shown],
            densities=densities[:, shown],
        )

    def alone(self, line: Line, z: Floats, intercept: float) -> Line:
        """Return the only line of a class with intervals by the class's log-odds, at projections z of shape (n,)."""
        curve = line.curve.with_knots_at(-intercept)
        counts = self.counts(z, curve.plus(intercept).thresholds)
        return replace(line, curve=curve, counts=counts, offset=intercept)

    def _densities(
        self, z: Floats, masses: Floats, factor: float, pseudo_mass: float
    ) -> tuple[Floats, Floats, Floats, float]:
        """The nodes of a grid, the densities of the classes there, and the standard deviation within the classes."""
        table = np.empty((kernels.TABLE_ROWS, kernels.MOST_NODES))
        low, step, _, left, right, deviation = kernels.line_densities(z, self.codes, masses, factor, pseudo_mass, table)
        nodes = np.arange(left, right + 1)
        return low + step * nodes, table[0, nodes], table[1, nodes], deviation

    def counts(self, z: Floats, thresholds: Floats) -> Floats:
        """Return the weight of each class in each interval between thresholds, shape (n_intervals, 2)."""
        interval = np.searchsorted(thresholds, z, side="right")
        n_intervals = len(thresholds) + 1
        counts = np.bincount(2 * interval + self.codes, self.weights, 2 * n_intervals)
        return np.asarray(counts, dtype=np.float64).reshape(n_intervals, 2)
