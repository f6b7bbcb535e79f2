"""MFCC against HTK's HCopy, kaldi-native-fbank, and a plain float64 re-computation frame by frame."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.signal.front_end import MfccOptions, dimension, static_dimension
from margo.signal.mfcc import (
    BATCH,
    checked_samples,
    cmvn_stats,
    compute_features,
    finish_features,
    static_features,
    statics_of_many,
)

HTK = MfccOptions()
PARITY = 2e-3
STATIC = replace(HTK, deltas=0)
VARIANTS = {
    "MFCC_0_D_A_Z": replace(HTK, energy="0", cmvn="utterance"),
    "MFCC_E_D_A_Z": replace(HTK, cmvn="utterance"),
    "MFCC_no_lifter": replace(STATIC, energy="0", lifter=0.0),
    "MFCC_E_raw_off": replace(STATIC, raw_energy=False, normalise_energy=False, zero_mean=True),
    "FBANK": replace(STATIC, kind="fbank", energy="none"),
    "FBANK_power_band": replace(
        STATIC, kind="fbank", energy="none", use_power=True, low_freq=100.0, high_freq=3800.0
    ),
}


@pytest.fixture(scope="module")
def kaldi(root):
    return MfccOptions(**tomllib.loads((root / "conf" / "mfcc_kaldi.toml").read_text())["make_mfcc"])


def speechlike(seconds=1.5, rate=16000, seed=0):
    """Integer samples with speech's spectral tilt, changing level, and an offset."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    pulses = np.sin(2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 2 * t)) / rate) ** 9
    noise = np.convolve(rng.standard_normal(len(t)), 0.9 ** np.arange(40), mode="same")
    level = 0.05 + np.sin(2 * np.pi * 1.5 * t) ** 2
    return np.clip(np.round(level * (8000 * pulses + 300 * noise) + 40), -32768, 32767).astype(np.float32)


def read_hcopy(path):
    """HTK's parameter file: big-endian header (frames, period, bytes a frame, kind), float32 rows."""
    content = path.read_bytes()
    frames = int.from_bytes(content[:4], "big")
    return np.frombuffer(content, ">f4", offset=12).reshape(frames, -1)


def read_samples(path):
    import soundfile

    return soundfile.read(path, dtype="int16")


def worst_against_hcopy(folder, waves, options, count=20):
    worst, files = 0.0, sorted(folder.glob("*.mfc"))
    assert len(files) == count
    for path in files:
        samples, rate = read_samples(waves / f"{path.stem}.wav")
        ours, theirs = compute_features(samples, rate, options), read_hcopy(path)
        assert ours.shape == theirs.shape and ours.dtype == np.float32
        worst = max(worst, np.abs(ours - theirs).max())
    return worst


def test_mfcc_e_d_a_equals_htk(references):
    htk = references / "htk"
    assert worst_against_hcopy(htk / "mfc", htk / "wav", HTK) < PARITY
    assert worst_against_hcopy(htk / "strings" / "mfc", htk / "strings" / "wav", HTK, count=10) < PARITY


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_equal_htk(references, name):
    folder = references / "htk" / "variants" / name
    assert worst_against_hcopy(folder, references / "htk" / "wav", VARIANTS[name]) < PARITY


def test_melspec_equals_htk(references):
    """Sums of magnitudes up to 1e6 are only as good as float32: compared relative to the frame's largest channel."""
    for path in sorted((references / "htk" / "variants" / "MELSPEC").glob("*.mfc")):
        samples, rate = read_samples(references / "htk" / "wav" / f"{path.stem}.wav")
        ours = compute_features(samples, rate, replace(STATIC, kind="melspec", energy="none"))
        theirs = read_hcopy(path)
        assert np.abs(ours - theirs).max() < 1e-5 * theirs.max()


@pytest.mark.parametrize(
    "wrong", [{"preemphasis": 0.96}, {"lifter": 21.0}, {"channels": 25}, {"raw_energy": False}, {"delta_window": 3}]
)
def test_parity_would_notice(references, wrong):
    folder = references / "htk"
    assert worst_against_hcopy(folder / "mfc", folder / "wav", replace(HTK, **wrong)) > PARITY


def plain_mfcc(samples, rate, o):
    """One frame at a time in float64, written from the definition; MFCC with E or c0 only."""
    window, shift = int(rate * o.window_ms / 1000), int(rate * o.shift_ms / 1000)
    size = 2 ** int(np.ceil(np.log2(window)))
    n = np.arange(window)
    taper = 0.54 - 0.46 * np.cos(2 * np.pi * n / (window - 1))
    if o.variant == "kaldi":
        taper = (0.5 - 0.5 * np.cos(2 * np.pi * n / (window - 1))) ** 0.85
    mel = [1127 * np.log(1 + k * rate / size / 700) for k in range(size // 2)]
    low, high = (1127 * np.log(1 + f / 700) for f in (o.low_freq, rate / 2))
    step = (high - low) / (o.channels + 1)
    rows = []
    for start in range(0, len(samples) - window + 1, shift):
        frame = samples[start : start + window].astype(np.float64)
        frame = frame - frame.mean() * o.zero_mean
        raw = np.sum(frame**2)
        frame = (frame - o.preemphasis * np.concatenate([frame[:1], frame[:-1]])) * taper
        spectrum = np.abs(np.exp(-2j * np.pi * np.outer(np.arange(size // 2), n) / size) @ frame)
        spectrum = spectrum**2 if o.use_power else spectrum
        logs = []
        for c in range(o.channels):
            weights = [max(0.0, 1 - abs(m - low - step * (c + 1)) / step) for m in mel]
            weights[0] = 0.0
            logs.append(np.log(max(weights @ spectrum, 1.0 if o.variant == "htk" else np.finfo(np.float32).eps)))
        cepstra = [
            np.sqrt(2 / o.channels) * sum(v * np.cos(np.pi * i / o.channels * (j + 0.5)) for j, v in enumerate(logs))
            for i in range(o.cepstra + 1)
        ]
        if o.variant == "kaldi":
            cepstra[0] /= np.sqrt(2)
        cepstra = [v * (1 + o.lifter / 2 * np.sin(np.pi * i / o.lifter)) for i, v in enumerate(cepstra)]
        extra = cepstra[0] if o.energy == "0" else np.log(raw if o.raw_energy else np.sum(frame**2))
        rows.append([extra, *cepstra[1:]] if o.variant == "kaldi" else [*cepstra[1:], extra])
    return np.array(rows)


@pytest.mark.parametrize("energy", ["E", "0"])
@pytest.mark.parametrize("rate", [8000, 11025, 16000])
@pytest.mark.parametrize("zero_mean", [False, True])
def test_htk_variant_equals_its_definition(energy, rate, zero_mean):
    options = replace(STATIC, energy=energy, normalise_energy=False, zero_mean=zero_mean)
    samples = speechlike(0.3, rate)
    assert np.abs(static_features(samples, rate, options) - plain_mfcc(samples, rate, options)).max() < 1e-3


@pytest.mark.parametrize("raw", [False, True])
def test_kaldi_variant_equals_its_definition(kaldi, raw):
    options, samples = replace(kaldi, raw_energy=raw), speechlike(0.3)
    assert np.abs(static_features(samples, 16000, options) - plain_mfcc(samples, 16000, options)).max() < 1e-4


def by_kaldi(samples, rate, o):
    import kaldi_native_fbank as knf

    theirs = knf.MfccOptions() if o.kind == "mfcc" else knf.FbankOptions()
    theirs.frame_opts.samp_freq, theirs.frame_opts.dither = rate, 0.0
    theirs.frame_opts.preemph_coeff, theirs.frame_opts.remove_dc_offset = o.preemphasis, o.zero_mean
    theirs.frame_opts.frame_length_ms, theirs.frame_opts.frame_shift_ms = o.window_ms, o.shift_ms
    theirs.mel_opts.num_bins, theirs.mel_opts.low_freq, theirs.mel_opts.high_freq = o.channels, o.low_freq, o.high_freq
    theirs.use_energy, theirs.raw_energy = o.energy == "E", o.raw_energy
    if o.kind == "mfcc":
        theirs.num_ceps, theirs.cepstral_lifter = o.cepstra + 1, o.lifter
    computer = (knf.OnlineMfcc if o.kind == "mfcc" else knf.OnlineFbank)(theirs)
    computer.accept_waveform(rate, samples.tolist())
    computer.input_finished()
    return np.stack([computer.get_frame(frame) for frame in range(computer.num_frames_ready)])


KALDI_CHANGES = {
    "default": {},
    "c0": {"energy": "0"},
    "energy of the window": {"raw_energy": False},
    "offset kept": {"zero_mean": False},
    "no emphasis, no lifter": {"preemphasis": 0.0, "lifter": 0.0},
    "band": {"low_freq": 60.0, "high_freq": -400.0},
    "other frames": {"window_ms": 20.0, "shift_ms": 8.0},
    "40 channels": {"kind": "fbank", "channels": 40, "energy": "none"},
    "channels and energy": {"kind": "fbank", "energy": "E"},
}


@pytest.mark.parametrize("changes", KALDI_CHANGES.values(), ids=KALDI_CHANGES.keys())
@pytest.mark.parametrize("rate", [8000, 16000])
def test_kaldi_variant_equals_kaldi(kaldi, changes, rate):
    if rate == 8000 and changes.get("channels") == 40:
        changes = {**changes, "channels": 30}
    options, samples = replace(kaldi, **changes), speechlike(1.5, rate)
    ours, theirs = compute_features(samples, rate, options), by_kaldi(samples, rate, options)
    assert ours.shape == theirs.shape and np.abs(ours - theirs).max() < PARITY


def test_kaldi_variant_equals_kaldi_on_speech(kaldi, corpora):
    for path in sorted((corpora / "timit_sample").glob("*/sx*.wav"))[:12]:
        samples, rate = read_samples(path)
        assert np.abs(compute_features(samples, rate, kaldi) - by_kaldi(samples, rate, kaldi)).max() < PARITY


def test_frames_do_not_depend_on_their_batch():
    samples = speechlike((2 * BATCH + 5) * 0.01)
    whole = static_features(samples, 16000, replace(STATIC, normalise_energy=False))
    assert len(whole) > BATCH
    for first in (0, BATCH - 1, BATCH, len(whole) - 3):
        part = static_features(
            samples[first * 160 : (first + 2) * 160 + 400], 16000, replace(STATIC, normalise_energy=False)
        )
        assert np.abs(part - whole[first : first + 3]).max() < 1e-4


def test_a_large_offset_is_removed_without_a_trace():
    options = replace(STATIC, zero_mean=True, normalise_energy=False)
    samples = np.round(speechlike(0.5) / 8)
    difference = static_features(samples, 16000, options) - static_features(samples + 20000, 16000, options)
    assert np.abs(difference).max() < 2e-3


def test_frame_count_and_dimensions():
    for options, columns in [(HTK, 39), (STATIC, 13), (replace(HTK, energy="none", deltas=1), 24),
                             (replace(STATIC, kind="fbank"), 27)]:  # fmt: skip
        for samples, frames in ((400, 1), (559, 1), (560, 2), (16000, 98)):
            features = compute_features(speechlike(1.0)[:samples], 16000, options)
            assert features.shape == (frames, columns)
            assert dimension(options) == columns == static_dimension(options) * (1 + options.deltas)
    with pytest.raises(MargoError, match="399 samples, fewer than the 400 of one window"):
        compute_features(speechlike(1.0)[:399], 16000, HTK)


def test_normalised_energy_has_maximum_one_and_a_floor():
    energy = compute_features(speechlike(), 16000, STATIC)[:, -1]
    assert energy.max() == 1.0
    quiet = np.concatenate([speechlike(), np.zeros(8000, np.float32)])
    assert np.isclose(compute_features(quiet, 16000, STATIC)[-1, -1], 1.0 - 0.1 * 5.0 * np.log(10.0), atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1000.0])
@pytest.mark.parametrize("kind", ["mfcc", "fbank", "melspec"])
@pytest.mark.parametrize("cmvn_variance", [False, True])
def test_a_constant_signal_has_finite_features(kaldi, kind, value, cmvn_variance):
    for base in (HTK, kaldi):
        options = replace(base, kind=kind, cmvn="utterance", cmvn_variance=cmvn_variance)
        features = compute_features(np.full(4000, value, np.float32), 16000, options)
        assert np.isfinite(features).all() and np.abs(features).max() < 1e5


def test_too_short_is_refused_with_both_numbers():
    with pytest.raises(MargoError, match=r"399 samples.*400"):
        compute_features(np.zeros(399, np.float32), 16000, HTK)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_samples_that_are_not_finite_are_refused(bad):
    samples = speechlike()
    samples[1234] = bad
    with pytest.raises(MargoError, match="1 of 24000 samples are not finite.*1234"):
        compute_features(samples, 16000, HTK)


@pytest.mark.parametrize(
    "rate, changes, message",
    [
        (8000, {"sample_rate": 16000}, "8000 Hz, expected 16000"),
        (8000, {"high_freq": 4500.0}, "0 to 4500 Hz does not lie within 0 to 4000"),
        (8000, {"channels": 200}, "holds no FFT bin"),
        (8000, {"shift_ms": 0.1}, "less than a sample"),
    ],
)
def test_options_that_do_not_fit_the_rate_are_refused(rate, changes, message):
    with pytest.raises(MargoError, match=message):
        compute_features(speechlike(0.5), rate, replace(HTK, **changes))


def test_two_channels_are_refused():
    with pytest.raises(MargoError, match="expected one channel"):
        compute_features(np.zeros((4000, 2), np.float32), 16000, HTK)


def test_speaker_normalisation_uses_the_sum_of_statistics():
    options = replace(HTK, energy="0", cmvn="speaker", cmvn_variance=True, deltas=0)
    statics = [static_features(speechlike(0.8, seed=seed), 16000, options) for seed in (1, 2, 3)]
    stats = sum((cmvn_stats(x, options) for x in statics[1:]), cmvn_stats(statics[0], options))
    together = np.concatenate([finish_features(x, options, stats) for x in statics]).astype(np.float64)
    assert np.abs(together.mean(axis=0)).max() < 1e-5 and np.abs(together.std(axis=0) - 1).max() < 1e-5
    assert np.abs(finish_features(statics[0], options, stats).mean(axis=0)).max() > 1e-2


@pytest.mark.parametrize("options", [
    MfccOptions(), MfccOptions(zero_mean=True, raw_energy=False), MfccOptions(energy="0", deltas=3),
    MfccOptions(kind="fbank", energy="none", deltas=1), MfccOptions(variant="kaldi", energy="E", low_freq=20.0),
])  # fmt: skip
def test_recordings_that_go_together_have_the_features_that_they_have_alone(options):
    """To the bit, on any processor: no frame is worked out otherwise because of those beside it."""
    rng = np.random.default_rng(5)
    sizes = [200, 279, 280, 281, 1000, 3517, 40000, 200, 8000]
    signals = [checked_samples(rng.normal(0, 1000, size).round().astype(np.float32), 8000, options) for size in sizes]
    statics, lengths = statics_of_many(signals, 8000, options)
    finished = finish_features(statics, options, None, lengths)
    assert lengths.tolist() == [(size - 200) // 80 + 1 for size in sizes]
    for x, last, length in zip(signals, np.cumsum(lengths), lengths):
        assert np.array_equal(compute_features(x, 8000, options), finished[last - length : last])
