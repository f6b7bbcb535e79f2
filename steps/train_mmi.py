"""Train HMMs for maximum mutual information, from a model trained by maximum likelihood.

The denominator is summed over the whole recognition graph, so the criterion is exact (where the graph is too large, as
of thousands of words, over the best strings); the update is extended Baum-Welch. --boost above 0 gives boosted MMI.
The model that makes the fewest errors on --dev is kept; without it, the one with the best objective on --data.

Example: steps/train_mmi.py --init exp/tidigits/ml_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/mmi_1
"""

from dataclasses import dataclass
from functools import partial

from margo.estimate.mmi import Mmi, MmiOptions
from margo.runtime.step import main
from margo.tasks.training import TrainingOptions, train


@dataclass(frozen=True)
class Options(MmiOptions, TrainingOptions):
    pass


if __name__ == "__main__":
    main(__doc__, Options, partial(train, Mmi))
