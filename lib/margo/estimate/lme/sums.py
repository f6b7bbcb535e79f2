"""Sums over entries, one after the other: those of blocks leave the same as those of the whole, to the bit."""

from numba import njit


@njit(cache=True)
def add_at(sums, index, values):
    """sums[index[i]] += values[i], as np.bincount does."""
    for i in range(len(index)):
        sums[index[i]] += values[i]


@njit(cache=True)
def add_rows(sums, index, weights, rows):
    """sums[index[i]] += weights[i] rows[i]."""
    for i in range(len(index)):
        if weights[i] != 0.0:
            for d in range(rows.shape[1]):
                sums[index[i], d] += weights[i] * rows[i, d]
