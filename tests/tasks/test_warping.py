"""Vocal tract length normalisation: a warp of 1 changes nothing, others move resonances, and the search finds them."""

import numpy as np
import pytest
import soundfile

from margo.errors import MargoError
from margo.formats import datadir
from margo.formats.features import read_matrix, read_scp
from margo.formats.models import write_model
from margo.gaussian.pool import single_gaussians
from margo.model.hmm import flat_start, whole_words
from margo.signal.front_end import MfccOptions, describe
from margo.signal.mfcc import checked_samples, mel_filters, static_features, statics_of_many, warped
from margo.tasks import speech
from margo.tasks.warping import WarpOptions, few_of_each, read_warps
from runs import run_step

RATE = 8000
TONES = {"low": (400, 1200), "high": (700, 2100)}


def sung(word, shift=1.0, seed=0, seconds=0.4):
    """Two resonances of noise, ``shift`` times as high as usual."""
    rng, samples = np.random.default_rng(seed), round(seconds * RATE)
    spectrum = np.fft.rfft(rng.normal(size=samples))
    at = np.fft.rfftfreq(samples, 1 / RATE)
    gain = sum(np.exp(-0.5 * ((at - shift * tone) / 120) ** 2) for tone in TONES[word]) + 0.01
    return (20000 * np.fft.irfft(spectrum * gain, samples)).astype(np.float32)


@pytest.mark.parametrize("variant", ["htk", "kaldi"])
def test_a_warp_of_one_is_the_identity(variant):
    options, signal = MfccOptions(variant=variant), sung("low")
    at = np.linspace(0, 4000, 129)
    assert warped(at, 1.0, 4000.0) is at
    np.testing.assert_array_equal(mel_filters(options, RATE, 256, 1.0), mel_filters(options, RATE, 256))
    plain, samples = static_features(signal, RATE, options), checked_samples(signal, RATE, options)
    np.testing.assert_array_equal(plain, statics_of_many([samples], RATE, options, 1.0)[0])
    assert np.abs(statics_of_many([samples], RATE, options, 1.1)[0] - plain).max() > 0.1


@pytest.mark.parametrize("warp", [0.8, 0.93, 1.07, 1.2])
def test_frequencies_rise_without_a_gap_from_nothing_to_the_end(warp):
    at = np.linspace(0, 4000, 40001)
    found = warped(at, warp, 4000.0)
    assert found[0] == 0 and found[-1] == pytest.approx(4000) and (np.diff(found) > 0).all()
    assert np.diff(found).max() < 0.25  # nowhere a jump
    low = at < 2500
    np.testing.assert_allclose(found[low], warp * at[low])


def test_a_warped_voice_looks_like_the_other():
    """Resonances 1 / 1.1 times as high, warped by 1.1, give nearly the features of the usual ones."""
    options = MfccOptions(normalise_energy=False, energy="none")
    usual, lower = (static_features(sung("low", shift), RATE, options).mean(axis=0) for shift in (1.0, 1 / 1.1))
    mended = statics_of_many([sung("low", 1 / 1.1)], RATE, options, 1.1)[0].mean(axis=0)
    assert np.abs(mended - usual).max() < 0.35 * np.abs(lower - usual).max()


@pytest.fixture(scope="module")
def voices(tmp_path_factory):
    """Three speakers, one of them with resonances lower by 1.08, one with higher ones; and a model of the usual."""
    place, rows = tmp_path_factory.mktemp("voices"), []
    for speaker, shift in (("bass", 1 / 1.08), ("mid", 1.0), ("sopr", 1 / 0.92)):
        for n, word in enumerate(["low", "high"] * 3):
            path = place / f"{speaker}{n}.wav"
            soundfile.write(path, sung(word, shift, n).astype(np.int16), RATE)
            rows.append(datadir.Utterance(f"{speaker}-{n}", speaker, (word,), str(path)))
    datadir.write(place / "data", rows)
    options = MfccOptions(deltas=0, normalise_energy=False, energy="none")
    x = {word: np.concatenate([static_features(sung(word, 1.0, seed), RATE, options) for seed in range(4)])
         for word in TONES}  # fmt: skip
    hmms = flat_start(whole_words(TONES), 1, np.zeros(12), np.ones(12), meta={"features": describe(options, RATE)})
    means, variances = (np.array([getattr(x[word], name)(axis=0) for word in TONES]) for name in ("mean", "var"))
    write_model(place / "model.npz", hmms.with_pool(single_gaussians(means, variances)))
    return place, options


def test_the_search_finds_how_voices_differ(root, voices):
    place, options = voices
    run_step(root, "find_warps", place / "warps", model=place, data=place / "data", most=4)
    warps = read_warps(place / "warps")
    assert [*warps] == ["bass", "mid", "sopr"]
    np.testing.assert_allclose([*warps.values()], [1.08, 1.0, 0.92], atol=0.021)
    front = {"deltas": 0, "normalise_energy": False, "energy": "none", "data": place / "data"}
    run_step(root, "make_mfcc", place / "mfcc", warps=place / "warps", **front)
    made = speech.read(place / "mfcc")
    assert made.features == {**describe(options, RATE), "vtln": "speaker"}
    for who, shift in (("bass", 1 / 1.08), ("sopr", 1 / 0.92)):  # though made together
        samples = sung("low", shift).astype(np.int16).astype(np.float32)
        own = statics_of_many([samples], RATE, options, warps[who])[0]
        np.testing.assert_allclose(read_matrix(read_scp(place / "mfcc")[f"{who}-0"], columns=12), own, atol=1e-3)
    with pytest.raises(MargoError, match="vtln is 'speaker', expected 'absent'"):
        run_step(root, "align", place / "ali", model=place, data=place / "mfcc")
    (place / "given").mkdir()
    (place / "given" / "warps.json").write_text('{"warps": {"bass": 1.0, "mid": 3.0}}')
    with pytest.raises(MargoError, match="mid: 3.0, expected warps of 0.5 to 2"):
        run_step(root, "make_mfcc", place / "other", warps=place / "given", **front)
    (place / "given" / "warps.json").write_text('{"warps": {"bass": 1.0, "mid": 1.0}}')
    with pytest.raises(MargoError, match="no warp of sopr"):
        run_step(root, "make_mfcc", place / "third", warps=place / "given", **front)


def test_a_few_utterances_of_each_speaker_spread_over_all(voices):
    data = datadir.read(voices[0] / "data")
    kept = [row.name for row in few_of_each(data, 2)]
    assert kept == [f"{who}-{n}" for who in ("bass", "mid", "sopr") for n in (0, 3)]
    assert WarpOptions(furthest=0.1, steps=2).warps == [1.0, 0.95, 1.05, 0.9, 1.1]
