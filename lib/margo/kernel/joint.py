"""All classes at once: one score-space of every class's mixture, one machine.

The kernel is that of [L04] with the log-likelihood of every class (and their derivatives) as scores, and the
all-in-one machine that [L04] 7 plans. Its W bounds all classes' errors together, and max-margin training lowers it
as it does for pairs.
"""

from functools import partial

import numpy as np

from margo.kernel import gmm
from margo.kernel.maxmargin import Trained, train
from margo.kernel.metric import measure
from margo.kernel.options import MarginOptions
from margo.kernel.scorespace import blocks, score
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


def train_joint(x, y, bank: gmm.Bank, space: str, options: MarginOptions, metric="diagonal") -> Trained:
    """All-in-one kernel and machine from the ML ``bank`` of all classes."""
    classes, mixtures, dims = bank.means.shape

    def scores(theta):
        moved = gmm.from_vector(theta, bank)
        phi, pullback = score(moved, x, space)
        return phi, lambda d_phi: gmm.gradient_to_vector(moved, bank, *pullback(d_phi))

    measured = partial(measure, kind=metric, blocks=blocks(space, classes, mixtures, dims))
    solve = partial(solve_all, tolerance=SOLVED)
    return train(scores, gmm.to_vector(bank, bank), y, options, measured, solve)
