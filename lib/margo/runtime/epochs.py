"""The loop of everything that trains: one iteration after another, each saved, so that a killed run goes on.

After iteration i the whole state is in ``iter_NNN.npz`` (one file, written before the last one is removed). A run
restarted in its folder goes on after it, and ends with the same bytes as one never interrupted, if its options and
inputs are the same; else it says which differ.
"""

import json
import time
from contextlib import nullcontext, suppress
from pathlib import Path

from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_json, write_npz, write_text
from margo.formats.reading import read_json
from margo.knobs import flag
from margo.runtime import record
from margo.runtime.options import plain

STARTED = "started.json"
# Options that do not change the result, and so may differ between the parts of an interrupted run.
NEUTRAL = {"nj", "cluster", "overwrite", "out", "conf"}


def train(step, start, advance, save, load):
    """Iterate ``state, report, done = advance(iteration, state)`` until ``done``; returns ``(state, reports)``.

    ``start()`` makes the state before iteration 1, ``save(state) -> (meta, arrays)`` and ``load(meta, arrays)``
    turn it into and out of what an ``.npz`` holds, exactly. ``report`` is one line of ``progress.jsonl``: a dict with
    at least ``objective`` and ``frames``; ``iteration``, ``change`` and ``seconds`` are added here.
    """
    begin(step)
    iteration, reports, done, last = 0, [], False, newest(step.out)
    if last:
        meta, arrays = read_npz(last)
        iteration, reports, done = meta["iteration"], meta["reports"], meta["done"]
        step.say(f"{step.name}: resuming after iteration {iteration}")
    state = load(meta["state"], arrays) if last else start()
    while not done:
        iteration += 1
        began = time.perf_counter()
        state, report, done = advance(iteration, state)
        change = report["objective"] - reports[-1]["objective"] if reports else None
        seconds = round(time.perf_counter() - began, 3)
        reports.append({"iteration": iteration, "change": change, **report, "seconds": seconds})
        meta, arrays = save(state)
        path = step.out / f"iter_{iteration:03d}.npz"
        write_npz(path, {"iteration": iteration, "reports": reports, "done": bool(done), "state": meta}, arrays)
        if last:
            last.unlink()
        last = path
        write_progress(step, reports)
        step.say(line(step.name, reports[-1]))
    write_progress(step, reports)
    return state, reports


def finish(step) -> None:
    """Remove what only a resumed run needs; call once the outputs are written."""
    for path in step.out.glob("iter_*.npz"):
        path.unlink()
    (step.out / STARTED).unlink(missing_ok=True)


def write_progress(step, reports: list[dict]) -> None:
    write_text(step.output("progress.jsonl"), "".join(json.dumps(report) + "\n" for report in reports))


def line(name: str, report: dict) -> str:
    """One report as a line for people: figures in few digits, lists and empty values left out."""
    words = [f"{key} {value:.5g}" if isinstance(value, float) else f"{key} {value}" for key, value in report.items()
             if isinstance(value, int | float | str) and key != "iteration"]  # fmt: skip
    return f"{name} {report['iteration']}: " + ", ".join(words)


def begin(step) -> None:
    """Decide between a new run, the same run resumed, and a refusal; leaves ``started.json`` as the run's identity."""
    options = {key: value for key, value in plain(step.options).items() if key not in NEUTRAL}
    identity = {"options": options, "inputs": step.inputs}
    finished, unfinished = record.read(step.out), read_started(step.out, step.options.overwrite)
    differing = []
    for held, what in ((finished, "a finished model"), (unfinished, "an unfinished run")):
        differing = differences(held, identity) if held else []
        if differing and not step.options.overwrite:
            raise MargoError(f"{step.out} holds {what} with other settings: {'; '.join(differing)}. "
                             "Give --overwrite true to replace it, or another --exp")  # fmt: skip
    record.forget(step.out)
    if not unfinished or differing:
        clear(step.out, finished)
    write_json(step.out / STARTED, identity)


def read_started(folder: Path, overwrite: bool = False) -> dict | None:
    """What an unfinished run in ``folder`` was asked; None where there is none to go on with."""
    path = folder / STARTED
    if not path.exists() or not newest(folder):
        return None
    with suppress(MargoError) if overwrite else nullcontext():
        return read_json(path, "what a run was asked", {"options": dict, "inputs": {...: str}})


def differences(old: dict, new: dict) -> list[str]:
    """What differs between two identities, in words."""
    differing = []
    for key in sorted({*old["options"], *new["options"]} - NEUTRAL):
        was, now = old["options"].get(key), new["options"].get(key)
        if was != now:
            differing.append(f"{flag(key)} was {was}, is {now}")
    changed = {key for key, _ in old["inputs"].items() ^ new["inputs"].items()}
    return differing + [f"input {key} is not what it was" for key in sorted(changed)]


def clear(folder: Path, held: dict | None) -> None:
    """Remove iteration files, and of a finished run what its record lists."""
    for path in [*folder.glob("iter_*.npz"), *(folder / name for name in (held or {}).get("outputs", ()))]:
        path.unlink(missing_ok=True)


def newest(folder: Path) -> Path | None:
    return max(folder.glob("iter_*.npz"), default=None)
