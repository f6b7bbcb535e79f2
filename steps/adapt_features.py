"""Map each speaker's features to a model by fMLLR: a feature folder in the model's own space, and speakers.npz.

Paths are those of the transcripts, or of what was recognised (--hyp, for test speakers: a first pass). To train
speaker-adaptively, adapt the training data, train with --init on the result, and adapt again with --paths, the features
as adapted before: paths and shares are then theirs, but the maps again those of --data. The record of the result names
the model: no other model, and none of features that are not adapted, takes it for its own.

Example: steps/adapt_features.py --model exp/an4/lda_8 --data exp/an4/lda_mfcc/test --hyp exp/an4/decode/lda_8/test \
--out exp/an4/sat_mfcc/test
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import knob
from margo.runtime.step import Parallel, main


@dataclass(frozen=True)
class Options(Parallel):
    model: Path = knob(help="folder of the model")
    data: Path = knob(help="feature folder")
    hyp: Path | None = knob(None, "folder of what decode recognised, instead of transcripts")
    paths: Path | None = knob(None, "feature folder, of the same utterances, to find paths with, instead of --data")
    least_frames: float = knob(200.0, "of a speaker with fewer frames of speech, features stay as they are", least=0)
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from dataclasses import replace

    import numpy as np

    from margo.errors import refuse
    from margo.formats.atomic import write_npz
    from margo.formats.reading import MOST, file_in
    from margo.formats.transcripts import read_transcripts
    from margo.signal.front_end import same_features
    from margo.tasks import passes, speech
    from margo.tasks.transforming import adapted, speaker_transforms, write_features

    step.input(options.model, made_by="train_ml")
    base = speech.read(step.input(options.data, made_by="make_mfcc"))
    data = speech.read(step.input(options.paths, made_by="make_mfcc")) if options.paths else base
    hmms = passes.model_for(options.model, data)
    if options.paths:
        same_features(passes.unadapted(data.features), base.features, f"{options.data}: the features")
    if options.hyp:
        said = read_transcripts(path := file_in(step.input(options.hyp, made_by="decode"), "hyp"))
        refuse([f"no utterance {item.name}" for item in data.items if item.name not in said],
               f"{path}: not of the utterances of {options.data}", MOST)  # fmt: skip
        data = replace(data, items=tuple(replace(item, words=said[item.name]) for item in data.items))
    with step.place() as where:
        transforms = speaker_transforms(hmms, speech.Corpus(data, where, step), base, options.least_frames)
    write_npz(step.output("speakers.npz"), {"kind": "fmllr", "speakers": [*transforms]},
              {f"transform{n}": transform for n, transform in enumerate(transforms.values())})  # fmt: skip
    record = {**base.features, passes.ADAPTED: passes.mark_of(hmms)}
    write_features(step, base, record, adapted(transforms, base))
    kept = sum(np.array_equal(transform, np.eye(*transform.shape)) for transform in transforms.values())
    step.say(f"adapt_features: {len(base.items)} utterances of {len(transforms)} speakers"
             f"{f', {kept} of whom have too few frames and stay as they are' * bool(kept)}")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)
