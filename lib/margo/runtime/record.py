"""``step.json``: what a folder's step was asked, what it read, what it wrote. Written last."""

import hashlib
import json
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from margo.errors import MargoError
from margo.formats.atomic import write_json
from margo.formats.reading import read_json
from margo.formats.systems import HOME
from margo.runtime.options import plain

NAME = "step.json"
BLANK = {"argv": [], "options": {}, "inputs": {}, "seconds": 0.0}  # of a folder that another program made
LAYOUT = {"status": str, "outputs": {...: str}, "step?": str, "argv?": [str], "options?": dict, "inputs?": {...: str},
          "seconds?": float, "packages?": {...: str}}  # fmt: skip
PACKAGES = ("margo-speech", "numpy", "scipy", "numba", "scikit-learn", "cvxpy", "soundfile", "kaldiio")


def read(folder) -> dict | None:
    """The record in ``folder``, or None where there is none that can be read."""
    try:
        return BLANK | read_json(Path(folder) / NAME, "a record of a step", LAYOUT)
    except MargoError:
        return None


def of(folder) -> dict | None:
    """The record of the step that made ``folder``: its own, or one up to three folders above that lists files in it.

    None unless that step ended well.
    """
    folder = Path(folder)
    held = read(folder)
    for above in folder.parents[:3]:
        if held is not None:
            break
        held = read(above)
        if held and not any(name.startswith(f"{folder.relative_to(above)}/") for name in held.get("outputs", ())):
            return None
    return held if held and held.get("status") == "ok" else None


def forget(folder) -> None:
    (Path(folder) / NAME).unlink(missing_ok=True)


def digest(outputs: dict[str, str]) -> str:
    """One hash for all of a step's outputs but progress.jsonl, whose seconds differ each time the same is made."""
    hashes = sorted((name, hashed) for name, hashed in outputs.items() if not name.endswith("progress.jsonl"))
    return hashlib.blake2b(json.dumps(hashes).encode(), digest_size=16).hexdigest()


def hash_file(path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def write(folder, name: str, argv: list, options, inputs: dict, outputs: list[str], seconds: float, extra: dict):
    folder = Path(folder)
    facts = {
        "status": "ok",
        "step": name,
        "argv": argv,
        "options": plain(options),
        "inputs": inputs,
        "outputs": {output: hash_file(folder / output) for output in outputs},
        "seconds": round(seconds, 3),
        "peak_memory_mb": peak_memory(),
        "python": sys.version.split()[0],
        "packages": versions(),
        "commit": commit(),
    }
    write_json(folder / NAME, facts | extra)


def versions() -> dict[str, str]:
    from importlib import metadata

    installed = {}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def peak_memory() -> float:
    """Largest resident size, in megabytes, of this process or any of its finished children."""
    kilobytes = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(kilobytes / 1024, 1)


def commit() -> str | None:
    """Commit of the clone that margo runs from; None where it was installed, be that within another's checkout."""
    if not (HOME / ".git").exists():
        return None
    command = ["git", "-C", str(HOME), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None
