"""Maximum margin by extended Baum-Welch: [PW10] section 4 carried to utterances and their competing strings.

The log margin of an utterance of T frames, with g the log score of a Viterbi path divided by T and c its competitors:

    log d = g_ref - 1/eta log sum_c exp(eta g_c)                 objective  sum_i log h(d_i^lambda)

h is the paper's smooth hinge: y + 1/2 up to 1, 2 - (y - 2)^2 / 2 up to 2, then 2: what is won by far no longer counts.
lambda is ``slope`` over the standard deviation of log d on the training data at the start.
"""

from dataclasses import dataclass, replace

from margo.estimate.contest import Contest, ContestOptions
from margo.estimate.moves import ebw_step
from margo.estimate.stats import Stats
from margo.gaussian.ebw import smooth_hinge
from margo.knobs import knob
from margo.model.hmm import HmmSet


@dataclass(frozen=True)
class MmOptions(ContestOptions):
    """Maximum margin by extended Baum-Welch."""

    slope: float = knob(1.0, "lambda of the margin, over the standard deviation of its logarithm on train", above=0)
    growth: float = knob(
        6.0, "E: the smoothing constant D is this times what counts for and against a Gaussian", above=0
    )


class Mm(Contest):
    name = "mm"

    def measures_of(self, soft, rivals):
        return -soft  # log d

    def value_of(self, measures, spread):
        steep = self.options.slope / spread
        heights, slopes = smooth_hinge(steep * measures)
        return heights, -steep * slopes

    def update(self, hmms: HmmSet, stats: Stats, memory: dict, corpus=None):
        """One EBW step. What reference and competitors share has cancelled, so a Gaussian may have nothing against it:
        D is growth times all that remains, for and against."""
        remains = replace(stats, against=stats.occupancy + 2 * stats.against,
                          transitions_against=stats.transitions + 2 * stats.transitions_against)  # fmt: skip
        hmms, report = ebw_step(hmms, remains, self.options.parameters, self.options.growth)
        return hmms, memory, report
