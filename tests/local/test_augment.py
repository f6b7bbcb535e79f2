"""Augmented data folders, and data folders from manifests of lhotse."""

import runpy

import numpy as np
import pytest
import soundfile

from margo.errors import MargoError
from margo.formats import datadir
from margo.runtime.step import Step
from runs import run_step

RATE = 8000


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "wav").mkdir()
    soundfile.write(tmp_path / "wav" / "r.wav", (2000 * rng.standard_normal(2 * RATE)).astype(np.int16), RATE)
    audio = str(tmp_path / "wav" / "r.wav")
    rows = [datadir.Utterance(f"s{n}-u", f"s{n}", ("a", "b"), audio, "r", n / 2, n / 2 + 0.5, "m") for n in range(3)]
    datadir.write(tmp_path / "data", rows)
    return tmp_path


def run_local(root, name, out, **options):
    program = runpy.run_path(str(root / "local" / f"{name}.py"))
    step = Step(name, program["Options"](out=out, **options), [])
    step.say = step.log
    step.begin()
    program["run"](step.options, step)
    step.finish()
    return {row.name: row for row in datadir.read(out)}


def heard(row):
    return soundfile.read(row.audio, dtype="int16")[0]


def test_copies_of_every_utterance(root, data):
    what = {"data": data / "data", "speed": (0.8,), "snr": (0.0, 10.0), "reverb": (0.3,)}
    rows = run_local(root, "augment", data / "one", seed=1, **what)
    marks = ("", "sp0.8-", "snr0-", "snr10-", "rvb0.3-")
    assert {*rows} == {f"{mark}s{n}-u" for mark in marks for n in range(3)}
    assert rows["snr0-s1-u"].speaker == "snr0-s1" and rows["snr0-s1-u"].words == ("a", "b")
    assert rows["s0-u"].gender == "m" and not datadir.validate(data / "one")
    whole, _ = soundfile.read(data / "wav" / "r.wav", dtype="int16")
    np.testing.assert_array_equal(heard(rows["s1-u"]), whole[RATE // 2 : RATE])
    assert len(heard(rows["sp0.8-s0-u"])) == round(0.5 * RATE / 0.8)
    again = run_local(root, "augment", data / "two", seed=1, **what, keep=False)
    other = run_local(root, "augment", data / "three", seed=2, **what)
    assert {*again} == {name for name in rows if "-s" in name}
    assert all((heard(again[name]) == heard(rows[name])).all() for name in again), "the seed decides, not the order"
    assert (heard(other["snr0-s1-u"]) != heard(rows["snr0-s1-u"])).any()


def test_recorded_noise(root, data):
    (data / "noise").mkdir()
    with pytest.raises(MargoError, match="no .wav or .flac there"):
        run_local(root, "augment", data / "one", data=data / "data", snr=(0.0,), noise=data / "noise")
    soundfile.write(data / "noise" / "n.wav", np.full(100, 0.1), RATE)
    rows = run_local(root, "augment", data / "one", data=data / "data", snr=(0.0,), noise=data / "noise")
    noise = heard(rows["snr0-s0-u"]).astype(float) - heard(rows["s0-u"])
    assert noise.std() < 1 and noise.mean() == pytest.approx(heard(rows["s0-u"]).astype(float).std(), rel=0.01)


def test_manifests_of_lhotse(root, data):
    lhotse = pytest.importorskip("lhotse", reason="lhotse is not installed (margo-speech[lhotse])")
    recording = lhotse.Recording.from_file(data / "wav" / "r.wav")
    more = {"text": "a b", "gender": "female"}
    said = [lhotse.SupervisionSegment(f"u{n}", recording.id, n / 2, 0.5, speaker=f"s{n % 2}", **more) for n in range(3)]
    lhotse.RecordingSet.from_recordings([recording]).to_file(data / "recordings.jsonl.gz")
    lhotse.SupervisionSet.from_segments(said).to_file(data / "supervisions.jsonl.gz")
    pair = {"recordings": data / "recordings.jsonl.gz", "supervisions": data / "supervisions.jsonl.gz"}
    rows = run_local(root, "lhotse_data", data / "of_pair", **pair)
    assert {name: (row.speaker, row.start, row.end) for name, row in rows.items()} == {
        "u0": ("s0", 0, 0.5), "u1": ("s1", 0.5, 1.0), "u2": ("s0", 1.0, 1.5)}  # fmt: skip
    assert rows["u1"].words == ("a", "b") and rows["u1"].gender == "f" and not datadir.validate(data / "of_pair")
    run_step(root, "make_mfcc", data / "mfcc", data=data / "of_pair")
    cuts = lhotse.CutSet.from_manifests(lhotse.RecordingSet.from_recordings([recording]),
                                        lhotse.SupervisionSet.from_segments(said)).trim_to_supervisions()  # fmt: skip
    cuts.to_file(data / "cuts.jsonl.gz")
    assert run_local(root, "lhotse_data", data / "of_cuts", cuts=data / "cuts.jsonl.gz") == rows
    faster = recording.perturb_speed(0.9, affix_id=False)
    lhotse.RecordingSet.from_recordings([faster]).to_file(data / "recordings.jsonl.gz")
    with pytest.raises(MargoError, match="3 faults\n  u0: r is changed while it loads") as error:
        run_local(root, "lhotse_data", data / "of_pair", **pair)
    assert "u2" in str(error.value)
