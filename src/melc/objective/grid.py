"""The divergence for the search: on a grid, over white rows in single precision, a whole ascent in one compiled call.

It is smooth, about ten times cheaper than a certified evaluation, and has errors of about 1e-5. What a search finds
here is therefore evaluated again with certified sums. The formula is in :mod:`melc.kernels.grid`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from melc import kernels
from melc.arrays import Floats
from melc.data.memory import MemoryRows
from melc.kernels import ascent
from melc.objective.base import silverman_factor

# Rows that are prepared at once, while they are in the cache.
_ROWS_AT_ONCE = 1024


class Ascent:
    """The state of one ascent along the unit sphere of white coordinates: see :mod:`melc.kernels.ascent`.

    It begins at ``start``, of shape (d,), with the curvature that the ascent ``before`` has seen, if there is one.
    """

    def __init__(self, start: Floats, max_iter: int, before: "Ascent | None" = None) -> None:
        self.state = ascent.initial_state(start / np.linalg.norm(start), max_iter)
        self.table, self.numbers, self.counts, self.curvatures, self.history = self.state
        if before is not None:
            self.table[ascent.FIRST_STEP :], self.curvatures[:] = before.table[ascent.FIRST_STEP :], before.curvatures
            both = [ascent.KEPT, ascent.NEXT]
            self.counts[both] = before.counts[both]

    @property
    def point(self) -> Floats:
        """The best point so far, of length one."""
        return self.table[ascent.POINT]

    @property
    def value(self) -> float:
        return float(self.numbers[ascent.VALUE])

    @property
    def n_iter(self) -> int:
        return max(0, int(self.counts[ascent.ITERATIONS]))

    @property
    def n_evaluations(self) -> int:
        return int(self.counts[ascent.EVALUATIONS])

    @property
    def status(self) -> int:
        return int(self.counts[ascent.STATUS])


class GridRows:
    """Rows as the search uses them: white, in single precision, one feature after the other.

    The class of the first row comes first, so that sums do not depend on which class has which code.
    """

    def __init__(self, rows: MemoryRows, prepare: Callable[[Any], Floats], n_features: int) -> None:
        """Copy dense rows. ``prepare`` returns some of them white (or scaled only), of shape (m, n_features)."""
        first = rows.codes[0]
        order = np.argsort(rows.codes != first, kind="stable")
        self.columns = np.empty((n_features, rows.n_rows), dtype=np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # beyond single precision the grid has no value
            for a in range(0, rows.n_rows, _ROWS_AT_ONCE):
                some = order[a : a + _ROWS_AT_ONCE]
                self.columns[:, a : a + len(some)] = prepare(rows.X[some]).T
        self.n_first = rows.counts[first]
        weights = rows.all_weights()[order]
        self.weights = weights.astype(np.float32)
        self.totals = np.array([weights[: self.n_first].sum(), weights[self.n_first :].sum()])

    @property
    def n_rows(self) -> int:
        return int(self.columns.shape[1])

    def climb(self, climbing: Ascent, gamma: float, tol: float, progress: float) -> None:
        """Run an ascent of D to its end, or until the grid has no value."""
        kernels.climb(self.columns, *self._class_arguments(gamma), climbing.state, tol, progress)

    def climb_together(self, ascents: list[Ascent], white: Floats, gamma: float, tol: float, progress: float) -> None:
        """Run several ascents in lockstep, for rows with many features, which are scaled but not white.

        ``white``, of shape (d, d), maps the coordinates of the ascents to scaled features. Every step takes two
        products for all running ascents together, Z = V Xᵀ and G = W X, instead of two for each.
        """
        columns, classes = self.columns, self._class_arguments(gamma)
        white = white.astype(np.float32)
        while running := [each for each in ascents if each.status == ascent.RUNNING]:
            trials = np.array([each.table[ascent.TRIAL] for each in running], dtype=np.float32)
            with np.errstate(over="ignore", invalid="ignore"):
                Z = (trials @ white.T) @ columns
            W = np.zeros_like(Z)
            values = [float(kernels.grid_divergence(z, *classes, w)) for z, w in zip(Z, W, strict=True)]
            gradients = ((W @ columns.T) @ white).astype(np.float64)
            for each, value, gradient in zip(running, values, gradients, strict=True):
                if np.isnan(value):
                    each.counts[ascent.STATUS] = ascent.HANDED_OVER
                else:
                    relative = tol * min(1.0, max(value, 1e-4))
                    kernels.advance(value, gradient, each.state, relative, progress)

    def evaluate(self, p: Floats, gamma: float) -> tuple[float, Floats]:
        """Return D and its gradient with respect to p, of shape (d,); D is NaN where the grid has no value."""
        with np.errstate(over="ignore", invalid="ignore"):
            z, w = np.asarray(p, np.float32) @ self.columns, np.zeros(self.n_rows, np.float32)
            value = kernels.grid_divergence(z, *self._class_arguments(gamma), w)
            return float(value), np.asarray(self.columns @ w, dtype=np.float64)

    def _class_arguments(self, gamma: float) -> tuple[int, Any, Floats, Floats]:
        """Return what kernels need besides projections: rows of the first class, weights, their totals, and factors."""
        factors = np.array([silverman_factor(total, gamma) for total in self.totals])
        return self.n_first, self.weights, self.totals, factors
