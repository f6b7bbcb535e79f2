"""HTK's dictionary and word networks: grammars written and read again, and what cannot be one is refused."""

from dataclasses import replace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.htk_net import NULL, pair_table, read_net, write_net
from margo.formats.lexicon import read_lexicon, write_lexicon
from margo.formats.models import read_model, write_model
from margo.model.grammar import grammar, recognition_graph, string_score
from margo.search.nbest import nbest
from oracles import enumerate_all, random_hmms


def model(kind="loop", **how):
    hmms = random_hmms(np.random.default_rng(1))
    size = len(hmms.words) + 1
    if kind == "bigram":
        rows = np.random.default_rng(2).dirichlet(np.ones(size), size)
        rows[0, 1] = 0.0  # a pair that is forbidden
        with np.errstate(divide="ignore"):
            how["log_bigram"] = np.log(rows)
    return replace(hmms, meta={"grammar": grammar(kind, **how)})


@pytest.mark.parametrize(
    ("kind", "how"), [("isolated", {}), ("loop", {"insertion_penalty": -12.5}), ("loop", {}),
                      ("bigram", {"insertion_penalty": 3.0, "scale": 5.0})]
)  # fmt: skip
def test_a_grammar_written_is_read_again(tmp_path, kind, how):
    hmms = model(kind, **how)
    write_lexicon(tmp_path / "dict", hmms.lexicon, hmms.silence, htk=True)
    write_net(tmp_path / "net", hmms)
    words, silent = read_lexicon(tmp_path / "dict", htk=True)
    assert words == hmms.lexicon and list(silent.values()) == [(hmms.silence,)]
    again, obligatory = read_net(tmp_path / "net", hmms.words, set(silent))
    assert not obligatory
    back = replace(hmms, meta={"grammar": again})
    np.testing.assert_allclose(pair_table(back), pair_table(hmms), rtol=1e-8)
    if kind != "bigram":
        assert again == hmms.meta["grammar"]
    assert recognition_graph(back).n_emitting == recognition_graph(hmms).n_emitting


def lattice(words, arcs):
    nodes = "\n".join(f"I={n} W={word}" for n, word in enumerate(words))
    return f"VERSION=1.0\nN={len(words)} L={len(arcs)}\n{nodes}\n" + "\n".join(f"J={n} {a}" for n, a in enumerate(arcs))


def test_words_that_may_follow_each_other(tmp_path):
    """yes (no)* between obligatory silences, with a log probability to base 10."""
    arcs = ["S=0 E=1", "S=1 E=2", "S=2 E=3 l=-1", "S=3 E=3 l=-2", "S=2 E=4", "S=3 E=4", "S=4 E=5"]
    text = lattice([NULL, "SIL", "yes", "no", "SIL", NULL], arcs)
    (tmp_path / "net").write_text("base=10\n" + text)
    table, obligatory = read_net(tmp_path / "net", ("yes", "no"), {"SIL"})
    ten = np.log(10)
    assert obligatory and table["kind"] == "bigram"
    np.testing.assert_allclose(np.array([[np.nan if v is None else v for v in row] for row in table["log_bigram"]]),
                               [[np.nan, -ten, 0], [np.nan, -2 * ten, 0], [0, np.nan, np.nan]])  # fmt: skip


@pytest.mark.parametrize(
    ("words", "arcs", "said"),
    [
        ([NULL, "maybe", NULL], ["S=0 E=1", "S=1 E=2"], "maybe is not a word of the model"),
        ([NULL, "yes"], ["S=0 E=7"], "arc 0 to 7: no such node"),
        ([NULL, "yes"], ["S=0 E=one"], "expected I= W=, or J= S= E= l="),
        ([NULL, NULL, "yes"], ["S=0 E=2", "S=1 E=2"], "2 nodes without an arc into them, expected one"),
        ([NULL, "yes"], ["S=0 E=1 W=yes"], "words or scores on arcs"),
        ([NULL, "yes"], ["S=0 E=1 l=1e300"], "line 5: 'J=0 S=0 E=1 l=1e300', expected I= W="),
        ([NULL, '"yes'], ["S=0 E=1"], "line 4: .*a quote that is not closed"),
        ([NULL, "yes\nI=1 W=no"], ["S=0 E=1"], "line 5: node 1 is there already"),
        ([NULL, "yes L=sub"], ["S=0 E=1"], "sub-networks are not read"),
        ([NULL, "yes"], ["S=0 E=1\nbase=0"], "line 6: base 0, expected more than 0, not 1"),
        ([NULL, "yes"], ["S=0 E=1\nN=2 L=3"], "L is 3, the file has 1"),
        ([NULL, NULL, "yes"], ["S=0 E=1", "S=1 E=1 l=1", "S=1 E=2"], "a ring of nodes without words"),
    ],
)
def test_networks_that_are_refused(tmp_path, words, arcs, said):
    (tmp_path / "net").write_text(lattice(words, arcs))
    with pytest.raises(MargoError, match=said):
        read_net(tmp_path / "net", ("yes", "no"), set())


def test_strings_and_comments_are_htks(tmp_path):
    """A # within a value is of the word, one where a name could stand begins a comment; 'a' and "a" are a."""
    text = lattice(["don't # W=no", "W=no", "\\'cause", "'a#b'  # last"], ["S=0 E=1", "S=1 E=2", "S=2 E=3"])
    (tmp_path / "net").write_text(text)
    words = ("don't", "W=no", "'cause", "a#b")
    table, _ = read_net(tmp_path / "net", words, set())
    assert [row.index(0) for row in table["log_bigram"]] == [1, 2, 3, 4, 0]


def test_a_network_may_begin_with_a_word(tmp_path):
    (tmp_path / "net").write_text(lattice(["yes", "no"], ["S=0 E=1"]))
    table, _ = read_net(tmp_path / "net", ("yes", "no"), set())
    assert table["log_bigram"] == [[None, 0, None], [None, None, 0], [0, None, None]]


def test_a_network_that_remembers_more_than_a_word_is_rules(tmp_path):
    """yes no yes | no (yes | yes yes): two ways from one place over the same word, and log probabilities."""
    words = [NULL, "yes", "no", "yes", "no", "yes", "yes", "yes", NULL]
    arcs = ["S=0 E=1 l=-1", "S=1 E=2", "S=2 E=3", "S=3 E=8", "S=0 E=4", "S=4 E=5 l=-3", "S=4 E=6", "S=6 E=7 l=-0.5",
            "S=5 E=8", "S=7 E=8"]  # fmt: skip
    (tmp_path / "net").write_text(lattice(words, arcs))
    table, obligatory = read_net(tmp_path / "net", ("yes", "no"), {"SIL"})
    assert table["kind"] == "rules" and not obligatory
    hmms = random_hmms(np.random.default_rng(3), words=2, states=1)
    hmms = replace(hmms, lexicon=dict(zip(("yes", "no"), hmms.lexicon.values())), meta={"grammar": table})
    expected = {("yes", "no", "yes"): -1.0, ("no", "yes"): -3.0, ("no", "yes", "yes"): -0.5}
    for string, score in expected.items():
        assert string_score(hmms, string) == score
    assert string_score(hmms, ("yes", "no")) == string_score(hmms, ("no",)) == -np.inf
    scores = np.random.default_rng(4).normal(-3, 2, (9, hmms.pool.n_states))
    graph = recognition_graph(hmms)
    found = nbest(graph, scores[:, graph.states], 3)
    truth = enumerate_all(hmms, scores[:6], [(0, 1, 0), (1, 0), (1, 0, 0)],
                          lambda s: expected[tuple(hmms.words[i] for i in s)])  # fmt: skip
    assert {each.names for each in found} == {*expected}
    short = nbest(graph, scores[:6, graph.states], 3)
    assert [each.score for each in short] == pytest.approx(sorted(truth.strings.values(), reverse=True), abs=1e-10)
    write_model(tmp_path / "model.npz", hmms)
    assert read_model(tmp_path / "model.npz").automaton.ways == hmms.automaton.ways


def test_a_word_that_can_be_entered_twice_counts_once_among_the_n_best(tmp_path):
    """yes | no | no [yes]"""
    arcs = ["S=0 E=1", "S=0 E=2", "S=0 E=3", "S=1 E=5", "S=2 E=5", "S=3 E=5", "S=2 E=4 l=-3", "S=4 E=5"]
    (tmp_path / "net").write_text(lattice([NULL, "yes", "no", "no", "yes", NULL], arcs))
    table, _ = read_net(tmp_path / "net", ("yes", "no"), set())
    for seed in range(10):
        hmms = random_hmms(np.random.default_rng(seed), words=2, states=1)
        hmms = replace(hmms, lexicon=dict(zip(("yes", "no"), hmms.lexicon.values())), meta={"grammar": table})
        graph = recognition_graph(hmms)
        found = nbest(graph, np.random.default_rng(seed).normal(-3, 2, (8, len(graph.states))), 3)
        assert {each.names for each in found} == {("yes",), ("no",), ("no", "yes")}
