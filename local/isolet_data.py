"""ISOLET as Kaldi data folders train, dev and test; by default its E-set (B C D E G P T V Z).

Reads .../isolet<part>/<speaker>/<speaker>-<letter><production>-t.wav (or .adc, whatever format is inside), upper or
lower case. Parts 1 to 3 are train, part 4 is dev, part 5 is test; no speaker is in two parts. With --protocol paper,
[LJ07]'s, train is the first production of each letter in parts 1 to 4, and there is no dev.

Example: local/isolet_data.py --corpus isolet --out exp/isolet/data
"""

import re
from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main

SETS = {  # of the five parts
    "default": ("train", "train", "train", "dev", "test"),
    "paper": ("train", "train", "train", "train", "test"),
}
COMPLETE = {"speakers": 150, "letters spoken": 150 * 52}


@dataclass(frozen=True)
class Options(Knobs):
    corpus: Path = knob(help="ISOLET as distributed, or the embedded corpus of mini_corpus.py")
    out: Path = knob(help="folder to write train, dev and test into")
    partial: bool = knob(False, "accept an incomplete corpus")
    letters: str = knob("BCDEGPTVZ", "letters to keep")
    protocol: str = knob("default", "how the parts become sets", tuple(SETS))

    def faults(self):
        wrong = not re.fullmatch("[A-Z]{2,26}", self.letters) or len(set(self.letters)) < len(self.letters)
        said = f"--letters is {self.letters!r}, expected two or more different letters A-Z"
        return super().faults() + [said] * wrong


def run(options: Options, step):
    from margo.errors import MargoError, refuse
    from margo.formats.corpora import count_faults, files_below, is_synthetic, write_sets
    from margo.formats.datadir import Utterance

    synthetic = is_synthetic(options.corpus, "isolet")
    sets: dict[str, list] = {which: [] for which in SETS[options.protocol]}
    speakers: dict[str, str] = {}
    faults = []
    spoken = 0
    files = files_below(options.corpus, (".wav", ".adc"))
    for path, parts in files:
        part = next((name.removeprefix("isolet") for name in parts[:-1] if re.fullmatch("isolet[1-5]", name)), None)
        match = re.fullmatch(r"(([fm])[a-z]+\d)-([a-z])(\d+)-t\.(wav|adc)", parts[-1])
        if part is None:
            continue
        if match is None:
            faults.append(f"{path}: expected <speaker>-<letter><production>-t.wav")
            continue
        speaker, gender, letter, production = match[1], match[2], match[3].upper(), int(match[4])
        if speakers.setdefault(speaker, part) != part:
            faults.append(f"{path}: {speaker} is also in part {speakers[speaker]}")
        spoken += 1
        which = SETS[options.protocol][int(part) - 1]
        left_out = options.protocol == "paper" and which == "train" and production > 1
        if letter in options.letters and not left_out:
            row = Utterance(f"{speaker}-{letter}{production}", speaker, (letter,), str(path.resolve()), gender=gender)
            sets[which].append(row)
    if not (faults or spoken):
        raise MargoError(
            f"{options.corpus}: no letters of ISOLET among {len(files)} .wav and .adc files "
            "(expected .../isolet{1,2,3,4,5}/.../<speaker>-<letter><production>-t.wav)"
        )
    if not (options.partial or synthetic):
        faults += count_faults({"speakers": len(speakers), "letters spoken": spoken}, COMPLETE)
    refuse(faults, f"{options.corpus}: not ISOLET as distributed (--partial true accepts less)")
    for name in write_sets(options.out, sets, "isolet", synthetic):
        step.output(name)
    for which, rows in sets.items():
        step.say(f"{which}: {len({row.speaker for row in rows})} speakers, {len(rows)} letters")


if __name__ == "__main__":
    main(__doc__, Options, run)
