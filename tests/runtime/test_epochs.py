"""Epochs: killed at any moment and resumed, a run ends with the same bytes; other settings are refused."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

TRAINER = '''
"""Train a vector."""
import dataclasses, pathlib, time
from margo.runtime.step import Parallel, Seeded, Trainer, knob, main

@dataclasses.dataclass(frozen=True)
class Options(Parallel, Seeded, Trainer):
    out: pathlib.Path = knob(help="where")
    rate: float = knob(0.5, help="a rate")
    pause: float = knob(0.0, help="seconds an iteration")

def run(options, step):
    import numpy as np
    from margo.formats.atomic import write_npz
    from margo.runtime import epochs

    def advance(iteration, state):
        time.sleep(options.pause)
        state = state * options.rate + np.sin(state + iteration)
        return state, {"objective": float(state.sum()), "frames": 7}, iteration == 12

    state, reports = epochs.train(step, lambda: np.arange(5.0), advance, lambda s: ({}, {"s": s}),
                                  lambda meta, arrays: arrays["s"])
    write_npz(step.output("model.npz"), {}, {"s": state})
    epochs.finish(step)

if __name__ == "__main__":
    main(__doc__, Options, run)
'''


@pytest.fixture
def trainer(tmp_path):
    path = tmp_path / "train_vector.py"
    path.write_text(TRAINER)

    def call(*arguments, **how):
        return subprocess.run([sys.executable, path, *map(str, arguments)], capture_output=True, text=True, **how)

    call.path = path
    return call


def test_killed_at_random_moments_and_resumed_gives_the_same_bytes(trainer, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert trainer("--out", whole).returncode == 0
    moment, pause = random.Random(1), "0.2"  # 12 of these are more than the five lives together, on any machine
    for _ in range(5):
        command = [sys.executable, trainer.path, "--out", broken, "--pause", pause]
        process = subprocess.Popen(map(str, command), start_new_session=True, stderr=subprocess.DEVNULL)
        time.sleep(0.15 + 0.3 * moment.random())
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert not (broken / "step.json").exists()
    assert trainer("--out", broken, "--pause", pause).returncode == 0
    assert (whole / "model.npz").read_bytes() == (broken / "model.npz").read_bytes()
    lines = [(out / "progress.jsonl").read_text().splitlines() for out in (whole, broken)]
    progress = [[json.loads(line)["objective"] for line in part] for part in lines]
    assert progress[0] == progress[1] and len(progress[0]) == 12
    assert json.loads((broken / "step.json").read_text())["status"] == "ok"
    assert sorted(p.name for p in broken.iterdir()) == ["model.npz", "progress.jsonl", "step.json", "step.log"]


def test_a_finished_run_is_run_again_and_other_settings_are_refused(trainer, tmp_path):
    out = tmp_path / "out"
    assert trainer("--out", out).returncode == 0
    before = (out / "model.npz").read_bytes()
    again = trainer("--out", out, "--nj", "2")
    assert again.returncode == 0 and "train_vector 1:" in again.stderr, "a finished step is run, not skipped"
    refused = trainer("--out", out, "--rate", "0.25")
    assert refused.returncode == 1 and "--rate was 0.5, is 0.25" in refused.stderr and "--overwrite" in refused.stderr
    assert (out / "model.npz").read_bytes() == before and (out / "step.json").exists(), "nothing is lost by a refusal"
    (out / "notes.txt").write_text("mine")
    assert trainer("--out", out, "--rate", "0.25", "--overwrite").returncode == 0
    assert (out / "model.npz").read_bytes() != before
    assert (out / "notes.txt").read_text() == "mine", "only what the step made is replaced"


def test_an_unfinished_run_with_other_settings_is_refused(trainer, tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, trainer.path, "--out", out, "--pause", "1"])
    while not list(out.glob("iter_*.npz")):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    refused = trainer("--out", out, "--rate", "0.25", "--pause", "0.1")
    assert refused.returncode == 1 and "unfinished run" in refused.stderr and "--rate was 0.5" in refused.stderr
    assert np.load(max(out.glob("iter_*.npz")))["s"].shape == (5,)


def killed_after_an_iteration(trainer, out, *arguments, pause="1"):
    """The identity-carrying state that a run leaves when it is killed."""
    process = subprocess.Popen([sys.executable, trainer.path, "--out", out, "--pause", pause, *arguments])
    while not list(out.glob("iter_*.npz")):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    return max(out.glob("iter_*.npz"))


def test_a_state_of_other_settings_is_not_resumed_whatever_else_the_folder_says(trainer, tmp_path):
    """Two runs in one folder, as where there is no lock: the last state is the other's."""
    ours = killed_after_an_iteration(trainer, tmp_path / "ours")
    theirs = killed_after_an_iteration(trainer, tmp_path / "theirs", "--rate", "0.25")
    ours.unlink()
    ours.with_name("iter_007.npz").write_bytes(theirs.read_bytes())
    refused = trainer("--out", ours.parent, "--pause", "1")
    assert refused.returncode == 1 and "--rate was 0.25, is 0.5" in refused.stderr
    ours.with_name("iter_007.npz").write_bytes(b"nobody's")
    refused = trainer("--out", ours.parent, "--pause", "1")
    assert refused.returncode == 1 and "an unfinished run with other settings" in refused.stderr
    assert trainer("--out", ours.parent, "--overwrite").returncode == 0


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_truncated_started_json_is_in_nobodys_way(trainer, tmp_path, overwrite):
    """What a machine that loses its power leaves: behind a run that was killed, and behind one that ended well."""
    state = killed_after_an_iteration(trainer, tmp_path / "out", pause="0.1")
    started = state.with_name("started.json")
    whole = started.read_bytes()
    for size in (len(whole) // 2, 0):
        started.write_bytes(whole[:size])
        done = trainer("--out", tmp_path / "out", "--pause", "0.1", *overwrite)
        assert done.returncode == 0, done.stderr
        assert not started.exists() and json.loads((tmp_path / "out" / "step.json").read_text())["status"] == "ok"
        assert ("resuming after iteration" in done.stderr) == (size > 0), "the killed one goes on"


@pytest.mark.parametrize("status", ["ok", "begun"])
def test_outputs_of_a_foreign_record_that_lie_outside_are_not_removed(trainer, tmp_path, status):
    out, beside = tmp_path / "a" / "out", tmp_path / "a" / "beside"
    out.mkdir(parents=True)
    beside.mkdir()
    (out / "link").symlink_to(beside)
    victims = [tmp_path / "absolute", tmp_path / "a" / "above", beside / "linked"]
    for victim in victims:
        victim.write_text("precious")
    names = [str(victims[0]), "../above", "link/linked", "inner/../../above"]
    (out / "inner").mkdir()
    identity = {"options": {"rate": 9}, "inputs": {}}
    held = {"status": status, "step": "train_vector", "outputs": dict.fromkeys(names, "0"), "identity": identity}
    (out / "step.json").write_text(json.dumps(held))
    done = trainer("--out", out, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert [victim.read_text() for victim in victims] == ["precious"] * 3


def test_the_last_of_a_thousand_iterations_is_the_newest(tmp_path):
    from margo.runtime.epochs import newest

    for number in (2, 999, 1000):
        (tmp_path / f"iter_{number:03d}.npz").touch()
    assert newest(tmp_path).name == "iter_1000.npz"


def test_a_folder_that_is_not_complete_is_not_taken_as_input(tmp_path):
    from margo.errors import MargoError
    from margo.runtime.step import Step

    with pytest.raises(MargoError, match="run stage 1 first"):
        Step("train_ml", None, []).input(tmp_path, "make_mfcc")


def test_an_unexpected_error_is_one_line_and_its_traceback_is_in_the_log(tmp_path):
    path = tmp_path / "break_things.py"
    path.write_text(TRAINER.replace("import numpy as np\n", "raise KeyError('lost')\n", 1))
    done = subprocess.run([sys.executable, path, "--out", tmp_path / "o"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "KeyError: 'lost'" in done.stderr
    assert "Traceback" in (tmp_path / "o" / "step.log").read_text()
