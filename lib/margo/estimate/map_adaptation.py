"""Maximum a posteriori adaptation of means (Gauvain and Lee 1994): a model moves as far as a speaker's data warrant."""

from dataclasses import dataclass, replace

import numpy as np

from margo.errors import MargoError
from margo.estimate.stats import Stats
from margo.knobs import Knobs, knob
from margo.model.hmm import HmmSet


@dataclass(frozen=True)
class MapOptions(Knobs):
    tau: float = knob(10.0, "frames that a Gaussian's own mean counts for", least=0)
    passes: int = knob(3, "passes over the recordings", least=1)


def map_update(hmms: HmmSet, stats: Stats, tau: float) -> tuple[HmmSet, dict]:
    """``mu = (tau mu_0 + sum gamma x) / (tau + sum gamma)``, mu_0 the means of ``hmms``; the rest stays.

    With tau = 0, or endless data, it is maximum likelihood's mean; where nothing was heard, the mean it was. Report:
    the log-likelihood per frame of the model that was measured, and how far means moved, in deviations, on average.
    """
    if stats.frames == 0:
        reasons = sorted({reason for _, reason in stats.dropped})
        raise MargoError("no usable utterance" + (f": {'; '.join(reasons[:5])}" if reasons else ""))
    occupancy = stats.occupancy[:, None]
    sums = stats.first + occupancy * stats.centre
    weight = tau + occupancy
    means = np.where(weight > 0, (tau * hmms.pool.means + sums) / np.where(weight > 0, weight, 1.0), hmms.pool.means)
    moved = np.sqrt(((means - hmms.pool.means) ** 2 / hmms.pool.variances).mean(axis=1))
    report = {"objective": stats.objective / stats.frames, "frames": stats.frames,
              "moved": float(stats.occupancy @ moved / max(stats.occupancy.sum(), 1e-300))}  # fmt: skip
    return hmms.with_pool(replace(hmms.pool, means=means)), report
