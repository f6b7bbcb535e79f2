"""Resilient back-propagation: batch descent that follows the signs of the gradient with a step of its own for each
parameter, so that no learning rate needs tuning.

A step grows while its gradient keeps its sign and shrinks when it turns; a parameter whose gradient has just turned
rests for one iteration.
"""

from dataclasses import dataclass

import numpy as np

GROW, SHRINK = 1.2, 0.5
LEAST = 1e-3  # of the first step


@dataclass(frozen=True, eq=False)
class Rprop:
    """Step sizes and the signs of the last gradient, each of the parameters' shape, and what bounds the steps."""

    steps: np.ndarray
    signs: np.ndarray
    first: float
    most: float


def start(shape, first: float, most: float) -> Rprop:
    return Rprop(np.full(shape, first), np.zeros(shape, np.int8), first, most)


def descend(state: Rprop, gradient: np.ndarray) -> tuple[np.ndarray, Rprop]:
    """``(change, state)``: what to add to the parameters to go down ``gradient``."""
    signs = np.sign(gradient).astype(np.int8)
    turns = signs * state.signs
    steps = np.where(turns > 0, state.steps * GROW, np.where(turns < 0, state.steps * SHRINK, state.steps))
    steps = np.clip(steps, LEAST * state.first, state.most)
    signs = np.where(turns < 0, 0, signs).astype(np.int8)
    return -signs * steps, Rprop(steps, signs, state.first, state.most)
