"""Words as they come: from a stream, settled where somebody pauses (tones for words, synthetic)."""

import io
import wave

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.models import write_model
from margo.tasks.listening import IDLE, LONGEST, listen, raw_blocks
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
