"""Frames with their neighbours, and the full moments of classes of frames: what LDA and MLLT are made of."""

from dataclasses import dataclass

import numpy as np


def splice(x: np.ndarray, left: int, right: int) -> np.ndarray:
    """Each frame of ``x`` [T, D] with ``left`` frames before it and ``right`` behind, in their order, [T, (left + 1 +
    right) D]; at the ends the first and the last frame are repeated."""
    places = np.clip(np.arange(len(x))[:, None] + np.arange(-left, right + 1), 0, len(x) - 1)
    return x[places].reshape(len(x), -1)


@dataclass(eq=False)
class ClassMoments:
    """counts [C], sums [C, D] and products [C, D, D] (sums of outer products) of the frames of each class; additive."""

    counts: np.ndarray
    sums: np.ndarray
    products: np.ndarray
    dropped: tuple = ()

    @classmethod
    def zeros(cls, classes: int, dimension: int) -> "ClassMoments":
        return cls(np.zeros(classes), np.zeros((classes, dimension)), np.zeros((classes, dimension, dimension)))

    def add(self, x: np.ndarray, labels: np.ndarray) -> None:
        """Count frames ``x`` [T, D] of classes ``labels`` int [T]."""
        order = np.argsort(labels, kind="stable")
        x, labels = np.asarray(x, np.float64)[order], labels[order]
        for part in np.split(np.arange(len(labels)), np.flatnonzero(np.diff(labels)) + 1) if len(labels) else ():
            own, label = x[part], labels[part[0]]
            self.counts[label] += len(own)
            self.sums[label] += own.sum(axis=0)
            self.products[label] += own.T @ own

    def __add__(self, other: "ClassMoments") -> "ClassMoments":
        return ClassMoments(self.counts + other.counts, self.sums + other.sums, self.products + other.products,
                            self.dropped + other.dropped)  # fmt: skip

    @property
    def scatters(self) -> np.ndarray:
        """Summed outer products about each class's own mean, [C, D, D]."""
        counts = np.maximum(self.counts, 1e-300)[:, None, None]
        return self.products - self.sums[:, :, None] * self.sums[:, None, :] / counts

    def projected(self, matrix: np.ndarray) -> "ClassMoments":
        """The moments of ``matrix @ x``, matrix [d, D]."""
        return ClassMoments(self.counts, self.sums @ matrix.T, matrix @ self.products @ matrix.T, self.dropped)
