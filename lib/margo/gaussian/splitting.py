"""Mixtures that grow by splitting their components, as HTK's HHEd does (MU)."""

import heapq

import numpy as np

from margo.gaussian.pool import GaussianPool

PERTURBATION = 0.2  # standard deviations
POWER, LEAST = 0.25, 20.0  # of a state's frames, by which Gaussians are shared out; frames of each at least


def shares(occupancy: np.ndarray, sizes: np.ndarray, total: int) -> np.ndarray:
    """Components [S] of each state, ``total`` in all, where there are ``sizes`` now: again and again one more for the
    state with the largest ``occupancy ** POWER / components``, as Kaldi does, but none that would have fewer than LEAST
    frames."""
    wanted = np.array(sizes, np.int64)
    waiting = [(-(frames**POWER) / size, state) for state, (frames, size) in enumerate(zip(occupancy, wanted))]
    heapq.heapify(waiting)
    while waiting and wanted.sum() < total:
        _, state = heapq.heappop(waiting)
        if occupancy[state] >= LEAST * (wanted[state] + 1):
            wanted[state] += 1
            heapq.heappush(waiting, (-(occupancy[state] ** POWER) / wanted[state], state))
    return wanted


def split(pool: GaussianPool, mixtures: int | np.ndarray) -> GaussianPool:
    """Every state grown to ``mixtures`` components, one number for all or one for each [S].

    Again and again the heaviest component is split: weights halved, means moved by +0.2 and -0.2 standard deviations,
    the copy put last. "Heaviest" counts 1 less for every time a component has been split in this call, and far less for
    one whose log determinant lies 4 standard deviations under the average of all. Dead components are replaced first.
    """
    determinants, steps = pool.covariances.log_determinants(), PERTURBATION * pool.covariances.deviations()
    collapsed = determinants < determinants.mean() - 4 * determinants.std()
    means, parents, weights, sizes = [], [], [], []
    for first, last, wanted in zip(pool.offsets, pool.offsets[1:], np.broadcast_to(mixtures, pool.n_states)):
        mean, parent = list(pool.means[first:last]), list(range(first, last))
        weight = list(np.exp(pool.log_weights[first:last]))
        penalty = [5000.0 * flag for flag in collapsed[first:last]]
        dead = [m for m, value in enumerate(weight) if value == 0]
        for place in [*dead, *range(len(mean), wanted)]:
            heaviest = int(np.argmax([w - p if w > 0 else -np.inf for w, p in zip(weight, penalty)]))
            step = steps[parent[heaviest]]
            weight[heaviest] /= 2
            penalty[heaviest] += 1
            copy = (mean[heaviest] - step, parent[heaviest], weight[heaviest], penalty[heaviest])
            mean[heaviest] = mean[heaviest] + step
            for column, value in zip((mean, parent, weight, penalty), copy):
                column[place : place + 1] = [value]
        means += mean
        parents += parent
        weights += weight
        sizes.append(len(mean))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return GaussianPool(np.array(means), pool.covariances.take(parents), np.log(weights), offsets)
