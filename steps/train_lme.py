"""Large-margin estimation of HMM means and variances: the program of [LJ07] solved to its optimum, epoch after epoch.

Each epoch searches the training data for competitors, maximises the margin within a ball around the current model, and
searches again to see what the step really gave. By default all tokens count and the margin is soft (--nu); --hard is
the paper's: the smallest margin of --tokens tokens that are recognised. --method gd is the baseline by gradient ascent.
With --also it trains from other models too, one after the other, and keeps the mean of the best from each start if it
errs less on --dev than they do on average, and not clearly more than the best. Else the model kept is the one with the
fewest errors on --dev; without it, on the training data, and of equals the one with the larger margin there.

Example: steps/train_lme.py --init exp/tidigits/mce_1 --data exp/tidigits/mfcc/train --dev exp/tidigits/mfcc/dev \
--out exp/tidigits/lme-sdp_1
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from margo.estimate.lme.region import Lme, LmeOptions
from margo.knobs import knob
from margo.runtime.step import main
from margo.tasks.training import ContestedOptions, train


@dataclass(frozen=True)
class Options(LmeOptions, ContestedOptions):
    also: tuple[Path, ...] = knob((), "folders of other models to start from, in turn; the best of all is kept")


if __name__ == "__main__":
    main(__doc__, Options, partial(train, Lme))
