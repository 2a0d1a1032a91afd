"""Curves that are piecewise linear."""

from numba import njit


@njit(cache=True, nogil=True)
def evaluate_curve(z, knots, values, slopes, anchors, out):
    """Write ``values[i] + slopes[i] · (z − anchors[i])`` to ``out``, with i the number of knots at or below each z.

    z and ``out`` have shape (n,), ``knots`` shape (m,), the other arrays shape (m + 1,). The search halves the knots
    without branches, which would be mispredicted. Additions are not reordered: the sign of the sum must be exact.
    """
    m = len(knots)
    for k in range(len(z)):
        place, first, length = z[k], 0, m
        while length > 0:
            half = (length + 1) // 2
            reached = knots[first + half - 1] <= place
            first += half * reached
            length -= half
        out[k] = values[first] + slopes[first] * (place - anchors[first])
