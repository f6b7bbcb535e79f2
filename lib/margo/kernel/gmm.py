"""A bank of Gaussian mixtures with diagonal covariances, one per class, and its maximum-likelihood training."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Bank:
    """One mixture per class, all of the same size: C classes of M components in D dimensions."""

    log_weights: np.ndarray
    """[C, M]"""
    means: np.ndarray
    """[C, M, D]"""
    variances: np.ndarray
    """[C, M, D]"""

    def take(self, classes) -> "Bank":
        """The bank of some of the classes, in the order given."""
        classes = np.asarray(classes)
        return Bank(self.log_weights[classes], self.means[classes], self.variances[classes])


def log_joint(bank: Bank, x: np.ndarray) -> np.ndarray:
    """``log(c_j N(x; mu_j, Sigma_j))`` of every component, [N, C, M]: two matrix products."""
    classes, mixtures, dims = bank.means.shape
    precision = 1.0 / bank.variances.reshape(-1, dims)
    means = bank.means.reshape(-1, dims)
    constant = bank.log_weights.reshape(-1) - 0.5 * (
        dims * LOG_2PI + np.log(bank.variances.reshape(-1, dims)).sum(1) + (means**2 * precision).sum(1)
    )
    log_p = constant + x @ (means * precision).T - 0.5 * (x**2) @ precision.T
    return log_p.reshape(len(x), classes, mixtures)


def log_likelihoods(bank: Bank, x: np.ndarray) -> np.ndarray:
    """``ln p(x | theta_c)`` of every class, [N, C] ([L04] (29))."""
    return logsumexp(log_joint(bank, x), axis=2)


def fit(x, y, n_classes, mixtures, rng, *, tied=False, iterations=200, tolerance=1e-6, floor=1e-4) -> Bank:
    """Maximum-likelihood mixtures of ``x`` [N, D] with classes ``y`` [N] by EM from a random start.

    The components start at the centres of a few Lloyd steps from random samples of the class. ``tied`` keeps one
    diagonal variance for all components of all classes, else each component has its own; either is floored at
    ``floor`` times the variance of the data.
    """
    least = floor * x.var(0)
    bank = _start(x, y, n_classes, mixtures, rng)
    last = -np.inf
    for _ in range(iterations):
        log_p = log_joint(bank, x)[np.arange(len(x)), y]
        total = logsumexp(log_p, axis=1)
        bank = _maximise(x, y, np.exp(log_p - total[:, None]), n_classes, tied, least)
        if total.mean() - last < tolerance:
            break
        last = total.mean()
    return bank


def _start(x, y, n_classes, mixtures, rng) -> Bank:
    """Centres of each class by five Lloyd steps from ``mixtures`` of its samples; the variance of all data."""
    means = np.empty((n_classes, mixtures, x.shape[1]))
    for c in range(n_classes):
        own = x[y == c]
        centres = own[rng.choice(len(own), mixtures, replace=False)]
        for _ in range(5):
            nearest = ((own[:, None] - centres) ** 2).sum(2).argmin(1)
            for j in np.unique(nearest):
                centres[j] = own[nearest == j].mean(0)
        means[c] = centres
    log_weights = np.full((n_classes, mixtures), -np.log(mixtures))
    return Bank(log_weights, means, np.broadcast_to(x.var(0), means.shape).copy())


def _maximise(x, y, posteriors, n_classes, tied, least) -> Bank:
    """The M step: weights, means and variances from component posteriors [N, M] within each sample's class."""
    onehot = np.eye(n_classes)[y]
    responsibilities = onehot[:, :, None] * posteriors[:, None, :]
    occupancy = np.maximum(responsibilities.sum(0), 1e-10)
    flat = responsibilities.reshape(len(x), -1).T
    shape = (*occupancy.shape, x.shape[1])
    means = (flat @ x).reshape(shape) / occupancy[..., None]
    scatter = (flat @ x**2).reshape(shape) - occupancy[..., None] * means**2
    if tied:
        variances = np.broadcast_to(scatter.sum((0, 1)) / len(x), shape).copy()
    else:
        variances = scatter / occupancy[..., None]
    log_weights = np.log(occupancy) - np.log(occupancy.sum(1, keepdims=True))
    return Bank(log_weights, means, np.maximum(variances, least))


def to_vector(bank: Bank, start: Bank) -> np.ndarray:
    """Means and variances as one vector, in the standardised parameters that steps are taken in.

    A mean counts in standard deviations of ``start``, a variance as its logarithm, so that steps in different
    directions compare and no variance can become negative. Weights stay out: [L04] keeps them at their ML estimates.
    """
    return np.concatenate([(bank.means / np.sqrt(start.variances)).ravel(), np.log(bank.variances).ravel()])


def from_vector(vector: np.ndarray, start: Bank) -> Bank:
    """The inverse of :func:`to_vector`."""
    means, log_variances = vector.reshape(2, *start.means.shape)
    return replace(start, means=means * np.sqrt(start.variances), variances=np.exp(log_variances))


def gradient_to_vector(bank: Bank, start: Bank, d_means, d_variances) -> np.ndarray:
    """Chain rule of :func:`from_vector`: gradients by means and variances -> gradient by the vector."""
    return np.concatenate([(d_means * np.sqrt(start.variances)).ravel(), (d_variances * bank.variances).ravel()])
