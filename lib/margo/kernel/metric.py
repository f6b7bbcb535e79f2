"""The metric G of a score-space, the objective W it gives a machine, and W's gradient by the scores ([L04] 4.3, 5.2).

A machine is its coefficients A [N, M]: alpha_i y_i in one column for two classes, one column per class for the
all-in-one machine. Scores are centred on their training mean, which changes nothing for two classes, where the
coefficients sum to zero, and otherwise is the same as centring the coefficients. With s = (Phi - mean)' A, the part of
W that the kernel enters is ``-1/2 tr(s' G^-1 s)``.
"""

from dataclasses import dataclass

import numpy as np

METRICS = ("none", "diagonal", "block", "full")
RIDGE = 1e-8
FLOOR = 1e-12  # a feature counts as constant below this part of its mean square, and its square of the largest variance


@dataclass(frozen=True)
class Metric:
    """G of [L04] (28): covariance of the scores, kept within blocks."""

    mean: np.ndarray  # [P]
    variances: np.ndarray  # [P], the diagonal of G
    whitener: np.ndarray | None = None  # V [P, P] with G^-1 = V V' when G has blocks; None when it is diagonal
    mask: np.ndarray | None = None  # [P, P], where G may be non-zero; None when it is diagonal
    free: bool = True  # whether G follows the scores; False for the unnormalised kernel, G = I
    ridge: float = 0.0  # part of the diagonal that is added to it

    def solve(self, s: np.ndarray) -> np.ndarray:
        """``G^-1 s`` for s [P] or [P, M]."""
        return (s.T / self.variances).T if self.whitener is None else self.whitener @ (self.whitener.T @ s)

    def factor(self, phi: np.ndarray) -> np.ndarray:
        """Z [N, P] with ``Z Z' = (phi - mean) G^-1 (phi - mean)'``: the kernel as an inner product."""
        centred = phi - self.mean
        if self.whitener is not None:
            return centred @ self.whitener
        centred /= np.sqrt(self.variances)
        return centred


def measure(phi: np.ndarray, kind: str = "diagonal", blocks: np.ndarray | None = None, ridge: float = RIDGE) -> Metric:
    """Metric of training scores ``phi`` [N, P]: ``none``, ``diagonal``, ``block`` with a block number a feature, or
    ``full``; the last two with ``ridge`` times the diagonal added, which keeps nearly singular blocks invertible."""
    mean = phi.mean(0)
    if kind == "none":
        return Metric(mean, np.ones(phi.shape[1]), free=False)
    variances = phi.var(0)
    # a constant feature carries nothing: give it unit scale instead of dividing by rounding errors, or by the 1e-80
    # that is left of a Gaussian no sample comes near
    least = FLOOR * np.maximum((phi**2).mean(0), FLOOR * variances.max(initial=0.0))
    variances = np.where(variances > least, variances, 1.0)
    if kind == "diagonal":
        return Metric(mean, variances)
    blocks = np.zeros(phi.shape[1], int) if kind == "full" else blocks
    mask = blocks[:, None] == blocks[None, :]
    centred = phi - mean
    # as correlations: scores of different scales would spoil the factor of a nearly singular block
    deviations = np.sqrt(variances)
    correlation = np.where(mask, (centred / deviations).T @ (centred / deviations) / len(phi), 0.0)
    correlation[np.diag_indices_from(correlation)] = 1.0 + ridge
    whitener = np.linalg.inv(np.linalg.cholesky(correlation)).T / deviations[:, None]
    return Metric(mean, variances, whitener, mask, ridge=ridge)


def score_gradient(phi: np.ndarray, coefficients: np.ndarray, metric: Metric) -> np.ndarray:
    """``dW / dphi`` [N, P] at fixed coefficients, G moving with the scores ([L04] (36), (37), (40)).

    With V = G^-1 Phi' A: the scores' own part is ``-A V'``, the part through G is ``(phi - mean) B / N`` where B is
    ``V V'`` within the blocks of G.
    """
    coefficients = coefficients - coefficients.mean(0)
    v = metric.solve(phi.T @ coefficients)
    gradient = -coefficients @ v.T
    if not metric.free:
        return gradient
    centred = phi - metric.mean
    centred /= len(phi)
    if metric.mask is None:
        centred *= (v**2).sum(1)
        centred += gradient
        return centred
    outer = np.where(metric.mask, v @ v.T, 0.0)
    outer[np.diag_indices_from(outer)] *= 1.0 + metric.ridge
    return gradient + centred @ outer
