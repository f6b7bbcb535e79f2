"""Rates, confusions, speakers."""

import numpy as np
import pytest

from margo.score.rates import by_speaker, confusion_counts, score

REFERENCES = [["one", "two", "three"], ["four"], ["five", "six"]]
HYPOTHESES = [["one", "three"], ["four"], ["five", "nine", "oh"]]


def test_rates_of_a_case_counted_by_hand():
    scored = score(REFERENCES, HYPOTHESES, np.random.default_rng(0))
    assert (scored.symbols.errors, scored.symbols.total) == (3, 6)  # one deletion; one substitution, one insertion
    assert scored.symbols.percent == 50
    assert (scored.strings.errors, scored.strings.total) == (2, 3)
    assert [int(x.sum()) for x in (scored.alignments.insertions, scored.alignments.deletions)] == [1, 1]


def test_confusions_add_up_and_name_the_right_symbols():
    alignments = score(REFERENCES, HYPOTHESES, np.random.default_rng(0)).alignments
    counts = confusion_counts(alignments)
    index = {symbol: n for n, symbol in enumerate(alignments.symbols)}
    assert counts[index["two"], -1] == 1  # deleted
    assert counts[:-1].sum() == 6 and counts[-1].sum() == 1  # reference words; insertions
    assert np.trace(counts) == alignments.correct.sum() == 4
    assert counts.sum() - np.trace(counts) == alignments.errors.sum()


def test_speakers_add_up_to_the_whole():
    alignments = score(REFERENCES, HYPOTHESES, np.random.default_rng(0)).alignments
    table = by_speaker(alignments, ["b", "a", "b"])
    assert list(table) == ["a", "b"]
    assert table["a"] == {
        "utterances": 1, "words": 1, "correct": 1, "substitutions": 0, "deletions": 0, "insertions": 0, "errors": 0,
        "wrong": 0,
    }  # fmt: skip
    assert sum(row["errors"] for row in table.values()) == alignments.errors.sum()
    assert sum(row["words"] for row in table.values()) == alignments.lengths.sum()


def test_classification_error_is_the_share_of_wrong_labels():
    generator = np.random.default_rng(1)
    truth, guess = generator.integers(0, 5, 400), generator.integers(0, 5, 400)
    scored = score([[str(t)] for t in truth], [[str(g)] for g in guess], generator)
    assert scored.symbols.errors == scored.strings.errors == np.sum(truth != guess)
    assert scored.symbols.percent == pytest.approx(100 * np.mean(truth != guess))


def test_the_same_generator_gives_the_same_interval():
    first, second = (score(REFERENCES, HYPOTHESES, np.random.default_rng(3)).symbols.ci95 for _ in range(2))
    assert first == second


def test_no_reference_symbols_is_refused():
    with pytest.raises(ValueError, match="no reference symbols"):
        score([[]], [["a"]], np.random.default_rng(0))
