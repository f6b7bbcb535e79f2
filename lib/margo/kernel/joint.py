"""All classes at once: one score-space of every class's mixture, one machine.

The kernel is that of [L04] with the log-likelihood of every class (and their derivatives) as scores, and the
all-in-one machine that [L04] 7 plans. Its W bounds all classes' errors together, and max-margin training lowers it
as it does for pairs.
"""

from functools import partial

import numpy as np

from margo.gaussian.pool import GaussianPool
from margo.kernel.descent import DescentOptions, Trained, train
from margo.kernel.metric import measure
from margo.kernel.scorespace import blocks, moving_scores, to_vector
from margo.kernel.svm import solve_all

SOLVED = 1e-3
"""Violation to which the all-in-one machine is solved; a thousandth of its margin."""


def centre_groups(x: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Take each group's (speaker's) own mean from its samples: no label is used."""
    centred = np.array(x, float)
    for group in np.unique(groups):
        own = groups == group
        centred[own] -= centred[own].mean(0)
    return centred


def train_joint(x, y, pool: GaussianPool, space: str, options: DescentOptions, metric="diagonal") -> Trained:
    """All-in-one kernel and machine from the ML mixtures ``pool`` of all classes."""
    blocked = blocks(space, pool.n_states, pool.n_gaussians // pool.n_states, pool.dimension)
    measured = partial(measure, kind=metric, blocks=blocked)
    solve = partial(solve_all, tolerance=SOLVED)
    return train(moving_scores(x, space, pool), to_vector(pool, pool), y, options, measured, solve)
