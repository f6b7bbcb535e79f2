"""``step.json``: what a folder's step was asked, what it read, what it wrote. Written last.

It serves resuming and provenance. A folder without one is anybody's, and taken as it is. In a folder that has one,
files must be what the step left there, and what it read must be what it was: size and times tell that at once; where
they differ, as in a copy, the contents decide.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from margo.errors import MargoError
from margo.formats.atomic import write_json
from margo.formats.reading import read_json
from margo.formats.systems import HOME
from margo.runtime import lock
from margo.runtime.options import plain

NAME = "step.json"
BLANK = {"argv": [], "options": {}, "inputs": {}, "seconds": 0.0}  # of a folder that another program made
LAYOUT = {"status": str, "outputs": {...: str}, "step?": str, "argv?": [str], "options?": dict, "inputs?": {...: str},
          "seconds?": float, "packages?": {...: str}, "seen?": dict, "identity?": dict}  # fmt: skip
PACKAGES = ("margo-speech", "numpy", "scipy", "numba", "scikit-learn", "cvxpy", "soundfile", "kaldiio")
TOLD = ("progress.jsonl", "step.log", NAME, lock.NAME)  # files that differ each time the same is made, by their seconds
ABOVE = 3  # folders above one that may hold the record of what is in it


def read(folder) -> dict | None:
    """The record in ``folder``, or None where there is none that can be read."""
    try:
        return BLANK | read_json(Path(folder) / NAME, "a record of a step", LAYOUT)
    except MargoError:
        return None


def of(folder) -> dict | None:
    """The record of the step that made ``folder``, its own or one above; None unless that step ended well."""
    owner = owner_of(folder)
    held = read(owner) if owner else None
    return held if held and held.get("status") == "ok" else None


def owner_of(path) -> Path | None:
    """The folder of the step that made ``path``: itself, or one up to three above, where a step is unfinished or has
    listed files in it; None of what no step of ours made."""
    path = Path(os.path.abspath(path))
    for above in (path, *path.parents[:ABOVE]):
        if (above / NAME).exists():
            outputs = (read(above) or {}).get("outputs", {})
            return above if path == above or any(lies(name, listed_below(path, above)) for name in outputs) else None
        if (above / lock.NAME).exists():
            return above
    return None


def listed_below(path, owner: Path) -> str:
    return str(Path(os.path.abspath(path)).relative_to(owner))


def lies(name: str, below: str) -> bool:
    """Is the output ``name`` the file, or in the folder, ``below``?"""
    return below in (".", name) or name.startswith(f"{below}/")


def unfinished(path) -> str:
    """Why the step of ours that made ``path`` did not end well, in words; nothing of what it did, or is anybody's."""
    owner = owner_of(path)
    if owner is None or of(owner):
        return ""
    held = lock.holder(owner)
    return f"no {NAME} with status ok" if held is None else f"{lock.told(held)} has not ended well there"


def maker(path) -> str:
    """The step of ours that made ``path``, or began to; nothing of what is anybody's."""
    owner = owner_of(path)
    held = (read(owner) or lock.holder(owner) or {}) if owner else {}
    return str(held.get("step", ""))


def busy(path, own: Path | None = None) -> str:
    """The step that is at work where ``path`` is, in words; nothing where none is, or only who asks, in ``own``."""
    owner = owner_of(path)
    others = owner and not (own and owner == Path(os.path.abspath(own)))
    return lock.told(lock.holder(owner)) if others and lock.at_work(owner) else ""


def altered(path, current: bool = True) -> str:
    """What speaks against ``path``, made by a step of ours that ended well: its files or, if it is to be ``current``,
    what that step read, changed; with the record that says so. Nothing of what is as it was, or is anybody's."""
    owner = owner_of(path)
    if owner is None:
        return ""
    held = read(owner)
    step, advice = held.get("step", "its step"), f"; remove {owner / NAME} to take it as it is"
    if changed := changes(owner, held, listed_below(path, owner)):
        return f"is not what {step} left there ({', '.join(changed)}){advice}"
    read_then = held.get("inputs", {}) if current else {}
    old = [each for each, hashed in read_then.items() if not fresh(each, hashed, held, owner)]
    return f"is out of date ({', '.join(old)} changed since {step} read it){advice}" if old else ""


def changes(owner: Path, held: dict, below: str) -> list[str]:
    """Outputs in the folder ``below`` (or the file of that name) that are gone, or not what the record says."""
    changed, seen = [], held.get("seen", {})
    for name, digest in held.get("outputs", {}).items():
        path = owner / name
        if not lies(name, below) or path.name in TOLD or not inside(owner, name):
            continue
        if not path.is_file():
            changed.append(f"{name} is gone")
        elif stamp(path) != seen.get(name) and hash_file(path) != digest:
            changed.append(f"{name} was changed")
    return changed


def fresh(path: str, digest: str, held: dict, owner: Path) -> bool:
    """Is the input ``path`` of a record what it was? Of a folder that was moved, what lies beside it is looked at; what
    cannot be found, or is not complete itself, is not known to have changed."""
    if held.get("folder") != str(owner):
        path = os.path.normpath(owner / os.path.relpath(path, held.get("folder") or owner))
    made = owner_of(path)
    if not os.path.exists(path) or made and of(made) is None:
        return True
    return not made and stamp(path) == held.get("seen", {}).get(path) or content(path) == digest


def content(path) -> str:
    """One hash for what ``path`` holds: of a folder of ours by its record, of any other by its files."""
    path = Path(os.path.abspath(path))
    if path.is_file():
        return hash_file(path)
    owner = owner_of(path)
    if owner is None:
        return digest({name: hash_file(place) for name, place in files_of(path).items()})
    below, outputs = listed_below(path, owner), read(owner)["outputs"]
    return digest({name.removeprefix(f"{below}/"): hashed for name, hashed in outputs.items() if lies(name, below)})


def files_of(folder: Path) -> dict[str, Path]:
    """The files of a folder that is anybody's, with the archives its feats.scp names elsewhere."""
    files = {path.name: path for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."}
    if "feats.scp" in files:
        from margo.formats.features import read_scp

        with suppress(MargoError):  # who reads the features says what is wrong with them
            files |= {Path(ark).name: Path(ark) for ark in sorted({ark for ark, _ in read_scp(folder).values()})}
    return {name: path for name, path in files.items() if name not in TOLD}


def stamp(path) -> str:
    """A hash of names, sizes and times of a file, or of the files of a folder: equal only where nothing was written."""
    path = Path(path)
    files = {path.name: path} if path.is_file() else files_of(path)
    times = {name: os.stat(place) for name, place in files.items()}
    return digest({name: f"{each.st_size} {each.st_mtime_ns} {each.st_ctime_ns}" for name, each in times.items()})


def inside(folder: Path, name: str) -> bool:
    """Does an output's name stay within its folder, links followed? Foreign records may name anything."""
    return Path(folder, name).parent.resolve().is_relative_to(Path(folder).resolve())


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
    seen = {output: stamp(folder / output) for output in outputs}  # before their contents are looked at
    facts = {
        "status": "ok",
        "step": name,
        "folder": os.path.abspath(folder),
        "argv": argv,
        "options": plain(vars(options)) if options else {},
        "inputs": inputs,
        "outputs": {output: hash_file(folder / output) for output in outputs},
        "seconds": round(seconds, 3),
        "peak_memory_mb": peak_memory(),
        "python": sys.version.split()[0],
        "packages": versions(),
        "commit": commit(),
    }
    write_json(folder / NAME, facts | extra | {"seen": seen | extra.get("seen", {})})


def versions() -> dict[str, str]:
    from importlib import metadata

    installed = {}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def peak_memory() -> float:
    """Largest resident size, in megabytes, of this process or any of its finished children."""
    return round(max(own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024), 1)


def own_peak() -> float:
    """Largest resident size of this process alone, in megabytes.

    The system's own count goes on from the process that started this one, so that /proc is asked where there is one.
    """
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(OSError, StopIteration):
        status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        own = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return own / 1024


def commit() -> str | None:
    """Commit of the clone that margo runs from; None where it was installed, be that within another's checkout."""
    if not (HOME / ".git").exists():
        return None
    command = ["git", "-C", str(HOME), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None
