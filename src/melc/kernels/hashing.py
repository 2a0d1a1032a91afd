"""Hashes of rows, the weight of rows with equal hashes, and pseudo-random numbers from hashes.

A hash is the sum, modulo 2⁶⁴, of one scrambled number for every feature that is not zero. So it does not depend on how
the row is stored: dense or sparse, and whatever the order of the stored elements. Equal rows have equal hashes.
Different rows have different ones, except with a probability of about n²/2⁶⁵ for n rows.
"""

import numpy as np
from numba import njit

from melc.kernels.flags import COMPILE, inlined

# Odd numbers with irregular bits: those of MurmurHash3's finaliser, and the golden ratio.
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF, _SIGN, _ONE, _MANTISSA = np.uint64(33), np.uint64(1), np.uint64(1), np.uint64(11)
_UNIT = 2.0**-53


def _scrambled_bits(bits):
    """Return the scrambled bits of a number, or an array, of type uint64."""
    bits = (bits ^ (bits >> _HALF)) * _FIRST
    bits = (bits ^ (bits >> _HALF)) * _SECOND
    return bits ^ (bits >> _HALF)


_scrambled = inlined(_scrambled_bits)


@inlined
def _term(bits, feature):
    """Return what one feature adds to a hash: zero for zeros of either sign."""
    if bits << _SIGN == 0:
        return np.uint64(0)
    return _scrambled(bits + (np.uint64(feature) + _ONE) * _GOLDEN)


@njit(**COMPILE)
def hash_rows(bits, hashes):
    """Write the hashes of dense rows. ``bits``, of shape (n, d), are float64 numbers seen as unsigned integers."""
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for j in range(bits.shape[1]):
            total += _term(bits[i, j], j)
        hashes[i] = _scrambled(total)


@njit(**COMPILE)
def hash_sparse_rows(bits, rows, columns, hashes):
    """Write the hashes of sparse rows, from the stored elements and their rows and columns."""
    hashes[:] = 0
    for k in range(len(bits)):
        hashes[rows[k]] += _term(bits[k], columns[k])
    for i in range(len(hashes)):
        hashes[i] = _scrambled(hashes[i])


@njit(**COMPILE)
def add_weights_by_hash(hashes, weights, step, table):
    """Add the weight of each row to ``table`` at the last bits of its hash. Its length is a power of two."""
    last = np.uint64(len(table) - 1)
    for i in range(len(hashes)):
        table[hashes[i] & last] += weights[step * i]


def class_keys(hashes, codes):
    """Return hashes of the contents and the classes of rows, shape (n,)."""
    return hashes + codes.astype(np.uint64) * _GOLDEN


def hashes_in(keys, codes):
    """Return the hashes of the contents of rows, shape (n,), from their :func:`class_keys`."""
    return keys - codes.astype(np.uint64) * _GOLDEN


def write_uniforms(hashes, seed, numbers):
    """Write a pseudo-random number between 0 and 1 for each hash to ``numbers``, shape (n,)."""
    numbers[:] = ((_scrambled_bits(hashes ^ seed) >> _MANTISSA) + 0.5) * _UNIT


@njit(**COMPILE)
def select_rows(hashes, codes, weights, step, seed, table, limits, chosen, keys):
    """Write which rows have a pseudo-random number below the limit of their class times their weight, and their keys.

    The weight is the entry of the table or, if the table is empty, the weight of the row. Returns their number.
    """
    last = np.uint64(len(table) - 1)
    n = 0
    for i in range(len(hashes)):
        weight = table[hashes[i] & last] if len(table) else weights[step * i]
        uniform = (np.float64(_scrambled(hashes[i] ^ seed) >> _MANTISSA) + 0.5) * _UNIT
        if uniform < limits[codes[i]] * weight:
            chosen[n], keys[n] = i, hashes[i] + np.uint64(codes[i]) * _GOLDEN
            n += 1
    return n
