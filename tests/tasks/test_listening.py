"""Words as they come: from a stream, settled where somebody pauses (tones for words, synthetic)."""

import io
import sys
import wave
from types import SimpleNamespace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.models import write_model
from margo.tasks.listening import EVERY, IDLE, LONGEST, listen, microphone_blocks, raw_blocks
from margo.tasks.recognising import Recogniser
from tones import RATE, quiet, tone, tone_model


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tones")
    write_model(folder / "model.npz", tone_model({"low": (300,) * 3, "high": (1500,) * 3}, silence="sil"))
    return Recogniser(folder)


def blocks(samples, size=1000):
    return (samples[first : first + size] for first in range(0, len(samples), size))


def test_words_are_told_while_they_are_said_and_settled_by_a_pause(recogniser):
    said = np.concatenate([tone(300), tone(1500), quiet(1.0), tone(1500), quiet(1.0)])
    told = list(listen(recogniser, blocks(said), RATE))
    settled = [[word["word"] for word in words] for done, words in told if done]
    assert [string for string in settled if string] == [["low", "high"], ["high"]]
    assert not told[0][0] and [word["word"] for word in told[0][1]] == ["low"]  # before the pause, and before "high"
    (late,) = [words for done, words in told if done and len(words) == 1]
    assert late[0]["start"] == pytest.approx(2.0, abs=0.25)


def test_memory_is_bounded_where_nobody_speaks_or_nobody_pauses(recogniser, monkeypatch):
    lengths = []
    transcribe = recogniser.transcribe
    monkeypatch.setattr(recogniser, "transcribe", lambda heard: lengths.append(len(heard[0])) or transcribe(heard))
    assert list(listen(recogniser, blocks(np.zeros(20 * RATE, np.float32), 4000), RATE)) == []
    assert max(lengths) <= (IDLE + 1) * RATE
    lengths.clear()
    said = np.concatenate([tone(300 if n % 2 else 1500) for n in range(50)])
    told = list(listen(recogniser, blocks(said, 8000), RATE))
    assert max(lengths) <= (LONGEST + 2) * RATE and sum(done for done, _ in told) >= 2
    assert sum(len(words) for done, words in told if done) == pytest.approx(50, abs=3)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_stream_is_read_whole_in_whatever_parts_it_comes(size):
    samples = np.arange(-3000, 3000).astype("<i2")

    class Parts(io.BytesIO):
        def read1(self, most):
            return self.read(min(most, size))

    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, RATE, 0, "NONE", ""))
        out.writeframes(samples.tobytes())
    for content in (samples.tobytes(), file.getvalue()):
        assert np.array_equal(np.concatenate(list(raw_blocks(Parts(content), RATE))), samples)
    assert list(raw_blocks(Parts(b""), RATE)) == []
    with pytest.raises(MargoError, match="1 channels of 8000 Hz, 16 bits, expected one of 16000 Hz, 16 bits"):
        list(raw_blocks(Parts(file.getvalue()), 16000))


class PortAudioError(Exception):
    pass


@pytest.fixture
def microphone(monkeypatch):
    """A stand-in for the package sounddevice: a microphone that hears ``said``, int16 [N], and is then pulled out."""
    heard = SimpleNamespace(said=np.empty(0, np.int16), asked={})

    class InputStream:
        def __init__(self, **asked):
            heard.asked = asked

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read(self, size):
            if not len(heard.said):
                raise PortAudioError("Device unavailable [PaErrorCode -9985]")
            part, heard.said = heard.said[:size], heard.said[size:]
            return part[:, None], False

    module = SimpleNamespace(InputStream=InputStream, PortAudioError=PortAudioError)
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    return heard


def test_the_microphone_is_listened_to_until_it_is_gone(recogniser, microphone):
    microphone.said = np.concatenate([quiet(0.3), tone(300), tone(1500), quiet(1.0)]).astype(np.int16)
    whole, parts = microphone.said, []
    with pytest.raises(MargoError, match="^microphone: Device unavailable"):
        for part in microphone_blocks(RATE):
            parts.append(part)
    assert microphone.asked == {"samplerate": RATE, "channels": 1, "dtype": "int16"}
    assert len(parts[0]) == int(EVERY * RATE) and np.array_equal(np.concatenate(parts), whole)
    told = [words for done, words in listen(recogniser, iter(parts), RATE) if done]
    assert [word["word"] for words in told for word in words] == ["low", "high"]


def test_a_computer_without_the_microphones_library_is_told_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "sounddevice.py").write_text('raise OSError("PortAudio library not found")')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    with pytest.raises(MargoError, match="PortAudio library not found .*libportaudio2"):
        next(microphone_blocks(RATE))
