"""CMU's AN4 (Census) as Kaldi data folders train, dev and test, its dictionary and its language model.

Reads the corpus's own layout: etc/an4_{train,test}.{fileids,transcription}, etc/an4.dic, etc/an4.ug.lm, and recordings
in NIST SPHERE or WAV below wav/. The corpus has no development set: of the training speakers of each gender (the first
letter of their names), sorted, every --dev-every-th becomes dev, so that no speaker is in two sets. With --fold N of
--folds, the speakers of both official sets are pooled, and every folds-th of them, from the N-th on, is the test set.
Writes lexicon.txt, and lm.arpa where the corpus has one, beside the sets.

Example: local/an4_data.py --corpus an4 --out exp/an4/data
"""

import re
from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main

COMPLETE = {"training utterances": 948, "test utterances": 130}
LINE = re.compile(r"(.*?)\(([^()]+)\)\s*")
MARKS = ("<s>", "</s>", "<sil>")


@dataclass(frozen=True)
class Options(Knobs):
    corpus: Path = knob(help="AN4 as it is distributed, with etc and wav")
    out: Path = knob(help="folder to write train, dev, test and lexicon.txt into")
    partial: bool = knob(False, "accept an incomplete corpus")
    dev_every: int = knob(7, "one training speaker in this many of each gender goes to dev", least=2)
    folds: int = knob(0, "folds over the speakers of both sets, instead of the official test set; 0: none", least=0)
    fold: int = knob(1, "the fold that is the test set, from 1", least=1, needs={"folds": True})


def run(options: Options, step):
    from margo.errors import MargoError, refuse
    from margo.formats.atomic import write_text
    from margo.formats.corpora import count_faults, is_synthetic, write_sets
    from margo.formats.lexicon import read_lexicon, write_lexicon
    from margo.formats.reading import read_text

    synthetic, etc = is_synthetic(options.corpus, "an4"), options.corpus / "etc"
    faults: list[str] = []
    parts = {part: utterances(options.corpus, part, faults) for part in ("train", "test")}
    counts = {"training utterances": len(parts["train"]), "test utterances": len(parts["test"])}
    if not (options.partial or synthetic):
        faults += count_faults(counts, COMPLETE)
    refuse(faults, f"{options.corpus}: not AN4 (--partial true accepts fewer utterances)", most=20)
    if options.folds:
        parts = fold(parts, options.folds, options.fold)
    dev = held_out(parts["train"], options.dev_every)
    sets = {
        "train": [row for row in parts["train"] if row.speaker not in dev],
        "dev": [row for row in parts["train"] if row.speaker in dev],
        "test": parts["test"],
    }
    for name in write_sets(options.out, sets, "an4", synthetic):
        step.output(name)
    write_lexicon(step.output("lexicon.txt"), read_lexicon(etc / "an4.dic")[0])
    if (etc / "an4.ug.lm").is_file():
        write_text(step.output("lm.arpa"), read_text(etc / "an4.ug.lm"))
    for which, rows in sets.items():
        words = sum(len(row.words) for row in rows)
        if not rows:
            raise MargoError(f"{options.corpus}: no utterances for the {which} set")
        step.say(f"{which}: {len({row.speaker for row in rows})} speakers, {len(rows)} utterances, {words} words")


def utterances(corpus: Path, part: str, faults: list[str]) -> list:
    """Rows of the official ``part``; what is wrong with its lists goes to ``faults``."""
    from margo.formats.datadir import Utterance
    from margo.formats.reading import read_lines

    lists = [corpus / "etc" / f"an4_{part}.{kind}" for kind in ("fileids", "transcription")]
    files, said = (read_lines(path) for path in lists)
    if len(files) != len(said):
        faults.append(f"{lists[0]} has {len(files)} lines, {lists[1]} {len(said)}")
    rows = []
    for (number, file), (_, line) in zip(files, said):
        path, match = Path(file.strip()), LINE.fullmatch(line.strip())
        if match is None or match[2] != path.name or len(path.parts) < 2:
            faults.append(f"{lists[1]}, line {number}: {line.strip()[:60]!r}, expected words and ({path.name})")
            continue
        audio = [corpus / "wav" / path.with_suffix(suffix) for suffix in (".sph", ".wav", ".raw")]
        audio = [each for each in audio if each.is_file()]
        if not audio:
            faults.append(f"{corpus / 'wav' / path}: no recording (.sph or .wav)")
            continue
        words = tuple(word for word in match[1].split() if word not in MARKS)
        speaker = path.parts[-2]
        rows.append(Utterance(f"{speaker}-{path.name}", speaker, words, str(audio[0].resolve()), gender=speaker[0]))
    return rows


def held_out(rows, every: int) -> set[str]:
    """Every ``every``-th speaker of each gender."""
    chosen: set[str] = set()
    for gender in sorted({row.gender for row in rows}):
        chosen.update(sorted({row.speaker for row in rows if row.gender == gender})[every - 1 :: every])
    return chosen


def fold(parts: dict, folds: int, number: int) -> dict:
    """The sets whose test set is one of ``folds`` of all speakers."""
    from margo.errors import MargoError

    rows = [row for part in parts.values() for row in part]
    speakers = sorted({(row.gender, row.speaker) for row in rows})
    if not 1 <= number <= folds <= len(speakers):
        raise MargoError(f"--fold is {number} of --folds {folds}, expected at most {len(speakers)}, one a speaker")
    test = {speaker for _, speaker in speakers[number - 1 :: folds]}
    return {which: [row for row in rows if (row.speaker in test) == (which == "test")] for which in ("train", "test")}


if __name__ == "__main__":
    main(__doc__, Options, run)
