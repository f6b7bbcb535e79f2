"""How sure a recogniser is of each word it found."""

import numpy as np

from margo.gaussian.likelihood import flatten
from margo.model.graph import Graph
from margo.search.forward_backward import checked, posteriors
from margo.search.scaled import scaled_posteriors
from margo.search.viterbi import Segment

CELLS = 1 << 22  # nodes times frames that are done at once
SPAN, AROUND = 8192, 512  # frames that are done at a time where there are more, and others around them


def word_occupancies(graph: Graph, log_likelihoods: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Posterior of being in each word at each frame, [T, V], over all paths of a recognition graph.

    Long utterances are done some frames at a time: what lies seconds away decides nothing.
    """
    scores = checked(graph, log_likelihoods)
    if len(scores) * graph.n_nodes <= CELLS or len(scores) <= SPAN:
        return _occupancies(graph, scores, scale)
    parts = []
    for first in range(0, len(scores), SPAN):
        low = max(0, first - AROUND)
        around = _occupancies(graph, scores[low : first + SPAN + AROUND], scale)
        parts.append(around[first - low : first - low + SPAN])
    return np.concatenate(parts)


def _occupancies(graph: Graph, scores: np.ndarray, scale: float) -> np.ndarray:
    """Found in the linear domain; in the log domain where that loses a path that matters (see
    :mod:`margo.search.scaled`)."""
    silence = len(graph.words)
    powers, occupancies = np.empty(scores.shape), np.zeros((len(scores), silence + 1))
    flatten(scores, scale, powers)
    labels = np.where(graph.node_word < 0, silence, graph.node_word)
    bounds, wanted = np.array([0, len(scores)]), np.array([True])
    (total,) = scaled_posteriors(graph, powers, bounds, wanted, occupancies, labels=labels)
    if np.isnan(total):
        return posteriors(graph, scores, scale=scale, labels=labels, n_labels=silence + 1).occupancies[:, :silence]
    return occupancies[:, :silence]


def confidences(
    graph: Graph, log_likelihoods: np.ndarray, words: tuple[Segment, ...], scale: float = 1.0
) -> np.ndarray:
    """Mean posterior of each word over the frames it was aligned to, [len(words)], between 0 and 1.

    ``graph`` is the recognition graph (its columns those of ``log_likelihoods``); ``words`` may come from it or from a
    forced alignment. ``scale`` below 1 flattens the posteriors, which frame-wise independence makes too sharp. A word
    without frames has confidence 0.
    """
    occupancies = word_occupancies(graph, log_likelihoods, scale)
    return np.array([occupancies[s.start : s.end, s.index].mean() if s.end > s.start else 0.0 for s in words])
