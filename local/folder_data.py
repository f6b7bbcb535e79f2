"""A folder of recordings, each with its words in a .lab or .txt file of the same name, to a Kaldi data folder.

A recording's speaker is the folder it lies in, as other aligners have it; recordings that lie in the folder itself are
all of one speaker, who is called as the folder is.

Example: local/folder_data.py --corpus recordings --out data/mine --lower true
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    corpus: Path = knob(help="folder of recordings and their words")
    out: Path = knob(help="data folder to write")
    lower: bool = knob(False, "take words in small letters, without the signs around them")


def run(options: Options, step):
    from margo.errors import refuse
    from margo.formats import datadir
    from margo.tasks.aligning import bare, recordings

    said, faults = recordings(options.corpus)
    faults += [f"{each.audio}: its words have times, expected .lab or .txt" for each in said if each.words is None]
    refuse(faults, f"{options.corpus}: not every recording has its words", most=20)
    rows = []
    for each in said:
        place = each.audio.relative_to(options.corpus).with_suffix("")
        speaker = "_".join("-".join(place.parts[:-1]).split()) or options.corpus.resolve().name
        words = each.words.split()
        if options.lower:
            words = [word.lower() for word in map(bare, words) if word]
        rows.append(datadir.Utterance(f"{speaker}-{'_'.join(place.name.split())}", speaker, tuple(words),
                                      str(each.audio.resolve())))  # fmt: skip
    refuse([f"{row.audio}: no words" for row in rows if not row.words], str(options.corpus), most=20)
    datadir.write(options.out, rows)
    for table in ("wav.scp", "text", "utt2spk", "spk2utt"):
        step.output(table)
    words, speakers = {word for row in rows for word in row.words}, {row.speaker for row in rows}
    step.say(f"folder_data: {len(rows)} recordings of {len(speakers)} speakers, {len(words)} words")


if __name__ == "__main__":
    main(__doc__, Options, run)
