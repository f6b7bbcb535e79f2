"""A worker that dies in each phase, while it computes and while it sends, in every kind of step that has workers."""

import os
import pickle
import signal
import struct

import numpy as np
import pytest
import soundfile

from contests import feature_folders
from margo.classify import gmm
from margo.formats import datadir
from margo.formats.classifiers import write_classifier
from margo.formats.models import write_model
from margo.formats.samples import Samples, write_samples
from margo.formats.tables import Table, write_table
from margo.model.hmm import flat_start, whole_words
from margo.runtime import parallel, record
from margo.signal.front_end import MfccOptions, describe
from margo.tasks import featuring, speech
from runs import RUNS, go, run_step

SHORT = {name: {"epochs" if name == "lme" else "iterations": 1} for name in RUNS}
STEPS = {  # what each is given; words that begin with "in/" are folders or files of the fixture
    "make_mfcc": {"data": "in/audio"},
    "align": {"data": "in/dev", "model": "in/ml"},
    "nbest": {"data": "in/dev", "model": "in/ml"},
    "decode": {"data": ["in/dev"], "model": "in/ml"},
    "adapt": {"data": "in/dev", "init": "in/ml"},
    "find_warps": {"data": "in/audio", "model": "in/heard", "steps": 1},
    "train_ebw": {"data": "in/tables", "init": "in/gmm", "iterations": 2},
    "train_kernel": {"data": ["in/tables/samples.csv"], "iterations": 2},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = feature_folders(tmp_path_factory.mktemp("folders"), train=60)
    rng, audio = np.random.default_rng(0), folder / "audio"
    heard = flat_start(whole_words(["a"]), 1, np.zeros(39), np.ones(39),
                       meta={"features": describe(MfccOptions(), 8000)})  # fmt: skip
    write_model(folder / "heard" / "model.npz", heard)
    x, y = rng.normal(size=(120, 2)) + np.repeat([[0, 0], [1, 2]], 60, axis=0), np.repeat([0, 1], 60)
    write_table(folder / "tables" / "train.npz", Table(x, y, ("a", "b")))
    samples = {split: Samples(x, y, np.full(120, split)) for split in ("train", "test")}
    write_samples(folder / "tables" / "samples.csv", samples)
    model, _ = gmm.fit(x, y, gmm.GmmOptions(mixtures=2), rng)
    write_classifier(folder / "gmm" / "model.npz", model, ("a", "b"), "ml", mixtures=2)
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
        def placed(value):
            return folders / value.removeprefix("in/") if str(value).startswith("in/") else value

        given = {key: tuple(map(placed, value)) if isinstance(value, list) else placed(value)
                 for key, value in STEPS[name].items()}  # fmt: skip
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


@pytest.mark.parametrize("name", [*RUNS, *STEPS])
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
