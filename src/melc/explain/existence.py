"""Whether a class can be reached at all: a place where it is ahead, or the proof that there is none.

A search that finds no change of class proves nothing. The log-odds are sums of piecewise linear curves, so the place at
which a class is farthest ahead is the solution of a mixed-integer linear program, in which a binary variable for every
piece says whether the projection lies on it.
"""

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from melc.arrays import Floats

# How far beyond the outermost knots projections are looked for, in units of the distance to them and of their range.
# The solver's tolerance moves a projection by a part of this. So if places far away decide nothing, near ones may.
_FAR, _NEAR = 1e3, 10.0
# There is no need to look for a lead of more than the first. If a bound of all leads is below the second, in units of
# what the lines add, there is none; nearer to zero it may be the solver's tolerance.
_ENOUGH, _CLEARLY_BEHIND = 1e-2, -1e-6
# Subproblems after which the program is given up.
_MOST_NODES = 20_000
# Status of a program that was not solved to the end.
_LIMIT_REACHED = 1
# The file descriptor of standard output, and how lines of the solver begin.
_STANDARD_OUTPUT, _BY_HIGHS = 1, b"Highs"


class Undecided(Exception):
    """The program did not tell whether a place exists."""


def place_ahead(
    z: Floats, moves: Floats, low: Floats, high: Floats, knots: list[Floats], leads: list[Floats], constants: Floats
) -> Floats | None:
    """Return a change y between ``low`` and ``high`` after which all leads are positive, or None if there is none.

    The projections after a change are ``z + moves @ y``, with z of shape (n_lines,) and moves of shape (n_lines,
    n_dimensions). ``leads[k]``, of shape (m, n_rivals), is what line k adds to the leads at its ``knots[k]``, of shape
    (m,), and ``constants``, of shape (n_rivals,), is what they are without it. Raises Undecided if it takes too long or
    leads are so near to zero that the solver cannot tell.
    """
    if np.any(constants + sum(each.max(axis=0) for each in leads) <= 0):  # not even if every line were at its best
        return None
    for far in (_FAR, _NEAR):
        program = _Program(z, moves, knots, leads, constants, far)
        solution = program.solved(low, high)
        # What the solver names may be off by its tolerance.
        for place in program.places_named(solution, low, high):
            if program.least_lead(place) > 0:
                return place
        if far == _FAR and program.is_clearly_behind(solution):
            return None
        if solution.status == _LIMIT_REACHED:
            break
    raise Undecided


class _Program:
    """The program: changes y, the smallest lead, and for each line weights of its knots and binaries of its pieces.

    A projection is the mean of its knots with these weights, of which only two neighbours are positive.
    """

    def __init__(
        self, z: Floats, moves: Floats, knots: list[Floats], leads: list[Floats], constants: Floats, far: float
    ) -> None:
        self.z, self.moves, self.knots, self.constants = z, moves, knots, constants
        self.unit = 1 / max(float(np.linalg.norm(moves, 2)), 1e-300)
        ends = [_with_far_ends(*each, far) for each in zip(knots, leads, z, strict=True)]
        self.places, self.leads = zip(*ends, strict=True)
        self.n_dimensions, self.n_rivals = moves.shape[1], len(constants)
        sizes = [len(places) for places in self.places]
        # Columns: y, the lead, then weights and binaries of each line.
        last = self.n_dimensions + 1 + np.cumsum([2 * size - 1 for size in sizes])
        self.starts, self.n_columns = np.append(self.n_dimensions + 1, last[:-1]), int(last[-1])
        self.constraints = [
            *(self._projection(k, z[k], moves[k] * self.unit) for k in range(len(sizes))),
            *(rows for k in range(len(sizes)) for rows in self._neighbours(k)),
            self._lead(constants),
        ]

    def solved(self, low: Floats, high: Floats) -> Any:
        """Return the solution with the largest smallest lead, up to what is enough."""
        lower, upper = np.zeros(self.n_columns), np.ones(self.n_columns)
        lower[: self.n_dimensions], upper[: self.n_dimensions] = low / self.unit, high / self.unit
        lower[self.n_dimensions] = -np.inf
        upper[self.n_dimensions] = _ENOUGH
        aim = np.zeros(self.n_columns)
        aim[self.n_dimensions] = -1.0
        integral = np.zeros(self.n_columns)
        for start, places in zip(self.starts, self.places, strict=True):
            integral[start + len(places) : start + 2 * len(places) - 1] = 1
        with _without_lines_of_highs():
            return milp(
                aim,
                integrality=integral,
                bounds=Bounds(lower, upper),
                constraints=self.constraints,
                options={"node_limit": _MOST_NODES, "presolve": False},  # which takes most of the time
            )

    def places_named(self, solution: Any, low: Floats, high: Floats) -> Iterator[Floats]:
        """Yield the change y that a solution names, then the best on the same pieces; both between the bounds."""
        if solution.x is not None:
            yield np.clip(solution.x[: self.n_dimensions] * self.unit, low, high)
            best = self._best_on(self._pieces_of(solution), low, high)
            if best.x is not None:
                yield np.clip(best.x[:-1] * self.unit, low, high)

    def least_lead(self, y: Floats) -> float:
        """Return the smallest lead after a change."""
        places, total = self.z + self.moves @ y, self.constants.copy()
        for place, knots, leads in zip(places, self.places, self.leads, strict=True):
            total += [np.interp(place, knots, each) for each in leads.T]
        return float(total.min())

    def is_clearly_behind(self, solution: Any) -> bool:
        """Return whether a solution proves that no change makes all leads positive."""
        scale = max(1.0, sum(float(np.abs(leads).max()) for leads in self.leads))
        bound = solution.mip_dual_bound
        return bound is not None and -bound < _CLEARLY_BEHIND * scale

    def _best_on(self, pieces: list[int], low: Floats, high: Floats) -> Any:
        """Return the solution of the linear program on given pieces of the lines: y in its unit and the lead."""
        moves, sizes = self.moves * self.unit, np.array([[np.ptp(knots) or 1.0] for knots in self.knots])
        ends = np.array([places[i : i + 2] for places, i in zip(self.places, pieces, strict=True)])
        values = np.array([leads[i : i + 2] for leads, i in zip(self.leads, pieces, strict=True)])
        slopes = np.diff(values, axis=1)[:, 0] / np.maximum(np.diff(ends, axis=1), 1e-300)  # (n_lines, n_rivals)
        to_ends = (ends - self.z[:, None]) / sizes
        leads = self.constants + (values[:, 0] - slopes * (to_ends * sizes)[:, :1]).sum(axis=0)
        within = np.concatenate([moves, -moves]) / np.concatenate([sizes, sizes])
        sums = np.concatenate([-slopes.T @ moves, within])
        of_lead = np.repeat([1.0, 0.0], [self.n_rivals, 2 * len(sizes)])
        limits = [*zip(low / self.unit, high / self.unit, strict=True), (None, None)]
        return linprog(
            np.append(np.zeros(self.n_dimensions), -1.0),
            A_ub=np.column_stack([sums, of_lead]),
            b_ub=np.concatenate([leads, to_ends[:, 1], -to_ends[:, 0]]),
            bounds=limits,
        )

    def _pieces_of(self, solution: Any) -> list[int]:
        """Return the number of the piece of each line that a solution lies on."""
        weights = map(self._weights, range(len(self.places)))
        return [int(solution.x[each[-1] + 1 : each[-1] + len(each)].argmax()) for each in weights]

    def _weights(self, k: int) -> NDArray[np.int64]:
        return self.starts[k] + np.arange(len(self.places[k]))

    def _projection(self, k: int, z: float, move: Floats) -> LinearConstraint:
        """The mean of the knots is the projection, in units of their distance."""
        places = self.places[k] - z
        size = np.abs(places).max()
        row = np.zeros(self.n_columns)
        row[self._weights(k)] = places / size
        row[: self.n_dimensions] = -move / size
        return LinearConstraint(row[None], 0.0, 0.0)

    def _neighbours(self, k: int) -> list[LinearConstraint]:
        """The weights add up to one, the projection lies on one piece, and other knots than its ends weigh nothing."""
        weights, n = self._weights(k), len(self.places[k])
        pieces = weights[-1] + 1 + np.arange(n - 1)
        sums = sparse.lil_array((2, self.n_columns))
        sums[0, weights], sums[1, pieces] = 1.0, 1.0
        ends = sparse.lil_array((n, self.n_columns))
        ends[np.arange(n), weights] = 1.0
        ends[np.arange(n - 1), pieces] = -1.0
        ends[np.arange(1, n), pieces] = -1.0
        return [LinearConstraint(sums.tocsr(), 1.0, 1.0), LinearConstraint(ends.tocsr(), -np.inf, 0.0)]

    def _lead(self, constants: Floats) -> LinearConstraint:
        """Every lead is at least the smallest."""
        rows = np.zeros((self.n_rivals, self.n_columns))
        rows[:, self.n_dimensions] = -1.0
        for k, leads in enumerate(self.leads):
            rows[:, self._weights(k)] = leads.T
        return LinearConstraint(rows, -constants, np.inf)


@contextmanager
def _without_lines_of_highs() -> Iterator[None]:
    """Keep away from standard output what HiGHS, the solver, prints past Python whatever its options are.

    What other threads print meanwhile comes afterwards.
    """
    try:
        kept = os.dup(_STANDARD_OUTPUT)
    except OSError:  # it is closed
        yield
        return
    with tempfile.TemporaryFile() as caught:
        _flush()
        os.dup2(caught.fileno(), _STANDARD_OUTPUT)
        try:
            yield
        finally:
            _flush()
            os.dup2(kept, _STANDARD_OUTPUT)
            os.close(kept)
        caught.seek(0)
        others = b"".join(line for line in caught if not line.startswith(_BY_HIGHS))
    if others:
        os.write(_STANDARD_OUTPUT, others)


def _flush() -> None:
    """Write what Python and the C library hold back."""
    with suppress(AttributeError, OSError, ValueError):  # there is no standard output, or it is closed
        sys.stdout.flush()
    with suppress(OSError):
        ctypes.CDLL("ucrtbase" if os.name == "nt" else None).fflush(None)


def _with_far_ends(knots: Floats, leads: Floats, z: float, far: float) -> tuple[Floats, Floats]:
    """Return the knots of a line and its leads there, with a place far beyond either end, where nothing changes."""
    far *= float(np.ptp(knots) + np.abs(knots - z).max())
    places = np.concatenate([[knots[0] - far], knots, [knots[-1] + far]])
    return places, np.concatenate([leads[:1], leads, leads[-1:]])
