"""A worker that dies in each phase, while it computes and while it sends, in every kind of step that has workers."""

import os
import pickle
import signal
import struct

import numpy as np
import pytest
import soundfile

from contests import feature_folders
from margo.formats import datadir
from margo.runtime import parallel, record
from margo.tasks import featuring, speech
from runs import RUNS, go, run_step

SHORT = {name: {"epochs" if name == "lme" else "iterations": 1} for name in RUNS}
STEPS = [*RUNS, "make_mfcc", "align", "nbest", "decode"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = feature_folders(tmp_path_factory.mktemp("folders"), train=60)
    rng, audio = np.random.default_rng(0), folder / "audio"
    audio.mkdir()
    for n in range(30):
        soundfile.write(audio / f"{n}.wav", (3000 * rng.normal(size=1600)).astype(np.int16), 8000)
    datadir.write(audio, [datadir.Utterance(f"u{n:02d}", "s", ("a",), str(audio / f"{n}.wav")) for n in range(30)])
    return folder


def make(root, folders, name, out, jobs):
    """What the step leaves in ``out`` with so many workers: the bytes of each file that does not tell of time."""
    if name in RUNS:
        go(folders, out, name, nj=jobs, **SHORT[name])
    else:
        data = {"make_mfcc": folders / "audio", "decode": [folders / "dev"]}.get(name, folders / "dev")
        given = {"data": data} | ({} if name == "make_mfcc" else {"model": folders / "ml"})
        run_step(root, name, out, nj=jobs, **given)
    made = [path for path in out.rglob("*") if path.is_file() and path.name not in record.TOLD]
    return {path.name: path.read_bytes().replace(bytes(out), b"") for path in made}


def first(mark):
    """Whether nobody has left this mark before."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


@pytest.mark.parametrize("name", STEPS)
def test_a_worker_that_dies_in_any_phase_of_any_step_changes_nothing(root, folders, tmp_path, monkeypatch, name):
    monkeypatch.setattr(speech, "CHUNK", 8)
    monkeypatch.setattr(featuring, "CHUNK", 8)
    whole, answer = make(root, folders, name, tmp_path / "whole", 1), parallel.answer

    def dying(pipe, function, chunk):
        if first(tmp_path / "computing"):
            function(chunk)
            os.kill(os.getpid(), signal.SIGKILL)
        if first(tmp_path / "sending"):
            sent = pickle.dumps((function(chunk), None))
            os.write(pipe.fileno(), struct.pack("!i", len(sent)) + sent[: len(sent) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        answer(pipe, function, chunk)

    monkeypatch.setattr(parallel, "answer", dying)  # workers are forked, and have it too
    assert make(root, folders, name, tmp_path / "part", 2) == whole
    assert (tmp_path / "computing").exists() and (tmp_path / "sending").exists()
    assert (tmp_path / "part" / "step.log").read_text().count("a worker died (killed by signal 9") == 2
