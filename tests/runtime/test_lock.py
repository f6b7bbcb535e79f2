"""One run at a time in a folder: the second is refused and told of the first; the dead hold nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from margo.runtime import record

STEP = '''"""Writes a file, slowly."""

import dataclasses, pathlib, time

from margo.errors import MargoError
from margo.formats.atomic import write_text
from margo.runtime.step import Knobs, knob, main


@dataclasses.dataclass(frozen=True)
class Options(Knobs):
    out: pathlib.Path = knob(help="folder to write")
    pause: float = knob(0.0, "seconds it takes")
    fail: bool = knob(False, "end badly")
    words: str = knob("ours", "what to write")


def run(options, step):
    step.say("at work")
    time.sleep(options.pause)
    if options.fail:
        raise MargoError("as it was told")
    write_text(step.output("thing"), options.words)


if __name__ == "__main__":
    main(__doc__, Options, run)
'''


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "write_slowly.py"
    path.write_text(STEP)
    return path


def call(program, *arguments):
    return subprocess.run([sys.executable, program, *map(str, arguments)], capture_output=True, text=True)


def test_a_second_run_is_refused_and_told_of_the_first(program, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, program, "--out", out, "--pause", "4"]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert first.stderr.readline() == "at work\n"
    second = call(program, "--out", out, "--words", "theirs")
    assert second.returncode == 1 and second.stderr.count("\n") == 1
    assert f"process {first.pid} on " in record.busy(out) and not record.busy(tmp_path)
    assert f"write_slowly --out {out} --pause 4" in second.stderr and "another --out" in second.stderr
    assert f"process {first.pid} on {socket.gethostname()}" in second.stderr
    assert "theirs" not in (out / "step.log").read_text()
    first.communicate(timeout=20)
    assert first.returncode == 0 and (out / "thing").read_text() == "ours"
    assert sorted(path.name for path in out.iterdir()) == ["step.json", "step.log", "thing"]


def test_the_lock_of_a_dead_process_does_not_hold(program, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, program, "--out", out, "--pause", "60"]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert first.stderr.readline() == "at work\n"
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert json.loads((out / "started.json").read_text())["pid"] == first.pid
    assert call(program, "--out", out).returncode == 0 and not (out / "started.json").exists()


def test_what_a_run_that_failed_left_is_not_taken_for_complete(program, tmp_path):
    from margo.errors import MargoError
    from margo.runtime.step import Step

    out = tmp_path / "out"
    assert call(program, "--out", out, "--fail", "true").returncode == 1
    (out / "inner").mkdir()
    for folder in (out, out / "inner"):
        with pytest.raises(MargoError, match=r"is not complete \(write_slowly --out .* has not ended well there\)"):
            Step("show", None, []).input(folder, "write_slowly")
    assert call(program, "--out", out).returncode == 0
    assert Step("show", None, []).input(out, "write_slowly") == out


def test_of_many_that_begin_at_once_one_goes_on(program, tmp_path):
    command = [sys.executable, program, "--out", tmp_path / "out", "--pause", "2"]
    processes = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(6)]
    assert sorted(process.wait() for process in processes) == [0, 1, 1, 1, 1, 1]


def test_workers_that_outlive_a_killed_step_do_not_hold_its_folder(tmp_path):
    from margo.runtime import lock

    pid = os.fork()
    if pid == 0:  # a step that is killed, whose own child lives on
        lock.take(tmp_path, "step", [])
        if os.fork() == 0:
            time.sleep(5)
        os._exit(0)
    os.waitpid(pid, 0)
    lock.take(tmp_path, "next", []).close()


def test_a_file_that_its_holder_has_just_removed_is_no_lock(tmp_path, monkeypatch):
    """Opened before the holder ended well, locked after: others would lock another file of the same name."""
    from margo.runtime import lock

    real, calls = lock.fcntl.lockf, []

    def late(file, how):
        real(file, how)
        calls.append(how)
        if len(calls) == 1:
            (tmp_path / lock.NAME).unlink()

    monkeypatch.setattr(lock.fcntl, "lockf", late)
    with lock.take(tmp_path, "step", []) as file:
        assert len(calls) == 2 and os.path.samestat(os.fstat(file.fileno()), os.stat(tmp_path / lock.NAME))
