"""Grammars from files and from transcripts, in training and in decoding; pruned searches through the steps."""

from itertools import product

import numpy as np
import pytest

from contests import feature_folders
from margo.errors import MargoError
from margo.formats.arpa import read_arpa
from margo.formats.grammars import read_grammar
from margo.formats.htk_net import is_net
from margo.formats.models import read_model
from margo.formats.transcripts import read_transcripts
from margo.model.automaton import Automaton, Way
from margo.model.ngram import END, START, kneser_ney
from margo.runtime import record
from margo.tasks import passes, speech
from runs import go, run_step

# as HParse writes SENT-START w0 { w1 | w2 } [ w0 ] SENT-END
NET = """VERSION=1.0
N=7 L=9
I=0 W=SENT-END
I=1 W=w0
I=2 W=w1
I=3 W=w2
I=4 W=!NULL
I=5 W=w0
I=6 W=SENT-START
J=0 S=6 E=5
J=1 S=5 E=4
J=2 S=4 E=2
J=3 S=4 E=3
J=4 S=2 E=4
J=5 S=3 E=4
J=6 S=4 E=1
J=7 S=1 E=0
J=8 S=4 E=0
"""
RULES = "#JSGF V1.0;\npublic <all> = w0 (w1 | w2)* [w0];\n"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = feature_folders(tmp_path_factory.mktemp("grammars"))
    (folder / "rules.jsgf").write_text(RULES)
    return folder


def heard(root, folders, out, **options):
    run_step(root, "decode", out, **{"model": folders / "ml", "data": (folders / "dev",), **options})
    return read_transcripts(out / "dev" / "hyp"), (out / "dev" / "scores").read_text()


def follows(words):
    """The rules, by hand."""
    return words[:1] == ("w0",) and "w0" not in words[1:-1]


def test_limits_of_the_search_are_options(root, folders, tmp_path, monkeypatch):
    exact = heard(root, folders, tmp_path / "exact")
    assert heard(root, folders, tmp_path / "wide", beam=1e4) == exact
    narrow = heard(root, folders, tmp_path / "narrow", max_active=1)
    assert narrow != exact and narrow[0].keys() == exact[0].keys()
    monkeypatch.setattr(passes, "FEW", 2)  # so that three words are many, and have limits by themselves
    monkeypatch.setattr("margo.model.grammar.FEW", 2)
    graph, beam, most = passes.search_of(read_model(folders / "ml" / "model.npz"))
    assert (beam, most) == (passes.BEAM, passes.ACTIVE)
    assert heard(root, folders, tmp_path / "many") == exact
    assert passes.search_of(read_model(folders / "ml" / "model.npz"), passes.Limits(0, 0))[1:] == (np.inf, 0)


def test_decoding_by_another_grammar(root, folders, tmp_path):
    free, _ = heard(root, folders, tmp_path / "free")
    bound, _ = heard(root, folders, tmp_path / "rules", lm=folders / "rules.jsgf")
    assert not all(map(follows, free.values())) and all(map(follows, bound.values()))
    assert {name: words for name, words in free.items() if follows(words)}.items() <= bound.items()
    run_step(root, "make_lm", tmp_path / "lm", data=folders / "train", order=2)
    again, _ = heard(root, folders, tmp_path / "arpa", lm=tmp_path / "lm" / "lm.arpa", scale=3.0)
    assert again.keys() == free.keys()
    (folders / "bad.jsgf").write_text(RULES.replace("w2", "w9"))
    with pytest.raises(MargoError, match="line 2, column 25: w9 is not a word of the model"):
        heard(root, folders, tmp_path / "bad", lm=folders / "bad.jsgf")


def test_a_word_network_is_a_grammar_as_rules_are(root, folders, tmp_path):
    (tmp_path / "wdnet").write_text(NET)
    table = read_grammar(tmp_path / "wdnet", ("w0", "w1", "w2"))
    rules = Automaton(table["states"], table["start"], [Way(*way) for way in table["ways"]])
    for string in (string for size in range(1, 6) for string in product(("w0", "w1", "w2"), repeat=size)):
        assert (rules.string_score(string) == 0) == follows(string)
    assert heard(root, folders, tmp_path / "net", lm=tmp_path / "wdnet") == heard(
        root, folders, tmp_path / "rules", lm=folders / "rules.jsgf")  # fmt: skip
    (tmp_path / "wdnet").write_text(NET.replace("W=w2", "W=w9"))
    with pytest.raises(MargoError, match="wdnet: .*\n?.*w9 is not a word of the model"):
        heard(root, folders, tmp_path / "bad", lm=tmp_path / "wdnet")


def test_models_are_trained_under_rules(folders, tmp_path):
    """Utterances that the rules do not allow are left out, and told."""
    few = {"states": 1, "mixtures": 1, "iterations": 2, "anneal": 0, "penalties": ("none",)}
    go(folders, tmp_path / "ml", "ml", grammar="lm", lm=folders / "rules.jsgf", **few)
    hmms = read_model(tmp_path / "ml" / "model.npz")
    assert hmms.meta["grammar"]["kind"] == "rules" and hmms.automaton.string_score(["w0", "w2", "w0"]) == 0
    lost = [item for item in speech.read(folders / "train").items if not follows(item.words)]
    with pytest.raises(MargoError, match=f"{len(lost)} of .* utterances cannot be used"):
        go(folders, tmp_path / "mmi", "mmi", init=tmp_path / "ml", penalties=("none",))


def test_bigrams_of_the_transcripts_by_kneser_ney(folders, tmp_path):
    few = {"states": 1, "mixtures": 1, "iterations": 1, "anneal": 0, "penalties": ("none",), "scales": ("none",)}
    strings = [item.words for item in speech.read(folders / "train").items]
    for kind, order in (("bigram", 2), ("trigram", 3)):
        go(folders, tmp_path / kind, "ml", grammar=kind, smoothing="kneser-ney", **few)
        hmms, expected = read_model(tmp_path / kind / "model.npz"), kneser_ney(strings, ("w0", "w1", "w2"), order)
        value = hmms.log_bigram[0, 1] if order == 2 else hmms.ngram.log_prob(("w2", "w0"), "w1")
        assert value == pytest.approx(expected.log_prob(("w2", "w0"), "w1"), abs=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_language_model_from_transcripts(root, folders, tmp_path, order):
    (tmp_path / "words").write_text("w0 a\nw1 b\nw7 c\n")
    options = {"data": folders / "train", "order": order, "test": folders / "dev", "lexicon": tmp_path / "words"}
    run_step(root, "make_lm", tmp_path / "lm", **options)
    strings = [item.words for item in speech.read(folders / "train").items if "w2" not in item.words]
    ngram, expected = read_arpa(tmp_path / "lm" / "lm.arpa"), kneser_ney(strings, ("w0", "w1", "w7"), order)
    assert ngram.order == order
    assert ngram.log_prob((START, "w0"), "w7") == pytest.approx(expected.log_prob((START, "w0"), "w7"), abs=1e-7)
    values, unknown = [], 0
    for item in speech.read(folders / "dev").items:
        padded = (START, *item.words, END)
        unknown += padded.count("w2")
        values += [expected.log_prob(padded[:n], word) for n, word in enumerate(padded) if n and word != "w2"]
    found = record.read(tmp_path / "lm")["perplexity"]
    assert found["value"] == pytest.approx(np.exp(-np.mean(values)), rel=1e-6)
    assert (found["words"], found["unknown"]) == (len(values), unknown)


def test_what_a_file_is_is_seen_at_once_whatever_its_comments(tmp_path):
    """Comments before a network are passed over in one way only; in any of 2^60 this would not end."""
    path = tmp_path / "rules"
    commented = f"# HParse #1\n\n# again\n  {NET}"
    for text, net in ((NET, True), (commented, True), (RULES, False), ("# " * 60 + "x", False)):
        path.write_text(text)
        assert is_net(path) == net
