"""Forward-backward in the linear domain against the log domain."""

import numpy as np
import pytest

from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.graph import align_graph, bigram_graph, isolated_graph, loop_graph
from margo.search import confidence
from margo.search.confidence import confidences, word_occupancies
from margo.search.forward_backward import posteriors
from margo.search.network import network, string_network
from margo.search.scaled import scaled_posteriors
from margo.search.strings import string_table
from margo.search.viterbi import viterbi
from oracles import random_hmms


def linear(scores, kappa):
    peaks = scores.max(axis=1, keepdims=True)
    return np.exp(kappa * (scores - peaks)), kappa * peaks.sum()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kappa", [0.05, 1.0])
def test_same_posteriors_as_the_log_domain(seed, kappa):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=3, silence=seed % 3 != 2, tee=seed % 2 == 1)
    loop, isolated, forced = loop_graph(hmms, -0.5), isolated_graph(hmms), align_graph(hmms, ("w1", "w0", "w1"))
    scores = log_likelihoods(scorer(hmms.pool, loop.states, np.float64), rng.normal(size=(12, 2)))
    chain = string_network(string_table(hmms, loop.states), (1, 0, 1))
    for graph, net in ((loop, network(loop)), (isolated, network(isolated)), (forced, chain)):
        columns = np.searchsorted(loop.states, graph.states)
        own = scores if net is chain else scores[:, columns]
        likelihoods, offset = linear(own, kappa)
        occupancies, counts = np.zeros(own.shape), np.zeros(len(net.source))
        (total,) = scaled_posteriors(net, likelihoods, np.array([0, 12]), np.array([True]), occupancies, counts)
        expected = posteriors(graph, scores[:, columns], scale=kappa)
        np.testing.assert_allclose(total + offset, expected.log_likelihood[0], rtol=1e-12)
        np.testing.assert_allclose(
            occupancies[:, columns] if net is chain else occupancies, expected.occupancies, atol=1e-12
        )
        used = net.transition >= 0
        number = len(hmms.log_transitions)
        np.testing.assert_allclose(
            np.bincount(net.transition[used], counts[used], number),
            graph.transition_counts(expected.arc_counts, number), atol=1e-11,
        )  # fmt: skip


def test_utterances_side_by_side():
    rng = np.random.default_rng(3)
    hmms = random_hmms(rng, words=3)
    graph = loop_graph(hmms)
    scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), rng.normal(size=(25, 2)))
    likelihoods, _ = linear(scores, 0.5)
    bounds, wanted = np.array([0, 9, 14, 25]), np.array([True, False, True])
    occupancies, counts = np.zeros(scores.shape), np.zeros(graph.n_arcs)
    totals = scaled_posteriors(network(graph), likelihoods, bounds, wanted, occupancies, counts)
    assert np.isnan(totals).tolist() == [False, True, False]
    np.testing.assert_allclose(occupancies.sum(axis=1), [1.0] * 9 + [0.0] * 5 + [1.0] * 11)
    ends = [posteriors(graph, scores[a:b], scale=0.5) for a, b in ((0, 9), (14, 25))]
    np.testing.assert_allclose(occupancies[14:], ends[1].occupancies, atol=1e-12)
    np.testing.assert_allclose(counts, ends[0].arc_counts + ends[1].arc_counts, atol=1e-11)


def test_no_path_is_told_from_a_lost_path():
    hmms = random_hmms(np.random.default_rng(1), words=2, silence=False, skips=False)
    graph = align_graph(hmms, ("w0", "w1"))
    net, one = network(graph), np.array([True])
    blank = np.zeros((3, len(graph.states)))
    assert scaled_posteriors(net, blank + 1, np.array([0, 3]), one, blank) == -np.inf
    # Far behind half-way, and yet all that is left at the end: beyond what linear numbers can hold.
    rng = np.random.default_rng(0)
    scores = 400.0 * rng.normal(size=(30, len(graph.states)))
    likelihoods, _ = linear(scores, 1.0)
    occupancies = np.zeros(scores.shape)
    assert np.isnan(scaled_posteriors(net, likelihoods, np.array([0, 30]), one, occupancies)).all()
    assert not occupancies.any()


def exact_word_occupancies(graph, scores, scale):
    return posteriors(graph, scores, scale=scale, labels=graph.node_word, n_labels=len(graph.words)).occupancies


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_word_occupancies_and_confidences_as_in_the_log_domain(seed, scale, monkeypatch):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=3, silence=seed % 3 != 2, tee=seed % 2 == 1)
    bigram = bigram_graph(hmms, np.log(rng.dirichlet(np.ones(4), 4)), 1.3, -0.5)
    monkeypatch.setattr(confidence, "posteriors", None)  # the linear domain must do for these
    for graph in (loop_graph(hmms, -0.5), isolated_graph(hmms), bigram):
        scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), 1.5 * rng.normal(size=(40, 2)))
        exact = exact_word_occupancies(graph, scores, scale)
        np.testing.assert_allclose(word_occupancies(graph, scores, scale), exact, atol=1e-9)
        words = viterbi(graph, scores).words
        expected = [exact[word.start : word.end, word.index].mean() for word in words]
        np.testing.assert_allclose(confidences(graph, scores, words, scale), expected, atol=1e-9)


def test_confidences_of_paths_beyond_linear_numbers():
    hmms = random_hmms(np.random.default_rng(1), words=2, silence=False, skips=False)
    graph = isolated_graph(hmms)
    scores = 400.0 * np.random.default_rng(0).normal(size=(30, len(graph.states)))
    likelihoods, _ = linear(scores, 1.0)
    lost = scaled_posteriors(network(graph), likelihoods, np.array([0, 30]), np.array([True]), np.zeros(scores.shape))
    assert np.isnan(lost).all()
    exact = exact_word_occupancies(graph, scores, 1.0)
    np.testing.assert_allclose(exact.sum(axis=1), 1)
    np.testing.assert_array_equal(word_occupancies(graph, scores), exact)
    short = scores[:1]
    assert not exact_word_occupancies(graph, short, 1.0).any() and not word_occupancies(graph, short).any()
