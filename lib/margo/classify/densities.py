"""Log densities of many Gaussians at many samples; NaN marks a missing value, which is integrated out exactly.

Samples ``x[N, D]``, Gaussians K, results ``[N, K]``. Without missing values everything is matrix products. With
them: diagonal stays two products; full covariances are cut per pattern of missing values; diagonal plus low rank
works on R x R matrices per sample and never forms a D x D one ([R18] 3.3).
"""

import numpy as np

from margo.errors import MargoError

LOG_2PI = float(np.log(2.0 * np.pi))


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
    """DPLR matrices as covariances ``B^(1/2) (I + sign U U') B^(1/2)``.

    Returns ``(b^(-1/2) [K, D], log(2 pi b) [K, D], U [K, D, R], sign)``.
    A covariance ``A + S S'`` has ``b = a`` and ``U = A^(-1/2) S``. A precision ``A + S S'`` has the covariance
    ``A^-1 - A^-1 S (I + S' A^-1 S)^-1 S' A^-1``, so ``b = 1/a``, ``U = A^(-1/2) S L^-T`` with ``L L' = I + S' A^-1 S``
    and sign -1. Either way the marginal of some dimensions is had by dropping entries of ``b`` and rows of ``U``.
    """
    root = factor / np.sqrt(diagonal)[:, :, None]
    if not precision:
        return 1.0 / np.sqrt(diagonal), LOG_2PI + np.log(diagonal), root, 1.0
    lower = np.linalg.cholesky(np.eye(factor.shape[2]) + root.transpose(0, 2, 1) @ root)
    solved = np.linalg.solve(lower, root.transpose(0, 2, 1)).transpose(0, 2, 1)
    return np.sqrt(diagonal), LOG_2PI - np.log(diagonal), np.ascontiguousarray(solved), -1.0


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


def log_dplr_missing(x, means, scale, log_b, U, sign) -> np.ndarray:
    """:func:`log_dplr` where values are missing, from :func:`marginal_form`; R x R per sample and Gaussian."""
    from margo.classify.lowrank import log_marginals  # numba: loaded where values are missing, not before

    log_p = log_marginals(np.ascontiguousarray(x, float), means, scale, log_b, U, sign)
    if np.isnan(log_p).any():
        k = int(np.isnan(log_p).any(axis=0).argmax())
        raise MargoError(f"Gaussian {k}: its diagonal plus low rank is not positive definite")
    return log_p
