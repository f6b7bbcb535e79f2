"""Principal components, fitted on training data only; plain or whitened."""

from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError


@dataclass(frozen=True)
class Projection:
    """``(x - mean) @ matrix``; a matrix [D] is a diagonal one, which lets missing values stay missing."""

    mean: np.ndarray  # [D]
    matrix: np.ndarray  # [D, P] or [D]

    def __call__(self, x) -> np.ndarray:
        return (x - self.mean) * self.matrix if self.matrix.ndim == 1 else (x - self.mean) @ self.matrix


def principal(x, components: int, whiten: bool = False) -> Projection:
    """The ``components`` directions of largest variance; whitened ones have unit variance on ``x``.

    Plain ones are scaled together, so that the mean squared length of a sample is ``components``: constants of the
    trainers then mean the same for any data.
    """
    mean = x.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(x - mean, rowvar=False, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int((values > 1e-10 * values[0]).sum()) if values[0] > 0 else 0
    if components > rank:
        raise MargoError(f"{components} principal components asked for, the data have {rank} with any variance")
    kept, matrix = values[:components], vectors[:, :components]
    # The sign of an eigenvector is arbitrary: make its largest entry positive, so that every machine gives the same.
    matrix = matrix * np.sign(matrix[np.abs(matrix).argmax(axis=0), np.arange(components)])
    return Projection(mean, matrix / (np.sqrt(kept) if whiten else np.sqrt(kept.mean())))


def standard(x) -> Projection:
    """Every feature to mean 0 and variance 1, missing values left out; a constant feature becomes 0."""
    deviation = np.nanstd(x, axis=0)
    return Projection(np.nanmean(x, axis=0), np.where(deviation > 0, 1.0 / np.where(deviation > 0, deviation, 1), 0.0))
