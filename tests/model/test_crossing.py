"""Units that know their neighbours in other words: graphs of strings and of grammars against brute force, which writes
out the units of every string, every pronunciation and every pause one by one."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import oracles
from margo.errors import MargoError
from margo.formats.models import read_model, write_model
from margo.gaussian.pool import single_gaussians
from margo.model.automaton import of_rules
from margo.model.grammar import (
    grammar,
    ngram_grammar,
    recognition_graph,
    rules_grammar,
    search_graph,
    string_score,
    with_table,
)
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet, Unit
from margo.model.ngram import witten_bell
from margo.search.forward_backward import posteriors
from margo.search.nbest import nbest
from margo.search.strings import align_strings
from margo.search.viterbi import viterbi
from oracles import enumerate_all, log_gaussians, loop_strings, random_transitions

# One phone, two, three, and two ways to say a word, which begin and end alike or not.
PHONES = "abc"
LEXICON = {"a": [("a",)], "ab": [("a", "b")], "c": [("c",), ("b", "a", "c")], "bc": [("b", "c"), ("b", "a")]}
FRAMES = 4
STRINGS = [("ab", "c"), ("bc",), ("c", "a", "a"), ("a", "bc"), ("c", "c")]


def crossing_model(seed, silence=True, shared=2):
    """A unit for each class of neighbours: those to the left, and to the right, fall into ``shared`` classes."""
    rng = np.random.default_rng(seed)
    count = len(PHONES)
    sides = [rng.integers(0, shared, (count, count + 1)) for _ in range(2)]
    table = np.empty((count + 1, count, count + 1), np.int64)
    for left, phone, right in product(range(count + 1), range(count), range(count + 1)):
        table[left, phone, right] = (phone * shared + sides[0][phone, left]) * shared + sides[1][phone, right]
    kept, table = np.unique(table, return_inverse=True)
    table = table.reshape(count + 1, count, count + 1)
    total = len(kept) + silence
    states = [rng.permutation(total)[:1] for _ in range(total)]  # some are shared
    units = tuple(Unit(f"u{number}" if number < len(kept) else "sil", states[number], random_transitions(rng, 1, False))
                  for number in range(total))  # fmt: skip
    pool = single_gaussians(rng.normal(0, 1.5, (total, 2)), rng.uniform(0.5, 2, (total, 2)))
    lexicon = {}
    for word, ways in LEXICON.items():
        rows = [[count, *map(PHONES.index, way), count] for way in ways]
        lexicon[word] = [(tuple(f"u{table[each]}" for each in zip(row, row[1:], row[2:])), np.log(1 / len(ways)))
                         for row in rows]  # fmt: skip
    return HmmSet(pool, units, lexicon, "sil" if silence else None, crossing=table), rng


def written_out(hmms, strings):
    """(string, units, log probability of pronunciations): every string in every way, with and without pauses."""
    edge, quiet = len(PHONES), hmms.unit_index.get("sil")
    for string in strings:
        pauses = product((False, True) if quiet is not None else (False,), repeat=len(string) + 1)
        for pause, ways in product(pauses, [*product(*(LEXICON[hmms.words[word]] for word in string))]):
            row = [(None, -1)] * pause[0]
            for word, way, quiet_behind in zip(string, ways, pause[1:]):
                row += [(PHONES.index(phone), word) for phone in way] + [(None, -1)] * quiet_behind
            heard = [edge, *(edge if phone is None else phone for phone, _ in row), edge]
            units = tuple((quiet if phone is None else int(hmms.crossing[left, phone, right]), word)
                          for left, (phone, word), right in zip(heard, row, heard[2:]))  # fmt: skip
            yield string, units, -sum(np.log(len(LEXICON[hmms.words[word]])) for word in string)


def truth_of(hmms, scores, strings, monkeypatch):
    monkeypatch.setattr(oracles, "sequences", written_out)
    names = {string: [hmms.words[word] for word in string] for string in strings}
    return enumerate_all(hmms, scores, strings, lambda string: string_score(hmms, names[string]))


def strings_of(hmms):
    least = [hmms.least_frames(word) for word in hmms.words]
    return [string for string in loop_strings(hmms, FRAMES) if sum(least[word] for word in string) <= FRAMES]


def grammars(hmms):
    ngram = witten_bell(STRINGS, hmms.words, 2)
    ab, c = (("word", word) for word in ("ab", "c"))
    return {
        "isolated": grammar("isolated"), "loop": grammar("loop", -0.7),
        "bigram": grammar("bigram", -0.4, ngram.pairs(hmms.words), 1.3),
        "trigram": ngram_grammar(witten_bell(STRINGS, hmms.words, 3), hmms.words),
        "rules": rules_grammar(of_rules(("some", ("any", ("all", ab, c), ("all", c, ("word", "a")))))),
    }  # fmt: skip


def is_best(graph, scores, truth):
    path = viterbi(graph, scores[:, graph.states])
    assert path.score == pytest.approx(truth.best, abs=1e-10) and tuple(path.states) == truth.best_states
    assert truth.strings[tuple(word.index for word in path.words)] == pytest.approx(truth.best, abs=1e-10)


def is_truth(graph, scores, truth):
    is_best(graph, scores, truth)
    found = posteriors(graph, scores[:, graph.states])
    assert found.log_likelihood[0] == pytest.approx(truth.total, abs=1e-10)
    np.testing.assert_allclose(found.occupancies, truth.occupancies[:, graph.states], atol=1e-10)
    counts = graph.transition_counts(found.arc_counts, len(truth.transitions))
    np.testing.assert_allclose(counts, truth.transitions, atol=1e-10)


@pytest.mark.parametrize("silence", [True, False])
@pytest.mark.parametrize("kind", ["isolated", "loop", "bigram", "trigram", "rules"])
def test_a_grammar_gives_the_paths_and_sums_of_brute_force(kind, silence, monkeypatch):
    hmms, rng = crossing_model(1, silence)
    hmms = with_table(hmms, grammars(hmms)[kind])
    strings = [(word,) for word in range(len(hmms.words))] if kind == "isolated" else strings_of(hmms)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (FRAMES, 2)))
    truth = truth_of(hmms, scores, strings, monkeypatch)
    is_truth(recognition_graph(hmms), scores, truth)
    is_truth(search_graph(hmms), scores, truth)


def test_ways_without_words_lead_from_gate_to_gate(monkeypatch):
    monkeypatch.setattr("margo.model.ngram.EXACT", 0)  # n-grams back off; sums then hold strings more than once
    hmms, rng = crossing_model(4)
    hmms = with_table(hmms, grammars(hmms)["trigram"])
    assert hmms.ngram.backs_off
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (FRAMES, 2)))
    is_best(recognition_graph(hmms), scores, truth_of(hmms, scores, strings_of(hmms), monkeypatch))


@pytest.mark.parametrize("silence", [True, False])
@pytest.mark.parametrize("words", [("c",), ("a", "a"), ("c", "bc"), ("bc", "a", "c")])
def test_a_transcript_gives_the_paths_and_sums_of_brute_force(words, silence, monkeypatch):
    hmms, rng = crossing_model(2, silence)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (FRAMES + 1, 2)))
    string = tuple(hmms.word_index[word] for word in words)
    truth = truth_of(with_table(hmms, grammar("loop")), scores, [string], monkeypatch)
    is_truth(align_graph(hmms, words), scores, truth)


def test_no_neighbours_but_those_that_were_said(monkeypatch):
    """A deliberate mistake, silence that changes nothing for the words beside it, is seen."""
    hmms, rng = crossing_model(3)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (FRAMES, 2)))
    wrong = hmms.crossing.copy()
    wrong[-1] = wrong[0]
    truth = truth_of(hmms, scores, strings_of(hmms), monkeypatch)
    with pytest.raises(AssertionError):
        is_truth(recognition_graph(replace(hmms, crossing=wrong)), scores, truth)


@pytest.mark.parametrize("seed", range(3))
def test_strings_and_lists_agree(seed):
    """Lists of the best strings have the scores of the strings' own best paths, aligned one by one and together."""
    hmms, rng = crossing_model(seed, silence=seed != 1, shared=3)
    hmms = with_table(hmms, grammars(hmms)["bigram"])
    graph = recognition_graph(hmms)
    scores = log_gaussians(hmms.pool, rng.normal(0, 1.5, (12, 2)))[:, graph.states]
    lists = nbest(graph, scores, 8)
    together = align_strings(hmms, [each.words for each in lists], scores, graph.states)
    assert len({each.words for each in lists}) == 8 and lists[0].score == pytest.approx(viterbi(graph, scores).score)
    for place, each in enumerate(lists):
        forced = viterbi(align_graph(hmms, each.names, graph.states), scores)
        assert each.score == pytest.approx(forced.score + string_score(hmms, each.names), abs=1e-9)
        assert together.scores[place] == pytest.approx(forced.score, abs=1e-9)
        np.testing.assert_array_equal(together.states[place], forced.states)
        assert [word.index for word in forced.words] == [*each.words]


def test_a_word_has_the_states_of_all_its_neighbours():
    hmms, _ = crossing_model(0)
    for word in hmms.words:
        graph = align_graph(hmms, ["a", word, "bc"])
        own = graph.states[graph.arcs.column[graph.node_word == hmms.word_index[word]]]
        assert {*own} <= {*hmms.states_of(word)}


def test_the_table_is_kept_and_checked(tmp_path):
    hmms, _ = crossing_model(0)
    write_model(tmp_path / "model.npz", hmms)
    np.testing.assert_array_equal(read_model(tmp_path / "model.npz").crossing, hmms.crossing)
    for wrong, message in [
        (hmms.crossing[:-1], r"expected integers \[P \+ 1, P, P \+ 1\]"),
        (hmms.crossing + 100, "crossing: expected units 0 to"),
        (np.zeros_like(hmms.crossing), "unit u0 stands for two phones"),
        (np.where(hmms.crossing == 0, len(hmms.units) - 1, hmms.crossing), "silence sil is a phone with neighbours"),
    ]:
        with pytest.raises(MargoError, match=message):
            replace(hmms, crossing=wrong)
    lonely = np.broadcast_to(np.arange(3)[:, None], hmms.crossing.shape) + 0
    with pytest.raises(MargoError, match="word c: no phone of unit"):
        replace(hmms, crossing=lonely)
