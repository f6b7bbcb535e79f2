"""Pruned search: without a limit the exact path bit by bit, with one the best that was not given up."""

import numpy as np
import pytest

from margo.model.graph import align_graph, bigram_graph, loop_graph
from margo.search import pruned
from margo.search.lengths import best_arcs
from margo.search.nbest import nbest
from margo.search.pruned import _collect as collect
from margo.search.pruned import pruned_arcs
from margo.search.viterbi import viterbi
from oracles import random_hmms


def cases(frames=40):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        hmms = random_hmms(rng, words=3, silence=seed % 2 == 0, tee=seed % 4 == 0, ways=seed > 3)
        size = len(hmms.words) + 1
        for graph in (loop_graph(hmms, -1.0), bigram_graph(hmms, np.log(rng.dirichlet(np.ones(size), size))),
                      align_graph(hmms, ["w1", "w0", "w2", "w1"])):  # fmt: skip
            yield graph, rng.normal(-3, 3, (frames, len(graph.states))), rng


def test_without_a_limit_the_path_is_the_exact_one():
    for graph, scores, rng in cases():
        expected = best_arcs(graph.arcs, scores)
        for beam, most in ((np.inf, 10**6), (1e6, 0)):
            score, path, _ = pruned_arcs(graph.arcs, scores, beam, most)
            assert score == expected[0] and path.tolist() == expected[1].tolist()
        ties = -rng.integers(0, 2, scores.shape).astype(float)
        arcs = graph.arcs._replace(log_prob=-rng.integers(0, 2, graph.n_arcs).astype(float))
        assert pruned_arcs(arcs, ties, 1e6, 0)[1].tolist() == best_arcs(arcs, ties)[1].tolist()


def kept(arcs, scores, beam, most):
    """Best score by definition: of a frame's nodes those under the beam, or not of the ``most`` best, are given up."""
    emitting, nodes = len(arcs.column), len(arcs.arc_start) - 1
    now = np.full(nodes, -np.inf)
    now[arcs.start] = 0.0
    for row in range(len(scores) + 1):
        if row:
            before, now = now, np.full(nodes, -np.inf)
            for arc in np.flatnonzero(arcs.destination < emitting):
                node = arcs.destination[arc]
                now[node] = max(now[node], before[arcs.source[arc]] + arcs.log_prob[arc])
            now[:emitting] += scores[row - 1, arcs.column]
            values = np.sort(now[:emitting][now[:emitting] > -np.inf])[::-1]
            least = max(values[0] - beam, values[most - 1] if most < len(values) else -np.inf)
            least = -np.inf if row == len(scores) else least
            now[now < least] = -np.inf
        for node in range(emitting, nodes):
            for arc in range(arcs.arc_start[node], arcs.arc_start[node + 1]):
                now[node] = max(now[node], now[arcs.source[arc]] + arcs.log_prob[arc])
            if row and now[node] < least:
                now[node] = -np.inf
    return now[arcs.end]


@pytest.mark.parametrize(("beam", "most"), [(6.0, 100), (1e6, 4), (8.0, 5)])
def test_what_is_given_up_is_what_the_limits_say(beam, most):
    worse = 0
    for graph, scores, _ in cases(20):
        arcs = graph.arcs._replace(behind=np.zeros_like(graph.arcs.behind))
        score, path, _ = pruned_arcs(arcs, scores, beam, most)
        assert score == pytest.approx(kept(arcs, scores, beam, most), abs=1e-10)
        worse += score < best_arcs(arcs, scores)[0]
        if score > -np.inf:
            nodes = arcs.destination[path]
            frames = scores[np.arange(len(scores)), arcs.column[nodes[nodes < graph.n_emitting]]]
            assert arcs.log_prob[path].sum() + frames.sum() == pytest.approx(score, abs=1e-9)
    assert worse


def test_memory_is_collected_without_a_change(monkeypatch):
    graph, scores, _ = next(cases(80))
    expected = pruned_arcs(graph.arcs, scores, 20.0, 0)
    sizes = []
    monkeypatch.setattr(pruned, "ROOM", 64)
    monkeypatch.setattr(pruned, "_collect", lambda *given: sizes.append(collect(*given)) or sizes[-1])
    found = pruned_arcs.py_func(graph.arcs, scores, 20.0, 0)
    assert found[0] == expected[0] and found[1].tolist() == expected[1].tolist()
    assert len(sizes) > 3 and max(sizes) < 80 * graph.n_nodes / 4  # tokens that lead nowhere are gone


def test_limits_reach_the_search():
    for graph, scores, _ in cases():
        exact, narrow = viterbi(graph, scores), viterbi(graph, scores, most=2)
        assert narrow is None or narrow.score <= exact.score
        assert viterbi(graph, scores, beam=1e4).score == exact.score


def test_the_n_best_of_a_part_of_the_graph(monkeypatch):
    smaller = lost = 0
    for graph, scores, _ in cases():
        if graph.arcs.ahead.any():
            continue  # a chain has but one string
        exact = nbest(graph, scores, 6)
        with monkeypatch.context() as patch:
            patch.setattr("margo.search.nbest.CELLS", 0)
            assert nbest(graph, scores, 6) == exact  # nothing lies outside of the beam
            for beam, most in ((12.0, 0), (np.inf, 4)):
                part = pruned.narrowed(graph, scores, beam, most)
                patch.setattr("margo.search.nbest.narrowed", lambda *_, part=part: part)
                found = nbest(graph, scores, 6)
                assert found[0].score >= pruned_arcs(graph.arcs, scores, beam, most)[0] - 1e-9
                best = {each.names: each.score for each in exact}
                assert all(each.score <= best.get(each.names, exact[-1].score) + 1e-9 for each in found)
                smaller += part.n_nodes < graph.n_nodes
                lost += found != exact
    assert smaller and lost
