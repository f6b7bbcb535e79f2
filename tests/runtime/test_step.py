"""The main program of steps: every end has one line that says why, and an exit code."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

STEP = '''"""Works through some chunks, as told."""

import time
from dataclasses import dataclass
from pathlib import Path

from margo.formats.atomic import atomic
from margo.runtime.parallel import map_chunks
from margo.runtime.step import Parallel, knob, main


@dataclass(frozen=True)
class Options(Parallel):
    out: Path = knob(help="folder to write")
    data: str = knob("", help="folder to read")
    made_by: str = knob("make_mfcc", help="step that makes it")
    fault: str = knob("", help="what goes wrong")


def work(chunk):
    time.sleep(60)


def run(options, step):
    if options.data:
        step.input(options.data, made_by=options.made_by)
    if options.fault == "disk":
        raise OSError(28, "No space left on device")
    if options.fault.startswith("import "):
        raise ModuleNotFoundError(options.fault, name=options.fault.split()[1])
    if options.fault == "words":
        print("naïve \\udcff.wav")
        return
    if options.fault == "none":
        return
    if options.fault == "changed":
        Path(options.data, "text").write_text("u1 other words\\n")
        return
    if options.fault == "file":
        open(step.out / "absent")
    with atomic(step.output("inner/thing")) as file, step.place() as where:
        file.write("half")
        step.say("working")
        list(map_chunks(work, range(4), where))


if __name__ == "__main__":
    main(__doc__, Options, run)
'''


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "do_things.py"
    path.write_text(STEP)
    return path


def call(program, *arguments):
    return subprocess.run([sys.executable, program, *map(str, arguments)], capture_output=True, text=True)


def check_no_worker_is_left(process):
    """The group is gone once the last of its workers is."""
    for _ in range(50):
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    pytest.fail("workers outlive the step")


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_a_step_and_its_workers_at_once_with_one_line(program, as_from_a_terminal, tmp_path, jobs):
    out = tmp_path / "out"
    command = [sys.executable, program, "--out", out, "--nj", str(jobs)]
    process = subprocess.Popen(command, preexec_fn=as_from_a_terminal, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "working\n"
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    assert process.communicate(timeout=20)[1] == "do_things: interrupted\n"
    assert process.returncode == 130
    assert "interrupted" in (out / "step.log").read_text() and not (out / "step.json").exists()
    check_no_worker_is_left(process)
    assert not (out / "inner" / "thing").exists()
    call(program, "--out", out, "--fault", "disk")
    assert not list((out / "inner").iterdir())  # what the interrupted one had half written is gone


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGHUP, -1)])
def test_a_step_that_is_told_to_end_leaves_no_worker(program, as_from_a_terminal, tmp_path, number, code):
    """Told alone: its workers, who sleep for a minute, hear nothing of it."""
    command = [sys.executable, program, "--out", tmp_path / "out", "--nj", "2"]
    process = subprocess.Popen(command, preexec_fn=as_from_a_terminal, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "working\n"
    while len(psutil.Process(process.pid).children()) < 2:
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == code
    check_no_worker_is_left(process)


@pytest.mark.parametrize(
    "fault, says", [("disk", "{out}: No space left on device"), ("file", "{out}/absent: No such file or directory")]
)
def test_what_the_system_refuses_is_one_line(program, tmp_path, fault, says):
    done = call(program, "--out", tmp_path / "out", "--fault", fault)
    assert done.returncode == 1
    assert done.stderr == f"do_things: {says.format(out=tmp_path / 'out')}\n"
    assert "Traceback" in (tmp_path / "out" / "step.log").read_text()


def test_words_that_the_terminal_cannot_show_are_escaped(program, tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    command = [sys.executable, program, "--out", tmp_path / "out", "--fault", "words"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stdout == "na\\xefve \\udcff.wav\n"


def test_folders_that_cannot_be_are_one_line(program, tmp_path):
    done = call(program, "--out", program)
    assert done.returncode == 1 and done.stderr == f"do_things: {program}: is a file, expected a folder to write\n"
    done = call(program, "--out", program / "inside")
    assert done.returncode == 1 and done.stderr == f"do_things: {program / 'inside'}: Not a directory\n"
    (tmp_path / "own").mkdir()
    gift = "give a folder with feats.scp, or in a recipe "
    for data, lacks, advice in ((tmp_path / "own" / "none", "no such folder", gift),
                                (program, "a file, expected a folder", "run make_mfcc first, or in a recipe "),
                                (tmp_path, "no file feats.scp", "run make_mfcc first, or in a recipe ")):  # fmt: skip
        done = call(program, "--out", tmp_path / "out", "--data", data)
        assert done.returncode == 1
        assert done.stderr == f"do_things: {data} is not complete ({lacks}): {advice}run stage 1 first (--stage 1)\n"


def test_who_has_no_run_is_not_sent_to_a_stage_of_it(program, tmp_path):
    """An empty folder is anybody's; beside the data of a run it is that run's, and a stage is what it lacks."""
    folder, out = tmp_path / "some" / "folder", tmp_path / "some" / "out"
    folder.mkdir(parents=True)
    says = f"do_things: {folder} is not complete (an empty folder): "
    mine = call(program, "--out", out, "--data", folder, "--made-by", "data")
    assert mine.stderr == says + "give a folder with data, or in a recipe run stage 0 first (--stage 0)\n"
    (tmp_path / "some" / "data").mkdir()
    (tmp_path / "some" / "data" / "step.log").touch()
    theirs = call(program, "--out", out, "--data", folder, "--made-by", "data")
    assert theirs.stderr == says + "run stage 0 first (--stage 0)\n"


@pytest.mark.parametrize("folder", ["ml_1", "elsewhere/data"])
def test_what_no_stage_makes_is_sent_to_none(program, tmp_path, folder):
    """A model or data that import_htk began: within a run, too, it is that step's."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "step.log").touch()
    inside = tmp_path / folder
    inside.mkdir(parents=True)
    begun = inside if folder == "ml_1" else inside.parent
    (begun / "started.json").write_text(json.dumps({"step": "import_htk", "command": "import_htk --out it"}))
    done = call(program, "--out", tmp_path / "out", "--data", inside, "--made-by", "train_ml")
    assert done.returncode == 1 and done.stderr.endswith(" has not ended well there): run import_htk again\n")


@pytest.mark.parametrize("folder, stage", [("ml_1", 2), ("mce_1", 4), ("mm_2", 5), ("lme-sdp_1", 6), ("elsewhere", 2)])
def test_a_missing_model_is_blamed_on_the_stage_of_its_own_system(program, tmp_path, folder, stage):
    """A trainer takes any model as its start: whose stage is missing, the folder's name tells."""
    done = call(program, "--out", tmp_path / "out", "--data", tmp_path / folder, "--made-by", "train_ml")
    assert done.returncode == 1 and f"run stage {stage} first (--stage {stage})" in done.stderr


def test_the_work_of_another_step_is_left_alone(program, tmp_path):
    out = tmp_path / "out"
    assert call(program, "--out", out, "--fault", "none").returncode == 0
    made = (out / "step.json").read_bytes()
    other = program.with_name("do_others.py")
    other.write_text(STEP)
    done = call(other, "--out", out, "--fault", "none")
    assert done.returncode == 1 and done.stderr == f"do_others: {out}: holds what do_things made; give another --out\n"
    assert (out / "step.json").read_bytes() == made
    assert call(program, "--out", out, "--fault", "none").returncode == 0


@pytest.mark.parametrize(
    ("module", "says"),
    [("sklearn.svm", "needs sklearn: pip install 'margo-speech[classify]'\n"), ("margo.lost", "internal error: ")],
)
def test_a_package_that_is_not_there_names_its_extra(program, tmp_path, module, says):
    done = call(program, "--out", tmp_path / "o", "--fault", f"import {module}")
    assert done.returncode == 1 and f": {says}" in done.stderr and done.stderr.count("\n") == 1


def test_a_step_whose_input_changes_meanwhile_does_not_end_well(program, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "text").write_text("u1 words\n")
    told = ("--data", tmp_path / "data", "--made-by", "data", "--out", tmp_path / "out")
    done = call(program, *told, "--fault", "changed")
    assert done.returncode == 1 and not (tmp_path / "out" / "step.json").exists()
    assert done.stderr == (f"do_things: {tmp_path / 'data'} changed while do_things read it: "
                           "run the same command again\n")  # fmt: skip
    assert call(program, *told, "--fault", "none").returncode == 0
