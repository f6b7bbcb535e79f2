"""Brute force straight from the definition of an HmmSet: every path, one at a time, without the package's graphs.

Nothing here is clever, so that it can be believed: a grammar is a list of unit sequences, a path is a list of arcs, and
sums are sums over all paths.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from margo.gaussian.pool import GaussianPool
from margo.kernel.scorespace import layout
from margo.model.hmm import HmmSet, Unit, left_to_right


@dataclass
class Truth:
    """Sums and maxima over all paths: total, best, occupancies [T, S], transitions [P], scores of word strings."""

    total: float
    best: float
    occupancies: np.ndarray
    transitions: np.ndarray
    word_occupancies: np.ndarray
    strings: dict = field(default_factory=dict)
    best_states: tuple = ()


def log_components(pool: GaussianPool, frame: np.ndarray, k: int) -> float:
    """log w_k N(frame; k) by the textbook formula for any covariance, a missing value (NaN) being left out."""
    seen = ~np.isnan(frame)
    covariance, gap = pool.covariances.dense()[k][np.ix_(seen, seen)], (frame - pool.means[k])[seen]
    exponent = -0.5 * gap @ np.linalg.inv(covariance) @ gap
    return pool.log_weights[k] + exponent - 0.5 * np.log((2 * np.pi) ** len(gap) * np.linalg.det(covariance))


def log_gaussians(pool: GaussianPool, x: np.ndarray) -> np.ndarray:
    """log p(x_t | s) [T, S]."""
    out = np.empty((len(x), pool.n_states))
    for t, frame in enumerate(x):
        for s in range(pool.n_states):
            terms = [np.exp(log_components(pool, frame, k)) for k in range(pool.offsets[s], pool.offsets[s + 1])]
            out[t, s] = np.log(np.sum(terms))
    return out


def path_components(pool: GaussianPool, x: np.ndarray, states: np.ndarray) -> np.ndarray:
    """log w_m N(x_t; m) of the components m of the one state ``states[t]`` of each frame, [T, M]; -inf beyond."""
    out = np.full((len(x), int(pool.sizes.max())), -np.inf)
    for t, s in enumerate(states):
        for m in range(pool.sizes[s]):
            out[t, m] = log_components(pool, x[t], pool.offsets[s] + m)
    return out


def best_gaussians(pool: GaussianPool, x: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Pool index of the likeliest Gaussian of ``states[t]`` for each frame, [T]."""
    return pool.offsets[np.asarray(states)] + path_components(pool, x, states).argmax(axis=1)


def unit_paths(hmms: HmmSet, unit: int, frames: int):
    """All ways through one unit in exactly ``frames`` frames: (log prob, states, transition indices)."""
    size = hmms.units[unit].n_states + 2
    log_a = hmms.units[unit].log_transitions
    start = hmms.transition_offsets[unit]
    stack = [(0, 0.0, (), ())]
    while stack:
        here, log_prob, states, arcs = stack.pop()
        for there in range(1, size):
            if log_a[here, there] == -np.inf:
                continue
            step = (there, log_prob + log_a[here, there], states, (*arcs, start + here * size + there))
            if there == size - 1:
                if len(states) == frames:
                    yield step[1:]
            elif len(states) < frames:
                stack.append((*step[:2], (*states, hmms.units[unit].states[there - 1]), step[3]))


def sequence_paths(hmms: HmmSet, sequence, frames: int, known: dict):
    """All ways through ``sequence`` of (unit, word) in ``frames`` frames: (log prob, states, arcs, words a frame).

    ``known`` remembers what was found for shorter pieces.
    """
    if not sequence:
        return [(0.0, (), (), ())] if frames == 0 else []
    if (sequence, frames) not in known:
        (unit, word), rest = sequence[0], sequence[1:]
        known[sequence, frames] = [
            (head[0] + tail[0], head[1] + tail[1], head[2] + tail[2], (word,) * here + tail[3])
            for here in range(frames + 1)
            for tail in sequence_paths(hmms, rest, frames - here, known)
            for head in unit_paths(hmms, unit, here)
        ]
    return known[sequence, frames]


def sequences(hmms: HmmSet, strings):
    """(string, unit sequence, log probability of its pronunciations) for every string, every choice of optional
    silences and of a pronunciation for each word."""
    sil = None if hmms.silence is None else hmms.unit_index[hmms.silence]
    for string in strings:
        choices = product((False, True) if sil is not None else (False,), repeat=len(string) + 1)
        for pauses, ways in product(choices, [*product(*(hmms.lexicon[hmms.words[word]] for word in string))]):
            sequence = [(sil, -1)] if pauses[0] else []
            for word, way, pause in zip(string, ways, pauses[1:]):
                sequence += [(hmms.unit_index[name], word) for name in way.units]
                sequence += [(sil, -1)] if pause else []
            yield string, tuple(sequence), sum(way.log_prob for way in ways)


def loop_strings(hmms: HmmSet, longest: int):
    for length in range(1, longest + 1):
        yield from product(range(len(hmms.words)), repeat=length)


def enumerate_all(hmms: HmmSet, log_likelihoods: np.ndarray, strings, extra=lambda string: 0.0, scale=1.0) -> Truth:
    """Truth about ``log_likelihoods`` [T, S] (all pool states) under a grammar of ``strings`` with ``extra`` scores."""
    frames = len(log_likelihoods)
    paths, known, best_of = [], {}, defaultdict(lambda: -np.inf)
    for string, sequence, said in sequences(hmms, strings):
        if extra(string) == -np.inf:
            continue
        for log_prob, states, arcs, words in sequence_paths(hmms, sequence, frames, known):
            score = log_prob + said + extra(string) + scale * sum(log_likelihoods[t, s] for t, s in enumerate(states))
            paths.append((score, states, arcs, words))
            best_of[string] = max(best_of[string], score)
    occupancies = np.zeros(log_likelihoods.shape)
    word_occupancies = np.zeros((frames, len(hmms.words)))
    transitions = np.zeros(len(hmms.log_transitions))
    if not paths:
        return Truth(-np.inf, -np.inf, occupancies, transitions, word_occupancies)
    scores = np.array([path[0] for path in paths])
    best = scores.max()
    total = best + np.log(np.exp(scores - best).sum())
    for score, states, arcs, words in paths:
        posterior = np.exp(score - total)
        for t, (state, word) in enumerate(zip(states, words)):
            occupancies[t, state] += posterior
            if word >= 0:
                word_occupancies[t, word] += posterior
        for arc in arcs:
            transitions[arc] += posterior
    return Truth(total, best, occupancies, transitions, word_occupancies, dict(best_of), paths[int(scores.argmax())][1])


def random_hmms(
    rng: np.random.Generator, words=2, silence=True, skips=True, tee=False, tied=True, mixtures=2, dimension=2,
    states=2, ways=False,
) -> HmmSet:
    """A small random model: words of one or two units, skips, tied states, a silence that may be a tee,
    and with ``ways`` words of several pronunciations."""
    names = [f"u{i}" for i in range(words + 1)]
    n_states = (words + 1) * states + 2
    sizes = rng.integers(1, mixtures + 1, n_states)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    weights = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    pool = GaussianPool(
        rng.normal(0, 1.5, (offsets[-1], dimension)), rng.uniform(0.3, 2, (offsets[-1], dimension)),
        np.log(weights), offsets,
    )  # fmt: skip
    units, first = [], 0
    for i, name in enumerate(names):
        own = np.arange(first, first + states)
        if tied and i:
            own[0] = rng.integers(0, first)  # a state of an earlier unit
        units.append(Unit(name, own, random_transitions(rng, states, skips)))
        first += states
    lexicon = {f"w{i}": (names[i],) if i else (names[0], names[-1]) for i in range(words)}
    if ways:  # three of the first word, parts of one another, and two of the last, one of them part of the first
        lexicon["w0"] = [((names[0], names[-1]), np.log(0.5)), ((names[0],), np.log(0.2)), ((names[-1],), np.log(0.3))]
        lexicon[f"w{words - 1}"] = [((names[words - 1],), 0.0), ((names[0],), np.log(0.4))]
    if silence:
        units.append(Unit("sil", np.arange(first, first + 2), random_transitions(rng, 2, skips, tee)))
    return HmmSet(pool, tuple(units), lexicon, "sil" if silence else None)


def random_transitions(rng: np.random.Generator, states: int, skips: bool, tee: bool = False) -> np.ndarray:
    possible = left_to_right(states, 0.5, 0.2 if skips else 0.0) > -np.inf
    if skips and states > 1:
        possible[0, 2] = True
    possible[0, -1] = tee
    a = possible * rng.uniform(0.1, 1, possible.shape)
    a[:-1] /= a[:-1].sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(a)


def kernel_energy(phi: np.ndarray, coefficients: np.ndarray, metric) -> float:
    """``sum_ij A_i . A_j K(x_i, x_j)``: twice what the kernel takes from W ([L04] (34))."""
    s = phi.T @ (coefficients - coefficients.mean(0))
    return float((s * metric.solve(s)).sum())


def numeric(function, vector, step=1e-5) -> np.ndarray:
    """Central differences with one Richardson extrapolation: error O(step^4)."""
    gradient = np.empty_like(vector)
    for k in range(len(vector)):
        slopes = []
        for h in (step, 2 * step):
            up, down = vector.copy(), vector.copy()
            up[k] += h
            down[k] -= h
            slopes.append((function(up) - function(down)) / (2 * h))
        gradient[k] = (4 * slopes[0] - slopes[1]) / 3
    return gradient


def forgetting(space: str, sizes, dims: int, d_phi: np.ndarray):
    """``(kind, d_phi without it)`` for every kind of score that a space has (likelihood, mean, var, weight, second), of
    models with ``sizes`` Gaussians: what a pullback, which is linear, sees of ``d_phi`` [N, P] if it forgets the kind.
    """
    likelihoods, parts = layout(space, len(sizes))
    kinds = ["likelihood"] * likelihoods.shape[1]
    kinds += [part for size in sizes for part in parts for _ in range(size * (1 if part == "weight" else dims))]
    for kind in dict.fromkeys(kinds):
        yield kind, d_phi * (np.array(kinds) != kind)
