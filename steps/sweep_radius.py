"""How far large-margin training may move the means: accuracy against r^2 / K, and by epoch ([LJ07] Figures 1 and 2).

Trains from --init with each of --radii held fixed for --epochs epochs, and writes sweep.json, with the best of them
([LJ07] Table II), and plots.json; no model is kept. Accuracy is measured on --data, --dev and --test; --dev picks the
best epoch and radius or, without it, --data. --test is only shown.

Example: steps/sweep_radius.py --init exp/isolet/mce_1 --data exp/isolet/mfcc/train --dev exp/isolet/mfcc/dev \
--test exp/isolet/mfcc/test --out exp/isolet/sweep/mce_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.knobs import Knobs, knob
from margo.runtime.step import Parallel, main
from margo.tasks.lme import SweepOptions


@dataclass(frozen=True)
class Options(SweepOptions, Parallel, Knobs):
    data: Path = knob(help="feature folder to train on")
    dev: Path | None = knob(None, "feature folder that picks the best epoch and radius")
    test: Path | None = knob(None, "feature folder that is shown too")
    init: Path = knob(help="folder of the model to start from")
    out: Path = knob(help="folder to write")


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.plots import PLOTS, write_plots
    from margo.tasks import passes, speech
    from margo.tasks.lme import SWEEP, sweep, sweep_plots

    step.input(options.init, made_by="train_ml")
    folders = {"train": options.data, "dev": options.dev, "test": options.test}
    sets = {name: speech.read(step.input(place, made_by="make_mfcc")) for name, place in folders.items() if place}
    for data in sets.values():
        hmms = passes.model_for(options.init, data)
    hmms.pool.require("diagonal", "lme")
    with step.place() as where:
        swept = sweep(options, hmms, speech.Corpus(sets["train"], where, step), sets, step.say)
    write_json(step.output(SWEEP), swept)
    step.output(PLOTS)
    write_plots(options.out, sweep_plots(swept))


if __name__ == "__main__":
    main(__doc__, Options, run)
