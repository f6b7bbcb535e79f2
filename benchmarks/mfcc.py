"""MFCC of a minute of speech-like signal: margo beside kaldi-native-fbank and librosa, 13 cepstra a frame each.

And of 3000 short files (0.44 s at 8 kHz, 39 columns), read from a folder: margo as its step does it, beside itself with
one file at a time and beside kaldi-native-fbank; beside HTK's HCopy where that is installed. What counts there is CPU
seconds of reading and computing within a process that runs already; nothing is written. HCopy is a program: its seconds
have its start and its writing in them.
"""

import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

RATE, SECONDS, REPEATS = 16000, 60, 30
FILES, SHORT, SHORT_RATE = 3000, 0.44, 8000


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
    long = [
        {
            "name": f"MFCC of {SECONDS} s at {RATE} Hz, {ours} variant",
            "ours_seconds": seconds[ours],
            "peer": peer,
            "peer_seconds": seconds[peer],
            "ratio": seconds[peer] / seconds[ours],
        }
        for ours, peer in pairs
    ]
    return long + short_files()


def short_files() -> list[dict]:
    """Seconds of CPU from files to finished features."""
    import soundfile

    from margo.formats.audio import read_audio
    from margo.formats.datadir import Utterance
    from margo.signal.front_end import MfccOptions
    from margo.signal.mfcc import compute_features
    from margo.tasks.featuring import CHUNK, Front, make_features

    options, whole = MfccOptions(), speechlike().astype(np.int16)
    size = round(SHORT * SHORT_RATE)
    with tempfile.TemporaryDirectory() as folder:
        rows = [Utterance(f"u{n}", "s", ("a",), str(Path(folder) / f"{n}.wav")) for n in range(FILES)]
        for n, row in enumerate(rows):
            soundfile.write(row.audio, whole[n * 100 : n * 100 + size], SHORT_RATE)
        front = Front(options, SHORT_RATE, False)

        def ours():
            for first in range(0, FILES, CHUNK):
                make_features(front, tuple(rows[first : first + CHUNK]))

        def singly():
            for row in rows:
                compute_features(read_audio(Path(row.audio))[0], SHORT_RATE, options)

        def kaldi():
            import kaldi_native_fbank

            settings = kaldi_native_fbank.MfccOptions()
            settings.frame_opts.dither, settings.frame_opts.samp_freq = 0.0, SHORT_RATE
            for row in rows:
                computer = kaldi_native_fbank.OnlineMfcc(settings)
                computer.accept_waveform(SHORT_RATE, soundfile.read(row.audio, dtype="float32")[0])
                computer.input_finished()
                np.stack([computer.get_frame(frame) for frame in range(computer.num_frames_ready)])

        functions = {"margo": ours, "margo, one file at a time": singly, "kaldi-native-fbank, statics alone": kaldi}
        seconds = dict.fromkeys(functions, np.inf)
        for _ in range(3):
            for name, function in functions.items():
                began = time.process_time()
                function()
                seconds[name] = min(seconds[name], time.process_time() - began)
        if shutil.which("HCopy"):
            seconds["HTK HCopy"] = hcopy(Path(folder), rows)
    mine = seconds.pop("margo")
    return [{"name": f"MFCC_E_D_A of {FILES} files of {SHORT} s", "ours_seconds": mine, "peer": peer,
             "peer_seconds": theirs, "ratio": theirs / mine} for peer, theirs in seconds.items()]  # fmt: skip


def hcopy(folder: Path, rows) -> float:
    """Seconds of CPU that HTK's program takes for the same."""
    import resource

    settings = {"SOURCEFORMAT": "WAV", "TARGETKIND": "MFCC_E_D_A", "TARGETRATE": 100000.0, "WINDOWSIZE": 250000.0,
                "USEHAMMING": "T", "PREEMCOEF": 0.97, "NUMCHANS": 26, "CEPLIFTER": 22, "NUMCEPS": 12, "ENORMALISE": "T"}
    (folder / "config").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    (folder / "list").write_text("".join(f"{row.audio} {row.audio}.mfc\n" for row in rows))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["HCopy", "-C", str(folder / "config"), "-S", str(folder / "list")], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
