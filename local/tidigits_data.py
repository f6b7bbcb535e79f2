"""TIDIGITS (adults) as Kaldi data folders train, dev and test.

Reads the discs' layout at any depth: .../{train,test}/{man,woman}/<speaker>/<digits><production>.wav, upper or lower
case; boys and girls are left out, as in [LJ07]. The corpus has no development set: of the training speakers of each
gender, sorted, every fifth (the 5th, 10th, ...) becomes dev, so that no speaker is in two sets. With --protocol paper,
[LJ07]'s, all of them train and there is no dev.

Example: local/tidigits_data.py --corpus tidigits --out exp/tidigits/data
"""

import re
from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main

WORDS = {"z": "zero", "o": "oh", "1": "one", "2": "two", "3": "three", "4": "four", "5": "five", "6": "six",
         "7": "seven", "8": "eight", "9": "nine"}  # fmt: skip
GENDERS = {"man": "m", "woman": "f"}
COMPLETE = {"training strings": 8623, "test strings": 8700}


@dataclass(frozen=True)
class Options(Knobs):
    corpus: Path = knob(help="TIDIGITS as on the discs, or the embedded corpus of mini_corpus.py")
    out: Path = knob(help="folder to write train, dev and test into")
    partial: bool = knob(False, "accept an incomplete corpus")
    protocol: str = knob("default", "whether there is a dev set", ("default", "paper"))
    dev_every: int = knob(5, "one training speaker in this many goes to dev", least=2, needs={"protocol": ("default",)})


def run(options: Options, step):
    from margo.errors import MargoError, refuse
    from margo.formats.corpora import count_faults, files_below, is_synthetic, write_sets

    synthetic = is_synthetic(options.corpus, "tidigits")
    parts: dict[str, list] = {"train": [], "test": []}
    faults = []
    files = files_below(options.corpus, (".wav",))
    for path, parts_of_path in files:
        if len(parts_of_path) < 4 or parts_of_path[-4] not in parts or parts_of_path[-3] not in GENDERS:
            continue
        part, sex, speaker, name = parts_of_path[-4:]
        row = utterance(path, sex, speaker, name)
        if row is None:
            faults.append(f"{path}: expected digits (z o 1-9) and a production (a or b) in the name")
        else:
            parts[part].append(row)
    if not (faults or parts["train"] or parts["test"]):
        raise MargoError(
            f"{options.corpus}: no strings of TIDIGITS among {len(files)} .wav files "
            "(expected .../{train,test}/{man,woman}/<speaker>/<digits><production>.wav)"
        )
    counts = {"training strings": len(parts["train"]), "test strings": len(parts["test"])}
    if not (options.partial or synthetic):
        faults += count_faults(counts, COMPLETE)
    refuse(faults, f"{options.corpus}: not the adults of TIDIGITS (--partial true accepts fewer strings)")
    sets = parts
    if options.protocol == "default":
        dev = held_out(parts["train"], options.dev_every)
        sets = {
            "train": [row for row in parts["train"] if row.speaker not in dev],
            "dev": [row for row in parts["train"] if row.speaker in dev],
            "test": parts["test"],
        }
    for name in write_sets(options.out, sets, "tidigits", synthetic):
        step.output(name)
    for which, rows in sets.items():
        digits = sum(len(row.words) for row in rows)
        step.say(f"{which}: {len({row.speaker for row in rows})} speakers, {len(rows)} strings, {digits} digits")


def utterance(path: Path, sex: str, speaker: str, name: str):
    """The row of ``<digits><production>.wav``; None where the name is not of that form."""
    from margo.formats.datadir import Utterance

    match = re.fullmatch(r"([zo1-9]+)([ab])\.wav", name)
    if match is None:
        return None
    speaker = f"{sex}-{speaker}"
    words = tuple(WORDS[digit] for digit in match[1])
    return Utterance(f"{speaker}-{match[1]}{match[2]}", speaker, words, str(path.resolve()), gender=GENDERS[sex])


def held_out(rows, every: int) -> set[str]:
    """Every ``every``-th speaker of each gender."""
    chosen: set[str] = set()
    for gender in GENDERS.values():
        chosen.update(sorted({row.speaker for row in rows if row.gender == gender})[every - 1 :: every])
    return chosen


if __name__ == "__main__":
    main(__doc__, Options, run)
