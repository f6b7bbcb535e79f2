"""The step from audio to features: what it writes, that jobs do not matter, what it drops and what it refuses."""

import json
import runpy
import subprocess
import sys

import kaldiio
import numpy as np
import pytest
import soundfile

from margo.errors import MargoError
from margo.formats import datadir
from margo.formats.atomic import write_json
from margo.formats.datadir import Utterance
from margo.formats.features import read_matrix, read_options, read_scp
from margo.signal.front_end import MfccOptions, describe, describe_given
from margo.signal.mfcc import cmvn_stats, compute_features, finish_features, static_features
from margo.tasks import featuring, speech
from margo.tasks.featuring import chunks_of

RATE = 8000


def waves(count=60, seconds=0.4):
    rng = np.random.default_rng(0)
    for i in range(count):
        smooth = np.convolve(rng.standard_normal(int(seconds * RATE)), 0.8 ** np.arange(20), mode="same")
        yield f"s{i % 4}-{i:03d}", np.round(3000 * smooth).astype(np.int16)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sixty utterances of four speakers in a data folder of its own, complete as a step would leave it."""
    folder = tmp_path_factory.mktemp("corpus")
    rows, samples = [], {}
    for i, (name, x) in enumerate(waves()):
        soundfile.write(folder / f"{name}.wav", x, RATE)
        samples[name] = x.astype(np.float32)
        rows.append(Utterance(name, name[:2], ("yes", "no")[i % 2 :][:1], str(folder / f"{name}.wav"), gender="f"))
    finish(folder / "data", rows)
    return folder, rows, samples


def finish(folder, rows):
    datadir.write(folder, rows)
    write_json(folder / "step.json", {"status": "ok", "outputs": {}})
    return folder


@pytest.fixture
def make(root, monkeypatch, capsys):
    """Run the step in this process; its exit code and what it said."""

    def make(data, out, *more, code=0):
        step = root / "steps" / "make_mfcc.py"
        monkeypatch.setattr(sys, "argv", [str(part) for part in (step, "--data", data, "--out", out, *more)])
        ended = 0
        try:
            runpy.run_path(str(step), run_name="__main__")
        except SystemExit as exit_:
            ended = exit_.code
        said = capsys.readouterr().err + (ended if isinstance(ended, str) else "")
        assert (1 if isinstance(ended, str) else ended) == code, said
        return said

    return make


def test_features_tables_and_record(root, make, corpus, tmp_path, monkeypatch):
    folder, rows, samples = corpus
    out = tmp_path / "mfcc"
    said = make(folder / "data", out, "--conf", root / "conf" / "mfcc.toml")
    assert "60 utterances" in said and "0 dropped" in said
    places = read_scp(out)
    assert list(places) == sorted(samples)
    for name, place in places.items():
        assert np.array_equal(read_matrix(place, columns=39), compute_features(samples[name], RATE, MfccOptions()))
    assert read_options(out) == describe(MfccOptions(), RATE)
    assert [row.words for row in datadir.read(out)] == [row.words for row in sorted(rows, key=lambda row: row.name)]
    for table in ("text", "utt2spk", "spk2utt", "spk2gender"):
        assert (out / table).read_text() == (folder / "data" / table).read_text()
    made = json.loads((out / "step.json").read_text())
    assert made["status"] == "ok" and {"feats.ark", "feats.scp", "mfcc.json", "text", "utt2spk"} <= set(made["outputs"])
    monkeypatch.chdir("/")
    assert np.array_equal(kaldiio.load_scp(str(out / "feats.scp"))["s0-000"], read_matrix(places["s0-000"]))


@pytest.mark.parametrize("cmvn", ["none", "speaker"])
def test_jobs_do_not_change_a_byte(root, corpus, tmp_path, cmvn):
    for jobs in ("1", "2"):
        step, data, out = root / "steps" / "make_mfcc.py", corpus[0] / "data", tmp_path / jobs
        subprocess.run([sys.executable, step, "--data", data, "--out", out, "--cmvn", cmvn, "--nj", jobs], check=True)
    for name in ("feats.ark", "mfcc.json", "text", "utt2spk", "spk2utt"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    lists = [(tmp_path / jobs / "feats.scp").read_text().replace(str(tmp_path / jobs), "OUT") for jobs in "12"]
    assert lists[0] == lists[1] and "OUT/feats.ark:" in lists[0]


def test_long_recordings_are_few_at_a_time(tmp_path):
    """Fifty hours at a time, whose features take 2.8 GB, once were one chunk."""
    for name, size in (("hour", 115_200_000), ("short", 300_000)):
        with open(tmp_path / name, "wb") as file:
            file.truncate(size)  # of nothing: no disk is taken

    def sizes(count, **facts):
        chunks = chunks_of(tuple(Utterance(str(n), "s", **facts) for n in range(count)))
        assert [row.name for chunk in chunks for row in chunk] == [str(n) for n in range(count)]
        return [len(chunk) for chunk in chunks]

    hour, short = str(tmp_path / "hour"), str(tmp_path / "short")
    assert sizes(5, audio=hour) == [1] * 5
    assert sizes(120, audio=short) == [50, 50, 20] == sizes(120, audio=hour, start=3.0, end=13.0)
    assert sizes(7, audio=hour, start=0.0, end=900.0) == [2, 2, 2, 1]  # a quarter of an hour each
    assert sizes(51, audio="cat x |") == [50, 1] == sizes(51, audio=str(tmp_path / "none"))
    assert sizes(0) == []


@pytest.mark.parametrize("cmvn", ["none", "speaker"])
def test_small_chunks_do_not_change_a_feature(make, corpus, tmp_path, monkeypatch, cmvn):
    made = {}
    for most in (featuring.BYTES, 20_000):
        monkeypatch.setattr(featuring, "BYTES", most)
        for jobs in (1, 2, 3)[: 1 if most > 20_000 else 3]:
            make(corpus[0] / "data", tmp_path / f"{most}_{jobs}", "--cmvn", cmvn, "--nj", jobs)
            made[most, jobs] = (tmp_path / f"{most}_{jobs}" / "feats.ark").read_bytes()
    assert len(chunks_of(datadir.read(corpus[0] / "data").utterances)) > 15 and len({*made.values()}) == 1


def test_speaker_normalisation(make, corpus, tmp_path):
    folder, rows, samples = corpus
    options = MfccOptions(cmvn="speaker", cmvn_variance=True)
    make(folder / "data", tmp_path / "mfcc", "--cmvn", "speaker", "--cmvn-variance", "true")
    statics = {row.name: static_features(samples[row.name], RATE, options) for row in rows if row.speaker == "s1"}
    stats = sum((cmvn_stats(x, options) for x in list(statics.values())[1:]), cmvn_stats(statics["s1-001"], options))
    found = read_matrix(read_scp(tmp_path / "mfcc")["s1-005"])
    assert np.abs(found - finish_features(statics["s1-005"], options, stats)).max() < 1e-5


def test_kaldis_statistics_are_applied_or_refused(make, corpus, tmp_path):
    """A folder with feats.scp and cmvn.scp, as Kaldi leaves it."""
    folder = corpus[0]
    make(folder / "data", tmp_path / "kaldi")
    for name in ("mfcc.json", "step.json"):
        (tmp_path / "kaldi" / name).unlink()
    frames = {name: read_matrix(place) for name, place in read_scp(tmp_path / "kaldi").items()}
    sums = {}
    for speaker in ("s0", "s1", "s2", "s3"):
        x = np.concatenate([x for name, x in frames.items() if name.startswith(speaker)]).astype(np.float64)
        sums[speaker] = np.stack([np.append(x.sum(axis=0), len(x)), np.append((x**2).sum(axis=0), 0)])
    kaldiio.save_ark(str(tmp_path / "cmvn.ark"), sums, scp=str(tmp_path / "kaldi" / "cmvn.scp"))
    said = make(tmp_path / "kaldi", tmp_path / "a", code=1)
    assert "has cmvn.scp, expected --cmvn speaker to apply it" in said
    with pytest.raises(MargoError, match="make_mfcc --cmvn speaker applies it"):
        speech.read(tmp_path / "kaldi")
    make(tmp_path / "kaldi", tmp_path / "b", "--cmvn", "speaker", "--cmvn-variance", "true")
    made = np.concatenate([read_matrix(p) for name, p in read_scp(tmp_path / "b").items() if name.startswith("s2")])
    np.testing.assert_allclose(made.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(made.std(axis=0), 1, rtol=1e-3)
    assert abs(read_matrix(read_scp(tmp_path / "b")["s2-002"]).mean(axis=0)).max() > 1e-2  # not by utterance
    assert read_options(tmp_path / "b") == {**describe_given(39), "cmvn": "speaker", "cmvn_mean": True,
                                            "cmvn_variance": True}  # fmt: skip
    make(tmp_path / "kaldi", tmp_path / "c", "--cmvn", "utterance")
    assert abs(read_matrix(read_scp(tmp_path / "c")["s0-000"]).mean(axis=0)).max() < 1e-4
    (tmp_path / "kaldi" / "cmvn.scp").unlink()
    assert "ready-made needs cmvn.scp" in make(tmp_path / "kaldi", tmp_path / "d", "--cmvn", "speaker", code=1)


def test_segments_are_cut_out(make, corpus, tmp_path):
    folder, rows, samples = corpus
    name = rows[0].name
    cuts = {"a": (0.0, 0.2), "b": (0.1, 0.35), "c": (0.3, None), "d": (0.2, 0.45)}
    segments = [
        Utterance(key, "s", ("yes",), rows[0].audio, recording=name, start=start, end=end)
        for key, (start, end) in cuts.items()
    ]
    make(finish(tmp_path / "data", segments), tmp_path / "mfcc")
    places = read_scp(tmp_path / "mfcc")
    for key, (start, end) in cuts.items():
        piece = samples[name][int(start * RATE) : None if end is None else int(end * RATE)]
        assert np.array_equal(read_matrix(places[key]), compute_features(piece, RATE, MfccOptions()))
    assert not (tmp_path / "mfcc" / "segments").exists()


def spoil(folder, kind):
    """A bad recording of some kind, and a word of the reason."""
    path = folder / f"{kind}.wav"
    x = np.ones(4000, np.int16)
    if kind == "truncated":
        soundfile.write(path, x, RATE)
        path.write_bytes(path.read_bytes()[:1000])
        return path, "truncated.wav: truncated: 478 samples found, its header declares 4000"
    if kind == "short":
        soundfile.write(path, x[:100], RATE)
        return path, "short.wav: 100 samples, fewer than the 200"
    if kind == "flac":
        soundfile.write(path, x, RATE, format="FLAC")
        raw = bytearray(path.read_bytes())
        raw[21] |= 0x08  # 2^35 samples more
        path.write_bytes(raw)
        return path, "flac.wav: declares 34359742368 samples, expected at most"
    if kind == "sphere":
        header = b"NIST_1A\n   1024\nsample_count -i \xb2\nsample_rate -i 8000\nsample_byte_format -s2 01\nend_head\n"
        path.write_bytes(header.ljust(1024) + bytes(99))
        return path, "sphere.wav: SPHERE header: sample_count is '²', expected a whole number"
    if kind == "aiff":
        soundfile.write(path, x, RATE, format="AIFF")
        path.write_bytes(path.read_bytes()[:-100])
        return path, "aiff.wav: truncated: 7908 bytes of samples found, its header declares 8008"
    if kind == "rate":
        soundfile.write(path, x, 2 * RATE)
        return path, "sample rate is 16000 Hz, the folder's is 8000 Hz"
    soundfile.write(path, x / 32768 * np.nan, RATE, subtype="FLOAT")
    return path, "NaN or infinite"


def with_bad(corpus, tmp_path, kinds):
    rows, words = list(corpus[1]), []
    for number, kind in enumerate(kinds):
        path, reason = spoil(tmp_path, kind)
        rows.append(Utterance(f"z{number}", "z", ("no",), str(path), gender="m"))
        words.append(reason)
    return finish(tmp_path / "data", rows), words


@pytest.mark.parametrize("kinds", [["truncated", "short", "nan"], ["flac", "sphere", "aiff"]])
def test_a_few_bad_utterances_are_dropped_with_the_reason(make, corpus, tmp_path, kinds):
    data, words = with_bad(corpus, tmp_path, kinds)
    said = make(data, tmp_path / "mfcc")
    log = (tmp_path / "mfcc" / "step.log").read_text()
    for number, reason in enumerate(words):
        assert f"z{number} dropped" in log and reason in log
    assert "60 utterances" in said and "3 dropped" in said
    assert sorted(read_scp(tmp_path / "mfcc")) == sorted(row.name for row in corpus[1])
    assert "z" not in datadir.read(tmp_path / "mfcc").by_speaker


def test_more_than_a_few_fail_the_step_and_leave_nothing(make, corpus, tmp_path):
    data, _ = with_bad(corpus, tmp_path, ["truncated", "short", "rate", "nan"])
    said = make(data, tmp_path / "mfcc", code=1)
    assert "4 of 64 utterances cannot be used, more than 5%" in said and "Traceback" not in said
    assert sorted(path.name for path in (tmp_path / "mfcc").iterdir()) == ["started.json", "step.log"]


def test_another_rate_is_resampled_when_one_is_asked_for(make, corpus, tmp_path):
    data, words = with_bad(corpus, tmp_path, ["rate"])
    make(data, tmp_path / "own")
    assert words[0] in (tmp_path / "own" / "step.log").read_text()
    make(data, tmp_path / "asked", "--sample-rate", RATE)
    assert len(read_scp(tmp_path / "asked")) == 61
    assert read_options(tmp_path / "asked") == read_options(tmp_path / "own")


def test_one_channel_of_several_when_it_is_asked_for(make, corpus, tmp_path):
    name = corpus[1][0].name
    x = corpus[2][name].astype(np.int16)
    soundfile.write(tmp_path / "stereo.wav", np.stack([0 * x, x], axis=1), RATE)
    data = finish(tmp_path / "data", [Utterance("a", "a", ("yes",), str(tmp_path / "stereo.wav"))])
    assert "stereo.wav: has 2 channels, expected one (--channel" in make(data, tmp_path / "mfcc", code=1)
    make(data, tmp_path / "mfcc", "--channel", "1")
    expected = compute_features(corpus[2][name], RATE, MfccOptions())
    assert np.array_equal(read_matrix(read_scp(tmp_path / "mfcc")["a"]), expected)


def test_pipes_need_permission(make, corpus, tmp_path):
    rows = [Utterance("a", "a", ("yes",), f"cat {corpus[1][0].audio} |")]
    data = finish(tmp_path / "data", rows)
    assert "pipe" in make(data, tmp_path / "mfcc", code=1)
    make(data, tmp_path / "mfcc", "--allow-pipes", "true")
    expected = compute_features(corpus[2][corpus[1][0].name], RATE, MfccOptions())
    assert np.array_equal(read_matrix(read_scp(tmp_path / "mfcc")["a"]), expected)


def test_features_that_are_there_are_kept(make, corpus, tmp_path):
    rng = np.random.default_rng(0)
    given = {f"u{i}": rng.standard_normal((9, 7)).astype(np.float32) for i in range(5)}
    kaldiio.save_ark(str(tmp_path / "raw.ark"), given, scp=str(tmp_path / "raw.scp"))
    places = dict(line.split() for line in (tmp_path / "raw.scp").read_text().splitlines())
    data = finish(tmp_path / "data", [Utterance(name, "s", ("yes",), feats=places[name]) for name in given])
    make(data, tmp_path / "mfcc")
    assert read_options(tmp_path / "mfcc") == describe_given(7)
    for name, place in read_scp(tmp_path / "mfcc").items():
        assert np.array_equal(read_matrix(place), given[name])


def test_bad_calls(make, corpus, tmp_path):
    (tmp_path / "data").mkdir()
    assert "stage 0" in make(tmp_path / "data", tmp_path / "mfcc", code=1)
    said = make(corpus[0] / "data", tmp_path / "mfcc", "--cepstra", "40", code=2)
    assert "cepstra is 40, expected 1 to channels - 1 = 25" in said
    said = make(corpus[0] / "data", tmp_path / "mfcc", "--channels", "120", code=1)
    assert "holds no FFT bin" in said and "dropped" not in said
