"""Run every benchmark of this folder, print it, and write results.json beside this file.

Each module's ``entries()`` yields dicts with ``name, ours_seconds, peer, peer_seconds, ratio`` (the peer's seconds over
ours, both measured in this run, one thread) and whatever else it measured. Name modules to run only those:
``python benchmarks/run.py mfcc engine``.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ[variable] = "1"

import importlib.util  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

HERE = Path(__file__).resolve().parent


def load(path: Path):
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(names: list[str]) -> None:
    modules = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.stem != "run"}
    unknown = sorted(set(names) - set(modules))
    if unknown:
        sys.exit(f"benchmarks/run.py: no benchmark {', '.join(unknown)}; there are {', '.join(modules)}")
    results = []
    for name in names or modules:
        for entry in load(modules[name]).entries():
            print(json.dumps(entry), flush=True)
            results.append(entry)
    path = HERE / "results.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(results)} entries in {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
