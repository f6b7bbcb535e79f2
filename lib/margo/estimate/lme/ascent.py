"""LME-GD, the baseline: gradient ascent on a soft minimum of the margins, inside the same ball.

    F(w) = -1/beta log( 1/N sum_m exp(-beta margin_m(w)) ),   |w|^2 <= r^2

with the margins of :mod:`margo.estimate.lme.problem` and no widening (v = 0). F lies under the mean of the margins and
above their minimum, and tends to the latter as beta grows. Steps that do not raise F are halved.
"""

import numpy as np
from numba import njit

from margo.estimate.lme.problem import Problem

STEPS = 100


def ascend(problem: Problem, beta: float, steps: int = STEPS) -> tuple[np.ndarray, list[float]]:
    """``(shift [K, D], values of F)`` after ``steps`` accepted or halved steps; F never falls from one to the next."""
    shift = np.zeros((problem.n_gaussians, problem.gradients.shape[1]))
    value, gradient = soft_minimum(problem, shift, beta)
    values, length = [value], 0.5 * np.sqrt(problem.radius2)
    for _ in range(steps):
        norm = np.sqrt((gradient**2).sum())
        if norm == 0:
            break
        trial = into_ball(shift + (length / norm) * gradient, problem.radius2)
        trial_value, trial_gradient = soft_minimum(problem, trial, beta)
        if trial_value > value:
            shift, value, gradient = trial, trial_value, trial_gradient
            values.append(value)
            length *= 1.2
        else:
            length *= 0.5
    return shift, values


def soft_minimum(problem: Problem, shift: np.ndarray, beta: float) -> tuple[float, np.ndarray]:
    """F and its gradient [K, D] at ``shift`` [K, D]."""
    margins = problem.margins.copy()
    for block in problem.blocks():
        _add_margins(*block, shift, margins)
    gradient = np.zeros_like(shift)
    weights = np.exp(-beta * (margins - margins.min()))
    weights /= weights.sum()
    for block in problem.blocks():
        _add_gradient(*block, shift, weights, gradient)
    return soft_least(margins, beta), gradient


def soft_least(margins: np.ndarray, beta: float) -> float:
    """F of given margins [N]."""
    least = margins.min()
    return float(least - np.log(np.exp(-beta * (margins - least)).mean()) / beta)


def into_ball(shift: np.ndarray, radius2: float) -> np.ndarray:
    """The point of the ball |w|^2 <= r^2 nearest to ``shift``."""
    size = (shift**2).sum()
    return shift if size <= radius2 else shift * np.sqrt(radius2 / size)


@njit(cache=True, fastmath={"reassoc", "contract"})
def _add_margins(pair, gaussian, counts, gradients, shift, margins):
    for entry in range(len(pair)):
        k = gaussian[entry]
        inner = square = 0.0
        for d in range(shift.shape[1]):
            inner += gradients[entry, d] * shift[k, d]
            square += shift[k, d] * shift[k, d]
        margins[pair[entry]] += inner - 0.5 * counts[entry] * square


@njit(cache=True, fastmath={"reassoc", "contract"})
def _add_gradient(pair, gaussian, counts, gradients, shift, weights, out):
    for entry in range(len(pair)):
        k, weight = gaussian[entry], weights[pair[entry]]
        for d in range(shift.shape[1]):
            out[k, d] += weight * (gradients[entry, d] - counts[entry] * shift[k, d])
