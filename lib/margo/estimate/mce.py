"""Minimum classification error: descend a smooth count of the utterances that would be recognised wrongly.

The misclassification measure of an utterance of T frames, with g the log score of a path divided by T:

    d = -g_ref + 1/eta log( 1/C sum_c exp(eta g_c) )

over its C competitors; its loss is ``1 / (1 + exp(-slope d / spread - offset))``, where ``spread`` is the standard
deviation of d over the training data at the start. Scores and gradients are those of the Viterbi paths
(:mod:`margo.estimate.contest`). The optimiser is Rprop, batch by batch of the whole data, on mu / sigma, log
sigma and the logits of weights and transitions, or those of them that are asked for.
"""

from dataclasses import dataclass

import numpy as np

from margo.estimate import rprop
from margo.estimate.contest import Contest, ContestOptions
from margo.estimate.moves import PARAMETERS, gradients, moved
from margo.estimate.stats import Stats
from margo.knobs import knob
from margo.model.hmm import HmmSet


@dataclass(frozen=True)
class MceOptions(ContestOptions):
    """Minimum classification error."""

    parameters: tuple[str, ...] = knob(PARAMETERS, "kinds of parameters to train", PARAMETERS)
    slope: float = knob(3.0, "of the loss, over the standard deviation of the measure on train", above=0)
    offset: float = knob(0.0, "added inside the loss's sigmoid")
    first_step: float = knob(0.05, "first step of Rprop, in standard deviations (means) or nats", above=0)
    most_step: float = knob(0.1, "largest step of Rprop", above=0)
    variance_step: float = knob(0.2, "steps of log standard deviations, as a part of those of means", above=0)


class Mce(Contest):
    """Memory: the contest's, and Rprop's steps and signs of each kind of parameter."""

    name = "mce"
    better = -1  # the objective is a loss

    def measures_of(self, soft, rivals):
        return soft - np.log(rivals) / self.options.eta

    def value_of(self, measures, spread):
        steep = self.options.slope / spread
        losses = 0.5 * (1 + np.tanh(0.5 * (steep * measures + self.options.offset)))
        return losses, steep * losses * (1 - losses)

    def begin(self, hmms: HmmSet) -> dict:
        shapes = {"means": hmms.pool.means.shape, "variances": hmms.pool.means.shape,
                  "weights": hmms.pool.log_weights.shape, "transitions": hmms.log_transitions.shape}  # fmt: skip
        memory = super().begin(hmms)
        for kind in self.options.parameters:
            memory |= _kept(kind, rprop.start(shapes[kind], *self._bounds(kind)))
        return memory

    def _bounds(self, kind: str) -> tuple[float, float]:
        """First and largest step of a kind of parameter."""
        factor = self.options.variance_step if kind == "variances" else 1.0
        return factor * self.options.first_step, factor * self.options.most_step

    def update(self, hmms: HmmSet, stats: Stats, memory: dict, corpus=None):
        """One Rprop step of each kind of parameter."""
        slopes, changes, memory = gradients(hmms, stats), {}, dict(memory)
        for kind in self.options.parameters:
            state = rprop.Rprop(memory[f"steps.{kind}"], memory[f"signs.{kind}"], *self._bounds(kind))
            changes[kind], state = rprop.descend(state, slopes[kind])
            memory |= _kept(kind, state)
        return moved(hmms, changes), memory, {}


def _kept(kind: str, state: rprop.Rprop) -> dict:
    return {f"steps.{kind}": state.steps, f"signs.{kind}": state.signs}
