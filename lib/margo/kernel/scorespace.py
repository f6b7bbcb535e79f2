"""Score-spaces of Gaussian mixtures: one sample -> one vector of log-likelihoods and their derivatives ([L04] 4).

Features of a space, in order: the likelihood part (none, one per class, or the log-likelihood ratio of two classes),
then for each class the derivatives by its means and by its variances, where the space has them.
"""

from dataclasses import replace

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.gaussian import em
from margo.gaussian.mixtures import log_components
from margo.gaussian.pool import GaussianPool

SPACES = ("ll", "llr", "fisher", "ll-mean", "ll-mean-var", "llr-mean", "llr-mean-var")


def fit_mixtures(x, y, mixtures: int, rng, tied: bool = False, floor: float = 1e-4, **changes) -> GaussianPool:
    """The mixtures that kernels start from: diagonal ones of the same size for each class, by EM from a broad start;
    variances, own or ``tied``, are at least ``floor`` times those of the data ([L04] 6)."""
    settings = {"start": "broad", "iterations": 200, "tolerance": 1e-6, "ridge": 0.0} | changes
    return em.fit(x, y, em.EmOptions(mixtures=mixtures, tied=tied, floor=floor, **settings), rng)[0]


def by_class(pool: GaussianPool, values) -> np.ndarray:
    """``values`` [K, ...] of the Gaussians as [C, M, ...]."""
    return values.reshape(pool.n_states, -1, *values.shape[1:])


def to_vector(pool: GaussianPool, start: GaussianPool) -> np.ndarray:
    """Means and variances as one vector, in the standardised parameters that steps are taken in.

    A mean counts in standard deviations of ``start``, a variance as its logarithm, so that steps in different
    directions compare and no variance can become negative. Weights stay out: [L04] keeps them at their ML estimates.
    """
    return np.concatenate([(pool.means / np.sqrt(start.variances)).ravel(), np.log(pool.variances).ravel()])


def from_vector(vector: np.ndarray, start: GaussianPool) -> GaussianPool:
    """The inverse of :func:`to_vector`."""
    means, log_variances = vector.reshape(2, *start.means.shape)
    return replace(start, means=means * np.sqrt(start.variances), covariances=np.exp(log_variances))


def moving_scores(x, space: str, start: GaussianPool):
    """``scores(theta)`` for :func:`margo.kernel.descent.train`: scores, and their gradient by the vector of
    :func:`to_vector`, whose chain rule is applied."""

    def scores(theta):
        moved = from_vector(theta, start)
        phi, pullback = score(moved, x, space)

        def by_vector(d_phi):
            d_means, d_variances = pullback(d_phi)
            deviations = np.sqrt(start.variances)
            return np.concatenate([(d_means * deviations).ravel(), (d_variances * moved.variances).ravel()])

        return phi, by_vector

    return scores


def parts(space: str) -> tuple[str, bool, bool]:
    """``(likelihood, means, variances)`` of a space's name; likelihood is ``none``, ``each`` or ``ratio``."""
    if space not in SPACES:
        raise MargoError(f"score-space {space!r}: expected one of {' '.join(SPACES)}")
    if space == "fisher":
        return "none", True, True
    head, *rest = space.split("-")
    return {"ll": "each", "llr": "ratio"}[head], "mean" in rest, "var" in rest


@njit(cache=True)
def _derivatives(x, posteriors, means, variances):
    """First derivatives of ``ln p(x|theta)`` by means and variances, [N, K, D] each ([L04] (62), (63))."""
    n, k, d = len(x), means.shape[0], means.shape[1]
    by_mean = np.empty((n, k, d))
    by_variance = np.empty((n, k, d))
    for i in range(n):
        for j in range(k):
            gamma = posteriors[i, j]
            for a in range(d):
                e = (x[i, a] - means[j, a]) / variances[j, a]
                by_mean[i, j, a] = gamma * e
                by_variance[i, j, a] = 0.5 * gamma * (e * e - 1.0 / variances[j, a])
    return by_mean, by_variance


@njit(cache=True)
def _curvature(x, posteriors, means, variances, d_loglik, on_mean, on_variance):
    """Gradient by means and variances of ``sum_i d_loglik_ic l_c(x_i) + on_i . grad l(x_i)``.

    ``posteriors`` [N, C, M], parameters [C, M, D], ``d_loglik`` [N, C], ``on_mean``, ``on_variance`` [N, C, M, D].
    With g_j the derivatives of component j alone, r_j = on_j . g_j and q = sum_j gamma_j r_j, the second derivatives
    of [L04] section 5.3 act on ``on`` as ``gamma_k [ H_k on_k + (r_k - q) g_k ]``: the matrix is never formed, and the
    cost is that of the scores themselves.
    """
    n, classes, mixtures = posteriors.shape
    dims = x.shape[1]
    d_means = np.zeros((classes, mixtures, dims))
    d_variances = np.zeros((classes, mixtures, dims))
    r = np.empty(mixtures)
    for i in range(n):
        for c in range(classes):
            q = 0.0
            for j in range(mixtures):
                total = 0.0
                for a in range(dims):
                    p = 1.0 / variances[c, j, a]
                    e = (x[i, a] - means[c, j, a]) * p
                    total += on_mean[i, c, j, a] * e + on_variance[i, c, j, a] * 0.5 * (e * e - p)
                r[j] = total
                q += posteriors[i, c, j] * total
            for j in range(mixtures):
                gamma = posteriors[i, c, j]
                weight = gamma * (r[j] - q + d_loglik[i, c])
                for a in range(dims):
                    p = 1.0 / variances[c, j, a]
                    e = (x[i, a] - means[c, j, a]) * p
                    um = on_mean[i, c, j, a]
                    uv = on_variance[i, c, j, a]
                    d_means[c, j, a] += weight * e - gamma * p * (um + e * uv)
                    d_variances[c, j, a] += weight * 0.5 * (e * e - p) + gamma * p * (
                        (0.5 * p - e * e) * uv - e * um
                    )
    return d_means, d_variances


def score(pool: GaussianPool, x: np.ndarray, space: str):
    """``(phi [N, P], pullback)`` of samples ``x`` [N, D] in the score-space of the classes' mixtures, all of one size
    ([L04] (18)-(25), (43)).

    ``pullback(d_phi [N, P])`` returns ``sum_i d_phi_i' (d phi_i / d theta)`` as ``(d_means, d_variances)``, each
    [K, D]: the product with the second derivatives of (44).
    """
    likelihood, by_means, by_variances = parts(space)
    classes, mixtures, dims = by_class(pool, pool.means).shape
    if likelihood == "ratio" and classes != 2:
        raise MargoError(f"score-space {space}: a likelihood ratio needs 2 classes, found {classes}")
    log_p = log_components(pool, x).reshape(len(x), classes, mixtures)
    peak = log_p.max(2)
    posteriors = np.exp(log_p - peak[..., None])
    total = posteriors.sum(2)
    posteriors /= total[..., None]
    log_lik = peak + np.log(total)

    columns = []
    if likelihood == "ratio":
        columns.append(log_lik[:, :1] - log_lik[:, 1:])
    elif likelihood == "each":
        columns.append(log_lik)
    if by_means or by_variances:
        d_mean, d_variance = _derivatives(x, posteriors.reshape(len(x), -1), pool.means, pool.variances)
        wanted = [d for d, on in ((d_mean, by_means), (d_variance, by_variances)) if on]
        # [N, C, kinds * M * D]: class by class, means before variances
        stacked = np.concatenate([d.reshape(len(x), classes, -1) for d in wanted], axis=2)
        columns.append(stacked.reshape(len(x), -1))
    phi = np.concatenate(columns, axis=1)
    n_likelihood = {"none": 0, "ratio": 1, "each": classes}[likelihood]

    def pullback(d_phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d_loglik = np.zeros((len(x), classes))
        if likelihood == "ratio":
            d_loglik[:, 0], d_loglik[:, 1] = d_phi[:, 0], -d_phi[:, 0]
        elif likelihood == "each":
            d_loglik[:] = d_phi[:, :classes]
        on = [np.zeros((len(x), classes, mixtures, dims)) for _ in range(2)]
        rest = d_phi[:, n_likelihood:].reshape(len(x), classes, -1)
        for kind, wanted in enumerate((by_means, by_variances)):
            if wanted:
                on[kind] = np.ascontiguousarray(rest[:, :, : mixtures * dims]).reshape(on[kind].shape)
                rest = rest[:, :, mixtures * dims :]
        arrays = by_class(pool, pool.means), by_class(pool, pool.variances)
        return tuple(d.reshape(pool.means.shape) for d in _curvature(x, posteriors, *arrays, d_loglik, on[0], on[1]))

    return phi, pullback


def blocks(space: str, classes: int, components: int, dims: int) -> np.ndarray:
    """Block of every feature for a block-diagonal metric, int [P].

    Each likelihood is a block of its own; so are the derivatives by one component's means, and by its variances.
    """
    likelihood, by_means, by_variances = parts(space)
    n_likelihood = {"none": 0, "ratio": 1, "each": classes}[likelihood]
    n_vectors = classes * components * (by_means + by_variances)
    return np.concatenate([np.arange(n_likelihood), n_likelihood + np.repeat(np.arange(n_vectors), dims)])


def fisher_ratios(phi: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Between-class over within-class variance of every feature, [P] ([L04] (54), one feature at a time)."""
    within, between = np.zeros(phi.shape[1]), np.zeros(phi.shape[1])
    centre = phi.mean(0)
    for c in np.unique(y):
        own = phi[y == c]
        within += len(own) * own.var(0)
        between += len(own) * (own.mean(0) - centre) ** 2
    return between / np.maximum(within, np.finfo(float).tiny)


def select_features(phi: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` features with the largest Fisher ratios, ascending."""
    return np.sort(np.argsort(-fisher_ratios(phi, y), kind="stable")[:count])
