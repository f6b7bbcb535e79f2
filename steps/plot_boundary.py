"""Plot the decision regions of classifiers of two features, each with some of the test samples ([PW10] Fig. 1).

Example: steps/plot_boundary.py --model exp/spirals/0/gmm-ml_12 --data exp/spirals/data/0 --out exp/spirals/boundary
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    model: tuple[Path, ...] = knob(help="folders of trainers")
    data: Path = knob(help="data folder with test.npz")
    out: Path = knob(help="folder to write plots.json into")
    cells: int = knob(120, "cells of the grid along each axis", least=2)
    points: int = knob(400, "test samples shown", least=0)


def run(options: Options, step):
    from margo.formats.plots import write_plots
    from margo.tasks import classifying, sweeping

    table = classifying.read_set(options.data, "test", step)
    models = {folder.name: classifying.read_model(folder, step, table.names)[0] for folder in options.model}
    write_plots(options.out, sweeping.boundary_plots(models, table, options.cells, options.points))
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)
