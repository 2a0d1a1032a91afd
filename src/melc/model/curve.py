"""A curve: the log-odds along a line, piecewise linear."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats

# Points in a compiled call, after which Python can react to Ctrl-C.
_POINTS_AT_ONCE = 1 << 18
# Crossings of lines between two knots that are nearer to each other than this part of the way are one.
_SAME_CROSSING = 1e-12


@dataclass(frozen=True)
class Pieces:
    """The formula of a curve: ``value + slope · (z − anchor)`` on each of its m + 1 pieces.

    Piece i lies between the knots i − 1 and i; the first and the last are constant. All arrays have shape (m + 1,). The
    anchor is the end of the piece at which the curve is nearer to zero. So neither summand has the opposite sign of the
    curve, and rounding cannot change the sign of the sum: it is exactly zero only at knots of value zero.
    """

    values: Floats
    slopes: Floats
    anchors: Floats


@dataclass(frozen=True)
class Curve:
    """Log-odds at knots: linear between them, constant beyond the outermost.

    ``knots`` and ``log_odds`` have shape (m,); the knots ascend. Where the curve is positive, it favours a class;
    where it is zero or negative, against it. ``missing`` are the log-odds where the value is missing (NaN).

    Examples
    --------
    >>> curve = Curve(np.array([0.0, 1.0, 3.0]), np.array([-1.0, 1.0, -3.0]))
    >>> curve.at(np.array([-5.0, 0.25, 2.0]))
    array([-1. , -0.5, -1. ])
    >>> curve.thresholds
    array([0.5, 1.5])
    """

    knots: Floats
    log_odds: Floats
    missing: float | None = None

    def at(self, z: Floats) -> Floats:
        """Return the log-odds at projections z, both of shape (n,)."""
        pieces, out = self.pieces, np.empty(len(z))
        for start in range(0, len(z), _POINTS_AT_ONCE):
            part = slice(start, start + _POINTS_AT_ONCE)
            block = np.ascontiguousarray(z[part])  # for columns of a table, numba would compile the kernel once more
            kernels.evaluate_curve(block, self.knots, pieces.values, pieces.slopes, pieces.anchors, out[part])
        if self.missing is not None:
            out[np.isnan(z)] = self.missing
        return out

    def slope(self, z: Floats) -> Floats:
        """Return the derivative at projections z, of the same shape. At a knot it is the slope above the knot."""
        return np.asarray(self.pieces.slopes[np.searchsorted(self.knots, z, side="right")])

    @cached_property
    def pieces(self) -> Pieces:
        """The curve as a formula, which all exports use."""
        knots, values = self.knots, self.log_odds
        first = np.abs(values[:-1]) <= np.abs(values[1:])  # whether the lower end of a piece is nearer to zero
        return Pieces(
            np.concatenate([values[:1], np.where(first, values[:-1], values[1:]), values[-1:]]),
            np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]]),
            np.concatenate([knots[:1], np.where(first, knots[:-1], knots[1:]), knots[-1:]]),
        )

    @cached_property
    def thresholds(self) -> Floats:
        """The projections at which the curve changes its sign, ascending; shape (n_thresholds,).

        A threshold belongs to the interval above it. Touching zero does not count as a change.
        """
        nonzero = np.flatnonzero(self.log_odds)
        positive = self.log_odds[nonzero] > 0
        changes = np.flatnonzero(np.diff(positive))
        return np.array([self._change(nonzero[i], nonzero[i + 1], bool(positive[i])) for i in changes], dtype=float)

    def _change(self, i: int, j: int, falls: bool) -> float:
        """Return where the sign changes between two knots of opposite sign with only zeros between them."""
        if j - i > 1:  # the curve is positive above a last zero, and no longer at a first one
            return float(self.knots[i + 1] if falls else np.nextafter(self.knots[j - 1], np.inf))
        share = self.log_odds[i] / (self.log_odds[i] - self.log_odds[j])
        root = self.knots[i] + share * (self.knots[j] - self.knots[i])
        return float(np.clip(root, self.knots[i], self.knots[j]))

    @property
    def codes(self) -> NDArray[np.int8]:
        """One for the intervals between thresholds in which the curve is positive, else zero; (n_thresholds + 1,)."""
        nonzero = self.log_odds[self.log_odds != 0]
        first = int(len(nonzero) > 0 and nonzero[0] > 0)
        return ((np.arange(len(self.thresholds) + 1) + first) % 2).astype(np.int8)

    def ranges(self) -> list[tuple[float, float]]:
        """Return the least and the largest value in each interval between thresholds, zero at the thresholds."""
        values = self.log_odds[self.log_odds != 0]
        if not len(values):
            return [(0.0, 0.0)]
        parts = np.split(values, np.flatnonzero(np.diff(values > 0)) + 1)
        if len(parts) > 1:
            parts = [np.append(part, 0.0) for part in parts]
        return [(float(part.min()), float(part.max())) for part in parts]

    def plus(self, constant: float) -> "Curve":
        """Return the curve plus a constant."""
        missing = None if self.missing is None else self.missing + constant
        return self if constant == 0 else Curve(self.knots, self.log_odds + constant, missing)

    def with_knots_at(self, level: float) -> "Curve":
        """Return the same curve with a knot wherever it passes through ``level``."""
        moved = self.log_odds - level
        i = np.flatnonzero(moved[:-1] * moved[1:] < 0)
        share = moved[i] / (moved[i] - moved[i + 1])
        added = self.knots[i] + share * (self.knots[i + 1] - self.knots[i])
        # Where the curve rises, the threshold is the next number above the knot.
        added = np.where(moved[i] < 0, np.nextafter(added, -np.inf), added)
        log_odds = np.append(self.log_odds, np.full(len(i), level))
        return of_points(np.append(self.knots, added), log_odds, level, self.missing)

    def moved(self, shift: float, norm: float) -> "Curve":
        """Return the curve of z' = (z + shift) / norm."""
        return of_points((self.knots + shift) / norm, self.log_odds, missing=self.missing)


def leading(curves: Sequence[Curve]) -> tuple[Floats, NDArray[np.int64]]:
    """Return where the highest of several curves changes, and the number of the highest curve in each interval.

    The thresholds have shape (n_thresholds,), the numbers shape (n_thresholds + 1,). Of equal curves the first leads.
    """
    knots = np.unique(np.concatenate([curve.knots for curve in curves]))
    values = np.stack([curve.at(knots) for curve in curves])
    shares = [_overtaken_at(values[:, k], values[:, k + 1]) for k in range(len(knots) - 1)]
    piece = np.repeat(np.arange(len(shares)), [len(each) for each in shares])
    crossings = knots[piece] + np.concatenate([np.empty(0), *shares]) * np.diff(knots)[piece]
    places = np.unique(np.append(knots, crossings))
    middles = np.concatenate([[places[0] - 1.0], 0.5 * (places[:-1] + places[1:]), [places[-1] + 1.0]])
    leaders = np.argmax([curve.at(middles) for curve in curves], axis=0)
    changes = np.flatnonzero(np.diff(leaders))
    return places[changes], np.append(leaders[:1], leaders[changes + 1])


def _overtaken_at(left: Floats, right: Floats) -> list[float]:
    """Return where the highest of several straight lines is overtaken, as shares of the way from left to right.

    ``left`` and ``right``, of shape (n,), are the values of the lines at the ends. Crossings are found from one to the
    next: all pairs of a thousand lines would take a gigabyte.
    """
    shares, leader = [], int(np.argmax(left))
    while len(higher := np.flatnonzero(right > right[leader])):
        ahead, behind = np.maximum(left[leader] - left[higher], 0.0), right[leader] - right[higher]
        crossings = ahead / (ahead - behind)
        first = higher[crossings == crossings.min()]
        shares.append(float(crossings.min()))
        leader = int(first[np.argmax(right[first])])
    return _apart(shares)


def _apart(shares: list[float]) -> list[float]:
    """Return ascending crossings without those that differ from the one before, or from an end, by rounding.

    Otherwise one of several lines through a point would lead for the width of a digit.
    """
    kept: list[float] = []
    for share in shares:
        if share - (kept[-1] if kept else 0.0) > _SAME_CROSSING and 1 - share > _SAME_CROSSING:
            kept.append(share)
    return kept


def of_points(knots: Floats, log_odds: Floats, level: float = 0.0, missing: float | None = None) -> Curve:
    """Return the curve through points in any order, both of shape (m,). Of equal knots, the nearest to ``level`` stays.

    Knots can become equal by rounding. Those at which the curve changes its sign must not get lost.
    """
    order = np.lexsort([np.abs(log_odds - level), knots])
    knots, log_odds = knots[order], log_odds[order]
    kept = np.append(True, np.diff(knots) > 0)
    return Curve(knots[kept], log_odds[kept], missing)


def simplified(
    places: Floats, values: Floats, tolerance: float, required: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the indices of points between which some curves are linear, up to ``tolerance``; ascending.

    ``places`` has shape (m,), ``values`` shape (m,), or (m, n_curves). By the method of Douglas and Peucker, for all
    segments at once: where a curve is too far from a chord, the farthest point is kept as well. The first and the last
    point are kept, and those ``required``.
    """
    columns, kept = values.reshape(len(places), -1).T, np.zeros(len(places), dtype=bool)
    kept[[0, -1]] = True
    kept[[] if required is None else required] = True
    while not kept.all():
        ends = np.flatnonzero(kept)
        chords = [np.interp(places, places[ends], column[ends]) for column in columns]
        distance = np.max([np.abs(column - chord) for column, chord in zip(columns, chords, strict=True)], axis=0)
        farthest = np.repeat(np.maximum.reduceat(distance, ends[:-1]), np.diff(ends))
        found = np.flatnonzero((distance[:-1] == farthest) & (farthest > tolerance))
        if not len(found):
            break
        segment = np.searchsorted(ends, found, side="right")
        kept[found[np.append(True, np.diff(segment) > 0)]] = True  # of equals the first
    return np.flatnonzero(kept)
