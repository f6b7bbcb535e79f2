"""Data folders: what is written comes back, and each thing that can be wrong has its defined outcome."""

import os
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from margo.errors import MargoError
from margo.formats.datadir import Utterance, read, resolve, validate, write

RATE = 8000


def make(folder, names=("b-2", "a-1", "a-2"), samples=400):
    """A sound folder of whole recordings, its utterances given out of order."""
    rows = []
    for name in names:
        path = folder / "audio" / f"{name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, np.sin(np.arange(samples)) / 2, RATE, subtype="PCM_16")
        rows.append(Utterance(name, name[0], ("one", "two"), str(path), gender="fm"[name[0] == "b"]))
    write(folder / "data", rows)
    return folder / "data"


def kinds(folder, **options):
    return {fault.kind: fault for fault in validate(folder, **options)}


def edit(path, old, new):
    text = path.read_bytes()
    assert old in text
    path.write_bytes(text.replace(old, new))


def test_what_is_written_comes_back_sorted(tmp_path):
    folder = make(tmp_path)
    data = read(folder)
    assert [u.name for u in data] == ["a-1", "a-2", "b-2"]
    assert data.by_name["b-2"].words == ("one", "two")
    assert {speaker: len(rows) for speaker, rows in data.by_speaker.items()} == {"a": 2, "b": 1}
    assert data.vocabulary == ("one", "two")
    assert (folder / "spk2utt").read_text() == "a a-1 a-2\nb b-2\n"
    assert (folder / "spk2gender").read_text() == "a f\nb m\n"
    write(tmp_path / "copy", data.utterances)
    assert read(tmp_path / "copy").utterances == data.utterances
    assert validate(folder) == []
    assert not list(folder.glob(".*"))


def test_segments_come_back_and_stale_tables_go(tmp_path):
    folder = make(tmp_path)
    first, *_ = read(folder)
    parts = [replace(first, name=f"a-1-{n}", recording="rec", start=s, end=e)
             for n, s, e in ((0, 0.0, 0.02), (1, 0.02, None))]  # fmt: skip
    write(folder, parts)
    assert (folder / "segments").read_text() == "a-1-0 rec 0 0.02\na-1-1 rec 0.02 -1\n"
    assert read(folder).utterances == tuple(parts)
    assert validate(folder) == []
    write(folder, [first])
    assert not (folder / "segments").exists()
    assert read(folder).utterances == (first,)


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [Utterance("a", "s", ("x",)), Utterance("a", "s", ("y",))],
        [Utterance("a b", "s")],
        [Utterance("a", "s", ("",))],
        [Utterance("a", "s", gender="m"), Utterance("b", "s", gender="f")],
        [Utterance("a", "s", audio="1", recording="r", start=0.0), Utterance("b", "s", audio="2")],
        [Utterance("a", "s", audio="1", recording="r", start=0.0),
         Utterance("b", "s", audio="2", recording="r", start=0.0)],
    ],
)  # fmt: skip
def test_what_would_not_come_back_is_not_written(tmp_path, bad):
    with pytest.raises(MargoError):
        write(tmp_path / "data", bad)
    assert not (tmp_path / "data").exists()


def test_unsorted_crlf_mark_and_blank_lines_are_accepted(tmp_path):
    folder = make(tmp_path)
    before = read(folder)
    for name in ("wav.scp", "text", "utt2spk"):
        lines = (folder / name).read_bytes().splitlines()
        (folder / name).write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(reversed(lines)) + b"\r\n")
    assert read(folder) == before
    assert validate(folder) == []


# edit of one table -> (kind of fault, a part of its example)
STRUCTURE = {
    "duplicate": ("text", b"a-2 one", b"a-1 one", "duplicate key", "text:2: a-1"),
    "empty transcript": ("text", b"a-2 one two", b"a-2", "empty transcript", "text:2: a-2"),
    "empty value": ("wav.scp", None, b"a-1 \n", "empty value", "wav.scp:1: a-1"),
    "no utf-8": ("text", b"a-2 one", b"a-2 \xe9ne", "not text", "text:2: byte 0xe9 at column 5"),
    "empty file": ("text", None, b"\r\n", "empty file", "text"),
    "missing in text": ("text", b"a-2 one two\n", b"", "utterance missing in text", "a-2 (it is in utt2spk)"),
    "missing in wav.scp": ("text", b"a-2 one", b"c-1 x\na-2 one", "utterance missing in wav.scp", "c-1 (it is in"),
    "two speakers": ("utt2spk", b"a-1 a", b"a-1 a b", "more than one speaker", "a-1: a b"),
    "spk2utt": ("spk2utt", b"a-1 a-2", b"a-1", "spk2utt disagrees with utt2spk", "utt2spk says a, spk2utt nothing"),
    "gender": ("spk2gender", b"a f", b"a female", "bad gender", "a: 'female'"),
    "gender missing": ("spk2gender", b"a f\n", b"", "speaker missing in spk2gender", "a"),
    "no audio": ("wav.scp", b"a-1.wav", b"nothing.wav", "audio file missing", "nothing.wav"),
    "pipe": ("wav.scp", b"a-1.wav", b"a-1.wav |", "pipe in wav.scp", "is run with --allow-pipes true only"),
}


@pytest.mark.parametrize("case", STRUCTURE)
def test_faults_of_tables(tmp_path, case):
    table, old, new, kind, part = STRUCTURE[case]
    folder = make(tmp_path)
    if old is None:
        (folder / table).write_bytes(new)
    else:
        edit(folder / table, old, new)
    found = kinds(folder)
    assert kind in found, found
    assert part in " ".join(found[kind].examples)
    with pytest.raises(MargoError, match=kind):
        read(folder)


@pytest.mark.parametrize("name", ["wav.scp", "text"])
def test_missing_table(tmp_path, name):
    folder = make(tmp_path)
    (folder / name).unlink()
    assert name in kinds(folder)["missing file"].examples[0]


def test_either_speaker_table_is_enough_but_one_is_needed(tmp_path):
    folder = make(tmp_path)
    before = read(folder)
    (folder / "utt2spk").unlink()
    assert read(folder) == before
    (folder / "spk2utt").unlink()
    assert kinds(folder)["missing file"].examples == ("utt2spk",)


def test_text_is_optional_on_request(tmp_path):
    folder = make(tmp_path)
    (folder / "text").unlink()
    assert [u.words for u in read(folder, need_text=False)] == [()] * 3
    assert validate(folder, need_text=False) == []


def test_faults_come_all_at_once_with_counts_and_three_examples(tmp_path):
    folder = make(tmp_path, names=[f"a-{n}" for n in range(5)])
    edit(folder / "wav.scp", b".wav", b".gone")
    edit(folder / "text", b"a-4 one two\n", b"")
    found = kinds(folder)
    assert found["audio file missing"].count == 5 and len(found["audio file missing"].examples) == 3
    assert "and 2 more" in str(found["audio file missing"])
    assert found["utterance missing in text"].count == 1
    with pytest.raises(MargoError) as raised:
        read(folder)
    assert "2 faults" in str(raised.value) and "audio file missing (5)" in str(raised.value)


def test_pipes_are_kept_when_allowed_and_never_run(tmp_path):
    folder = make(tmp_path)
    witness = tmp_path / "ran"
    (folder / "wav.scp").write_text(f"a-1 touch {witness} |\na-2 touch {witness}|\nb-2 touch {witness} |  \n")
    assert kinds(folder)["pipe in wav.scp"].count == 3
    assert kinds(folder, allow_pipes=True) == {}
    assert all(u.is_pipe for u in read(folder, allow_pipes=True))
    assert not witness.exists()


def test_relative_paths_from_here_first_then_from_the_folder(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    (folder / "x").mkdir(parents=True)
    (folder / "x" / "a.wav").touch()
    monkeypatch.chdir(tmp_path)
    assert resolve("x/a.wav", folder) == str(folder / "x" / "a.wav")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.wav").touch()
    assert resolve("x/a.wav", folder) == os.path.join("x", "a.wav")


@pytest.mark.parametrize(
    ("segments", "kind"),
    [
        ("a-1 rec 0.02 0.01", "bad segment"),
        ("a-1 rec -0.5 0.01", "bad segment"),
        ("a-1 rec nan 0.01", "bad segment"),
        ("a-1 rec 0.01", "bad segment"),
        ("a-1 other 0 0.01", "recording missing in wav.scp"),
        ("a-1 rec 0.06 -1", "segment outside its recording"),
        ("a-1 rec 0.01 0.56", "segment outside its recording"),
        ("a-1 rec 0.01 0.2", None),  # within the overshoot: cut at the end
    ],
)
def test_segments_faults(tmp_path, segments, kind):
    folder = make(tmp_path, names=["a-1"])
    edit(folder / "wav.scp", b"a-1 ", b"rec ")
    (folder / "segments").write_text(segments + "\n")
    assert (kind in kinds(folder)) if kind else kinds(folder) == {}


def test_audio_faults(tmp_path):
    folder = make(tmp_path, names=["a-1", "a-2", "a-3", "a-4", "a-5"])
    audio = tmp_path / "audio"
    soundfile.write(audio / "a-2.wav", np.zeros(0), RATE, subtype="PCM_16")
    soundfile.write(audio / "a-3.wav", np.zeros(100), 16000, subtype="PCM_16")
    soundfile.write(audio / "a-4.wav", np.array([0.0, np.nan, 0.5]), RATE, subtype="FLOAT")
    (audio / "a-5.wav").write_bytes(b"not audio at all")
    found = kinds(folder)
    assert {kind: fault.examples[0].split(":")[0] for kind, fault in found.items()} == {
        "zero-length audio": "a-2",
        "mixed sample rates": "a-3",
        "NaN or infinite audio": "a-4",
        "unreadable audio": "a-5",
    }
    assert kinds(folder, check_audio=False) == {}
    wrong = kinds(folder, sample_rate=16000)["wrong sample rate"]
    assert "8000 Hz (expected 16000)" in wrong.examples[0] and wrong.count == 3


def test_feature_faults(tmp_path):
    from kaldiio import WriteHelper

    good = np.ones((4, 3), np.float32)
    bad = good.copy()
    bad[2, 1] = np.nan
    matrices = {"a-1": good, "a-2": bad, "a-3": np.ones((4, 2), np.float32), "a-4": good, "a-5": good}
    folder = tmp_path / "data"
    write(folder, [Utterance(name, "a", ("x",)) for name in matrices])
    with WriteHelper(f"ark,scp:{folder}/feats.ark,{folder}/feats.scp") as writer:
        for name, matrix in matrices.items():
            writer(name, matrix)
    scp = (folder / "feats.scp").read_text().splitlines()
    scp[3] = f"a-4 {folder}/feats.ark:7"
    (folder / "feats.scp").write_text("\n".join(scp) + "\n")
    found = kinds(folder)
    assert found["mixed feature dimensions"].examples == ("a-3: 2 (most have 3)",)
    assert [example.split(":")[0] for example in found["bad features"].examples] == ["a-2", "a-4"]
    assert "finite" in found["bad features"].examples[0]
    data = read(folder)
    assert data.by_name["a-1"].feats.endswith("feats.ark:4") and data.by_name["a-1"].audio is None
    scp[4] = f"a-5 {folder}/feats.ark"
    scp[3] = f"a-4 cat {folder}/feats.ark |"
    (folder / "feats.scp").write_text("\n".join(scp) + "\n")
    assert {"pipe in feats.scp", "bad feats.scp"} <= set(kinds(folder))


def test_pickled_features_are_never_loaded(tmp_path):
    import pickle

    class Touch:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    folder = tmp_path / "data"
    write(folder, [Utterance("a-1", "a", ("x",), feats=f"{tmp_path}/evil.ark:4")])
    (tmp_path / "evil.ark").write_bytes(b"a-1 PKL" + pickle.dumps(Touch()))
    assert "bad features" in kinds(folder)
    assert not (tmp_path / "ran").exists()


def test_no_folder(tmp_path):
    with pytest.raises(MargoError, match="no such data folder"):
        validate(tmp_path / "none")
