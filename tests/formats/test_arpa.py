"""ARPA files read again as they were written, those of others are read, and what is wrong with one is told by line."""

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.arpa import read_arpa, write_arpa
from margo.model.ngram import END, SMOOTHINGS, START

GOOD = """a comment
\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-99 <s> -0.30103
-1.0 </s>
-0.5 a -0.2
-0.7 b

\\2-grams:
-0.1 <s> a
-0.4 a b

\\end\\
"""


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_what_is_written_reads_the_same(tmp_path, order, smoothing):
    words = ("a", "b", "c")
    ngram = SMOOTHINGS[smoothing]([("a", "b"), ("b", "a", "b"), ("c",)], words, order)
    write_arpa(tmp_path / "lm", ngram)
    again = read_arpa(tmp_path / "lm")
    assert again.order == order
    write_arpa(tmp_path / "2", again)
    assert (tmp_path / "2").read_text() == (tmp_path / "lm").read_text()
    for history in ((), ("a",), ("b", "a"), (START,), (START, "a"), ("c", "c")):
        for word in (*words, END):
            assert again.log_prob(history, word) == pytest.approx(ngram.log_prob(history, word), abs=1e-7)


def test_a_file_of_others_is_read(tmp_path):
    (tmp_path / "lm").write_text(GOOD)
    ngram = read_arpa(tmp_path / "lm")
    ten = np.log(10)
    assert ngram.log_prob((START,), "a") == pytest.approx(-0.1 * ten)
    assert ngram.log_prob((START,), "b") == pytest.approx((-0.30103 - 0.7) * ten)  # backed off
    assert ngram.log_prob(("b",), "a") == pytest.approx(-0.5 * ten)  # b has no backoff: 0
    assert ngram.log_prob(("a",), START) == -np.inf  # -99 is never


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("\\end\\", "", "not an ARPA file"),
        ("-0.5 a -0.2\n", "", "a: no backoff, which a 1-gram needs that longer ones begin with"),
        ("-0.5 a -0.2\n", "-0.5 a\n", "a: no backoff, which a 1-gram needs that longer ones begin with"),
        ("ngram 2=2", "ngram 2=3", "2 2-grams, its head says 3"),
        ("-0.7 b", "seven b", "line 10: 'seven b': is 'seven', expected a number"),
        ("-0.7 b", "0.7 b", "log probability 0.7, expected at most 0"),
        ("-0.4 a b", "-0.4 a", "line 14: '-0.4 a', expected a log probability, 2 words"),
        ("-0.7 b", "-0.5 a", "line 10: a is there already"),
        ("ngram 2=2", "ngram 2=two", "line 4: 'ngram 2=two', expected: ngram ORDER=COUNT"),
        ("-1.0 </s>\n", "", "no 1-gram of </s>"),
        ("\\2-grams:", "\\4-grams:", "not among the counts"),
    ],
)
def test_what_is_wrong_is_told(tmp_path, before, after, said):
    (tmp_path / "lm").write_text(GOOD.replace(before, after))
    with pytest.raises(MargoError) as caught:
        read_arpa(tmp_path / "lm")
    assert said in str(caught.value) and str(tmp_path / "lm") in str(caught.value)
