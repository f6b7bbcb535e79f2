"""Feature-space MLLR: one affine map of a speaker's frames that makes them most likely (Gales 1998)."""

from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError
from margo.gaussian.pool import GaussianPool


@dataclass(eq=False)
class FmllrStats:
    """beta: frames; linear [D, D + 1]: k_i; quadratic [D, D + 1, D + 1]: G_i of frames with a 1 behind; additive."""

    beta: float
    linear: np.ndarray
    quadratic: np.ndarray

    @classmethod
    def zeros(cls, dimension: int) -> "FmllrStats":
        size = dimension + 1
        return cls(0.0, np.zeros((dimension, size)), np.zeros((dimension, size, size)))

    def __add__(self, other: "FmllrStats") -> "FmllrStats":
        return FmllrStats(self.beta + other.beta, self.linear + other.linear, self.quadratic + other.quadratic)

    def add(self, pool: GaussianPool, x: np.ndarray, gammas: np.ndarray, gaussians: np.ndarray) -> None:
        """Count frames ``x`` [T, D] of which ``gammas`` [T, K'] are shared by the pool's ``gaussians`` int [K']."""
        pool.require("diagonal", "fMLLR")
        precisions = 1 / pool.variances[gaussians]
        extended = np.concatenate([np.asarray(x, np.float64), np.ones((len(x), 1))], axis=1)
        weights, targets = gammas @ precisions, gammas @ (precisions * pool.means[gaussians])  # [T, D]
        self.beta += float(gammas.sum())
        self.linear += targets.T @ extended
        for i in range(weights.shape[1]):
            self.quadratic[i] += (extended * weights[:, i : i + 1]).T @ extended


def auxiliary(stats: FmllrStats, transform: np.ndarray) -> float:
    """``beta log |det A| - 1/2 sum_i (w_i G_i w_i' - 2 w_i k_i')`` of ``transform`` [D, D + 1] = [A, b]."""
    quadratic = np.einsum("id,ide,ie->", transform, stats.quadratic, transform, optimize=True)
    grown = stats.beta * np.linalg.slogdet(transform[:, :-1])[1]
    return float(grown - 0.5 * quadratic + (transform * stats.linear).sum())


def fmllr(stats: FmllrStats, sweeps: int = 20, least: float = 0.0) -> tuple[np.ndarray, list[float]]:
    """``(transform [D, D + 1], auxiliary before and after each sweep)``; of fewer frames than ``least`` the identity.

    A row is set to where the function is largest with the others held: ``w = (alpha p + k) G^-1`` with p the cofactors
    of A (and 0), and alpha the better root of ``alpha^2 p G^-1 p' + alpha p G^-1 k' = beta``.
    """
    dimension = len(stats.linear)
    transform = np.eye(dimension, dimension + 1)
    values = [auxiliary(stats, transform)]
    if stats.beta < max(least, 1e-10):
        return transform, values
    if np.linalg.matrix_rank(stats.quadratic[0]) <= dimension:
        raise MargoError(f"fMLLR: {stats.beta:.0f} frames do not span {dimension} dimensions")
    inverses = np.linalg.inv(stats.quadratic)
    for _ in range(sweeps):
        for i in range(dimension):
            cofactors = np.append(np.linalg.inv(transform[:, :-1])[:, i], 0.0)
            a, b = cofactors @ inverses[i] @ cofactors, cofactors @ inverses[i] @ stats.linear[i]
            root = np.sqrt(b * b + 4 * a * stats.beta)
            alphas = (root - b) / (2 * a), (-root - b) / (2 * a)
            rows = [(alpha * cofactors + stats.linear[i]) @ inverses[i] for alpha in alphas]
            transform[i] = max(rows, key=lambda row: _row(stats, i, row, cofactors))
        values.append(auxiliary(stats, transform))
    return transform, values


def _row(stats: FmllrStats, i: int, row: np.ndarray, cofactors: np.ndarray) -> float:
    """What the function has of row i, up to a constant."""
    return stats.beta * np.log(abs(row @ cofactors)) - 0.5 * row @ stats.quadratic[i] @ row + row @ stats.linear[i]


def apply(transform: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``A x + b`` of frames ``x`` [T, D] by a ``transform`` [d, D] or [d, D + 1], as float32."""
    columns = x.shape[1]
    if transform.shape[1] not in (columns, columns + 1):
        raise MargoError(f"a transform of {transform.shape[1]} columns, expected {columns} or {columns + 1} for "
                         f"features of {columns}")  # fmt: skip
    offset = transform[:, columns] if transform.shape[1] > columns else 0.0
    return (x @ transform[:, :columns].T + offset).astype(np.float32)
