"""The artificial two-class task of [L04] 6.1: run0.csv, run1.csv ..., each a drawing of its own (split,class,f0,f1).

The report does not print its mixtures; these are others with its Bayes error (lib/margo/kernel/synthetic.py).

Example: local/gaussians_data.py --out exp/gaussians/data --runs 3
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Seeded, knob, main


@dataclass(frozen=True)
class Options(Seeded):
    out: Path = knob(help="folder to write")
    runs: int = knob(5, "drawings", least=1)
    train: int = knob(1000, "training samples of each, half of each class", least=2)
    test: int = knob(20000, "test samples of each", least=2)


def run(options: Options, step):
    import numpy as np

    from margo.formats.atomic import write_json
    from margo.formats.samples import Samples, write_samples
    from margo.kernel.artificial import sample

    nobody = np.empty(0, str)
    for number in range(options.runs):
        rng = np.random.default_rng([options.seed, number])
        drawn = {split: Samples(*sample(rng, getattr(options, split)), nobody) for split in ("train", "test")}
        write_samples(step.output(f"run{number}.csv"), drawn)
    write_json(step.output("corpus.json"), {"corpus": "gaussians", "synthetic": True})
    step.say(f"{options.runs} drawings of {options.train} training and {options.test} test samples")


if __name__ == "__main__":
    main(__doc__, Options, run)
