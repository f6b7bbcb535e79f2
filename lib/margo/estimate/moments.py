"""Mean and variance of all frames: where a flat start begins, and what variance floors are a part of."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Moments:
    """Additive: number of finite frames, their sum [D] and sum of squares [D], float64."""

    frames: int
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, matrices) -> "Moments":
        """Moments of feature matrices [T, D]; frames with a value that is not finite are left out."""
        parts = []
        for x in matrices:
            x = np.asarray(x, np.float64)
            x = x[np.isfinite(x).all(axis=1)]
            parts.append(cls(len(x), x.sum(axis=0), (x * x).sum(axis=0)))
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.frames + other.frames, self.first + other.first, self.second + other.second)

    @property
    def mean(self) -> np.ndarray:
        return self.first / self.frames

    @property
    def variance(self) -> np.ndarray:
        return self.second / self.frames - self.mean**2
