"""Draw samples from trained classifiers of pixels, as a picture: a row a class ([R18] Figure 2).

Writes plots.json with one picture a model.

Example: steps/draw_samples.py --model exp/digits/generative/0.5/hybrid-ll-lm_4 --data exp/digits/data/pixels \
--out exp/digits/drawn
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    model: tuple[Path, ...] = knob(help="folders of trainers")
    data: Path = knob(help="data folder of the pixels that they were trained on")
    out: Path = knob(help="folder to write plots.json into")
    count: int = knob(10, "samples a class", least=1)
    height: int = knob(0, "rows of an image (0: it is square)", least=0)


def run(options: Options, step):
    from margo.formats.plots import write_plots
    from margo.tasks import classifying, sweeping

    table = classifying.read_set(options.data, "train", step)
    models = {str(Path(folder.parent.name, folder.name)): classifying.read_model(folder, step, table.names)[0]
              for folder in options.model}  # fmt: skip
    write_plots(options.out, sweeping.sample_pictures(models, table, options))
    step.output("plots.json")


if __name__ == "__main__":
    main(__doc__, Options, run)
