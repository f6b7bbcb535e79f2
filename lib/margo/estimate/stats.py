"""Additive sufficient statistics: what one pass over data leaves behind, whatever the criterion."""

from dataclasses import dataclass, fields

import numpy as np
from numba import njit

from margo.gaussian.likelihood import Evaluation, Scorer
from margo.gaussian.moments import Moments
from margo.model.hmm import HmmSet

FRAMES = 2048  # summed in the products' own precision; longer sums continue in float64


@dataclass(eq=False)
class Stats(Moments):
    """Moments of frames, whose weights count for a Gaussian or against it, and what else a pass over utterances leaves.

    The moments and transitions [P] (expected counts) are net, for minus against; ``against`` [K] and
    transitions_against [P] are the negative sides alone (none in maximum likelihood), positive numbers. objective, and
    errors (utterances recognised wrongly), frames and utterances that counted, ``dropped`` as (utterance, reason)
    pairs; ``own``: the positive side's statistics, where I-smoothing needs them.
    """

    transitions: np.ndarray
    against: np.ndarray
    transitions_against: np.ndarray
    objective: float = 0.0
    errors: int = 0
    frames: int = 0
    utterances: int = 0
    dropped: tuple[tuple[str, str], ...] = ()
    own: "Stats | None" = None

    @classmethod
    def zeros(cls, hmms: HmmSet, centre: np.ndarray | None = None) -> "Stats":
        (gaussians, dimension), transitions = hmms.pool.means.shape, len(hmms.log_transitions)
        shapes = (gaussians, (gaussians, dimension), (gaussians, dimension), transitions, gaussians, transitions)
        return cls(hmms.pool.centre if centre is None else centre, *map(np.zeros, shapes))

    def __add__(self, other: "Stats") -> "Stats":
        if not np.array_equal(self.centre, other.centre):
            raise ValueError("statistics of different models cannot be added")
        names = [field.name for field in fields(self) if field.name not in ("centre", "own")]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Stats(self.centre, **sums, own=None if self.own is None else self.own + other.own)

    def means(self) -> np.ndarray:
        """Mean of the data each Gaussian saw, [K, D]; NaN where it saw none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.first / self.occupancy[:, None] + self.centre


def add_gaussians(
    stats: Stats, compiled: Scorer, evaluation: Evaluation, occupancies: np.ndarray, prune: float = 0.0
) -> None:
    """Share state ``occupancies`` [T, S'] out over components and add the moments of the frames to ``stats``.

    A component's posterior is the state's times its share of the state's likelihood; posteriors up to ``prune`` are
    left out (0 keeps all). Negative occupancies are allowed (then give ``prune=0``).
    """
    for first in range(0, len(occupancies), FRAMES):
        place = slice(first, first + FRAMES)
        weights = np.empty_like(evaluation.shares[place])
        _weigh(evaluation.shares[place], evaluation.totals[place], occupancies[place], prune, weights)
        add_moments(stats, compiled, weights.reshape(len(weights), -1).T @ evaluation.extended[place])


@njit(cache=True, error_model="numpy")
def _weigh(shares, totals, occupancies, prune, weights):
    frames, components, states = shares.shape
    factors = np.empty(states, shares.dtype)
    for t in range(frames):
        for s in range(states):
            factors[s] = occupancies[t, s] / totals[t, s]
        for m in range(components):
            for s in range(states):
                weight = shares[t, m, s] * factors[s]
                weights[t, m, s] = weight if prune == 0 or weight > prune else 0


def add_moments(stats: Stats, compiled: Scorer, moments: np.ndarray) -> None:
    """Add ``moments`` [M S', W], sums of extended frames, to ``stats``."""
    dimension, used = compiled.pool.dimension, compiled.gaussians.ravel() >= 0
    gaussians = compiled.gaussians.ravel()[used]
    stats.second[gaussians] += moments[used, :dimension]
    stats.first[gaussians] += moments[used, dimension : 2 * dimension]
    stats.occupancy[gaussians] += moments[used, 2 * dimension]


def add_contested(
    moments: np.ndarray, against: np.ndarray, evaluation: Evaluation, above: np.ndarray, below: np.ndarray
) -> None:
    """Add the sums of the extended frames under occupancies ``above - below`` [T, S'] to ``moments`` [M S', W] (for
    :func:`add_moments`), and what ``below`` comes to for each component to ``against`` [M, S'].

    The evaluation's shares become the posteriors under ``above - below``: it cannot be used again.
    """
    shares = evaluation.shares
    _contest(shares, evaluation.totals, above, below, against)
    moments += shares.reshape(len(shares), -1).T @ evaluation.extended


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _contest(shares, totals, above, below, against):
    frames, components, states = shares.shape
    net, part = np.empty(states, shares.dtype), np.empty(states, shares.dtype)
    for t in range(frames):
        for s in range(states):
            part[s] = below[t, s] / totals[t, s]
            net[s] = above[t, s] / totals[t, s] - part[s]
        for m in range(components):
            for s in range(states):
                against[m, s] += shares[t, m, s] * part[s]
                shares[t, m, s] *= net[s]
