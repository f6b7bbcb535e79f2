"""Bigrams against their definition, written out pair by pair."""

from collections import Counter

import numpy as np
import pytest

from margo.errors import MargoError
from margo.model.bigram import bigram_counts, log_bigram
from margo.model.grammar import grammar, recognition_graph, string_score, weighed_grammar, with_grammar
from margo.model.hmm import flat_start, whole_words
from margo.search.viterbi import viterbi

WORDS = ("a", "b", "c", "d")
STRINGS = [["a", "b", "a", "c"], ["b", "a"], ["a", "a", "a", "b"], ["c"]]  # d never occurs


def definition(strings, words, following, previous):
    """P(following | previous) of absolute discounting from counted pairs; ``#`` is the boundary."""
    pairs = Counter(pair for string in strings for pair in zip(["#", *string], [*string, "#"]))
    symbols = [*words, "#"]
    once, twice = (sum(count == n for count in pairs.values()) for n in (1, 2))
    d = once / (once + 2 * twice)
    total = sum(pairs.values())
    unigram = (sum(pairs[v, following] for v in symbols) + 1) / (total + len(symbols))
    context = sum(pairs[previous, w] for w in symbols)
    if not context:
        return unigram
    followers = sum(pairs[previous, w] > 0 for w in symbols)
    return max(pairs[previous, following] - d, 0) / context + d * followers / context * unigram


def test_probabilities_are_those_of_the_definition():
    table = np.exp(log_bigram(bigram_counts(STRINGS, WORDS)))
    symbols = [*WORDS, "#"]
    for i, previous in enumerate(symbols):
        for j, following in enumerate(symbols):
            assert table[i, j] == pytest.approx(definition(STRINGS, WORDS, following, previous), rel=1e-12)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)
    assert (table > 0).all()


def test_counts_hold_starts_and_ends():
    counts = bigram_counts(STRINGS, WORDS)
    assert counts[-1].tolist() == [2, 1, 1, 0, 0]  # first words
    assert counts[:, -1].tolist() == [1, 1, 2, 0, 0]  # last words
    assert counts[0, 1] == 2 and counts.sum() == sum(len(string) + 1 for string in STRINGS)


def test_unknown_words_are_named():
    with pytest.raises(MargoError, match="x y"):
        bigram_counts([["a", "y", "x"]], WORDS)


@pytest.fixture
def hmms():
    table = grammar("bigram", -2.0, log_bigram(bigram_counts(STRINGS, WORDS)), 3.0)
    return flat_start(whole_words(WORDS), 1, np.zeros(2), np.ones(2), meta={"grammar": table})


def test_what_a_string_costs_is_the_sum_of_its_pairs(hmms):
    expected = 3 * sum(np.log(definition(STRINGS, WORDS, w, v)) for v, w in [("#", "b"), ("b", "d"), ("d", "#")]) - 4
    assert string_score(hmms, ["b", "d"]) == pytest.approx(expected, rel=1e-12)
    assert string_score(weighed_grammar(hmms, 0.25), ["b", "d"]) == pytest.approx(expected / 4, rel=1e-12)


class Counted(list):
    """A table that counts how often it is read from end to end."""

    reads = 0

    def __iter__(self):
        Counted.reads += 1
        return super().__iter__()


def test_the_table_is_read_once_however_many_strings_are_scored(hmms):
    rows = Counted(hmms.meta["grammar"]["log_bigram"])
    counted, Counted.reads = with_grammar(hmms, log_bigram=rows), 0
    scores = {string_score(counted, string) for string in STRINGS * 5}
    assert len(scores) == len(STRINGS) and Counted.reads == 1
    recognition_graph(counted)
    assert Counted.reads == 1
    other = with_grammar(counted, log_bigram=[[0.0] * 5] * 5)  # another table is another model
    assert string_score(other, ["a"]) == -2.0


def test_the_graph_adds_what_the_grammar_says(hmms):
    """All states alike: frames and transitions count the same for all strings, the grammar decides."""
    scores = np.zeros((2, 4))
    stay, leave = np.log(0.6), np.log(0.4)
    for changed in (hmms, with_grammar(hmms, insertion_penalty=5.0), weighed_grammar(hmms, 0.1)):
        path = viterbi(recognition_graph(changed), scores)
        strings = [(w,) for w in WORDS] + [(v, w) for v in WORDS for w in WORDS]
        def score(string, changed=changed):
            return string_score(changed, string) + len(string) * leave + (2 - len(string)) * stay
        best = max(strings, key=score)
        assert path.word_names == best
        assert path.score == pytest.approx(score(best), rel=1e-12)
