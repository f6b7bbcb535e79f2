"""MFCC of a minute of speech-like signal: margo beside kaldi-native-fbank and librosa, 13 cepstra a frame each."""

import time
from dataclasses import replace

import numpy as np

RATE, SECONDS, REPEATS = 16000, 60, 30


def speechlike() -> np.ndarray:
    """Sixty seconds of pulses and tilted noise whose level rises and falls like syllables, as 16-bit values."""
    rng = np.random.default_rng(0)
    t = np.arange(RATE * SECONDS) / RATE
    pulses = np.sin(2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 0.7 * t)) / RATE) ** 9
    noise = np.convolve(rng.standard_normal(len(t)), 0.9 ** np.arange(40), mode="same")
    return np.round((0.05 + np.sin(2 * np.pi * 2 * t) ** 2) * (8000 * pulses + 300 * noise)).astype(np.float32)


def by_librosa(samples: np.ndarray) -> np.ndarray:
    import librosa

    return librosa.feature.mfcc(
        y=samples, sr=RATE, n_mfcc=13, n_fft=512, win_length=400, hop_length=160, window="hamming", n_mels=26,
        htk=True, lifter=22, center=False,
    ).T  # fmt: skip


def by_kaldi(samples: np.ndarray) -> np.ndarray:
    import kaldi_native_fbank

    options = kaldi_native_fbank.MfccOptions()
    options.frame_opts.dither = 0.0
    computer = kaldi_native_fbank.OnlineMfcc(options)
    computer.accept_waveform(RATE, samples)
    computer.input_finished()
    return np.stack([computer.get_frame(frame) for frame in range(computer.num_frames_ready)])


def fastest(functions: dict) -> dict[str, float]:
    """CPU seconds of each function's best run; the runs take turns, so that all meet the same machine."""
    best = dict.fromkeys(functions, np.inf)
    for _ in range(REPEATS):
        for name, function in functions.items():
            started = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - started)
    return best


def entries() -> list[dict]:
    from margo.signal.front_end import MfccOptions
    from margo.signal.mfcc import static_features

    samples = speechlike()
    htk = MfccOptions(energy="0", deltas=0)
    kaldi = replace(htk, variant="kaldi", energy="E", normalise_energy=False, zero_mean=True, channels=23,
                    low_freq=20.0, use_power=True)  # fmt: skip
    functions = {
        "htk": lambda: static_features(samples, RATE, htk),
        "kaldi": lambda: static_features(samples, RATE, kaldi),
        "librosa": lambda: by_librosa(samples),
        "kaldi-native-fbank": lambda: by_kaldi(samples),
    }
    shapes = {name: function().shape[1] for name, function in functions.items()}
    assert set(shapes.values()) == {13}, shapes
    seconds = fastest(functions)
    pairs = [("htk", "kaldi-native-fbank"), ("htk", "librosa"), ("kaldi", "kaldi-native-fbank")]
    return [
        {
            "name": f"MFCC of {SECONDS} s at {RATE} Hz, {ours} variant",
            "ours_seconds": seconds[ours],
            "peer": peer,
            "peer_seconds": seconds[peer],
            "ratio": seconds[peer] / seconds[ours],
        }
        for ours, peer in pairs
    ]
