"""Log-likelihoods of samples under the mixtures of a pool, whatever its covariances; NaN is a missing value.

For few samples and any type, in float64; :mod:`margo.gaussian.likelihood` is for long utterances under diagonal ones.
"""

import numpy as np

from margo.errors import MargoError
from margo.gaussian.pool import GaussianPool


def log_components(pool: GaussianPool, x) -> np.ndarray:
    """``log w_k N(x_n; theta_k)`` of every Gaussian, [N, K]."""
    if x.shape[1] != pool.dimension:
        raise MargoError(f"samples have {x.shape[1]} features, the model was trained on {pool.dimension}")
    return pool.covariances.log_densities(x, pool.means) + pool.log_weights


def log_mixtures(pool: GaussianPool, x) -> np.ndarray:
    """``log p(x_n | s)`` of every mixture, [N, S]."""
    return sum_components(log_components(pool, x), pool.offsets)


def sum_components(log_p, offsets) -> np.ndarray:
    """``log sum exp`` over the Gaussians of each mixture: [N, K] to [N, S]."""
    top = np.maximum.reduceat(log_p, offsets[:-1], axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    spread = np.exp(log_p - np.repeat(safe, np.diff(offsets), axis=1))
    with np.errstate(divide="ignore"):  # a mixture whose Gaussians all underflow has log likelihood -inf
        return safe + np.log(np.add.reduceat(spread, offsets[:-1], axis=1))


def responsibilities(pool: GaussianPool, x, y):
    """``p(k | x, s)`` of the Gaussians of each sample's own mixture ``y[N]``, [N, K], zero elsewhere; and
    ``log p(x | s)`` [N]."""
    posteriors, log_p = np.zeros((len(x), pool.n_gaussians)), np.empty(len(x))
    for s in range(pool.n_states):
        own, part = y == s, slice(pool.offsets[s], pool.offsets[s + 1])
        log_k = pool.covariances.take(part).log_densities(x[own], pool.means[part]) + pool.log_weights[part]
        log_p[own] = np.logaddexp.reduce(log_k, axis=1)
        posteriors[own, part] = np.exp(log_k - log_p[own, None])
    return posteriors, log_p
