"""Where the class changes on rays, for log-odds that are sums of piecewise linear curves along several lines."""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE, PART

# A speed below this fraction of what was just subtracted from it is a rounding error.
_REST = 1e-12
# An entry of a ray that is no larger than this is a rounding error.
_STILL = 1e-9
# Up to this distance to the next knot, rounding errors in the rates of the log-odds do not matter.
_SHORT = 1.0


@njit(**COMPILE)
def first_changes(
    z, rays, speeds, moves, low, high, limits, own, goal, starts, knots, anchors, values, slopes, constants, out, far
):
    """Write the place t at which the class first changes on each ray to ``out``, and how far that is to ``far``.

    A row has projections ``z[i]``, shape (n, n_lines), and the class ``own[i]``. At the place t of its ray j it has
    changed by ``c = t rays[i, j]``, but no entry by less than ``low[i]`` or by more than ``high[i]``, and its
    projections are ``z[i] + moves @ c``; ``speeds`` are ``rays @ moves.T``. Changes longer than ``limits[i, j]`` do not
    matter. The change is to the class ``goal``, or to any other if that is negative. Both results have
    shape (n, m) and are infinite where there is none.

    The curves of line k have the pieces from ``starts[k]`` to ``starts[k + 1]``. On a piece, the log-odds of all
    classes are ``values + slopes · (z − anchor)``, and ``knots`` has its upper end. Until the next knot of any line, or
    until an entry comes to its bound, everything is linear in t, so a walk from one to the next misses nothing.
    """
    n_lines, n_classes, n_entries = len(starts) - 1, len(constants), rays.shape[2]
    at_row, before, after, rates = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    pieces, first = np.empty(n_lines, np.int64), np.empty(n_lines, np.int64)
    # As long as no further entry comes to its bound, the projections are origin + t · speed.
    origin, speed, knot_times = np.empty(n_lines), np.empty(n_lines), np.empty(n_lines)
    moving = np.empty(n_entries, np.bool_)
    for i in range(len(z)):
        at_row[:] = constants
        for k in range(n_lines):
            first[k] = starts[k] + np.searchsorted(knots[starts[k] : starts[k + 1] - 1], z[i, k], side="right")
            for c in range(n_classes):
                at_row[c] += values[first[k], c] + slopes[first[k], c] * (z[i, k] - anchors[first[k]])
        for j in range(rays.shape[1]):
            t, longest, stopped, going = 0.0, limits[i, j] ** 2, 0.0, 0.0  # squares of lengths
            for f in range(n_entries):
                moving[f] = abs(rays[i, j, f]) > _STILL
                going += rays[i, j, f] ** 2
            for k in range(n_lines):
                pieces[k], origin[k], speed[k] = first[k], z[i, k], speeds[i, j, k]
                knot_times[k] = _next_knot(k, pieces[k], origin[k], speed[k], starts, knots)
            before[:] = at_row
            _add_up(speed, pieces, slopes, rates)
            entry, bend = _next_bend(rays[i, j], low[i], high[i], moving)
            out[i, j] = far[i, j] = np.inf
            while stopped + t * t * going <= longest:
                line, upcoming = -1, bend
                for k in range(n_lines):
                    if knot_times[k] < upcoming:
                        line, upcoming = k, knot_times[k]
                if upcoming == np.inf:  # beyond the last knot nothing changes
                    break
                upcoming = max(upcoming, t)
                if upcoming - t > _SHORT:
                    _add_up(speed, pieces, slopes, rates)
                for c in range(n_classes):
                    after[c] = before[c] + rates[c] * (upcoming - t)
                share = _first_share(before, after, own[i], goal)
                if share <= 1:
                    place = t + share * (upcoming - t)
                    if stopped + place * place * going <= longest:
                        out[i, j], far[i, j] = place, np.sqrt(stopped + place * place * going)
                    break
                if line >= 0:
                    old = pieces[line]
                    pieces[line] += 1 if speed[line] > 0 else -1
                    for c in range(n_classes):
                        rates[c] += (slopes[pieces[line], c] - slopes[old, c]) * speed[line]
                    knot_times[line] = _next_knot(line, pieces[line], origin[line], speed[line], starts, knots)
                else:
                    pace = rays[i, j, entry]
                    moving[entry], stopped, going = False, stopped + (bend * pace) ** 2, max(going - pace**2, 0.0)
                    for k in range(n_lines):
                        origin[k] += bend * pace * moves[k, entry]
                        speed[k] -= pace * moves[k, entry]
                        if abs(speed[k]) < _REST * abs(pace * moves[k, entry]):
                            speed[k] = 0.0
                        knot_times[k] = _next_knot(k, pieces[k], origin[k], speed[k], starts, knots)
                    _add_up(speed, pieces, slopes, rates)
                    entry, bend = _next_bend(rays[i, j], low[i], high[i], moving)
                    if entry < 0 and not moving.any():
                        break
                before, after, t = after, before, upcoming


@njit(**PART)
def _add_up(speed, pieces, slopes, rates):
    """Write how fast the log-odds of each class change with t to ``rates``."""
    rates[:] = 0.0
    for k in range(len(speed)):
        for c in range(len(rates)):
            rates[c] += slopes[pieces[k], c] * speed[k]


@njit(**PART)
def _next_knot(line, piece, origin, speed, starts, knots):
    """Return the time at which a line comes to the end of a piece of its curves, infinite if that is the last."""
    if speed > 0:
        return (knots[piece] - origin) / speed
    if speed < 0 and piece > starts[line]:
        return (knots[piece - 1] - origin) / speed
    return np.inf


@njit(**PART)
def _next_bend(ray, low, high, moving):
    """Return which of the moving entries of a change reaches its bound first, −1 if none does, and when."""
    entry, bend = -1, np.inf
    for f in range(len(ray)):
        if moving[f]:
            at = (high[f] if ray[f] > 0 else low[f]) / ray[f]
            if at < bend:
                entry, bend = f, at
    return entry, bend


@njit(**PART)
def _first_share(before, after, own, goal):
    """Return the fraction of a segment at which the class first changes, or 2 if it does not.

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
    """Return the fraction of a segment at which a lead becomes positive, from its values at both ends."""
    return 0.0 if lead > 0 else lead / (lead - later)
