"""Systems of generative kernels for many classes, from mixtures to decisions, and the choice between them.

A system is mixtures of every class, a score-space of them, a kernel over the scores, machines, and a way from machines
to classes. Several EM starts make one system: their machines' decisions are averaged. Leaving out one group (speaker)
at a time compares systems without a test set, and tells how many of the best should vote together.
"""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np

from margo.errors import MargoError
from margo.gaussian.mixtures import log_mixtures
from margo.gaussian.pool import GaussianPool
from margo.kernel.descent import DescentOptions
from margo.kernel.joint import train_joint
from margo.kernel.metric import measure
from margo.kernel.multiclass import decode, one_versus_rest, output_codes, pairs, vote
from margo.kernel.pairs import train_pair
from margo.kernel.scorespace import SPACES, fit_mixtures, from_vector, score
from margo.kernel.svm import solve_all, solve_binary

SCHEMES = ("pairs", "rest", "codes", "joint")
ROUGH = {"tolerance": 1e-2, "max_epochs": 300}
"""How well the all-in-one machine is solved where its mixtures stay: a hundredth of its margin."""
SMALL = 1e-5
"""Part of a kernel's largest eigenvalue below which a direction is left out."""


@dataclass(frozen=True)
class Setting:
    """What a system is made with."""

    mixtures: int = 2
    tied: bool = True
    floor: float = 1e-2
    """Least variance, a part of the variance of the data"""
    space: str = "ll"
    """``llr`` and its derivatives are spaces of each pair's own two mixtures, the others of all classes' mixtures"""
    scheme: str = "joint"
    """Votes of pairs, one against the rest, output codes, or the all-in-one machine"""
    width: float = 0.0
    """Of a Gaussian kernel, in root mean square distances between scores; 0 is the inner product of [L04] (26)"""
    cost: float = 1.0
    iterations: int = 0
    """Max-margin steps on the mixtures"""


def is_sound(setting: Setting) -> bool:
    """Whether the parts go together: ratios belong to pairs, and training is defined for the inner product, for pairs
    in their own spaces and for the all-in-one machine."""
    own = setting.space.startswith("llr")
    if own and setting.scheme != "pairs":
        return False
    return not setting.iterations or (setting.width == 0 and (own or setting.scheme == "joint"))


def grid(mixtures, variances, floors, spaces, schemes, widths, costs, iterations) -> list[Setting]:
    """Every sound combination of the values given that is a system of its own and can be afforded.

    Floors matter to variances that are not tied, so tied ones have the first alone. A Gaussian kernel is tried where
    the scores are the likelihoods of all classes: one ratio has nothing to bend, and derivatives bend already. Machines
    of one question to all samples (rest, codes) are too slow in the many dimensions of derivatives. Trained kernels
    have the cost 1 and the 1 or 2 Gaussians of [L04] 6.2, and no derivatives of all classes: they take longest.
    """
    product = itertools.product(mixtures, variances, floors, spaces, schemes, widths, costs, iterations)
    made = [Setting(m, v == "tied", floor, *rest) for m, v, floor, *rest in product]
    return [s for s in made if is_sound(s) and (s.floor == floors[0] or not s.tied)
            and (s.space == "ll" or (s.width == 0 and s.scheme in ("pairs", "joint")))
            and (s.iterations == 0 or (s.cost == 1 and s.mixtures <= 2 and not s.space.startswith("ll-")))]  # fmt: skip


def simplicity(setting: Setting) -> tuple:
    """Sorts the simpler of two systems first: fewer parameters, then fewer machines, then the smoother."""
    return (setting.mixtures, not setting.tied, SPACES.index(setting.space), setting.iterations, setting.width > 0,
            SCHEMES.index(setting.scheme), setting.cost, -setting.width, -setting.floor)  # fmt: skip


def pair_scores(phi: np.ndarray, first: int, second: int, classes: int) -> np.ndarray:
    """Scores of two classes' own ``llr`` space, from those of all classes' ``ll`` space ``phi`` [N, P]."""
    each = phi.shape[1] // classes - 1
    derivatives = phi[:, classes:].reshape(len(phi), classes, each)
    ratio = phi[:, [first]] - phi[:, [second]]
    return np.hstack([ratio, derivatives[:, first], derivatives[:, second]])


def kernel_features(phi: np.ndarray, n: int, width: float) -> np.ndarray:
    """Features whose inner products are the kernel of normalised scores ``phi`` [N, P]; the first ``n`` rows train.

    The inner product itself with ``width`` 0, else ``exp(-|z - z'|^2 / (2 P width^2))``, of which the eigenvectors of
    the training rows' matrix are the features: at most n of them.
    """
    z = measure(phi[:n]).factor(phi)
    if width:
        scale = 1.0 / (2 * z.shape[1] * width**2)
        squares = (z**2).sum(1)
        kernel = np.exp(-scale * np.maximum(squares[:, None] + squares[:n] - 2 * z @ z[:n].T, 0.0))
    elif z.shape[1] > n:
        kernel = z @ z[:n].T
    else:
        return z
    values, vectors = np.linalg.eigh(kernel[:n])
    kept = values > SMALL * values[-1]
    return kernel @ (vectors[:, kept] / np.sqrt(values[kept]))


def steps(setting: Setting) -> DescentOptions:
    return DescentOptions(cost=setting.cost, iterations=setting.iterations, step=0.1)


def decide_start(x, y, rest, pool: GaussianPool, settings: list[Setting], code: np.ndarray | None) -> list[np.ndarray]:
    """Decisions [N', machines] on ``rest`` of each setting's machines, from one pool trained on ``x``, ``y``."""
    classes, n = pool.n_states, len(x)
    both = np.concatenate([x, rest])
    listed = pairs(classes)

    @cache
    def scores(space):
        return score(pool, both, space)[0]

    @cache
    def features(space, width, pair=None):
        if pair is None:
            return kernel_features(scores(space), n, width)
        used = np.concatenate([(y == pair[0]) | (y == pair[1]), np.ones(len(rest), bool)])
        phi = pair_scores(scores(space.replace("llr", "ll")), *pair, classes)
        return kernel_features(phi[used], int(used[:n].sum()), width)

    def binary(made, signs, cost):
        machine = solve_binary(made[: len(signs)], signs, cost)
        return made[-len(rest) :] @ machine.weights[:, 0] + machine.bias[0]

    def of_pair(setting, pair):
        own = (y == pair[0]) | (y == pair[1])
        signs = np.where(y[own] == pair[0], 1, -1)
        if setting.iterations:
            start = pool.take(pair)
            trained = train_pair(x[own], signs, start, setting.space, "diagonal", steps(setting))
            return trained.decide(score(from_vector(trained.theta, start), rest, setting.space)[0])[:, 0]
        if setting.space.startswith("llr"):
            return binary(features(setting.space, setting.width, pair), signs, setting.cost)
        made = features(setting.space, setting.width)
        return binary(np.concatenate([made[:n][own], made[n:]]), signs, setting.cost)

    def of_all(setting):
        if setting.iterations:
            trained = train_joint(x, y, pool, setting.space, steps(setting))
            return trained.decide(score(from_vector(trained.theta, pool), rest, setting.space)[0])
        made = features(setting.space, setting.width)
        machine = solve_all(made[:n], y, setting.cost, **ROUGH)
        return made[n:] @ machine.weights + machine.bias

    def decisions(setting):
        if setting.scheme == "joint":
            return of_all(setting)
        if setting.scheme == "pairs":
            columns = [of_pair(setting, pair) for pair in listed]
        else:
            questions = np.where(np.eye(classes, dtype=bool), 1, -1) if setting.scheme == "rest" else code
            made = features(setting.space, setting.width)
            columns = [binary(made, question[y], setting.cost) for question in questions.T]
        return np.stack(columns, axis=1)

    return [decisions(setting) for setting in settings]


def classify(x, y, rest, settings: list[Setting], starts: int, seed, bits: int = 31) -> np.ndarray:
    """Classes [settings, N'] of ``rest`` [N', D] by systems trained on ``x``, ``y``, averaged over EM starts.

    The settings share the mixtures that EM finds: they may differ in all but mixtures, tying and floor. Start s of
    ``seed`` (numbers) is the same whatever the settings and the number of starts; output codes have ``bits``.
    """
    mixtures, tied, floor = {(setting.mixtures, setting.tied, setting.floor) for setting in settings}.pop()
    unsound = [setting for setting in settings if not is_sound(setting)]
    if unsound:
        raise MargoError(f"no such system: {unsound[0]}")
    classes = int(y.max()) + 1
    coded = any(setting.scheme == "codes" for setting in settings)
    code = output_codes(classes, bits, np.random.default_rng(seed)) if coded else None
    log_lik, total = 0.0, [0.0] * len(settings)
    for start in range(starts if mixtures > 1 else 1):  # one component a class has one solution
        rng = np.random.default_rng([*np.atleast_1d(seed), start])
        pool = fit_mixtures(x, y, mixtures, rng, tied, floor)
        log_lik = log_lik + log_mixtures(pool, rest)
        decisions = decide_start(x, y, rest, pool, settings, code)
        total = [before + now for before, now in zip(total, decisions)]
    return np.stack([settle(setting.scheme, sums, log_lik, code) for setting, sums in zip(settings, total)])


def settle(scheme: str, decisions: np.ndarray, log_lik: np.ndarray, code: np.ndarray | None) -> np.ndarray:
    """Classes [N] from decisions [N, machines]; ties go to the likelihoods [N, C]."""
    if scheme == "pairs":
        return vote(decisions, log_lik)
    if scheme == "codes":
        return decode(decisions, code, log_lik)
    return one_versus_rest(decisions, log_lik, values=True)


def rank(settings: list[Setting], errors: np.ndarray) -> list[int]:
    """Indices of the settings, the fewest errors first, the simpler of equals."""
    return sorted(range(len(settings)), key=lambda index: (errors[index], simplicity(settings[index])))


def plurality(made: np.ndarray, classes: int) -> np.ndarray:
    """The class [N] that most of ``made`` [systems, N] name; of equals the one that the first of them names."""
    votes = np.stack([(made == c).sum(0) for c in range(classes)], axis=1)
    named = np.take_along_axis(votes, made.T, axis=1)  # [N, systems]: votes of each system's class
    return made[named.argmax(1), np.arange(made.shape[1])]


def choose(settings: list[Setting], made: np.ndarray, y, groups, sizes) -> tuple[list[int], dict[int, int]]:
    """Which systems to let vote, from their classes ``made`` [settings, N] of samples in groups left out.

    The systems are ranked by their errors, and the best 1, 2 ... of ``sizes`` may vote. Systems that lead a ranking owe
    part of the lead to chance, so the size is chosen by leaving out each group from the ranking too: systems ranked on
    the others vote on it. Fewest errors, the smaller of equals. Returns ``(chosen, {size: errors})``.
    """
    wrong, classes = made != y, int(y.max()) + 1
    errors = dict.fromkeys(sorted({min(size, len(settings)) for size in sizes}), 0)
    for group in np.unique(groups):
        out = groups == group
        ranked = rank(settings, wrong[:, ~out].sum(1))
        for size in errors:
            errors[size] += int((plurality(made[np.ix_(ranked[:size], out)], classes) != y[out]).sum())
    best = min(errors, key=errors.get)
    return rank(settings, wrong.sum(1))[:best], errors


def families(settings: list[Setting]) -> list[list[Setting]]:
    """The settings in groups that share their mixtures, for :func:`classify`."""

    def mixture(setting):
        return setting.mixtures, setting.tied, setting.floor

    return [list(group) for _, group in itertools.groupby(sorted(settings, key=mixture), mixture)]
