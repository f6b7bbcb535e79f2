"""Plot the decision regions of classifiers of two features, each with some of the test samples ([PW10] Fig. 1)."""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import main, option


@dataclass(frozen=True)
class Options:
    model: tuple[Path, ...] = option(help="folders of trainers")
    data: Path = option(help="data folder with test.npz")
    out: Path = option(help="folder to write plots.json into")
    cells: int = option(120, help="cells of the grid along each axis")
    points: int = option(400, help="test samples shown")


def run(options: Options, step):
    from margo.formats.plots import write_plots
    from margo.tasks import classifying, sweeping

    table = classifying.read_set(options.data, "test", step)
    models = {folder.name: classifying.read_model(folder, step, table.names)[0] for folder in options.model}
    write_plots(options.out, sweeping.boundary_plots(models, table, options.cells, options.points))
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)
