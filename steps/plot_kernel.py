"""Draw decision regions of a two-class, two-dimensional kernel before and after training ([L04] Figures 6 and 7).

Example: steps/plot_kernel.py --model exp/gaussians/kernel/llr --data exp/gaussians/data/run0.csv \
--out exp/gaussians/plots
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: Path = knob(help="folder of train_kernel")
    data: Path = knob(help="the first CSV file it was trained with")
    out: Path = knob(help="folder to write plots.json into")
    title: str = knob("", "start of the plots' titles (default: the score-space)")
    resolution: int = knob(80, "cells along each axis", least=2)
    samples: int = knob(100, "training samples of each class to draw", least=0)


def run(options: Options, step):
    from margo.errors import MargoError
    from margo.formats.plots import PLOTS, write_plots
    from margo.formats.samples import read_samples
    from margo.tasks import mixture_kernels as kernels

    meta, systems = kernels.read_systems(step.input(options.model, made_by="train_kernel"))
    train = read_samples(step.input_file(options.data))["train"]
    if train.x.shape[1] != 2 or train.y.max() != 1:
        raise MargoError(f"{options.data}: only two classes in two dimensions can be drawn")
    title = options.title or f"{meta['space']}, {meta['mixtures']} mixtures"
    plots = [
        kernels.regions(f"{title}, {stage} max-margin training", system, train, options.resolution, options.samples)
        for stage, system in zip(("before", "after"), systems[0])
    ]
    write_plots(step.out, plots)
    step.output(PLOTS)


if __name__ == "__main__":
    main(__doc__, Options, run)
