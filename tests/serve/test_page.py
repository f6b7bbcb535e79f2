"""The live page in headless Chromium: a file, a wav file as its microphone, keyboard, both widths, light and dark."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from browsing import Browser
from margo.formats.models import write_model
from tones import RATE, tone, tone_model

pytest.importorskip("uvicorn", reason="needs the extra serve")
pytest.importorskip("websockets", reason="needs the test extras")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model, and with ``mic.wav`` and ``file.wav`` that say ``low high``."""
    folder = tmp_path_factory.mktemp("page")
    write_model(folder / "tones_1" / "model.npz", tone_model({"low": (300,) * 3, "high": (1500,) * 3}))
    samples = np.concatenate([tone(300), tone(1500)]) / 32768
    soundfile.write(folder / "file.wav", samples, RATE)
    soundfile.write(folder / "mic.wav", np.repeat(samples, 6), 6 * RATE)  # browsers' own rate
    return folder


@pytest.fixture(scope="module")
def address(root, place):
    command = [sys.executable, root / "steps" / "serve.py", "--model", place / "tones_1", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        line = server.stdout.readline()
        assert line.startswith("listening at http://127.0.0.1:"), line
        yield line.split()[2]
        server.terminate()


@pytest.fixture(scope="module")
def browser(place, tmp_path_factory):
    flags = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
             f"--use-file-for-fake-audio-capture={place / 'mic.wav'}")  # fmt: skip
    browser = Browser(tmp_path_factory.mktemp("chromium"), *flags)
    yield browser
    browser.close()


READOUT = "document.getElementById('readout').textContent"


def drawn(browser):
    """Share of the pixels of each picture that are not blank."""
    return browser.run("""[...document.querySelectorAll('canvas')].map((canvas) => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let some = 0;
        for (let n = 3; n < data.length; n += 4) some += data[n] > 0;
        return some / (data.length / 4);
    })""")


def drop(browser, path):
    """As a file that is dropped on the page."""
    content = list(Path(path).read_bytes())
    browser.run(f"""(() => {{
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array({content})], '{Path(path).name}'));
        document.dispatchEvent(new DragEvent('drop', {{ dataTransfer: transfer, cancelable: true }}));
    }})()""")


def shot(browser, name):
    if folder := os.environ.get("MARGO_SCREENSHOTS"):
        browser.picture(Path(folder) / f"{name}.png")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", ["desk", "phone"])
def test_a_file_is_heard_and_drawn(browser, address, place, width, dark):
    browser.said.clear()
    browser.look(width, dark)
    browser.open(address)
    browser.wait("!document.getElementById('open').disabled")
    assert not browser.overflow()
    drop(browser, place / "file.wav")
    browser.wait("document.getElementById('state').innerText === 'file.wav, 1.00 s'")
    words = browser.run("[...document.querySelectorAll('.word > span')].map((each) => each.textContent)")
    assert words == ["low", "high"]
    assert "Runner-up: " in browser.run("document.getElementById('second').textContent")
    shares = drawn(browser)
    assert len(shares) == 4 and min(shares) > 0.01
    browser.run("document.getElementById('pictures').focus()")
    for _ in range(3):
        browser.press("ArrowRight")
    assert "0.03 s: low, state " in browser.run(READOUT)
    shot(browser, f"page-{width}-{'dark' if dark else 'light'}")
    assert not browser.overflow() and browser.said == []


def test_the_microphone_is_heard_while_somebody_speaks(browser, address):
    browser.said.clear()
    browser.look("desk")
    browser.open(address)
    browser.wait("!document.getElementById('speak').disabled")
    browser.run("document.activeElement.blur()")
    browser.press("Space")
    browser.wait("document.getElementById('speak').classList.contains('on')")
    browser.wait("document.querySelectorAll('#words.old .word').length > 0")  # not settled yet
    browser.wait("document.getElementById('level').value > 0")
    shot(browser, "page-speaking")
    browser.wait("/[2-9]\\.\\d s of/.test(document.getElementById('state').textContent)")
    browser.press("Space")
    browser.wait("!document.getElementById('play').disabled")
    heard = browser.run("[...document.querySelectorAll('.word > span')].map((each) => each.textContent)")
    assert "low high" in " ".join(heard)
    browser.press("p")
    browser.wait("document.getElementById('play').innerText.startsWith('Pause')")
    first = browser.wait(f"{READOUT}.includes(' s: ') && {READOUT}")
    browser.wait(f"{READOUT} !== {first!r}")  # the cursor moves
    assert browser.said == []


def test_a_bad_file_is_told_in_words(browser, address, place, tmp_path):
    (tmp_path / "notes.wav").write_text("not audio at all " * 10)
    browser.open(address)
    browser.wait("!document.getElementById('open').disabled")
    drop(browser, tmp_path / "notes.wav")
    told = browser.wait("!document.getElementById('error').hidden && document.getElementById('error').textContent")
    assert told.startswith("the recording: not an audio file")
    drop(browser, place / "file.wav")
    browser.wait("document.getElementById('error').hidden && document.querySelectorAll('.word').length === 2")
