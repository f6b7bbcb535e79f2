"""Alignments between pool states and Kaldi's transition-ids."""

import gzip

import kaldiio
import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.kaldi_alignments import read_alignments
from margo.formats.kaldi_models import transitions_of
from margo.model.hmm import flat_start, whole_words
from margo.search.viterbi import Segment
from margo.tasks.kaldi_exchange import states_and_units, transition_ids


@pytest.fixture
def hmms():
    return flat_start(whole_words("ab"), {"a": 2, "b": 1}, np.zeros(1), np.ones(1))


def test_states_to_transition_ids_and_back(hmms):
    """Units a (states 0 1; ids 1 2, 3 4) and b (state 2; ids 5 6): loop and onward of each."""
    ids = transitions_of(hmms)
    states, units = np.array([0, 0, 1, 2, 2, 2, 0, 1, 1]), [Segment(0, 0, 3), Segment(1, 3, 5), Segment(1, 5, 6),
                                                          Segment(0, 6, 9)]  # fmt: skip
    sequence = transition_ids(hmms, ids, states, [unit.index for unit in units])
    assert sequence.tolist() == [1, 2, 4, 5, 6, 6, 2, 3, 4]
    found, segments = states_and_units(ids, sequence)
    assert found.tolist() == states.tolist() and segments == units


def test_loops_behind_the_transition_out(hmms):
    """As Kaldi's graphs are by default: the state's loops follow its transition onward."""
    found, segments = states_and_units(transitions_of(hmms), [2, 1, 4, 3, 3, 6, 5, 2, 4])
    assert found.tolist() == [0, 0, 1, 1, 1, 2, 2, 0, 1]
    assert segments == [Segment(0, 0, 5), Segment(1, 5, 7), Segment(0, 7, 9)]


@pytest.mark.parametrize(("sequence", "said"), [([1, 2], "ends within a phone"), ([9], "from 1 to 6"), ([], "from 1")])
def test_sequences_that_are_none(hmms, sequence, said):
    with pytest.raises(MargoError, match=said):
        states_and_units(transitions_of(hmms), np.array(sequence, int))
    wrong = ([0, 2], [0]), ([0, 1], [0, 1]), ([0, 1, 2], [0]), ([0], [0]), ([1], [0]), ([], []), ([2], [])
    for states, units in wrong:
        with pytest.raises(MargoError, match="its states do not go through its units"):
            transition_ids(hmms, transitions_of(hmms), np.array(states, int), units)


def test_alignments_in_every_form(tmp_path):
    table = {"u1": np.array([1, 2, 4], np.int32), "u2": np.array([6], np.int32)}
    kaldiio.save_ark(str(tmp_path / "ali.ark"), table, scp=str(tmp_path / "ali.scp"))
    (tmp_path / "ali.txt").write_text("u1 1 2 4\nu2 6\n")
    (tmp_path / "ali.1.gz").write_bytes(gzip.compress((tmp_path / "ali.ark").read_bytes()))
    for name in ("ali.ark", "ali.scp", "ali.txt", "ali.1.gz"):
        found = read_alignments(tmp_path / name)
        assert {key: value.tolist() for key, value in found.items()} == {"u1": [1, 2, 4], "u2": [6]}, name
    (tmp_path / "bad.txt").write_text("u1 one\n")
    with pytest.raises(MargoError, match="u1: expected transition-ids"):
        read_alignments(tmp_path / "bad.txt")
