"""Alignment of strings without graphs against alignment with them."""

import numpy as np
import pytest

from margo.model.graph import align_graph, loop_graph
from margo.model.likelihood import log_likelihoods, scorer
from margo.search.strings import align_strings, recognised, string_table
from margo.search.viterbi import viterbi
from oracles import loop_strings, random_hmms


@pytest.mark.parametrize("seed", range(8))
def test_same_paths_as_forced_alignment(seed):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=3, silence=seed % 4 != 3, tee=seed % 2 == 1)
    graph = loop_graph(hmms)
    scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), rng.normal(size=(9, 2)))
    strings = list(loop_strings(hmms, 3))
    found = align_strings(string_table(hmms, graph.states), strings, scores)
    short = 0
    for path, string in enumerate(strings):
        forced = align_graph(hmms, [hmms.words[word] for word in string])
        columns = np.searchsorted(graph.states, forced.states)
        expected = viterbi(forced, scores[:, columns])
        if expected is None:
            assert found.scores[path] == -np.inf
            short += 1
            continue
        np.testing.assert_allclose(found.scores[path], expected.score, rtol=1e-12)
        np.testing.assert_array_equal(found.states[path], expected.states)
        frames = scores[np.arange(len(scores)), np.searchsorted(graph.states, found.states[path])].sum()
        np.testing.assert_allclose(found.constants[path] + frames, found.scores[path], rtol=1e-12)
        np.testing.assert_allclose(hmms.log_transitions[found.transitions[path]].sum(), found.constants[path])
    assert short < len(strings)


@pytest.mark.parametrize("seed", range(4))
def test_recognised_says_what_viterbi_says(seed):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=3, silence=seed % 2 == 0)
    graph = loop_graph(hmms, -1.0)
    lengths = rng.integers(1, 14, 30)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), 1.5 * rng.normal(size=(bounds[-1], 2)))
    found = [viterbi(graph, scores[a:b]) for a, b in zip(bounds[:-1], bounds[1:])]
    best = [tuple(segment.index for segment in path.words) if path else None for path in found]
    asked = [string if string and rng.random() < 0.5 else tuple(rng.integers(0, 3, rng.integers(1, 4)).tolist())
             for string in best]  # fmt: skip
    expected = [string == answer for string, answer in zip(asked, best)]
    assert recognised(graph, scores, bounds, asked).tolist() == expected
    assert any(expected) and not all(expected)
