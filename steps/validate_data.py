"""Check Kaldi data folders: every fault of the tables, the audio and the features, grouped by kind.

Prints one line for each kind of fault, with a count and up to three examples; ends with 1 where there are any.

Example: steps/validate_data.py exp/tidigits/data/train exp/tidigits/data/test
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    folders: tuple[Path, ...] = knob(positional=True, help="data folders")
    allow_pipes: bool = knob(False, "accept commands in wav.scp (they are not run)")
    need_text: bool = knob(True, "expect a transcript for every utterance")
    sample_rate: int = knob(0, "rate that all audio must have; 0: any, but one", unit="Hz", least=0)
    audio: bool = knob(True, "look into the audio files")
    feats: bool = knob(True, "read all features")


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
