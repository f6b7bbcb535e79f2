"""Free Spoken Digit Dataset (DIGIT_SPEAKER_INDEX.wav) to Kaldi data folders OUT/{train,dev,test} for recipes/words.

The official split: recordings 0 to 4 of each digit and speaker are the test set. --dev N takes the next N of each from
training for a development set. --strings makes connected digits: recordings of one speaker, drawn at random from the
set's own, put end to end, 1 to 7 a string. With --test 0 --dev 0 everything is train, to leave speakers out of.
With --leave-out NAME that speaker is the test set, but for the first --adapt recordings of each digit, in OUT/adapt.

Example: local/fsdd_data.py --corpus free-spoken-digit-dataset --out exp/fsdd/data
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LONGEST = 7


@dataclass(frozen=True)
class Options(Seeded):
    corpus: Path = knob(help="folder with the recordings, or the one that holds its folder recordings")
    out: Path = knob(help="folder to write")
    test: int = knob(5, "recordings of each digit and speaker to test on", least=0)
    dev: int = knob(5, "recordings of each digit and speaker to set aside as dev", least=0)
    leave_out: str = knob("", "speaker to test on, who is not in train and dev; --test does nothing then")
    adapt: int = knob(1, "recordings of each digit of that speaker to adapt to", least=0, needs={"leave_out": True})
    most: int = knob(0, "recordings of each digit and speaker to use; 0: all", least=0)
    strings: bool = knob(False, "make strings of digits")
    train_strings: int = knob(2000, "strings to train on", least=1, needs={"strings": True})
    dev_strings: int = knob(800, "strings to tune on", least=1, needs={"strings": True})
    test_strings: int = knob(1000, "strings to test on", least=1, needs={"strings": True})


def run(options: Options, step):
    import numpy as np

    from margo.formats import datadir
    from margo.formats.atomic import write_json

    sets = split(recordings(options.corpus), options)
    generator = np.random.default_rng(options.seed)
    for name, rows in sets.items():
        if not rows:
            continue
        if options.strings:
            number = getattr(options, f"{name}_strings")
            utterances = make_strings(step, name, rows, number, generator)
        else:
            utterances = [datadir.Utterance(f"{speaker}-{digit}-{index:02d}", speaker, (WORDS[digit],), str(path))
                          for digit, speaker, index, path in rows]  # fmt: skip
        datadir.write(options.out / name, utterances)
        for file in sorted((options.out / name).iterdir()):
            step.output(f"{name}/{file.name}")
        step.say(f"{name}: {len(utterances)} utterances, {sum(len(u.words) for u in utterances)} digits")
    write_json(step.output("corpus.json"), {"corpus": "fsdd", "synthetic": False})


def recordings(corpus: Path) -> list[tuple]:
    """(digit, speaker, index, path) of every recording, sorted."""
    import re

    from margo.errors import MargoError

    folder = corpus / "recordings" if (corpus / "recordings").is_dir() else corpus
    rows = []
    for path in sorted(folder.glob("*.wav")):
        digit, _, rest = path.stem.partition("_")
        speaker, _, index = rest.rpartition("_")
        if not (re.fullmatch("[0-9]", digit) and speaker and re.fullmatch("[0-9]{1,9}", index)):
            raise MargoError(f"{path}: expected a name such as 7_jackson_32.wav")
        rows.append((int(digit), speaker, int(index), path.resolve()))
    if not rows:
        raise MargoError(f"{folder}: no recordings DIGIT_SPEAKER_INDEX.wav")
    return rows


def split(rows: list[tuple], options: Options) -> dict[str, list[tuple]]:
    """train, dev and test; and, of a speaker that is left out, adapt."""
    from margo.errors import MargoError

    sets = {"train": [], "dev": [], "test": [], "adapt": []}
    if options.leave_out and options.leave_out not in {row[1] for row in rows}:
        raise MargoError(f"--leave-out is {options.leave_out}, there are {', '.join(sorted({row[1] for row in rows}))}")
    for row in rows:
        index = row[2]
        if options.most and index >= options.most:
            continue
        if options.leave_out:
            own = row[1] == options.leave_out
            which = ("adapt" if index < options.adapt else "test") if own else "dev" if index < options.dev else "train"
            sets[which].append(row)
            continue
        which = "test" if index < options.test else "dev" if index < options.test + options.dev else "train"
        sets[which].append(row)
    return sets


def make_strings(step, name: str, rows: list[tuple], number: int, generator):
    """``number`` strings, the speakers in turn, written as 16-bit wave files."""
    import numpy as np
    import soundfile

    from margo.formats import datadir
    from margo.formats.audio import write_wave

    by_speaker: dict[str, list] = {}
    for digit, speaker, _, path in rows:
        samples, rate = soundfile.read(path, dtype="int16")
        by_speaker.setdefault(speaker, []).append((digit, samples, rate))
    speakers, utterances = sorted(by_speaker), []
    for i in range(number):
        speaker = speakers[i % len(speakers)]
        drawn = generator.integers(len(by_speaker[speaker]), size=generator.integers(1, LONGEST + 1))
        parts = [by_speaker[speaker][j] for j in drawn]
        key = f"{speaker}-{name}{i:04d}"
        path = step.out / "wav" / f"{key}.wav"
        write_wave(path, np.concatenate([samples for _, samples, _ in parts]), parts[0][2])
        words = tuple(WORDS[digit] for digit, _, _ in parts)
        utterances.append(datadir.Utterance(key, speaker, words, str(path.resolve())))
    return utterances


if __name__ == "__main__":
    main(__doc__, Options, run)
