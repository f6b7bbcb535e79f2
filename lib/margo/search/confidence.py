"""How sure a recogniser is of each word it found."""

from functools import lru_cache

import numpy as np

from margo.gaussian.likelihood import flatten
from margo.model.graph import Graph
from margo.search.forward_backward import checked, posteriors
from margo.search.network import Network, network
from margo.search.scaled import scaled_posteriors
from margo.search.viterbi import Segment


def word_occupancies(graph: Graph, log_likelihoods: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Posterior of being in each word at each frame, [T, V], over all paths of a recognition graph.

    Found in the linear domain; in the log domain where that loses a path that matters (see :mod:`margo.search.scaled`).
    """
    scores, silence = checked(graph, log_likelihoods), len(graph.words)
    powers, occupancies = np.empty(scores.shape), np.zeros((len(scores), silence + 1))
    flatten(scores, scale, powers)
    labels = np.where(graph.node_word < 0, silence, graph.node_word)
    (total,) = scaled_posteriors(
        _compiled(graph), powers, np.array([0, len(scores)]), np.array([True]), occupancies, labels=labels
    )
    if np.isnan(total):
        return posteriors(graph, scores, scale=scale, labels=labels, n_labels=silence + 1).occupancies[:, :silence]
    return occupancies[:, :silence]


@lru_cache(maxsize=1)
def _compiled(graph: Graph) -> Network:
    """The same for all utterances of a pass, which come one after the other."""
    return network(graph)


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
