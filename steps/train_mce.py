"""Train HMMs for minimum classification error, from a model trained by maximum likelihood.

Each utterance is set against the strings (or, for isolated words, the other words) most easily taken for it; a smooth
count of those that win is descended by Rprop. The model that makes the fewest errors on --dev is kept; without it, the
one with the least loss on --data.

Example: steps/train_mce.py --init exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/mce_1
"""

from dataclasses import dataclass
from functools import partial

from margo.estimate.mce import Mce, MceOptions
from margo.runtime.step import main
from margo.tasks.training import ContestedOptions, train


@dataclass(frozen=True)
class Options(MceOptions, ContestedOptions):
    pass


if __name__ == "__main__":
    main(__doc__, Options, partial(train, Mce))
