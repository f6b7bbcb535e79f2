"""The one linear system of both interior-point methods: N + 1 unknowns and one equality."""

import numpy as np


class Bordered:
    """Solves [H e; e' 0] [y; rho] = [f; t], H positive definite [N + 1, N + 1], e one on the N pairs, zero on nu.

    H spans many orders of magnitude near the optimum: it is scaled to a unit diagonal, factored by Cholesky's method
    with as little added to the diagonal as makes that succeed, and every answer is refined against H itself.
    """

    def __init__(self, matrix: np.ndarray):
        from scipy.linalg.lapack import dpotrf

        self.scale = 1 / np.sqrt(matrix.diagonal())
        matrix *= self.scale[:, None]
        matrix *= self.scale
        self.matrix = matrix
        added = 0.0
        while True:
            lifted = matrix.copy()
            lifted.flat[:: len(matrix) + 1] += added
            self.factor, info = dpotrf(lifted, lower=1, overwrite_a=1)
            if info == 0:
                break
            added = max(10 * added, 1e-14)
            if added > 1e-2:
                raise np.linalg.LinAlgError("the Newton matrix is not positive definite")
        self.ones = np.r_[np.ones(len(matrix) - 1), 0.0]
        self.along = self._solve(self.ones)
        self.reach = self.ones @ self.along

    def _solve(self, right: np.ndarray) -> np.ndarray:
        from scipy.linalg.lapack import dpotrs

        right = right * self.scale
        answer = dpotrs(self.factor, right, lower=1)[0]
        for _ in range(2):
            answer += dpotrs(self.factor, right - self.matrix @ answer, lower=1)[0]
        return answer * self.scale

    def __call__(self, right: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        free = self._solve(right)
        rho = (self.ones @ free - total) / self.reach
        return free - rho * self.along, rho


def expand(change: np.ndarray, soft: float | None) -> np.ndarray:
    """(dlambda, dnu) [N + 1] as a change of (lambda, nu), or of (lambda, C - lambda, nu) when soft."""
    return change if soft is None else np.concatenate([change[:-1], -change[:-1], change[-1:]])


def fold(flat: np.ndarray, n: int, sign: int) -> np.ndarray:
    """The parts for lambda and nu [N + 1], those for C - lambda added to lambda's with ``sign``."""
    out = np.concatenate([flat[:n], flat[-1:]])
    if len(flat) > n + 1:
        out[:n] += sign * flat[n : 2 * n]
    return out


def room_for(x: np.ndarray, dx: np.ndarray) -> float:
    """The longest step along dx that keeps x non-negative."""
    falling = dx < 0
    return float((-x[falling] / dx[falling]).min()) if falling.any() else np.inf
