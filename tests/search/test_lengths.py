"""Long utterances: the same path as a search that keeps everything, however it is found."""

import weakref

import numpy as np
import pytest

from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.graph import align_graph, loop_graph
from margo.search import confidence, lengths, strings
from margo.search.best import best_path, trace
from margo.search.confidence import word_occupancies
from margo.search.lengths import best_arcs
from margo.search.strings import align_strings
from margo.search.viterbi import viterbi
from oracles import random_hmms


def whole(arcs, scores):
    back = np.empty((len(scores) + 1, len(arcs.arc_start) - 1), np.int32)
    score = best_path(arcs, scores, back)
    return score, trace(arcs, back, arcs.end, True)[0] if score > -np.inf else None


@pytest.fixture
def spoken():
    """``make(words, frames a word, seed)``: a model, a transcript and likelihoods of what was said."""

    def make(words=60, frames=30, seed=0, noise=1.0, silence=True):
        rng = np.random.default_rng(seed)
        hmms = random_hmms(rng, words=4, silence=silence)
        said = [hmms.words[n] for n in rng.integers(0, 4, words)]
        states = np.concatenate([hmms.states_of(word) for word in said])
        path = np.repeat(states, rng.integers(1, 2 * frames // 3, len(states)))
        x = hmms.pool.means[hmms.pool.offsets[path]]
        x = x + noise * rng.normal(size=x.shape)
        graph = align_graph(hmms, said)
        return hmms, said, graph, log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x)

    return make


@pytest.mark.parametrize("kept", [2, 3, 128])
@pytest.mark.parametrize("cells", [1, 700, 5000])
def test_kept_rows_give_the_path_of_a_search_that_keeps_all(spoken, monkeypatch, kept, cells):
    hmms, said, graph, scores = spoken(words=8, frames=12)
    monkeypatch.setattr(lengths, "CELLS", cells)
    monkeypatch.setattr(lengths, "KEPT", kept)
    monkeypatch.setattr(lengths, "along", lambda *_: None)
    loop = loop_graph(hmms)
    more = log_likelihoods(scorer(hmms.pool, loop.states, np.float64), np.random.default_rng(1).normal(size=(150, 2)))
    for arcs, table in ((graph.arcs, scores), (loop.arcs, more)):
        score, path = whole(arcs, table)
        found = best_arcs(arcs, table)
        assert found[0] == score and found[1].tolist() == path.tolist()
    short = best_arcs(graph.arcs, scores[:5])
    assert short[0] == -np.inf and not len(short[1])


def test_equal_paths_are_decided_alike(spoken, monkeypatch):
    _, _, graph, scores = spoken(words=20)
    rng = np.random.default_rng(5)
    arcs = graph.arcs._replace(log_prob=-rng.integers(0, 2, graph.n_arcs).astype(float))
    ties = -rng.integers(0, 2, scores.shape).astype(float)
    expected = whole(arcs, ties)
    monkeypatch.setattr(lengths, "CELLS", 1000)
    assert best_arcs(arcs, ties)[1].tolist() == expected[1].tolist()
    monkeypatch.setattr(lengths, "along", lambda *_: None)
    assert best_arcs(arcs, ties)[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("silence", [True, False])
@pytest.mark.parametrize("rows", [16, 50])
@pytest.mark.parametrize("seed", range(3))
def test_a_window_that_moves_along_gives_the_same_path(spoken, monkeypatch, rows, seed, silence):
    _, _, graph, scores = spoken(words=70, seed=seed, silence=silence)
    score, path = whole(graph.arcs, scores)
    monkeypatch.setattr(lengths, "ROWS", rows)
    monkeypatch.setattr(lengths, "SLACK", 8)
    found = lengths.along(graph.arcs, scores)
    assert found[0] == score and found[1].tolist() == path.tolist()
    reach = lengths.reachable(graph.arcs, lengths._positions(graph.arcs.arc_start, graph.arcs.source, graph.n_emitting),
                              100, 110)  # fmt: skip
    assert reach.last - reach.first < graph.n_emitting - 100 or rows > 16, "only some of the nodes"


def test_graphs_of_parts_are_not_kept(spoken, monkeypatch):
    """Where a model is poor, each part has most of the graph: kept until the end, an hour's took 2 GB."""
    _, _, graph, scores = spoken(words=70)
    seen, most, reachable = [], [], lengths.reachable

    def counted(*given):
        most.append(sum(each() is not None for each in seen))
        reach = reachable(*given)
        seen.append(weakref.ref(reach.number))
        return reach

    monkeypatch.setattr(lengths, "ROWS", 16)
    monkeypatch.setattr(lengths, "reachable", counted)
    positions = lengths._positions(graph.arcs.arc_start, graph.arcs.source, graph.n_emitting)
    assert lengths.within(graph.arcs, scores, lengths.WIDEST, positions)[0] == whole(graph.arcs, scores)[0]
    assert len(seen) > 100 and max(most) <= 2


def test_a_beam_that_is_too_narrow_is_widened(spoken, monkeypatch):
    _, _, graph, scores = spoken(words=70, noise=3.0)
    score, path = whole(graph.arcs, scores)
    monkeypatch.setattr(lengths, "ROWS", 16)
    monkeypatch.setattr(lengths, "BEAM", 20.0)
    positions = lengths._positions(graph.arcs.arc_start, graph.arcs.source, graph.n_emitting)
    narrow = lengths.within(graph.arcs, scores, 20.0, positions)
    assert narrow is None or narrow[0] < score
    found = lengths.along(graph.arcs, scores)
    assert found[0] == score and found[1].tolist() == path.tolist()
    monkeypatch.setattr(lengths, "WIDEST", 20.0)
    assert lengths.along(graph.arcs, scores) is None
    monkeypatch.setattr(lengths, "CELLS", 1000)
    assert best_arcs(graph.arcs, scores)[1].tolist() == path.tolist(), "without a beam, then"


def test_long_strings_align_as_short_ones(spoken, monkeypatch):
    hmms, said, graph, scores = spoken(words=30)
    string = tuple(hmms.word_index[word] for word in said)
    many = [string, string[1:], (0,) * 500]
    expected = align_strings(hmms, many, scores, graph.states)
    for module in (strings, lengths):
        monkeypatch.setattr(module, "CELLS", 1000)
    found = align_strings(hmms, many, scores, graph.states)
    assert found.scores.tolist() == expected.scores.tolist() and found.scores[2] == -np.inf
    np.testing.assert_array_equal(found.states, expected.states)
    np.testing.assert_array_equal(found.constants, expected.constants)
    assert [one.tolist() for one in found.transitions] == [one.tolist() for one in expected.transitions]


def test_confidences_of_long_utterances_are_those_of_short_ones(spoken, monkeypatch):
    hmms, _, _, _ = spoken()
    graph = loop_graph(hmms)
    scores = log_likelihoods(scorer(hmms.pool, graph.states), np.random.default_rng(2).normal(size=(900, 2)))
    expected = word_occupancies(graph, scores, 0.5)
    monkeypatch.setattr(confidence, "CELLS", 1)
    monkeypatch.setattr(confidence, "SPAN", 128)
    monkeypatch.setattr(confidence, "AROUND", 100)
    np.testing.assert_allclose(word_occupancies(graph, scores, 0.5), expected, atol=1e-6)


def test_a_long_alignment_has_the_segments_of_a_short_one(spoken, monkeypatch):
    _, _, graph, scores = spoken(words=70)
    expected = viterbi(graph, scores)
    monkeypatch.setattr(lengths, "CELLS", 1000)
    found = viterbi(graph, scores)
    assert found.words == expected.words and found.units == expected.units and found.score == expected.score
