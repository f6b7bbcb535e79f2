"""Check Kaldi data folders: every fault of the tables, the audio and the features, grouped by kind.

Prints one line for each kind of fault, with a count and up to three examples; ends with 1 where there are any.
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import main, option


@dataclass(frozen=True)
class Options:
    folders: tuple[Path, ...] = option(help="data folders", positional=True)
    allow_pipes: bool = option(False, help="accept commands in wav.scp (they are not run)")
    need_text: bool = option(True, help="expect a transcript for every utterance")
    sample_rate: int = option(0, help="rate that all audio must have; 0: any, but one")
    audio: bool = option(True, help="look into the audio files")
    feats: bool = option(True, help="read all features")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats import datadir

    count = 0
    for folder in options.folders:
        faults = datadir.validate(
            folder,
            allow_pipes=options.allow_pipes,
            need_text=options.need_text,
            sample_rate=options.sample_rate or None,
            check_audio=options.audio,
            check_feats=options.feats,
        )
        for fault in faults:
            print(f"{folder}: {fault}")
        if not faults:
            data = datadir.read(folder, allow_pipes=options.allow_pipes, need_text=options.need_text)
            print(f"{folder}: sound: {len(data)} utterances, {len(data.by_speaker)} speakers")
        count += sum(fault.count for fault in faults)
    if count:
        raise MargoError(f"{count} fault{'s' * (count > 1)}")


if __name__ == "__main__":
    main(__doc__, Options, run)
