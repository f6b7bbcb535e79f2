"""Spoilt files, three thousand of them, over every reader; and that no reader was forgotten."""

import ast
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import fuzzing

LIB = Path(fuzzing.ROOT) / "lib" / "margo"
TOOLS = "reading.py"  # what readers are made of: fuzzed through them


def readers() -> set[str]:
    """Names of the public functions of ``formats`` and ``tasks`` that read files; not of those that a step is given."""
    paths = [path for room in ("formats", "tasks") for path in (LIB / room).glob("*.py") if path.name != TOOLS]
    found = [node for path in paths for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in found if (node.name.startswith("read_") or node.name in ("read", "audio_info"))
            and not {"step", "data"} & {each.arg for each in node.args.args}}  # fmt: skip


def test_every_public_reader_is_among_the_cases():
    told = {word.rpartition(".")[2] for name in fuzzing.all_cases() for word in name.split()[:1]}
    assert readers() <= told, readers() - told
    assert {"conf", "read_state"} <= told


def cpu_of_children() -> float:
    """Seconds of CPU of all that has ended, which other work on the machine does not lengthen."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_three_thousand_spoilt_files_are_read_rightly_or_refused_by_name():
    command = [sys.executable, "-W", "error::RuntimeWarning", fuzzing.__file__, "17", "3000"]
    before = cpu_of_children()
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]  # decoders in C may end the whole program
    wrong = json.loads(done.stdout)
    assert not wrong, json.dumps(wrong[:5], indent=1)
    assert cpu_of_children() - before < 60  # seconds; about fifteen are needed


def test_the_fuzzer_sees_what_is_wrong(tmp_path):
    sound = fuzzing.Case({"a.txt": b"3"}, "a.txt", lambda folder: float((folder / "a.txt").read_text()))
    fuzzing.put(sound, tmp_path)
    assert fuzzing.outcome(sound, tmp_path) == ""
    (tmp_path / "a.txt").write_text("1e999")
    assert "not finite" in fuzzing.outcome(sound, tmp_path)
    (tmp_path / "a.txt").write_text("three")
    assert "ValueError" in fuzzing.outcome(sound, tmp_path)


# What a fuzzer with other ways to spoil files found: (case, spoilt file).
FOUND = [
    ("report decode/ml_8/test/step.json", b'{"status": "ok", "outputs": {}, "options": {"model": "x", "out": -1}}'),
    ("report ml_8/plots.json", b'[{"title": "t", "kind": "line", "series": [{"x": [1, 2], "y": [0.5, 1.5]}]}]'),
    ("read_amat", b"0.1 0.5 1\n0.2 1e39 2\n"),
    ("read_correction", b'{"late": 0.001, "pairs": {}, "factor": 1.2, "classes": {}, "more": 1}'),
]


@pytest.mark.parametrize(("name", "raw"), FOUND, ids=[name for name, _ in FOUND])
def test_what_another_fuzzer_found(name, raw, tmp_path):
    case = fuzzing.all_cases()[name]
    fuzzing.put(case, tmp_path)
    (tmp_path / case.target).write_bytes(raw)
    assert fuzzing.outcome(case, tmp_path) == ""


def test_files_of_the_system_that_cannot_be_measured_are_one_line(tmp_path):
    case = fuzzing.all_cases()["read_questions"]
    fuzzing.put(case, tmp_path)
    (tmp_path / case.target).unlink()
    (tmp_path / case.target).symlink_to("/proc/self/mem")
    assert fuzzing.outcome(case, tmp_path) == ""
