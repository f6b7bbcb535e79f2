"""A model moved to the solution of the large-margin program: projection keeps the shift alone, augmentation also the
width, as one more dimension."""

from dataclasses import replace

import numpy as np

from margo.estimate.lme.tokens import WIDER
from margo.estimate.moves import least_variances
from margo.model.hmm import HmmSet

TIGHT = 1e-9  # widths v_k up to this, in units of the ball's r^2 / K, are the solver's rounding


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


def move(hmms: HmmSet, shift: np.ndarray, augmentation: np.ndarray, radius: float) -> HmmSet:
    """``hmms`` with normalised means moved by ``shift`` [K, D] and widened by ``augmentation`` [K]; of a shift [K, 2 D]
    the second half moves log sigma, in units of ``WIDER``, down to the variance floor.

    Where the relaxation is tight this only moves means. Where not, models gain a dimension of variance 1 in which
    frames are zero and mean k is sqrt(v_k), [LJ07] (59)-(61); ``meta["augmented"]`` tells those who load frames. A
    model that has the dimension already keeps one: only the square of its mean matters, so squares add up.
    """
    pool = hmms.pool
    deviations = np.sqrt(pool.variances)
    shift, wider = shift[:, : pool.dimension], shift[:, pool.dimension :]
    if wider.size:
        variances = np.maximum(pool.variances * np.exp(2 * WIDER * wider), least_variances(hmms))
        pool = replace(pool, covariances=variances)
    if augmentation.max(initial=0.0) <= TIGHT * radius:
        return hmms.with_pool(replace(pool, means=projected_means(pool.means, deviations, shift)))
    means = augmented_means(pool.means, deviations, shift, augmentation)
    if hmms.meta.get("augmented"):
        extra = np.hypot(means[:, -2], means[:, -1])
        return hmms.with_pool(replace(pool, means=np.column_stack([means[:, :-2], extra])))
    floor = hmms.variance_floor
    return replace(
        hmms,
        pool=replace(pool, means=means, covariances=np.column_stack([pool.variances, np.ones(len(means))])),
        variance_floor=None if floor is None else np.append(floor, 0.0),
        meta={**hmms.meta, "augmented": True},
    )
