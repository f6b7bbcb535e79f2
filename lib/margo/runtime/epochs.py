"""The loop of everything that trains: one iteration after another, each saved, so that a killed run goes on.

After iteration i the whole state is in ``iter_NNN.npz`` (one file, written before the last one is removed), and with it
the run's identity: its options, and the contents of its inputs, wherever they lie. A run restarted in its folder goes
on after it, and ends with the same bytes as one never interrupted, if its identity is the same; else it says what
differs.
"""

import json
import os
import time
from pathlib import Path

from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz, write_text
from margo.formats.reading import fitting
from margo.knobs import flag
from margo.runtime import record
from margo.runtime.options import plain

LAYOUT = {"iteration": int, "reports": [{"objective": float}], "done": bool, "state": dict,
          "identity": {"options": dict, "inputs": dict}}  # fmt: skip
# Options that do not change the result, and so may differ between the parts of an interrupted run.
NEUTRAL = {"nj", "cluster", "cluster_timeout", "overwrite", "out", "conf"}


def train(step, start, advance, save, load):
    """Iterate ``state, report, done = advance(iteration, state)`` until ``done``; returns ``(state, reports)``.

    ``start()`` makes the state before iteration 1, ``save(state) -> (meta, arrays)`` and ``load(meta, arrays)``
    turn it into and out of what an ``.npz`` holds, exactly. ``report`` is one line of ``progress.jsonl``: a dict with
    at least ``objective`` and ``frames``; ``iteration``, ``change`` and ``seconds`` are added here.
    """
    meta, arrays = begin(step)
    iteration, reports, done, last = 0, [], False, newest(step.out)
    if last:
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
        facts = {"iteration": iteration, "reports": reports, "done": bool(done), "state": meta}
        write_npz(path, facts | {"identity": step.extra["identity"]}, arrays)
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


def write_progress(step, reports: list[dict]) -> None:
    write_text(step.output("progress.jsonl"), "".join(json.dumps(report) + "\n" for report in reports))


def line(name: str, report: dict) -> str:
    """One report as a line for people: figures in few digits, lists and empty values left out."""
    words = [f"{key} {value:.5g}" if isinstance(value, float) else f"{key} {value}" for key, value in report.items()
             if isinstance(value, int | float | str) and key != "iteration"]  # fmt: skip
    return f"{name} {report['iteration']}: " + ", ".join(words)


def begin(step) -> tuple[dict, dict]:
    """Decide between a new run, the same run resumed, and a refusal; what the last iteration file holds, if any."""
    identity = step.extra["identity"] = identity_of(step)
    finished, last = record.read(step.out), newest(step.out)
    meta, arrays = read_state(last) if last else ({}, {})
    differing = []
    for held, what in ((finished, "a finished model"), (meta, "an unfinished run")):
        differing = differences(held.get("identity", {}), identity) if held else []
        if differing and not step.options.overwrite:
            raise MargoError(f"{step.out} holds {what} with other settings: {'; '.join(differing)}. "
                             "Give --overwrite true to replace it, or another --exp")  # fmt: skip
    record.forget(step.out)
    if not last or differing:
        clear(step.out, finished)
    return meta, arrays


def identity_of(step) -> dict:
    """What decides the outcome of a run: options, and digests of what they name as inputs instead of the paths."""
    options, inputs, named = {}, {}, set()
    for name, value in vars(step.options).items():
        places = [os.path.abspath(each) for each in (value if isinstance(value, tuple) else (value,))
                  if isinstance(each, str | Path) and str(each)]  # fmt: skip
        if places and step.inputs.keys() >= {*places}:
            inputs[flag(name)] = [step.inputs[place] for place in places]
            named |= {*places}
        elif name not in NEUTRAL:
            options[name] = value
    inputs |= {Path(place).name: [digest] for place, digest in step.inputs.items() if place not in named}
    return {"options": plain(options), "inputs": inputs}


def read_state(path: Path) -> tuple[dict, dict]:
    """An iteration file; one that cannot be read, or is not of a run, is nobody's."""
    try:
        meta, arrays = read_npz(path)
        return fitting(path, meta, LAYOUT), arrays
    except MargoError:
        return {"identity": {}}, {}


def differences(old: dict, new: dict) -> list[str]:
    """What differs between two identities, in words."""
    if not (isinstance(old.get("options"), dict) and isinstance(old.get("inputs"), dict)):
        return ["which ones is not known"]
    differing = []
    for key in sorted({*old["options"], *new["options"]}):
        was, now = old["options"].get(key), new["options"].get(key)
        if was != now:
            differing.append(f"{flag(key)} was {was}, is {now}")
    names = sorted({*old["inputs"], *new["inputs"]})
    return differing + [f"input {name} is not what it was" for name in names
                        if old["inputs"].get(name) != new["inputs"].get(name)]  # fmt: skip


def clear(folder: Path, held: dict | None) -> None:
    """Remove iteration files, and of a finished run what its record lists in its folder."""
    listed = [folder / name for name in (held or {}).get("outputs", ()) if record.inside(folder, name)]
    for path in [*folder.glob("iter_*.npz"), *listed]:
        path.unlink(missing_ok=True)


def newest(folder: Path) -> Path | None:
    return max(folder.glob("iter_*.npz"), key=lambda path: (len(path.name), path.name), default=None)
