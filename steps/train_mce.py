"""Train HMMs for minimum classification error, from a model trained by maximum likelihood.

Each utterance is set against the strings (or, for isolated words, the other words) most easily taken for it; a smooth
count of those that win is descended by Rprop. The model that makes the fewest errors on --dev is kept; without it, the
one with the least loss on --data.

Example: steps/train_mce.py --init exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/mce_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.options import MceOptions
from margo.runtime.step import Parallel, Seeded, Trainer, main, option


@dataclass(frozen=True)
class Options(MceOptions, Parallel, Seeded, Trainer):
    data: Path = option(help="feature folder to train on")
    dev: Path | None = option(None, help="feature folder of the development set, which picks the iteration")
    init: Path = option(help="folder of the model to start from")
    out: Path = option(help="folder to write")


def run(options: Options, step):
    from margo.tasks.discriminative import Mce, train

    train("mce", Mce, options, step)


if __name__ == "__main__":
    main(__doc__, Options, run)
