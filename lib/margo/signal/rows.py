"""Products with a matrix of which each row depends on nothing but that row.

BLAS promises no such thing: on some processors it takes the last rows, or those in some places, by another routine,
which rounds otherwise, and features would depend on which recordings go through together. Here the terms of a row are
added one after the other, whatever stands beside it; as fast, since the matrices are small or have many zeros.
"""

import numpy as np
from numba import njit

LANES = 32  # rows that are worked on side by side


def used_rows(matrix: np.ndarray) -> np.ndarray:
    """The first row of each column that is not zero, and the one after the last such: int [2, D].

    >>> used_rows(np.array([[0.0, 2.0], [1.0, 3.0], [4.0, 0.0]])).tolist()
    [[1, 0], [3, 2]]
    """
    used = matrix != 0.0
    return np.array([used.argmax(axis=0), len(matrix) - used[::-1].argmax(axis=0)])


@njit(cache=True)
def row_products(x, matrix, used, out):
    """``out[t, d] = sum_c x[t, c] matrix[c, d]`` for ``used[0, d] <= c < used[1, d]``; x [T, C], matrix [C, D]."""
    lanes = np.empty((x.shape[1], LANES), x.dtype)  # rows as columns: inner loops go along them
    sums = np.empty(LANES, x.dtype)
    for start in range(0, len(x), LANES):
        count = min(LANES, len(x) - start)
        for lane in range(count):
            for c in range(x.shape[1]):
                lanes[c, lane] = x[start + lane, c]
        for d in range(matrix.shape[1]):
            sums[:] = 0.0
            for c in range(used[0, d], used[1, d]):
                weight, terms = matrix[c, d], lanes[c]
                for lane in range(count):
                    sums[lane] += weight * terms[lane]
            for lane in range(count):
                out[start + lane, d] = sums[lane]
