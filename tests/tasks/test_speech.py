"""Chunks of utterances: how they are cut, and what is said of those that cannot be used."""

from types import SimpleNamespace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats import datadir, features
from margo.tasks.speech import Item, Speech, check_dropped, read


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


def test_chunks_have_so_many_utterances_or_so_many_frames_whichever_is_less(tmp_path):
    sizes = [*[5] * 150, *[20_000] * 4, 70_000, *[5] * 3]
    items = tuple(Item(f"u{n:03d}", ("a",), "s", ("ark", n), 13, size) for n, size in enumerate(sizes))
    chunks = Speech(tmp_path, {}, items).chunks
    assert tuple(item for chunk in chunks for item in chunk) == items
    assert [len(chunk) for chunk in chunks] == [100, 52, 2, 1, 3]
    assert [sum(item.frames for item in chunk) for chunk in chunks] == [500, 40_250, 40_000, 70_000, 15]
    assert Speech(tmp_path, {}, ()).chunks == []


def test_the_frames_of_an_utterance_are_known_from_its_place_in_the_archive(tmp_path):
    matrices = [(f"u{n}", np.zeros((n + 3, 2), np.float32)) for n in range(5)]
    offsets = features.write_ark(tmp_path / "feats.ark", tmp_path / "feats.scp", matrices)
    rows = [datadir.Utterance(name, "s", ("a",), feats=f"feats.ark:{offsets[name]}") for name, _ in matrices]
    datadir.write(tmp_path, rows)
    for item, (name, x) in zip(read(tmp_path).items, matrices):
        assert item.name == name and len(x) <= item.frames <= len(x) + 3  # heads of matrices count as frames
