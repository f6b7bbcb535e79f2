"""Words in a prefix tree: the best path, its words and times, and the sums over all paths are those of brute force, of
phones and of states tied by decision trees."""

from dataclasses import replace

import numpy as np
import pytest

from margo.estimate.tying import TyingOptions, context_stats, in_context, tied
from margo.gaussian.pool import single_gaussians
from margo.model.grammar import grammar, ngram_grammar, search_graph
from margo.model.graph import OPEN, automaton_graph, loop_graph
from margo.model.hmm import HmmSet, flat_start
from margo.model.ngram import END, START, witten_bell
from margo.model.tree import automaton_tree, loop_tree
from margo.search.forward_backward import posteriors
from margo.search.viterbi import viterbi
from oracles import enumerate_all, log_gaussians, loop_strings, random_transitions

# A beginning that all share, a word that is the beginning of others, one that sounds like another, two ways to say one.
LEXICON = {
    "ab": ("a", "b"),
    "abc": ("a", "b", "c"),
    "ap": ("a", "b"),
    "c": [(("c",), np.log(0.3)), (("a", "b", "c", "d"), np.log(0.7))],
}
STRINGS = [("ab", "c"), ("abc",), ("c", "ab", "ab"), ("ap", "abc"), ("c", "c")]
FRAMES = 4


def spoken(seed, silence=True):
    """A model of one state a phone, and a source of random numbers."""
    rng = np.random.default_rng(seed)
    hmms = flat_start(LEXICON, 1, np.zeros(2), np.ones(2), silence="sil" if silence else None, silence_states=1)
    units = tuple(replace(unit, log_transitions=random_transitions(rng, 1, False)) for unit in hmms.units)
    pool = single_gaussians(rng.normal(0, 1.5, (len(units), 2)), rng.uniform(0.5, 2, (len(units), 2)))
    return HmmSet(pool, units, hmms.lexicon, hmms.silence), rng


def tied_by_trees(hmms, rng):
    """The model with phones in context, whose states decision trees have tied after words that it said itself."""
    copies, named = in_context(hmms)
    pause = [] if hmms.silence is None else [hmms.units[hmms.unit_index["sil"]].states[0]]
    utterances = []
    for number, word in enumerate([*hmms.words] * 12):
        said = [hmms.units[hmms.unit_index[name]].states[0] for name in hmms.lexicon[word][-1].units]
        frames = np.repeat(hmms.pool.means[pause + said], 3, axis=0)
        utterances.append((f"u{number}", frames + rng.normal(0, 0.7, frames.shape), (word,)))
    options = TyingOptions(leaves=7, least_frames=5, least_gain=0)
    model, _ = tied(copies, named, context_stats(copies, utterances), options)
    assert len(hmms.units) < len(model.units) < len(copies.units)  # some contexts are parted, others not
    return model


def strings_of(hmms):
    """All strings that the frames are enough for."""
    least = [hmms.least_frames(word) for word in hmms.words]
    return [string for string in loop_strings(hmms, FRAMES) if sum(least[word] for word in string) <= FRAMES]


def extra_of(hmms, ngram):
    def extra(string):
        padded = [START, *(hmms.words[word] for word in string), END]
        return 1.3 * sum(ngram.log_prob(padded[:i], padded[i]) for i in range(1, len(padded))) - 0.7 * len(string)

    return extra


def is_truth(graph, scores, truth):
    """The graph's best path and its sums over all paths are those of the enumeration."""
    local = scores[:, graph.states]
    path = viterbi(graph, local)
    assert path.score == pytest.approx(truth.best, abs=1e-10) and tuple(path.states) == truth.best_states
    assert truth.strings[tuple(word.index for word in path.words)] == pytest.approx(truth.best, abs=1e-10)
    found = posteriors(graph, local)
    assert found.log_likelihood[0] == pytest.approx(truth.total, abs=1e-10)
    np.testing.assert_allclose(found.occupancies, truth.occupancies[:, graph.states], atol=1e-10)


def is_flat(graph, flat, rng):
    """Longer paths of the graph: words, their times and units are those of the flat graph."""
    for frames in (5, 9, 30, 80):
        scores = rng.normal(-3, 2, (frames, len(graph.states)))
        one, other = viterbi(graph, scores), viterbi(flat, scores)
        assert one.score == pytest.approx(other.score, abs=1e-9)
        assert (one.words, one.units, one.states.tolist()) == (other.words, other.units, other.states.tolist())


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_tree_of_words_gives_the_best_path_and_score_of_brute_force(order, tie):
    hmms, rng = spoken(order, silence=order != 2)
    hmms = tied_by_trees(hmms, rng) if tie else hmms
    ngram = witten_bell(STRINGS, hmms.words, order)
    graph, flat = automaton_tree(hmms, ngram.automaton, 1.3, -0.7), automaton_graph(hmms, ngram.automaton, 1.3, -0.7)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (FRAMES, 2)))
    truth = enumerate_all(hmms, scores, strings_of(hmms), extra_of(hmms, ngram))
    is_truth(graph, scores, truth)
    is_truth(flat, scores, truth)
    is_flat(graph, flat, rng)


@pytest.mark.parametrize("tie", [False, True])
def test_a_loop_of_words_in_a_tree(tie):
    hmms, rng = spoken(7)
    lexicon = {word: ways for word, ways in hmms.lexicon.items() if word != "ap"}  # in a loop it would be as good as ab
    hmms = replace(hmms, lexicon=lexicon)
    hmms = tied_by_trees(hmms, rng) if tie else hmms
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (FRAMES, 2)))
    truth = enumerate_all(hmms, scores, strings_of(hmms), lambda string: -0.7 * len(string))
    is_truth(loop_tree(hmms, -0.7), scores, truth)
    is_flat(loop_tree(hmms, -0.7), loop_graph(hmms, -0.7), rng)


def test_backing_off_in_a_tree_is_that_of_the_flat_graph(monkeypatch):
    monkeypatch.setattr("margo.model.ngram.EXACT", 0)
    for order in (2, 3):
        hmms, rng = spoken(order)
        ngram = witten_bell(STRINGS, hmms.words, order)
        assert ngram.backs_off
        weighed = (hmms, ngram.automaton, 1.3, -0.7)
        is_flat(automaton_tree(*weighed), automaton_graph(*weighed), rng)


def test_words_share_what_they_begin_with():
    hmms, _ = spoken(1, silence=False)
    flat, graph = loop_graph(hmms), loop_tree(hmms)
    assert flat.n_emitting == sum(len(hmms.states_of(word)) for word in hmms.words) == 12
    assert graph.n_emitting == 5  # a b c d, and c alone
    assert (graph.node_word == OPEN).sum() == 3  # a, b and c of abc and c


def test_what_the_grammar_adds_is_on_the_way_as_soon_as_it_is_known():
    hmms, _ = spoken(1, silence=False)
    ngram = witten_bell(STRINGS, hmms.words, 1)
    graph = automaton_tree(hmms, ngram.automaton)
    values = [ngram.log_prob((), word) + way.log_prob for word, ways in hmms.lexicon.items() for way in ways
              if way.units[0] == "a"]  # fmt: skip
    entered = graph.arcs.word == OPEN  # the beginning that all but one share, behind the start and behind a word
    np.testing.assert_allclose(graph.arcs.log_prob[entered], [max(values)] * 2, rtol=1e-12)


def test_a_large_vocabulary_is_searched_in_a_tree(monkeypatch):
    hmms, rng = spoken(3)
    strings = [tuple(rng.choice(hmms.words, 4).tolist()) for _ in range(10)]
    ngram = witten_bell(strings, hmms.words, 2)
    monkeypatch.setattr("margo.model.grammar.MOST", 1)
    monkeypatch.setattr("margo.model.ngram.EXACT", 0)
    for table in (grammar("loop", -1.0), ngram_grammar(ngram, hmms.words)):
        model = replace(hmms, meta={"grammar": table})
        assert not (search_graph(model).node_word == OPEN).any()  # four words are few
        with monkeypatch.context() as patch:
            patch.setattr("margo.model.grammar.FEW", 3)
            assert (search_graph(model).node_word == OPEN).any()
