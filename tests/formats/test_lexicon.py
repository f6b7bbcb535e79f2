"""Dictionaries of three toolkits are read alike, written so that they read the same, and refused line by line."""

import math

import pytest

from margo.errors import MargoError
from margo.formats.lexicon import grapheme_lexicon, graphemes, probability, read_lexicon, write_lexicon

HALF = math.log(0.5)
READ = {"A": ((("AH",), HALF), (("EY",), HALF)), "NO": ((("N", "OW"), 0.0),)}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("an4.dic", ";;; a comment\nA  AH\nA(2)  EY\nNO\tN OW # as in English\n", READ),
        ("lexicon.txt", "A AH\nA EY\nNO N OW\n", READ),
        ("lexiconp.txt", "A 0.5 AH\nA 0.5 EY\nNO 1 N OW\n", READ),
        ("dict", "A 0.5 AH\nA [A] 0.5 EY\nNO [NO] N OW\n", READ),
        ("dict", "SENT-END [] sil\nyes [yes] 0.9 y e s\n", {"yes": ((("y", "e", "s"), math.log(0.9)),)}),
        ("dict", "\\'em 1.0 em\n", {"'em": ((("em",), 0.0),)}),
        ("lexicon.txt", "f(2) a\n", {"f(2)": ((("a",), 0.0),)}),  # no variant where there is no f
        ("lexicon.txt", "\\\\'x a\n\\x b\n", {"\\'x": ((("a",), 0.0),), "\\x": ((("b",), 0.0),)}),  # as they stand
        ("lexicon.txt", "two 2\n", {"two": ((("2",), 0.0),)}),  # a unit, not a probability
    ],
)
def test_dictionaries_of_three_toolkits(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    found, silent = read_lexicon(tmp_path / name)
    assert found == words
    assert silent == ({"SENT-END": ("sil",)} if "SENT" in text else {})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("dict", "yes y\nno\n", "line 2: 'no', expected: word units"),
        ("dict", "yes [no] y\n", "line 1"),
        ("dict", "\n", "no words"),
        ("dict", "yes y e s\nyes y e s\n", "line 2: yes has this pronunciation already"),
        ("dict", "yes 0.5 y\nyes j\n", "yes: some pronunciations have a probability, others have none"),
        ("dict", "yes 1.5 y\n", "line 1: 'yes 1.5 y': probability 1.5, expected more than 0, at most 1"),
        ("dict", "yes 0.0 y\n", "probability 0.0"),
        ("lexiconp.txt", "yes y e s\n", "line 1: 'yes y e s': probability None"),
    ],
)
def test_dictionaries_that_are_refused(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(MargoError, match=said):
        read_lexicon(tmp_path / name)


@pytest.mark.parametrize("name", ["lexicon.txt", "lexiconp.txt"])
def test_what_is_written_reads_the_same(tmp_path, name):
    words = {**READ, "OH": ((("OW",), math.log(0.7)), (("OW", "AH"), math.log(1e-9)))}
    from margo.model.hmm import pronounced

    write_lexicon(tmp_path / name, pronounced(words), "sil" if name == "lexicon.txt" else None)
    found, silent = read_lexicon(tmp_path / name)
    assert found.keys() == words.keys() and len(silent) == (name == "lexicon.txt")
    for word, ways in words.items():
        assert [way.units for way in found[word]] == [units for units, _ in ways]
        assert [way.log_prob for way in found[word]] == pytest.approx([log_prob for _, log_prob in ways], abs=1e-9)


HTK = """\\'cause k\nyes [\\171es] "y" e s\n"a b" 'd' e\na\\\\b "\\"x"\n\\303\\251 1.0 7\n"""


def test_what_is_known_to_be_htks_has_its_quotes_and_backslashes(tmp_path):
    """The rules of HTK's ReadString; the last line has a probability because HTK would take the unit for one."""
    (tmp_path / "dict").write_text(HTK)
    found, _ = read_lexicon(tmp_path / "dict", htk=True)
    said = {"'cause": "k", "yes": "y e s", "a b": "d e", "a\\b": '"x', "\u00e9": "7"}
    assert {word: " ".join(way.units) for word, (way,) in found.items()} == said
    del found["a b"]  # no word of ours has a space
    write_lexicon(tmp_path / "again", found, "'sil", htk=True)
    text = "!SILENCE [] \\'sil\n\\'cause k\na\\\\b \\\"x\nyes y e s\n\u00e9 1.0 7\n"
    assert (tmp_path / "again").read_text() == text
    assert read_lexicon(tmp_path / "again", htk=True) == (found, {"!SILENCE": ("'sil",)})
    open_quote = "line 2: .*a quote that is not closed; .* is written .'"
    for text, said in (("yes y\n'cause k\n", open_quote), ("\\ y\n", "line 1"), ("a \\\n", "nothing behind a backsl")):
        (tmp_path / "dict").write_text(text)
        with pytest.raises(MargoError, match=said):
            read_lexicon(tmp_path / "dict", htk=True)


def test_probabilities_have_no_exponent():
    assert probability(0.0) == "1.0" and "e" not in probability(-30) and math.log(float(probability(-3))) == -3


def test_graphemes():
    assert graphemes("L'\u00c9te\u0301-2") == ("l", "\u00e9", "t", "\u00e9", "2")
    assert graphemes("\u0e01\u0e34\u0e19") == ("\u0e01\u0e34", "\u0e19")  # a vowel mark belongs to its consonant
    assert grapheme_lexicon(["no"]) == {"no": ((("n", "o"), 0.0),)}
    with pytest.raises(MargoError, match="--: no letter or digit"):
        grapheme_lexicon(["no", "--"])
