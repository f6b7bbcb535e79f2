"""Words that are a sound held too long to be one: hum, hiss and digital silence, which some state of a word fits."""

import numpy as np

from margo.model.graph import Graph
from margo.search.viterbi import Path

# Of a held sound: of 5283 words (4940 of them synthetic) the least likely dwell had -36; a minute of noise has -800 or
# less.
LOG_PRIOR = -40.0


def word_odds(graph: Graph, path: Path) -> np.ndarray:
    """Probability [len(path.words)] that each word is one, against its longest dwell in a state being a held sound.

    A state that is left with probability 1 - a is held for d frames or more with probability a^(d - 1). The path that
    competes stays in the same state for ever, so that frames score alike, and has the prior P:
    ``a^(d - 1) / (a^(d - 1) + P)``.
    """
    arcs, odds = graph.arcs, np.ones(len(path.words))
    stay = np.where(arcs.stay_arc >= 0, arcs.log_prob[arcs.stay_arc], -np.inf)
    for number, word in enumerate(path.words):
        nodes = path.nodes[word.start : word.end]
        starts = np.flatnonzero(np.diff(nodes, prepend=-1))
        dwells = np.diff(starts, append=len(nodes))
        longer = dwells > 1
        logs = (dwells[longer] - 1) * stay[nodes[starts[longer]]]
        odds[number] = 1 / (1 + np.exp(min(LOG_PRIOR - logs.min(initial=0.0), 700.0)))
    return odds
