"""Diagonal plus low rank: the kernels of :func:`margo.gaussian.covariances.log_with_gaps` (missing values) and of
hybrid training, whose many small matrices cost LAPACK more to enter than to factorise."""

import numpy as np
from numba import njit

# sums may be reordered and fused, which vector instructions need; NaN keeps its meaning
FAST = {"contract", "reassoc", "nsz"}


@njit(cache=True, error_model="numpy", fastmath=FAST)
def log_marginals(x, means, scale, log_b, U, sign):
    """``log N`` of the observed values of ``x`` [N, D] under K Gaussians, [N, K]; NaN is missing.

    Arguments as ``marginal_form`` of :class:`margo.gaussian.covariances.LowRank` gives them. With e = scale (x - mu)
    over the observed dimensions and V the rows of U there, the Gram matrix of the columns of [V, e] has V'V, V'e, e'e.
    """
    (N, D), (K, R) = x.shape, (len(U), U.shape[2])
    log_p = np.empty((N, K))
    even = R + 2 - R % 2  # columns of [V, e], and a column of zeros where their number is odd
    columns, gram = np.zeros((even, D)), np.empty((even, even))
    index = np.empty(D, np.int64)
    for k in range(K):  # outside, so that many samples find U of one Gaussian in the cache
        for n in range(N):
            count = 0
            for d in range(D):
                if not np.isnan(x[n, d]):
                    index[count] = d
                    count += 1
            constant = 0.0
            for i in range(count):
                d = index[i]
                for a in range(R):
                    columns[a, i] = U[k, d, a]
                columns[R, i] = (x[n, d] - means[k, d]) * scale[k, d]
                constant += log_b[k, d]
            _gram(columns, count, gram)
            log_p[n, k] = -0.5 * (constant + _quadratic_and_log_det(gram, R, sign))
    return log_p


@njit(cache=True, fastmath=FAST)
def _gram(columns, count, gram):
    """Lower triangle of the inner products of ``columns`` [even, D] over the first ``count``, two by two: four sums
    in registers need four loads, not eight."""
    for a in range(0, len(gram), 2):
        p0, p1 = columns[a], columns[a + 1]
        for b in range(0, a + 1, 2):
            q0, q1 = columns[b], columns[b + 1]
            s00 = s01 = s10 = s11 = 0.0
            for i in range(count):
                s00 += p0[i] * q0[i]
                s01 += p0[i] * q1[i]
                s10 += p1[i] * q0[i]
                s11 += p1[i] * q1[i]
            gram[a, b], gram[a, b + 1] = s00, s01
            gram[a + 1, b], gram[a + 1, b + 1] = s10, s11


@njit(cache=True, error_model="numpy", fastmath=FAST)
def _quadratic_and_log_det(gram, R, sign):
    """``e'e - sign z'z + log det(I + sign V'V)``, z = L^-1 V'e, from :func:`_gram`, which is overwritten.

    The factor L of ``I + sign V'V`` takes the place of V'V, column by column; carried one row further, it holds z.
    """
    for a in range(R):
        for b in range(a + 1):
            gram[a, b] *= sign
        gram[a, a] += 1.0
    total = gram[R, R]
    for a in range(R):
        pivot = np.sqrt(gram[a, a])
        total += 2.0 * np.log(pivot)
        for b in range(a + 1, R + 1):
            gram[b, a] /= pivot
        for b in range(a + 1, R + 1):
            share = gram[b, a]
            for c in range(a + 1, min(b + 1, R)):
                gram[b, c] -= share * gram[c, a]
        total -= sign * gram[R, a] ** 2
    return total


@njit(cache=True, error_model="numpy", fastmath=FAST)
def inverse_factors(matrices):
    """``L^-1`` [K, R, R] of positive definite ``L L' = matrices[k]``, row by row; NaN where one is not."""
    K, R, _ = matrices.shape
    inverse, lower = np.zeros_like(matrices), np.empty_like(matrices[0])
    for k in range(K):
        for i in range(R):
            for j in range(i + 1):
                rest = matrices[k, i, j]
                for p in range(j):
                    rest -= lower[i, p] * lower[j, p]
                lower[i, j] = rest / lower[j, j] if j < i else np.sqrt(rest)
            row = inverse[k, i]
            for j in range(i):
                for p in range(j + 1):
                    row[p] -= lower[i, j] * inverse[k, j, p]
            row[i] = 1.0
            for p in range(i + 1):
                row[p] /= lower[i, i]
    return inverse
