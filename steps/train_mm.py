"""Train HMMs for maximum margin by extended Baum-Welch, from a model trained by maximum likelihood.

Each utterance is set against the strings (or, for isolated words, the other words) most easily taken for it; a smooth
hinge of the margin is raised. The model that makes the fewest errors on --dev is kept; without it, the one with the
best objective on --data.

Example: steps/train_mm.py --init exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/mm_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.options import MmOptions
from margo.runtime.step import Parallel, Seeded, Trainer, main, option


@dataclass(frozen=True)
class Options(MmOptions, Parallel, Seeded, Trainer):
    data: Path = option(help="feature folder to train on")
    dev: Path | None = option(None, help="feature folder of the development set, which picks the iteration")
    init: Path = option(help="folder of the model to start from")
    out: Path = option(help="folder to write")


def run(options: Options, step):
    from margo.tasks.discriminative import Mm, train

    train("mm", Mm, options, step)


if __name__ == "__main__":
    main(__doc__, Options, run)
