"""Audio to words with a model's folder alone, also where large-margin training has given the model a dimension."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile

import margo
from margo.errors import MargoError
from margo.estimate.lme.model import move
from margo.formats.htk import read_mlf
from margo.formats.models import write_model
from margo.model.grammar import grammar
from margo.model.hmm import flat_start, whole_words
from margo.signal.front_end import MfccOptions, describe
from margo.signal.quiet_cuts import pieces
from margo.tasks.htk_exchange import import_model
from margo.tasks.recognising import Placing, Recogniser


def test_an_augmented_model_recognises(tmp_path):
    rng = np.random.default_rng(0)
    features = describe(MfccOptions(), 8000)
    size = features["dimension"]
    hmms = flat_start(whole_words("abc"), 3, np.zeros(size), np.full(size, 9.0),
                      meta={"features": features, "grammar": grammar("isolated")})  # fmt: skip
    count = hmms.pool.n_gaussians
    hmms = move(hmms, rng.normal(size=(count, size)), np.zeros(count), 1.0)
    wide = move(hmms, np.zeros((count, size)), np.full(count, 4.0), 1.0)
    assert wide.meta["augmented"] and wide.pool.dimension == size + 1
    soundfile.write(tmp_path / "a.wav", 0.1 * rng.normal(size=4000), 8000)
    results = []
    for name, model in (("plain", hmms), ("wide", wide)):
        write_model(tmp_path / name / "model.npz", model)
        results.append(Recogniser(tmp_path / name, 0.1).transcribe(tmp_path / "a.wav"))
    plain, wider = results
    assert margo.load(tmp_path / "plain" / "model.npz", 0.1).transcribe(tmp_path / "a.wav") == plain  # a bare file
    # All Gaussians are as far away in the new dimension, so that only the score falls: by 4 / 2 and log sqrt(2 pi).
    assert wider["words"] == plain["words"] and wider["text"] in ("a", "b", "c")
    frames = (plain["score"] - wider["score"]) / (2 + 0.5 * np.log(2 * np.pi))
    assert frames > 40 and abs(frames - round(frames)) < 1e-3


def test_a_recording_is_a_speaker_of_its_own(tmp_path):
    """A model of features that are normalised by speaker hears a recording as one of those normalised by utterance."""
    options, size = MfccOptions(cmvn="speaker"), 39
    rng = np.random.default_rng(0)
    for by in ("speaker", "utterance", "none"):
        features = describe(replace(options, cmvn=by), 8000)
        hmms = flat_start(whole_words("abc"), 3, np.zeros(size), np.full(size, 9.0), meta={"features": features})
        hmms = hmms.with_pool(replace(hmms.pool, means=np.random.default_rng(1).normal(size=hmms.pool.means.shape)))
        write_model(tmp_path / by / "model.npz", hmms)
    samples = 100 * rng.normal(size=4000).astype(np.float32)
    score = {by: Recogniser(tmp_path / by, 0.1).log_likelihood((samples, 8000))
             for by in ("speaker", "utterance", "none")}  # fmt: skip
    assert score["speaker"] == score["utterance"] != score["none"]


def noises(rate, seconds):
    rng, size = np.random.default_rng(0), seconds * rate
    return {
        "digital silence": np.zeros(size), "a constant": np.full(size, 7.0), "loud": 3000 * rng.standard_normal(size),
        "soft": 3 * rng.standard_normal(size), "last bits": np.round(0.5 * rng.standard_normal(size)),
        "hum": 1000 * np.sin(2 * np.pi * 50 * np.arange(size) / rate),
    }  # fmt: skip


def test_nothing_is_heard_where_nothing_is_said(tmp_path):
    """A model without silence, of one word that every frame fits as well as any, and so is always sure."""
    features = describe(MfccOptions(), 8000)
    size = features["dimension"]
    hmms = flat_start(whole_words("a"), 3, np.zeros(size), np.full(size, 9.0),
                      meta={"features": features, "grammar": grammar("loop", -20.0)})  # fmt: skip
    write_model(tmp_path / "model.npz", hmms)
    recogniser = Recogniser(tmp_path)
    for what, samples in noises(8000, 60).items():
        found = recogniser.transcribe((samples.astype(np.float32), 8000))
        assert all(word["confidence"] < 0.5 for word in found["words"]), what
    assert recogniser.transcribe((np.zeros(4000, np.float32), 8000))["text"] == ""


@pytest.fixture(scope="module")
def strings(references, tmp_path_factory):
    """HTK's model of connected digits as a recogniser, and its recordings with HTK's words."""
    htk, folder = references / "htk", tmp_path_factory.mktemp("strings")
    model = [htk / "strings" / "model_8mix" / name for name in ("macros", "hmmdefs")]
    hmms, _ = import_model(model, htk / "dict", htk / "strings" / "wdnet", htk / "hcopy.conf", 8000,
                           insertion_penalty=-50.0)  # fmt: skip
    write_model(folder / "model.npz", hmms)
    heard = {name: [label.name for label in labels]
             for name, labels in read_mlf(htk / "strings" / "rec_p-50.0.mlf").items()}  # fmt: skip
    return Recogniser(folder), {name: htk / "strings" / "wav" / f"{name}.wav" for name in heard}, heard


def test_speech_is_heard_as_before_and_noise_is_not(strings):
    recogniser, paths, heard = strings
    assert {name: recogniser.transcribe(path)["text"].split() for name, path in paths.items()} == heard
    for what, samples in noises(8000, 60).items():
        found = recogniser.transcribe((samples.astype(np.float32), 8000))
        assert all(word["confidence"] < 0.5 for word in found["words"]), what


def test_a_long_recording_is_taken_in_pieces(strings):
    """A minute and a half of strings with pauses of soft noise: as its pieces, later."""
    recogniser, paths, _ = strings
    rng, parts, at = np.random.default_rng(1), [], 0.0
    while at < 90:
        for path in paths.values():
            samples, rate = soundfile.read(path, dtype="int16")
            parts += [samples.astype(np.float32), rng.standard_normal(int(0.7 * rate)).astype(np.float32)]
            at = sum(map(len, parts)) / rate
    samples = np.concatenate(parts)
    found, expected = recogniser.transcribe((samples, rate)), []
    for first, last in pieces(samples, rate):
        alone = recogniser.transcribe((samples[first:last], rate))["words"]
        expected += [{**word, "start": pytest.approx(word["start"] + first / rate, abs=2e-3)} for word in alone]
    assert found["words"] == expected and len(pieces(samples, rate)) >= 2
    assert sum(word["start"] > 60 for word in found["words"]) > 20


def test_known_words_are_aligned(strings, references, monkeypatch):
    recogniser, paths, heard = strings
    monkeypatch.setattr(recogniser, "placing", Placing(scale=None))  # the best path's times, as HTK's are
    name = min(paths)
    found = recogniser.align(paths[name], " ".join(heard[name]))
    labels = read_mlf(references / "htk" / "strings" / "rec_p-50.0.mlf")[name]
    assert [word["word"] for word in found["words"]] == [unit["unit"] for unit in found["units"]] == heard[name]
    for word, label in zip(found["words"][1:], labels[1:]):
        assert word["start"] == pytest.approx(label.start * 1e-7 + 0.0075, abs=1e-3)  # half of what windows overlap
    assert recogniser.log_likelihood(paths[name]) <= found["score"]  # the grammar's penalty is in the one alone
    with pytest.raises(MargoError, match=r"not in the model: eleven \(it has eight five"):
        recogniser.align(paths[name], ["eleven"])
    with pytest.raises(MargoError, match="the model expects 8000 Hz"):
        recogniser.transcribe((np.zeros(4000), 16000))
