"""The benchmarks' own arithmetic: losses are named, the simulation obeys its laws."""

import importlib.util
import os
import subprocess
import sys

import pytest


def load(root, name):
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", root / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entry(name, ours, theirs=None):
    return {"name": name, "ours_seconds": ours, "peer": "x", "peer_seconds": theirs,
            "ratio": None if theirs is None else theirs / ours}  # fmt: skip


def test_what_is_slower_by_a_quarter_is_named_unless_the_machine_is(root):
    run = load(root, "run")
    before = [entry("alone", 1.0), entry("both", 1.0, 2.0), entry("peer", 1.0, 2.0), entry("gone", 1.0)]
    assert run.losses(before, [entry("alone", 1.2), entry("both", 1.2, 2.0), entry("new", 9.0)]) == []
    found = run.losses(before, [entry("alone", 1.3), entry("both", 1.3, 2.0), entry("peer", 3.0, 6.0)])
    assert [line.partition(":")[0] for line in found] == ["alone", "both"]


def test_the_document_has_a_row_for_each_entry(root):
    run = load(root, "run")
    results = [entry("a", 1.0, 2.0) | {"module": "m", "took": 90.0},
               entry("b", 0.5) | {"exponent": 1.01, "module": "n", "took": 30.0}]  # fmt: skip
    text = run.document(results, run.machine())
    assert "All of it took 2.0 minutes by the clock: m 90 s, n 30 s." in text
    assert "| a | 1 | x | 2 | 2 |  |" in text and "| b | 0.5 | x |  |  | exponent 1.01 |" in text and "numpy" in text
    assert "## m\n" in text and "## n\n" in text


SMALL = '''"""What is small."""

import os


def entries():
    print("at work")
    os.system("echo who is started is at work")
    yield {"name": "x", "process": os.getpid()}
'''


def test_a_module_runs_in_a_process_of_its_own_and_what_it_prints_is_no_entry(root, tmp_path, monkeypatch):
    """Or else a module's peak of memory is that of all before it."""
    run = load(root, "run")
    (tmp_path / "run.py").write_text((root / "benchmarks" / "run.py").read_text())
    (tmp_path / "small.py").write_text(SMALL)
    monkeypatch.setattr(run, "__file__", str(tmp_path / "run.py"))
    (found,) = run.told("small")
    assert found["name"] == "x" and found["process"] != os.getpid()
    monkeypatch.setattr(run, "HERE", tmp_path)
    assert run.about("small") == "What is small."


def test_a_peak_of_memory_is_not_that_of_who_started_the_process():
    """The system's own count, which columns of memory once had, goes on from there."""
    inner = "from margo.runtime.record import own_peak; print(own_peak())"
    outer = "import subprocess, sys; held = bytes(400 << 20).upper(); "
    outer += f"subprocess.run([sys.executable, '-c', {inner!r}])"
    done = subprocess.run([sys.executable, "-c", outer], stdout=subprocess.PIPE, text=True, check=True)
    assert 5 < float(done.stdout) < 300


@pytest.mark.parametrize("send, reduce", [(0.0, 0.0), (0.01, 0.002)])
def test_the_simulation_keeps_within_what_is_possible(root, send, reduce):
    scale = load(root, "scale")
    chunks = [0.1 + 0.05 * (n % 3) for n in range(60)]
    times = [scale.simulate(chunks, jobs, send, reduce) for jobs in scale.WORKERS]
    assert times[0] == pytest.approx(sum(chunks) + len(chunks) * (send + reduce))
    assert all(after <= before + 1e-9 for before, after in zip(times, times[1:]))
    for jobs, seconds in zip(scale.WORKERS, times):
        assert seconds >= max(sum(chunks) / jobs, max(chunks), len(chunks) * (send + reduce)) - 1e-9
    assert times[1] == pytest.approx(times[0] / 2, rel=0.1)
    if send:
        assert times[-1] < 1.5 * (len(chunks) * (send + reduce) + max(chunks)), "one parent takes the results"
