"""What a recipe runs in parallel ends together: with the job that fails, and with the recipe itself."""

import os
import signal
import subprocess
import time

import pytest

RECIPE = """#!/usr/bin/env bash
source "{root}/steps/recipe.sh"
stages=([0]="jobs" [1]="a step by itself")
offers=gmm-ml
criteria=gmm-ml
parse_options "$@"

chain() {{ run "{work}/work.py" "$exp" "$1"; touch "$exp/$1.went-on"; }}

if stage 0; then
    beside chain first
    beside chain second
    beside run "{work}/fail.py" "$exp"
    all_done
fi

if stage 1; then
    run "{work}/work.py" "$exp" alone
fi
"""
WORK = """import os, pathlib, sys, time
mark = pathlib.Path(sys.argv[1], sys.argv[2])
mark.write_text(str(os.getpid()))
mark.rename(mark.with_suffix(".pid"))
time.sleep(120)
"""
FAIL = """import pathlib, sys, time
while len(list(pathlib.Path(sys.argv[1]).glob("*.pid"))) < 2:
    time.sleep(0.05)
sys.exit("fail: as it was told")
"""


@pytest.fixture
def recipe(root, tmp_path):
    script = tmp_path / "parallel" / "run.sh"
    texts = {script: RECIPE.format(root=root, work=tmp_path), tmp_path / "work.py": WORK, tmp_path / "fail.py": FAIL}
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    script.chmod(0o755)
    (tmp_path / "exp").mkdir()
    return [script, "--exp", tmp_path / "exp", "--nj", "3"]


def at_work(exp) -> list[int]:
    """Process ids of the jobs that still are."""
    alive = []
    for path in exp.glob("*.pid"):
        try:
            os.kill(int(path.read_text()), 0)
            alive.append(int(path.read_text()))
        except ProcessLookupError:
            pass
    return alive


def clear(exp):
    for job in at_work(exp):
        os.kill(job, signal.SIGKILL)


def test_a_job_that_fails_ends_its_siblings(recipe, tmp_path):
    exp = tmp_path / "exp"
    try:
        done = subprocess.run([*recipe, "--stop-stage", "0"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and len(list(exp.glob("*.pid"))) == 2
        assert done.stderr.splitlines()[1:] == [
            "fail: as it was told",
            "parallel: stage 0 failed (exit 1), for the reason given above; resume with --stage 0",
        ]
        assert at_work(exp) == [] and not list(exp.glob("*.went-on"))
    finally:
        clear(exp)


@pytest.mark.parametrize("stage, jobs", [(0, 2), (1, 1)])
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_recipe_that_is_told_to_end_ends_its_jobs(recipe, as_from_a_terminal, tmp_path, stage, jobs, number, code,
                                                    send):  # fmt: skip
    """Told alone, or with its whole group, as by a terminal."""
    exp = tmp_path / "exp"
    (tmp_path / "fail.py").write_text("")
    command = [*recipe, "--stage", str(stage), "--stop-stage", str(stage)]
    process = subprocess.Popen(command, preexec_fn=as_from_a_terminal, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(200):
            if len(at_work(exp)) == jobs:
                break
            time.sleep(0.05)
        assert len(at_work(exp)) == jobs
        send(process.pid, number)
        said = process.communicate(timeout=20)[1]
        assert process.returncode == code
        last = said.splitlines()[-1 if send is os.kill else 0 :]  # of a whole group others may have the last word
        assert f"parallel: interrupted; resume with --stage {stage}" in last
        assert at_work(exp) == [] and not list(exp.glob("*.went-on"))
    finally:
        process.kill()
        clear(exp)
