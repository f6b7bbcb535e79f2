"""Maximum margin by extended Baum-Welch: [PW10] section 4 carried to utterances and their competing strings.

The log margin of an utterance of T frames, with g the log score of a Viterbi path divided by T and c its competitors:

    log d = g_ref - 1/eta log sum_c exp(eta g_c)                 objective  sum_i log h(d_i^lambda)

h is the paper's smooth hinge: y + 1/2 up to 1, 2 - (y - 2)^2 / 2 up to 2, then 2: what is won by far no longer counts.
lambda is ``slope`` over the standard deviation of log d on the training data at the start, which makes one setting fit
utterances of any length and features of any dimension.
"""

from dataclasses import dataclass

import numpy as np

from margo.estimate.ebw_hmm import ebw_step
from margo.estimate.mce import competition
from margo.estimate.options import MmOptions
from margo.estimate.paths import Paths, Slots, score_paths, weigh_paths
from margo.estimate.signed import Signed, gradients
from margo.model.hmm import HmmSet


@dataclass(eq=False)
class MmStats:
    """Additive: statistics of the objective's gradient, the objective, utterances lost to a competitor, counts."""

    signed: Signed
    objective: float
    errors: int
    utterances: int
    frames: int

    def __add__(self, other: "MmStats") -> "MmStats":
        return MmStats(
            self.signed + other.signed,
            self.objective + other.objective,
            self.errors + other.errors,
            self.utterances + other.utterances,
            self.frames + other.frames,
        )


def smooth_hinge(log_y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(log h(y), d log h / d log y)`` of log y; the derivative times lambda is s^n of [PW10]:
    y / (y + 1/2) up to y = 1, (2 - y) / (2 - y/2) up to 2, then 0 (y cancels in the middle branch)."""
    y = np.exp(np.minimum(log_y, np.log(2.0)))
    low = y <= 1
    height = np.where(low, y + 0.5, 2 - 0.5 * (y - 2) ** 2)
    return np.log(height), np.where(low, y / (y + 0.5), (2 - y) / (2 - 0.5 * y))


def log_margins(hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots, eta: float) -> np.ndarray:
    """log d [N] of a chunk; its spread over the training data sets lambda."""
    scores = score_paths(hmms, x, paths, places).scores
    return -competition(scores, paths.first, np.diff(paths.bounds), eta)[0]


def accumulate(
    hmms: HmmSet, x: np.ndarray, paths: Paths, places: Slots, spread: float, options: MmOptions = MmOptions()  # noqa: B008
) -> MmStats:  # fmt: skip
    """Objective and its gradient's statistics of a chunk whose concatenated frames are ``x`` [T, D]."""
    lengths, steep = np.diff(paths.bounds), options.slope / spread
    scored = score_paths(hmms, x, paths, places)
    soft, best, shares = competition(scored.scores, paths.first, lengths, options.eta)
    heights, slopes = smooth_hinge(-steep * soft)
    slopes = steep * slopes / lengths  # s^n, and of log d by the scores
    weights = -np.repeat(slopes, np.diff(paths.first)) * shares
    weights[paths.first[:-1]] = slopes
    return MmStats(
        weigh_paths(hmms, x, paths, places, scored, weights),
        float(heights.sum()),
        int((best >= 0).sum()),
        len(heights),
        int(lengths.sum()),
    )


def update(hmms: HmmSet, stats: MmStats, options: MmOptions = MmOptions()) -> tuple[HmmSet, dict]:  # noqa: B008
    """One EBW step; the report's objective is that of the model that came in, per utterance.

    What reference and competitors share has cancelled, so a Gaussian may have nothing against it: D is growth times all
    that remains, for and against.
    """
    remains = stats.signed.occupancy.sum(axis=0), stats.signed.transitions.sum(axis=0)
    updated, report = ebw_step(hmms, stats.signed.net(), remains, options.parameters, options.growth)
    return updated, {
        "objective": stats.objective / max(stats.utterances, 1),
        "train_errors": stats.errors,
        "utterances": stats.utterances,
        "frames": stats.frames,
        **report,
    }


def gradient(hmms: HmmSet, stats: MmStats) -> dict[str, np.ndarray]:
    """Gradient of the summed objective, by kind of parameter (see :func:`margo.estimate.signed.gradients`)."""
    return gradients(hmms, *stats.signed.net())
