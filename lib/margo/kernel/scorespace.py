"""Score-spaces of Gaussian mixtures: one sample -> one vector of log-likelihoods and their derivatives ([L04] 4).

Features of a space, in order: the likelihood part (none, one per class, or the log-likelihood ratio of two classes),
then for each class the derivatives by its means, by its variances and by its weights, and the second derivatives by its
means, where the space has them. ``fisher`` has derivatives and no likelihood, of a model a class ([L04] (24));
``fisher1`` is the same of one model of all samples ([L04] (20)).
"""

from dataclasses import replace

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.gaussian import em
from margo.gaussian.mixtures import log_components, share_components
from margo.gaussian.pool import GaussianPool

SPACES = ("ll", "llr", "fisher", "fisher1", "ll-mean", "ll-var", "ll-mean-var", "llr-mean", "llr-var", "llr-mean-var")
MORE = ("weight", "second")  # parts that may be added to each of them


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


def gradient_to_vector(pool: GaussianPool, start: GaussianPool, d_means, d_variances) -> np.ndarray:
    """Chain rule of :func:`from_vector`."""
    return np.concatenate([(d_means * np.sqrt(start.variances)).ravel(), (d_variances * pool.variances).ravel()])


def moving_scores(x, space: str, start: GaussianPool):
    """``scores(theta)`` for :func:`margo.kernel.descent.train`: scores, and their gradient by the vector of
    :func:`to_vector`."""

    def scores(theta):
        moved = from_vector(theta, start)
        phi, pullback = score(moved, x, space)
        return phi, lambda d_phi: gradient_to_vector(moved, start, *pullback(d_phi))

    return scores


def layout(space: str, classes: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """``(likelihoods [C, L], parts)`` of a space's name, one of ``SPACES`` with some of ``MORE`` behind it, perhaps:
    what multiplies log-likelihoods [N, C] to give its likelihood part [N, L] (none, each or the ratio of two), and
    which derivatives it has, of mean, var, weight and second."""
    base, more = space, []
    while base.rpartition("-")[2] in MORE:
        base, _, last = base.rpartition("-")
        more.insert(0, last)
    if base not in SPACES or len(set(more)) < len(more):
        raise MargoError(f"score-space {space!r}: expected one of {' '.join(SPACES)}, and -weight or -second behind it")
    head, *parts = base.split("-")
    wanted = {"llr": 2, "fisher1": 1}.get(head, classes)
    if classes != wanted:
        raise MargoError(f"score-space {space}: needs {wanted} models, found {classes}")
    if head.startswith("fisher"):
        return np.empty((classes, 0)), ("mean", "var", *more)
    return np.eye(classes) if head == "ll" else np.array([[1.0], [-1.0]]), (*parts, *more)


@njit(cache=True)
def _curvature(x, posteriors, means, variances, d_loglik, on_mean, on_variance, on_share):
    """Gradient by means and variances of ``sum_i d_loglik_ic l_c(x_i) + on_i . grad l(x_i) + on_share_i . gamma(x_i)``.

    ``posteriors`` [N, C, M], parameters [C, M, D], ``d_loglik`` [N, C], ``on_mean``, ``on_variance`` [N, C, M, D],
    ``on_share`` [N, C, M].
    With g_j the derivatives of component j alone, r_j = on_j . g_j + on_share_j and q = sum_j gamma_j r_j, the second
    derivatives of [L04] section 5.3 act on ``on`` as ``gamma_k [ H_k on_k + (r_k - q) g_k ]``: the matrix is
    never formed, and the cost is that of the scores themselves.
    """
    n, classes, mixtures = posteriors.shape
    dims = x.shape[1]
    d_means, d_variances = np.zeros((classes, mixtures, dims)), np.zeros((classes, mixtures, dims))
    r = np.empty(mixtures)
    for i in range(n):
        for c in range(classes):
            q = 0.0
            for j in range(mixtures):
                total = on_share[i, c, j]
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
                    um, uv = on_mean[i, c, j, a], on_variance[i, c, j, a]
                    d_means[c, j, a] += weight * e - gamma * p * (um + e * uv)
                    d_variances[c, j, a] += weight * 0.5 * (e * e - p) + gamma * p * ((0.5 * p - e * e) * uv - e * um)
    return d_means, d_variances


def _second(e, p, gamma):
    """``d^2 l / d mu^2`` of every mean by itself, [N, C, M, D]: gamma (1 - gamma) e^2 - gamma p ([L04] 4.2)."""
    return gamma * (1.0 - gamma) * e**2 - gamma * p


def _second_gradient(e, p, gamma, on):
    """How ``on . second`` moves, ``on`` [N, C, M, D]: with the posteriors, [N, C, M], and otherwise with means and
    variances, [C, M, D] each."""
    by_share = (on * ((1.0 - 2.0 * gamma) * e**2 - p)).sum(3)
    by_e = on * 2.0 * gamma * (1.0 - gamma) * e
    return by_share, -(by_e * p).sum(0), (on * gamma * p**2 - by_e * e * p).sum(0)


def score(pool: GaussianPool, x: np.ndarray, space: str):
    """``(phi [N, P], pullback)`` of samples ``x`` [N, D] in the score-space of the classes' mixtures, all of one size
    ([L04] (18)-(25), (43)).

    ``pullback(d_phi [N, P])`` returns ``sum_i d_phi_i' (d phi_i / d theta)`` as ``(d_means, d_variances)``, each
    [K, D]: the product with the second derivatives of (44).
    """
    classes, mixtures, dims = by_class(pool, pool.means).shape
    likelihoods, parts = layout(space, classes)
    log_lik, posteriors = share_components(log_components(pool, x), pool.offsets)
    shares = posteriors.reshape(len(x), classes, mixtures)
    p, gamma = 1.0 / by_class(pool, pool.variances), shares[..., None]
    e = (x[:, None, None] - by_class(pool, pool.means)) * p if parts else None
    # first derivatives ([L04] (62), (63)); by the weights' logits
    made = {"mean": lambda: gamma * e, "var": lambda: 0.5 * gamma * (e * e - p),
            "weight": lambda: shares - np.exp(by_class(pool, pool.log_weights)),
            "second": lambda: _second(e, p, gamma)}  # fmt: skip
    columns = [made[part]().reshape(len(x), classes, -1) for part in parts]
    stacked = np.concatenate([np.empty((len(x), classes, 0)), *columns], axis=2).reshape(len(x), -1)

    def pullback(d_phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d_loglik, rest = np.split(d_phi, [likelihoods.shape[1]], axis=1)
        ends = np.cumsum([column.shape[2] for column in columns])
        pieces = np.split(rest.reshape(len(x), classes, -1), ends, axis=2)
        on = {part: np.ascontiguousarray(piece) for part, piece in zip(parts, pieces)}
        whole = (len(x), classes, mixtures, dims)
        by_mean, by_variance = (on.get(part, np.zeros(whole)).reshape(whole) for part in ("mean", "var"))
        by_share, direct = on.get("weight", np.zeros(shares.shape)), (0.0, 0.0)
        if "second" in on:
            more, *direct = _second_gradient(e, p, gamma, on["second"].reshape(whole))
            by_share = by_share + more
        arrays = shares, by_class(pool, pool.means), by_class(pool, pool.variances)
        curved = _curvature(x, *arrays, d_loglik @ likelihoods.T, by_mean, by_variance, by_share)
        return tuple((d + more).reshape(pool.means.shape) for d, more in zip(curved, direct))

    return np.concatenate([log_lik @ likelihoods, stacked], axis=1), pullback


def blocks(space: str, sizes, dims: int) -> np.ndarray:
    """Block of every feature for a block-diagonal metric, int [P], of models with ``sizes`` Gaussians each.

    Each likelihood is a block of its own; so are the derivatives of one kind by one Gaussian's parameters.
    """
    likelihoods, parts = layout(space, len(sizes))
    counts = [1] * likelihoods.shape[1] + [1 if part == "weight" else dims
                                           for size in sizes for part in parts for _ in range(size)]  # fmt: skip
    return np.repeat(np.arange(len(counts)), counts)


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
