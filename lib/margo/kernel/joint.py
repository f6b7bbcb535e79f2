"""All classes at once: one score-space of every class's mixture, one machine, several EM starts together.

The kernel is that of [L04] with the log-likelihood of every class (and their derivatives) as scores, and the
all-in-one machine that [L04] 7 plans. Its W bounds all classes' errors together, and max-margin training lowers it
as it does for pairs.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.kernel import gmm
from margo.kernel.maxmargin import Trained, train
from margo.kernel.metric import measure
from margo.kernel.multiclass import decode, one_versus_rest, output_codes, pairs, vote
from margo.kernel.options import MarginOptions
from margo.kernel.scorespace import blocks, score
from margo.kernel.svm import solve_all, solve_binary

SCHEMES = ("joint", "pairs", "rest", "codes")
SOLVED = 1e-3
"""Violation to which the all-in-one machine is solved; a thousandth of its margin."""


@dataclass(frozen=True)
class JointSetting:
    """What a joint system is made with; leave-one-speaker-out chooses between several."""

    mixtures: int = 2
    tied: bool = True
    cost: float = 1.0
    space: str = "ll"
    iterations: int = 0
    """Max-margin steps on the mixtures"""


def centre_groups(x: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Take each group's (speaker's) own mean from its samples: no label is used."""
    centred = np.array(x, float)
    for group in np.unique(groups):
        own = groups == group
        centred[own] -= centred[own].mean(0)
    return centred


def train_joint(x, y, bank: gmm.Bank, setting: JointSetting, metric="diagonal", report=lambda line: None) -> Trained:
    """All-in-one kernel and machine from the ML ``bank`` of all classes."""
    classes, mixtures, dims = bank.means.shape

    def scores(theta):
        moved = gmm.from_vector(theta, bank)
        phi, pullback = score(moved, x, setting.space)
        return phi, lambda d_phi: gmm.gradient_to_vector(moved, bank, *pullback(d_phi))

    options = MarginOptions(cost=setting.cost, iterations=setting.iterations, step=0.1)
    measured = partial(measure, kind=metric, blocks=blocks(setting.space, classes, mixtures, dims))
    solve = partial(solve_all, tolerance=SOLVED)
    return train(scores, gmm.to_vector(bank, bank), y, options, measured, solve, report)


def decide(x, y, rest, settings: list[JointSetting], starts: int, seed: int) -> np.ndarray:
    """Decisions [settings, N', C] on ``rest`` [N', D] of systems trained on ``x``, ``y``, averaged over EM starts.

    The settings may differ in all but mixtures and tying: they share the mixtures that EM finds.
    """
    mixtures, tied = {(setting.mixtures, setting.tied) for setting in settings}.pop()
    classes = int(y.max()) + 1
    starts = starts if mixtures > 1 else 1  # one component a class has one solution
    total = np.zeros((len(settings), len(rest), classes))
    for start in range(starts):
        bank = gmm.fit(x, y, classes, mixtures, np.random.default_rng([seed, start]), tied=tied, floor=1e-2)
        for made, setting in zip(total, settings):
            trained = train_joint(x, y, bank, setting)
            made += trained.decide(score(gmm.from_vector(trained.theta, bank), rest, setting.space)[0])
    return total / starts


def decide_held_out(x, y, groups, settings: list[JointSetting], starts: int, seed: int) -> np.ndarray:
    """Decisions [settings, N, C] on each group by systems trained on the other groups."""
    made = np.empty((len(settings), len(x), int(y.max()) + 1))
    for group in np.unique(groups):
        out = groups == group
        made[:, out] = decide(x[~out], y[~out], x[out], settings, starts, seed)
    return made


def choose(decisions: np.ndarray, y: np.ndarray, most: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Which settings to add up, from their decisions [settings, N, C] on left-out groups.

    The settings are ranked by their errors; of the best 1, 2 ... ``most`` together, the number with the fewest errors
    is kept (the smaller of equals). Returns ``(chosen, errors of each setting, errors of the best 1, 2 ...)``.
    """
    errors = (decisions.argmax(2) != y).sum(1)
    ranked = np.argsort(errors, kind="stable")[:most]
    together = (np.cumsum(decisions[ranked], axis=0).argmax(2) != y).sum(1)
    return ranked[: int(together.argmin()) + 1].tolist(), errors, together


def classify(x, y, rest, setting: JointSetting, scheme: str, bits: int, rng: np.random.Generator) -> np.ndarray:
    """Classes [N'] of ``rest`` by one of the ways from machines to many classes, on the same score-space of all.

    ``joint`` the all-in-one machine, ``pairs`` votes, ``rest`` one against the rest, ``codes`` a code of ``bits``.
    """
    classes = int(y.max()) + 1
    bank = gmm.fit(x, y, classes, setting.mixtures, rng, tied=setting.tied, floor=1e-2)
    if scheme == "joint":
        trained = train_joint(x, y, bank, setting)
        return trained.decide(score(gmm.from_vector(trained.theta, bank), rest, setting.space)[0]).argmax(1)
    phi, phi_rest = score(bank, x, setting.space)[0], score(bank, rest, setting.space)[0]
    metric = measure(phi)
    z, z_rest = metric.factor(phi), metric.factor(phi_rest)

    def machine(signs, use):
        solved = solve_binary(z[use], signs[use], setting.cost)
        return z_rest @ solved.weights[:, 0] + solved.bias[0]

    log_lik = gmm.log_likelihoods(bank, rest)
    everyone = np.ones(len(y), bool)
    if scheme == "pairs":
        made = [machine(np.where(y == a, 1, -1), (y == a) | (y == b)) for a, b in pairs(classes)]
        return vote(np.stack(made, axis=1), log_lik)
    if scheme == "rest":
        made = [machine(np.where(y == c, 1, -1), everyone) for c in range(classes)]
        return one_versus_rest(np.stack(made, axis=1), log_lik, values=True)
    code = output_codes(classes, bits, rng)
    made = [machine(code[y, bit], everyone) for bit in range(bits)]
    return decode(np.stack(made, axis=1), code, log_lik)
