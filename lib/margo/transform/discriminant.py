"""Linear discriminant analysis (Fisher 1936; of spliced frames: Haeb-Umbach and Ney 1992)."""

import numpy as np

from margo.errors import MargoError
from margo.transform.class_moments import ClassMoments

LEAST = 1e-10  # eigenvalue of the scatter within classes, relative to the largest, that still counts as one


def lda(moments: ClassMoments, dimension: int) -> np.ndarray:
    """Matrix [dimension, D] whose rows part the classes best, the best first.

    They solve ``between a = lambda within a``; in what they give, the covariance within classes is the identity and
    that between them diagonal.
    """
    total = moments.counts.sum()
    size = moments.sums.shape[1]
    if not 1 <= dimension <= size:
        raise MargoError(f"LDA: {dimension} dimensions of {size}, expected 1 to {size}")
    seen = moments.counts > 0
    within = moments.scatters[seen].sum(axis=0) / total
    means = moments.sums[seen] / moments.counts[seen, None]
    about = means - moments.sums.sum(axis=0) / total
    between = (moments.counts[seen, None] * about).T @ about / total
    values, vectors = np.linalg.eigh(within)
    if values[0] < LEAST * values[-1]:
        raise MargoError(f"LDA: some of the {size} dimensions are the same in all {int(total)} frames, or follow from "
                         "others")  # fmt: skip
    whiten = vectors / np.sqrt(values)
    _, rotation = np.linalg.eigh(whiten.T @ between @ whiten)
    matrix = (whiten @ rotation[:, ::-1][:, :dimension]).T
    return matrix * np.where(matrix[np.arange(dimension), np.abs(matrix).argmax(axis=1)] < 0, -1.0, 1.0)[:, None]
