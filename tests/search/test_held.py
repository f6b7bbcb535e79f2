"""Words against held sounds."""

import numpy as np
import pytest

from margo.model.graph import isolated_graph
from margo.model.hmm import flat_start, whole_words
from margo.search.held import LOG_PRIOR, word_odds
from margo.search.viterbi import viterbi


@pytest.mark.parametrize("dwell", [1, 2, 79, 80, 1000])
def test_the_longest_dwell_decides(dwell):
    """Two states that are told apart by their frames; the second lasts ``dwell``; a state is left at 0.4 a frame."""
    hmms = flat_start(whole_words(["a"]), 2, np.zeros(1), np.ones(1), stay=0.6)
    graph = isolated_graph(hmms)
    scores = np.zeros((3 + dwell, 2))
    scores[:3, 1] = scores[3:, 0] = -1e4
    (odds,) = word_odds(graph, viterbi(graph, scores))
    longest = max(3, dwell)
    expected = 1 / (1 + np.exp(LOG_PRIOR - (longest - 1) * np.log(0.6))) if dwell < 1000 else 0.0
    assert odds == pytest.approx(expected, rel=1e-9, abs=1e-100)
    assert (odds > 0.5) == (longest < 80)  # 79 * log 0.6 = -40.4
