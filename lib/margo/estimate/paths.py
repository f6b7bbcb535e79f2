"""Viterbi paths of what was said and of what might be taken for it: the material of MCE, margin and LME training.

For each utterance: the best path of its reference string, then those of its competitors, best first. Competitors are
the other words (isolated) or the other strings of an N-best list. Between two searches the paths are kept and only
their scores follow the model, which makes an iteration cheaper than a decoding pass.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.estimate.ml import unusable
from margo.estimate.stats import Stats
from margo.gaussian.likelihood import Scorer, log_likelihoods_of_many, scorer
from margo.model.grammar import recognition_graph, string_score
from margo.model.graph import Graph
from margo.model.hmm import HmmSet
from margo.search.nbest import nbest
from margo.search.strings import align_strings


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths of N utterances of a chunk, P in all.

    names, words: utterance names and, for each path, its word indices; bounds int [N + 1]: rows of each utterance in
    the concatenated frames; first int [N + 1]: utterance i's paths are ``first[i]:first[i + 1]``, the reference first;
    start int [P + 1]: frames of each path in ``states`` (pool states, int32); constants [P]: transitions and grammar;
    transition_start int [P + 1], transitions: indices of the transitions taken, any order. ``dropped`` as in Stats.
    """

    names: tuple[str, ...]
    words: tuple[tuple[int, ...], ...]
    bounds: np.ndarray
    first: np.ndarray
    start: np.ndarray
    states: np.ndarray
    constants: np.ndarray
    transition_start: np.ndarray
    transitions: np.ndarray
    dropped: tuple[tuple[str, str], ...] = ()

    @property
    def n_utterances(self) -> int:
        return len(self.first) - 1

    def frames(self, utterances) -> np.ndarray:
        """The frames [T, D] of these paths, from the ``(name, x, words)`` they were made of."""
        by_name = {name: x for name, x, _ in utterances}
        dimension = utterances[0][1].shape[1] if utterances else 0
        return np.concatenate([by_name[name] for name in self.names] or [np.empty((0, dimension), np.float32)])


@dataclass(frozen=True, eq=False)
class Searcher:
    """What :func:`find_paths` needs of a model and its grammar, compiled once for many utterances."""

    hmms: HmmSet
    graph: Graph
    compiled: Scorer


def searcher(hmms: HmmSet, dtype=np.float32) -> Searcher:
    graph = recognition_graph(hmms)
    return Searcher(hmms, graph, scorer(hmms.pool, graph.states, dtype))


def find_paths(search: Searcher, utterances, competitors: int = 5, listed: dict | None = None) -> Paths:
    """Paths of ``(name, x[T, D], words)`` utterances and of up to ``competitors`` strings each that are not theirs.

    ``listed`` has the best strings of each utterance under this very model, best first, tuples of words: at least one
    more than ``competitors`` where there are so many. Those of others are searched for.
    """
    hmms, isolated = search.hmms, search.hmms.meta.get("grammar", {}).get("kind") == "isolated"
    names, words, blocks, first, dropped = [], [], [], [0], []
    reasons = [unusable(hmms, x, reference) for _, x, reference in utterances]
    usable = [x for (_, x, _), reason in zip(utterances, reasons) if not reason]
    likelihoods = log_likelihoods_of_many(search.compiled, usable)
    for (name, x, reference), reason in zip(utterances, reasons):
        if reason:
            dropped.append((name, reason))
            continue
        scores, spoken = next(likelihoods), tuple(hmms.word_index[word] for word in reference)
        if listed and name in listed:
            rivals = [tuple(hmms.word_index[word] for word in string) for string in listed[name][: competitors + 1]]
        elif isolated:
            rivals = [(word,) for word in range(len(hmms.words))]
        else:
            rivals = [hypothesis.words for hypothesis in nbest(search.graph, scores, competitors + 1)]
        rivals = [string for string in rivals if string != spoken]
        strings = [spoken, *(rivals if isolated else rivals[:competitors])]
        block = align_strings(hmms, strings, scores, search.graph.states)
        grammar = np.array([string_score(hmms, [hmms.words[word] for word in string]) for string in strings])
        totals = block.scores + grammar
        order = np.argsort(-totals[1:], kind="stable")[:competitors] + 1
        order = order[totals[order] > -np.inf]
        if not (totals[0] > -np.inf and len(order)):
            dropped.append((name, misfit(len(x), grammar[0] if len(order) else 0.0)))
            continue
        chosen = [0, *order.tolist()]
        names.append(name)
        words += [strings[path] for path in chosen]
        blocks.append((len(x), block.states[chosen], block.constants[chosen] + grammar[chosen],
                       [block.transitions[path] for path in chosen]))  # fmt: skip
        first.append(len(words))
    return _pack(names, words, blocks, first, dropped)


def misfit(frames: int, log_score: float) -> str:
    """Why a string has no path, from the number of frames and what the grammar says of it."""
    return (
        f"{frames} frames: no path through the model fits" if log_score > -np.inf else "the grammar forbids its words"
    )


def _pack(names, words, blocks, first, dropped) -> Paths:
    lengths = np.array([frames for frames, *_ in blocks], np.int64)
    taken = [transitions for *_, many in blocks for transitions in many]
    return Paths(
        names=tuple(names),
        words=tuple(words),
        bounds=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        first=np.array(first, np.int64),
        start=np.concatenate([[0], np.cumsum(np.repeat(lengths, np.diff(first)))]).astype(np.int64),
        states=np.concatenate([states.ravel() for _, states, *_ in blocks] or [np.empty(0, np.int32)]),
        constants=np.concatenate([constants for _, _, constants, _ in blocks] or [np.empty(0)]),
        transition_start=np.concatenate([[0], np.cumsum([len(one) for one in taken])]).astype(np.int64),
        transitions=np.concatenate(taken or [np.empty(0, np.int32)]),
        dropped=tuple(dropped),
    )


@dataclass(frozen=True, eq=False)
class Slots:
    """The (frame, state) pairs that decide between an utterance's paths, each once however many paths share it.

    Frames at which all paths of an utterance are in the same state add the same to every score and are left out, so
    scores from slots are exact only relative to each other. frame int32 [J], state int32 [J]; path_start int [P + 1],
    slot int32: slots of each path.
    """

    frame: np.ndarray
    state: np.ndarray
    path_start: np.ndarray
    slot: np.ndarray


def slots(paths: Paths) -> Slots:
    room = len(paths.states)
    frame, state, slot = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    path_start = np.zeros(len(paths.start), np.int64)
    used, entries = _slots(paths.bounds, paths.first, paths.start, paths.states, frame, state, path_start, slot)
    return Slots(frame[:used].copy(), state[:used].copy(), path_start, slot[:entries].copy())


@dataclass(frozen=True, eq=False)
class Scored:
    """scores [P], relative within an utterance; posteriors [J, M]: of the components of each slot's state."""

    scores: np.ndarray
    posteriors: np.ndarray


def score_paths(hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots) -> Scored:
    """Scores of the paths under ``hmms``, whose parameters may have moved since the paths were found.

    ``x`` [T, D]: the concatenated frames (:meth:`Paths.frames`); constants hold unless transitions are trained, see
    :func:`path_constants`.
    """
    pool = hmms.pool
    posteriors = np.empty((len(places.state), int(pool.sizes.max())))
    logs = np.empty(len(places.state))
    constants = pool.log_weights - 0.5 * np.log(2 * np.pi * pool.variances).sum(axis=1)
    _components(
        x, places.frame, places.state, pool.means, 1 / pool.variances, constants, pool.offsets, logs, posteriors
    )
    sums = np.concatenate([[0.0], np.cumsum(logs[places.slot])])
    return Scored(paths.constants + sums[places.path_start[1:]] - sums[places.path_start[:-1]], posteriors)


def weigh_paths(
    hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots, scored: Scored, weights: np.ndarray
) -> Stats:
    """Statistics, about the current means, of ``sum_p weights[p] * (frames of path p)``; weights [P] of either sign.

    A slot's weight is the sum over the paths through it: what the reference and a competitor share cancels first.
    """
    stats = Stats.zeros(hmms, hmms.pool.means)
    per_slot = np.bincount(places.slot, np.repeat(weights, np.diff(places.path_start)), len(places.state))
    # Paths that cancel do so up to rounding; what is left of them must not count as occupancy.
    per_slot[np.abs(per_slot) < 1e-13 * np.abs(weights).max(initial=0.0)] = 0.0
    sides = np.zeros((2, hmms.pool.n_gaussians))
    _moments(x, places.frame, places.state, per_slot, scored.posteriors, hmms.pool.means, hmms.pool.offsets,
             sides, stats.first, stats.second)  # fmt: skip
    stats.occupancy, stats.against = sides[0] - sides[1], sides[1]
    per_transition = np.repeat(weights, np.diff(paths.transition_start))
    ups, stats.transitions_against = (
        np.bincount(paths.transitions, np.maximum(sign * per_transition, 0.0), len(hmms.log_transitions))
        for sign in (1, -1)
    )
    stats.transitions = ups - stats.transitions_against
    stats.dropped, stats.utterances, stats.frames = paths.dropped, paths.n_utterances, int(paths.bounds[-1])
    return stats


def path_constants(hmms: HmmSet, paths: Paths, before: HmmSet) -> np.ndarray:
    """Constants [P] under ``hmms`` of paths that were found with the transitions of ``before``."""
    change = hmms.log_transitions[paths.transitions] - before.log_transitions[paths.transitions]
    sums = np.concatenate([[0.0], np.cumsum(change)])
    return paths.constants + sums[paths.transition_start[1:]] - sums[paths.transition_start[:-1]]


@njit(cache=True)
def _slots(bounds, first, start, states, frame, state, path_start, slot):
    """Fills frame, state (returned: how many), path_start and slot (how many)."""
    used = entries = 0
    most = 0
    for utterance in range(len(first) - 1):
        most = max(most, (bounds[utterance + 1] - bounds[utterance]) * (first[utterance + 1] - first[utterance]))
    here = np.empty(most, np.int32)  # slot of each frame and path of an utterance, or -1
    for utterance in range(len(first) - 1):
        frames = bounds[utterance + 1] - bounds[utterance]
        begin, end = first[utterance], first[utterance + 1]
        for t in range(frames):
            same = True
            for path in range(begin + 1, end):
                same = same and states[start[path] + t] == states[start[begin] + t]
            for path in range(begin, end):
                mine = -1
                if not same:
                    for other in range(begin, path):
                        if states[start[other] + t] == states[start[path] + t]:
                            mine = here[(other - begin) * frames + t]
                            break
                    if mine < 0:
                        mine = used
                        frame[used], state[used] = bounds[utterance] + t, states[start[path] + t]
                        used += 1
                here[(path - begin) * frames + t] = mine
        for path in range(begin, end):
            path_start[path] = entries
            for t in range(frames):
                mine = here[(path - begin) * frames + t]
                if mine >= 0:
                    slot[entries] = mine
                    entries += 1
    path_start[first[-1]] = entries
    return used, entries


@njit(cache=True, fastmath={"reassoc", "contract"})
def _components(x, frame, state, means, precisions, constants, offsets, logs, posteriors):
    for j in range(len(frame)):
        begin, count = offsets[state[j]], offsets[state[j] + 1] - offsets[state[j]]
        best = -np.inf
        for m in range(count):
            distance = 0.0
            for d in range(means.shape[1]):
                gap = x[frame[j], d] - means[begin + m, d]
                distance += gap * gap * precisions[begin + m, d]
            posteriors[j, m] = constants[begin + m] - 0.5 * distance
            best = max(best, posteriors[j, m])
        total = 0.0
        for m in range(count):
            posteriors[j, m] = np.exp(posteriors[j, m] - best)
            total += posteriors[j, m]
        for m in range(count):
            posteriors[j, m] /= total
        logs[j] = best + np.log(total)


@njit(cache=True)
def _moments(x, frame, state, weights, posteriors, means, offsets, sides, first, second):
    """Adds each slot's weight, shared out over components: to ``sides`` [2, K] for or against, to the rest net."""
    for j in range(len(frame)):
        if weights[j] == 0.0:
            continue
        side = 0 if weights[j] > 0 else 1
        begin = offsets[state[j]]
        for m in range(offsets[state[j] + 1] - begin):
            k, share = begin + m, weights[j] * posteriors[j, m]
            if share == 0.0:
                continue
            sides[side, k] += abs(share)
            for d in range(means.shape[1]):
                gap = x[frame[j], d] - means[k, d]
                first[k, d] += share * gap
                second[k, d] += share * gap * gap
