"""Run every benchmark of this folder, print it, compare it with the last run, and write results.json beside this file.

Each module runs in a process of its own, so that its peak of memory is its own. Its ``entries()`` yields dicts with
``name, ours_seconds, peer, peer_seconds, ratio`` (the peer's seconds over ours, both measured in this run, one thread)
and whatever else it measured; ``load`` is the machine's in the minute before: where it is above 1 (above 2 in scale,
which needs two cores), seconds by the clock say little; ``took`` are the seconds of the whole module. Name modules to
run only those: ``python benchmarks/run.py mfcc engine``; entries of the others stay as they were. What is slower by
more than a quarter than in the last results, by the clock and beside its peer, is named, and the exit code is 1.
``--docs`` writes the results that there are to docs/benchmarks.md.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ[variable] = "1"

import ast  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import platform  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from itertools import groupby  # noqa: E402
from operator import itemgetter  # noqa: E402
from pathlib import Path  # noqa: E402

HERE = Path(__file__).resolve().parent
RESULTS, DOCUMENT = HERE / "results.json", HERE.parent / "docs" / "benchmarks.md"
LOSS = 1.25  # times as slow as the last time, and beside the peer, is named
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "hmmlearn", "kaldi-native-fbank", "librosa", "cvxpy",
            "distributed")  # fmt: skip


def load(path: Path):
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tell(name: str) -> None:
    """Print the entries of a module, one a line; what it prints itself, or who it starts, goes to standard error."""
    with os.fdopen(os.dup(1), "w") as told:
        os.dup2(2, 1)
        for entry in load(HERE / f"{name}.py").entries():
            print(json.dumps(entry), file=told, flush=True)


def told(name: str) -> Iterator[dict]:
    """The entries of a module as a process of its own tells them."""
    with subprocess.Popen([sys.executable, str(Path(__file__).resolve()), "--tell", name], stdout=subprocess.PIPE,
                          text=True) as process:  # fmt: skip
        yield from map(json.loads, process.stdout)
    if process.returncode:
        sys.exit(f"benchmarks/run.py: {name} ended with {process.returncode}")


def losses(before: list[dict], after: list[dict]) -> list[str]:
    """What of ``after`` is slower than in ``before``: by its seconds and, where there is one, beside its peer."""
    held, found = {entry["name"]: entry for entry in before}, []
    for entry in after:
        old = held.get(entry["name"])
        if not old or not old["ours_seconds"]:
            continue
        slower = entry["ours_seconds"] / old["ours_seconds"]
        beside = old["ratio"] / entry["ratio"] if old["ratio"] and entry["ratio"] else slower
        if min(slower, beside) > LOSS:
            found.append(f"{entry['name']}: {entry['ours_seconds']:.3g} s, was {old['ours_seconds']:.3g} s"
                         + (f"; {entry['ratio']:.3g} times {entry['peer']}, was {old['ratio']:.3g}"
                            if old["ratio"] and entry["ratio"] else ""))  # fmt: skip
    return found


def machine() -> dict:
    """What the figures depend on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    packages = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "none"
    return {"processor": names[0] if names else platform.processor(), "cores": os.cpu_count(),
            "system": platform.platform(), "packages": packages}  # fmt: skip


def document(results: list[dict], facts: dict) -> str:
    """The results as docs/benchmarks.md."""
    took = {entry["module"]: entry["took"] for entry in results}
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items())
    lines = [
        "# Benchmarks", "", "Made by `make bench` and `python benchmarks/run.py --docs`. Ratio: the peer's seconds "
        "over ours, in the same run, one", "thread; above 1 margo is faster. Load: the machine's in the minute before.",
        "", f"Machine: {facts['processor']}, {facts['cores']} cores, {facts['system']}. {packages}.", "",
        f"All of it took {sum(took.values()) / 60:.1f} minutes by the clock: "
        + ", ".join(f"{module} {seconds:.0f} s" for module, seconds in took.items()) + ".",
    ]  # fmt: skip
    plain = {"name", "ours_seconds", "peer", "peer_seconds", "ratio", "facts", "module", "took"}
    for module, entries in groupby(results, itemgetter("module")):
        lines += ["", f"## {module}", "", about(module), ""]
        lines += ["| benchmark | seconds | peer | its seconds | ratio | more |", "|---|---|---|---|---|---|"]
        for entry in entries:
            more = "; ".join(f"{key.replace('_', ' ')} {shown(value)}" for key, value in entry.items()
                             if key not in plain)  # fmt: skip
            figures = [shown(entry[key]) for key in ("ours_seconds", "peer", "peer_seconds", "ratio")]
            lines.append("| " + " | ".join([entry["name"], *figures, more]).replace("\n", " ") + " |")
    return "\n".join(lines) + "\n"


def about(module: str) -> str:
    """What a module's first lines say that it measures."""
    path = HERE / f"{module}.py"
    return (ast.get_docstring(ast.parse(path.read_text())) or "") if path.exists() else ""


def shown(value) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {shown(each)}" for key, each in value.items())
    return "" if value is None else str(value)


def main(names: list[str]) -> int:
    held = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    if names == ["--docs"]:
        DOCUMENT.write_text(document(held, machine()))
        print(f"{len(held)} entries in {DOCUMENT}")
        return 0
    if names[:1] == ["--tell"]:
        tell(names[1])
        return 0
    modules = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.stem != "run"}
    unknown = sorted(set(names) - set(modules))
    if unknown:
        sys.exit(f"benchmarks/run.py: no benchmark {', '.join(unknown)}; there are {', '.join(modules)}")
    results, began = [], time.perf_counter()
    for name in names or modules:
        started, found = time.perf_counter(), []
        for entry in told(name):
            found.append(entry | {"load": os.getloadavg()[0], "module": name})
            print(json.dumps(found[-1]), flush=True)
        took = {"took": round(time.perf_counter() - started, 1)}  # seconds of the whole module, by the clock
        results += [entry | took for entry in found]
        others = modules.keys() - {entry["module"] for entry in results}
        kept = [entry for entry in held if entry["module"] in others]  # written now, lest a run that is ended lose it
        RESULTS.write_text(json.dumps(sorted(kept + results, key=itemgetter("module")), indent=1))
    print(f"{len(results)} entries in {RESULTS} after {time.perf_counter() - began:.0f} s")
    lost = losses(held, results)
    for line in lost:
        print(f"slower than the last time: {line}")
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
