"""How sure a recogniser is of each word, and each unit, that it found."""

import numpy as np

from margo.gaussian.likelihood import flatten
from margo.model.graph import Graph
from margo.model.hmm import HmmSet
from margo.search.forward_backward import checked, posteriors
from margo.search.scaled import scaled_posteriors
from margo.search.viterbi import Segment

CELLS = 1 << 22  # nodes times frames that are done at once
SPAN, AROUND = 8192, 512  # frames that are done at a time where there are more, and others around them


def word_occupancies(graph: Graph, log_likelihoods: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Posterior of being in each word at each frame, [T, V], over all paths of a recognition graph."""
    silence = len(graph.words)
    labels = np.where(graph.node_word < 0, silence, graph.node_word)
    return label_occupancies(graph, log_likelihoods, labels, silence + 1, scale)[:, :silence]


def label_occupancies(
    graph: Graph, log_likelihoods: np.ndarray, labels: np.ndarray, n_labels: int, scale: float = 1.0
) -> np.ndarray:
    """Posterior of each label at each frame, [T, L], over all paths, by ``labels`` int [E] of the emitting nodes.

    Of a recognition graph, where any frames may be a string: long utterances are done some frames at a time, as what
    lies seconds away decides nothing.
    """
    scores = checked(graph, log_likelihoods)
    if len(scores) * graph.n_nodes <= CELLS or len(scores) <= SPAN:
        return all_occupancies(graph, scores, labels, n_labels, scale)
    parts = []
    for first in range(0, len(scores), SPAN):
        low = max(0, first - AROUND)
        around = all_occupancies(graph, scores[low : first + SPAN + AROUND], labels, n_labels, scale)
        parts.append(around[first - low : first - low + SPAN])
    return np.concatenate(parts)


def all_occupancies(graph: Graph, scores: np.ndarray, labels: np.ndarray, n_labels: int, scale: float) -> np.ndarray:
    """As :func:`label_occupancies`, all frames at once. Found in the linear domain; in the log domain where that loses
    a path that matters (see :mod:`margo.search.scaled`)."""
    powers, occupancies = np.empty(scores.shape), np.zeros((len(scores), n_labels))
    flatten(scores, scale, powers)
    bounds, wanted = np.array([0, len(scores)]), np.array([True])
    (total,) = scaled_posteriors(graph, powers, bounds, wanted, occupancies, labels=labels)
    if np.isnan(total):
        return posteriors(graph, scores, scale=scale, labels=labels, n_labels=n_labels).occupancies
    return occupancies


def confidences(
    graph: Graph, log_likelihoods: np.ndarray, words: tuple[Segment, ...], scale: float = 1.0
) -> np.ndarray:
    """Mean posterior of each word over the frames it was aligned to, [len(words)], between 0 and 1.

    ``graph`` is the recognition graph (its columns those of ``log_likelihoods``); ``words`` may come from it or from a
    forced alignment. ``scale`` below 1 flattens the posteriors, which frame-wise independence makes too sharp. A word
    without frames has confidence 0.
    """
    occupancies = word_occupancies(graph, log_likelihoods, scale)
    return segment_means(occupancies, words, [word.index for word in words])


def segment_means(occupancies: np.ndarray, segments, labels) -> np.ndarray:
    """Mean of each segment's label over its frames, [N], of ``occupancies`` [T, L]; 0 of one without frames."""
    return np.array([occupancies[segment.start : segment.end, label].mean() if segment.end > segment.start else 0.0
                     for segment, label in zip(segments, labels)])  # fmt: skip


def unit_confidences(
    hmms: HmmSet, graph: Graph, log_likelihoods: np.ndarray, units: tuple[Segment, ...], scale: float, kinds: np.ndarray
) -> np.ndarray:
    """As :func:`confidences`, of units; ``kinds`` int [units of hmms]: those of one kind are the same sound, as phones
    in several contexts are, and do not compete."""
    labels = kinds[node_units(hmms, graph)]
    occupancies = label_occupancies(graph, log_likelihoods, labels, int(kinds.max()) + 1, scale)
    return segment_means(occupancies, units, [kinds[unit.index] for unit in units])


def node_units(hmms: HmmSet, graph: Graph) -> np.ndarray:
    """Unit of each emitting node, int [E]: the one whose transitions lead into it."""
    arcs = graph.arcs
    inside = (arcs.transition >= 0) & (arcs.destination < graph.n_emitting)
    units = np.empty(graph.n_emitting, np.int64)
    units[arcs.destination[inside]] = np.searchsorted(hmms.transition_offsets, arcs.transition[inside], "right") - 1
    return units
