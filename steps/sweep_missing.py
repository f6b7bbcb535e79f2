"""Error of classifiers against the part of features missing from test samples, marginalised ([PW10] Fig. 4, [R18] 3).

The same features of the same samples are missing for every classifier. Writes missing.json and plots.json.

Example: steps/sweep_missing.py --model exp/timit/gmm-ml exp/timit/gmm-mm --data exp/timit/frames \
--out exp/timit/missing
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, main, option


@dataclass(frozen=True)
class Options(Seeded):
    model: tuple[Path, ...] = option(help="folders of trainers")
    data: Path = option(help="data folder with test.npz")
    out: Path = option(help="folder to write")
    fractions: tuple[float, ...] = option((0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8), help="parts missing")
    repeats: int = option(3, help="draws of the missing features, averaged")
    samples: int = option(1000, help="test samples used, evenly chosen (0: all)")


def run(options: Options, step):
    from margo.formats.atomic import write_json
    from margo.formats.plots import write_plots
    from margo.tasks import classifying, sweeping

    table = classifying.labelled(classifying.read_set(options.data, "test", step))
    models = {folder.name: classifying.read_model(folder, step, table.names)[0] for folder in options.model}
    curves, plots = sweeping.missing_curves(models, table, options, step)
    write_json(step.output("missing.json"), curves)
    write_plots(options.out, plots)
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)
