"""A search for the smallest change of class where several lines decide.

A change c of the features, each in units of its standard deviation, moves the projections by ``U c``, where U has a row
for each line. Only the part of c in the row space of U matters, so the search is among ``c = B y`` with an orthonormal
basis B of that space, in at most as many dimensions as there are lines. It begins with rays from the row in many
directions, and towards places among the training rows, for the region of a class is easily missed from far away. The
log-odds are linear between the knots of the curves, so the first change of class on a ray is found exactly. The nearest
changes are then improved: by the point of the tangent to the boundary that is nearest to the row, and by random turns.

In one dimension, as when a single feature may change, there are two rays only, and the result is the smallest change.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.explain.existence import Undecided, place_ahead
from melc.model.curve import Curve
from melc.model.line import log_odds_of

# Singular values of U below this fraction of the largest are rounding.
_RANK = 1e-10
# Rays: random directions besides those of lines and features, and the most of the latter.
_RANDOM, _MOST_FEATURES = 24, 32
# Places among the training rows, besides their mean.
_AMONG_ROWS = 48
# Points of a row that are improved, rounds of improvement, parts of the way to the tangent's nearest point, and turns.
_KEPT, _ROUNDS, _PARTS, _TURNS = 4, 16, (1.0, 0.5, 0.2, 0.05), 8
# The widest and the narrowest of the turns.
_WIDEST, _NARROWEST = 0.5, 1e-3
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
        self._pieces = self._all_pieces()

    @property
    def n_dimensions(self) -> int:
        """The number of dimensions in which changes move the projections."""
        return self.moves.shape[1]

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

    def first_changes(
        self, z: Floats, rays: Floats, limits: Floats, codes: NDArray[np.int64], goal: int | None
    ) -> Floats:
        """Return the distance at which the class first changes on rays, infinite where it does not; shape (n, m).

        ``z``, of shape (n, n_lines), are the projections of rows and ``codes``, of shape (n,), their classes. ``rays``,
        of shape (n, m, n_dimensions), have length one. Changes beyond ``limits``, of shape (n, m), do not matter.
        ``goal`` is the class to reach, or None for any.
        """
        found = np.empty(rays.shape[:2])
        wanted = -1 if goal is None else goal
        kernels.first_changes(z, rays @ self.moves.T, limits, codes, wanted, *self._pieces, self.constants, found)
        return found

    def place_ahead(self, z: Floats, reached: int, others: list[int]) -> Floats | None:
        """Return a change after which a class is ahead of others, for a row with projections z; None if there is none.

        Classes are given by their numbers; z has shape (n_lines,).
        """
        leads = [table.values[1:, [reached]] - table.values[1:, others] for table in self.tables]
        constants = self.constants[reached] - self.constants[others]
        return place_ahead(z, self.moves, [table.knots for table in self.tables], leads, constants)

    def _all_pieces(self) -> tuple[NDArray[np.int64], Floats, Floats, Floats, Floats]:
        """Return the pieces of all lines as the kernel takes them: where each line begins, upper ends, and formulas."""
        starts = np.cumsum([0] + [len(table.anchors) for table in self.tables])
        ends = np.concatenate([np.append(table.knots, np.inf) for table in self.tables])
        anchors = np.concatenate([table.anchors for table in self.tables])
        values, slopes = (np.concatenate([getattr(t, name) for t in self.tables]) for name in ("values", "slopes"))
        return starts, ends, anchors, values, slopes


@dataclass(frozen=True)
class RowsToChange:
    """Rows whose changes are searched: their projections, of shape (n, n_lines), and their classes, of shape (n,).

    ``goal`` is the class to reach, or None for any. Changes y have shape (n, m, n_dimensions): m of each row.
    """

    space: ChangeSpace
    z: Floats
    codes: NDArray[np.int64]
    goal: int | None

    def leads(self, y: Floats) -> Floats:
        """Return by how much the best class to reach is ahead of the others after changes y, shape (n, m)."""
        return self._rivals(self._projections(y))[0]

    def gradients(self, y: Floats) -> tuple[Floats, Floats]:
        """Return the leads after changes y, and their gradients, of the shape of y."""
        z = self._projections(y)
        leads, reached, others = self._rivals(z)
        return leads, (self.space.slopes(z, reached) - self.space.slopes(z, others)) @ self.space.moves

    def first_changes(self, rays: Floats, limits: Floats | None = None) -> Floats:
        """Return the distance at which the class first changes on rays of length one, if below limits; (n, m)."""
        limits = np.full(rays.shape[:2], np.inf) if limits is None else limits
        return self.space.first_changes(self.z, rays, limits, self.codes, self.goal)

    def _rivals(self, z: Floats) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        """Return the lead of the best class to reach over the best of the others, and the numbers of both."""
        odds = self.space.odds(z)
        classes = np.arange(odds.shape[-1])
        wanted = self.codes[:, None, None] != classes if self.goal is None else classes == self.goal
        ahead, behind = np.where(wanted, odds, -np.inf), np.where(wanted, -np.inf, odds)
        return ahead.max(axis=2) - behind.max(axis=2), ahead.argmax(axis=2), behind.argmax(axis=2)

    def _projections(self, y: Floats) -> Floats:
        return self.z[:, None] + y @ self.space.moves.T


def shortest_changes(
    space: ChangeSpace, z: Floats, codes: NDArray[np.int64], goal: int | None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return changes of class, in units of the spread, and whether those not found are known not to exist.

    ``z`` are the projections of the rows, ``codes`` their classes, and ``goal`` the class to reach, or None for any.
    The changes have shape (n_rows, n_features) and are zero where none was found. The second array has shape (n_rows,).
    """
    found = np.zeros((len(z), space.n_dimensions))
    decided = np.ones(len(z), dtype=bool)
    if space.n_dimensions:
        rng, shared = np.random.default_rng(0), _shared_rays(space)
        numbers_per_row = len(shared) * max(space.n_dimensions, len(space.tables), len(space.constants))
        step = max(1, _BLOCK // numbers_per_row)
        for start in range(0, len(z), step):
            block = slice(start, start + step)
            rows = RowsToChange(space, z[block], codes[block], goal)
            found[block] = _shortest(rows, _first_rays(rows, shared), rng)
    if space.n_dimensions > 1:
        for i in np.flatnonzero(~found.any(axis=1)):
            row = RowsToChange(space, z[[i]], codes[[i]], goal)
            rays, decided[i] = _rays_to_classes(row)
            if len(rays):
                found[i] = _shortest(row, rays[None], rng)[0]
    return found @ space.basis.T, decided


def _places_among_rows(mean: Floats, spread: Floats) -> Floats:
    """Return the mean of the training rows and random places around it, shape (m, n_features)."""
    steps = np.random.default_rng(0).normal(size=(_AMONG_ROWS, len(mean)))
    return np.asarray(mean + spread * np.concatenate([np.zeros((1, len(mean))), steps]))


def _shared_rays(space: ChangeSpace) -> Floats:
    """Directions of length one for every row: along lines, along features, and at random; shape (m, n_dimensions)."""
    if space.n_dimensions == 1:
        return np.array([[1.0], [-1.0]])
    features = np.argsort(-np.linalg.norm(space.basis, axis=1), kind="stable")[:_MOST_FEATURES]
    random = np.random.default_rng(0).normal(size=(_RANDOM, space.n_dimensions))
    along = _unit(np.concatenate([space.moves, space.basis[features], random]))
    return np.concatenate([along, -along])


def _first_rays(rows: RowsToChange, shared: Floats) -> Floats:
    """The rays of each row, shape (n, m, n_dimensions): the shared ones, uphill, and towards other classes."""
    n, n_dimensions = len(rows.z), shared.shape[1]
    rays = np.broadcast_to(shared, (n, *shared.shape))
    if n_dimensions == 1:
        return rays
    uphill = rows.gradients(np.zeros((n, 1, n_dimensions)))[1]
    return np.concatenate([rays, _unit(uphill), _unit(rows.space.targets(rows.z))], axis=1)


def _rays_to_classes(row: RowsToChange) -> tuple[Floats, bool]:
    """Return rays of a single row to places of the classes to reach, and whether no class was left undecided.

    The rays have shape (m, n_dimensions); there are none if no class can be reached.
    """
    own, space, rays, decided = int(row.codes[0]), row.space, [], True
    classes = range(len(space.constants))
    # To be another class is to be ahead of the own one; to be a certain class, to be ahead of all others.
    contests = [(c, [own]) for c in classes if c != own]
    if row.goal is not None:
        contests = [(row.goal, [c for c in classes if c != row.goal])]
    for reached, others in contests:
        try:
            change = space.place_ahead(row.z[0], reached, others)
        except Undecided:
            decided = False
        else:
            rays += [] if change is None else [_unit(change)]
    return np.array(rays).reshape(len(rays), space.n_dimensions), decided


def _shortest(rows: RowsToChange, rays: Floats, rng: np.random.Generator) -> Floats:
    """The best change of each row that its rays lead to, shape (n, n_dimensions); zero where there is none."""
    distances = rows.first_changes(rays)
    best = np.argsort(distances, axis=1, kind="stable")[:, :_KEPT]
    rays, distances = _picked(rays, best), np.take_along_axis(distances, best, axis=1)
    if rays.shape[2] > 1:
        for width in np.geomspace(_WIDEST, _NARROWEST, _ROUNDS):
            rays, distances = _improved(rows, rays, distances, width, rng)
    first = distances.argmin(axis=1)[:, None]
    length = np.take_along_axis(distances, first, axis=1)
    # A row on the boundary has a short way, but one that is not zero.
    length = np.maximum(length, np.finfo(np.float64).tiny)
    return _picked(rays, first)[:, 0] * np.where(np.isfinite(length), length, 0.0)


def _improved(
    rows: RowsToChange, rays: Floats, distances: Floats, width: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return other rays, of shape (n, m, n_dimensions), on which the class changes earlier, where there are any."""
    points = rays * np.where(np.isfinite(distances), distances, 0.0)[..., None]
    leads, gradients = rows.gradients(points)
    squares = np.maximum((gradients**2).sum(axis=2), 1e-300)
    nearest = gradients * (((gradients * points).sum(axis=2) - leads) / squares)[..., None]
    tried = [_unit(points + part * (nearest - points)) for part in _PARTS]
    tried += [_unit(rays + width * rng.normal(size=rays.shape) / np.sqrt(rays.shape[2])) for _ in range(_TURNS)]
    every = np.stack([rays, *tried])
    found = [rows.first_changes(each, distances) for each in tried]
    lengths = np.stack([distances, *found])
    best = lengths.argmin(axis=0)[None]
    return np.take_along_axis(every, best[..., None], axis=0)[0], np.take_along_axis(lengths, best, axis=0)[0]


def _picked(rays: Floats, index: NDArray[Any]) -> Floats:
    return np.take_along_axis(rays, index[..., None], axis=1)


def _unit(vectors: Floats) -> Floats:
    """Vectors of length one in the directions of others; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
