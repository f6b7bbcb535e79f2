"""Log-likelihoods of samples under the mixtures of a pool, whatever its covariances; NaN is a missing value.

For any type and few samples, in float64; :mod:`margo.gaussian.likelihood` is for the frames of many utterances.
"""

import numpy as np

from margo.errors import MargoError
from margo.gaussian.pool import GaussianPool


def log_components(pool: GaussianPool, x) -> np.ndarray:
    """``log w_k N(x_n; theta_k)`` of every Gaussian, [N, K]."""
    if x.shape[1] != pool.dimension:
        raise MargoError(f"samples have {x.shape[1]} features, the model was trained on {pool.dimension}")
    log_p = pool.covariances.log_densities(x, pool.means)
    log_p += pool.log_weights
    return log_p


def log_mixtures(pool: GaussianPool, x) -> np.ndarray:
    """``log p(x_n | s)`` of every mixture, [N, S]."""
    return sum_components(log_components(pool, x), pool.offsets)


def sum_components(log_p, offsets) -> np.ndarray:
    """``log sum exp`` over the Gaussians of each mixture: [N, K] to [N, S]."""
    return share_components(log_p, offsets)[0]


def share_components(log_p, offsets) -> tuple[np.ndarray, np.ndarray]:
    """:func:`sum_components` [N, S], and the part of its mixture's sum that each Gaussian has [N, K]."""
    sizes, starts = np.diff(offsets), offsets[:-1]
    top = np.maximum.reduceat(log_p, starts, axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    spread = np.repeat(safe, sizes, axis=1)
    np.exp(np.subtract(log_p, spread, out=spread), out=spread)
    total = np.add.reduceat(spread, starts, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # a mixture that underflows has log likelihood -inf, no parts
        spread /= np.repeat(total, sizes, axis=1)
        return safe + np.log(total), spread


def responsibilities(pool: GaussianPool, x, y):
    """``p(k | x, s)`` of the Gaussians of each sample's own mixture ``y[N]``, [N, K], zero elsewhere; and
    ``log p(x | s)`` [N]."""
    posteriors, log_p = np.zeros((len(x), pool.n_gaussians)), np.empty(len(x))
    for own, _, part, shares, log_s in by_mixture(pool, x, y):
        posteriors[own, part], log_p[own] = shares, log_s
    return posteriors, log_p


def by_mixture(pool: GaussianPool, x, y):
    """Of each mixture s: the rows of its samples, these, the slice of its Gaussians, their shares ``p(k | x, s)``, and
    ``log p(x | s)``: samples meet no Gaussians but those of their own mixture ``y[N]``."""
    for s in range(pool.n_states):
        own, part = np.flatnonzero(y == s), slice(pool.offsets[s], pool.offsets[s + 1])
        samples = x[own]
        log_k = pool.covariances.take(part).log_densities(samples, pool.means[part]) + pool.log_weights[part]
        log_s, shares = share_components(log_k, np.array([0, log_k.shape[1]]))
        yield own, samples, part, shares, log_s[:, 0]

