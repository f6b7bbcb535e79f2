"""The report in headless Chromium at the widths of a desk and of a phone, on a made-up run (synthetic)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from browsing import Browser
from margo.formats import datadir
from margo.formats.models import write_model
from margo.formats.transcripts import write_transcripts
from margo.runtime import record
from margo.tasks.scoring import score_transcripts
from tones import RATE, tone, tone_model

pytest.importorskip("websockets", reason="needs the test extras")
PITCHES = {"low": 300, "high": 1500, "mid": 700}


@pytest.fixture(scope="module")
def page(root, tmp_path_factory):
    """A run of two systems on 40 strings of tones by four speakers, with sound; some strings are got wrong."""
    exp, rng = tmp_path_factory.mktemp("run"), np.random.default_rng(0)
    (exp / "data").mkdir()
    (exp / "data" / "corpus.json").write_text(json.dumps({"corpus": "tones", "synthetic": True}))
    texts = {f"s{n % 4}-{n:02d}": tuple(rng.choice([*PITCHES], 3)) for n in range(40)}
    rows = []
    for name, words in texts.items():
        path = exp / "wav" / f"{name}.wav"
        path.parent.mkdir(exist_ok=True)
        soundfile.write(path, np.concatenate([tone(PITCHES[word]) for word in words]) / 32768, RATE)
        rows.append(datadir.Utterance(name, name[:2], words, str(path)))
    datadir.write(exp / "data" / "test", rows)
    write_model(exp / "ml_1" / "model.npz", tone_model({word: (pitch,) * 3 for word, pitch in PITCHES.items()}))
    for system, rate in (("ml", 0.12), ("mce", 0.05)):
        folder = exp / f"{system}_1"
        folder.mkdir(exist_ok=True)
        lines = [{"iteration": n, "objective": -50 + n, "dev_errors": 9 - n, "seconds": 0.1} for n in range(1, 5)]
        (folder / "progress.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        record.write(folder, f"train_{system}", [], SimpleNamespace(init=""), {}, ["progress.jsonl"], 4.0, {})
        heard = {name: ["mid" if rng.random() < rate else word for word in words] for name, words in texts.items()}
        place = exp / "decode" / f"{system}_1" / "test"
        write_transcripts(place / "hyp", heard)
        score_transcripts(place, texts, heard, system=system, mixtures=1, set="test", seconds=4.0,
                          speakers={name: name[:2] for name in texts})  # fmt: skip
        record.write(place.parent, "decode", [], SimpleNamespace(model=str(exp / "ml_1"), out=str(place.parent)), {},
                     ["test/score.json"], 1.0, {})  # fmt: skip
    command = [sys.executable, root / "steps" / "report.py", "--exp", exp, "--recipe", "words", "--examples", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return exp / "report.html"


def test_errors_are_shown_with_their_sound(page):
    """Without a browser: confusions, speakers, glossary, and as many examples as were asked for."""
    text = page.read_text()
    assert text.count('<figure class="example">') == 2 == text.count("data:audio/flac;base64,")
    assert text.count("data:image/png;base64,iVBORw0KGgo") == 2
    assert "<h2>Errors of mce, 1 mix, test set</h2>" in text and "<h3>Confusions</h3>" in text
    assert "4 speakers, the worst first" in text and "<h2>Glossary</h2>" in text and "word error rate: " in text
    assert " nats less than what was said" in text and " nats more than what was said" in text
    assert "<summary>8 terms</summary>" in text and "<summary>4 plots</summary>" in text
    assert '<span class="off"' in text and text.count("<dt>SER</dt>") == 1 and "<dt>PER</dt>" not in text


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", ["desk", "phone"])
def test_everything_is_drawn_and_nothing_sticks_out(browser, page, width, dark):
    browser.said.clear()
    browser.look(width, dark)
    browser.open(page.as_uri())
    if folder := os.environ.get("MARGO_SCREENSHOTS"):
        browser.picture(Path(folder) / f"report-{width}-{'dark' if dark else 'light'}.png")
    assert browser.run("document.querySelectorAll('details:not([open])').length") >= 2  # curves, glossary, steps
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert not browser.overflow()
    blank = browser.run("""[...document.querySelectorAll('svg, img, audio')].filter((each) => {
        const { width, height } = each.getBoundingClientRect();
        return width < 20 || height < 10 || each.tagName === 'svg' && !each.children.length
            || each.tagName === 'IMG' && !each.naturalWidth;
    }).map((each) => each.outerHTML.slice(0, 80))""")
    assert blank == [] and browser.run("document.querySelectorAll('svg').length") >= 6
    wide = browser.run("""[...document.querySelectorAll('.scroll')].map((each) => [
        each.scrollWidth > each.clientWidth + 1, !each.previousElementSibling.querySelector('.more').hidden])""")
    assert all(scrolls == told for scrolls, told in wide)  # a table that scrolls says so
    assert any(scrolls for scrolls, _ in wide) or width == "desk"
    ticks = browser.run("""[...document.querySelectorAll('svg')]
        .filter((each) => each.textContent.includes('iteration')).map((each) =>
            [...each.querySelectorAll('.tick[text-anchor=middle]')].map((tick) => tick.textContent))""")
    assert ticks and all(tick.isdigit() for those in ticks for tick in those)
    assert browser.run("document.querySelector('audio').play().then(() => 'plays', String)") == "plays"
    assert browser.said == []


def test_tables_are_sorted_and_copied(browser, page):
    browser.look("desk")
    browser.open(page.as_uri())
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    column = "[...document.querySelectorAll('table')].find((each) => each.textContent.includes('wrong utterances'))"
    values = f"[...({column}).tBodies[0].rows].map((row) => row.cells[%d].textContent)"
    press = f"({column}).tHead.rows[0].cells[%d].querySelector('button').click()"
    browser.run(press % 0)
    assert browser.run(values % 0) == ["s0", "s1", "s2", "s3"]
    browser.run(press % 5)
    rates = [float(value) for value in browser.run(values % 5)]
    assert rates == sorted(rates) and len(set(rates)) > 1
    browser.run(press % 5)
    assert [float(value) for value in browser.run(values % 5)] == rates[::-1]
    assert browser.run(f"({column}).tHead.rows[0].cells[5].getAttribute('aria-sort')") == "descending"
    copied = browser.run("""(async () => {
        let text = '';
        Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (given) => { text = given; } } });
        document.querySelector('pre').previousElementSibling.click();
        await new Promise((done) => setTimeout(done, 50));
        return text;
    })()""")
    assert copied == "recipes/words/run.sh"
