"""Log densities of many Gaussians at many samples; NaN marks a missing value, which is integrated out exactly.

Samples ``x[N, D]``, Gaussians K, results ``[N, K]``. Without missing values everything is matrix products. With
them: diagonal stays two products; full covariances are cut per pattern of missing values; diagonal plus low rank
works on R x R matrices per sample and never forms a D x D one ([R18] 3.3).
"""

import numpy as np

LOG_2PI = float(np.log(2.0 * np.pi))
# Samples by components handled at once where every sample needs its own R x R matrix: bounds the memory.
CHUNK_ENTRIES = 4_000_000


def log_diagonal(x, means, variances) -> np.ndarray:
    """``log N(x_n; mu_k, diag v_k)``: the sum over the observed dimensions."""
    centre = means.mean(axis=0)
    x, means = x - centre, means - centre
    inverse = 1.0 / variances
    if np.isnan(x).any():
        seen = np.isfinite(x).astype(x.dtype)
        x = np.where(seen > 0, x, 0.0)
        constant = seen @ (LOG_2PI + np.log(variances) + means**2 * inverse).T
    else:
        constant = (LOG_2PI + np.log(variances) + means**2 * inverse).sum(axis=1)
    return x @ (means * inverse).T - 0.5 * (x**2 @ inverse.T + constant)


def patterns(x):
    """Groups of equal missing values: ``[(rows, seen[D]), ...]``."""
    seen = ~np.isnan(x)
    if seen.all():
        return [(np.arange(len(x)), np.ones(x.shape[1], bool))]
    kinds, which = np.unique(seen, axis=0, return_inverse=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    return list(zip(np.split(order, np.cumsum(np.bincount(which))[:-1]), kinds))


def log_full(x, means, covariances) -> np.ndarray:
    """``log N(x_n; mu_k, Sigma_k)`` with the rows and columns of missing values dropped, pattern by pattern."""
    log_p = np.empty((len(x), len(means)))
    for rows, seen in patterns(x):
        part, d = x[np.ix_(rows, seen)], int(seen.sum())
        factors = np.linalg.cholesky(covariances[:, seen][:, :, seen])
        half_log_det = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        if len(rows) > d:  # enough samples to pay for the inverses: one product a Gaussian
            quadratic = np.empty((len(rows), len(means)))
            for k, inverse in enumerate(np.linalg.inv(factors)):
                z = (part - means[k, seen]) @ inverse.T
                quadratic[:, k] = np.einsum("nd,nd->n", z, z)
        else:
            delta = (part[None] - means[:, None, seen]).transpose(0, 2, 1)
            quadratic = (np.linalg.solve(factors, delta) ** 2).sum(axis=1).T
        log_p[rows] = -0.5 * (quadratic + d * LOG_2PI) - half_log_det
    return log_p


def marginal_form(diagonal, factor, precision: bool):
    """DPLR matrices as covariances ``B^(1/2) (I + sign U U') B^(1/2)``: ``(b[K, D], U[K, D, R], sign)``.

    A covariance ``A + S S'`` has ``b = a`` and ``U = A^(-1/2) S``. A precision ``A + S S'`` has the covariance
    ``A^-1 - A^-1 S (I + S' A^-1 S)^-1 S' A^-1``, so ``b = 1/a``, ``U = A^(-1/2) S L^-T`` with ``L L' = I + S' A^-1 S``
    and sign -1. Either way the marginal of some dimensions is had by dropping entries of ``b`` and rows of ``U``.
    """
    root = factor / np.sqrt(diagonal)[:, :, None]
    if not precision:
        return diagonal, root, 1.0
    lower = np.linalg.cholesky(np.eye(factor.shape[2]) + root.transpose(0, 2, 1) @ root)
    solved = np.linalg.solve(lower, root.transpose(0, 2, 1)).transpose(0, 2, 1)
    return 1.0 / diagonal, np.ascontiguousarray(solved), -1.0


def as_precision(diagonal, factor, precision: bool):
    """DPLR matrices as precisions ``diag(p) + sign V V'`` and ``log det``: ``(p[K, D], V[K, D, R], sign, log_det[K])``.

    Woodbury and the determinant lemma ([R18] (13), (14)); ``log_det`` is that of the precision.
    """
    scaled = factor / diagonal[:, :, None]
    lower = np.linalg.cholesky(np.eye(factor.shape[2], dtype=factor.dtype) + factor.transpose(0, 2, 1) @ scaled)
    log_det = np.log(diagonal).sum(axis=1) + 2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    if precision:
        return diagonal, factor, 1.0, log_det
    return 1.0 / diagonal, np.linalg.solve(lower, scaled.transpose(0, 2, 1)).transpose(0, 2, 1), -1.0, -log_det


def log_dplr(x, means, diagonal, factor, precision: bool) -> np.ndarray:
    """``log N(x_n; mu_k, Sigma_k)`` for complete samples, ``Sigma_k`` or its inverse ``diag(d_k) + S_k S_k'`` (11)."""
    K, D, R = factor.shape
    p, V, sign, log_det = as_precision(diagonal, factor, precision)
    centre = means.mean(axis=0)
    x, means = x - centre, means - centre
    offset = np.einsum("kdr,kd->kr", V, means)
    projected = (x @ V.transpose(1, 0, 2).reshape(D, K * R)).reshape(len(x), K, R) - offset
    quadratic = x**2 @ p.T - 2.0 * x @ (means * p).T + (means**2 * p).sum(axis=1)
    return 0.5 * (log_det - D * LOG_2PI - quadratic - sign * (projected**2).sum(axis=2))


def log_dplr_missing(x, means, b, U, sign) -> np.ndarray:
    """:func:`log_dplr` where values are missing, from :func:`marginal_form`; R x R per sample and Gaussian.

    The R x R matrix of a sample is a sum over its observed dimensions: for few samples that sum is made from the
    observed rows; for many, by one matrix product of the 0/1 patterns with the outer products of all rows.
    """
    K, D, R = U.shape
    seen = ~np.isnan(x)
    filled = np.where(seen, x, 0.0)
    log_b = LOG_2PI + np.log(b)
    root = np.sqrt(b)
    log_p = np.empty((len(x), K))
    if len(x) < R:
        for n, mask in enumerate(seen):
            index = np.flatnonzero(mask)
            rows = np.take(U, index, axis=1)
            delta = (filled[n, index] - means[:, index]) / root[:, index]
            inner = np.eye(R) + sign * (rows.transpose(0, 2, 1) @ rows)
            z, log_det = _whiten(inner, (delta[:, None, :] @ rows)[:, 0])
            quadratic = (delta**2).sum(axis=1) - sign * (z**2).sum(axis=1)
            log_p[n] = -0.5 * (log_b[:, index].sum(axis=1) + log_det + quadratic)
        return log_p
    upper = np.triu_indices(R)
    chunk = max(1, CHUNK_ENTRIES // (R * R))
    for first in range(0, len(x), chunk):
        part, mask = filled[first : first + chunk], seen[first : first + chunk].astype(float)
        for k in range(K):
            inner = np.empty((len(part), R, R))
            inner[:, upper[0], upper[1]] = mask @ (sign * U[k][:, upper[0]] * U[k][:, upper[1]])
            inner[:, upper[1], upper[0]] = inner[:, upper[0], upper[1]]
            inner[:, range(R), range(R)] += 1.0
            delta = (part - means[k]) * mask / root[k]
            z, log_det = _whiten(inner, delta @ U[k])
            quadratic = (delta**2).sum(axis=1) - sign * (z**2).sum(axis=1)
            log_p[first : first + chunk, k] = -0.5 * (mask @ log_b[k] + log_det + quadratic)
    return log_p


def _whiten(matrices, vectors):
    """``L^-1 v`` and ``log det`` for ``matrices = L L'`` ([B, R, R]) and ``vectors`` [B, R]."""
    lower = np.linalg.cholesky(matrices)
    log_det = 2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return np.linalg.solve(lower, vectors[:, :, None])[:, :, 0], log_det
