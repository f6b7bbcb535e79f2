"""Train HMMs for maximum margin by extended Baum-Welch, from a model trained by maximum likelihood.

Each utterance is set against the strings (or, for isolated words, the other words) most easily taken for it; a smooth
hinge of the margin is raised. The model that makes the fewest errors on --dev is kept; without it, the one with the
best objective on --data.

Example: steps/train_mm.py --init exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/mm_1
"""

from dataclasses import dataclass
from functools import partial

from margo.estimate.mm import Mm, MmOptions
from margo.runtime.step import main
from margo.tasks.training import ContestedOptions, train


@dataclass(frozen=True)
class Options(MmOptions, ContestedOptions):
    pass


if __name__ == "__main__":
    main(__doc__, Options, partial(train, Mm))
