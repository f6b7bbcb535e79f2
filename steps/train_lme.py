"""Large-margin estimation of HMM means: the program of [LJ07] solved to its optimum, epoch after epoch.

Each epoch searches the training data for competitors, maximises the margin within a ball around the current means, and
searches again to see what the step really gave. By default all tokens count and the margin is soft (--nu); --hard is
the paper's: the smallest margin of --tokens tokens that are recognised. --method gd is the baseline by gradient ascent.
The model kept is the one with the fewest errors on --dev, or on the training data without it.

Example: steps/train_lme.py --init exp/tidigits/mce_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/lme-sdp_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.lme.options import LmeOptions
from margo.runtime.step import Parallel, Seeded, Trainer, main, option


@dataclass(frozen=True)
class Options(LmeOptions, Parallel, Seeded, Trainer):
    data: Path = option(help="feature folder to train on")
    dev: Path | None = option(None, help="feature folder that picks the epoch")
    init: Path = option(help="folder of the model to start from")
    out: Path = option(help="folder to write")


def run(options: Options, step):
    from dataclasses import replace

    from margo.formats.models import write_model
    from margo.formats.plots import PLOTS, write_plots
    from margo.runtime import epochs
    from margo.tasks import passes, speech
    from margo.tasks.lme import LmeTraining, margin_plot

    step.input(options.init, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    dev = speech.read(step.input(options.dev, made_by="make_mfcc")) if options.dev else None
    hmms = passes.model_for(options.init, data)
    hmms = replace(hmms, meta={**hmms.meta, "criterion": "lme-gd" if options.method == "gd" else "lme-sdp"})
    with step.place() as where:
        training = LmeTraining(options, hmms, data, dev, where, step)
        state, reports = epochs.train(step, training.start, training.advance, training.save, training.load)
    write_model(step.output("model.npz"), state.best)
    step.output(PLOTS)
    write_plots(options.out, [margin_plot(reports)])
    step.extra["solver"] = reports[-1]["solver"]
    epochs.finish(step)


if __name__ == "__main__":
    main(__doc__, Options, run)
