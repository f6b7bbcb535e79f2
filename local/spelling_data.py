"""The spelled utterances of CMU's AN4, those of letters alone, as Kaldi data folders train, dev and test.

Reads etc/an4_{train,test}.{fileids,transcription} and the recordings below wav/. The official split; of the training
speakers, sorted, every --dev-every-th becomes dev. Letters that nobody spells in train are left out of the other sets.

Example: local/spelling_data.py --corpus an4 --out exp/spelling/data
"""

import re
from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    corpus: Path = knob(help="AN4 as it is distributed, with etc and wav")
    out: Path = knob(help="folder to write train, dev and test into")
    dev_every: int = knob(7, "one training speaker in this many goes to dev", least=2)


def run(options: Options, step):
    from margo.errors import refuse
    from margo.formats.corpora import write_sets

    faults: list[str] = []
    parts = {part: spelled(options.corpus, part, faults) for part in ("train", "test")}
    refuse(faults, f"{options.corpus}: not AN4 as distributed", most=20)
    dev = sorted({row.speaker for row in parts["train"]})[options.dev_every - 1 :: options.dev_every]
    train = [row for row in parts["train"] if row.speaker not in dev]
    known = {word for row in train for word in row.words}
    sets = {"train": train, "dev": [row for row in parts["train"] if row.speaker in dev], "test": parts["test"]}
    kept = {which: [row for row in rows if set(row.words) <= known] for which, rows in sets.items()}
    for name in write_sets(options.out, kept, "an4", synthetic=False):
        step.output(name)
    for which, rows in kept.items():
        letters, lost = sum(len(row.words) for row in rows), len(sets[which]) - len(rows)
        told = f"; {lost} utterances left out, of letters that train has not" if lost else ""
        speakers = len({row.speaker for row in rows})
        step.say(f"{which}: {speakers} speakers, {len(rows)} utterances, {letters} letters{told}")


def spelled(corpus: Path, part: str, faults: list[str]) -> list:
    """Rows of the official ``part`` whose words are all letters; what is wrong with its lists goes to ``faults``."""
    from margo.formats.datadir import Utterance
    from margo.formats.reading import read_lines

    names, said = (corpus / "etc" / f"an4_{part}.{kind}" for kind in ("fileids", "transcription"))
    places = {line.split("/")[-1]: line for _, line in read_lines(names)}
    rows = []
    for number, line in read_lines(said):
        match = re.fullmatch(r"(.*)\(([^()]+)\)\s*", line)
        if not match or match[2] not in places:
            faults.append(f"{said}: line {number}: expected words and (utterance), an utterance of {names.name}")
            continue
        words = tuple(word for word in match[1].split() if word not in ("<s>", "</s>"))
        audio = corpus / "wav" / f"{places[match[2]]}.sph"
        if words and all(re.fullmatch("[A-Z]", word) for word in words):
            speaker = places[match[2]].split("/")[-2]
            rows.append(Utterance(f"{speaker}-{match[2]}", speaker, words, str(audio.resolve())))
            if not audio.is_file():
                faults.append(f"{audio}: no such file")
    return rows


if __name__ == "__main__":
    main(__doc__, Options, run)
