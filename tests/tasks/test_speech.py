"""Chunks of utterances: what is said of those that cannot be used."""

from types import SimpleNamespace

import pytest

from margo.errors import MargoError
from margo.tasks.speech import Speech, check_dropped


def test_many_dropped_utterances_do_not_hide_the_reason():
    said, logged = [], []
    step = SimpleNamespace(name="train", say=said.append, log=logged.append)
    speech = Speech("mfcc/train", {}, tuple(range(100)))
    dropped = [(f"u{number:02}", "too short") for number in range(60)]
    with pytest.raises(MargoError, match="60 of 100 utterances cannot be used, more than 5%; the first: u00: too s"):
        check_dropped(dropped, speech, step)
    assert said == [f"train: u{number:02} dropped: too short" for number in range(10)]
    assert logged == [f"train: u{number:02} dropped: too short" for number in range(10, 60)]


def test_a_dropped_utterance_is_told_once():
    said = []
    step, told = SimpleNamespace(name="train", say=said.append), set()
    for _ in range(2):
        check_dropped([("u1", "too short")], Speech("mfcc/train", {}, tuple(range(100))), step, told)
    assert said == ["train: u1 dropped: too short"]
