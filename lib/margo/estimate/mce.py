"""Minimum classification error: descend a smooth count of the utterances that would be recognised wrongly.

The misclassification measure of an utterance of T frames, with g the log score of a path divided by T:

    d = -g_ref + 1/eta log( 1/C sum_c exp(eta g_c) )

over its C competitors; its loss is ``1 / (1 + exp(-slope d / spread - offset))``, where ``spread`` is the standard
deviation of d over the training data at the start. Scores and gradients are those of the Viterbi paths
(:mod:`margo.estimate.paths`). The optimiser is Rprop, batch by batch of the whole data, on mu / sigma and, if asked,
log sigma and the logits of weights and transitions.
"""

from dataclasses import dataclass, replace

import numpy as np

from margo.estimate import rprop
from margo.estimate.options import MceOptions
from margo.estimate.paths import Paths, Slots, score_paths, weigh_paths
from margo.estimate.signed import Signed, gradients, row_groups
from margo.gaussian.pool import GaussianPool
from margo.model.hmm import HmmSet


@dataclass(eq=False)
class MceStats:
    """Additive: gradient statistics of the summed loss, the loss, utterances lost to a competitor, counts."""

    signed: Signed
    loss: float
    errors: int
    utterances: int
    frames: int

    def __add__(self, other: "MceStats") -> "MceStats":
        return MceStats(
            self.signed + other.signed,
            self.loss + other.loss,
            self.errors + other.errors,
            self.utterances + other.utterances,
            self.frames + other.frames,
        )


def competition(scores: np.ndarray, first: np.ndarray, lengths: np.ndarray, eta: float):
    """``(soft[N], best[N], shares[P])`` of scores [P] per frame: the eta-softmax of each utterance's competitors,
    ``1/eta log sum_c exp(eta g_c)``, less its reference's score; their best less the same; and the derivative of
    ``soft`` by each competitor's g (0 at references)."""
    counts = np.diff(first)
    owner = np.repeat(np.arange(len(counts)), counts)
    per_frame = scores / lengths[owner]
    reference = np.zeros(len(scores), bool)
    reference[first[:-1]] = True
    gaps = np.where(reference, -np.inf, per_frame - per_frame[first[:-1]][owner])
    best = np.maximum.reduceat(gaps, first[:-1]) if len(counts) else np.empty(0)
    terms = np.exp(eta * (gaps - best[owner]))
    totals = np.add.reduceat(terms, first[:-1]) if len(counts) else np.empty(0)
    return best + np.log(totals) / eta, best, terms / totals[owner]


def measure(hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots, eta: float) -> np.ndarray:
    """The misclassification measures d [N] of a chunk; their spread over the training data sets the slope."""
    soft, _, _ = competition(score_paths(hmms, x, paths, places).scores, paths.first, np.diff(paths.bounds), eta)
    return soft - np.log(np.diff(paths.first) - 1) / eta


def accumulate(
    hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots, spread: float, options: MceOptions = MceOptions()  # noqa: B008
) -> MceStats:  # fmt: skip
    """Loss and gradient statistics of a chunk whose concatenated frames are ``x`` [T, D]."""
    lengths, steep = np.diff(paths.bounds), options.slope / spread
    scored = score_paths(hmms, x, paths, places)
    soft, best, shares = competition(scored.scores, paths.first, lengths, options.eta)
    measures = soft - np.log(np.diff(paths.first) - 1) / options.eta
    losses = 0.5 * (1 + np.tanh(0.5 * (steep * measures + options.offset)))
    slopes = steep * losses * (1 - losses) / lengths  # of the loss by d, and of d by the scores
    weights = np.repeat(slopes, np.diff(paths.first)) * shares
    weights[paths.first[:-1]] = -slopes
    return MceStats(
        weigh_paths(hmms, x, paths, places, scored, weights),
        float(losses.sum()),
        int((best >= 0).sum()),
        len(losses),
        int(lengths.sum()),
    )


def start(hmms: HmmSet, options: MceOptions = MceOptions()) -> dict[str, rprop.Rprop]:  # noqa: B008
    """The optimiser of each kind of parameter before its first step."""
    shapes = {"means": hmms.pool.means.shape, "variances": hmms.pool.means.shape,
              "weights": hmms.pool.log_weights.shape, "transitions": hmms.log_transitions.shape}  # fmt: skip
    factors = {"means": 1.0, "variances": options.variance_step, "weights": 1.0, "transitions": 1.0}
    return {
        kind: rprop.start(shapes[kind], factors[kind] * options.first_step, factors[kind] * options.most_step)
        for kind in options.parameters
    }


def update(hmms: HmmSet, stats: MceStats, optimisers: dict[str, rprop.Rprop]):
    """``(hmms, optimisers, report)`` after one Rprop step of each kind of parameter in ``optimisers``."""
    found = gradients(hmms, *stats.signed.net())
    changes, after = {}, {}
    for kind, state in optimisers.items():
        changes[kind], after[kind] = rprop.descend(state, found[kind])
    report = {
        "objective": stats.loss / max(stats.utterances, 1),
        "train_errors": stats.errors,
        "utterances": stats.utterances,
        "frames": stats.frames,
    }
    return moved(hmms, changes), after, report


def moved(hmms: HmmSet, changes: dict[str, np.ndarray]) -> HmmSet:
    """``hmms`` with mu / sigma, log sigma, weight logits, transition logits changed by what ``changes`` holds."""
    pool = hmms.pool
    means, variances, log_weights = pool.means, pool.variances, pool.log_weights
    if "means" in changes:
        means = means + np.sqrt(variances) * changes["means"]
    if "variances" in changes:
        floor = 0.0 if hmms.variance_floor is None else hmms.variance_floor
        # What already lies under the floor stays where it is.
        variances = np.maximum(variances * np.exp(2 * changes["variances"]), np.minimum(floor, variances))
    if "weights" in changes:
        logits = log_weights + changes["weights"]
        peaks = np.maximum.reduceat(logits, pool.offsets[:-1])[pool.owners]
        sums = np.add.reduceat(np.exp(logits - peaks), pool.offsets[:-1])[pool.owners]
        log_weights = logits - peaks - np.log(sums)
    if "transitions" in changes:
        hmms = hmms.with_transitions(_normalised(hmms, hmms.log_transitions + changes["transitions"]))
    return replace(hmms, pool=GaussianPool(means, variances, log_weights, pool.offsets))


def _normalised(hmms: HmmSet, logits: np.ndarray) -> np.ndarray:
    """Log softmax over each row of each transition matrix; rows of the exit, all -inf, stay."""
    groups = row_groups(hmms)
    peaks = np.full(groups[-1] + 1, -np.inf)
    np.maximum.at(peaks, groups, logits)
    peaks = np.where(np.isfinite(peaks), peaks, 0.0)[groups]
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = np.log(np.bincount(groups, np.exp(logits - peaks)))[groups]
        return np.where(np.isfinite(sums), logits - peaks - sums, -np.inf)
