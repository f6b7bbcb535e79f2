"""Which part of one's own data is set aside as dev: speakers who are not in train, wherever that is possible."""

import subprocess
import sys
from pathlib import Path

import pytest

from margo.formats import datadir

ROOT = Path(__file__).resolve().parents[2]


def folder(place, speakers, each=10, words=lambda speaker, n: ("one", "two")[n % 2 :]):
    place.mkdir()
    (place / "any.wav").touch()
    rows = [datadir.Utterance(f"s{s:02d}-{n:02d}", f"s{s:02d}", words(s, n), str(place / "any.wav"))
            for s in range(speakers) for n in range(each if isinstance(each, int) else each(s))]  # fmt: skip
    datadir.write(place, rows)
    return place


def split(train, out, *arguments):
    command = [sys.executable, ROOT / "local" / "words_data.py", "--train", train, "--out", out, *arguments]
    command += ["--allow-overlap", "true"]  # of train with itself, to count
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sets = {which: list(datadir.read(out / which)) for which in ("train", "dev", "test")}
    return sets, {which: {row.speaker for row in rows} for which, rows in sets.items()}, done.stderr


@pytest.mark.parametrize("speakers, dev", [(2, {"s01"}), (5, {"s04"}), (10, {"s09"}), (25, {"s09", "s19", "s24"})])
def test_dev_is_made_of_speakers_not_in_train(tmp_path, speakers, dev):
    train = folder(tmp_path / "all", speakers)
    sets, heard, said = split(train, tmp_path / "out", "--test", train)
    assert heard["dev"] == dev and not heard["dev"] & heard["train"]
    assert len(sets["dev"]) >= len(sets["test"]) / 10 and len(sets["train"]) + len(sets["dev"]) == 10 * speakers
    assert f"dev: {len(dev)} speakers ({' '.join(sorted(dev))}) of {train}" in said


@pytest.mark.parametrize("left_out", ["s00", "s03", "s05"])
def test_leaving_a_speaker_out_leaves_three_sets_without_a_common_speaker(tmp_path, left_out):
    _, heard, _ = split(folder(tmp_path / "all", 6), tmp_path / "out", "--leave-out", left_out)
    assert heard["test"] == {left_out} and len(heard["dev"]) == 1 and len(heard["train"]) == 4
    assert len(heard["test"] | heard["dev"] | heard["train"]) == 6


def test_speakers_with_little_to_say_go_together(tmp_path):
    sets, heard, _ = split(folder(tmp_path / "all", 8, lambda s: 40 if s < 4 else 5), tmp_path / "out",
                           "--test", tmp_path / "all")  # fmt: skip
    assert heard["dev"] == {"s04", "s05", "s06", "s07"} and len(sets["dev"]) == 20  # of 180


def test_a_speaker_who_alone_says_a_word_stays_in_train(tmp_path):
    train = folder(tmp_path / "all", 5, words=lambda s, n: ("rare" if s == 4 and n == 3 else "one",))
    sets, heard, _ = split(train, tmp_path / "out", "--test", train)
    assert heard["dev"] == {"s03"} and any("rare" in row.words for row in sets["train"])


OWN = {1: lambda s, n: ("one",), 4: lambda s, n: ("one",) if n else (f"w{s}",)}


@pytest.mark.parametrize("speakers, words", OWN.items())
def test_utterances_where_speakers_cannot_be_told_apart(tmp_path, speakers, words):
    """One speaker, or each with a word of their own, which train must not lose."""
    train = folder(tmp_path / "all", speakers, 20, words)
    sets, _, said = split(train, tmp_path / "out", "--test", train)
    assert "dev: utterances, of speakers who are in train too" in said and len(sets["dev"]) == 2 * speakers
    assert {word for row in sets["train"] for word in row.words} >= {word for row in sets["dev"] for word in row.words}


def test_sets_that_share_utterances_are_refused_unless_that_is_meant(tmp_path):
    def told(*arguments):
        command = [sys.executable, ROOT / "local" / "words_data.py", "--out", tmp_path / "out", *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    train = folder(tmp_path / "train", 3)
    refused = told("--train", train, "--test", train)
    assert refused.returncode == 1
    assert "--train and --test share 30 utterances, such as s00-00" in refused.stderr
    assert "--allow-overlap" in refused.stderr
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    rows = [datadir.Utterance(f"other-{n}", "other", ("one",), str(train / "any.wav")) for n in range(2)]
    datadir.write(renamed, rows)
    assert "share 30 utterances" in told("--train", train, "--test", renamed).stderr, "other names, the same recording"
    test = folder(tmp_path / "test", 4)
    datadir.write(test, [row for row in datadir.read(test) if row.speaker == "s03"])
    assert told("--train", train, "--test", test).returncode == 0
    assert "--dev and --test share 10" in told("--train", train, "--test", test, "--dev", test).stderr
    assert told("--train", train, "--test", train, "--allow-overlap", "true").returncode == 0
