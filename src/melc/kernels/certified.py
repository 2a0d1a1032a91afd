"""Points in memory on a uniform row of moment bins: their mean and variance, their moments, and their weights."""

import numpy as np
from numba import njit

from melc.kernels.bins import add_moments, polynomial
from melc.kernels.flags import UNCHECKED


@njit(**UNCHECKED)
def measure(z, codes, weights, step):
    """Return the weights of both classes, their means, their variances, and the smallest and largest of all points."""
    totals, means, squares = np.zeros(2), np.zeros(2), np.zeros(2)
    low, high = z[0], z[0]
    for i in range(len(z)):
        c, weight = codes[i], weights[i * step]
        totals[c] += weight
        means[c] += weight * z[i]
        low, high = min(low, z[i]), max(high, z[i])
    for c in range(2):
        means[c] /= totals[c]
    for i in range(len(z)):
        c = codes[i]
        away = z[i] - means[c]
        squares[c] += weights[i * step] * away * away
    return totals[0], totals[1], means[0], means[1], squares[0] / totals[0], squares[1] / totals[1], low, high


@njit(**UNCHECKED)
def bin_uniformly(z, codes, weights, step, origin, width, low, bins, local, moments):
    """Write the bin and the coordinate of each point to ``bins`` and ``local``, and add its moments to ``moments``.

    Bins have one ``width`` for both classes, begin at ``origin`` and are counted from number ``low``. Those of class x
    are the first half of ``moments``, shape (2 n_bins, P).
    """
    n_bins = len(moments) // 2
    for i in range(len(z)):
        t = (z[i] - origin) * (1 / width)
        bin_number = np.floor(t)
        bins[i] = int(bin_number - low) + codes[i] * n_bins
        local[i] = 2 * (t - bin_number) - 1
    weight = weights[0]
    for position in range(len(z)):
        i = np.uint64(position)
        if step == 1:
            weight = weights[i]
        add_moments(moments, np.uint64(bins[i]), weight, local[i])


@njit(**UNCHECKED)
def weigh_binned(z, codes, weights, step, bins, local, polynomials, linear, w):
    """Write the gradient weight of each point to ``w``: the polynomial of its bin, and a linear function of z.

    The rows of ``linear`` are, for each class, its mean, the slope of the linear function, and its value at the mean.
    """
    for position in range(len(w)):
        i = np.uint64(position)
        c = codes[i]
        own = linear[c, 2] + linear[c, 1] * (z[i] - linear[c, 0])
        w[i] = weights[position * step] * (own + polynomial(polynomials, np.uint64(bins[i]), local[i]))
