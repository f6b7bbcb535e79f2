"""New means from a solution: projection keeps the shift alone, augmentation also the width as one more dimension."""

import numpy as np


def projected_means(means: np.ndarray, deviations: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """sigma * (u0 + w), [K, D]: the projection method of [LJ07] IV-G. Exact when the augmentation is zero."""
    return means + deviations * shift


def augmented_means(
    means: np.ndarray, deviations: np.ndarray, shift: np.ndarray, augmentation: np.ndarray
) -> np.ndarray:
    """The projected means with sqrt(v_k) as dimension D + 1, [K, D + 1]: the augmentation method, [LJ07] (59)-(61).

    The extra dimension has variance 1, and every feature vector is zero there.
    """
    return np.column_stack([projected_means(means, deviations, shift), np.sqrt(augmentation)])
