"""How far large-margin training may move the means: dev errors against r^2 / K, and by epoch ([LJ07] Figures 1 and 2).

Trains from --init with each of --radii held fixed for --epochs epochs, and writes the curves as plots.json; no model is
kept. Everything is measured on --dev.

Example: steps/sweep_radius.py --init exp/isolet/ml_1 --data exp/isolet/mfcc/train --dev exp/isolet/mfcc/dev \
--out exp/isolet/sweep
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.lme.region import LmeOptions
from margo.knobs import Knobs, knob
from margo.runtime.step import Parallel, main


@dataclass(frozen=True)
class Options(LmeOptions, Parallel, Knobs):
    data: Path = knob(help="feature folder to train on")
    dev: Path = knob(help="feature folder to measure on")
    init: Path = knob(help="folder of the model to start from")
    out: Path = knob(help="folder to write")
    epochs: int = knob(5, "epochs with each radius", least=1)
    radii: tuple[float, ...] = knob((0.004, 0.02, 0.1, 0.5), "values of r^2 / K", above=0)


def run(options: Options, step):
    from functools import partial

    from margo.formats.atomic import write_json
    from margo.formats.plots import PLOTS, write_plots
    from margo.tasks import passes, speech
    from margo.tasks.lme import sweep, sweep_plots

    step.input(options.init, made_by="train_ml")
    data = speech.read(step.input(options.data, made_by="make_mfcc"))
    dev = speech.read(step.input(options.dev, made_by="make_mfcc"))
    hmms = passes.model_for(options.init, data)
    hmms.pool.require("diagonal", "lme")
    with step.place() as where:
        errors = partial(passes.dev_errors, data=dev, where=where)
        curves = sweep(options, hmms, speech.Corpus(data, where, step), errors, step.say)
    write_json(step.output("sweep.json"), curves)
    step.output(PLOTS)
    write_plots(options.out, sweep_plots(curves))


if __name__ == "__main__":
    main(__doc__, Options, run)
