"""Where training starts: the data's own moments, with which :func:`margo.model.hmm.flat_start` makes a model."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Moments:
    """frames, mean [D] and scatter [D] (summed squared deviations) of data; additive."""

    frames: int
    mean: np.ndarray
    scatter: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        return self.scatter / max(self.frames, 1)

    def __add__(self, other: "Moments") -> "Moments":
        frames = self.frames + other.frames
        if frames == 0:
            return self
        gap = other.mean - self.mean
        return Moments(
            frames,
            self.mean + gap * (other.frames / frames),
            self.scatter + other.scatter + gap**2 * (self.frames * other.frames / frames),
        )


def moments(frames: Iterable[np.ndarray], dimension: int) -> Moments:
    """Moments of the utterances x [T, D] in ``frames``; those with a value that is not finite are left out."""
    total = Moments(0, np.zeros(dimension), np.zeros(dimension))
    for x in frames:
        x = np.asarray(x, np.float64)
        if len(x) and np.isfinite(x).all():
            total = total + Moments(len(x), x.mean(axis=0), x.var(axis=0) * len(x))
    return total
