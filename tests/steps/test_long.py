"""Ten minutes in one utterance, beside short ones: aligned, listed and trained on in less than 500 MB (synthetic).

``MARGO_LONG_MINUTES=60`` does it with an hour, in less than 1500 MB. Discriminative training, whose model is of real
size (39 dimensions, 11 words x 12 states), takes longer, so that it has three minutes: what is quadratic shows. With
``MARGO_LONG_MINUTES`` it has ten at most. With ``-s`` peaks of memory are told.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from margo.formats import datadir, features
from margo.formats.ctm import read_ctm
from margo.formats.models import write_model
from margo.model.grammar import grammar
from margo.model.hmm import flat_start, whole_words

MINUTES = int(os.environ.get("MARGO_LONG_MINUTES", "10"))
LEAST = {"mmi": ["--iterations", 1], "mce": ["--iterations", 1], "lme": ["--epochs", 1]}
REAL = 6000 * min(int(os.environ.get("MARGO_LONG_MINUTES", "3")), 10)
FRAMES, MOST = 6000 * MINUTES, 500 if MINUTES <= 10 else 1500  # MB


def said(hmms, rng, frames, dwell):
    """``(x [T, D], words, where each begins)`` of about so many frames, ``dwell`` about in each state."""
    x, words, begins, count = [], [], [], 0
    while count < frames:
        word = hmms.words[rng.integers(len(hmms.words))]
        states = hmms.units[hmms.unit_index[word]].states
        states = np.repeat(states, rng.integers(dwell // 2, 3 * dwell // 2, len(states)))
        words.append(word)
        begins.append(count)
        x.append(hmms.pool.means[states] + rng.normal(size=(len(states), hmms.pool.dimension)))
        count += len(states)
    return np.concatenate(x).astype(np.float32), tuple(words), begins


def folder(place, words, states, dimension, spread, dwell, frames):
    """Features, and the model ml that they were drawn from, whose means lie ``spread`` apart."""
    rng, d = np.random.default_rng(0), dimension
    meta = {"features": {"variant": "given", "dimension": d}, "grammar": grammar("loop"), "criterion": "ml", "seed": 0}
    hmms = flat_start(whole_words(words), states, np.zeros(d), np.ones(d), silence="sil", silence_states=1,
                      variance_floor=np.full(d, 0.01), meta=meta)  # fmt: skip
    hmms = hmms.with_pool(replace(hmms.pool, means=rng.normal(0, spread, hmms.pool.means.shape)))
    utterances = {f"short{n:02d}": said(hmms, rng, 300, dwell) for n in range(24)}
    utterances["tall"] = said(hmms, rng, frames, dwell)
    matrices = ((name, x) for name, (x, *_) in utterances.items())
    offsets = features.write_ark(place / "feats.ark", place / "feats.scp", matrices)
    datadir.write(place, [datadir.Utterance(name, name, words, feats=f"feats.ark:{offsets[name]}")
                          for name, (_, words, _) in utterances.items()])  # fmt: skip
    write_model(place / "ml" / "model.npz", hmms)
    (place / "begins").write_text(json.dumps(utterances["tall"][2]))
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("long"), list("abcd"), 3, 3, 4, 40, FRAMES)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("real"), list("abcdefghijk"), 12, 39, 1, 4, REAL)


def run(root, name, place, out, *more):
    command = [sys.executable, root / "steps" / f"{name}.py", "--data", place, "--out", out, *map(str, more)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "dropped: " not in done.stderr, done.stderr
    peak = json.loads((out / "step.json").read_text())["peak_memory_mb"]
    print(f"{name}: {peak:.0f} MB")
    assert peak < MOST
    return out


def test_ten_minutes_are_aligned(root, place, tmp_path):
    out = run(root, "align", place, tmp_path, "--model", place / "ml")
    words = [word for word in read_ctm(out / "ali.ctm") if word.utterance == "tall"]
    begins = np.array(json.loads((place / "begins").read_text()))
    off = np.array([word.start for word in words]) * 100 - begins
    assert len(words) == len(begins) and np.median(np.abs(off)) <= 1


def test_ten_minutes_are_listed(root, place, tmp_path):
    out = run(root, "nbest", place, tmp_path, "--model", place / "ml", "--n", 2)
    rows = {row["utt"]: row for row in map(json.loads, (out / "nbest.jsonl").read_text().splitlines())}
    best = rows["tall"]["hyps"][0]
    assert len(rows["tall"]["hyps"]) == 2 and best["score"] >= rows["tall"]["ref_score"] - 1e-3 * abs(best["score"])


@pytest.mark.parametrize("start", ["init", "flat"])
def test_ten_minutes_are_trained_on(root, place, tmp_path, start):
    more = ["--init", place / "ml"] if start == "init" else ["--states", 3, "--silence-states", 1]
    out = run(root, "train_ml", place, tmp_path, *more, "--iterations", 2, "--insertion-penalty", 0)
    lines = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    assert lines[-1]["dropped"] == 0 and lines[-1]["utterances"] == 25 and lines[-1]["frames"] > FRAMES
    assert lines[-1]["objective"] > lines[0]["objective"]


@pytest.mark.parametrize("name", ["mmi", "mce", "lme"])
def test_minutes_are_trained_on_discriminatively(root, real, tmp_path, name):
    """Forward-backward over the whole of them, which MMI once did, takes 1.6 GB, and 16 GB for ten."""
    out = run(root, f"train_{name}", real, tmp_path, "--init", real / "ml", *LEAST[name])
    lines = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    assert lines[-1]["dropped"] == 0 and lines[-1]["frames"] > REAL
