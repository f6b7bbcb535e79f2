"""Train HMMs for maximum mutual information, from a model trained by maximum likelihood.

The denominator is summed over the whole recognition graph, so the criterion is exact; the update is extended
Baum-Welch. --boost above 0 gives boosted MMI. The model that makes the fewest errors on --dev is kept; without it, the
one with the best objective on --data.

Example: steps/train_mmi.py --init exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/mmi_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.estimate.options import MmiOptions
from margo.runtime.step import Parallel, Seeded, Trainer, main, option


@dataclass(frozen=True)
class Options(MmiOptions, Parallel, Seeded, Trainer):
    data: Path = option(help="feature folder to train on")
    dev: Path | None = option(None, help="feature folder of the development set, which picks the iteration")
    init: Path = option(help="folder of the model to start from")
    out: Path = option(help="folder to write")


def run(options: Options, step):
    from margo.tasks.discriminative import Mmi, train

    train("mmi", Mmi, options, step)


if __name__ == "__main__":
    main(__doc__, Options, run)
