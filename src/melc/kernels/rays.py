"""Where the class changes on rays, for log-odds that are sums of piecewise linear curves along several lines."""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE, PART


@njit(**COMPILE)
def first_changes(z, speeds, limits, own, goal, starts, knots, anchors, values, slopes, constants, out):
    """Write the distance at which the class first changes on each ray to ``out``, infinite where it does not.

    A row has projections ``z[i]``, shape (n, n_lines), and the class ``own[i]``. On its ray j they are ``z[i] + t
    speeds[i, j]`` at distance t; distances beyond ``limits[i, j]`` do not matter. The change is to the class ``goal``,
    or to any other if that is negative. ``out`` has shape (n, m).

    The curves of line k have the pieces from ``starts[k]`` to ``starts[k + 1]``. On a piece, the log-odds of all
    classes are ``values + slopes · (z − anchor)``, and ``knots`` has its upper end. Between two knots of any lines
    everything is linear in t, so a walk from knot to knot misses nothing.
    """
    n_lines = len(starts) - 1
    before, after = np.empty(len(constants)), np.empty(len(constants))
    pieces, first = np.empty(n_lines, np.int64), np.empty(n_lines, np.int64)
    for i in range(len(z)):
        for k in range(n_lines):
            first[k] = starts[k] + np.searchsorted(knots[starts[k] : starts[k + 1] - 1], z[i, k], side="right")
        for j in range(speeds.shape[1]):
            speed, t = speeds[i, j], 0.0
            pieces[:] = first
            _add_up(z[i], speed, t, pieces, anchors, values, slopes, constants, before)
            out[i, j] = np.inf
            while t <= limits[i, j]:
                upcoming, line = np.inf, -1
                for k in range(n_lines):
                    at = np.inf
                    if speed[k] > 0:
                        at = (knots[pieces[k]] - z[i, k]) / speed[k]
                    elif speed[k] < 0 and pieces[k] > starts[k]:
                        at = (knots[pieces[k] - 1] - z[i, k]) / speed[k]
                    if at < upcoming:
                        upcoming, line = at, k
                if line < 0:  # beyond the last knot nothing changes
                    break
                upcoming = max(upcoming, t)
                _add_up(z[i], speed, upcoming, pieces, anchors, values, slopes, constants, after)
                share = _first_share(before, after, own[i], goal)
                if share <= 1:
                    if t + share * (upcoming - t) <= limits[i, j]:
                        out[i, j] = t + share * (upcoming - t)
                    break
                pieces[line] += 1 if speed[line] > 0 else -1
                before, after, t = after, before, upcoming


@njit(**PART)
def _add_up(z, speed, t, pieces, anchors, values, slopes, constants, out):
    """Write the log-odds of all classes at distance t, on the given pieces of the curves, to ``out``."""
    out[:] = constants
    for k in range(len(z)):
        piece = pieces[k]
        away = z[k] + t * speed[k] - anchors[piece]
        for c in range(len(out)):
            out[c] += values[piece, c] + slopes[piece, c] * away


@njit(**PART)
def _first_share(before, after, own, goal):
    """Return the part of a way after which the class changes; two if it does not.

    ``before`` and ``after`` are the log-odds of all classes at both ends, between which they are linear.
    """
    if goal < 0:  # any class that comes to be ahead of its own
        nearest = 2.0
        for c in range(len(before)):
            if after[c] > after[own] or before[c] > before[own]:
                nearest = min(nearest, _share_of(before[c] - before[own], after[c] - after[own]))
        return nearest
    enter, leave = 0.0, 1.0  # that class has to be ahead of all others at the same place
    for c in range(len(before)):
        if c == goal:
            continue
        lead, later = before[goal] - before[c], after[goal] - after[c]
        if lead <= 0 and later <= 0:
            return 2.0
        if lead <= 0:
            enter = max(enter, _share_of(lead, later))
        elif later <= 0:
            leave = min(leave, lead / (lead - later))
    return enter if enter < leave else 2.0


@njit(**PART)
def _share_of(lead, later):
    """Return where a lead becomes positive on the way from its first value to a later one."""
    return 0.0 if lead > 0 else lead / (lead - later)
