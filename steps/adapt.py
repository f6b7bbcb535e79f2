"""Adapt a model to a speaker, or a room, by a few recordings with transcripts: means move as far as the data warrant.

Maximum a posteriori: each mean counts for --tau frames of its own beside those that are heard. Ten recordings help.

Example: steps/adapt.py --init exp/words/ml_4 --data exp/mine/mfcc --tau 10 --out exp/mine/adapted
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.map_adaptation import MapOptions
from margo.knobs import knob
from margo.runtime.step import Parallel, main


@dataclass(frozen=True)
class Options(MapOptions, Parallel):
    init: Path = knob(help="folder of the model")
    data: Path = knob(help="feature folder of the recordings")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from dataclasses import replace

    from margo.estimate.map_adaptation import map_update
    from margo.estimate.ml import accumulate
    from margo.formats.models import write_model
    from margo.tasks import passes, speech

    step.input(options.init, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    first = hmms = passes.model_for(options.init, data)
    with step.place() as where:
        corpus = speech.Corpus(data, where, step)
        for number in range(options.passes):  # about the means of --init each time: its posteriors are what changes
            stats = corpus.total(accumulate, hmms)
            hmms, report = map_update(first, stats, options.tau)
            step.say(f"adapt: pass {number + 1}: {report['objective']:.5g} a frame of {report['frames']}, means moved "
                     f"by {report['moved']:.3f} deviations")  # fmt: skip
    hmms = replace(hmms, meta={**hmms.meta, "criterion": f"{first.meta.get('criterion', '')}+map".lstrip("+")})
    write_model(step.output("model.npz"), hmms)


if __name__ == "__main__":
    main(__doc__, Options, run)
