"""How sure a recogniser is of each word it found."""

import numpy as np

from margo.model.graph import Graph
from margo.search.forward_backward import posteriors
from margo.search.viterbi import Segment


def word_occupancies(graph: Graph, log_likelihoods: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Posterior of being in each word at each frame, [T, V], over all paths of a recognition graph."""
    return posteriors(
        graph, log_likelihoods, scale=scale, labels=graph.node_word, n_labels=len(graph.words)
    ).occupancies


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
