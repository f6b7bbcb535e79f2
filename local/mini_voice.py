"""The voice of the embedded corpora: espeak-ng through ctypes, loaded by ``mini_corpus.py`` alone, in own processes.

espeak-ng is GPL-3 and comes from the ``espeakng-loader`` wheel (``pip install 'margo-speech[corpora]'``). It keeps
state from one utterance to the next, so the same audio needs the same utterances in the same order in a fresh process.
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SYNCHRONOUS = 2  # Initialize: the callback gets the samples before Synth returns
PHONEME_EVENTS = 1
CHARS_UTF8 = 1
RATE, VOLUME, PITCH, RANGE = 1, 2, 3, 4  # SetParameter
WORD, PHONEME = 1, 7  # event types

# What of an accent is not in its phoneme table: pronunciation rules and the length of stressed syllables.
ACCENTS = {
    "en-us": "phonemes en-us\ndictrules 3 6\nstressLength 140 120 190 170 0 0 255 300\n",
    "en-us-nyc": "phonemes en-us-nyc\ndictrules 3 6\nstressLength 140 120 190 170 0 0 255 300\n",
    "en-gb-scotland": "phonemes en-sc\ndictrules 2 5 6 7\nstressLength 180 130 200 200 0 0 250 270\n",
    "en-gb-x-rp": "phonemes en-rp\n",
    "en-gb-x-gbclan": "phonemes en-n\nstressLength 160 150 180 180 220 220 290 290\n",
}


@dataclass(frozen=True)
class Spoken:
    """One utterance as the synthesiser gives it; times are in samples from its start."""

    samples: np.ndarray  # float64 [T], 16-bit scale
    words: list[tuple[int, str]]  # (start, word)
    phones: list[tuple[int, str]]  # (start, espeak's mnemonic without stress marks)


class _Id(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8)]


class _Event(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Id),
    ]


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


class Synthesiser:
    """espeak-ng in this process; ``rate`` is its sample rate."""

    def __init__(self, scratch: Path):
        try:
            import espeakng_loader
        except ImportError:
            raise SystemExit(
                "mini_corpus: the embedded corpora need espeakng-loader: pip install 'margo-speech[corpora]'"
            ) from None
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self._voice_file = scratch / "voice"
        self._callback = _Callback(self._receive)  # kept: the library holds only a pointer to it
        self._blocks: list[np.ndarray] = []
        self._events: list[tuple[int, int, object]] = []
        data = espeakng_loader.get_data_path().encode()
        self.rate = self._library.espeak_Initialize(SYNCHRONOUS, 0, data, PHONEME_EVENTS)
        if self.rate <= 0:
            raise SystemExit(f"mini_corpus: espeak-ng did not start from {data.decode()}")
        self._library.espeak_SetSynthCallback(self._callback)

    def _receive(self, samples, count, events) -> int:
        if samples and count > 0:
            self._blocks.append(np.ctypeslib.as_array(samples, (count,)).astype(np.float64))
        number = 0
        while events[number].type != 0:
            event = events[number]
            if event.type == WORD:
                self._events.append((WORD, event.sample, event.text_position - 1))
            elif event.type == PHONEME:
                self._events.append((PHONEME, event.sample, event.id.string))
            number += 1
        return 0

    def set_voice(self, voice: str) -> None:
        """Speak with the voice whose file would hold ``voice`` from now on."""
        self._voice_file.write_text(voice)
        status = self._library.espeak_SetVoiceByFile(str(self._voice_file).encode())
        if status != 0:
            raise SystemExit(f"mini_corpus: espeak-ng refused a voice (status {status}):\n{voice}")

    def say(self, text: str, rate: int, pitch: int = 50, pitch_range: int = 50, seed: int = 1) -> Spoken:
        """``text`` at ``rate`` words a minute; ``pitch`` and its range are 0 to 100, 50 is the voice's own."""
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed))  # else the clock decides on breath and flutter
        for parameter, value in ((RATE, rate), (VOLUME, 100), (PITCH, pitch), (RANGE, pitch_range)):
            self._library.espeak_SetParameter(parameter, int(value), 0)
        self._blocks.clear()
        self._events.clear()
        data = text.encode()
        status = self._library.espeak_Synth(data, len(data) + 1, 0, 1, 0, CHARS_UTF8, None, None)
        if status != 0 or not self._blocks:
            raise SystemExit(f"mini_corpus: espeak-ng could not say {text!r} (status {status})")
        samples = np.concatenate(self._blocks)
        marks = [(sample, value) for kind, sample, value in self._events if kind == WORD]
        phones = [(sample, value.decode().strip("',%=")) for kind, sample, value in self._events if kind == PHONEME]
        return Spoken(samples, _word_starts(text, marks, len(samples)), phones)


def _word_starts(text: str, marks: list[tuple[int, int]], length: int) -> list[tuple[int, str]]:
    """``(start, word)`` from the marks (sample, place in ``text``).

    The synthesiser says some pairs ("in the") as one word and marks the first: they share the time by their letters.
    """
    words = []
    for (start, place), (end, next_place) in zip(marks, [*marks[1:], (length, len(text))]):
        run = text[place:next_place]
        at = 0
        for word in run.split():
            words.append((start + (end - start) * at // len(run), word))
            at += len(word) + 1
    return words


def voice(name: str, gender: str, accent: str, spread: float, rng: np.random.Generator) -> str:
    """A voice file for one speaker: pitch, vocal-tract length, single formants, breath, and their like drawn at random.

    ``spread`` scales how far speakers of one gender differ from each other; 1 is espeak-ng's own range of voices.
    """
    female = gender == "f"
    base = rng.uniform(150, 230) if female else rng.uniform(75, 135)
    length = (1.14 if female else 1.0) * np.exp(spread * 0.05 * rng.standard_normal())
    lines = [
        f"name {name}",
        f"language {accent}",
        f"gender {'female' if female else 'male'}",
        ACCENTS[accent].rstrip(),
        f"pitch {base:.0f} {base * rng.uniform(1.3, 1.7):.0f}",
        f"consonants {rng.uniform(70, 130):.0f} {rng.uniform(70, 130):.0f}",
        f"roughness {rng.integers(0, 4)}",
        f"flutter {rng.integers(0, 8)}",
        f"tone 600 {rng.uniform(140, 200):.0f} 1200 {rng.uniform(110, 160):.0f} 2000 {rng.uniform(90, 130):.0f}",
        "breath 0 " + " ".join(str(value) for value in rng.integers(0, 5, 7)),
    ]
    for formant in range(9):
        frequency = 100 * length * np.exp(spread * 0.03 * rng.standard_normal())
        height, width = rng.uniform(70, 130), rng.uniform(90, 160)
        lines.append(f"formant {formant} {frequency:.0f} {height:.0f} {width:.0f}")
    return "\n".join(lines) + "\n"
