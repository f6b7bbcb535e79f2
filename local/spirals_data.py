"""Draw the two spirals of [PW10] 5.1, several times: one data folder with train.npz and test.npz for each draw.

Example: local/spirals_data.py --out exp/spirals/data
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    out: Path = knob(help="folder to write: 0, 1, ... below it")
    draws: int = knob(3, "how often to draw train and test samples", least=1)
    train: int = knob(5000, "training samples a class", least=1)
    test: int = knob(20000, "test samples a class", least=1)


def run(options: Options, step):
    import numpy as np

    from margo.classify.spirals import spirals
    from margo.formats.atomic import write_json
    from margo.formats.tables import Table, write_table

    for draw in range(options.draws):
        rng = np.random.default_rng([options.seed, draw])
        for name, count in (("train", options.train), ("test", options.test)):
            write_table(step.output(f"{draw}/{name}.npz"), Table(*spirals(rng, count), ("1", "2")))
    write_json(step.output("corpus.json"), {"corpus": "spirals", "synthetic": True})


if __name__ == "__main__":
    main(__doc__, Options, run)
