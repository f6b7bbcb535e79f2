"""Additive sufficient statistics: what one pass over data leaves behind, whatever the criterion."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.hmm import HmmSet
from margo.model.likelihood import Evaluation, Scorer, centre_of

FRAMES = 2048  # summed in the products' own precision; longer sums continue in float64


@dataclass(eq=False)
class Stats:
    """Sums over frames and Gaussians of posterior-weighted moments, about the fixed point ``centre``.

    occupancy [K], first [K, D] = sum gamma (x - centre), second [K, D] = sum gamma (x - centre)^2, transitions [P]
    (expected counts), log_likelihood, frames and utterances that counted, ``dropped`` as (utterance, reason) pairs, all
    float64. The centre comes from the model, so that all chunks of a pass share it; sums about it keep their digits.
    """

    centre: np.ndarray
    occupancy: np.ndarray
    first: np.ndarray
    second: np.ndarray
    transitions: np.ndarray
    log_likelihood: float = 0.0
    frames: int = 0
    utterances: int = 0
    dropped: tuple[tuple[str, str], ...] = ()

    @classmethod
    def zeros(cls, hmms: HmmSet) -> "Stats":
        shape = hmms.pool.means.shape
        return cls(
            centre_of(hmms.pool),
            np.zeros(shape[0]),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(len(hmms.log_transitions)),
        )

    def __add__(self, other: "Stats") -> "Stats":
        if not np.array_equal(self.centre, other.centre):
            raise ValueError("statistics of different models cannot be added")
        return Stats(
            self.centre,
            self.occupancy + other.occupancy,
            self.first + other.first,
            self.second + other.second,
            self.transitions + other.transitions,
            self.log_likelihood + other.log_likelihood,
            self.frames + other.frames,
            self.utterances + other.utterances,
            self.dropped + other.dropped,
        )

    def means(self) -> np.ndarray:
        """Mean of the data each Gaussian saw, [K, D]; NaN where it saw none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.first / self.occupancy[:, None] + self.centre


def add_gaussians(
    stats: Stats, compiled: Scorer, evaluation: Evaluation, occupancies: np.ndarray, prune: float = 0.0
) -> None:
    """Share state ``occupancies`` [T, S'] out over components and add the moments of the frames to ``stats``.

    A component's posterior is the state's times its share of the state's likelihood; posteriors up to ``prune`` are
    left out (0 keeps all). Negative occupancies are allowed (then give ``prune=0``).
    """
    dimension = compiled.pool.dimension
    factors = np.ascontiguousarray(occupancies.T, evaluation.totals.dtype)
    factors = factors / evaluation.totals
    for first in range(0, len(occupancies), FRAMES):
        place = slice(first, first + FRAMES)
        weights = np.empty((len(compiled.gaussians), len(occupancies[place])), evaluation.shares.dtype)
        _weigh(evaluation.shares[:, place], factors[:, place], compiled.starts, prune, weights)
        moments = weights @ evaluation.extended[place]
        stats.second[compiled.gaussians] += moments[:, :dimension]
        stats.first[compiled.gaussians] += moments[:, dimension : 2 * dimension]
        stats.occupancy[compiled.gaussians] += moments[:, -1]


@njit(cache=True)
def _weigh(shares, factors, starts, prune, weights):
    for state in range(len(starts) - 1):
        for row in range(starts[state], starts[state + 1]):
            for t in range(shares.shape[1]):
                weights[row, t] = shares[row, t] * factors[state, t]
            if prune > 0:
                for t in range(shares.shape[1]):
                    if weights[row, t] <= prune:
                        weights[row, t] = 0
