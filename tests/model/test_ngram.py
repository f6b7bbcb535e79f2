"""N-grams sum to one, equal a second implementation, and their graphs give the best path of brute force."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from margo.errors import MargoError
from margo.model.grammar import ngram_grammar, recognition_graph, string_score, with_grammar
from margo.model.graph import automaton_graph
from margo.model.ngram import END, SMOOTHINGS, START, Ngram, witten_bell
from margo.search.forward_backward import posteriors
from margo.search.nbest import nbest
from margo.search.viterbi import viterbi
from oracles import enumerate_all, log_gaussians, loop_strings, random_hmms

STRINGS = [("a", "b", "a"), ("b", "a"), ("a",), ("a", "b", "c", "a"), ("c",), ("a", "b", "b")]
WORDS = ("a", "b", "c", "d")  # d was never seen


def textbook(strings, words, history, word):
    """Witten and Bell's estimate by its recursion, counting anew each time."""
    padded = [(START, *string, END) for string in strings]
    size = len(history)
    behind = [s[i] for s in padded for i in range(1, len(s)) if i >= size and s[i - size : i] == tuple(history)]
    lower = 1 / (len(words) + 1) if not history else textbook(strings, words, history[1:], word)
    kinds = len(set(behind))
    return (behind.count(word) + kinds * lower) / (len(behind) + kinds) if behind else lower


def textbook_kneser_ney(strings, words, order, history, word):
    """Kneser and Ney's estimate by its recursion, counting anew each time: of all n-grams of the history's length and
    one more, the longest and those at a string's start are counted as often as they occur, others once for each
    different word before them."""
    size = len(history)
    padded = [(START, *string, END) for string in strings]
    places = [s[i - size : i + 1] for s in padded for i in range(max(size, 1), len(s))]
    if size < order - 1:
        longer = {s[i - size - 1 : i + 1] for s in padded for i in range(size + 1, len(s))}
        places = [p for p in places if size and p[0] == START] + [p[1:] for p in longer]
    counts = {p: places.count(p) for p in places}
    once, twice = (sum(value == n for value in counts.values()) for n in (1, 2))
    discount = once / (once + 2 * twice) if once and twice else 0.5
    behind = {p[-1]: n for p, n in counts.items() if p[:-1] == tuple(history)}
    lower = 1 / (len(words) + 1)
    if history:
        lower = textbook_kneser_ney(strings, words, order, history[1:], word)
    if not behind:
        return lower
    total = sum(behind.values())
    return max(behind.get(word, 0) - discount, 0) / total + discount * len(behind) / total * lower


def textbooks(smoothing, order, history, word):
    if smoothing == "witten-bell":
        return textbook(STRINGS, WORDS, history, word)
    return textbook_kneser_ney(STRINGS, WORDS, order, history, word)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_smoothings_equal_the_textbook_and_sum_to_one(order, smoothing):
    ngram = SMOOTHINGS[smoothing](STRINGS, WORDS, order)
    for length in range(order):
        begun = ((START, *rest) for rest in product(WORDS, repeat=length - 1)) if length else ()
        for history in [*product(WORDS, repeat=length), *begun]:
            probabilities = [np.exp(ngram.log_prob(history, word)) for word in (*WORDS, END)]
            expected = [textbooks(smoothing, order, history, word) for word in (*WORDS, END)]
            np.testing.assert_allclose(probabilities, expected, atol=1e-12)
            assert sum(probabilities) == pytest.approx(1, abs=1e-12)


def test_a_word_that_is_not_named_is_the_unknown_one():
    ngram = Ngram(1, {("a",): -1.0, ("<UNK>",): -2.0, (END,): -0.5}, {})
    assert ngram.log_prob((), "zebra") == -2.0 and ngram.log_prob(("a",), "a") == -1.0
    assert Ngram(1, {("a",): -1.0, (END,): -0.5}, {}).log_prob((), "zebra") == -np.inf
    assert ngram.over(("a", "zebra")).log_probs == {("a",): -1.0, ("zebra",): -2.0, (END,): -0.5}


def test_pairs_are_the_probabilities_and_refuse_longer_memory():
    ngram = witten_bell(STRINGS, WORDS, 2)
    pairs = ngram.pairs(WORDS)
    np.testing.assert_allclose(np.exp(pairs).sum(axis=1), 1)
    assert pairs[0, 1] == ngram.log_prob(("a",), "b") and pairs[4, 0] == ngram.log_prob((START,), "a")
    with pytest.raises(MargoError, match="the model is of order 3"):
        witten_bell(STRINGS, WORDS, 3).pairs(WORDS)
    with pytest.raises(MargoError, match="not among its words: c"):
        witten_bell(STRINGS, ("a", "b"), 2)


def spoken_by(order, ways, seed):
    rng = np.random.default_rng(seed)
    hmms = random_hmms(rng, words=2, states=1, ways=ways)
    strings = [tuple(hmms.words[i] for i in rng.integers(0, 2, rng.integers(1, 4))) for _ in range(5)]
    return hmms, witten_bell(strings, hmms.words, order), rng


@pytest.mark.parametrize("ways", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_graph_gives_the_best_path_and_score_of_brute_force(order, ways):
    hmms, ngram, rng = spoken_by(order, ways, order)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (4, 2)))

    def extra(string):
        words = [hmms.words[word] for word in string]
        padded = [START, *words, END]
        return 1.3 * sum(ngram.log_prob(padded[:i], padded[i]) for i in range(1, len(padded))) - 0.7 * len(words)

    truth = enumerate_all(hmms, scores, list(loop_strings(hmms, 4)), extra)
    graph = automaton_graph(hmms, ngram.automaton, 1.3, -0.7)
    path = viterbi(graph, scores[:, graph.states])
    assert path.score == pytest.approx(truth.best, abs=1e-10)
    assert tuple(path.states) == truth.best_states
    found = nbest(graph, scores[:, graph.states], 6)
    expected = sorted(truth.strings.values(), reverse=True)[:6]
    np.testing.assert_allclose([each.score for each in found], expected, atol=1e-10)
    assert posteriors(graph, scores[:, graph.states]).log_likelihood[0] == pytest.approx(truth.total, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_backing_off_takes_the_best_way_of_each_string(monkeypatch, seed):
    monkeypatch.setattr("margo.model.ngram.EXACT", 0)
    hmms, ngram, rng = spoken_by(3, False, seed)
    assert any(way.word is None for way in ngram.automaton.ways)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (4, 2)))
    exact = []

    def extra(string):
        words = [hmms.words[word] for word in string]
        padded = [START, *words, END]
        exact.append(sum(ngram.log_prob(padded[:i], padded[i]) for i in range(1, len(padded))))
        assert ngram.automaton.string_score(words) >= exact[-1] - 1e-12  # of an interpolated model, never less
        return ngram.automaton.string_score(words)

    truth = enumerate_all(hmms, scores, list(loop_strings(hmms, 4)), extra)
    graph = automaton_graph(hmms, ngram.automaton)
    assert viterbi(graph, scores[:, graph.states]).score == pytest.approx(truth.best, abs=1e-10)


@pytest.mark.parametrize("order", [2, 3])
def test_a_models_grammar_scores_strings_as_its_graph(order):
    hmms, ngram, rng = spoken_by(order, False, 7)
    table = ngram_grammar(ngram, hmms.words)
    assert table["kind"] == ("ngram" if order == 3 else "bigram")
    hmms = with_grammar(replace(hmms, meta={"grammar": table}), scale=0.8)
    for string in (["w0"], ["w1", "w0", "w1"], ["w0", "w0"]):
        padded = [START, *string, END]
        expected = 0.8 * sum(ngram.log_prob(padded[:i], padded[i]) for i in range(1, len(padded)))
        assert string_score(hmms, string) == pytest.approx(expected, abs=1e-12)
    graph = recognition_graph(hmms)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (5, 2)))[:, graph.states]
    assert viterbi(graph, scores).score > -np.inf
