"""A line of the additive model: a direction, and the curve that it adds to the log-odds."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats

# Corners of a curve that change the log-odds by less than this are left out.
_SMOOTHED = 0.01
# Log-odds below this are rounding: they speak for no class.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Line:
    """A direction v and a curve g: the line adds ``g(x·v)`` to the log-odds of a row x.

    The curve is piecewise linear: ``log_odds``, of shape (m,), at the ``knots``, of shape (m,), ascending. Outside the
    knots it is constant. Where it is positive, the line speaks for the class ``class_index`` (of two classes, the
    second), where it is negative, for the others.

    ``counts``, of shape (n_thresholds + 1, 2), is the weight of the training rows of the others, and of the class, in
    each interval. ``importance`` is the mean absolute deviation of what the line adds, over the training rows, both
    classes counting equally; ``feature_importances``, of shape (d,), divide it in proportion to weight times spread.
    ``places``, of shape (p,), and ``densities``, of shape (2, p), are the class densities along the line, for pictures.
    """

    coef: Floats
    knots: Floats
    log_odds: Floats
    class_index: int
    importance: float
    feature_importances: Floats = field(repr=False)
    counts: Floats = field(repr=False)
    places: Floats = field(repr=False)
    densities: Floats = field(repr=False)

    @property
    def features(self) -> NDArray[np.int64]:
        """Indices of the features with a weight, those that matter only; shape (n,)."""
        return np.flatnonzero(self.coef)

    def at(self, z: Floats) -> Floats:
        """Return g at projections z, of the shape of z."""
        return np.interp(z, self.knots, self.log_odds)

    @property
    def thresholds(self) -> Floats:
        """The projections at which the curve changes its sign, ascending; shape (n_thresholds,)."""
        return sign_changes(self.knots, self.log_odds)

    @property
    def favours(self) -> NDArray[np.bool_]:
        """Whether the line speaks for its class in each interval between the thresholds; shape (n_thresholds + 1,)."""
        signs = self.log_odds[np.abs(self.log_odds) > _NOTHING] > 0
        first = bool(signs[0]) if len(signs) else False
        return (np.arange(len(self.thresholds) + 1) % 2 == 0) == first

    def adds(self) -> list[tuple[float, float]]:
        """Return the least and the most that the line adds at its knots in each interval between the thresholds."""
        values = self.log_odds[np.abs(self.log_odds) > _NOTHING]
        if not len(values):
            return [(0.0, 0.0)]
        parts = np.split(values, np.flatnonzero(np.diff(np.sign(values))) + 1)
        return [(float(part.min()), float(part.max())) for part in parts]


def sign_changes(knots: Floats, values: Floats) -> Floats:
    """Return where a piecewise linear curve changes its sign, shape (n,). Touching zero, up to rounding, is no change.

    Examples
    --------
    >>> import numpy as np
    >>> sign_changes(np.array([0.0, 1.0, 3.0]), np.array([-1.0, 1.0, -3.0]))
    array([0.5, 1.5])
    """
    kept = np.abs(values) > _NOTHING
    knots, values = knots[kept], values[kept]
    i = np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1]))
    share = values[i] / (values[i] - values[i + 1])
    return np.clip(knots[i] + share * (knots[i + 1] - knots[i]), knots[i], knots[i + 1])


def simplified(knots: Floats, values: Floats, tolerance: float = _SMOOTHED) -> tuple[Floats, Floats]:
    """Return fewer knots of a piecewise linear curve, from which it differs by at most ``tolerance``.

    By the method of Douglas and Peucker: the corner farthest from the chord is kept, and then those on either side.
    """
    kept = np.zeros(len(knots), dtype=bool)
    kept[[0, -1]] = True
    stretches = [(0, len(knots) - 1)]
    while stretches:
        a, b = stretches.pop()
        inner = slice(a + 1, b)
        chord = np.interp(knots[inner], knots[[a, b]], values[[a, b]])
        distance = np.abs(values[inner] - chord)
        if len(distance) and distance.max() > tolerance:
            corner = a + 1 + int(np.argmax(distance))
            kept[corner] = True
            stretches += [(a, corner), (corner, b)]
    return knots[kept], values[kept]
