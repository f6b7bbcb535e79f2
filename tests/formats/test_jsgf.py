"""Grammars in JSGF are read as what they say; what is wrong with one is told by line and column."""

import pytest

from margo.errors import MargoError
from margo.formats.jsgf import is_jsgf, read_jsgf
from margo.model.automaton import of_rules

GOOD = """#JSGF V1.0;
grammar phone; // a comment
/* digits
   as they are said */
<digit> = one | two | <other>;
<other> = three | "new york";
public <call> = (dial | call now) <digit>+ [please] ;
public <stop> = stop*  <NULL>;
"""
WORDS = ("one", "two", "three", "new york", "dial", "call", "now", "please", "stop")


def test_a_grammar_is_read(tmp_path):
    (tmp_path / "g").write_text(GOOD)
    found = of_rules(read_jsgf(tmp_path / "g", WORDS))
    assert is_jsgf(tmp_path / "g")
    for string in ("dial|one", "call|now|two|new york|please", "stop", "stop|stop|stop"):
        assert found.string_score(string.split("|")) == 0.0
    for string in ("dial", "call|one", "dial|one|please|please", "stop|one", "one", "please"):
        assert found.string_score(string.split("|")) == -float("inf")
    assert found.string_score(()) == -float("inf")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("#JSGF V1.0;", "grammar x;", "line 1, column 1: 'grammar x;"),
        ("<digit>+", "<digits>+", "line 7, column 35: no rule <digits>"),
        ("three |", "three | <digit> |", "line 6, column 19: <digit> refers to itself, expected * or +"),
        ("[please]", "[please)", "line 7, column 51: found ')', expected ']'"),
        ("two |", "two | |", "line 5, column 23: found '|', expected a word, a <name>, ( or ["),
        ("two", "/0.5/ two", "line 5, column 17: found '/': weights are not read"),
        ("two", "two {tag}", "line 5, column 21: found '{': tags are not read"),
        ("two", "zwei", "line 5, column 17: zwei is not a word of the model"),
        ("<stop> =", "<call> =", "line 8, column 8: <call> is there already"),
        ("grammar phone;", "import <a.b>;", "line 2, column 1: imports are not read"),
        ("stop*  <NULL>;", "stop*", "line 9, column 1: found 'the end of the file', expected ';'"),
        ("(dial | call now)", "(" * 70, "groups within one another, more than 64 deep"),
        ("<other>;", "".join(f"<n{n}>; <n{n}> = " for n in range(150)) + "one;", "more than 100 deep"),
        ("<other>;", "one;" + "".join(f"<n{n}> = <n{n + 1}> <n{n + 1}>;" for n in range(30)) + "<n30> = two; public "
         "<big> = <n0>;", "or 200000 in all"),
        ("public ", "", "no public rule, expected: public <name> = ...;"),
        ("= one", "one", "line 5, column 9: found 'one', expected '='"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, before, after, said):
    (tmp_path / "g").write_text(GOOD.replace(before, after))
    with pytest.raises(MargoError) as caught:
        read_jsgf(tmp_path / "g", WORDS)
    assert said in str(caught.value) and str(caught.value).startswith(str(tmp_path / "g"))
