"""Additive sufficient statistics: what one pass over data leaves behind, whatever the criterion."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from margo.model.hmm import HmmSet
from margo.model.likelihood import Evaluation, Scorer, centre_of

FRAMES = 2048  # summed in the products' own precision; longer sums continue in float64


@dataclass(eq=False)
class Stats:
    """Sums over frames and Gaussians of posterior-weighted moments, about the fixed point ``centre``.

    occupancy [K], first [K, D] = sum gamma (x - centre), second [K, D] = sum gamma (x - centre)^2, transitions [P]
    (expected counts), log_likelihood, frames and utterances that counted, ``dropped`` as (utterance, reason) pairs, all
    float64. The centre comes from the model, so that all chunks of a pass share it; sums about it keep their digits.
    """

    centre: np.ndarray
    occupancy: np.ndarray
    first: np.ndarray
    second: np.ndarray
    transitions: np.ndarray
    log_likelihood: float = 0.0
    frames: int = 0
    utterances: int = 0
    dropped: tuple[tuple[str, str], ...] = ()

    @classmethod
    def zeros(cls, hmms: HmmSet) -> "Stats":
        shape = hmms.pool.means.shape
        return cls(
            centre_of(hmms.pool),
            np.zeros(shape[0]),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(len(hmms.log_transitions)),
        )

    def __add__(self, other: "Stats") -> "Stats":
        if not np.array_equal(self.centre, other.centre):
            raise ValueError("statistics of different models cannot be added")
        return Stats(
            self.centre,
            self.occupancy + other.occupancy,
            self.first + other.first,
            self.second + other.second,
            self.transitions + other.transitions,
            self.log_likelihood + other.log_likelihood,
            self.frames + other.frames,
            self.utterances + other.utterances,
            self.dropped + other.dropped,
        )

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
    moments: np.ndarray,
    against: np.ndarray,
    evaluation: Evaluation,
    above: np.ndarray,
    below: np.ndarray,
    prune: float,
) -> None:
    """Add the sums of the extended frames under occupancies ``above - below`` [T, S'] to ``moments`` [M S', W] (for
    :func:`add_moments`), and what ``below`` comes to for each component to ``against`` [M S'].

    Most occupancies are next to nothing, and where what is said is recognised for sure the two are all but the same,
    so that few pairs of frame and component count. Left out are pairs whose net posterior is at most ``prune``, and
    states that neither of the two occupies by more: each takes at most ``prune`` times its frame from a sum. 0 leaves
    out nothing.
    """
    sums = np.zeros(moments.shape, evaluation.extended.dtype)
    _contested(evaluation.shares, evaluation.totals, evaluation.extended, above, below, prune, sums, against)
    moments += sums


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def _contested(shares, totals, extended, above, below, prune, sums, against):
    """Lists the pairs frame by frame, sorts them by component, and adds up four frames of a component at a time."""
    frames, components, states = shares.shape
    count, room = 0, 1 << 14
    frame, component, size = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, extended.dtype)
    start = np.zeros(len(sums) + 1, np.int64)
    for t in range(frames):
        if count + len(sums) > room:
            room = 2 * (room + len(sums))
            frame, component, size = _longer(frame, room), _longer(component, room), _longer(size, room)
        for s in range(states):
            if above[t, s] > prune or below[t, s] > prune:
                net, part = (above[t, s] - below[t, s]) / totals[t, s], below[t, s] / totals[t, s]
                for m in range(components):
                    row = m * states + s
                    against[row] += shares[t, m, s] * part
                    frame[count], component[count], size[count] = t, row, shares[t, m, s] * net
                    kept = abs(size[count]) > prune
                    start[row + 1] += kept
                    count += kept
    for row in range(len(sums)):
        start[row + 1] += start[row]
    order, place = np.empty(count, np.int32), start[:-1].copy()
    for i in range(count):
        order[place[component[i]]] = i
        place[component[i]] += 1
    for row in range(len(sums)):
        total = sums[row]
        whole = start[row] + (start[row + 1] - start[row]) // 4 * 4
        for first in range(start[row], whole, 4):
            i, j, k, n = order[first], order[first + 1], order[first + 2], order[first + 3]
            a, b, c, e = extended[frame[i]], extended[frame[j]], extended[frame[k]], extended[frame[n]]
            p, q, r, s = size[i], size[j], size[k], size[n]
            for d in range(len(total)):
                total[d] += (p * a[d] + q * b[d]) + (r * c[d] + s * e[d])
        for i in order[whole : start[row + 1]]:
            a, p = extended[frame[i]], size[i]
            for d in range(len(total)):
                total[d] += p * a[d]


@njit(cache=True)
def _longer(array, size):
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer
