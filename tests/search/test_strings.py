"""Alignment of strings without graphs against alignment with them."""

import numpy as np
import pytest

from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.graph import align_graph, loop_graph
from margo.search.network import network, string_network
from margo.search.strings import align_strings, string_table
from margo.search.viterbi import best_scores, viterbi
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
def test_best_scores_are_those_of_viterbi(seed):
    """On a loop, and on the chain of each string: a string is recognised where the two are the same."""
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=3, silence=seed % 2 == 0, tee=seed >= 2)
    graph = loop_graph(hmms, -1.0)
    lengths = rng.integers(1, 14, 30)
    bounds, wanted = np.concatenate([[0], np.cumsum(lengths)]), rng.random(30) < 0.8
    scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), 1.5 * rng.normal(size=(bounds[-1], 2)))
    table, strings = string_table(hmms, graph.states), list(loop_strings(hmms, 2))
    best = best_scores(network(graph), scores, bounds, wanted)
    forced = np.array([best_scores(string_network(table, string), scores, bounds, wanted) for string in strings])
    forced -= np.array([len(string) for string in strings])[:, None]  # the loop's penalty
    assert np.isnan(best[~wanted]).all() and np.isnan(forced[:, ~wanted]).all()
    for i in np.flatnonzero(wanted):
        path = viterbi(graph, scores[bounds[i] : bounds[i + 1]])
        assert best[i] == (pytest.approx(path.score, rel=1e-12) if path else -np.inf)
        for string, score in zip(strings, forced[:, i]):
            own = path is not None and string == tuple(segment.index for segment in path.words)
            assert own == (score > -np.inf and score >= best[i] - 1e-12 * abs(best[i]))
    assert (forced[:, wanted].max(axis=0) == pytest.approx(best[wanted])) is False  # longer strings win at times
