"""Your own Kaldi data folders, checked and taken in as train, dev and test.

Each folder has wav.scp (or feats.scp), text and utt2spk, and segments where there are any. Without --dev, a part of
--train is set aside by a fixed rule: speakers, until they hold a tenth of its utterances, so that none is in both;
where there is but one speaker, or words would be lost from train, every tenth utterance. With --leave-out, instead of
--test, a speaker's utterances in --train are the test set; dev is then made of the other speakers.

Example: local/words_data.py --train data/train --test data/test --out exp/words/data
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    train: str = knob(help="data folder to train on")
    test: str = knob("", "data folder to test on")
    leave_out: str = knob("", "speaker of --train to test on instead")
    dev: str = knob("", "data folder to choose settings on; without it a part of --train")
    out: Path = knob(help="folder to write train, dev and test into")
    dev_every: int = knob(10, "one utterance of --train in this many goes to dev, by whole speakers", least=2)
    allow_overlap: bool = knob(False, "accept utterances that are in more than one of the folders")
    allow_pipes: bool = knob(False, "accept commands in wav.scp, to be run when features are made")

    def faults(self):
        faults = super().faults()
        if not self.train:
            faults.append("--train is empty, expected a data folder")
        if bool(self.test) == bool(self.leave_out):
            faults.append("expected either --test, a data folder, or --leave-out, a speaker of --train")
        return faults


def run(options: Options, step):
    from margo.errors import refuse
    from margo.formats import datadir
    from margo.formats.corpora import write_sets

    folders = {"train": options.train, "dev": options.dev, "test": options.test}
    sets, faults = {}, []
    for which, folder in folders.items():
        if folder:
            wrong = datadir.validate(folder, allow_pipes=options.allow_pipes, check_audio=False, check_feats=False)
            faults += [f"{folder}: {fault}" for fault in wrong]
            if not wrong:
                sets[which] = list(datadir.read(folder, allow_pipes=options.allow_pipes))
    refuse(faults or ([] if options.allow_overlap else overlaps(sets)), "data folders")
    if options.leave_out:
        sets["train"], sets["test"] = leave_out(sets["train"], options.leave_out)
    if "dev" not in sets:
        sets["train"], sets["dev"], by = set_aside(sets["train"], options.dev_every)
        step.say(f"dev: {by} of {options.train}")
    sets = {which: [absolute(row) for row in sets[which]] for which in folders}
    vocabulary = {word for row in sets["train"] for word in row.words}
    for name in write_sets(options.out, sets, "words", synthetic=False):
        step.output(name)
    for which, rows in sets.items():
        carry_cmvn(folders[which] or options.train, step, which, {row.speaker for row in rows})
        unknown = sorted({word for row in rows for word in row.words} - vocabulary)
        unheard = f"; not in train: {' '.join(unknown[:10])}{' ...' * (len(unknown) > 10)}" if unknown else ""
        speakers, words = len({row.speaker for row in rows}), sum(len(row.words) for row in rows)
        step.say(f"{which}: {speakers} speakers, {len(rows)} utterances, {words} words{unheard}")


def carry_cmvn(folder: str, step, which: str, speakers: set) -> None:
    """The lines of the folder's cmvn.scp, where it has one, that tell of the speakers; make_mfcc applies them."""
    from margo.formats.atomic import write_text
    from margo.formats.features import read_scp

    if (Path(folder) / "cmvn.scp").is_file():
        places = {who: place for who, place in read_scp(folder, "cmvn.scp").items() if who in speakers}
        lines = [f"{who} {Path(ark).resolve()}:{offset}\n" for who, (ark, offset) in sorted(places.items())]
        write_text(step.output(f"{which}/cmvn.scp"), "".join(lines))


def overlaps(sets: dict[str, list]) -> list[str]:
    """Pairs of sets that hold the same utterances, by their names or by what they are cut from, in words."""
    from itertools import combinations

    faults = []
    for one, other in combinations(sets, 2):
        held = {key for row in sets[other] for key in (row.name, source_of(row))}
        both = sorted(row.name for row in sets[one] if {row.name, source_of(row)} & held)
        if both:
            faults.append(f"--{one} and --{other} share {len(both)} utterances, such as {both[0]}: figures would say "
                          "nothing of new speech (--allow-overlap true takes them)")  # fmt: skip
    return faults


def source_of(row) -> tuple:
    """What an utterance is cut from."""
    row = absolute(row)
    return row.feats or row.audio, row.start, row.end


def leave_out(rows: list, speaker: str) -> tuple[list, list]:
    """``(train, test)``: the others' utterances, and the speaker's."""
    from margo.errors import MargoError

    speakers = sorted({row.speaker for row in rows})
    if speaker not in speakers:
        raise MargoError(f"--leave-out {speaker}: the speakers of --train are {' '.join(speakers)}")
    if len(speakers) < 2:
        raise MargoError(f"--leave-out {speaker}: --train has no other speaker, expected two or more")
    return [row for row in rows if row.speaker != speaker], [row for row in rows if row.speaker == speaker]


def set_aside(rows: list, every: int) -> tuple[list, list, str]:
    """``(train, dev, what dev is made of)``: no speaker is in both wherever that is possible."""
    heard = held_out_speakers(rows, every)
    if heard:
        dev, by = {row.name for row in rows if row.speaker in heard}, f"{len(heard)} speakers ({' '.join(heard[:10])})"
    else:
        dev, by = {row.name for row in rows[every - 1 :: every]}, "utterances, of speakers who are in train too,"
        kept = {word for row in rows if row.name not in dev for word in row.words}
        dev = {row.name for row in rows if row.name in dev and set(row.words) <= kept}
    return [row for row in rows if row.name not in dev], [row for row in rows if row.name in dev], by


def held_out_speakers(rows: list, every: int) -> list[str]:
    """Speakers who hold one utterance in ``every``, or some more: every tenth of them, then from the last one back.

    One whose words nobody else would say stays; none, if those who can go hold less than half of what is wanted.
    """
    speakers = sorted({row.speaker for row in rows})
    often = Counter((row.speaker, word) for row in rows for word in set(row.words))
    left = Counter(word for _, word in often)  # speakers of each word
    counts = Counter(row.speaker for row in rows)
    chosen, spread = [], speakers[every - 1 :: every]
    for speaker in [*spread, *(other for other in reversed(speakers) if other not in spread)]:
        words = [word for other, word in often if other == speaker]
        if sum(counts[one] for one in chosen) * every >= len(rows):
            break
        if len(chosen) < len(speakers) - 1 and all(left[word] > 1 for word in words):
            chosen.append(speaker)
            left.subtract(words)
    return sorted(chosen) if 2 * every * sum(counts[one] for one in chosen) >= len(rows) else []


def absolute(row):
    """``row`` with paths that hold from any directory; commands stay as they are."""
    from dataclasses import replace

    if row.audio is not None and not row.is_pipe:
        row = replace(row, audio=str(Path(row.audio).resolve()))
    if row.feats is not None:
        ark, _, offset = row.feats.rpartition(":")
        row = replace(row, feats=f"{Path(ark).resolve()}:{offset}")
    return row


if __name__ == "__main__":
    main(__doc__, Options, run)
