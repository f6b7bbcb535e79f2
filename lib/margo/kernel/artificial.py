"""The artificial task of [L04] 6.1: two classes in two dimensions, each a mixture of three diagonal Gaussians."""

import numpy as np

from margo.gaussian.mixtures import log_mixtures
from margo.gaussian.pool import GaussianPool

TRUTH = GaussianPool(
    [[-0.72, 2.07], [1.10, -1.73], [-3.17, -3.03], [4.42, 4.51], [0.79, -2.25], [4.82, 2.26]],
    np.square([[0.98, 3.34], [0.47, 1.17], [0.43, 0.92], [0.59, 1.73], [0.42, 1.10], [0.97, 0.63]]),
    np.log([0.56, 0.16, 0.28, 0.38, 0.46, 0.16]),
    [0, 3, 6],
)
"""[L04] does not print its mixtures; these have its Bayes error and come near its ML errors."""


def sample(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """``(x [count, 2], y [count])``, half of each class."""
    x, y = [], np.repeat([0, 1], count // 2)
    for one in (TRUTH.take([0]), TRUTH.take([1])):
        part = rng.choice(3, count // 2, p=np.exp(one.log_weights))
        x.append(one.means[part] + np.sqrt(one.variances[part]) * rng.normal(size=(count // 2, 2)))
    return np.concatenate(x), y


def bayes(x: np.ndarray) -> np.ndarray:
    """Classes by the true densities."""
    return log_mixtures(TRUTH, x).argmax(1)
