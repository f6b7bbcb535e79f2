"""What the programs that turn raw corpora into data folders share: finding files, the synthetic mark, writing sets."""

import json
import os
from pathlib import Path

from margo.errors import MargoError
from margo.formats import datadir
from margo.formats.atomic import write_json

MARKER = "margo-synthetic.json"  # local/mini_corpus.py writes it last into what it makes


def files_below(corpus, suffixes: tuple[str, ...]) -> list[tuple[Path, tuple[str, ...]]]:
    """Every file below ``corpus`` with one of ``suffixes``, and its path from there in lower case; sorted by that.

    Discs were copied in upper or lower case; both are found, and symbolic links are followed.
    """
    corpus = Path(corpus)
    if not corpus.is_dir():
        raise MargoError(f"{corpus}: " + ("is a file, expected a folder" if corpus.exists() else "no such folder"))
    found = []
    for folder, _, names in os.walk(corpus, followlinks=True):
        inside = Path(folder).relative_to(corpus).parts
        for name in names:
            if name.lower().endswith(suffixes) and not name.startswith("."):
                found.append((Path(folder) / name, tuple(part.lower() for part in (*inside, name))))
    return sorted(found, key=lambda pair: pair[1])


def is_synthetic(corpus, name: str) -> bool:
    """Whether ``corpus`` is an embedded one; refuses the embedded corpus of another name."""
    marker = Path(corpus) / MARKER
    if not marker.is_file():
        return False
    try:
        made = json.loads(marker.read_text(encoding="utf-8"))["corpus"]
    except (ValueError, KeyError, TypeError) as error:
        raise MargoError(f"{marker}: not a marker of mini_corpus.py ({type(error).__name__}: {error})") from None
    if made != name:
        raise MargoError(f"{corpus}: the embedded {made} corpus, expected {name}")
    return True


def count_faults(found: dict[str, int], expected: dict[str, int]) -> list[str]:
    """One line for each count that is not what the complete corpus has."""
    return [f"{what}: {found[what]}, expected {expected[what]}" for what in expected if found[what] != expected[what]]


def write_sets(out, sets: dict[str, list], name: str, synthetic: bool) -> list[str]:
    """Write data folders ``out/<set>``, none empty, and ``out/corpus.json``; the files written, relative to ``out``.

    Refused where ``out`` has a dev set, as of another protocol, that is not among ``sets``.
    """
    out, written = Path(out), []
    if "dev" not in sets and (out / "dev").exists():
        raise MargoError(f"{out / 'dev'}: of a run that had a dev set, which this has not; give another --out (--exp)")
    for which, rows in sets.items():
        if not rows:
            raise MargoError(f"{out / which}: no utterances for the {which} set")
        datadir.write(out / which, rows)
        written += [f"{which}/{table}" for table in datadir.TABLES if (out / which / table).is_file()]
    write_json(out / "corpus.json", {"corpus": name, "synthetic": synthetic})
    return [*written, "corpus.json"]
