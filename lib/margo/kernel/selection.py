"""Systems of generative kernels for many classes, from mixtures to decisions, and the choice between them.

A system is mixtures of every class, a score-space of them, a kernel over the scores, machines, and a way from machines
to classes. Several EM starts make one system: their machines' decisions are averaged. Leaving out one group (speaker)
at a time compares systems without a test set, and tells how many of the best should vote together.
"""

import itertools
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter

import numpy as np

from margo.errors import MargoError
from margo.gaussian.mixtures import log_mixtures
from margo.gaussian.pool import GaussianPool
from margo.kernel.descent import DescentOptions
from margo.kernel.metric import measure
from margo.kernel.multiclass import decode, output_codes, pairs, vote
from margo.kernel.pairs import train_kernel
from margo.kernel.scorespace import SPACES, fit_mixtures, from_vector, score
from margo.kernel.svm import against, from_pairs, solve_all, solve_binary

# votes of pairs, one against the rest, output codes, all-in-one machines with one slack a sample, or one a rival
SCHEMES = ("pairs", "rest", "codes", "joint", "each")
WHOLE = ("joint", "each")
ROUGH = {"tolerance": 1e-2, "max_epochs": 300}  # of an all-in-one machine whose mixtures stay: 1/100 of its margin
SMALL = 1e-5  # part of a kernel's largest eigenvalue below which a direction is left out


@dataclass(frozen=True)
class Setting:
    """What a system consists of.

    The spaces ``llr`` and its derivatives are of each pair's own two mixtures, the others of all classes' mixtures.
    """

    mixtures: int = 2
    tied: bool = True
    floor: float = 1e-2  # least variance, a part of the variance of the data
    space: str = "ll"
    scheme: str = "joint"
    width: float = 0.0  # of a Gaussian kernel, in root mean square distances between scores; 0: [L04] (26)
    cost: float = 1.0
    iterations: int = 0  # max-margin steps on the mixtures

    @property
    def mixture(self) -> tuple[int, bool, float]:
        """What the mixtures that EM finds depend on."""
        return self.mixtures, self.tied, self.floor


def is_sound(setting: Setting) -> bool:
    """Whether the parts go together: ratios belong to pairs, and training is defined for the inner product, for pairs
    in their own spaces and for the all-in-one machine."""
    own = setting.space.startswith("llr")
    if own and setting.scheme != "pairs":
        return False
    return not setting.iterations or (setting.width == 0 and (own or setting.scheme in WHOLE))


def grid(mixtures, variances, floors, spaces, schemes, widths, costs, iterations) -> list[Setting]:
    """Every sound combination of the values given that is a system of its own and can be afforded.

    Floors matter to variances that are not tied, so tied ones have the first alone. A Gaussian kernel is tried where
    the scores are the likelihoods of all classes: one ratio has nothing to bend, and derivatives bend already. Machines
    of one question to all samples (rest, codes) are too slow in the many dimensions of derivatives. Trained kernels
    have the cost 1 and the 1 or 2 Gaussians of [L04] 6.2, and no derivatives of all classes: they take longest.
    """
    product = itertools.product(mixtures, variances, floors, spaces, schemes, widths, costs, iterations)
    candidates = [Setting(m, v == "tied", floor, *rest) for m, v, floor, *rest in product]
    return [s for s in candidates if is_sound(s) and (s.floor == floors[0] or not s.tied)
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


def centre_groups(x: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Take each group's (speaker's) own mean from its samples: no label is used."""
    centred = np.array(x, float)
    for group in np.unique(groups):
        own = groups == group
        centred[own] -= centred[own].mean(0)
    return centred


def decide_binary(rows: np.ndarray, signs: np.ndarray, cost: float, kernel=None) -> np.ndarray:
    """Decisions [N - n] of the rows behind the n first, which have ``signs`` and train the machine."""
    machine = solve_binary(rows[: len(signs)], signs, cost, kernel=kernel)
    return rows[len(signs) :] @ machine.weights[:, 0] + machine.bias[0]


def questioner(rows: np.ndarray, y: np.ndarray, cost: float):
    """``ask(questions [C, B]) -> decisions [N - n, B]`` by machines of all samples, a column a question: which classes
    are +1, which -1. A machine is trained once however often it is asked for: codes of few classes share many."""
    n = len(y)
    kernel = rows[:n] @ rows[:n].T

    @cache
    def decisions(question):
        return decide_binary(rows, np.array(question)[y], cost, kernel)

    def ask(questions):
        # a question and its complement are one machine, and one that begins with -1 is it
        return np.stack([-question[0] * decisions(tuple(-question[0] * question)) for question in questions.T], axis=1)

    return ask


def decide_whole(rows: np.ndarray, y: np.ndarray, scheme: str, cost: float, warm: bool = False, **rough):
    """``(decisions [N - n, C], machine)`` of an all-in-one machine, as :func:`decide_binary`; ``warm`` starts it from
    the machines of all pairs, as Hill does."""
    n, start = len(y), None
    if warm:
        machines = {}
        for a, b in pairs(int(y.max()) + 1):
            own = np.flatnonzero((y == a) | (y == b))
            machines[a, b] = solve_binary(rows[own], np.where(y[own] == a, 1, -1), cost).coefficients
        start = against(from_pairs(machines, y, int(y.max()) + 1), y)
    machine = solve_all(rows[:n], y, cost, start, kind=scheme, **rough)
    return rows[n:] @ machine.weights + machine.bias, machine


def decide_rows(rows: np.ndarray, y: np.ndarray, scheme: str, cost: float, code: np.ndarray | None) -> np.ndarray:
    """Decisions [N - n, machines] by a scheme whose machines all see the same features ``rows`` [N, Q], of which the
    first n, with classes ``y``, train."""
    n, classes = len(y), int(y.max()) + 1
    if scheme in WHOLE:
        return decide_whole(rows, y, scheme, cost, **ROUGH)[0]
    if scheme == "pairs":
        columns = []
        for a, b in pairs(classes):
            own = np.flatnonzero((y == a) | (y == b))
            some = np.concatenate([rows[own], rows[n:]])
            columns.append(decide_binary(some, np.where(y[own] == a, 1, -1), cost))
    else:
        return questioner(rows, y, cost)(2 * np.eye(classes, dtype=int) - 1 if scheme == "rest" else code)
    return np.stack(columns, axis=1)


def decide_start(x, y, rest, pool: GaussianPool, settings: list[Setting], code: np.ndarray | None) -> list[np.ndarray]:
    """Decisions [N', machines] on ``rest`` of each setting's machines, from one pool trained on ``x``, ``y``."""
    classes, n = pool.n_states, len(x)
    both = np.concatenate([x, rest])

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

    def trained(setting, rows, labels, start, solve):
        options = DescentOptions(cost=setting.cost, iterations=setting.iterations, length=0.1)
        made = train_kernel(rows, labels, start, setting.space, "diagonal", options, solve)
        return made.decide(score(from_vector(made.theta, start), rest, setting.space)[0])

    def of_pair(setting, pair):
        own = (y == pair[0]) | (y == pair[1])
        signs = np.where(y[own] == pair[0], 1, -1)
        if setting.iterations:
            return trained(setting, x[own], signs, pool.take(pair), solve_binary)[:, 0]
        return decide_binary(features(setting.space, setting.width, pair), signs, setting.cost)

    def decisions(setting):
        if setting.space.startswith("llr"):
            return np.stack([of_pair(setting, pair) for pair in pairs(classes)], axis=1)
        if setting.iterations:
            return trained(setting, x, y, pool, partial(solve_all, kind=setting.scheme))
        return decide_rows(features(setting.space, setting.width), y, setting.scheme, setting.cost, code)

    return [decisions(setting) for setting in settings]


def study_codes(rows, y, log_lik, truth, lengths, assignments: int, rng, cost: float = 1.0) -> list[dict]:
    """``{"bits", "distance", "errors": [...]}`` of codes of each of ``lengths``, their words given to the classes in
    ``assignments`` ways ([L04] 7); rows as in :func:`decide_rows`, ``log_lik`` and ``truth`` of the others."""
    found, classes, ask = [], int(y.max()) + 1, questioner(rows, y, cost)
    for bits in lengths:
        code = output_codes(classes, bits, rng)
        distance = min(int((code[a] != code[b]).sum()) for a, b in pairs(classes))
        wrong = []
        for _ in range(assignments):
            given = code[rng.permutation(classes)]
            wrong.append(int((decode(ask(given), given, log_lik) != truth).sum()))
        found.append({"bits": bits, "distance": distance, "errors": wrong})
    return found


def classify(x, y, rest, settings: list[Setting], starts: int, seed, bits: int = 31) -> np.ndarray:
    """Classes [settings, N'] of ``rest`` [N', D] by systems trained on ``x``, ``y``, averaged over EM starts.

    The settings share the mixtures that EM finds: they may differ in all but mixtures, tying and floor. Start s of
    ``seed`` (numbers) is the same whatever the settings and the number of starts; output codes have ``bits``.
    """
    mixtures, tied, floor = settings[0].mixture
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
    return decisions.argmax(1)


def rank(settings: list[Setting], errors: np.ndarray) -> list[int]:
    """Indices of the settings, the fewest errors first, the simpler of equals."""
    return sorted(range(len(settings)), key=lambda index: (errors[index], simplicity(settings[index])))


def plurality(decided: np.ndarray, classes: int) -> np.ndarray:
    """The class [N] that most of ``decided`` [systems, N] name; of equals the one that the first of them names."""
    votes = np.stack([(decided == c).sum(0) for c in range(classes)], axis=1)
    named = np.take_along_axis(votes, decided.T, axis=1)  # [N, systems]: votes of each system's class
    return decided[named.argmax(1), np.arange(decided.shape[1])]


def choose(settings: list[Setting], decided: np.ndarray, y, groups, sizes) -> tuple[list[int], dict[int, int]]:
    """Which systems to let vote, from their classes ``decided`` [settings, N] of samples in groups left out.

    The systems are ranked by their errors, and the best 1, 2 ... of ``sizes`` may vote. Systems that lead a ranking owe
    part of the lead to chance, so the size is chosen by leaving out each group from the ranking too: systems ranked on
    the others vote on it. Fewest errors, the smaller of equals. Returns ``(chosen, {size: errors})``.
    """
    wrong, classes = decided != y, int(y.max()) + 1
    errors = dict.fromkeys(sorted({min(size, len(settings)) for size in sizes}), 0)
    for group in np.unique(groups):
        out = groups == group
        ranked = rank(settings, wrong[:, ~out].sum(1))
        for size in errors:
            errors[size] += int((plurality(decided[np.ix_(ranked[:size], out)], classes) != y[out]).sum())
    best = min(errors, key=errors.get)
    return rank(settings, wrong.sum(1))[:best], errors


def families(settings: list[Setting]) -> list[list[Setting]]:
    """The settings in groups that share their mixtures, for :func:`classify`."""
    mixture = attrgetter("mixture")
    return [list(group) for _, group in itertools.groupby(sorted(settings, key=mixture), mixture)]
