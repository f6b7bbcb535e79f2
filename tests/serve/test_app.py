"""The page's server without a browser: what it serves, what it hears, what it refuses."""

import io
import threading

import numpy as np
import pytest
import soundfile

from tones import RATE, tone, tone_model

pytest.importorskip("starlette", reason="needs the extra serve")
from starlette.testclient import TestClient

from margo.formats.models import write_model
from margo.serve.app import STATIC, application
from margo.tasks.recognising import Recogniser


def write_tones(folder):
    """A model of two words, ``low`` and ``high``."""
    write_model(folder / "tones_1" / "model.npz", tone_model({"low": (300,) * 3, "high": (1500,) * 3}))
    return folder / "tones_1"


def wav(samples, rate=RATE, form="WAV", **more):
    file = io.BytesIO()
    soundfile.write(file, np.asarray(samples) / 32768, rate, format=form, **more)
    return file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tones(tmp_path_factory.mktemp("tones"))


@pytest.fixture(scope="module")
def client(folder):
    with TestClient(application(folder, 1.0, 8.0, ["127.0.0.1", "localhost"]), "http://127.0.0.1:8000") as client:
        yield client


def test_the_page_and_its_parts_are_served_and_nothing_else(client):
    for name in STATIC:
        answer = client.get(f"/{name}")
        assert answer.status_code == 200 and answer.content
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert 'src="page.js"' in client.get("/").text
    for path in ("/app.py", "/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/static/page.js", "//etc/passwd",
                 "/page.js/../../tasks/speech.py", "/recognise/..%2f..%2fetc/passwd"):  # fmt: skip
        assert client.get(path).status_code == 404, path
    assert client.get("/recognise").status_code == 405


def test_all_is_compiled_before_the_page_is_there(folder, monkeypatch):
    heard, look = [], Recogniser.look
    monkeypatch.setattr(Recogniser, "look", lambda self, recording: heard.append(look(self, recording)))
    application(folder, 1.0, 8.0, ["127.0.0.1"])
    assert len(heard) == 1 and heard[0]["path"] and heard[0]["second"]


def test_what_the_model_is_and_what_it_hears(client, folder):
    told = client.get("/model").json()
    assert (told["name"], told["words"], told["states"], told["rate"]) == ("tones_1", ["low", "high"], [3, 3], RATE)
    samples = np.concatenate([tone(300), tone(1500)])
    for content in (wav(samples), wav(samples, form="FLAC"), wav(samples, subtype="FLOAT"),
                    wav(np.stack([samples, samples], 1))):  # fmt: skip
        answer = client.post("/recognise", content=content)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["text"] == "low high" and found["seconds"] == 1.0
    expected = Recogniser(folder).look(wav(samples), channel=0)
    assert found["path"] == expected["path"] and found["second"] == expected["second"]
    assert len(found["path"]) == len(found["times"]) - 1 == len(found["gain"])
    assert found["second"]["margin"] > 0 and found["second"]["text"] != "low high"
    assert found["wave"]["shape"] == [900, 2] and found["spectrogram"]["shape"][0] == 96
    assert client.post("/recognise", content=wav(np.zeros(RATE))).json()["text"] == ""


def test_what_is_too_large_too_long_or_no_audio_is_refused(client):
    def refused(status, words, **request):
        answer = client.post("/recognise", **request)
        assert answer.status_code == status and words in answer.json()["error"], answer.text
        assert "\n" not in answer.json()["error"] and "/" not in answer.json()["error"].replace("16-bit", "")

    refused(413, "larger than 1 MB", content=b"\0" * 1_000_001)
    refused(413, "larger than 1 MB", content=(b"\0" * 100_000 for _ in range(11)))  # no length is declared
    refused(413, "larger than 1 MB", content=b"", headers={"content-length": "-1"})
    refused(422, "the recording: lasts 9.0 s, expected at most 8 s", content=wav(np.zeros(9 * RATE), form="FLAC"))
    refused(422, "the recording: is empty", content=b"")
    refused(422, "the recording: not an audio file", content=b"%PDF-1.4 " * 100)
    refused(422, "truncated", content=wav(tone(300))[:-500])
    refused(422, "the recording: ", content=wav(tone(300, 0.01)))
    refused(403, "another site", content=wav(tone(300)), headers={"origin": "http://evil.example"})
    own = client.post("/recognise", content=wav(tone(300)), headers={"origin": "http://127.0.0.1:8000"})
    assert own.json()["text"] == "low"
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400  # as after a name was bound anew


def test_two_at_once_hear_their_own_and_a_crowd_is_told_to_wait(folder, monkeypatch):
    from margo.serve import app

    gate, entered, look = threading.Event(), threading.Semaphore(0), app.looked_at

    def slow(*arguments):
        entered.release()
        assert gate.wait(60)
        return look(*arguments)

    with TestClient(application(folder, 1.0, 8.0, ["*"])) as client:
        results = {}

        def ask(name, pitch):
            results[name] = client.post("/recognise", content=wav(tone(pitch)))

        both = [threading.Thread(target=ask, args=each) for each in (("a", 300), ("b", 1500))]
        for each in both:
            each.start()
        for each in both:
            each.join(60)
        assert [results[name].json()["text"] for name in "ab"] == ["low", "high"]
        monkeypatch.setattr(app, "looked_at", slow)
        monkeypatch.setattr(app, "WAITING", 1)
        first = threading.Thread(target=ask, args=("first", 300))
        first.start()
        assert entered.acquire(timeout=60)
        ask("late", 300)
        gate.set()
        first.join(60)
        assert results["first"].json()["text"] == "low"
        assert results["late"].status_code == 503 and "busy" in results["late"].json()["error"]
