"""Speech as it comes, from a pipe or a microphone: what has been said so far, and what is settled."""

from collections.abc import Iterator

import numpy as np

from margo.errors import MargoError
from margo.tasks.recognising import Recogniser

EVERY = 0.3  # seconds of sound between looks
PAUSE = 0.6  # seconds of quiet that end what was said
FALL = 25.0  # dB that a pause is softer than the loudest tenth of a second
LONGEST = 20.0  # seconds after which what was said ends at its quietest place
IDLE = 5.0  # seconds in which nothing was said, of which only the last is kept


def raw_blocks(stream, rate: int) -> Iterator[np.ndarray]:
    """Samples of a stream of 16-bit little-endian mono at ``rate``, as they come; a RIFF header of 44 bytes is left
    out, once it is sure that it says the same."""
    head = stream.read(44)
    if head[:4] == b"RIFF":
        channels, found = int.from_bytes(head[22:24], "little"), int.from_bytes(head[24:28], "little")
        if (channels, found, head[34:36]) != (1, rate, b"\x10\0"):
            raise MargoError(f"standard input: {channels} channels of {found} Hz, {head[34]} bits, expected one of "
                             f"{rate} Hz, 16 bits")  # fmt: skip
        head = b""
    while part := stream.read1(1 << 14):
        whole = len(head + part) // 2 * 2
        yield np.frombuffer((head + part)[:whole], "<i2").astype(np.float32)
        head = (head + part)[whole:]


def microphone_blocks(rate: int) -> Iterator[np.ndarray]:
    """Samples of the microphone, until interrupted."""
    try:
        import sounddevice  # extra: live
    except OSError as error:  # the wheel for Linux comes without the library
        raise MargoError(f"microphone: {error} (Debian: apt-get install libportaudio2; or pipe a recorder's output "
                         "into --live true -)") from None  # fmt: skip
    try:
        with sounddevice.InputStream(samplerate=rate, channels=1, dtype="int16") as stream:
            while True:
                yield stream.read(int(EVERY * rate))[0][:, 0].astype(np.float32)
    except sounddevice.PortAudioError as error:
        raise MargoError(f"microphone: {error}") from None


def listen(recogniser: Recogniser, blocks: Iterator[np.ndarray], rate: int) -> Iterator[tuple[bool, list[dict]]]:
    """``(settled?, words)`` again and again, words as :meth:`Recogniser.transcribe` has them, times from the beginning.

    What is not settled yet is told anew each time that it changes. What was said is settled when a pause follows, when
    it is long, and at the end.
    """
    held, first, told, size = np.empty(0, np.float32), 0, [], int(EVERY * rate)
    fresh: list[np.ndarray] = []
    for block in blocks:
        fresh.append(block)
        if sum(map(len, fresh)) < size:
            continue
        held, fresh = np.concatenate([held, *fresh]), []
        words = heard(recogniser, held, first, rate)
        end = settled_at(held, words, first, rate)
        if end:
            kept = heard(recogniser, held[:end], first, rate) if end < len(held) else words
            if kept:
                yield True, kept
            held, first, told = held[end:], first + end, []
        elif [word["word"] for word in words] != told:
            told = [word["word"] for word in words]
            yield False, words
    held = np.concatenate([held, *fresh])
    if words := heard(recogniser, held, first, rate):
        yield True, words


def heard(recogniser: Recogniser, samples: np.ndarray, first: int, rate: int) -> list[dict]:
    """The words of samples that begin at sample ``first``; none where they are too few for any."""
    try:
        words = recogniser.transcribe((samples, rate))["words"]
    except MargoError:
        return []
    return [{**word, "start": round(word["start"] + first / rate, 3)} for word in words]


def settled_at(samples: np.ndarray, words: list[dict], first: int, rate: int) -> int:
    """The sample at which what was said ends, 0 if it goes on: in a pause that the model hears behind the last word, or
    that falls by so many dB (of models without silence)."""
    pause, tenth = int(PAUSE * rate), rate // 10
    if len(samples) < 2 * pause:
        return 0
    parts = np.add.reduceat(np.square(samples, dtype=np.float64), np.arange(0, len(samples), tenth))[:-1]
    loud = 10 * np.log10(parts + 1)
    if words:
        last = (words[-1]["start"] + words[-1]["duration"]) * rate - first
        if last < len(samples) - pause or loud[-int(10 * PAUSE) :].max() < loud.max() - FALL:
            return len(samples) - pause // 2
    if len(samples) > LONGEST * rate:
        return (len(loud) // 2 + int(np.argmin(loud[len(loud) // 2 :]))) * tenth + tenth // 2
    return len(samples) - rate if not words and len(samples) > IDLE * rate else 0
