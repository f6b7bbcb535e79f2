"""Apply a transform of train_lda to a feature folder: another feature folder, which everything else takes as it is.

Example: steps/transform_features.py --transform exp/an4/lda --data exp/an4/mfcc/test --out exp/an4/lda_mfcc/test
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import Knobs, knob
from margo.runtime.step import main


@dataclass(frozen=True)
class Options(Knobs):
    transform: Path = knob(help="folder of the transform")
    data: Path = knob(help="feature folder")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.tasks import speech
    from margo.tasks.transforming import transformed, write_features

    step.input(options.transform, made_by="train_lda")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    record, frames = transformed(options.transform, data)
    count = write_features(step, data, record, frames)
    step.say(f"transform_features: {count} utterances, {record['dimension']} columns")


if __name__ == "__main__":
    main(__doc__, Options, run)
