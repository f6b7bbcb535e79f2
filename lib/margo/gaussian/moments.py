"""The one additive statistic of Gaussians: weighted moments of what each has seen, about one common point."""

from dataclasses import dataclass

import numpy as np


@dataclass(eq=False)
class Moments:
    """Sums over samples with weights w, about ``centre`` ([D], or [K, D]), whatever criterion the weights come from.

    occupancy [K] = sum w, first [K, D] = sum w (x - centre), second = sum w (x - centre)^2 [K, D], or the outer
    products [K, D, D] of Gaussians that are not diagonal. The centre comes from the model, so that all chunks of a pass
    share it; sums about it keep their digits. A difference of two is the net of what counts for and against.
    """

    centre: np.ndarray
    occupancy: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def __add__(self, other: "Moments") -> "Moments":
        return self._with(other, np.add)

    def __sub__(self, other: "Moments") -> "Moments":
        return self._with(other, np.subtract)

    def _with(self, other, operation):
        if not np.array_equal(self.centre, other.centre):
            raise ValueError("statistics of different models cannot be added")
        names = ("occupancy", "first", "second")
        return Moments(self.centre, *(operation(getattr(self, name), getattr(other, name)) for name in names))

    def about(self, means) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``(n[K], sum w (x - mu), sum w (x - mu)^2)`` of each Gaussian about its own ``means`` [K, D]."""
        y, n = means - self.centre, self.occupancy[:, None]
        if self.second.ndim == 2:
            spread = self.second - 2.0 * y * self.first + n * y**2
        else:
            cross = y[:, :, None] * self.first[:, None, :]
            spread = self.second - cross - cross.transpose(0, 2, 1) + n[:, None] * y[:, :, None] * y[:, None, :]
        return self.occupancy, self.first - n * y, spread

    def scatter(self, counts, shift) -> np.ndarray:
        """The covariances of what was seen ``counts[K]`` times, whose means are ``centre + shift``; variances are at
        least 0."""
        if self.second.ndim == 2:
            return np.maximum(self.second / counts[:, None] - shift**2, 0.0)
        return self.second / counts[:, None, None] - shift[:, :, None] * shift[:, None, :]

