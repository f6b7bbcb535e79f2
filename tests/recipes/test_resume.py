"""A recipe killed at random moments and resumed, or run with another number of jobs, ends with the same bytes."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

SETTINGS = ["--mix", "1 2", "--criteria", "ml mce mmi lme-sdp"]


@pytest.fixture(scope="module")
def corpus(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "tidigits"
    command = [sys.executable, root / "local" / "mini_corpus.py", "tidigits", "--out", folder, "--size", "tiny"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def command(root, corpus, exp, *more):
    return [root / "recipes" / "tidigits" / "run.sh", "--corpus", corpus, "--exp", exp, *SETTINGS, *more]


@pytest.fixture(scope="module")
def whole(root, corpus, tmp_path_factory):
    """The experiment folder of an uninterrupted run, and its seconds."""
    exp = tmp_path_factory.mktemp("exp") / "whole"
    began = time.perf_counter()
    subprocess.run(command(root, corpus, exp, "--nj", "1"), check=True, capture_output=True)
    return exp, time.perf_counter() - began


def outcome(exp) -> dict:
    """Array bytes of every model, hypotheses, and the figures of every score."""
    found = {}
    for path in sorted(exp.glob("*/model.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            found[path.parent.name] = {name: arrays[name].tobytes() for name in arrays.files}
    for path in sorted(exp.glob("decode/*/*/hyp")):
        found[str(path.relative_to(exp))] = path.read_bytes()
        score = json.loads((path.parent / "score.json").read_text())
        found[str(path.parent.relative_to(exp))] = (score["errors"], score["total"], score["ci95"])
    return found


@pytest.mark.slow
def test_killed_ten_times_and_resumed_ends_the_same(root, corpus, whole, tmp_path):
    exp, seconds = whole
    broken = tmp_path / "broken"
    moments, stage, kills = random.Random(5), 0, 0
    log = tmp_path / "log"
    while kills < 10:
        with open(log, "w") as file:
            process = subprocess.Popen(
                command(root, corpus, broken, "--nj", "2", "--stage", str(stage)), stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(timeout=0.5 + moments.random() * seconds / 6)
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
        reached = re.findall(r"^== tidigits: stage (\d+)", log.read_text(), re.M)
        stage = int(reached[-1]) if reached else stage
    finished = subprocess.run(
        command(root, corpus, broken, "--nj", "2", "--stage", str(stage)), capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    assert kills >= 5
    expected, found = outcome(exp), outcome(broken)
    assert {"ml_1", "ml_2", "mce_2", "mmi_2", "lme-sdp_2", "decode/mce_1/test"} <= expected.keys()
    assert expected.keys() == found.keys()
    assert [name for name in expected if expected[name] != found[name]] == []


@pytest.mark.slow
def test_finished_stages_run_again_from_another_folder_change_nothing(root, corpus, whole, tmp_path):
    exp, _ = whole
    before = outcome(exp)
    stages = command(root, corpus, os.path.relpath(exp, tmp_path), "--stage", "2", "--stop-stage", "6")
    again = subprocess.run(stages, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr[-2000:]
    assert outcome(exp) == before
