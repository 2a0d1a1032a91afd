"""A search for the smallest change of class.

A change c of the features, each in units of its standard deviation, moves the projections by ``U c``, where U has a row
for each line. Only the part of c in the row space of U matters, so the search is among ``c = B y`` with an orthonormal
basis B of that space, in at most as many dimensions as there are lines. It begins with rays from the row in many
directions, and towards places among the training rows, for the region of a class is easily missed from far away. The
log-odds are linear between the knots of the curves, so the first change of class on a ray is found exactly. The nearest
changes are then improved: by the point of the tangent to the boundary that is nearest to the row, and by random turns.

Where features have bounds, a ray goes on along its bound: ``c = clip(t B y)`` at the place t. The smallest change is
of this form with bounds as well (the conditions of Karush, Kuhn and Tucker for given projections say so).

In one dimension, as when there is a single line or a single feature may change, there are two rays only, and the result
is the smallest change.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from melc import kernels
from melc.arrays import Floats
from melc.explain.allowed import Allowed
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
_KEPT, _ROUNDS, _PARTS, _TURNS = 4, 10, (1.0, 0.3), 2
# The widest and the narrowest of the turns.
_WIDEST, _NARROWEST = 0.5, 1e-3
# The least length of a change. In units of it, the rounding of projections is still a finite number.
_SHORTEST = 1e-150
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
    """The log-odds of a model over the changes y of a row. ``spread`` is zero for features that may not change.

    ``entries`` are what has bounds: the features, or y itself if there are none.
    """

    def __init__(self, model: Any, spread: Floats, *, bounded: bool = False) -> None:
        directions = model.directions_
        left, sizes, right = np.linalg.svd(directions * spread, full_matrices=False)
        kept = sizes > _RANK * sizes[0]
        self.moves = left[:, kept] * sizes[kept]  # (n_lines, n_dimensions)
        self.basis = right[kept].T  # (n_features, n_dimensions)
        self.entries = self.basis if bounded else np.eye(int(kept.sum()))  # (n_entries, n_dimensions)
        self.entry_moves = directions * spread if bounded else self.moves  # (n_lines, n_entries)
        self.bounded = bounded
        self.model = model
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

    def bounds(self, allowed: Allowed, rows: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest change of the entries of rows, both of shape (n, n_entries)."""
        if self.bounded:
            return allowed.steps(rows)
        unbounded = np.full((len(rows), len(self.entries)), np.inf)
        return -unbounded, unbounded

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
        known = _places_among_rows(self.model.feature_mean_, self.model.feature_spread_) @ self.model.directions_.T
        places = np.concatenate([wanted, known])
        return np.asarray((places - z[:, None]) @ np.linalg.pinv(self.moves).T)

    def first_changes(self, row: "RowsToChange", rays: Floats, limits: Floats) -> tuple[Floats, Floats]:
        """Return the place at which the class first changes on rays, infinite where it does not, and how far that is.

        ``rays``, of shape (n, m, n_entries), have length one. Changes longer than ``limits``, of shape (n, m), do not
        matter. Both results have shape (n, m); they differ only where there are bounds.
        """
        places, lengths = np.empty(rays.shape[:2]), np.empty(rays.shape[:2])
        arrays = row.z, rays, rays @ self.entry_moves.T, self.entry_moves, row.low, row.high, limits, row.codes
        # Arrays of another layout would be compiled for anew.
        kernels.first_changes(
            *map(np.ascontiguousarray, arrays),
            *(-1 if row.goal is None else row.goal, *self._pieces, self.constants, places, lengths),
        )
        return places, lengths

    def place_ahead(self, row: "RowsToChange", reached: int, others: list[int]) -> Floats | None:
        """Return a change of a single row after which a class is ahead of others; None if there is none.

        Classes are given by their numbers; the change has shape (n_entries,).
        """
        leads = [table.values[1:, [reached]] - table.values[1:, others] for table in self.tables]
        constants = self.constants[reached] - self.constants[others]
        knots = [table.knots for table in self.tables]
        return place_ahead(row.z[0], self.entry_moves, row.low[0], row.high[0], knots, leads, constants)

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

    ``low`` and ``high``, of shape (n, n_entries), are the bounds of the changes, and ``goal`` is the class to reach, or
    None for any. Changes y have shape (n, m, n_dimensions): m of each row.
    """

    space: ChangeSpace
    z: Floats
    codes: NDArray[np.int64]
    low: Floats
    high: Floats
    goal: int | None

    def some(self, chosen: Any) -> "RowsToChange":
        """Return some of the rows."""
        parts = {name: getattr(self, name)[chosen] for name in ("z", "codes", "low", "high")}
        return replace(self, **parts)

    def gradients(self, y: Floats) -> tuple[Floats, Floats]:
        """Return by how much the best class to reach is ahead of the others after changes y, and the gradients of that.

        The shapes are (n, m) and that of y.
        """
        z = self.z[:, None] + self.changed(y) @ self.space.entry_moves.T
        leads, reached, others = rivals(self.space.odds(z), self.codes[:, None], self.goal)
        return leads, (self.space.slopes(z, reached) - self.space.slopes(z, others)) @ self.space.moves

    def first_changes(self, rays: Floats, limits: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the place at which the class first changes on rays y of length one, and how far that is; (n, m)."""
        limits = np.full(rays.shape[:2], np.inf) if limits is None else limits
        return self.space.first_changes(self, rays @ self.space.entries.T if self.space.bounded else rays, limits)

    def changed(self, y: Floats) -> Floats:
        """Return what changes y, with m in each row, change within the bounds; shape (n, m, n_entries)."""
        if not self.space.bounded:
            return y
        return np.clip(y @ self.space.entries.T, self.low[:, None], self.high[:, None])


def rivals(
    odds: Floats, codes: NDArray[np.int64], goal: int | None
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return the lead of the best class to reach over the best of the others, and the numbers of both; shape (...).

    ``odds``, of shape (..., n_classes), are log-odds, ``codes``, of shape (...) or one that is extended to it, the
    classes that rows have, and ``goal`` is the class to reach, or None for any other.
    """
    classes = np.arange(odds.shape[-1])
    wanted = codes[..., None] != classes if goal is None else classes == goal
    ahead, behind = np.where(wanted, odds, -np.inf), np.where(wanted, -np.inf, odds)
    return ahead.max(axis=-1) - behind.max(axis=-1), ahead.argmax(axis=-1), behind.argmax(axis=-1)


def shortest_changes(rows: RowsToChange) -> tuple[Floats, NDArray[np.bool_]]:
    """Return changes of class, in units of the spread, and whether those not found are known not to exist.

    The changes have shape (n_rows, n_features) and are zero where none was found. The second array has shape (n_rows,).
    """
    space, n_rows = rows.space, len(rows.z)
    found, decided = np.zeros((n_rows, len(space.entries))), np.ones(n_rows, dtype=bool)
    if space.n_dimensions:
        rng, shared = np.random.default_rng(0), _shared_rays(space)
        numbers_per_row = len(shared) * max(len(space.entries), len(space.tables), len(space.constants))
        step = max(1, _BLOCK // numbers_per_row)
        for start in range(0, n_rows, step):
            block = slice(start, start + step)
            some = rows.some(block)
            found[block] = _shortest(some, _first_rays(some, shared), rng)
    if space.n_dimensions > 1:
        for i in np.flatnonzero(~found.any(axis=1)):
            found[i], decided[i] = _by_proof(rows.some([i]), rng)
    return found if space.bounded else found @ space.basis.T, decided


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


def _first_rays(rows: RowsToChange, shared: Floats) -> list[Floats]:
    """The rays of each row, shape (n, m, n_dimensions): uphill and shared ones, then those towards other classes."""
    n, n_dimensions = len(rows.z), shared.shape[1]
    rays = np.broadcast_to(shared, (n, *shared.shape))
    if n_dimensions == 1:
        return [rays]
    uphill = rows.gradients(np.zeros((n, 1, n_dimensions)))[1]
    return [np.concatenate([_unit(uphill), rays], axis=1), _unit(rows.space.targets(rows.z))]


def _by_proof(row: RowsToChange, rng: np.random.Generator) -> tuple[Floats, bool]:
    """Return a change of a single row, shape (n_entries,), and whether it is known that there is none.

    If the change is zero and this is not known, a place may have been named that the ray towards it does not confirm.
    """
    own, space, changes, decided = int(row.codes[0]), row.space, [], True
    classes = range(len(space.constants))
    # To be another class is to be ahead of the own one; to be a certain class, to be ahead of all others.
    contests = [(c, [own]) for c in classes if c != own]
    if row.goal is not None:
        contests = [(row.goal, [c for c in classes if c != row.goal])]
    for reached, others in contests:
        try:
            change = space.place_ahead(row, reached, others)
        except Undecided:
            decided = False
        else:
            changes += [] if change is None else [change]
    if not changes:
        return np.zeros(len(space.entries)), decided
    rays = _unit(np.stack(changes))[None]
    if not space.bounded:
        return _shortest(row, [rays], rng)[0], False
    places, lengths = space.first_changes(row, rays, np.full(rays.shape[:2], np.inf))
    best = int(lengths[0].argmin())
    return rays[0, best] * (places[0, best] if np.isfinite(places[0, best]) else 0.0), False


def _shortest(rows: RowsToChange, groups: list[Floats], rng: np.random.Generator) -> Floats:
    """The best change of each row that its rays lead to, shape (n, n_entries); zero where there is none.

    On the rays of a later group, changes that are longer than the best of the groups before do not matter.
    """
    rays, places, lengths = groups[0], *rows.first_changes(groups[0])
    for group in groups[1:]:
        kept = np.sort(lengths, axis=1)[:, :_KEPT][:, -1:]
        more = rows.first_changes(group, np.broadcast_to(kept, group.shape[:2]))
        rays = np.concatenate([rays, group], axis=1)
        places, lengths = (np.concatenate(pair, axis=1) for pair in zip((places, lengths), more, strict=True))
    best = np.argsort(lengths, axis=1, kind="stable")[:, :_KEPT]
    rays, (places, lengths) = (
        _picked(rays, best),
        (np.take_along_axis(each, best, axis=1) for each in (places, lengths)),
    )
    if rays.shape[2] > 1:
        for width in np.geomspace(_WIDEST, _NARROWEST, _ROUNDS):
            rays, places, lengths = _improved(rows, rays, places, lengths, width, rng)
    first = lengths.argmin(axis=1)[:, None]
    # A row on the boundary has a short way, but one that is not zero.
    place = np.maximum(np.take_along_axis(places, first, axis=1), _SHORTEST)[..., None]
    return rows.changed(_picked(rays, first) * np.where(np.isfinite(place), place, 0.0))[:, 0]


def _improved(
    rows: RowsToChange, rays: Floats, places: Floats, lengths: Floats, width: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return other rays, of shape (n, m, n_dimensions), on which the class changes earlier, where there are any."""
    points = rays * np.where(np.isfinite(places), places, 0.0)[..., None]
    leads, gradients = rows.gradients(points)
    squares = np.maximum((gradients**2).sum(axis=2), 1e-300)
    nearest = gradients * (((gradients * points).sum(axis=2) - leads) / squares)[..., None]
    tried = [_unit(points + part * (nearest - points)) for part in _PARTS]
    tried += [_unit(rays + width * rng.normal(size=rays.shape) / np.sqrt(rays.shape[2])) for _ in range(_TURNS)]
    found = [(places, lengths), *(rows.first_changes(each, lengths) for each in tried)]
    every, (places, lengths) = np.stack([rays, *tried]), (np.stack(each) for each in zip(*found, strict=True))
    best = lengths.argmin(axis=0)[None]
    picked = [np.take_along_axis(each, best, axis=0)[0] for each in (places, lengths)]
    return np.take_along_axis(every, best[..., None], axis=0)[0], picked[0], picked[1]


def _picked(rays: Floats, index: NDArray[Any]) -> Floats:
    return np.take_along_axis(rays, index[..., None], axis=1)


def _unit(vectors: Floats) -> Floats:
    """Vectors of length one in the directions of others; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)
