"""Cepstral mean and variance normalisation from additive statistics: one utterance's, or a speaker's."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CmvnStats:
    """Frame count, sum [D] and sum of squares [D] in float64; statistics of a speaker are the sum of utterances'."""

    frames: int
    total: np.ndarray
    squares: np.ndarray

    def __add__(self, other: "CmvnStats") -> "CmvnStats":
        return CmvnStats(self.frames + other.frames, self.total + other.total, self.squares + other.squares)


def accumulate(x: np.ndarray) -> CmvnStats:
    """Statistics of x [T, D]."""
    x = x.astype(np.float64)
    return CmvnStats(len(x), x.sum(axis=0), np.einsum("td,td->d", x, x))


def normalise(x: np.ndarray, stats: CmvnStats, mean: bool = True, variance: bool = False) -> np.ndarray:
    """(x - mean) / deviation, x [T, D] -> float32 [T, D]; each of the two steps can be left out.

    A column that does not vary (to the precision of its sums) is not scaled, so nothing is divided by zero.
    """
    centre = stats.total / stats.frames
    offset = centre if mean else np.zeros_like(centre)
    scale = np.ones_like(centre)
    if variance:
        spread = stats.squares / stats.frames - centre**2
        varies = spread > 1e-10 * (stats.squares / stats.frames)
        scale[varies] = 1.0 / np.sqrt(spread[varies])
    return ((x - offset) * scale).astype(np.float32)
