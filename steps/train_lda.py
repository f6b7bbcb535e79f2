"""Estimate LDA over spliced frames, then MLLT, from the states that best paths take; writes transform.npz.

The classes are the states of --init along the transcripts of --data. transform_features applies the result.

Example: steps/train_lda.py --init exp/an4/mono_8 --data exp/an4/mfcc/train --out exp/an4/lda
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import knob
from margo.runtime.step import Parallel, main


@dataclass(frozen=True)
class Options(Parallel):
    init: Path = knob(help="folder of the model")
    data: Path = knob(help="feature folder")
    dimension: int = knob(40, "columns to keep", least=1)
    left: int = knob(4, "frames before each that are spliced to it", least=0)
    right: int = knob(4, "frames behind", least=0)
    columns: int = knob(0, "columns of a frame that are spliced, from the first; 0: the statics, or all", least=0)
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.tasks import passes, speech
    from margo.tasks.transforming import NAME, Splicing, estimate_lda, write_transform

    step.input(options.init, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    hmms, dimension = passes.model_for(options.init, data), data.features["dimension"]
    columns = options.columns or dimension // (1 + data.features.get("deltas", 0))
    if columns > dimension:
        raise MargoError(f"--columns is {columns}, {options.data} has {dimension}")
    splicing = Splicing(columns, options.left, options.right)
    with step.place() as where:
        matrix, values = estimate_lda(hmms, speech.Corpus(data, where, step), splicing, options.dimension)
    write_transform(step.output(NAME), matrix, splicing, data.features)
    step.extra["mllt"] = values
    step.say(f"train_lda: {matrix.shape[1]} columns to {matrix.shape[0]}; MLLT: {values[0]:.4f} to {values[-1]:.4f} "
             "nats a frame")  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)
