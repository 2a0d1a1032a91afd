"""A search for the smallest change of class where several lines decide.

A change c of the features, each in units of its standard deviation, moves the projections by ``U c``, where U has a row
for each line. Only the part of c in the row space of U matters, so the search is among ``c = B y`` with an orthonormal
basis B of that space, in at most as many dimensions as there are lines. It begins with rays from the row in many
directions, up to the first change of class on each, and with places among the training rows, for the region of a class
is easily missed from far away. The nearest points found are then improved: by the point of the tangent to the boundary
that is nearest to the row, and by random turns.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc.arrays import Floats
from melc.model.curve import Curve
from melc.model.line import log_odds_of

# Singular values of U below this fraction of the largest are rounding.
_RANK = 1e-10
# Rays: random directions besides those of lines and features, the most of the latter, and places on each ray.
_RANDOM, _MOST_FEATURES, _PLACES = 24, 32, 48
# Places among the training rows, besides their mean.
_AMONG_ROWS = 48
# Points of a row that are improved, rounds of improvement, parts of the way to the tangent's nearest point, and turns.
_KEPT, _ROUNDS, _PARTS, _TURNS = 4, 16, (1.0, 0.5, 0.2, 0.05), 8
# The widest and the narrowest of the turns.
_WIDEST, _NARROWEST = 0.5, 1e-3
# Halvings of the part of a ray in which the class changes.
_HALVINGS = 30
# Numbers in the largest array of a block of rows.
_BLOCK = 4_000_000


@dataclass(frozen=True)
class CurveTable:
    """The curves of all classes along a line: ``values + slopes · (z − anchors)`` on the pieces between their knots.

    There is a row for each piece and a column for each class. One search for the piece serves all classes.
    """

    knots: Floats  # (m,)
    anchors: Floats  # (m + 1,)
    values: Floats  # (m + 1, n_classes)
    slopes: Floats  # (m + 1, n_classes)

    @classmethod
    def of(cls, curves: list[Curve]) -> "CurveTable":
        """Return the table of the curves of a line. Of two classes there is one; the log-odds of the first are zero."""
        knots = np.unique(np.concatenate([curve.knots for curve in curves]))
        first = [np.zeros(len(knots))] if len(curves) == 1 else []
        values = np.column_stack(first + [curve.at(knots) for curve in curves])
        flat = np.zeros((1, values.shape[1]))
        slopes = np.concatenate([flat, np.diff(values, axis=0) / np.diff(knots)[:, None], flat])
        return cls(knots, np.append(knots[:1], knots), np.concatenate([values[:1], values]), slopes)

    def at(self, z: Floats) -> Floats:
        """Return the log-odds at projections z, of shape (...); shape (..., n_classes)."""
        piece = self._pieces(z)
        return self.values[piece] + self.slopes[piece] * (z - self.anchors[piece])[..., None]

    def slopes_of(self, z: Floats, codes: NDArray[np.int64]) -> Floats:
        """Return the slopes of the curves of classes, given by their numbers, at projections z; all of one shape."""
        return np.asarray(self.slopes[self._pieces(z), codes])

    def best_places(self) -> Floats:
        """Return the knot at which the line speaks most for each class, shape (n_classes,)."""
        at_knots = self.values[1:]
        others = [np.delete(at_knots, k, axis=1).max(axis=1) for k in range(at_knots.shape[1])]
        return np.asarray(self.knots[np.argmax(at_knots - np.column_stack(others), axis=0)])

    def _pieces(self, z: Floats) -> NDArray[np.int64]:
        return np.searchsorted(self.knots, z, side="right")


class ChangeSpace:
    """The log-odds of a model over the changes y of a row. ``spread`` is zero for features that may not change."""

    def __init__(self, model: Any, spread: Floats) -> None:
        directions = model.directions_
        left, sizes, right = np.linalg.svd(directions * spread, full_matrices=False)
        kept = sizes > _RANK * sizes[0]
        self.moves = left[:, kept] * sizes[kept]  # (n_lines, n_dimensions)
        self.basis = right[kept].T  # (n_features, n_dimensions)
        self.known = _places_among_rows(model.feature_mean_, model.feature_spread_) @ directions.T  # (m, n_lines)
        formulas = log_odds_of(model)
        self.tables = [CurveTable.of([each.curves[k] for each in formulas]) for k in range(len(directions))]
        # Of two classes, the log-odds of the first are zero.
        first = [0.0] * (len(model.classes_) - len(formulas))
        self.constants = np.array(first + [each.constant for each in formulas])  # (n_classes,)

    def odds(self, z: Floats) -> Floats:
        """Return the log-odds at projections z, of shape (..., n_lines); shape (..., n_classes)."""
        total = np.zeros((*z.shape[:-1], len(self.constants)))
        for k, table in enumerate(self.tables):
            total += table.at(z[..., k])
        return total + self.constants

    def slopes(self, z: Floats, codes: NDArray[np.int64]) -> Floats:
        """Return the slopes of the curves of classes at projections z, of shape (..., n_lines); the same shape.

        ``codes``, of shape (...), are the numbers of the classes.
        """
        return np.stack([table.slopes_of(z[..., k], codes) for k, table in enumerate(self.tables)], axis=-1)

    def targets(self, z: Floats) -> Floats:
        """Return changes of each row to places where other classes may be, as nearly as the features can reach them.

        These are, for each class, the place where each line speaks most for it, and those among the training rows.
        Shape (n_rows, n_classes + m, n_dimensions).
        """
        wanted = np.column_stack([table.best_places() for table in self.tables])
        places = np.concatenate([wanted, self.known])
        return np.asarray((places - z[:, None]) @ np.linalg.pinv(self.moves).T)

    def reach(self, z: Floats) -> Floats:
        """Return a distance beyond which no curve changes, shape (n_rows,)."""
        lengths = np.linalg.norm(self.moves, axis=1)
        far = [np.maximum(z[:, k] - table.knots[0], table.knots[-1] - z[:, k]) for k, table in enumerate(self.tables)]
        moving = np.flatnonzero(lengths > _RANK * lengths.max())
        return np.asarray(np.max([far[k] / lengths[k] for k in moving], axis=0))


@dataclass(frozen=True)
class RowsToChange:
    """Rows whose changes are searched: their projections, of shape (n, n_lines), and whether they may reach each class.

    Changes y have shape (n, m, n_dimensions): m of each row.
    """

    space: ChangeSpace
    z: Floats
    allowed: NDArray[np.bool_]  # (n, n_classes)

    def leads(self, y: Floats) -> Floats:
        """Return by how much the best allowed class is ahead of the others after changes y, shape (n, m)."""
        odds = self.space.odds(self._projections(y))
        return self._best(odds, True).max(axis=2) - self._best(odds, False).max(axis=2)

    def gradients(self, y: Floats) -> tuple[Floats, Floats]:
        """Return the leads after changes y, and their gradients, of the shape of y."""
        z = self._projections(y)
        odds = self.space.odds(z)
        reached, others = self._best(odds, True), self._best(odds, False)
        slopes = self.space.slopes(z, reached.argmax(axis=2)) - self.space.slopes(z, others.argmax(axis=2))
        return reached.max(axis=2) - others.max(axis=2), slopes @ self.space.moves

    def first_change(self, rays: Floats, ends: Floats) -> Floats:
        """Return the distance at which the class first changes on rays, infinite where it does not; shape (n, m).

        ``rays``, of shape (n, m, n_dimensions), have length one. ``ends``, of shape (n,), is how far they go.
        """
        places = np.linspace(0, 1, _PLACES + 1)[1:] ** 2  # closer together near the row
        after = np.stack([self.leads(rays * (ends * place)[:, None, None]) > 0 for place in places], axis=2)
        first = after.argmax(axis=2)
        near = np.where(first > 0, places[first - 1], 0.0) * ends[:, None]
        found = self.halved(rays, near, places[first] * ends[:, None])
        return np.where(after.any(axis=2), found, np.inf)

    def halved(self, rays: Floats, near: Floats, far: Floats) -> Floats:
        """Return the distance between ``near`` and ``far`` at which the class changes on rays; just beyond it."""
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            after = self.leads(rays * middle[..., None]) > 0
            near, far = np.where(after, near, middle), np.where(after, middle, far)
        return far

    def _projections(self, y: Floats) -> Floats:
        return self.z[:, None] + y @ self.space.moves.T

    def _best(self, odds: Floats, allowed: bool) -> Floats:
        return np.where(self.allowed[:, None] == allowed, odds, -np.inf)


def shortest_changes(space: ChangeSpace, z: Floats, codes: NDArray[np.int64], goal: int | None) -> Floats:
    """Return changes of class, in units of the spread; shape (n_rows, n_features), zero where none was found.

    ``z`` are the projections of the rows, ``codes`` their classes, and ``goal`` the class to reach, or None for any.
    """
    classes = np.arange(len(space.constants))
    allowed = codes[:, None] != classes if goal is None else np.broadcast_to(classes == goal, (len(z), len(classes)))
    n_dimensions = space.moves.shape[1]
    changes = np.zeros((len(z), len(space.basis)))
    if n_dimensions:
        rng, shared = np.random.default_rng(0), _shared_rays(space)
        step = max(1, _BLOCK // (len(shared) * max(n_dimensions, len(space.tables), len(classes))))
        for start in range(0, len(z), step):
            block = slice(start, start + step)
            changes[block] = _shortest(RowsToChange(space, z[block], allowed[block]), shared, rng) @ space.basis.T
    return changes


def _places_among_rows(mean: Floats, spread: Floats) -> Floats:
    """Return the mean of the training rows and random places around it, shape (m, n_features)."""
    steps = np.random.default_rng(0).normal(size=(_AMONG_ROWS, len(mean)))
    return np.asarray(mean + spread * np.concatenate([np.zeros((1, len(mean))), steps]))


def _shared_rays(space: ChangeSpace) -> Floats:
    """Directions of length one for every row: along lines, along features, and at random; shape (m, n_dimensions)."""
    features = np.argsort(-np.linalg.norm(space.basis, axis=1), kind="stable")[:_MOST_FEATURES]
    random = np.random.default_rng(0).normal(size=(_RANDOM, space.moves.shape[1]))
    along = _unit(np.concatenate([space.moves, space.basis[features], random]))
    return np.concatenate([along, -along])


def _shortest(rows: RowsToChange, shared: Floats, rng: np.random.Generator) -> Floats:
    """The best change of each row, shape (n, n_dimensions); zero where none was found."""
    n = len(rows.z)
    uphill = rows.gradients(np.zeros((n, 1, shared.shape[1])))[1]
    targets = rows.space.targets(rows.z)
    lengths, towards = np.linalg.norm(targets, axis=2), _unit(targets)
    ends = np.maximum(rows.space.reach(rows.z), lengths.max(axis=1))
    of_classes = towards[:, : len(rows.space.constants)]
    rays = np.concatenate([np.broadcast_to(shared, (n, *shared.shape)), _unit(uphill), of_classes], axis=1)
    # Between the places on a ray a class may be missed; at a target it is seen.
    seen = np.where(rows.leads(targets) > 0, rows.halved(towards, np.zeros_like(lengths), lengths), np.inf)
    distances = np.concatenate([rows.first_change(rays, ends), seen], axis=1)
    rays = np.concatenate([rays, towards], axis=1)
    best = np.argsort(distances, axis=1, kind="stable")[:, :_KEPT]
    rays, distances = _picked(rays, best), np.take_along_axis(distances, best, axis=1)
    found = np.isfinite(distances)
    distances = np.where(found, distances, 0.0)
    for width in np.geomspace(_WIDEST, _NARROWEST, _ROUNDS):
        rays, distances = _improved(rows, rays, distances, width, rng)
    distances = np.where(found, distances, np.inf)
    first = distances.argmin(axis=1)[:, None]
    length = np.take_along_axis(distances, first, axis=1)
    return _picked(rays, first)[:, 0] * np.where(np.isfinite(length), length, 0.0)


def _improved(
    rows: RowsToChange, rays: Floats, distances: Floats, width: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return other rays, of shape (n, m, n_dimensions), on which the class changes earlier, where there are any.

    Of all rays tried the one is taken on which the other class is most ahead at the present distance.
    """
    points = rays * distances[..., None]
    leads, gradients = rows.gradients(points)
    squares = np.maximum((gradients**2).sum(axis=2), 1e-300)
    nearest = gradients * (((gradients * points).sum(axis=2) - leads) / squares)[..., None]
    tried = [rays] + [_unit(points + part * (nearest - points)) for part in _PARTS]
    tried += [_unit(rays + width * rng.normal(size=rays.shape) / np.sqrt(rays.shape[2])) for _ in range(_TURNS)]
    ahead = np.stack([rows.leads(each * distances[..., None]) for each in tried])
    best = ahead.argmax(axis=0)
    rays = np.take_along_axis(np.stack(tried), best[None, ..., None], axis=0)[0]
    changed = ahead.max(axis=0) > 0
    return rays, np.where(changed, rows.halved(rays, np.zeros_like(distances), distances), distances)


def _picked(rays: Floats, index: NDArray[Any]) -> Floats:
    return np.take_along_axis(rays, index[..., None], axis=1)


def _unit(vectors: Floats) -> Floats:
    """Vectors of length one in the directions of others; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
