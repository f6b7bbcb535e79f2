"""What a model is believed after dev was heard, on tones for words (synthetic)."""

from dataclasses import replace

import numpy as np
import pytest

from margo.formats import datadir, features
from margo.formats.models import write_model
from margo.search.held import BELIEF
from margo.signal.front_end import MfccOptions, describe_given
from margo.signal.mfcc import compute_features
from margo.tasks import speech
from margo.tasks.calibrating import SCALES, calibrated, heard_in_noise, noises
from margo.tasks.recognising import Recogniser
from runs import run_step
from tones import RATE, tone, tone_model

PITCHES = dict(zip("abcdefgh", (250, 330, 440, 580, 770, 1000, 1350, 1800)))
FACTORS = (1, 1.3, 1.7, 2.0)


def glide(pitch, rng):
    """A word: a tone that rises through four pitches, as its model's states do."""
    return np.concatenate([tone(pitch * factor, rng.uniform(0.07, 0.18), rng) for factor in FACTORS])


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    """A feature folder of 40 strings of two words."""
    folder, rng = tmp_path_factory.mktemp("dev"), np.random.default_rng(3)
    orders = {f"u{n:02d}": tuple(rng.choice([*PITCHES], 2).tolist()) for n in range(40)}
    sounds = {name: np.concatenate([glide(PITCHES[word], rng) for word in words]) for name, words in orders.items()}
    matrices = ((name, compute_features(samples, RATE, MfccOptions())) for name, samples in sounds.items())
    offsets = features.write_ark(folder / "feats.ark", folder / "feats.scp", matrices)
    datadir.write(folder, [datadir.Utterance(name, name, words, feats=f"feats.ark:{offsets[name]}")
                           for name, words in orders.items()])  # fmt: skip
    return speech.read(folder)


@pytest.fixture(scope="module")
def model():
    return tone_model({word: [pitch * factor for factor in FACTORS] for word, pitch in PITCHES.items()})


def test_noise_is_not_believed_and_words_are(model, dev, tmp_path):
    chosen = calibrated(model, [(model, dev)], "dev", None)
    told = chosen.meta["confidence"]
    assert told["chosen_on"] == "dev" and told["words"] >= told["right"] > 50 and told["scale"] in SCALES
    assert told["belief"] != list(BELIEF) and min(told["belief"][1:]) >= 0
    write_model(tmp_path / "after" / "model.npz", chosen)
    write_model(tmp_path / "before" / "model.npz", model)
    after, before = Recogniser(tmp_path / "after"), Recogniser(tmp_path / "before")
    assert after.scale == told["scale"] and before.scale == 0.1
    rng, sure = np.random.default_rng(9), {"after": [], "before": []}
    for _ in range(5):
        spoken = np.concatenate([glide(PITCHES["f"], rng), glide(PITCHES["b"], rng)])
        found = after.transcribe((spoken, RATE))
        assert found["text"] == "f b" and min(word["confidence"] for word in found["words"]) > 0.5
        for name, recogniser in (("after", after), ("before", before)):
            second = noises(RATE, 1.0, rng)["hiss"]
            sure[name] += [word["confidence"] for word in recogniser.transcribe((second, RATE))["words"]]
    assert max(sure["after"], default=0) < 0.5 and max(sure["before"]) > 0.5


def test_a_model_is_left_as_it_is_where_noise_cannot_be_made_or_speech_is_short(model, dev):
    given = replace(model, meta={**model.meta, "features": describe_given(39)})
    assert calibrated(given, [(given, dev)], "dev", None) is given
    few = replace(dev, items=dev.items[:4])
    assert calibrated(model, [(model, few)], "dev", None) is model


def test_noises_are_the_same_every_time_and_long_enough(model):
    one, other = (noises(RATE, 0.5, np.random.default_rng(0)) for _ in range(2))
    assert all(np.array_equal(one[name], other[name]) and len(one[name]) == RATE // 2 for name in one)
    assert all(np.isfinite(samples).all() and np.abs(samples).max() < 32768 for samples in one.values())
    options = MfccOptions(sample_rate=RATE)
    assert np.array_equal(heard_in_noise(model, options, RATE), heard_in_noise(model, options, RATE))


@pytest.fixture(scope="module")
def digits(corpora, root, tmp_path_factory):
    """A model of real digits, trained on a few recordings of each speaker, with dev; and recordings of others."""
    place, sets = tmp_path_factory.mktemp("digits"), {"train": range(20, 26), "dev": range(10, 13), "test": range(2)}
    speakers = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
    for name, numbers in sets.items():
        rows = [datadir.Utterance(f"{who}-{digit}-{n}", who, (f"d{digit}",),
                                  str(corpora / "fsdd" / "recordings" / f"{digit}_{who}_{n}.wav"))
                for digit in range(10) for who in speakers for n in numbers]  # fmt: skip
        datadir.write(place / "data" / name, rows)
        run_step(root, "make_mfcc", place / "mfcc" / name, data=place / "data" / name)
    run_step(root, "train_ml", place / "ml_1", data=place / "mfcc" / "train", dev=place / "mfcc" / "dev", iterations=6,
             states=8, silence_states=3)  # fmt: skip
    return Recogniser(place / "ml_1"), datadir.read(place / "data" / "test")


def heard_in_silence(recogniser):
    rate = recogniser.options.sample_rate
    return [word["confidence"] for word in recogniser.transcribe((np.zeros(60 * rate, np.float32), rate))["words"]]


def test_real_digits_are_believed_and_a_second_of_noise_is_not(digits):
    recogniser, test = digits
    assert recogniser.hmms.meta["confidence"]["chosen_on"] == "dev"
    rng, rate = np.random.default_rng(21), recogniser.options.sample_rate
    believed = {}
    for seconds in (0.5, 1.0, 1.0, 1.0, 2.0):
        for name, samples in noises(rate, seconds, rng).items():
            found = recogniser.transcribe((samples, rate))["words"]
            believed.setdefault(name, []).append(max((word["confidence"] for word in found), default=0.0))
    assert max(believed["hiss"] + believed["last bits"] + heard_in_silence(recogniser)) < 0.5, believed
    assert max(believed["knocks"] + believed["gusts"] + believed["tone"]) < 0.5, believed
    for name, values in believed.items():  # rumble, too, and what falls by 3 dB an octave
        assert np.mean(np.array(values) > 0.5) <= 0.25, (name, values)
    assert np.mean(np.concatenate([*believed.values()]) > 0.5) <= 0.03, believed
    sure, right, kept = [], [], 0
    for utterance in test:
        words = recogniser.transcribe(utterance.audio)["words"]
        kept += bool(words)
        sure += [word["confidence"] for word in words]
        right += [(word["word"],) == utterance.words for word in words]
    assert kept >= 0.98 * len(test)
    assert np.mean(sure) == pytest.approx(np.mean(right), abs=0.08)  # as sure as they are right
    assert np.mean(np.array(sure)[right]) > np.mean(np.array(sure)[~np.array(right)]) + 0.1
